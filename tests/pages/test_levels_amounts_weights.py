"""Levels, amounts and weights from the page Tables to the exports of a release, in one walk."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
import streamlit as st

import rpexplore as rp
from pages.components.shared import files
from rpexplore.results.formats import publishing
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.pages.conftest import confirmed_run, finish, made, plain, set_up

AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 29},
    "levels": {"five": 5, "adult": "0-17, 18+"},
}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
INCOME = {"name": "income", "type": "number", "bounds": [0, 5000], "unit": "EUR", "decimals": 0}
WEIGHT = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}
TABLES = [("age@adult",), ("sex", "age@five"), ("sex", "income"), ("sex", "w")]


def sample() -> pd.DataFrame:
    random = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": random.integers(0, 30, 600),
            "sex": random.choice(["F", "M"], 600),
            "income": random.integers(0, 5001, 600),
            "w": random.integers(1, 40, 600) / 2,
        }
    )


@pytest.fixture
def downloads(monkeypatch):
    """What each button of a download gives, by its file."""
    found, draw = {}, st.download_button
    monkeypatch.setattr(
        st,
        "download_button",
        lambda label, data, file, *more, **options: (
            found.update({file: data}) or draw(label, data, file, *more, **options)
        ),
    )
    for module in (files, publishing):
        monkeypatch.setattr(
            module, "in_other_process", lambda function, *args: function(*args), raising=False
        )
    return found


@pytest.mark.nightly
def test_all_kinds_of_tables_are_planned_released_read_and_exported(app, tmp_path, downloads):
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES, INCOME, WEIGHT]})
    sample().to_csv(tmp_path / "survey.csv", index=False)
    listed = WorkloadRequest("listed", listed=(("sex", "age@five"), ("sex", "w")))
    session = app("workload", Scenario(domain, listed, budget=rp.Budget(rho=50)))
    session.multiselect(key="attributes of One table").set_value(["age@adult"]).run()
    session.button(key="add One table").click().run()
    session.multiselect(key="attributes of Sums and means").set_value(["sex"]).run()
    session.button(key="add Sums and means").click().run()
    tables = set(map(frozenset, session.scenario.workload.tables))
    assert tables == set(map(frozenset, TABLES))
    titles = session.open("plan").planned.accuracy()["item"].tolist()
    assert {"age@adult", "sum of income in EUR by sex", "weighted count (w) by sex"} <= {*titles}
    set_up(session.open("release"), tmp_path / "survey.csv", tmp_path / "out")
    finish(confirmed_run(session))
    assert session.success, plain(session.texts("error"))
    done = rp.Release.load(tmp_path / "out").part("tables")
    session.open("results")
    for table, said in (
        (["age@adult"], ""),
        (["sex", "age@five"], ""),
        (["sex", "income"], "EUR"),
        (["sex", "w"], "those above 40 as 40"),
    ):
        for view in ("List", "Crosstab", "Bars"):
            session.multiselect(key="looked at").set_value(table).run()
            session.radio(key="results view").set_value(view).run()
            assert not session.exception
            assert not session.error, plain(session.texts("error"))
            words = plain([*session.texts("caption"), *session.texts("markdown")])
            assert said in words, view
            if view == "List":
                shown = [frame.value for frame in session.dataframe]
                values = done.table(table)["value"].tolist()
                assert any(frame.get("value", pd.Series()).tolist() == values for frame in shown)
    session.multiselect(key="publish formats").set_value(["csvw", "sdmx", "px"]).run()
    name = next(one for one in downloads if one.endswith(".zip"))
    with zipfile.ZipFile(io.BytesIO(downloads[name]())) as archive:
        text = " ".join(archive.read(one).decode("utf-8", "replace") for one in archive.namelist())
    for word in ("age@five", "age@adult", "EUR", "18+"):
        assert word in text
    page = downloads["out.html"]().decode()
    assert "income" in page
    assert "EUR" in page

    # Counts at levels are made whole from here.
    session.radio(key="counts to make").set_value("nonnegative").run()
    session.press("Make the processed tables")
    made(session)
    assert session.success, plain(session.texts("error"))
    assert "nonnegative and consistent; biased" in plain(session.texts("warning"))
