"""What a release needs: the limits are those that release and planner refuse at; remedies help."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError, ReleaseError
from rpexplore.planning.mechanism.subsets import MAX_INCIDENCES, MAX_LARGEST_ORDER
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import feasibility
from rpexplore.releases.feasibility import Fit, ReleaseSize, computer_memory
from rpexplore.releases.large_tables import MAX_SLICED_CELLS, MAX_TABLE_CELLS
from rpexplore.releases.measurement import PART_CELLS, check_measurable
from rpexplore.releases.table_cells import BYTES_PER_CELL, BYTES_PER_TABLE
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.workload import Workload
from tests.support.generalised import any_plan, workloads_with_bases
from tests.support.strategies import workloads

ROOM = {"free_disk": 1e15, "memory": 1e12}


def domain_of(*sizes):
    return rp.Domain.from_sizes({f"a{i:02}": size for i, size in enumerate(sizes)})


def plan_of(workload):
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))


@given(workloads())
def test_small_workloads_fit(workload):
    assert Fit.of(workload, free_disk=1e9, memory=1e9) == Fit((), True, None)
    size = ReleaseSize.of(workload)
    of_cells = BYTES_PER_CELL * sum(workload.exact_cells)
    assert of_cells < size.disk == of_cells + BYTES_PER_TABLE * len(workload)
    assert 0 < size.memory < 1e9
    assert size.seconds > 0
    assert "second" in size.text()


def test_a_table_of_more_than_a_billion_cells():
    workload = Workload.all_up_to(domain_of(1001, 1000, 1000), 3)
    fit = Fit.of(workload, free_disk=1e11, memory=8e9)
    assert fit.can_be_planned
    assert "a00 × a01 × a02 has about 1 billion cells" in fit.obstacles[0]
    assert f"a table of a release can have {MAX_SLICED_CELLS:,}" in fit.obstacles[0]
    assert (fit.remedy.most_cells, fit.remedy.dropped) == (10**7, 1)
    # It is no false alarm: the release would refuse the plan, which can be made.
    with pytest.raises(ReleaseError, match="1,001,000,000 cells"):
        check_measurable(plan_of(workload))


@pytest.mark.parametrize(
    ("sizes", "order", "obstacle"),
    [
        ((MAX_TABLE_CELLS // 10**6, 10**6), 2, None),
        ((1000, 10**6), 2, None),
        ((1001, 10**6), 2, "can have 1,000,000,000"),
        ((3, 5000, 5000), 3, "for each value of its first attribute"),
    ],
)
def test_the_limit_of_a_table_is_that_of_the_release(sizes, order, obstacle):
    fit = Fit.of(Workload.all_of_order(domain_of(*sizes), order), **ROOM)
    assert (obstacle is None) == (fit.obstacles == ())
    assert obstacle is None or obstacle in fit.obstacles[0]


def test_many_tables_that_are_too_much_together():
    workload = Workload.all_of_order(domain_of(*[4 * 10**4] * 4), 1) | Workload.all_of_order(
        domain_of(*[4 * 10**4] * 4), 2
    )
    fit = Fit.of(workload, free_disk=1e15, memory=1e15)
    assert "can have 1,000,000,000" in fit.obstacles[0]
    workload = Workload.all_up_to(domain_of(*[300] * 20), 3)
    assert "will take about" in Fit.of(workload, **ROOM).obstacles[0]
    fit = Fit.of(workload, free_disk=1e12, memory=1e12)
    assert "are free on this computer" in fit.obstacles[0]
    assert fit.remedy.most_cells == 100_000
    check_measurable(plan_of(workload))


def test_cells_that_are_counted_in_parts_take_no_more_memory():
    domain = domain_of(*[100] * 20)
    names = list(combinations(domain.names, 3))
    some, all_of_them = (Workload.of(domain, names[:n]) for n in (200, 1000))
    assert np.sum(some.counted_cells) == PART_CELLS
    assert ReleaseSize.of(all_of_them).memory == ReleaseSize.of(some).memory < 2e9


@pytest.mark.parametrize(("free_disk", "memory"), [(1e8, 1e12), (1e12, 4.3e8)])
def test_scarce_disk_or_memory(free_disk, memory):
    workload = Workload.all_up_to(domain_of(100, 100, 100), 3)
    fit = Fit.of(workload, free_disk=free_disk, memory=memory)
    (obstacle,) = fit.obstacles
    assert "a00 × a01 × a02, has about 1 million cells" in obstacle
    assert ("are free" in obstacle, "of memory" in obstacle) == (free_disk < 1e9, memory < 1e9)
    assert (fit.remedy.most_cells, fit.remedy.dropped) == (10_000, 1)


def test_a_long_run_is_told(monkeypatch):
    """As of 1,656,216 tables, of which half a million would take the test seconds to name."""
    workload = Workload.all_up_to(domain_of(*[2] * 42), 3)
    seconds = 0.0025 * 1_656_216 / len(workload)
    monkeypatch.setattr(feasibility, "_SECONDS_PER_PACKED_TABLE", seconds)
    fit = Fit.of(workload, **ROOM)
    assert len(fit.obstacles) == 1
    assert "will take about 69 minutes" in fit.obstacles[0]
    assert fit.remedy is None


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("workload", "obstacle", "most_order"),
    [
        (Workload.of(domain_of(*[2] * 24), [[f"a{i:02}" for i in range(24)], ["a00"]]), "2^24", 22),
        (Workload.all_of_order(domain_of(*[2] * 18), 11), "at most 60,000,000", None),
        (Workload.all_up_to(domain_of(*[2] * 18), 12), "at most 60,000,000", 9),
    ],
)
def test_what_cannot_be_planned_is_what_the_planner_refuses(workload, obstacle, most_order):
    fit = Fit.of(workload, **ROOM)
    assert not fit.can_be_planned
    assert obstacle in fit.obstacles[0]
    assert len(fit.obstacles) == 1
    with pytest.raises(PlanError, match="subsets"):
        plan_of(workload)
    assert (fit.remedy and fit.remedy.most_order) == most_order
    if most_order is not None:
        subsets = 2.0 ** workload.orders[workload.orders <= most_order]
        assert sum(subsets) <= MAX_INCIDENCES
        assert most_order <= MAX_LARGEST_ORDER


def test_attributes_of_one_value_are_no_trouble():
    """They have no residuals, so that not even thirty of them make a plan too large."""
    domain = domain_of(*[1] * 30, 5)
    workload = Workload.of(domain, [domain.names])
    assert Fit.of(workload, **ROOM) == Fit((), True, None)
    assert len(plan_of(workload).closure) == 2


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=4),
    st.floats(1e3, 1e9),
    st.floats(4.001e8, 1e9),
)
def test_the_remedy_helps_and_drops_no_more_than_it_says(sizes, free_disk, memory):
    domain = domain_of(*sizes)
    request = WorkloadRequest("up_to", order=4)
    workload = request.workload(domain)
    fit = Fit.of(workload, free_disk=free_disk, memory=memory)
    if fit.remedy is None:
        assert not fit.obstacles or free_disk < BYTES_PER_CELL * 300
        return
    smaller = request.within(most_cells=fit.remedy.most_cells).workload(domain)
    assert Fit.of(smaller, free_disk=free_disk, memory=memory).obstacles == ()
    assert len(workload) - len(smaller) == fit.remedy.dropped > 0
    assert fit.remedy.limit == f"{fit.remedy.most_cells:,} cell" + "s" * (
        fit.remedy.most_cells != 1
    )
    # One more size of table, and it would not fit.
    next_size = min(cells for cells in workload.cells if cells > max(smaller.cells))
    larger = request.within(most_cells=math.ceil(next_size)).workload(domain)
    assert Fit.of(larger, free_disk=free_disk, memory=memory).obstacles


# ---- attributes in other bases than single values


def plain_and_in_ranges(*sizes, order):
    domain = domain_of(*sizes)
    tables = Workload.all_up_to(domain, order)
    return tables, tables.with_bases({name: rp.Ranges() for name in domain.names})


def test_answers_take_disk_and_counts_take_memory():
    plain, in_ranges = plain_and_in_ranges(10, 10, 10, order=3)
    assert in_ranges.cells[-1] == 55**3
    assert in_ranges.counted_cells[-1] == 10**3
    before, after = ReleaseSize.of(plain), ReleaseSize.of(in_ranges)
    more = float(in_ranges.cells.sum() - plain.cells.sum())
    assert after.disk - before.disk == BYTES_PER_CELL * more > 10**7
    assert after.seconds > before.seconds
    # What is kept is as much as before; only the largest table is larger while it is written.
    assert after.memory - before.memory == pytest.approx(40 * (55**3 - 10**3))


@given(workloads_with_bases())
def test_no_basis_has_fewer_answers_than_values(workload):
    """So that what is measured for a table is never larger than the table."""
    assert np.all(workload.cells >= workload.counted_cells)


def test_a_table_of_too_many_answers_is_told_and_refused():
    _, in_ranges = plain_and_in_ranges(500, 500, order=2)
    fit = Fit.of(in_ranges, **ROOM)
    assert "a00 × a01 has about 16 billion cells" in fit.obstacles[0]
    assert (fit.remedy.most_cells, fit.remedy.dropped) == (1_000, 1)
    assert fit.remedy.limit == "1,000 cells of single values"
    with pytest.raises(ReleaseError, match="15,687,562,500 cells"):
        check_measurable(any_plan(in_ranges, 1))


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.integers(0, 15),
    st.floats(1e5, 1e9),
    st.floats(4.001e8, 1e9),
)
def test_the_remedy_helps_whatever_the_bases(sizes, in_ranges, free_disk, memory):
    domain = domain_of(*sizes)
    names = [name for index, name in enumerate(domain.names) if in_ranges >> index & 1]
    basis_choice = tuple(BasisChoice(name, rp.Ranges()) for name in names)
    request = WorkloadRequest("up_to", order=4, basis_choices=basis_choice)
    workload = request.workload(domain)
    fit = Fit.of(workload, free_disk=free_disk, memory=memory)
    if fit.remedy is None:
        return
    smaller = request.within(most_cells=fit.remedy.most_cells).workload(domain)
    assert Fit.of(smaller, free_disk=free_disk, memory=memory).obstacles == ()
    assert len(workload) - len(smaller) == fit.remedy.dropped > 0


def test_this_computer_has_memory():
    assert 1e8 < computer_memory() < 1e15
