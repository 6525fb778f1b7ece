"""The Results page: opening, looking at tables in every way, processing and combining."""

import io
import json
import shutil
import zipfile
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pandas as pd
import pytest
import streamlit as st

import rpexplore as rp
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results import files as publishing
from pages.components.results.source import _load
from pages.components.shared.background import task_name
from rpexplore.analysis.released_cells import describe_gains, farthest_group
from rpexplore.common.text import rounded
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.readme import TableFile
from rpexplore.releases.release import release
from rpexplore.releases.table_cells import table_path
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import load_combined
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.publication import Publication, SmoothingGain
from rpexplore.results.results import load_results
from rpexplore.results.synthetic import questions
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import check_charts, made, plain
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 9)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("region", rp.Categories(tuple(f"R{i}" for i in range(8)))),
    ),
    [{"age": "9", "region": "R1"}],
)
ALL = rp.Workload.all_up_to(DOMAIN, 2)
ONE = rp.Workload.of(DOMAIN, [["age", "sex", "region"]])


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> dict[str, Path]:
    """Folders of releases of the same made-up records, and of one that was processed."""
    folder = tmp_path_factory.mktemp("released")
    rows = [{"age": i * i % 10, "sex": "fm"[i % 2], "region": f"R{i % 3}"} for i in range(400)]
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    made = {}
    for name, workload in (("all", ALL), ("again", ALL), ("one", ONE)):
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        made[name] = release(
            plan, folder / "records.csv", folder / name, count_impossible=True
        ).folder
    postprocess(
        TableRelease.load(made["all"]), folder / "whole", method="nonnegative", rounded=True
    )
    postprocess(TableRelease.load(made["all"]), folder / "smooth", method="smooth")
    return made | {"whole": folder / "whole", "smooth": folder / "smooth"}


def opened(app, folder):
    session = app("results")
    session.text_input(key="results folder").set_value(str(folder)).run()
    for _ in range(40):
        if session.multiselect or session.error:
            break
        session.run()
    return session


def look(session, attributes, view="List"):
    session.multiselect(key="looked at").set_value(attributes).run()
    if session.radio(key="results view").value != view:
        session.radio(key="results view").set_value(view).run()
    assert not session.exception
    return session


def spec(session) -> dict:
    (chart,) = session.get("plotly_chart")
    return json.loads(chart.proto.spec)


def rows_of(session) -> tuple[str, list[list[str]]]:
    """The caption of the crosstab, and the texts of its rows, heads first."""
    (table,) = [
        ElementTree.fromstring(body[body.index("<table") : body.index("</table>") + 8])
        for html in session.get("html")
        if "<table class" in (body := html.proto.body)
    ]
    rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    return table.findtext("caption") or "", rows[1:]


def opened_when_made(session):
    """Wait until what is being made is there, and what is there is opened."""
    made(session)
    session.session_state[task_name(_load)][1].wait(60)
    return session


@pytest.mark.nightly
def test_what_cannot_be_opened_is_said(app, released, tmp_path):
    session = app("results")
    assert "choose its folder" in session.info[0].value
    assert not session.multiselect
    assert not session.error
    session = opened(app, tmp_path / "nowhere")
    assert "There is no folder" in session.error[0].value
    session.text_input(key="results folder").set_value(str(tmp_path)).run()
    assert "no readable manifest" in plain(session.texts("error"))
    spoilt = shutil.copytree(released["all"], tmp_path / "spoilt")
    next((spoilt / "tables").iterdir()).write_text("x")
    session.text_input(key="results folder").set_value(str(spoilt)).run()
    assert "was changed" in plain(session.texts("error"))


def test_a_reload_shows_the_same_results_and_another_project_none(app, released):
    session = opened(app, released["one"])
    key = session.query_params["project"]
    reloaded = app("results", key=key)
    assert reloaded.text_input(key="results folder").value == str(released["one"])
    assert reloaded.multiselect
    reloaded.text_input(key="results folder").set_value("").run()
    assert "choose its folder" in app("results", key=key).info[0].value


