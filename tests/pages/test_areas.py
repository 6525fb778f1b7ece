"""The Areas page: a country opened, its tables by level, its plan, what is inaccurate, files."""

import hashlib
import json
import re
import sys
import threading
import time

import numpy as np
import pytest

import rpexplore as rp
from pages.components.shared.background import task_name
from rpexplore.common.installation import sample_data_folder
from rpexplore.domain import area_tree_file
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import minimum_area_budget
from rpexplore.planning.plan import load_plan
from rpexplore.reports.bundle import bundle, contents_of
from rpexplore.reports.report import html
from rpexplore.reports.script import command_lines, python_script
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.examples import sample_records_for
from rpexplore.scenarios.project import Project, content_of
from rpexplore.serving.planning_tasks import solve_areas
from tests.pages.conftest import check_charts, plain
from tests.support.processor_time import PATIENCE

TOWNS = b"town\nN|1\nN|2\nS|1\n"
CODEBOOK = {
    "fields": [
        {
            "name": "home",
            "areas": {
                "path": "towns.csv",
                "sha256": hashlib.sha256(TOWNS).hexdigest(),
                "separator": "|",
                "levels": ["region", "town"],
            },
        },
        {"name": "sex", "constraints": {"enum": ["F", "M"]}},
    ]
}
MARKS = ("**bold**", "$x$", "<b>", "[a](", "`x`")
SQUARE = [[[0, 50], [1, 50], [1, 51], [0, 51], [0, 50]]]


def planned(session) -> AreaPlan:
    """The plan that was made last."""
    deadline = time.monotonic() + PATIENCE
    while session.session_state[task_name(solve_areas, session.scenario.name)][1].is_going:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return session.session_state[task_name(solve_areas, session.scenario.name)][1].result


