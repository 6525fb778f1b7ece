"""How a plan's tables are written down, so that programs read them back exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.reports.recipe import Recipe
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest
from rpexplore.workload.table_text import table_from_text, texts_of_tables, workload_from_csv
from tests.reports.reports import plan_of
from tests.reports.scenarios import HOSTILE, SCENARIOS, hostile_domain
from tests.support import strategies


def test_every_request_gives_its_own_plan(scenario, plan):
    request = Recipe.of(plan, scenario).request
    if scenario.request.weighted_by:  # the list of its tables has the weights
        assert request.listed == tuple(plan.workload.tables)
        assert request.workload(scenario.domain).has_tables_of(plan.workload)
    else:
        assert request is scenario.request


def test_several_lines_are_written_as_one_list():
    scenario = SCENARIOS["up to"]
    several = scenario.with_lines([TableLine(order=1), TableLine("of_order", order=2)])
    assert several.workload.has_tables_of(scenario.workload)
    assert Recipe.of(scenario.table_plan(), several).request == scenario.request


def test_a_request_for_another_workload_is_not_believed():
    plan = plan_of("up to")
    for other in ("of order", "groups", "hostile", "narrowed", "prefix"):
        recipe = Recipe.of(plan, SCENARIOS[other])
        assert recipe.request == WorkloadRequest("up_to", order=2)


def test_settings_of_absent_tables_are_left_out():
    request = SCENARIOS["listed"].request
    aside = SCENARIOS["groups"].request.settings  # (age, sex) is not listed
    scenario = SCENARIOS["listed"].replaced(
        request=WorkloadRequest("listed", listed=request.listed, settings=request.settings + aside)
    )
    recipe = Recipe.of(scenario.table_plan(), scenario)
    assert [setting.attributes for setting in recipe.settings] == [()]


def test_basis_choices_of_absent_tables_are_left_out():
    basis_choice = (
        BasisChoice("age", rp.Prefix(), (("age",), ("age", "sex", "region"))),
        BasisChoice("region", rp.Ranges(), (("sex", "region", "one"),)),
    )
    scenario = SCENARIOS["up to"].with_request(basis_choices=basis_choice)
    recipe = Recipe.of(scenario.table_plan(), scenario)
    assert recipe.request is scenario.request
    assert recipe.basis_choices == [BasisChoice("age", rp.Prefix(), (("age",),))]


@pytest.mark.by_day(9)
def test_the_csv_of_accuracy_is_read_back_exactly(plan):
    read = workload_from_csv(plan.workload.domain, csv_of_accuracy(plan), "tables.csv")
    for name in ("members", "weights", "targets"):
        assert np.array_equal(
            getattr(read, name), getattr(plan.workload, name), equal_nan=name == "targets"
        )


# Names that are made of what separates and quotes names.
names = st.lists(st.text('ab,;×" total', min_size=1, max_size=6), min_size=1, max_size=5)


@given(names.map(lambda each: [name for name in dict.fromkeys(each) if name.strip()]))
@settings(max_examples=300)
def test_every_table_of_any_names_has_a_text_of_its_own(names):
    domain = rp.Domain.from_sizes(dict.fromkeys([*names, "x"], 2))
    tables = rp.Workload.all_up_to(domain, len(domain)).tables
    texts = list(texts_of_tables(domain, tables))
    assert [table_from_text(domain, text) for text in texts] == tables
    assert len(set(texts)) == len(tables)


@pytest.mark.nightly
@given(strategies.described_domains())
def test_so_has_every_table_of_any_schema(domain):
    tables = rp.Workload.all_up_to(domain, len(domain)).tables
    assert [table_from_text(domain, text) for text in texts_of_tables(domain, tables)] == tables


def test_hostile_names_have_texts():
    domain = hostile_domain()
    tables = [(), (HOSTILE[3],), ("a", "b"), ("a,b",), ("a,b", "a", "b")]
    assert [table_from_text(domain, text) for text in texts_of_tables(domain, tables)] == tables
