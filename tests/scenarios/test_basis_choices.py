"""Basis choices: in workloads, requests and scenarios, in all tables or in some."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.bases import BasisChoice, basis_choices_of
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Basis
from tests.support.strategies import bases, workloads_with_bases

REGION = rp.Attribute(
    "region", rp.Categories(("a", "b", "c")), groups=(("North",), ("North",), ("South",))
)
DOMAIN = rp.Domain((*rp.Domain.from_sizes({"age": 10, "sex": 2}), REGION))
SCENARIO = Scenario(DOMAIN)


def bases_of(workload: rp.Workload) -> dict[tuple[str, ...], list[Basis]]:
    return {
        table: [workload.basis_of(row, index) for index in workload.attribute_indices(row)]
        for row, table in enumerate(workload.tables)
    }


def test_an_attribute_has_one_basis_everywhere_and_another_in_some_tables():
    scenario = SCENARIO.with_basis("age", rp.Prefix())
    scenario = scenario.with_basis("age", rp.Ranges(), [("sex", "age")])
    assert scenario.request.basis_choices == (
        BasisChoice("age", rp.Prefix()),
        BasisChoice("age", rp.Ranges(), (("age", "sex"),)),
    )
    bases = bases_of(scenario.workload)
    assert bases["age",] == [rp.Prefix()]
    assert bases["age", "sex"] == [rp.Ranges(), rp.Identity()]
    assert bases["age", "region"] == [rp.Prefix(), rp.Identity()]
    assert bases["sex", "region"] == [rp.Identity(), rp.Identity()]


def test_single_values_remove_a_basis_choice():
    scenario = SCENARIO.with_basis("age", rp.Prefix())
    assert scenario.with_basis("age", rp.Identity()) == SCENARIO
    some = SCENARIO.with_basis("age", rp.Prefix(), [("age",)])
    assert some.with_basis("age", rp.Identity(), [("age",)]) == SCENARIO
    assert scenario.with_basis("age", rp.Ranges()).with_basis("age", rp.Prefix()) == scenario


def test_single_values_in_one_table_stand_on_top_of_another_basis_everywhere():
    scenario = SCENARIO.with_basis("age", rp.Prefix())
    scenario = scenario.with_basis("age", rp.Identity(), [("age", "sex")])
    bases = bases_of(scenario.workload)
    assert (bases["age",], bases["age", "sex"][0]) == ([rp.Prefix()], rp.Identity())
    # Without the general way there is nothing left for it to stand on.
    assert scenario.with_basis("age", rp.Identity()) == SCENARIO


def test_bases_of_single_tables_stay_when_all_tables_change():
    scenario = SCENARIO.with_basis("age", rp.Ranges(), [("age",), ("age", "sex")])
    scenario = scenario.with_basis("age", rp.Windows(3), [("age",)])
    everywhere = scenario.with_basis("age", rp.Ranges())
    assert bases_of(everywhere.workload)["age",] == [rp.Windows(3)]
    assert everywhere.request.basis_choices == (
        BasisChoice("age", rp.Ranges()),
        BasisChoice("age", rp.Windows(3), (("age",),)),
    )


def test_basis_choices_of_absent_tables_are_kept_aside():
    scenario = SCENARIO.with_basis("age", rp.Prefix(), [("age", "sex"), ("age",)])
    smaller = scenario.with_request(order=1)
    assert bases_of(smaller.workload)["age",] == [rp.Prefix()]
    assert smaller.with_request(order=2) == scenario
    without = scenario.with_request(only=("sex", "region"))
    assert without.workload.is_marginals
    assert without.with_request(only=()) == scenario


def test_limits_by_cells_count_single_values():
    request = WorkloadRequest(
        "at_most_cells", cells=20, basis_choices=(BasisChoice("age", rp.Ranges()),)
    )
    workload = request.workload(DOMAIN)
    assert workload.tables == WorkloadRequest("at_most_cells", cells=20).workload(DOMAIN).tables
    assert workload.cells[workload.position(("age", "sex"))] == 110
    assert request.text == "All tables of at most 20 cells of single values"


def test_what_is_known_of_the_tables_stays_true():
    """Shortcuts of `with_settings`, `with_group` and `with_basis` end where a new start would."""
    scenario = SCENARIO
    _ = scenario.workload
    for change in (
        lambda s: s.with_basis("age", rp.Prefix()),
        lambda s: s.with_settings([TableSetting(("age",), 3.0)]),
        lambda s: s.with_group(GroupSetting(("age",), target=4.0)),
        lambda s: s.with_basis("region", rp.Hierarchy(), [("region",)]),
        lambda s: s.replaced(name="Other"),
        lambda s: s.with_basis("age", rp.Identity()),
    ):
        scenario = change(scenario)
        afresh = scenario.request.workload(DOMAIN)
        assert bases_of(scenario.workload) == bases_of(afresh)
        assert np.array_equal(scenario.workload.weights, afresh.weights)
        assert np.array_equal(scenario.workload.targets, afresh.targets, equal_nan=True)


@given(workloads_with_bases())
def test_a_request_reproduces_a_workload(workload):
    again = WorkloadRequest.of(workload).workload(workload.domain)
    assert again.bases == workload.bases
    for name in ("members", "basis_index", "weights", "targets"):
        assert np.array_equal(
            getattr(again, name), getattr(workload, name), equal_nan=name == "targets"
        )


@given(workloads_with_bases())
def test_basis_choices_round_trip_through_json(workload):
    scenario = Scenario(workload.domain, WorkloadRequest.of(workload))
    again = Scenario.parse(scenario.text())
    assert again == scenario
    assert again.workload.bases == workload.bases


def test_the_general_basis_is_the_commonest():
    workload = rp.Workload.all_up_to(DOMAIN, 2).with_bases({"age": rp.Prefix()})
    workload = workload.with_bases({"age": rp.Identity()}, tables=[("age",)])
    assert basis_choices_of(workload) == (
        BasisChoice("age", rp.Prefix()),
        BasisChoice("age", rp.Identity(), (("age",),)),
    )


# ---- what cannot be


def test_bases_that_do_not_fit_are_refused():
    with pytest.raises(WorkloadError, match="'age' must have groups"):
        SCENARIO.with_basis("age", rp.Hierarchy())
    with pytest.raises(WorkloadError, match="one of the library's"):
        BasisChoice("age", "prefix")
    with pytest.raises(WorkloadError, match="age × sex does not have the attribute 'region'"):
        BasisChoice("region", rp.Prefix(), (("age", "sex"),))
    with pytest.raises(DomainError, match="no attribute 'height'"):
        SCENARIO.with_basis("height", rp.Prefix())


@pytest.mark.parametrize(
    "basis_choice",
    [
        (BasisChoice("age", rp.Prefix()), BasisChoice("age", rp.Ranges())),
        (
            BasisChoice("age", rp.Prefix(), (("age",),)),
            BasisChoice("age", rp.Ranges(), (("age",),)),
        ),
        (BasisChoice("age", rp.Prefix(), (("age",), ("age",))),),
    ],
)
def test_an_attribute_has_one_basis_in_a_table(basis_choice):
    with pytest.raises(WorkloadError, match="'age' has two bases in"):
        WorkloadRequest(basis_choices=basis_choice)


PREFIX = {"attribute": "age", "basis": {"kind": "prefix"}, "tables": []}


@pytest.mark.parametrize(
    ("basis_choice", "message"),
    [
        ("age", ""),
        ([PREFIX, PREFIX], "two bases in all tables"),
        ([{**PREFIX, "tables": None}], ""),
        ([{"attribute": "age", "basis": {"kind": "prefix"}}], "must hold exactly .*tables"),
        ([{**PREFIX, "tables": [["sex"]]}], "does not have the attribute 'age'"),
        ([{**PREFIX, "tables": ["age"]}], "list of names"),
        ([{**PREFIX, "tables": [["age", "height"]]}], "no attribute 'height'"),
        ([{**PREFIX, "attribute": "height"}], "no attribute 'height'"),
        ([{**PREFIX, "attribute": 3}], "list of names"),
        ([{"attribute": "age"}], "must hold exactly attribute, basis"),
        ([{**PREFIX, "basis": {"kind": "median"}}], "got 'median'"),
        ([{**PREFIX, "basis": {"kind": "windows", "width": 0}}], "at least 1, got 0"),
        ([{**PREFIX, "basis": {"kind": "windows"}}], "must hold exactly kind, width"),
        ([{**PREFIX, "basis": {"kind": "hierarchy", "widths": []}}], "must have groups"),
        ([{**PREFIX, "basis": "prefix"}], ""),
    ],
)
def test_unusable_basis_choices_of_a_file_are_refused(basis_choice, message):
    content = json.loads(SCENARIO.text())
    content["tables"]["basis_choices"] = basis_choice
    with pytest.raises(WorkloadError, match=f"not a usable scenario: .*{message}"):
        Scenario.parse(json.dumps(content))


def test_a_basis_that_does_not_fit_is_refused_in_a_file_where_no_table_has_it_too():
    content = json.loads(SCENARIO.with_request(only=("sex",)).text())
    content["tables"]["basis_choices"] = [
        {**PREFIX, "basis": {"kind": "hierarchy", "widths": [10]}}
    ]
    with pytest.raises(WorkloadError, match="below the 10 values of attribute 'age'"):
        Scenario.parse(json.dumps(content))


# ---- even totals


def test_uniform_references_reach_the_plan():
    scenario = SCENARIO.with_basis("age", rp.Prefix())
    even = scenario.replaced(uniform_reference=True)
    again = Scenario.parse(even.text())
    assert again == even
    assert json.loads(even.text())["uniform_reference"] is True
    made = plan_tables(
        scenario.workload, loss=scenario.loss, budget=scenario.budget, uniform_reference=True
    )
    assert even.table_plan().text == made.text
    assert even.table_plan().loss_value > scenario.table_plan().loss_value


@pytest.mark.parametrize("value", [1, "yes", None])
def test_uniform_reference_is_true_or_false(value):
    content = SCENARIO.to_json() | {"uniform_reference": value}
    with pytest.raises(WorkloadError, match="must be true or false"):
        Scenario.from_json(content)


def test_a_plan_tells_whether_totals_are_even():
    scenario = SCENARIO.with_basis("age", rp.Prefix())
    plan = scenario.table_plan()
    assert not plan.has_uniform_reference
    assert not Scenario.of_plan(plan).uniform_reference
    assert Scenario.of_plan(plan) == scenario
    plain = SCENARIO.replaced(uniform_reference=True).table_plan()  # it has no strategies
    assert not plain.has_uniform_reference
    even = scenario.replaced(uniform_reference=True).table_plan()
    assert even.has_uniform_reference
    assert Scenario.of_plan(even).table_plan().text == even.text


@given(st.data())
def test_every_basis_fits_its_attribute(data):
    basis = data.draw(bases(REGION))
    assert SCENARIO.with_basis("region", basis).workload.bases[2] in (
        (basis,),
        (rp.Identity(),),
    )
