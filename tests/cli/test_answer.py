"""The command line: queries answered from a release."""

import re
from dataclasses import astuple

import openpyxl
import pytest

import rpexplore as rp
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.synthetic import questions


@pytest.mark.parametrize(
    ("question", "table", "query"),
    [
        ([], (), {}),
        (["age=old"], ("age",), {"age": [0, 1]}),
        (["sex=Female", "age=young..old"], ("age", "sex"), {"age": [1, 1], "sex": [1, 0]}),
        (["region=R1,Elsewhere"], ("region",), {"region": [1, 0, 1]}),
    ],
)
def test_questions_are_answered_from_a_release(planned_with_bases, question, table, query):
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    value, error = astuple(TableRelease.load("out").answer(table, where=query))
    facts = planned_with_bases.json("answer", "out", *question)
    assert facts["value"] == value
    assert facts["standard_error"] == error
    assert facts["lower_95"] == pytest.approx(value - 1.959964 * error, rel=1e-6)
    assert facts["upper_95"] == pytest.approx(value + 1.959964 * error, rel=1e-6)
    text = planned_with_bases.done("answer", "out", *question)
    assert f"{value:,.2f}" in text
    assert re.search(r"^Standard error +\d", text, re.MULTILINE)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("question", "refusal"),
    [
        (["age=middle"], "got 'middle'"),
        (["height=3"], "no attribute 'height' in the domain; it has age, sex, region."),
        (["ages=old"], "no attribute 'ages' in the domain; did you mean 'age'?"),
        (["age=old", "age=young"], "'age' twice"),
        (["age=old", "sex=F", "height"], "must be an attribute"),
    ],
)
def test_questions_that_a_release_cannot_answer_are_refused(planned_with_bases, question, refusal):
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    assert refusal in planned_with_bases.refused("answer", "out", *question)
    assert "not a finished release" in planned_with_bases.refused("answer", "none", "age=old")


@pytest.mark.nightly
def test_questions_that_no_table_holds_are_answered_by_a_model(planned_with_bases, monkeypatch):
    monkeypatch.setattr(questions, "_POPULATION", 1_000)
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    together = "age=old sex=Female region=R1"
    assert planned_with_bases.json("answer", "out", "sex=Female")["basis"] == "from the tables"
    one = planned_with_bases.json("answer", "out", together)
    assert one["basis"] == "by a model"
    assert one["question"] == [together]
    assert one["lower_95"] < one["value"] < one["upper_95"]
    again = planned_with_bases.json("answer", "out", *together.split())
    assert again == one | {"question": together.split()}
    both = planned_with_bases.json("answer", "out", together, "sex=Female")["answers"]
    assert [answer["basis"] for answer in both] == ["by a model", "from the tables"]
    text = planned_with_bases.done("answer", "out", together)
    assert "By a model: no table of the release has these attributes together" in text
    assert "By a model" not in planned_with_bases.done("answer", "out", "sex=Female")


def test_a_workbook_has_a_sheet_for_every_table(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "release", "--yes")
    facts = planned.json("workbook", "release", "--out", "tables.xlsx")
    assert openpyxl.load_workbook("tables.xlsx").sheetnames[1:] == facts["sheets"]
    assert facts["table_count"] == len(facts["sheets"]) == 7
    assert "exists already" in planned.refused("workbook", "release", "--out", "tables.xlsx")
    planned.done("workbook", "release", "--out", "tables.xlsx", "--force")
    limit = ("--cv-limit", "0.05", "--leave-empty", "--force")
    planned.done("workbook", "release", "--out", "tables.xlsx", *limit)
    facts = [row[1].value or "" for row in openpyxl.load_workbook("tables.xlsx").worksheets[0]]
    assert any("CV at most 5 %." in text and "left empty" in text for text in map(str, facts))
    assert "must end in .xlsx" in planned.refused("workbook", "release", "--out", "tables.csv")


def test_shares_are_answered_per_attribute(planned_with_bases):
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    expected = rp.shares(TableRelease.load("out"), {"age": "old"}, per=["sex"])
    answers = planned_with_bases.json("answer", "out", "age=old", "--per", "sex")["answers"]
    rows = expected.astype(object).where(expected.notna(), None).to_dict("records")
    assert [row["value"] for row in answers] == [row["value"] for row in rows]
    assert "--among goes with --per" in planned_with_bases.refused(
        "answer", "out", "age=old", "--among", "sex=Female"
    )
    refusal = planned_with_bases.refused("answer", "out", "age=old", "--per", "height")
    assert "--per 'height' must be an attribute" in refusal
