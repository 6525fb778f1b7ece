"""The verb that forecasts: figures with ranges for people and for programs."""

import csv
import json

import pytest

import rpexplore as rp
from rpexplore.analysis import drawn_areas
from tests.cli.program import Program


def test_a_forecast_is_printed_as_json_and_written_as_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text("attribute,value\nsex,f\nsex,m\njob,a\njob,b\njob,c\n")
    (tmp_path / "sex.csv").write_text("sex,count\nf,900\nm,100\n")
    program = Program(tmp_path)
    program.done("plan", "codebook.csv", "--up-to", "2", "--rho", "0.01", "--out", "plan.json")
    asked = ("forecast", "plan.json", "--public", "sex.csv", "--by-group", "sex")
    facts = program.json(*asked, "--csv", "tables.csv")
    assert facts["people"]["low"] <= facts["people"]["median"] <= facts["people"]["high"]
    assert facts["tables"]["of"] == 4
    assert facts["by_order"]["0"]["people"] == {"low": 1.0, "median": 1.0, "high": 1.0}
    assert [round(row["count_median"]) for row in facts["by_group"]["sex"]] == [900, 100]
    with (tmp_path / "tables.csv").open(newline="") as file:
        assert [row["table"] for row in csv.DictReader(file)] == [
            row["table"] for row in facts["list"]
        ]
    text = program.done(*asked)
    assert "Tables that meet" in text
    assert "… and" not in text
    assert "people in good cells" in text
    strict = ("suggest", *asked[1:4], "--limit", "0.001", "--tables", "1")
    for verb in (asked, strict, ("show", "plan.json", "--expected", "sex.csv")):
        own = program.done(*verb, "--record-noun", "stays").lower()
        assert "stays in good cells" in own
        assert "people" not in own
    assert "Stays by sex" in program.done(*asked, "--record-noun", "stays")
    assert "… and 3 more: --tables 4 shows all" in program.done(*asked, "--tables", "1")
    assert "1,000 records, and 1 public table: sex.csv" in text
    survey = ("--design-effect", "1.8", "--design-effect", "job,sex=2.1")
    facts = program.json(*asked, *survey, "--sampling-fraction", "1%")
    assert facts["survey"] == {
        "design_effect": 1.8,
        "of_tables": [[["sex", "job"], 2.1]],
        "sampling_fraction": 0.01,
    }
    assert facts["noise_adds"]["median"] > 0
    weights = program.json(*asked, "--weight-cv", "0.5")
    assert weights["survey"]["design_effect"] == 1.25
    refused = program.refused(*asked, "--design-effect", "2", "--weight-cv", "0.5")
    assert "one design effect for all tables" in refused
    assert "from 0 to 1" in program.refused(*asked, "--sampling-fraction", "150%")
    assert "needs the number of records" in program.refused("forecast", "plan.json")


def test_suggestions_are_printed_and_one_is_applied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
    ]
    (tmp_path / "codebook.json").write_text(json.dumps({"fields": fields}))
    program = Program(tmp_path)
    program.done("plan", "codebook.json", "--up-to", "2", "--rho", "0.005", "--out", "plan.json")
    asked = ("suggest", "plan.json", "--expected-count", "20000", "--table", "age,sex")
    facts = program.json(*asked)
    (table,) = facts["tables"]
    first = table["proposals"][0]
    assert table["table"] == ["age", "sex"]
    assert (first["number"], first["action"]) == (1, "bands")
    assert first["people_median"] - table["people"]["median"] == pytest.approx(first["gained"])
    assert table["proposals"][-1]["people_median"] is None
    text = program.done(*asked)
    assert f"1  {first['proposal']}" in text
    saved = program.json(*asked, "--apply", "1", "--out", "new.json")["plan"]
    shown = program.json("show", "new.json")
    assert saved["sha256"] == shown["sha256"]
    assert rp.Plan.load("new.json").budget == rp.Plan.load("plan.json").budget
    assert first["table"].split(" × ")[-1] in program.done("show", "new.json")
    together = ("suggest", "plan.json", "--expected-count", "5000", "--together")
    (change, *_) = program.json(*together, "--apply", "1", "--out", "all.json")["together"]
    assert f"1  {change['proposal']}" in program.done(*together)
    assert change["meeting"]["median"] == change["tables"]
    assert "age@bands of" in program.done("show", "all.json")
    assert "leave --table" in program.refused(*together, "--table", "age,sex")
    unnamed = ("suggest", "plan.json", "--expected-count", "20000", "--apply", "1")
    assert "--table age,sex" in program.refused(*unnamed, "--out", "other.json")
    assert "exists already" in program.refused(*asked, "--apply", "1", "--out", "new.json")
    assert "no proposal 99 for" in program.refused(*asked, "--apply", "99", "--out", "other.json")
    assert not (tmp_path / "other.json").exists()


