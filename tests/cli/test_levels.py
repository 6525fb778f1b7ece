"""Tables with attributes at levels: from the codebook to the released cells."""

import json
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from tests.cli.program import Program

ASKED = ("--table", "age@five,sex", "--table", "age@adult,region@groups", "--table", "age")


@pytest.fixture
def planned(run) -> Program:
    ages = {"name": "age", "constraints": {"minimum": 0, "maximum": 29}}
    ages["levels"] = {"five": 5, "adult": "0-17, 18+"}
    regions = {"name": "region", "constraints": {"enum": ["n1", "n2", "s1"]}}
    regions["groups"] = [["North"], ["North"], ["South"]]
    fields = [ages, {"name": "sex", "constraints": {"enum": ["F", "M"]}}, regions]
    Path("book.json").write_text(json.dumps({"fields": fields}), "utf-8")
    rows = "".join(f"{i * 7 % 30},{'FM'[i % 2]},{('n1', 'n2', 's1')[i % 3]}\n" for i in range(900))
    Path("records.csv").write_text(f"age,sex,region\n{rows}", "utf-8")
    run.done("plan", "book.json", *ASKED, "--rho", "1e9", "--out", "plan.json")
    return run


@pytest.mark.nightly
def test_released_tables_count_the_groups_of_the_records(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    records, part = pd.read_csv("records.csv"), rp.Release.load("out").part("tables")
    adults = records.assign(
        adult=records.age.ge(18).map({True: "18+", False: "0-17"}),
        region=records.region.str[0].map({"n": "North", "s": "South"}),
    )
    exact = adults.groupby(["region", "adult"]).size().to_dict()
    table = part.table("age@adult", "region@groups")
    released = {
        (row["region@groups"], row["age@adult"]): round(row["value"])
        for row in table.to_dict("records")
    }
    assert released == exact
    assert part.table("age").value.round().tolist() == [30.0] * 30
    answer = planned.json("answer", "out", "age@five=5 to 9", "sex=F")
    assert round(answer["value"]) == ((records.age // 5 == 1) & (records.sex == "F")).sum()
    assert 0 < answer["standard_error"] < 0.001
    answer = planned.json("answer", "out", "age=5..9", "sex=F")
    assert round(answer["value"]) == (records.age.between(5, 9) & (records.sex == "F")).sum()


def test_whole_counts_are_made_of_all_levels(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    said = planned.done("postprocess", "out", "--nonnegative", "--round", "--out", "whole")
    assert "Of their squared distance to the noisy tables at most" in said
    ages = rp.Release.load("out").part("tables").table("age").value.round()
    whole = pd.read_csv(next(Path("whole/tables").glob("*_age.csv")))
    assert whole["value"].tolist() == ages.tolist() == [30] * 30


def test_estimates_are_refused_in_a_sentence_and_records_are_made(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    refusal = planned.refused("postprocess", "out", "--smooth", "--out", "made")
    assert "'age' is in tables at several levels" in refusal
    assert "drawn from whole counts" in planned.done("synthesize", "out", "--out", "made")
    made = pd.read_csv("made/synthetic_records.csv")
    assert made["age"].value_counts().eq(30).all()


@pytest.mark.nightly
def test_show_report_and_compare_name_the_levels(planned):
    assert "age@adult" in planned.done("show", "plan.json")
    planned.done("report", "plan.json", "--out", "report.html")
    assert "age@five" in Path("report.html").read_text("utf-8")
    assert "every table planned by itself" in planned.done("compare", "plan.json")
