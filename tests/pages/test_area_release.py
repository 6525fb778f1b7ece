"""Areas in the app from the run on records to tables, area by area."""

import hashlib
import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.text import rounded
from rpexplore.figures.areas import QUANTITIES
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.estimates.area_counts import AreaCounts
from rpexplore.results.synthetic.area_records import AreaRecords
from tests.pages.conftest import finish, made, open_dialog, plain, set_up
from tests.pages.test_areas import CODEBOOK, SQUARE, TOWNS, alone, drop, planned, show
from tests.pages.test_whole_plan_sections import ALONE

PEOPLE = [("N|1", "F")] * 40 + [("N|2", "M")] * 30 + [("S|1", "F")] * 20


def released(app, tmp_path):
    """A session that has released tables of three towns in two regions, and the folder."""
    records, output = tmp_path / "people.csv", tmp_path / "towns"
    records.write_text("".join(f"{','.join(row)}\n" for row in [("town", "sex"), *PEOPLE]))
    session = drop(
        alone(app("areas")),
        ("register.json", json.dumps(CODEBOOK).encode(), "application/json"),
        ("towns.csv", TOWNS, "text/csv"),
    )
    show(session, "Plan")
    plan = planned(session)
    session.text_input(key="expected records of areas").set_value("90").run()
    made_of_areas = rp.AreaForecast(plan, expected=90)
    assert made_of_areas.describe() in plain(session.texts("markdown"))
    assert planned(session) is plan  # which does not depend on it
    assert session.scenario.areas.expected == rp.ExpectedCounts.of_total(90)
    session.text_input(key="expected records of areas").set_value("x").run()
    assert "The number of records" in plain(session.texts("error"))
    assert session.text_input(key="expected records of areas").value == "90"
    session.open("release")
    set_up(session, records, output)
    return session, records, output


@pytest.mark.nightly
def test_empty_areas_are_said_where_areas_are_opened_and_looked_at(app, tmp_path):
    towns = TOWNS.replace(b"\n", b",\n").replace(b"town,", b"town,empty") + b"N|3,yes\n"
    areas = {**CODEBOOK["fields"][0]["areas"], "sha256": hashlib.sha256(towns).hexdigest()}
    codebook = {"fields": [{"name": "home", "areas": areas}, CODEBOOK["fields"][1]]}
    session = drop(
        alone(app("areas")),
        ("register.json", json.dumps(codebook).encode(), "application/json"),
        ("towns.csv", towns, "text/csv"),
    )
    assert session.metrics()["Areas"] == "6"
    assert "1 area (1 on town) is stated to be empty" in plain(session.texts("markdown"))
    show(session, "Plan")
    planned(session)
    records, output = tmp_path / "people.csv", tmp_path / "towns"
    records.write_text("".join(f"{','.join(row)}\n" for row in [("town", "sex"), *PEOPLE]))
    session.open("release")
    open_dialog(set_up(session, records, output).press("Dry run"))
    finish(session.press("Spend"))
    session.open("results")
    session.selectbox(key="areas shown within 0").select("3 areas of the level town, side by side")
    session.run()
    assert not session.exception
    assert "1 area of the level stated to be empty" in plain(session.texts("caption"))
    done = Release.load(output).part("areas")
    assert done.table("town")["value"].tolist()[3:] == [0]


def shown_side_by_side(app, tmp_path):
    """A session that has checked and run a release and shows its towns in the north; its folder."""
    session, records, output = released(app, tmp_path)
    plan = planned(session)
    assert "The plan: 12 noisy tables of 6 areas, ρ = " in plain(session.texts("markdown"))
    assert not [box for box in session.checkbox if box.label == "Parquet files only"]
    session.press("Dry run")
    assert any("All is in order" in text for text in session.texts("success"))
    assert not output.exists()
    facts = plain(open_dialog(session).texts("markdown"))
    assert "**Release:** 12 noisy tables of 6 areas, into " in facts
    assert "**Targets:** none set" in facts
    finish(session.press("Spend"))
    assert not session.exception
    assert plain(session.texts("success")).startswith(
        "Finished: 12 noisy tables in areas. This run was"
    )
    released_parts = Release.load(output)
    assert released_parts.plan.sha256 == plan.alone.sha256
    done = released_parts.part("areas")
    total = done.table("town")
    # Farther out with probability 1e-11.
    away = np.abs(total["value"] - [40, 30, 20]) / total["standard_error"]
    assert away.max() < 6.8
    (entry,) = Ledger.beside(records).account(records).entries
    assert (entry.state, entry.record_rho) == ("finished", plan.alone.record_rho)
    # The same tables, walked down to one area, and side by side.
    session.open("results")
    assert not session.exception
    one = done.table("region", "sex", within="N")
    session.selectbox(key=f"area of {output}: part").select("N").run()
    session.radio(key="results view").set_value("List").run()
    assert session.dataframe[0].value["value"].tolist() == one["value"].tolist()
    session.selectbox(key="areas shown within 1").select("2 areas of the level town, side by side")
    session.run()
    towns = done.table("town", "sex", within="N")
    assert session.dataframe[0].value["upper_95"].tolist() == towns["upper_95"].tolist()
    assert session.dataframe[0].value["town"].tolist() == ["N|1", "N|1", "N|2", "N|2"]
    return session, output, done


