"""Amounts through the pages: chosen for a table, planned, and shown beside counts."""

from math import prod

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.common.text import data_size, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.releases.release import release
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import plain
from tests.support.query_lists import query_plan

INCOME = {"name": "income", "type": "number", "bounds": [0, 200000], "unit": "EUR"}
SEXES = {"name": "sex", "constraints": {"enum": ["F", "M"]}}


def test_an_amount_is_chosen_for_a_table_and_planned(app):
    domain = rp.Domain.from_schema({"fields": [INCOME, SEXES]})
    listed = WorkloadRequest("listed", listed=(("sex",),))
    session = app("workload", Scenario(domain, listed))
    session.multiselect(key="attributes of Sums and means").set_value(["sex"]).run()
    session.button(key="add Sums and means").click().run()
    assert session.scenario.workload.tables == [("sex",), ("income", "sex")]
    assert session.planned.workload.has_amounts.tolist() == [False, True]
    titles = session.planned.accuracy()["item"].tolist()
    assert titles == ["sex", "sum of income in EUR by sex"]
    error = session.planned.standard_errors[1]
    assert f"±{rounded(1.96 * error, 3)} EUR" in plain(session.texts("markdown"))
    # README and notes, two tables and the means with 4,000 bytes each, and 125 a cell (of means at
    # most half of those of sums), 8 a measured number: as the page Release says it.
    n_bytes = 10_000 + 3 * 4_000 + 125 * (2 + 4 + 2) + 8 * (1 + 1 + 2 + 2)  # 23,048
    assert f"the whole release writes about {data_size(n_bytes)}." in plain(
        session.texts("caption")
    )
    assert PlanSteps.of(session.planned).n_bytes(parquet_only=False) == n_bytes


@pytest.mark.nightly
def test_sums_and_means_of_a_release_are_shown(app, tmp_path):
    domain = rp.Domain.from_schema({"fields": [INCOME, SEXES]})
    records = pd.DataFrame({"income": [100.0, 300.0] * 500, "sex": ["F", "M"] * 500})
    workload = rp.Workload.of(domain, [("income", "sex"), ("sex",)])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=50))
    done = rp.release(plan, records, tmp_path / "out", name="made up", ledger=tmp_path / "ledger")
    session = app("results")
    for _ in session.views_of_results(done.folder, ["income", "sex"]):
        assert "Amounts below 0 EUR count as 0" in plain(session.texts("caption"))
        shown = [frame.value for frame in session.dataframe]
        of_sex = done.means("income", "sex")["value"].tolist()
        assert any(frame["value"].tolist() == of_sex for frame in shown if "value" in frame)
    assert session.text_input(key="question").placeholder == "income=mean sex=F"
    session.text_input(key="question").set_value("income=mean sex=M").run()
    mean = done.answer(where={"income": "mean", "sex": "M"})
    assert f"{mean.value:,.2f} EUR, mean of income, from" in plain(session.texts("info"))
    limits = [text for text in session.texts("caption") if "Amounts below 0 EUR" in text]
    assert len(limits) == 2  # of the table, and of the answer
    session.text_input(key="question").set_value("income=sum sex=M").run()
    assert " EUR, sum of income, from the tables" in plain(session.texts("info"))


def test_an_attribute_becomes_one_of_amounts_in_the_grid(app, small):
    session = app("codebook", small)
    session.type_in_grid("codebook grid", 2, "kind", "amounts")
    session.type_in_grid("codebook grid", 2, "maximum", "500")
    assert session.scenario.domain["region"].values == rp.Amounts(0, 500)
    others = session.scenario.domain.attributes[:2]
    assert session.metrics()["Categories"] == str(sum(one.size for one in others))
    assert session.metrics()["Combinations of all attributes"] == str(prod(o.size for o in others))
    # All tables up to 2-way leave it out.
    assert not session.scenario.workload.has_amounts.any()
    assert not session.error
    session.selectbox(key="attribute shown").set_value("region").run()
    assert not session.exception
    assert "those above 500 as 500" in plain(session.texts("caption"))


def test_sums_on_the_page_plan_have_their_unit_and_no_forecast(app):
    domain = rp.Domain.from_schema({"fields": [INCOME, SEXES, {**SEXES, "name": "other"}]})
    listed = WorkloadRequest("listed", listed=(("sex",), ("income", "sex", "other")))
    people = ExpectedCounts((), (), (900.0,))
    scenario = Scenario(domain, listed, record_noun="people", expected=people)
    session = app("plan", scenario)
    words = plain([*session.texts("markdown"), *session.texts("caption")])
    assert "margin of error ±" in words
    assert " EUR]" in words
    assert "Sums and weighted counts cannot be forecast" in words
    assert "0 of 0" not in words


def test_own_counts_that_are_sums_have_their_unit_and_limits(app, tmp_path):
    domain = rp.Domain.from_schema({"fields": [INCOME, SEXES]})
    text = "women: sex == 'F' ± 50\nearned: sum(income) where sex == 'F' ± 90000"
    queries = stated_from_text(domain, text).queries
    plan = query_plan(queries, budget=rp.Budget(rho=50))
    (tmp_path / "records.csv").write_text("income,sex\n" + "100,F\n300,M\n" * 50)
    release(plan, tmp_path / "records.csv", tmp_path / "answers")
    session = app("results", Scenario(domain, record_noun="people"))
    session.text_input(key="results folder").set_value(str(tmp_path / "answers")).run()
    units = session.dataframe[0].value["unit"].tolist()
    assert units == ["people", "EUR, sum of income"]
    assert "those above 200,000 EUR as 200,000" in plain(session.texts("caption"))
