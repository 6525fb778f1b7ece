"""Aggregation of attributes: on the Tables page, and what follows from it on the other pages."""

import io
import shutil
import sys
import threading
from dataclasses import astuple, replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.text import rounded
from rpexplore.planning import planner
from rpexplore.planning.planner import optimum as solved
from rpexplore.releases.table_release import TableRelease
from rpexplore.scenarios import bases
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.workload.bases import (
    CustomBasis,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Windows,
)
from tests.pages.conftest import confirmed_run, finish, plain, set_up


def list_attribute(session, name):
    session.show("workload", "aggregation")
    session.selectbox(key="attribute to change").set_value(name).run()
    return session


def choose(session, name, kind):
    list_attribute(session, name)
    session.selectbox(key=f"kind of all {name}").set_value(kind).run()
    return session


def upload(session, name, filename, content):
    key = next(
        widget.key
        for widget in session.file_uploader
        if widget.key.startswith(f"file of all {name}")
    )
    session.file_uploader(key=key).upload(filename, content).run()
    return session


# ---- the Tables page


def test_the_aggregation_of_an_attribute(app, small):
    session = choose(app("workload", small), "age", "prefix")
    assert "10 queries, such as “≤ 2”, “≤ 5” and “≤ 7”." in plain(session.texts("caption"))
    for kind, basis, cells in (
        ("ranges", Ranges(), "458"),  # 55 instead of 10 in age, age × sex and age × region
        ("windows", Windows(5), "98"),
        ("hierarchy", Hierarchy((2,)), "146"),  # 16
    ):
        session.selectbox(key="kind of all age").set_value(kind).run()
        assert session.scenario.request.basis_choices == (BasisChoice("age", basis),)
        assert f"with {cells} cells" in plain(session.texts("caption"))
        assert not session.error
    session.selectbox(key="kind of all age").set_value("identity").run()
    assert session.scenario == small
    assert session.selectbox(key="kind of all age").value == "identity"  # still listed
    session.button(key="remove of all age").click().run()
    assert "age" in session.selectbox(key="attribute to change").options
    # Widths are typed, and what cannot be leaves what was there.
    choose(session, "age", "windows")
    session.number_input(key="number of all age").set_value(3).run()
    assert session.scenario.request.basis_choices == (BasisChoice("age", Windows(3)),)
    session.selectbox(key="kind of all age").set_value("hierarchy").run()
    session.text_input(key="numbers of all age").set_value("2, 4").run()
    assert session.scenario.request.basis_choices == (BasisChoice("age", Hierarchy((2, 4))),)
    session.text_input(key="numbers of all age").set_value("2, 3").run()
    assert "multiple" in session.error[0].value
    assert session.scenario.request.basis_choices == (BasisChoice("age", Hierarchy((2, 4))),)
    assert session.text_input(key="numbers of all age").value == "2, 4"


@pytest.mark.nightly
def test_the_groups_of_the_codebook_come_first(app):
    session = choose(app("workload"), "region", "hierarchy")
    assert session.scenario.request.basis_choices == (BasisChoice("region", Hierarchy()),)
    text = plain(session.texts("caption"))
    assert "17 queries, such as “all”, “North” and “Northshore”" in text
    assert "region (with its groups)" in text
    session.text_input(key="numbers of all region").set_value("3").run()
    assert session.scenario.request.basis_choices == (BasisChoice("region", Hierarchy((3,))),)
    assert "Values count in the order of the codebook: Northshore" in plain(
        session.texts("caption")
    )


def test_an_own_matrix_comes_from_a_file_and_an_unusable_one_changes_nothing(app, small):
    session = choose(app("workload", small), "region", "custom")
    assert session.scenario == small  # until there is a file
    assert "region stays as it was: single values" in plain(session.texts("caption"))
    attribute = small.domain["region"]
    template = bases.template_csv(attribute).encode()
    upload(session, "region", "queries.csv", template)
    (choice,) = session.scenario.request.basis_choices
    assert isinstance(choice.basis, CustomBasis)
    assert len(choice.basis.rows) == 6
    assert f"with {98 + 1 * 13} cells" in plain(session.texts("caption"))
    assert "Took the 6 queries of queries.csv" in plain(session.texts("success"))
    matrix = io.BytesIO()
    np.save(matrix, np.eye(5))
    upload(session, "region", "eye.npy", matrix.getvalue())
    assert session.scenario.request.basis_choices[0].basis.name == "eye"
    session.selectbox(key="kind of all region").set_value("prefix").run()
    before = session.scenario
    session.selectbox(key="kind of all region").set_value("custom").run()
    upload(session, "region", "q.csv", b"1,1\n")
    assert "must have one column for each" in plain(session.texts("error"))
    assert "stays as it was: cumulative" in plain(session.texts("error"))
    assert session.scenario == before
    session.selectbox(key="kind of all region").set_value("ranges").run()
    assert session.scenario.request.basis_choices == (BasisChoice("region", Ranges()),)
    assert not session.file_uploader