def test_the_release_of_this_project_needs_no_folder(app, released):
    session = app("results")
    done = TableRelease.load(released["one"])
    key = session.session_state["autosave key"]
    session.test.session_state[RELEASE_TASK] = SimpleNamespace(result=done, project_key=key)
    look(session.run(), ["age"])
    assert session.dataframe[0].value["value"].tolist() == done.counts(["age"])["value"].tolist()
    assert "results folder" not in [field.key for field in session.text_input]
    session.radio(key="results from").set_value("A folder").run()
    assert "choose its folder" in session.info[0].value


def test_a_release_of_a_query_list_is_opened_with_its_answers(app, tmp_path):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    (tmp_path / "records.csv").write_text("sex,age\n" + "1,9\n" * 30 + "0,3\n" * 70)
    stated = stated_from_text(domain, "everybody: total ± 50\nold: age >= 8 ± 20")
    plan = query_plan(stated.queries, budget=rp.Budget(rho="0.5"))
    done = release(plan, tmp_path / "records.csv", tmp_path / "answers")
    session = app("results")
    session.text_input(key="results folder").set_value(str(tmp_path / "answers")).run()
    shown = session.dataframe[0].value
    released = done.answers.drop(columns="target")  # there as it was typed, with CV and quality
    pd.testing.assert_frame_equal(shown[list(released.columns)], released, check_dtype=False)
    assert [button.label for button in session.get("download_button")] == [
        "Download noisy-counts.csv",
        "Download a page for readers",
        "Download all tables as an Excel workbook",
        "Download answers-frictionless.zip",
    ]
    markdown = plain(session.texts("markdown"))
    assert "2 noisy own counts with ρ = 0.5" in markdown
    assert plan.proven in markdown
    assert plan.guarantee in markdown
    assert "Post-processing" not in session.texts("subheader")
    assert "Combining" in session.texts("subheader")
    (tmp_path / "answers" / "counts" / "answers.csv").write_text("x")
    session = app("results")
    session.text_input(key="results folder").set_value(str(tmp_path / "answers")).run()
    assert "was changed" in plain(session.texts("error"))


@pytest.mark.nightly
def test_names_are_never_formatting(app, hostile, tmp_path):
    names = hostile.domain.names
    rows = {name: [0, 1, 2] for name in names}
    pd.DataFrame(rows).to_csv(tmp_path / "records.csv", index=False)
    workload = rp.Workload.of(hostile.domain, [names[:4]])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    release(plan, tmp_path / "records.csv", tmp_path / "out")
    session = app("results", hostile)
    session.text_input(key="results folder").set_value(str(tmp_path / "out")).run()
    for view in ("Crosstab", "List", "Bars", "Heat map"):
        look(session, list(names[:4]), view)
        if view == "Crosstab":  # names are texts of its heads
            assert rows_of(session)[1][0][0] in names
        texts = [text for kind in ("markdown", "caption", "info") for text in session.texts(kind)]
        labels = [widget.label for widget in (*session.selectbox, *session.get("download_button"))]
        for text in (*texts, *labels):
            for mark in ("**bold**", "$x$", "<b>", "<i>", "[a]("):
                assert mark not in text


def test_a_list_shows_the_table_as_released_and_subtotals_with_exact_errors(app, released):
    session = opened(app, released["all"])
    assert session.multiselect(key="looked at").value == ["age"]
    look(session, ["age", "sex"])
    expected = TableRelease.load(released["all"]).table(["age", "sex"])
    listed = Publication().table(expected)
    pd.testing.assert_frame_equal(
        session.dataframe[0].value,
        listed.assign(cv=100 * listed["cv"]),  # in per cent
        check_dtype=False,
        check_categorical=False,
    )
    margin = rounded(1.959964 * float(expected["standard_error"][0]), 3)
    assert f"A count is within ±{margin} people" in plain(session.texts("markdown"))
    labels = [button.label for button in session.get("download_button")]
    assert labels == [
        "Download a page for readers",
        "Download all tables as an Excel workbook",
        "Download age_sex.csv",
        "Download age_sex.parquet",
        "Download all-frictionless.zip",
    ]
    session.selectbox(key="from age").set_value("2").run()
    session.selectbox(key="to age from 2").set_value("5").run()
    ages = [float(2 <= age <= 5) for age in range(10)]
    # Of the same table, and so the same to the last digit, also where it is a half.
    asked = {"age": ages, "sex": [1.0, 1.0]}
    value, error = astuple(TableRelease.load(released["all"]).answer("age", "sex", where=asked))
    subtotal = plain(session.texts("info"))
    assert f"{value:,.0f} ±{rounded(1.959964 * error, 3)}, 95 % of the time" in subtotal
    session.multiselect(key="looked at").set_value(["age", "sex", "region"]).run()
    assert "There is no released table" in session.info[0].value
    assert not session.dataframe


