"""Verbs on a plan and a release of tables, tables in areas and own counts: each does what it is
said to do with all of them, or says in a sentence what it leaves out.
"""

import json
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.results.estimates.area_counts import AreaCounts
from tests.cli.program import Program

ASIDE = "also holds tables in areas and own counts; they are not part of this"


@pytest.fixture
def released(run) -> Program:
    """A release of all kinds of parts but rounds."""
    Path("book.csv").write_text("attribute,value\nsex,F\nsex,M\nage,old\nage,young\n", "utf-8")
    Path("areas.csv").write_text("district,town\nA,a1\nA,a2\nB,b1\n", "utf-8")
    rows = "".join(
        f"{'FM'[i % 2]},{('old', 'young')[i % 3 // 2]},a{i % 2 + 1}\n" for i in range(90)
    )
    Path("records.csv").write_text(f"sex,age,town\n{rows}", "utf-8")
    asked = ("--up-to", "2", "--table", "town,sex", "--count", "women: sex = 'F' @ 5")
    run.done("plan", "book.csv", "--areas", "areas.csv", *asked, "--rho", "1", "--out", "plan.json")
    run.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    return run


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "verb",
    [
        ("postprocess", "out", "--nonnegative", "--out", "made"),
        ("postprocess", "out", "--smooth", "--out", "made"),
        ("synthesize", "out", "--out", "made"),
    ],
    ids=lambda verb: verb[0],
)
def test_what_is_made_of_tables_says_that_other_parts_are_left_out(released, verb):
    assert ASIDE in " ".join(released.done(*verb).split())


def test_areas_that_are_named_like_values_have_options_of_their_own(released):
    told = released.refused("answer", "out", "town=a1", "sex=F")
    assert "'town' is a level of areas, and no attribute; give --area a1" in told
    told = released.refused("answer", "out", "sex=F age=old", "--area", "a1")  # one question
    assert "no table of (sex × age) for a1" in told


def test_counts_of_areas_are_rounded_to_multiples(released):
    multiples = ("postprocess", "out", "--in-areas", "--round-to", "10")
    released.done(*multiples, "--nonnegative", "--out", "tens")
    counts = AreaCounts.load("tens").table("town", "sex")["value"]
    assert (counts % 10 == 0).all()
    assert counts.max() > 0
    refused = released.refused(*multiples, "--best-guesses", "--out", "more")
    assert "give --nonnegative --round-to 10 without --best-guesses" in refused


@pytest.mark.nightly
def test_areas_are_processed_beside_tables_without_known_totals(released):
    text = released.done("postprocess", "out", "--nonnegative", "--out", "made")
    assert "--nonnegative --round --in-areas makes whole counts of these" in " ".join(text.split())
    both = ("--nonnegative", "--round", "--in-areas")
    assert released.json("postprocess", "out", *both, "--out", "whole")["known_totals"] == 0
    assert "town" in Path("whole/README.md").read_text("utf-8")
    assert "'whole' holds whole counts of areas" in released.refused("answer", "whole", "sex=F")
    refused = released.refused("postprocess", "made", *both, "--out", "more")
    assert "--in-areas goes with a release of tables in areas" in refused


def test_sums_that_have_no_standard_error_say_why(released):
    Path("lists.csv").write_text("list,town\na,a1\n", "utf-8")
    released.done(
        "plan", "book.csv", "--areas", "areas.csv", "--up-to", "1", "--level", "town=none",
        "--rho", "1", "--out", "few.json",
    )  # fmt: skip
    shown = ("show", "few.json", "--areas", "lists.csv")
    assert "not all of these areas have this table" in released.done(*shown)
    assert {row["note"] for row in released.json(*shown)["sums"]} == {
        "not all of these areas have this table"
    }


# By day tests/results/test_combined_parts.py combines them.
@pytest.mark.nightly
def test_every_part_is_combined_with_its_like(released):
    for name in ("out1", "out2"):
        released.done("release", "plan.json", "records.csv", "--out", name, "--yes")
    facts = released.json("combine", "out1", "out2", "--out", "made")
    assert facts["parts"] == ["tables", "areas", "counts"]
    # Two runs of one plan: every variance is halved.
    for question in (("women",), ("sex=F",), ("sex=F", "--area", "a1")):
        one, both = (
            released.json("answer", "out1", *question),
            released.json("answer", "made", *question),
        )
        assert abs(both["standard_error"] / one["standard_error"] - 2**-0.5) < 1e-9
    released.done("publish", "made", "--out", "export")
    released.done("workbook", "made", "--out", "made.xlsx")
    assert "did you mean 'women'?" in released.refused("answer", "made", "wimen")
    in_areas = ("--nonnegative", "--round", "--in-areas", "--out", "areas")
    released.done("postprocess", "made", *in_areas)
    released.done("publish", "areas", "--out", "areas-export")
    for made in (
        ("postprocess", "made", "--nonnegative", "--out", "whole"),
        ("synthesize", "made", "--out", "people"),
    ):
        assert f"'made' {ASIDE}" in released.done(*made)
    assert "measurements" in released.refused("combine", "made", "out1", "--out", "again")