@pytest.mark.nightly
def test_a_release_shows_what_came_out_beside_the_forecast(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text("attribute,value\nsex,f\nsex,m\njob,a\njob,b\njob,c\n")
    (tmp_path / "records.csv").write_text("sex,job\n" + "f,a\n" * 700 + "m,b\n" * 200 + "m,c\n" * 9)
    program = Program(tmp_path)
    program.done("plan", "codebook.csv", "--up-to", "2", "--rho", "0.01", "--out", "plan.json")
    asked = ("forecast", "plan.json", "--expected-count", "909", "--out", "kept.json")
    assert "The plan with this forecast is in kept.json" in program.done(*asked)
    assert "already" in program.refused(*asked)
    shown = program.json("show", "kept.json")
    assert shown["forecast"]["n_records"] == 909
    assert "people in good cells: forecast" in program.done("show", "kept.json")
    program.done("release", "kept.json", "records.csv", "--out", "out")
    facts = program.json("show", "out")
    row = facts["outcome"]["by_order"][-1]
    assert row["people_outcome_low"] <= row["people_outcome"] <= row["people_outcome_high"]
    assert facts["outcome"]["tables_read"] == 4
    text = program.done("show", "out")
    assert "people in good cells: outcome" in text
    assert "estimated from the released noisy counts" in text
    program.done("report", "out", "--out", "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "Forecast and outcome" in report
    assert "The forecast rests on 909 records" in report


def test_changes_of_tables_in_areas_are_suggested_and_applied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_areas, "_GRAINS", ((48, 400),))  # of six alone no change is noticed
    (tmp_path / "areas.csv").write_text("county,town\nA,1\nA,2\nB,3\n")
    (tmp_path / "codebook.csv").write_text("attribute,value\nsex,f\nsex,m\nage,y\nage,o\n")
    program = Program(tmp_path)
    asked = ("--areas", "areas.csv", "--table", "town,sex,age", "--rho", "0.0003")
    program.done("plan", "codebook.csv", *asked, "--out", "plan.json")
    suggest = ("suggest", "plan.json", "--expected-count", "900", "--table", "town,sex,age")
    (table,) = program.json(*suggest)["tables"]
    assert table["table"] == ["town", "sex", "age"]
    actions = {row["action"]: row["number"] for row in table["proposals"]}
    number = actions["areas"]
    assert f"{number}  On the level county instead, and not on town" in program.done(*suggest)
    program.done(*suggest, "--apply", str(number), "--out", "new.json")
    assert program.json("verify", "new.json")["holds"]
    (part,) = rp.Plan.load("new.json").parts
    assert part.accuracy()["level"].tolist() == ["county"]
    refused = program.refused("suggest", "plan.json", "--expected-count", "9", "--table", "sex")
    assert "names no level of areas" in refused
    together = ("suggest", "plan.json", "--expected-count", "5000", "--together")
    assert "not there for tables in areas" in program.refused(*together)