@pytest.mark.nightly
def test_questions_are_answered_from_the_tables_or_by_a_model(app, released, monkeypatch):
    monkeypatch.setattr(questions, "_POPULATION", 2_000)
    session = opened(app, released["all"])
    session.text_input(key="question").set_value("age=2..5 sex=female").run()
    exact = TableRelease.load(released["all"]).answer(where={"age": [0, 0, 1, 1, 1, 1, 0, 0, 0, 0],
                                                             "sex": [1, 0]})  # fmt: skip
    assert f"{exact.value:,.0f} people, from the tables; 95 % interval" in plain(
        session.texts("info")
    )
    assert "By a model" not in plain(session.texts("caption"))
    session.text_input(key="question").set_value("age=2..5 sex=female region=R0").run()
    for _ in range(60):
        if "By a model" in plain(session.texts("caption")):
            break
        session.run()
    assert "people, by a model; 95 % interval" in plain(session.texts("info"))
    session.text_input(key="question").set_value("age=old").run()
    assert "'old'" in plain(session.texts("error"))
    assert not session.exception


@pytest.mark.nightly
def test_all_tables_are_downloaded_in_the_formats_of_others(app, released, monkeypatch):
    files, draw = {}, st.download_button
    monkeypatch.setattr(
        st,
        "download_button",
        lambda label, data, file, *more, **options: (
            files.update({file: data}) or draw(label, data, file, *more, **options)
        ),
    )
    monkeypatch.setattr(publishing, "in_other_process", lambda function, *args: function(*args))
    session = opened(app, released["all"])
    page = files["all.html"]().decode()
    assert page.count("<article") == 7
    session.multiselect(key="publish formats").set_value(["csvw", "sdmx"])
    session.text_input(key="publish license").set_value("CC BY").run()
    assert "must be a web address, got 'CC BY'" in plain(session.texts("error"))
    session.text_input(key="publish license").set_value("")
    session.text_input(key="publish title").set_value(" Atlas ").run()
    with zipfile.ZipFile(io.BytesIO(files["all-csvw-sdmx.zip"]())) as archive:
        names = archive.namelist()
        assert {"csv-metadata.json", "sdmx/structure.xml", "tables/0001_age.csv"} <= {*names}
        assert archive.read("README.md").startswith(b"# Atlas\n")
    session.multiselect(key="publish formats").set_value(["csvw", "frictionless"]).run()
    assert session.selectbox(key="publish in English").options == ["English"]
    session.multiselect(key="publish formats").set_value(["html"]).run()
    session.selectbox(key="publish language").set_value("de").run()
    with zipfile.ZipFile(io.BytesIO(files["all-html-de.zip"]())) as archive:
        assert "Zufallsrauschen" in archive.read("tables.html").decode()
    session.text_input(key="publish records de").set_value("Kinder").run()
    with zipfile.ZipFile(io.BytesIO(files["all-html-de.zip"]())) as archive:
        assert "Kinder insgesamt" in archive.read("tables.html").decode()
    session.selectbox(key="publish language").set_value("fr").run()
    assert session.text_input(key="publish records fr").value == ""
    session.selectbox(key="publish language").set_value("de").run()
    session.number_input(key="publish fewer than").set_value(1).run()
    assert "must be a whole number of 2 or more" in plain(session.texts("error"))
    session.number_input(key="publish fewer than").set_value(100000).run()
    with zipfile.ZipFile(io.BytesIO(files["all-html-de.zip"]())) as archive:
        assert "weniger als 100.000" in archive.read("tables.html").decode()
    session.multiselect(key="publish formats").set_value(["px"]).run()
    session.text_input(key="publish records de").set_value("Haushalte")
    session.text_input(key="publish period").set_value("2026").run()
    session.selectbox(key="publish shares").set_value("row").run()
    assert not [one for one in session.number_input if one.key == "publish fewer than"]
    assert "age" in session.selectbox(key="publish time").options
    with zipfile.ZipFile(io.BytesIO(files["all-px-de.zip"]())) as archive:
        px = archive.read("px/0004_age_sex.px").decode("utf-8-sig")
    assert "Anteil" in px
    assert "Haushalte" in px