@pytest.mark.nightly
def test_rehearsals_are_of_the_tables_of_the_plan(released):
    counts = ("--expected-count", "90")
    assert "not tables in areas and own counts" in released.done("simulate", "plan.json", *counts)
    report = ("report", "plan.json", "--out", "report.html", "--simulate", *counts)
    released.done(*report)
    assert "Simulated on made-up" in Path("report.html").read_text("utf-8")


@pytest.mark.nightly
def test_a_rehearsal_of_adaptive_tables_says_what_it_leaves_out(run):
    Path("book.csv").write_text("attribute,value\nsex,F\nsex,M\nage,old\nage,young\n", "utf-8")
    expected = ("--expected-count", "90")
    run.done(
        "plan", "book.csv", "--table", "sex,age", "--adaptive", *expected, "--rho", "1",
        "--count", "women: sex = 'F' @ 5", "--share", "rounds=1/2", "--share", "counts=1/2",
        "--out", "plan.json",
    )  # fmt: skip
    assert "not own counts" in run.done("simulate", "plan.json", *expected)


def test_answers_are_refused_with_what_there_is_instead(released):
    released.done("postprocess", "out", "--nonnegative", "--out", "made")
    refusal = released.refused("answer", "made", "sex=F")
    assert "holds processed tables" in refusal
    assert "made of (out)" in refusal
    assert "which has (sex)" in released.refused("answer", "out", "age", "--area", "A")
    assert released.json("answer", "out", "women")["standard_error"] > 0


def test_own_counts_are_not_about_areas(released):
    asked = ("--areas", "areas.csv", "--count", "one: town == 'a1' @ 5", "--rho", "1")
    refusal = released.refused("plan", "book.csv", *asked, "--out", "other.json")
    assert "'town' is a level of areas; ask for it in a table, such as --table town,sex" in refusal


def test_a_misspelt_count_is_answered_with_those_that_there_are(released):
    assert "did you mean 'women'?" in released.refused("answer", "out", "woman")
    assert "the counts are 'women'." in released.refused("answer", "out", "adultes")
    assert "name it alone" in released.refused("answer", "out", "women", "age=0")


@pytest.mark.nightly
def test_dates_and_missing_numbers_have_their_cells_in_areas_and_national_tables(released):
    """Records of a known number in each cell, with next to no noise: every count comes out."""
    fields = [
        {
            "name": "day",
            "type": "date",
            "constraints": {"minimum": "2026-01-01", "maximum": "2026-03-31", "step": "month"},
            "missingValues": [{"value": "9999-12-31", "label": "open"}],
        },
        {
            "name": "age",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 1},
            "missingValues": [{"value": "-9", "label": "refused"}, ""],
        },
    ]
    Path("dates.json").write_text(json.dumps({"fields": fields}), "utf-8")
    days = ["2026-01-31", "2026-02-01T08:30", "2026-02-28", "9999-12-31"]
    rows = [
        f"{day},{age},{town}"
        for town, n in (("a1", 1), ("a2", 2), ("b1", 3))
        for day in days
        for age in ("0", "1", "-9", "")
        for _ in range(n)
    ]
    Path("days.csv").write_text("\n".join(["day,age,town", *rows]), "utf-8")
    asked = ("--up-to", "2", "--table", "town,day,age", "--basis", "day=prefix")
    count = ("--count", 'winter: day <= "2026-02" & age == "refused" @ 1')
    released.done(
        "plan", "dates.json", "--areas", "areas.csv", *asked, *count, "--rho", "1000000",
        "--out", "days.json",
    )  # fmt: skip
    released.done("verify", "days.json")
    released.done("release", "days.json", "days.csv", "--out", "days", "--yes")
    release = rp.Release.load("days")
    national = release.table("day", "age").set_index(["day", "age"])["value"].round().astype(int)
    labels = ["≤ 2026-01", "≤ 2026-02", "≤ 2026-03", "open"]
    expected = {
        (label, age): n * 6
        for label, n in zip(labels, (1, 3, 3, 1), strict=True)
        for age in ("0", "1", "refused", "not stated")
    }
    assert national.to_dict() == expected
    of_town = release.table("day", "age", level="town")
    for town, n in (("a1", 1), ("a2", 2), ("b1", 3)):
        counts = of_town[of_town["town"] == town].set_index(["day", "age"])["value"]
        by_label = counts.round().astype(int).to_dict()
        assert by_label == {  # in areas, single months
            (label, age): k * n
            for label, k in zip(
                ("2026-01", "2026-02", "2026-03", "open"), (1, 2, 0, 1), strict=True
            )
            for age in ("0", "1", "refused", "not stated")
        }
    assert round(release.answers["answer"][0]) == 18
    facts = released.json("answer", "days", "day=2026-02", "age=refused")
    assert round(facts["value"]) == 12