def test_areas_of_a_plan_are_released_and_read(app, tmp_path):
    scenario = ALONE[1]
    records, output = tmp_path / "people.csv", tmp_path / "towns"
    records.write_text("".join(f"{','.join(row)}\n" for row in [("town", "sex"), *PEOPLE]))
    session = open_dialog(set_up(app("release", scenario), records, output))
    assert "**Release:** 12 noisy tables of 6 areas, into " in plain(session.texts("markdown"))
    finish(session.press("Spend"))
    plan, done = scenario.plan(), Release.load(output)
    assert done.plan.sha256 == plan.sha256
    (entry,) = Ledger.beside(records).account(records).entries
    assert (entry.state, entry.record_rho) == ("finished", plan.record_rho)
    # Farther out with probability 1e-11.
    total = done.part("areas").table("town")
    assert np.abs((total["value"] - [40, 30, 20]) / total["standard_error"]).max() < 6.8
    session.open("results").selectbox(key=f"area of {output}: part").select("N").run()
    session.radio(key="results view").set_value("List").run()
    one = done.part("areas").table("region", "sex", within="N")
    assert session.dataframe[0].value["value"].tolist() == one["value"].tolist()
    assert "Map" in session.radio(key="results view").options
    # Side by side, areas are rows.
    session.selectbox(key="areas shown within 1").select("2 areas of the level town, side by side")
    session.radio(key="results view").set_value("Heat map").run()
    (across,) = [box for box in session.selectbox if box.label == "Across"]
    assert across.options == ["sex", "town"]
    assert not session.exception


@pytest.mark.nightly
def test_areas_are_checked_booked_and_released_like_tables(app, tmp_path):
    shown_side_by_side(app, tmp_path)


@pytest.mark.nightly
def test_released_areas_are_on_maps_in_sums_and_processed(app, tmp_path):
    session, output, done = shown_side_by_side(app, tmp_path)
    towns, total = done.table("town", "sex", within="N"), done.table("town")
    # On a map, once their shapes are there.
    session.radio(key="results view").set_value("Map").run()
    shapes = [
        {"id": code, "geometry": {"type": "Polygon", "coordinates": SQUARE}}
        for code in ("N|1", "N|2", "S|1")
    ]
    content = json.dumps({"features": shapes}).encode()
    session.file_uploader(key="map of results").upload("map.geojson", content).run()
    for shown in QUANTITIES:
        session.selectbox(key="map shows").set_value(shown).run()
        (chart,) = session.get("plotly_chart")
        figure = json.loads(chart.proto.spec)
        texts = [one for trace in figure["data"] for one in trace.get("hovertext") or ()]
        assert len(texts) == 2  # S1 is not among the areas that are shown
        assert f"{rounded(towns['value'][:2].sum(), 4)} (σ" in texts[0]
    # Whatever is shown of the area: the shapes are those of the level.
    session.selectbox(key="areas shown within 1").select("the area itself").run()
    (again,) = session.get("plotly_chart")
    assert again.proto.spec == chart.proto.spec
    session.text_input(key=f"area of {output}: code").input("S|1").run()
    assert "of the 1 figures" in plain(session.texts("caption"))
    session.radio(key="results view").set_value("List").run()
    session.text_input(key=f"area of {output}: code").input("S|1").run()
    session.selectbox(key="table of areas looked at").select("(total)").run()
    assert session.dataframe[0].value["value"].tolist() == total["value"].tolist()[2:]
    session.text_input(key=f"area of {output}: code").input("nowhere").run()
    assert "nowhere" in plain(session.texts("error"))
    # Sums over lists of areas, and whole counts, which are opened when they are made.
    session.text_area(key="lists of areas").input("ends: N|1, S\nnorth: N").run()
    sums = done.sums_of_areas({"ends": ["N|1", "S"], "north": ["N"]})
    shown = session.dataframe[1].value.sort_values("list", ignore_index=True)
    assert shown["upper_95"].tolist() == sums["upper_95"].tolist()
    session.text_area(key="lists of areas").input("N|1").run()
    assert "must be a name, a colon" in plain(session.texts("error"))
    session.text_area(key="lists of areas").input("").run()
    session.radio(key="how whole counts are made").set_value(False).run()
    session.radio(key="round whole counts").set_value(5).run()
    session.press("Make whole counts")
    made(session)
    assert "Whole counts of areas" in plain(session.texts("warning"))
    whole = AreaCounts.load(f"{output}-whole").table("region")
    assert (whole["value"] % 5 == 0).all()
    session.press("all ›")  # the way goes on where it was
    shown = session.selectbox(key="areas shown within 0")
    shown.select("2 areas of the level region, side by side").run()
    assert session.dataframe[0].value["value"].tolist() == whole["value"].tolist()
    session.segmented_control(key="reading of results").set_value("Unbiased").run()
    assert session.text_input(key="results folder").value == str(output)
    assert not session.warning
    session.press("Make best guesses")
    made(session)
    assert "Best guesses for areas" in plain(session.texts("warning"))
    # Records of them, area by area below the top.
    session.press("Make the records")
    made(session)
    assert "no row is a person" in plain(session.texts("warning"))
    records_of = AreaRecords.load(f"{output}-guesses-synthetic")
    session.selectbox(key="file of area records").select(records_of.files[-1]).run()
    assert not session.exception
    shown = session.dataframe[0].value
    assert shown["town"].tolist() == records_of.of_file(records_of.files[-1])["town"].tolist()
    assert set(shown["region"]) == {"S"}
    session.press(f"Open the source: {output.name}")
    assert session.text_input(key="results folder").value == str(output)