def finish(session):
    """Wait until both plans that are compared are there."""
    deadline = time.monotonic() + PATIENCE
    while "Outcomes" not in str(session.texts("markdown")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        session.run()


def show(session, view):
    return session.show("areas", view)


def alone(session):
    """The session with areas alone in its plan: without the tables of the sample."""
    session.scenario = session.scenario.replaced(asks_for_tables=False)
    return session.run()


def drop(session, *files):
    session.file_uploader(key="area files").set_value(list(files)).run()
    return session


def give(session, codebook, towns):
    return drop(
        session,
        ("register.json", json.dumps(codebook).encode(), "application/json"),
        ("towns.csv", towns, "text/csv"),
    )


@pytest.fixture
def towns(app):
    session = give(alone(app("areas")), CODEBOOK, TOWNS)
    assert session.metrics()["Areas"] == "6"
    return session


@pytest.mark.nightly
def test_the_sample_country_is_planned_looked_into_and_taken_along(app, tmp_path, monkeypatch):
    session = app("codebook")
    session.text_input(key="survey").set_value("Mine").run()
    session.open("areas").press("Open the sample country")
    # In a project of its own, of the same codebook; that before is kept.
    assert session.project.names == ("Less detail in blocks",)
    assert session.scenario.domain == session.scenario.areas.domain
    assert sample_records_for(planned(session)).name == "country-census.parquet"
    assert "project before is kept" in plain(session.texts("success"))
    assert session.metrics() == {"Areas": "24,939", "Levels": "5", "Other attributes": "3"}
    (levels,) = session.dataframe
    assert levels.value["undivided"].tolist() == [0, 0, 0, 0, 22808]
    for heading in ("Fewest children", "Median children", "Most children"):
        assert f'"{heading}"' in levels.proto.columns
    session.open("codebook")
    assert session.metrics()["Areas"] == "24,939"
    assert session.dataframe[-1].value.equals(levels.value)
    session.open("areas")

    show(session, "Tables").type_in_grid("area weights", 2, "level 4", "")
    session.type_in_grid("area weights", 0, "level 0", "2,5")
    show(session, "Plan")
    plan = planned(session)
    frame = plan.accuracy().set_index(["level", "attributes"])
    assert len(frame) == 33
    assert frame.loc[("all", ()), "weight"] == 2.5
    n_tables = f"{(1 + 12 + 94) * 8 + 2024 * 7 + 22808 * 2:,}"
    assert session.metrics()["Tables in all areas"] == n_tables
    assert plain([plan.proven]) in plain(session.texts("markdown"))
    assert "with the best shares by level" in plain(session.texts("markdown"))

    session.open("plan").open("areas")
    assert session.metrics()["Tables in all areas"] == n_tables
    assert planned(session) is plan  # another page in between changes nothing
    show(session, "By area")
    check_charts(session)
    session.selectbox(key="table of areas").select("sex").run()
    session.selectbox(key="area looked into: part").select("Eastport (R03)").run()
    (chart,) = session.get("plotly_chart")
    assert chart.proto.alt.startswith("Standard error of sex in Eastport (R03) and its parts")
    session.press("all ›")
    assert not session.exception
    show(session, "Map")
    assert "All 2,024 areas of the level municipality have a shape" in plain(
        session.texts("caption")
    )

    alone(session).open("release")
    assert "Export the plan" in session.texts("subheader")
    scenario = session.scenario
    commands = command_lines(plan.alone, scenario)
    assert "\nrpexplore release plan.json " in commands
    assert "rpexplore plan country" not in commands  # left out on one level: no options say that
    folder = sample_data_folder()
    book = "country-census.json"
    lines = python_script(plan.alone, scenario).replace(book, str(folder / book))
    monkeypatch.setattr(sys, "argv", ["plan.py", "--save", str(tmp_path / "plan.json")])
    exec(lines, {"__name__": "__main__"})  # noqa: S102
    again = load_plan(tmp_path / "plan.json")
    assert again.text == plan.alone.text
    assert bundle(plan.alone, scenario)[:2] == b"PK"
    # The report is of the areas' own records, not of those of a scenario's other codebook.
    other = scenario.replaced(domain=rp.Domain.from_sizes({"age": 2}))
    for begun, survey in ((scenario, "Census of Orsavia"), (other, "Country-census")):
        assert re.findall("<h1[^>]*>(.*?)</h1>", html(contents_of(plan.alone, begun))) == [survey]


def test_areas_are_a_part_of_the_scenario(towns, app):
    begun = towns.scenario.areas
    show(towns, "Tables").type_in_grid("area weights", 0, "level 1", "4")
    show(towns, "Plan")
    towns.radio(key="area objective").set_value("max").run()
    changed = towns.scenario.areas
    assert (changed.tables["region"].weights[0], changed.loss) == (4, rp.MaxVariance())
    towns.press("Undo").press("Undo")
    assert towns.scenario.areas is begun
    towns.press("Redo").press("Redo")
    assert towns.scenario.areas is changed


@pytest.mark.nightly
def test_a_duplicate_shares_the_areas_and_both_are_compared(towns, app):
    show(towns, "Plan")
    towns.radio(key="area objective").set_value("max").run()
    changed = towns.scenario.areas
    towns.open("scenarios").press("Duplicate").open("areas")
    assert towns.scenario.areas is changed
    show(towns, "Plan").toggle(key="area uniform").set_value(True).run()
    towns.open("scenarios").show("compared_by", "Areas")
    finish(towns)
    inputs, outcomes = (grid.value.set_index("row") for grid in towns.dataframe[-2:])
    assert inputs.index[inputs["differs"] == "≠"].tolist() == ["Noise"]
    assert float(outcomes.loc["Objective, the less the better", "scenario 0"]) > 0
    show(towns.open("areas"), "Levels").press("Open other areas")
    towns.press("Take register")
    assert towns.scenario.areas is changed
    for _ in range(4):  # taken, left, uniform, duplicated
        towns.press("Undo")
    assert len(towns.project.scenarios) == 1


def test_areas_are_found_again_in_the_file_beside_the_autosave(towns, app):
    begun = towns.scenario.areas
    key = towns.query_params["project"]
    area_tree_file._in_memory.clear()
    again = app("areas", key=key)
    assert again.metrics()["Areas"] == "6"
    assert again.scenario.areas == begun
    assert again.scenario.areas.areas.tree is not begun.areas.tree


@pytest.mark.nightly
def test_lost_areas_are_asked_for(towns, app):
    show(towns, "Plan")
    towns.radio(key="area objective").set_value("max").run()
    changed = towns.scenario.areas
    # Another server finds them again, in the file beside the autosave.
    area_tree_file._in_memory.clear()
    key = towns.query_params["project"]
    again = app("areas", key=key)
    assert again.metrics()["Areas"] == "6"
    assert again.scenario.areas == changed
    assert again.scenario.areas.areas.tree is not changed.areas.tree
    again.press("Open other areas")
    assert again.scenario.areas is None
    again.press("Undo")
    assert again.metrics()["Areas"] == "6"

    # Without that file they are asked for; the same ones keep their tables, others do not.
    (tree,) = Autosaves.of_user().folder.glob("*.parquet")
    tree.unlink()
    area_tree_file._in_memory.clear()
    lost = app("areas", key=key)
    assert "6 areas is not on this computer; give it again" in plain(lost.texts("error"))
    saved = content_of(Project((lost.scenario.replaced(areas=changed),)))
    lost.open("scenarios")
    lost.file_uploader(key="project file").upload("project.zip", saved).run()
    assert lost.open("areas").metrics()["Areas"] == "6"  # the same project, with its areas
    tree.unlink()
    area_tree_file._in_memory.clear()
    lost = app("areas", key=key)
    assert not lost.metrics()
    give(lost, CODEBOOK, TOWNS)
    assert lost.metrics()["Areas"] == "6"
    assert lost.scenario.areas == changed
    others = TOWNS + b"S|2\n"
    field = CODEBOOK["fields"][0]
    areas = field["areas"] | {"sha256": hashlib.sha256(others).hexdigest()}
    area_tree_file._in_memory.clear()
    tree.unlink()
    lost = app("areas", key=key)
    give(lost, {"fields": [field | {"areas": areas}, CODEBOOK["fields"][1]]}, others)
    assert "are not those that this scenario had" in plain(lost.texts("warning"))
    assert lost.scenario.areas.n_tables == 7 * 2


@pytest.mark.nightly
def test_targets_are_asked_for_where_the_objective_needs_them(towns):
    show(towns, "Plan")
    towns.radio(key="area objective").set_value("max relative to target").run()
    assert "such as (total) on the level all" in plain(towns.texts("markdown"))
    assert not towns.texts("error")
    towns.text_input(key="area target for all").input("3")
    towns.press("Set")
    plan = planned(towns)
    assert plan.loss == rp.MaxVariance(relative_to="target")
    assert plan.accuracy()["target"].tolist() == [3.0] * 6
    # At ρ = 0.1 the targets are missed; the smallest budget that meets them is that of the library.
    assert "Targets are missed" in plain(towns.texts("markdown"))
    towns.press("Make that the budget")
    met = planned(towns)
    assert 0.99 < met.loss_value <= 1
    least = minimum_area_budget(plan.workload)
    assert float(met.rho) == pytest.approx(float(least.rho), rel=3e-3)
    assert "All targets are met" in plain(towns.texts("markdown"))
    towns.radio(key="area objective").set_value("required").run()
    assert "such as 20 required" in plain(towns.texts("info"))
    show(towns, "Tables").type_in_grid("area targets", 0, "level 2", "12 required")
    show(towns, "Plan")
    within = planned(towns)
    assert within.loss == rp.SumWithinTargets()
    assert within.accuracy().query("required")["largest_standard_error"].max() <= 12
    assert "All of the 3 required targets" in plain(towns.texts("markdown"))
    assert "not made to meet required targets" in plain(towns.texts("caption"))
    # 2 in a cell of a town is out of reach; the button takes the budget at which it is not.
    show(towns, "Tables").type_in_grid("area targets", 0, "level 2", "2 required")
    show(towns, "Plan")
    needed = planned(towns).needed
    before = towns.scenario.budget
    assert "cannot all be met at this budget" in plain(towns.texts("error"))
    assert "That is 10 % more than they need" in plain(towns.texts("markdown"))
    towns.button(key="use the budget of required targets").click().run()
    assert float(towns.scenario.budget.rho / before.rho) == pytest.approx(1.1 * needed, rel=1e-4)
    assert planned(towns).accuracy().query("required")["largest_standard_error"].max() <= 2
    assert not towns.texts("error")
    towns.radio(key="area objective").set_value("sum").run()
    towns.toggle(key="area uniform").set_value(True).run()
    assert planned(towns).uniform


def test_shapes_become_a_map(towns):
    show(towns, "Map")
    planned(towns)
    shapes = {
        "features": [
            {"id": code, "geometry": {"type": "Polygon", "coordinates": SQUARE}} for code in "NSX"
        ]
    }
    box = "area map file"
    towns.file_uploader(key=box).upload("map.geojson", json.dumps(shapes).encode()).run()
    assert "2 of 3 shapes are areas of the level region" in plain(towns.texts("caption"))
    check_charts(towns)
    towns.file_uploader(key=box).upload("bad.geojson", b"{}").run()
    assert "must hold a list" in plain(towns.texts("error"))


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"towns.csv": TOWNS}, "Drop one JSON codebook and the file of areas that it names"),
        ({"a.json": b"{}", "b.json": b"{}"}, "got 2 JSON files among 2 files"),
        ({"a.json": b"no", "towns.csv": TOWNS}, "a.json"),
        (
            {"a.json": json.dumps(CODEBOOK).encode(), "other.csv": TOWNS},
            "file of areas 'towns.csv' is missing",
        ),
    ],
)
def test_files_that_are_no_areas_give_one_clear_error(app, files, error):
    session = drop(alone(app("areas")), *((name, text, None) for name, text in files.items()))
    (text,) = session.texts("error")
    assert error in plain([text])
    assert session.session_state["project"].current.areas is None