def test_a_crosstab_has_totals_shares_and_what_is_publishable(app, released):
    session = look(opened(app, released["all"]), ["sex", "age"], "Crosstab")
    tables = TableRelease.load(released["all"])
    table = tables.table(["age", "sex"])
    limit = next(field for field in session.text_input if field.key.startswith("limit of"))
    assert limit.value == "20"
    for leave_empty in (False, True):
        limit.set_value("30").run()
        session.checkbox(key="leave cells empty").set_value(leave_empty).run()
        publication = Publication(0.3, leave_empty)
        n_publishable = int(publication.publishable(table).sum())
        assert 0 < n_publishable < 20
        assert publication.describe(n_publishable, 20) in plain(session.texts("markdown"))
        caption, (heads, *rows) = rows_of(session)
        assert caption == "People by age and sex"
        assert heads == ["age", "female", "male", "Total"]
        texts = [text for row in rows[:-1] for text in row[1:3]]
        others = [text for text in texts if text.startswith("(") or not text]
        assert len(others) == 20 - n_publishable
        assert (others[0] == "") == leave_empty
        labels = [button.label for button in session.get("download_button")]
        assert f"Download age_sex{'-publishable' * leave_empty}.csv" in labels
    total = tables.answer("age", "sex", where={})
    assert rows[-1][-1].startswith(f"{total.value:,.0f}")
    margins = [
        rounded(1.959964 * error, 3)
        for error in (
            float(table["standard_error"][0]),
            float(tables.table("age")["standard_error"][0]),
            float(tables.table("sex")["standard_error"][0]),
            total.standard_error,
        )
    ]
    said = "Margin of error (95 %): ±{} in every cell, ±{} in the totals of rows, ±{} in the totals"
    assert said.format(*margins) in plain(session.texts("caption"))
    session.segmented_control(key="figures of ['Counts', 'Row %', 'Column %']").set_value(
        "Column %"
    ).run()
    assert rows_of(session)[1][-1][1].startswith("100.0")
    session.segmented_control(key="figures of ['Counts', 'Row %', 'Column %']").set_value(
        "Counts"
    ).run()
    session.selectbox(key="order of rows").set_value("largest first").run()
    by_age = tables.table("age")
    assert rows_of(session)[1][1][0] == str(by_age["age"][by_age["value"].idxmax()])
    assert "Download as shown, for Excel" in labels
    session.press("Exchange rows and columns")
    assert rows_of(session)[1][0][0] == "sex"
    session.press("Exchange rows and columns")
    hidden = "This subtotal is not publishable, and is left empty."
    assert hidden not in plain(session.texts("info"))
    limit.set_value("0.1").run()
    assert plain(session.texts("info")) == hidden
    session.checkbox(key="leave cells empty").uncheck().run()
    assert "95 % of the time" in plain(session.texts("info"))
    limit.set_value("30").run()
    session.checkbox(key="leave cells empty").check().run()
    look(session, ["age", "sex"], "List")
    shown = session.dataframe[0].value
    assert shown["value"].isna().tolist() == (shown["publishable"] == "no").tolist()
    assert "table$cv <= 0.3" in session.code[1].value


@pytest.mark.nightly
def test_bars_side_by_side_of_a_fixed_value(app, released):
    session = look(opened(app, released["one"]), ["age", "sex", "region"], "Bars")
    session.selectbox(key="bars beside age of ['sex', 'region']").set_value("sex").run()
    session.selectbox(key="results value of region").set_value("R1").run()
    counts = TableRelease.load(released["one"]).counts(["age", "sex", "region"])
    kept = counts[counts["region"] == "R1"]
    traces = spec(session)["data"]
    assert [trace["name"] for trace in traces] == ["f: female", "m: male"]
    for trace, code in zip(traces, "fm", strict=True):
        rows = kept[kept["sex"] == code]
        assert trace["x"] == pytest.approx(rows["value"].tolist(), rel=1e-5)
        margins = (rows["upper_95"] - rows["lower_95"]) / 2
        assert trace["error_x"]["array"] == pytest.approx(margins.tolist(), rel=1e-5)
    assert "region: R1." in plain(session.texts("caption"))
    assert len(session.dataframe[0].value) == 20
    check_charts(session)