def test_another_aggregation_in_some_tables(app, small):
    session = choose(app("workload", small), "age", "prefix").unfold("some age")
    session.multiselect(key="tables of some age").set_value([("age", "sex")]).run()
    session.selectbox(key="kind of some age").set_value("ranges").run()
    assert session.scenario.request.basis_choices == (BasisChoice("age", Prefix()),)
    session.press("Apply to these")
    assert session.scenario.request.basis_choices == (
        BasisChoice("age", Prefix()),
        BasisChoice("age", Ranges(), (("age", "sex"),)),
    )
    assert "In age × sex: **ranges: every range of values**" in plain(session.texts("markdown"))
    assert f"with {98 + 2 * 45} cells" in plain(session.texts("caption"))
    assert session.multiselect(key="tables of some age").value == []
    session.button(key="remove basis 1 of age").click().run()
    assert session.scenario.request.basis_choices == (BasisChoice("age", Prefix()),)


# ---- the Plan page


@pytest.fixture
def with_bases(small):
    return small.with_basis("age", Prefix()).with_basis("region", Ranges())


@pytest.fixture
def searches(app, monkeypatch):
    """The keywords of every search for a solution."""
    app()
    calls = []

    def counting(workload, **more):
        if "closure" in more:  # of the page, not of the test
            calls.append(more)
        return solved(workload, **more)

    monkeypatch.setattr(planner, "optimum", counting)
    return calls


@pytest.mark.nightly
def test_the_reference_is_optimised_unless_switched_off_and_searched_once(
    app, small, with_bases, searches
):
    session = app("plan", with_bases)
    assert session.toggle(key="optimise reference").value
    optimised = session.planned
    session.text_input(key="typed budget").set_value("0.7").run()
    assert session.planned.loss_value == pytest.approx(optimised.loss_value / 7)
    assert len(searches) == 1  # a budget changes nothing of what is measured
    session.toggle(key="optimise reference").set_value(False).run()
    assert session.scenario.uniform_reference
    classical = session.planned
    assert classical.loss_value > optimised.loss_value / 7 * 1.001
    assert np.allclose(classical.mean_variances, session.scenario.table_plan().mean_variances)
    assert "never from records" in session.toggle(key="optimise reference").help
    session.toggle(key="optimise reference").set_value(True).run()
    assert session.planned.loss_value == pytest.approx(optimised.loss_value / 7)
    assert [search["uniform_reference"] for search in searches] == [False, True]
    session.open("workload").show("workload", "aggregation")
    session.selectbox(key="kind of all age").set_value("ranges").run()
    assert len(searches) == 3
    assert session.planned.workload.bases[0] == (Ranges(),)
    session.show("workload", "weights").type_in_grid("workload grid", 1, "weight", 50.0)
    assert len(searches) == 4
    assert searches[3]["closure"] is searches[2]["closure"] is not None
    assert session.planned.standard_errors[1] < session.planned.standard_errors[0] * 10
    # Plans of single values do not depend on the switch, which they do not have.
    session.scenario = small
    session.open("plan")
    assert "optimise reference" not in [toggle.key for toggle in session.toggle]
    session.scenario = small.replaced(uniform_reference=True)
    session.run()
    assert "optimise reference" not in [toggle.key for toggle in session.toggle]
    assert [search["uniform_reference"] for search in searches[4:]] == [False]


