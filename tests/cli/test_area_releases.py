"""The command line: sums over lists of areas, and whole counts of a release of areas."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.ranges import Range
from rpexplore.common.text import describe_share
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases.area_release import AreaRelease
from rpexplore.results.estimates.area_counts import AreaCounts

LISTS = {"north and S1": [("N",), ("S", "1")], "ones": [("N", "1"), ("S", "1")], "all": [()]}
BY_LEVEL = "list,state,town\nnorth and S1,N,\nnorth and S1,S,1\nones,N,1\nones,S,1\nall,all,\n"


@pytest.fixture
def released(run):
    rows = [f"{state},{town},{sex}" for state in "NS" for town in "12" for sex in "FFM"]
    Path("people.csv").write_text("\n".join(["state,town,sex", *rows]) + "\n", "utf-8")
    tree = rp.AreaTree.from_columns({"state": list("NNSS"), "town": list("1212")})
    tables = rp.Workload.of(rp.Domain.load("codebook.csv"), [("sex",), ()])
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    plan.save("plan.json")
    rp.release(plan, "people.csv", "out")
    Path("lists.csv").write_text(BY_LEVEL, "utf-8")
    return run


def test_accuracy_of_sums_is_shown_before_the_release(released):
    plan = AreaPlan.load("plan.json")
    expected = plan.accuracy_of_sums(
        {name: map(plan.workload.tree.find, areas) for name, areas in LISTS.items()}
    )
    shown = released.json("show", "plan.json", "--areas", "lists.csv")["sums"]
    assert [row["standard_error"] for row in shown] == expected["standard_error"].tolist()
    assert [row["list"] for row in shown] == expected["list"].tolist()
    text = released.done(
        "show", "plan.json", "--areas", "lists.csv", "--tables", "1", "--csv", "sums.csv"
    )
    assert text.splitlines()[2].startswith(expected["list"][0])
    assert "and 5 more: --tables 6" in text
    assert pd.read_csv("sums.csv")["standard_error"].tolist() == pytest.approx(
        expected["standard_error"].tolist()
    )
    released.done("plan", "codebook.csv", "--up-to", "1", "--rho", "1", "--out", "other.json")
    refused = released.refused("show", "other.json", "--areas", "lists.csv")
    assert "--areas goes with a plan for areas" in refused


def test_sums_over_areas_are_answered_from_the_release(released):
    cells = {
        level: AreaRelease.load("out").table(level, "sex")["value"].to_numpy().reshape(-1, 2)
        for level in ("all", "state", "town")
    }  # towns: N 1, N 2, S 1, S 2
    expected = {
        "north and S1": cells["state"][0] + cells["town"][2],
        "ones": cells["town"][0] + cells["town"][2],
        "all": cells["all"][0],
    }
    sums = released.json("answer", "out", "sex", "--areas", "lists.csv", "--csv", "sums.csv")[
        "sums"
    ]
    assert [row["list"] for row in sums] == [name for name in LISTS for _ in "FM"]
    assert [row["sex"] for row in sums] == ["F", "M"] * 3
    for name, values in expected.items():
        own = [row["value"] for row in sums if row["list"] == name]
        np.testing.assert_allclose(own, values, atol=1e-9)
    assert len(pd.read_csv("sums.csv")) == 6
    text = released.done("answer", "out", "--areas", "lists.csv")
    assert len(text.splitlines()) == 2 + 3
    # One code an area: N and S are codes of one area each, 1 of two.
    Path("codes.csv").write_text("list,code\nboth,N\nboth,S\n", "utf-8")
    both = released.json("answer", "out", "sex", "--areas", "codes.csv")["sums"]
    np.testing.assert_allclose([row["value"] for row in both], cells["all"][0], atol=1e-9)
    # One area by its own code or its codes from the top: a table of it, or a query about it.
    one = released.json("answer", "out", "sex", "--area", "N > 2")["sums"]
    assert [row["list"] for row in one] == ["N > 2"] * 2
    np.testing.assert_allclose([row["value"] for row in one], cells["town"][1], atol=1e-9)
    men = released.json("answer", "out", "sex=M", "--area", "N > 2")
    assert men["value"] == pytest.approx(one[1]["value"])
    assert men["standard_error"] == pytest.approx(one[1]["standard_error"])
    assert "N" in released.done("answer", "out", "--area", "N")


def test_a_query_is_answered_for_every_area_of_a_level(released):
    of_towns = AreaRelease.load("out").table("town", "sex")
    men = of_towns[of_towns["sex"] == "M"]
    answers = released.json("answer", "out", "sex=M", "--level", "town")["answers"]
    for name in ("value", "standard_error", "lower_95", "upper_95"):
        assert [row[name] for row in answers] == pytest.approx(men[name].tolist())
    # Everybody: the cells of a town add up, and so does nothing of their errors.
    totals = released.json(
        "answer", "out", "--level", "town", "--within", "N", "--csv", "towns.csv"
    )["answers"]
    expected = AreaRelease.load("out").table("town", within="N")
    assert [row["standard_error"] for row in totals] == pytest.approx(
        expected["standard_error"].tolist()
    )
    assert pd.read_csv("towns.csv")["value"].tolist() == pytest.approx(expected["value"].tolist())
    to_file = ("--level", "town", "--within", "N", "--csv", "towns.csv", "--force")
    assert "All 2 rows are in towns.csv." in released.done("answer", "out", *to_file)
    text = released.done("answer", "out", "--level", "state")
    assert len(text.splitlines()) == 2 + 2
    assert "no level 'block'" in released.refused("answer", "out", "--level", "block")
    assert "has no areas on the level 'state'" in released.refused(
        "answer", "out", "--level", "state", "--within", "N > 2"
    )
    assert "--within goes with --level" in released.refused("answer", "out", "--within", "N")


def test_areas_are_exported_and_written_to_a_workbook_like_tables(released):
    said = released.json("publish", "out", "--out", "export", "--format", "csvw")
    assert "tables/2_town_0001_sex.csv" in said["files"]
    rows = pd.read_csv("export/tables/2_town_0001_sex.csv")
    of_towns = AreaRelease.load("out").table("town", "sex")
    assert rows["value"].tolist() == pytest.approx(of_towns["value"].tolist(), abs=1e-5)
    sheets = released.json("workbook", "out", "--out", "areas.xlsx")["sheets"]
    assert [sheet.split(" ", 1)[1] for sheet in sheets] == [
        f"{level}_ {table}" for level in ("all", "state", "town") for table in ("total", "sex")
    ]
    cells = pd.read_excel("areas.xlsx", sheets[-1])
    assert cells["value"].tolist() == pytest.approx(of_towns["value"].tolist())
    assert set(cells["publishable"]) <= {"yes", "no"}


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("list,code\na,N\na,1\n", (), "Line 3 of bad.csv has the code '1', but 2 areas have it"),
        ("list,code\na,X\n", (), "Line 2 of bad.csv has the code 'X', but no area has it"),
        ("list,state,town\na,N,\na,,1\n", (), "Line 3 of bad.csv has no code on the level state"),
        ("list,state,town\na,N,9\n", (), "Line 2 of bad.csv: There is no area '9' in N"),
        ("list,state\n,N\n", (), "Line 2 of bad.csv has no list"),
        ("list,county\na,N\n", (), "need the column list, and the columns state, town"),
        ("list,state\na,N\na,N\n", (), "twice; leave one of them out"),
        ("list,state\na,N\n", ("sex=F",), "'sex=F' must be an attribute of the plan"),
    ],
)
def test_lists_that_do_not_fit_are_refused(released, content, more, message):
    Path("bad.csv").write_text(content, "utf-8")
    assert message in released.refused("answer", "out", *more, "--areas", "bad.csv")


def test_whole_counts_of_areas_are_made_with_known_totals(released):
    Path("totals.csv").write_text("state,total\nall,12\nN,7\nS,5\n", "utf-8")
    both = ("--nonnegative", "--round")
    facts = released.json(
        "postprocess", "out", *both, "--known-totals", "totals.csv", "--out", "whole"
    )
    assert facts["known_totals"] == 3
    assert facts["table_count"] == 6
    counts = AreaCounts.load("whole")
    assert counts.table("state")["value"].tolist() == [7, 5]
    assert counts.table("state", "sex")["value"].to_numpy().reshape(2, 2).sum(1).tolist() == [7, 5]
    text = released.done("postprocess", "out", *both, "--out", "free")
    assert "biased" in text
    assert "not protected" not in text
    refused = released.refused("answer", "whole", "sex", "--areas", "lists.csv")
    assert "biased and have no exact errors; name the release" in refused
    common = ("postprocess", "out", "--out", "more")
    assert "give --best-guesses, or --nonnegative --round" in released.refused(*common, "--round")
    assert "--smooth does not go with" in released.refused(*common, "--smooth")
    for content, message in (
        ("state,total\nall,1.5\n", "Line 2 of bad.csv has the total '1.5'"),
        ("state,total\nN,1\nN,1\n", "Line 3 of bad.csv has a total of the area N once more"),
    ):
        Path("bad.csv").write_text(content, "utf-8")
        assert message in released.refused(*common, *both, "--known-totals", "bad.csv")
    released.done("plan", "codebook.csv", "--up-to", "1", "--rho", "1", "--out", "other.json")
    released.done("release", "other.json", "records.csv", "--out", "tables")
    other = ("postprocess", "tables", *both, "--known-totals", "totals.csv", "--out", "more")
    refused = released.refused(*other)
    assert "The column 'state' is no attribute of the tables" in refused
    assert "totals of areas go with --in-areas or --best-guesses" in refused
    assert "more" not in released.files()


@pytest.mark.nightly
def test_best_guesses_and_records_of_areas_are_made(released):
    facts = released.json("postprocess", "out", "--best-guesses", "--out", "guesses")
    elsewhere = ("postprocess", "out", "--out", "more", "--database", "CLUSTER")
    assert "--database NAME goes with --best-guesses" in released.refused(*elsewhere)
    refused = released.refused(*elsewhere, "--best-guesses")
    assert "There is no connection 'CLUSTER'" in refused
    assert facts["table_count"] == 6
    guesses = AreaCounts.load("guesses")
    assert "model_error" in guesses.table("state", "sex")
    for source in ("guesses", "out"):
        made = released.json("synthesize", source, "--out", f"{source} records")
        assert made["rows"] == guesses.table("state")["value"].sum()
    rows = ("synthesize", "guesses", "--rows", "5", "--out", "more")
    assert "--rows does not go with records of areas" in released.refused(*rows)
    released.done("postprocess", "out", "--nonnegative", "--round", "--out", "whole")
    refused = released.refused("synthesize", "whole", "--out", "more")
    assert "run `rpexplore postprocess RELEASE --best-guesses` first" in refused
    assert "more" not in released.files()


def test_areas_that_are_stated_to_be_empty_are_0_everywhere(run):
    Path("areas.csv").write_text("state,town,empty\nN,1,\nN,2,yes\nS,1,no\nS,2,\n", "utf-8")
    Path("people.csv").write_text("state,town,sex\nN,1,F\nS,1,M\nS,2,F\n", "utf-8")
    says = "1 area (1 on town) is stated to be empty"
    written = run.done("schema", "codebook.csv", "--areas", "areas.csv", "--out", "c.json")
    assert says in written
    assert "The areas are not in c.json; name their file to plan, by --areas." in written
    run.done(
        "plan", "codebook.csv", "--areas", "areas.csv", "--table", "town,sex", "--table", "town",
        "--rho", "1", "--out", "plan.json",
    )  # fmt: skip
    assert says in run.done("show", "plan.json")
    run.done("release", "plan.json", "people.csv", "--out", "out")
    on_level = run.json("answer", "out", "--level", "town", "--csv", "towns.csv")["answers"]
    assert [row["value"] == row["standard_error"] == 0 for row in on_level] == [
        False, False, False, True,
    ]  # fmt: skip
    refused = run.refused("answer", "out", "--area", "N > 2")
    assert "stated to be empty: " in refused
    Path("totals.csv").write_text("state,town,total\nall,,3\nN,,1\nS,,2\nN,2,0\n", "utf-8")
    both = ("--nonnegative", "--round", "--known-totals", "totals.csv")
    assert run.json("postprocess", "out", *both, "--out", "whole")["known_totals"] == 3
    Path("people.csv").write_text("state,town,sex\nN,2,F\n", "utf-8")
    refusal = run("release", "plan.json", "people.csv", "--out", "more")
    assert refusal.exit_code == 2
    assert "or that of an area stated to be empty" in refusal.stderr
    assert "Nothing was charged" in refusal.stderr


def test_codebooks_beside_areas_are_read_like_all_others(run):
    Path("areas.csv").write_text("state,town\nN,1\nS,1\n", "utf-8")
    Path("people.csv").write_text("state,town,sex,job\nN,1,F,a\nS,1,M,b\n", "utf-8")
    Path("fields.json").write_text('{"fields": [{"name": "job"}, {"name": "sex"}]}', "utf-8")
    values = ("--public-values", "job=people.csv", "--public-values", "sex=people.csv")
    run.done("schema", "fields.json", *values, "--areas", "areas.csv", "--out", "full.json")
    assert [one.labels() for one in rp.Domain.load("full.json")] == [["a", "b"], ["F", "M"]]
    Path("german.csv").write_bytes("Merkmal;Code\nGröße;F\nGröße;M\n".encode("cp1252"))
    options = ("--map", "attribute=Merkmal,code=Code", "--encoding", "windows-1252")
    run.done("schema", "german.csv", *options, "--areas", "areas.csv", "--out", "g.json")
    assert rp.Domain.load("g.json").names == ("Größe",)


def test_a_plan_for_areas_has_a_report(released):
    counts = ("--expected-count", "90")
    made = released.json("show", "plan.json", *counts)["forecast_in_areas"]
    said = released.done("report", "plan.json", "--out", "areas.html", *counts)
    assert "Written to areas.html" in said
    headline = Range(**made["people"]).text(describe_share)
    assert f"Forecast: {headline} of people in good cells" in Path("areas.html").read_text("utf-8")
    assert f"People in good cells  {headline}" in released.done("show", "plan.json", *counts)
    assert "Beside shares of the budget by level" in Path("areas.html").read_text("utf-8")
    Path("known.csv").write_text("state,total\nN,10000\nS,2\n", "utf-8")
    guesses = released.json("show", "plan.json", *counts)["best_guesses_in_areas"]
    assert all(row["alike"] <= row["differing"] <= row["unbiased"] * 1.0001 for row in guesses)
    assert "Best guesses for areas" in released.done("show", "plan.json", *counts)
    known = released.json("show", "plan.json", "--expected-areas", "known.csv")
    known = known["forecast_in_areas"]
    assert known["rests_on"].startswith("10,002 records")
    assert known["rests_on"].endswith("2 known totals of areas")
    # The people of S cannot be in good cells, and those of N are in some.
    assert known["by_level"]["state"]["people"]["low"] > 0.9
    assert known["by_level"]["state"]["meeting"]["high"] <= made["by_level"]["state"]["tables"] / 2
    made = released.json("forecast", "plan.json", "--expected-areas", "known.csv")
    assert made["forecast_in_areas"] == known
    assert [row["level"] for row in made["best_guesses_in_areas"]] == ["all", "state", "town"]
    assert "Best guesses for areas" in released.done("forecast", "plan.json", *counts)
    assert "--expected-areas" not in released.done("forecast", "plan.json", *counts)
    refused = released.refused("forecast", "plan.json", *counts, "--by-group", "sex")
    assert "--by-group, --csv and --out are about tables" in refused
    refused = released.refused("report", "plan.json", "--out", "r.html", "--simulate")
    assert "--simulate is for smooth tables" in refused


def test_what_is_not_for_areas_says_what_is(released):
    for words, remedy in (
        (("answer", "out", "sex=F", "town=1"), "give --area 1 for one area"),
        (
            ("answer", "out", "--area", "N", "--areas", "lists.csv"),
            "--level LEVEL for all of a level",
        ),
        (("answer", "out", "sex=F", "--area", "1"), "2 areas have it"),
        (("simulate", "plan.json"), "give a plan that has some"),
    ):
        assert remedy in released.refused(*words)
    assert "equal shares" in released.done("compare", "plan.json")
    refusal = released.refused("answer", "out", "sex=F")
    assert "--level LEVEL for all of a level" in refusal
    assert "`rpexplore answer`" not in refusal  # which was asked