@pytest.mark.nightly
def test_a_heat_map_of_counts_and_of_reliability(app, released):
    session = look(opened(app, released["all"]), ["age", "region"], "Heat map")
    frame = TableRelease.load(released["all"]).table(["age", "region"])
    by_age = frame["value"].to_numpy().reshape(10, 8)
    cells = spec(session)["data"][0]
    assert cells["type"] == "heatmap"
    assert (len(cells["z"]), len(cells["z"][0])) == (8, 10)  # region down, age across
    assert cells["hovertext"][1][4].startswith("R1, 4<br>")
    assert f"{by_age[4, 1]:,.1f}".replace("-", "−") in cells["hovertext"][1][4]
    check_charts(session)
    assert len(session.dataframe[0].value) == 80
    doubtful = int(((frame["lower_95"] <= 0) & (frame["upper_95"] >= 0)).sum())
    assert f"In {doubtful} of 80 cells the interval includes 0" in plain(session.texts("caption"))
    session.radio(key="heat colour").set_value("Margins of error").run()
    shares = spec(session)["data"][0]["z"]
    assert max(map(max, shares)) == 1.0
    session.selectbox(key="heat across ('age', 'region')").set_value("region").run()
    assert len(spec(session)["data"][0]["z"]) == 10


def test_processed_tables_carry_their_label_on_top(app, released):
    session = opened(app, released["whole"])
    label = ProcessedTables.load(released["whole"]).label
    assert session.warning[0].value.replace("\\", "").startswith(f"**Processed tables:** {label}")
    look(session, ["age", "sex"])
    shown = session.dataframe[0].value
    assert {"value", "unbiased_value", "lower_95", "value_is"} <= set(shown.columns)
    assert "Post-processing" not in session.texts("subheader")
    assert "Subtotals" not in session.texts("subheader")
    look(session, ["age"], "Bars")
    bars, marks = spec(session)["data"]
    stored = ProcessedTables.load(released["whole"]).table(["age"])
    assert bars["x"] == stored["value"].tolist()
    assert "error_x" not in bars
    assert marks["x"] == pytest.approx(stored["unbiased_value"].tolist(), rel=1e-5)
    assert "biased" in plain(session.texts("caption"))


@pytest.mark.nightly
def test_smooth_tables_show_their_error_and_how_far_groups_were_smoothed(app, released):
    session = look(opened(app, released["smooth"]), ["age", "sex"])
    tables = ProcessedTables.load(released["smooth"])
    stored = tables.table(["age", "sex"])
    shown = session.dataframe[0].value
    assert shown["model_error"].tolist() == stored["model_error"].tolist()
    shares = (stored["model_error"] / stored["value"]).where(stored["value"] > 0)
    assert shown["cv"].tolist() == pytest.approx((100 * shares).tolist(), nan_ok=True)
    banner = plain(session.texts("warning"))
    assert "biased, small groups most. ± in the crosstab is model-based" in banner
    gain = SmoothingGain.of_table(stored)
    assert gain is not None
    assert ("Smoothing gains next to nothing here" in plain(session.texts("info"))) == (
        not gain.is_gain
    )
    groups = tables.shrinkage_by_group.query("attribute != ''")
    attribute = session.selectbox(key=f"smoothed by attribute of {tables.folder}")
    assert attribute.value == farthest_group(groups)["attribute"]
    attribute.set_value("region").run()
    drawn = spec(session)["data"][0]["x"]
    distances = groups[groups["attribute"] == "region"]["distance"].tolist()
    assert drawn == pytest.approx(distances, rel=1e-5)
    session.radio(key="smoothed by").set_value("Size of the smooth count").run()
    assert "smooth counts" in plain(session.texts("caption"))
    session.radio(key="smoothed by").set_value("Tables").run()
    kept = session.dataframe[-1].value
    shares = sorted(100 * share for share in tables.shrinkage["share_kept"])
    assert sorted(kept["share_kept"]) == pytest.approx(shares)
    assert describe_gains(tables.shrinkage) in plain(session.texts("markdown"))
    # Records are made of the release, which opens with that part of its page open.
    session.press("Open all to make synthetic records")
    assert session.text_input(key="results folder").value == str(released["all"])
    (part,) = (box for box in session.expander if box.label == "Make synthetic records")
    assert part.proto.expanded


