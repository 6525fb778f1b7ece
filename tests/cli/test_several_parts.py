"""Verbs on a plan and a release of tables, tables in areas and own counts: each does what it is
said to do with all of them, or says in a sentence what it leaves out.
"""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "verb",
    [
        ("combine", "out", "--out", "made"),
        ("postprocess", "out", "--nonnegative", "--out", "made"),
        ("postprocess", "out", "--smooth", "--out", "made"),
        ("synthesize", "out", "--out", "made"),
    ],
    ids=lambda verb: verb[0],
)
def test_what_is_made_of_tables_says_that_other_parts_are_left_out(released, verb):
    assert ASIDE in " ".join(released.done(*verb).split())


def test_areas_are_processed_beside_tables_without_known_totals(released):
    text = released.done("postprocess", "out", "--nonnegative", "--out", "made")
    assert "--nonnegative --round --in-areas makes whole counts of these" in " ".join(text.split())
    both = ("--nonnegative", "--round", "--in-areas")
    assert released.json("postprocess", "out", *both, "--out", "whole")["known_totals"] == 0
    assert "town" in Path("whole/README.md").read_text("utf-8")
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


def test_rehearsals_are_of_the_tables_of_the_plan(released):
    counts = ("--expected-count", "90")
    assert "not tables in areas and own counts" in released.done("rehearse", "plan.json", *counts)
    report = ("report", "plan.json", "--out", "report.html", "--rehearse", *counts)
    released.done(*report)
    assert "rehears" in Path("report.html").read_text("utf-8")


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
