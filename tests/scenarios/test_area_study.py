"""What is asked for areas: presets, and the grids that change them."""

import json
import runpy
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.analysis.area_suggestions import changed_areas
from rpexplore.analysis.workload_grid import describe_grid, level_grid, study_from_grid
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.reports.again import areas_again
from rpexplore.reports.script import python_script
from rpexplore.scenarios.area_study import (
    MOST_TABLES,
    MOST_TOTALS,
    PRESETS,
    AreaStudy,
    study_from_json,
    study_to_json,
    usual_tables,
)
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_changes import TableChange

TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
SIZES = {"race": 7, "hispanic": 2, "voting_age": 2}


def study(sizes=SIZES):
    book = rp.AreaCodebook("home", TREE, rp.Domain.from_sizes(sizes))
    return AreaStudy.of("areas.json", book)


def test_presets_ask_for_what_they_say():
    asked = {name: {k: len(v) for k, v in study().with_preset(name).tables.items()} for name in
             list(PRESETS)[:4]}  # fmt: skip
    assert list(asked.values()) == [
        {"all": 8, "region": 8, "town": 8},
        {"all": 8, "region": 7, "town": 4},
        {"all": 1, "region": 1, "town": 1},
        {"all": 5, "region": 5, "town": 5},
    ]
    with pytest.raises(WorkloadError, match="No attribute of the codebook looks like"):
        study({"sex": 2}).with_preset("Redistricting data with group quarters")


def test_there_are_never_too_many_tables_to_choose_from():
    domain = rp.Domain.from_sizes({f"a{number}": 2 for number in range(30)})
    assert len(usual_tables(domain)) == 31  # with pairs it would be 466
    assert len(usual_tables(domain, order=30)) <= MOST_TABLES


def test_what_is_typed_into_the_grid_is_what_is_asked_for():
    begun = study()
    changed, refused = study_from_grid(
        begun,
        "weight",
        {0: {"level 0": "2,5", "level 2": None}, 7: {"level 1": "x", "level 2": "0"}},
    )
    (reason,) = refused
    assert reason.startswith("The weight of race × hispanic × voting_age on the level region")
    assert "got x;" in reason
    grid = level_grid(changed, "weight")
    assert grid["table"].tolist()[:2] == ["(total)", "race"]
    assert grid["cells"].tolist()[-1] == 28
    assert grid.loc[0, ["level 0", "level 1", "level 2"]].tolist() == ["2.5", "1", ""]
    assert changed.tables["town"].tables == begun.tables["town"].tables[1:-1]
    assert describe_grid(changed) == (
        "8 tables on all, 8 tables on region and 6 tables on town: 42 tables in all areas together."
    )
    # The values are absolute: typed again they change nothing, and the plan stays.
    assert study_from_grid(changed, "weight", {0: {"level 0": "2.5"}})[0] is changed

    aimed, refused = study_from_grid(
        changed, "target", {0: {"level 0": "3", "level 2": "4"}, 1: {"level 0": "5"}}
    )
    assert "is not asked for on the level town" in refused[0]
    assert aimed.tables["all"].targets.tolist()[:2] == [3, 5]
    kept = aimed.with_weights({("all", ()): 7})
    assert (kept.tables["all"].weights[0], kept.tables["all"].targets[0]) == (7, 3)
    full = aimed.with_target_where_missing(9)
    assert full.tables["all"].targets.tolist()[:3] == [3, 5, 9]


def test_a_level_without_tables_is_left_out_and_one_table_stays():
    begun = study().with_preset("Totals only")
    changed = begun.with_weights({("region", ()): None})
    assert list(changed.tables) == ["all", "town"]
    with pytest.raises(WorkloadError, match="Some table must be asked for"):
        changed.with_weights({("all", ()): 0, ("town", ()): None})


def test_one_table_on_some_levels_joins_the_others_or_stands_alone():
    totals = study().with_preset("Totals only")
    joined = totals.with_table(["town"], ["voting_age", "race"])
    assert {level: tables.tables for level, tables in joined.tables.items()} == {
        "all": [()], "region": [()], "town": [(), ("race", "voting_age")],
    }  # fmt: skip
    alone = totals.with_table(["town"], ["race"], alone=True)
    assert {level: tables.tables for level, tables in alone.tables.items()} == {
        "town": [("race",)],
    }  # fmt: skip
    with pytest.raises(WorkloadError, match="Choose the levels"):
        totals.with_table([], ["race"])


def test_tables_at_several_levels_are_made_again_to_the_byte(monkeypatch, tmp_path):
    ages = {
        "name": "age",
        "constraints": {"minimum": 0, "maximum": 5},
        "levels": {"two": "0-1, 2-5"},
    }
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    book = rp.AreaCodebook("home", tree, rp.Domain.from_schema({"fields": [ages]}))
    tables = {
        "region": rp.Workload.of(book.domain, [("age",), ("age@two",)]),
        "town": rp.Workload.of(book.domain, [("age@two",)]),
    }
    study = replace(AreaStudy.of("areas.json", book), tables=tables)
    scenario = Scenario(book.domain, areas=study, asks_for_tables=False)
    plan = scenario.plan()
    assert plan.part("areas").closure.n_kinds > 1
    monkeypatch.setattr(rp.AreaCodebook, "load", lambda path: book)
    (tmp_path / "plan.py").write_text(python_script(plan, scenario))
    script = runpy.run_path(str(tmp_path / "plan.py"))
    assert script["plan"]().text == plan.text
    assert "postprocess release --nonnegative" in areas_again(plan.part("areas"), scenario).after


def test_known_totals_are_kept_as_they_were_given_and_no_longer_ones_than_a_project_holds():
    known = replace(study(), totals="region,total\nN,1\n")
    assert study_from_json(study_to_json(known), lambda _: None) == known
    assert "totals" not in study_to_json(study())
    with pytest.raises(WorkloadError, match="leave out other columns"):
        replace(study(), totals="x" * (MOST_TOTALS + 1))


def test_tables_at_a_new_level_are_found_again_in_a_file():
    tree = rp.AreaTree.from_columns({"county": list("NNSS"), "town": list("1212")})
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    begun = AreaStudy.of("areas.json", AreaCodebook("home", tree, domain))
    bands = Level("bands of 5", tuple(str(age // 5) for age in range(10)))
    table = ("age", "sex")
    change = TableChange("bands", "", table, ("age@bands of 5", "sex"), levels=(("age", bands),))
    after = changed_areas(begun.workload, 2, change, onto=2)
    changed = begun.with_workload(after)
    assert table in changed.tables["county"].tables
    assert ("sex", "age@bands of 5") in changed.tables["town"].tables
    again = study_from_json(json.loads(json.dumps(study_to_json(changed))), lambda _: tree)
    assert again == changed