def test_processed_tables_are_not_summed_any_further(app, released, tmp_path):
    postprocess(TableRelease.load(released["one"]), tmp_path / "p", method="nonnegative")
    session = look(opened(app, tmp_path / "p"), ["age", "sex", "region"], "Heat map")
    assert spec(session)["data"][0]["type"] == "heatmap"
    assert "sex: female." in plain(session.texts("caption"))
    session.selectbox(key="results value of sex, no sum").set_value("all together").run()
    assert "cannot be summed any further" in plain(session.texts("info"))
    assert not session.get("plotly_chart")
    look(session, ["age", "sex"])
    assert "exactly these attributes. Add one or take one out." in plain(session.texts("info"))


@pytest.mark.nightly
def test_a_choice_that_another_folder_has_no_table_of_gives_way(app, released, tmp_path):
    postprocess(TableRelease.load(released["one"]), tmp_path / "p", method="nonnegative")
    session = look(opened(app, released["all"]), ["age", "sex"])
    for folder, chosen in (
        (released["one"], ["age", "sex"]),
        (tmp_path / "p", ["age", "sex", "region"]),
    ):
        session.text_input(key="results folder").set_value(str(folder)).run()
        opened_when_made(session)
        session.run()
        assert session.multiselect(key="looked at").value == chosen
        assert not session.exception
        assert session.dataframe


def test_making_processed_tables_opens_them_with_their_label(app, released, tmp_path):
    source = shutil.copytree(released["all"], tmp_path / "source")
    session = opened(app, source)
    button = session.button_of("Make the")
    assert button.disabled
    session.radio(key="counts to make").set_value("nonnegative").run()
    assert "Takes a few seconds if nothing else runs" in plain(session.texts("caption"))
    field = next(field for field in session.text_input if "processed into" in (field.key or ""))
    output = field.value
    field.set_value(str(released["one"])).run()
    assert "nothing is ever overwritten" in plain(session.texts("error"))
    button = next(button for button in session.button if button.label.startswith("Make the"))
    assert button.disabled
    session.text_input(key=field.key).set_value(output).run()
    session.press("Make the processed tables")
    opened_when_made(session)
    assert session.success, plain(session.texts("error"))
    output = tmp_path / "source-processed"
    assert session.text_input(key="results folder").value == str(output)
    assert "nonnegative and consistent; biased" in plain(session.texts("warning"))
    done = ProcessedTables.load(output)
    assert done.manifest["method"] == "nonnegative"
    assert not done.manifest["rounded"]
    assert done.table(["age"])["value"].min() >= 0
    # The release is a click away, as it was, and another folder is offered for it.
    session.segmented_control(key="reading of results").set_value("Unbiased").run()
    assert session.text_input(key="results folder").value == str(source)
    assert not session.warning
    field = next(box for box in session.text_input if "processed into" in (box.key or ""))
    assert field.value == f"{output}-2"


def test_known_totals_of_a_file_are_met(app, released, tmp_path):
    source = shutil.copytree(released["all"], tmp_path / "source")
    session = opened(app, source)
    box = session.file_uploader(key="file of known totals of tables")
    box.upload("known.csv", b"sex,total\nf,2000\nm,200\nx,1\n").run()
    assert "'sex' has no value 'x' in the codebook" in plain(session.texts("error"))
    box = session.file_uploader(key="file of known totals of tables")
    box.upload("known.csv", b"sex,total\nf,2000\nm,200\n").run()
    assert "standard errors apart, which noise does not explain" in plain(session.texts("warning"))
    box = session.file_uploader(key="file of known totals of tables")
    box.upload("known.csv", b"sex,total\nf,200\nm,200\n").run()
    assert "publicly known totals of sex are met" in plain(session.texts("caption"))
    session.press("Make the processed tables")
    opened_when_made(session)
    assert session.success, plain(session.texts("error"))
    cells = load_results(tmp_path / "source-processed").table("sex")
    assert cells["value"].tolist() == [200, 200]
    assert cells["standard_error"].tolist() == [0, 0]