def test_the_search_is_shown_and_can_be_cancelled(app, with_bases, monkeypatch):
    app()
    may_go_on, stopped = threading.Event(), threading.Event()

    def slow(workload, *, on_progress, **more):
        on_progress("Looking for what to measure", 0.25)
        may_go_on.wait(30)
        try:
            on_progress("Looking for what to measure", 0.5)
        except BaseException:
            stopped.set()
            raise
        return solved(workload, on_progress=on_progress, **more)

    monkeypatch.setattr(planner, "optimum", slow)
    monkeypatch.setattr(sys.modules["pages.components.shared.background"], "PATIENCE", 0.05)
    session = app("plan", with_bases)
    cancel = next(widget for widget in session.button if widget.label == "Cancel")
    progress = [bar.proto.text for bar in session.get("progress")]
    assert progress == ["Looking for what to measure …"]
    cancel.click().run()
    may_go_on.set()
    assert stopped.wait(30)
    session.run()
    assert "Cancelled" in plain(session.texts("error"))
    session.press("Try again")
    for _ in range(100):
        if session.metrics():
            break
        session.run()
    assert session.planned.workload.bases[0] == (Prefix(),)


# ---- the Data page


@pytest.mark.nightly
def test_groups_are_typed_and_survive_edits(app):
    session = app("codebook").unfold("one attribute")
    session.selectbox(key="attribute shown").set_value("sex").run()
    session.type_in_grid("labels of sex", 0, "group", "People > Women")
    assert session.scenario.domain["sex"].groups == (("People", "Women"), ())
    session.type_in_grid("labels of sex", 0, "label", "Women")
    assert session.scenario.domain["sex"].groups == (("People", "Women"), ())
    session.type_in_grid("labels of sex", 1, "group", "People > > Men")
    assert "groups of attribute" in session.error[0].value
    assert session.scenario.domain["sex"].groups == (("People", "Women"), ())
    row = session.scenario.domain.names.index("region")
    session.type_in_grid("codebook grid", row, "name", "area")
    assert session.scenario.domain["area"].groups[0] == ("North",)
    session.selectbox(key="attribute shown").set_value("age").run()
    session.type_in_grid("labels of age", 3, "group", "Minors")
    assert session.scenario.domain["age"].groups[3] == ("Minors",)
    assert session.scenario.domain["age"].groups[4] == ()


# ---- the release


@pytest.mark.nightly
def test_a_release_with_cumulative_counts_a_hierarchy_and_ranges(app, records, tmp_path):
    session = app("release")
    scenario = session.scenario.with_request(only=("age", "region", "income", "sex"))
    scenario = scenario.with_basis("age", Prefix()).with_basis("region", Hierarchy())
    scenario = scenario.with_basis("income", Ranges()).with_basis(
        "age", Identity(), [("age", "sex")]
    )
    session.scenario = replace(
        scenario,
        budget=rp.Budget(rho=1000),
        record_noun="people",
    )
    set_up(session.run(), records, tmp_path / "out")
    finish(confirmed_run(session))
    assert session.success, plain(session.texts("error"))
    done = TableRelease.load(tmp_path / "out")
    session.open("results").multiselect(key="looked at").set_value(["age", "region"]).run()
    session.radio(key="results view").set_value("List").run()
    shown = session.dataframe[0].value
    assert len(shown) == 100 * 17
    assert {"≤ 24", "≤ 99"} <= set(shown["age"])
    assert shown["standard_error"].nunique() > 10
    text = plain(session.texts("markdown"))
    assert "(the most accurate cell) to ±" in text
    whole = len(records.read_text().splitlines()) - 1
    assert shown["value"].iloc[-1] != whole  # a single region
    # A range, with the covariances of its two ends.
    session.selectbox(key="from age").set_value(18).run()
    session.selectbox(key="to age from 18").set_value(24).run()
    session.multiselect(key="summed region").set_value(["Northshore", "Eastport"]).run()
    vectors = {
        "age": [float(18 <= index <= 24) for index in range(100)],
        "region": [float(index in (0, 2)) for index in range(12)],
    }
    value, error = astuple(done.answer(where=vectors))
    text = plain(session.texts("info"))
    assert "People with age 18 to 24 and region Northshore or Eastport: " in text
    assert f"{value:,.0f} ±{rounded(1.959964 * error, 3)}, 95 % of the time" in text
    people = [line.split(",") for line in records.read_text().splitlines()[1:]]
    true = sum(18 <= int(row[0]) <= 24 and row[2] in ("R01", "R03") for row in people)
    assert abs(value - true) < 6 * error < 10
    session.multiselect(key="looked at").set_value(["age", "sex"]).run()
    assert len(session.dataframe[0].value) == 200
    shutil.rmtree(tmp_path / "out")