def test_names_full_of_formatting_stay_text(app):
    rows = [f"{name},{number}" for name in ("**bold** $x$", "<b>[a](b)") for number in (1, 2)]
    text = "\n".join(["`x` :red[y],town", *rows, ""]).encode()
    field = {"path": "towns.csv", "sha256": hashlib.sha256(text).hexdigest()}
    fields = [{"name": "**bold** home", "areas": field}, CODEBOOK["fields"][1]]
    session = drop(
        alone(app("areas")),
        ("<b>a.json", json.dumps({"fields": fields}).encode(), None),
        ("towns.csv", text, None),
    )
    for view in ("Levels", "Tables", "Plan", "By area"):
        show(session, view)
        if view == "Plan":
            planned(session)
        if view == "By area":
            session.selectbox(key="level of areas").select("`x` :red[y]").run()
            session.selectbox(key="area looked into: part").select("<b>[a](b)").run()
        assert not session.exception
        for kind in ("markdown", "caption", "error", "metric"):
            for shown in map(str, session.texts(kind)):
                assert not [
                    mark for mark in ("**bold**", "$x$", "<b>", "[a](", "`x`") if mark in shown
                ]
    (chart,) = session.get("plotly_chart")
    assert "<b>" not in chart.proto.spec


@pytest.mark.nightly
def test_a_long_plan_is_cancelled(towns, monkeypatch):
    ended = threading.Event()

    def endless(*_, on_progress, **__):
        while not ended.wait(0.01):
            on_progress("Searching", 0.5)

    monkeypatch.setattr("rpexplore.serving.planning_tasks.plan_areas", endless)
    monkeypatch.setattr("pages.components.shared.background.PATIENCE", 0.05)
    show(towns, "Plan").toggle(key="area uniform").set_value(True).run()
    towns.press("Cancel")
    planned(towns)
    assert "Cancelled." in plain(towns.run().texts("error"))
    monkeypatch.undo()
    towns.press("Try again")
    assert np.isfinite(planned(towns).loss_value)
    ended.set()
