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
        ("postprocess", "out", "--nonnegative", "--out", "made"),
        ("postprocess", "out", "--smooth", "--out", "made"),
        ("synthesize", "out", "--out", "made"),
    ],
    ids=lambda verb: verb[0],
)
def test_what_is_made_of_tables_says_that_other_parts_are_left_out(released, verb):
    assert ASIDE in " ".join(released.done(*verb).split())


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
    released.done("postprocess", "made", "--nonnegative", "--out", "whole")
    assert "measurements" in released.refused("combine", "made", "out1", "--out", "again")


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