@pytest.mark.nightly
def test_making_synthetic_records_opens_them_with_their_label(app, released, tmp_path):
    source = shutil.copytree(released["all"], tmp_path / "source")
    session = opened(app, source)
    session.number_input(key="synthetic rows").set_value(50).run()
    stated = "The codebook states 1 impossible combination: age=9 region=R1"
    assert stated in plain(session.texts("markdown"))
    assert session.text_area(key="synthetic never").placeholder == "age=0 sex=f"
    session.text_area(key="synthetic never").set_value("age=0..3 se=f").run()
    assert "no attribute 'se' in the domain; did you mean 'sex'?" in plain(session.texts("error"))
    assert session.button_of("Make the records").disabled
    session.text_area(key="synthetic never").set_value("age=0..3 sex=f\n\nregion=R7").run()
    assert "Takes a few seconds if nothing else runs" in plain(session.texts("caption"))
    session.press("Make the records")
    opened_when_made(session)
    assert session.success, plain(session.texts("error"))
    assert "no row is a person" in plain(session.texts("warning"))
    done = SyntheticRecords.load(tmp_path / "source-synthetic")
    markdown = plain(session.texts("markdown"))
    assert plain([f"**{done.use}** {done.facts}"]) in markdown
    assert (
        "has one of these combinations:\n\n- age=9 region=R1\n- age=0..3 sex=f\n- region=R7"
        in markdown
    )
    assert done.never == ["age=9 region=R1", "age=0..3 sex=f", "region=R7"]
    tables = [shown.value for shown in session.dataframe]
    assert tables[0]["table"].tolist() == done.comparison["table"].tolist()
    assert len(tables[-1]) == 50


@pytest.mark.nightly
def test_combining_opens_the_combined_tables_or_says_why_not(app, released, tmp_path):
    source = shutil.copytree(released["all"], tmp_path / "source")
    session = opened(app, source)
    session.text_area(key="combined with").set_value(str(source)).run()
    opened_when_made(session.press("Combine them"))
    left = [part for part in session.expander if part.label.startswith("Combine with other")]
    assert left[0].proto.expanded
    assert "holds the same measurements" in plain([error.value for error in left[0].error])
    assert not (tmp_path / "source-combined").exists()
    session.text_area(key="combined with").set_value(f"\n{released['again']}\n").run()
    session.press("Combine them")
    opened_when_made(session)
    combined = load_combined(tmp_path / "source-combined")
    assert session.success, plain(session.texts("error"))
    assert combined.label in plain(session.texts("caption")).lower()
    assert not session.exception  # of the crosstab, which is shown at first
    look(session, ["age", "sex"])
    shown = session.dataframe[0].value
    assert shown["value"].tolist() == combined.table(["age", "sex"])["value"].tolist()
    assert shown["standard_error"][0] == pytest.approx(
        TableRelease.load(source).table(["age", "sex"])["standard_error"][0] / 2**0.5
    )


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["all", "whole"])
def test_a_table_comes_with_the_lines_that_read_it(app, released, kind):
    session = look(opened(app, released[kind]), ["age", "sex"])
    position = ALL.position(["age", "sex"])
    code = TableFile.of(released[kind], table_path(position, ("age", "sex"))).code()
    assert [block.value for block in session.code] == [lines.rstrip() for lines in code.values()]


def test_what_came_out_stands_beside_the_forecast_of_the_plan(app, released, tmp_path):
    plan = plan_tables(ALL, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
    kept = rp.Forecast(plan, expected=400).in_plan()
    records = released["all"].parent / "records.csv"
    done = release(kept, records, tmp_path / "out", count_impossible=True)
    session = opened(app, done.folder)
    session.session_state["outcome"] = True
    session.run()
    for _ in range(40):
        if "People in good cells" in plain(session.texts("markdown")):
            break
        session.run()
    assert "People in good cells" in plain(session.texts("markdown"))
    assert "The forecast rests on 400 records" in plain(session.texts("caption"))
    columns = [list(frame.value.columns) for frame in session.dataframe]
    assert any("people in good cells: outcome" in names for names in columns)
