"""Workload: builders, canonical order, and everything that is refused."""

import random
import resource
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import (
    CustomBasis,
    Domain,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Target,
    Windows,
    Workload,
)
from rpexplore.errors import DomainError, WorkloadError
from tests.support.generalised import basis_matrix, workloads_with_bases
from tests.support.processor_time import PATIENCE
from tests.support.strategies import domains, workloads

SIZES = {"age": 100, "sex": 2, "region": 16, "one": 1}


@pytest.fixture
def domain():
    return Domain.from_sizes(SIZES)


def all_sets(domain, orders):
    return [table for k in orders for table in combinations(domain.names, k)]


@given(domains(), st.data())
@settings(deadline=None, max_examples=40)
def test_builders_against_itertools(domain, data):
    k = data.draw(st.integers(0, len(domain)))
    assert Workload.all_of_order(domain, k).tables == all_sets(domain, [k])
    assert Workload.all_up_to(domain, k).tables == all_sets(domain, range(k + 1))
    cells = data.draw(st.integers(1, 200))
    assert Workload.all_with_at_most(domain, cells=cells).tables == [
        table
        for table in all_sets(domain, range(len(domain) + 1))
        if np.prod([domain[name].size for name in table]) <= cells
    ]


@given(workloads())
@settings(deadline=None, max_examples=40)
def test_order_of_the_input_does_not_matter(workload):
    rows = list(
        zip(workload.tables, workload.weights.tolist(), workload.targets.tolist(), strict=True)
    )
    random.Random(1).shuffle(rows)
    tables, weights, targets = zip(*rows, strict=True)
    again = Workload.of(
        workload.domain, [table[::-1] for table in tables], weights=weights, targets=targets
    )
    for name in ("members", "weights", "targets"):
        np.testing.assert_array_equal(getattr(again, name), getattr(workload, name))


def test_canonical_order_is_by_order_then_lexicographic(domain):
    workload = Workload.of(domain, [("region", "age"), "sex", ("sex", "age"), "age", ()])
    assert workload.tables == [(), ("age",), ("sex",), ("age", "sex"), ("age", "region")]
    assert workload.orders.tolist() == [0, 1, 1, 2, 2]
    assert workload.cells.tolist() == [1, 100, 2, 200, 1600]
    assert workload.exact_cells.tolist() == [1, 100, 2, 200, 1600]
    assert [workload.position(table) for table in workload.tables] == list(range(5))
    assert workload.position(("sex", "age")) == 3
    assert workload.describe(0) == "(total)"
    assert workload.describe(4) == "(age × region)"


def test_exact_cells_beyond_floats():
    domain = Domain.from_sizes({f"a{i}": 999_983 for i in range(4)})
    workload = Workload.of(domain, [domain.names])
    assert workload.exact_cells.tolist() == [999_983**4]
    assert workload.cells[0] == pytest.approx(999_983**4, rel=1e-15)


def test_bare_text_is_one_attribute(domain):
    assert Workload.of(domain, ["age", ("sex",)]).tables == [("age",), ("sex",)]
    assert Workload.of(domain, ["age"]).with_weights({"age": 3}).weights.tolist() == [3]


def test_weights_and_targets_follow_their_tables(domain):
    workload = Workload.of(domain, ["sex", "age"], weights=[2, 3], targets=[None, 5])
    assert workload.weights.tolist() == [3, 2]
    np.testing.assert_array_equal(workload.targets, [5, np.nan])
    changed = workload.with_weights({"sex": 7}).with_targets({("sex",): 1, "age": None})
    assert changed.weights.tolist() == [3, 7]
    np.testing.assert_array_equal(changed.targets, [np.nan, 1])
    assert workload.weights.tolist() == [3, 2], "the original is a frozen value"


def test_union(domain):
    left = Workload.of(domain, ["age", ("age", "sex", "region")], weights=[2, 3])
    united = Workload.of(domain, [(), "sex"], targets=[4, None]) | left
    assert united.tables == [(), ("age",), ("sex",), ("age", "sex", "region")]
    assert united.weights.tolist() == [1, 2, 1, 3]
    np.testing.assert_array_equal(united.targets, [4, np.nan, np.nan, np.nan])


def test_arrays_are_read_only(domain):
    workload = Workload.all_up_to(domain, 2)
    for name in ("members", "weights", "targets"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(workload, name)[0] = 1


def test_changing_the_callers_arrays_changes_nothing(domain):
    members, weights = np.array([[0], [1]], dtype=np.int32), np.array([1.0, 2.0])
    workload = Workload(domain, members, weights, np.full(2, np.nan))
    members[:], weights[:] = 0, 0
    assert workload.tables == [("age",), ("sex",)]
    assert workload.weights.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: Workload.of(d, [("sex", "age"), ("age", "sex")]), r"\(age × sex\) is .* twice"),
        (lambda d: Workload.of(d, [(), ()]), r"\(total\) is in the workload twice"),
        (lambda d: Workload.of(d, [("age",), "age"]), r"\(age\) is in the workload twice"),
        (lambda d: Workload.of(d, []), r"at least one table, got none"),
        (lambda d: Workload.of(d, ["age"], weights=[1, 2]), r"1 tables but 2 weights"),
        (lambda d: Workload.of(d, ["age", "sex"], targets=[1]), r"2 tables but 1 targets"),
        (lambda d: Workload.all_up_to(d, 1) | Workload.of(d, ["sex"]), r"\(sex\) is .* twice"),
        (lambda d: Workload.all_of_order(d, 5), r"order must be .* 0 to 4 .* got 5"),
        (lambda d: Workload.all_of_order(d, -1), r"order must be .* got -1"),
        (lambda d: Workload.all_up_to(d, -2), r"order must be .* got -2"),
        (lambda d: Workload.all_up_to(d, 1.0), r"order must be .* got 1.0"),
        (lambda d: Workload.all_up_to(d, True), r"order must be .* got True"),
        (lambda d: Workload.all_with_at_most(d, cells=0), r"cells must be .* got 0"),
        (lambda d: Workload.all_with_at_most(d, cells=float("nan")), r"cells must be .* got nan"),
        (lambda d: Workload.all_with_at_most(d, cells="9"), r"cells must be .* got '9'"),
        (lambda d: Workload.of(d, ["age"]).position("sex"), r"\(sex\) is not in the workload"),
        (lambda d: Workload.of(d, ["age"]).with_weights({"sex": 1}), r"\(sex\) is not in"),
        (lambda d: Workload.of(d, ["age"], weights=["much"]), r"weight.* got 'much'|much"),
        (
            lambda d: Workload.of(d, ["age"]) | Workload.of(Domain.from_sizes({"z": 2}), ["z"]),
            r"over one domain",
        ),
    ],
)
def test_refused(domain, make, message):
    with pytest.raises(WorkloadError, match=message):
        make(domain)


@pytest.mark.parametrize(
    ("members", "weights"),
    [
        ([[0], [1]], [1, 1, 9]),  # one weight too many must not be dropped
        ([[0], [1]], [1]),
        ([[0], [9]], [1, 1]),  # no such attribute
        ([[1, 0], [0, 1]], [1, 1]),  # one set in two orders
        ([[0, 0]], [1]),
        ([[-1, 0]], [1]),  # padding comes last
        ([0, 1], [1, 1]),
    ],
)
def test_constructor_refuses_what_is_no_workload(domain, members, weights):
    with pytest.raises(WorkloadError):
        Workload(domain, np.array(members), np.array(weights), np.full(len(members), np.nan))


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), -float("inf")])
def test_unusable_weight_or_target_is_named(domain, value):
    tables = [("age", "sex"), "age"]
    with pytest.raises(WorkloadError, match=rf"weight of table \(age × sex\).* {value}"):
        Workload.of(domain, tables, weights=[value, 1])
    if value == value:  # NaN says that there is no target
        with pytest.raises(WorkloadError, match=rf"target .* \(age × sex\).* {value}"):
            Workload.of(domain, tables, targets=[value, 1])
        with pytest.raises(WorkloadError, match=rf"target .* \(age\).* {value}"):
            Workload.of(domain, tables).with_targets({"age": value})


def test_unknown_and_repeated_attributes_are_named(domain):
    with pytest.raises(DomainError, match="no attribute 'income'"):
        Workload.of(domain, [("age", "income")])
    with pytest.raises(DomainError, match=r"'age' is named twice in \(age × sex × age\)"):
        Workload.of(domain, [("age", "sex", "age")])


def test_bound_on_cells_may_be_any_whole_number(domain):
    assert len(Workload.all_with_at_most(domain, cells=10**30)) == 16


CALLS = """
all_of_order(domain, 3)
all_up_to(domain, 3)
all_of_order(domain, 300)
all_up_to(domain, 1300)
all_with_at_most(domain, cells=8)
"""

SCRIPT = f"""
import pathlib
import re
from rpexplore import CustomBasis, Domain, Hierarchy, Identity, Prefix, Ranges, Target, Windows
from rpexplore import Workload
from rpexplore.errors import WorkloadError

domain = Domain.from_sizes({{f"a{{i}}": 2 for i in range(1300)}})
for call in {CALLS.split(chr(10))[1:-1]!r}:
    try:
        eval("Workload." + call)
    except WorkloadError as error:
        assert "at most 5,000,000" in str(error)
    else:
        raise SystemExit(f"{{call}} was not refused")
# Not ru_maxrss, which starts with the peak of the process that this one was forked from.
status = pathlib.Path("/proc/self/status")
if status.exists():
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1])
    assert peak < 500_000, f"{{peak}} kB"
"""


def test_too_many_tables_are_refused_before_they_are_made():
    """1,300 attributes: 365 million sets of three, which would need more than 4 GB."""

    def cap_memory():
        resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        preexec_fn=cap_memory,
        env={"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]


def test_one_table_given_two_weights_is_refused(domain):
    workload = Workload.of(domain, [("age", "sex")])
    with pytest.raises(WorkloadError, match=r"\(age × sex\) is given two weights"):
        workload.with_weights({("age", "sex"): 5, ("sex", "age"): 2})
    with pytest.raises(WorkloadError, match="weights of tables must be numbers"):
        workload.with_weights({("age", "sex"): "x"})


def test_numpy_numbers_are_numbers(domain):
    assert len(Workload.all_of_order(domain, np.int64(1))) == 4
    few = Workload.all_with_at_most(domain, cells=np.int32(9))
    assert few.tables == Workload.all_with_at_most(domain, cells=9).tables


def test_representations_are_short(domain):
    assert repr(Workload.all_up_to(domain, 1)) == "<Workload of 5 tables over 4 attributes>"


def test_tables_are_found_by_their_attributes(domain):
    workload = Workload.of(domain, [(), "sex", ("age", "sex")])
    assert [workload.find(indices) for indices in ((), (1,), (0, 1))] == [0, 1, 2]
    assert workload.find((0,)) is None
    assert workload.find((0, 1, 2)) is None
    total = Workload.all_up_to(domain, 0)
    assert (total.find(()), total.find((0,))) == (0, None)


@given(workloads())
def test_each_table_is_found_where_it_stands(workload):
    for position in range(len(workload)):
        assert workload.find(workload.attribute_indices(position)) == position
        assert workload.position(workload.tables[position]) == position


@given(workloads())
def test_tables_that_contain_attributes(workload):
    for table in workload.tables:
        expected = [row for row, each in enumerate(workload.tables) if set(table) <= set(each)]
        assert workload.containing(table).tolist() == expected


def test_builders_are_narrowed(domain):
    assert Workload.all_up_to(domain, 2, only=["age", "sex"], containing="sex").tables == [
        ("sex",),
        ("age", "sex"),
    ]
    assert Workload.all_of_order(domain, 1, cells=2).tables == [
        (name,) for name in domain.names if domain[name].size <= 2
    ]
    assert Workload.all_with_at_most(domain, cells=1, only=()).tables == [()]


# ---- bases of attributes


def test_marginals_have_single_values(domain):
    workload = Workload.of(domain, ["age", ("age", "sex")])
    assert workload.is_marginals
    assert workload.bases == ((Identity(),), (Identity(),), (), ())
    assert workload.basis_index.tolist() == [[0, -1], [0, 0]]
    assert workload.attribute_bases == ((0, Identity()), (1, Identity()))
    assert workload.n_queries == [100, 2]
    np.testing.assert_array_equal(workload.cells, workload.counted_cells)


def test_attributes_have_bases_in_all_tables_or_in_some(domain):
    plain = Workload.of(domain, [(), "age", ("age", "sex"), ("age", "region")])
    mixed = plain.with_bases({"age": Ranges()}).with_bases({"age": Prefix()}, tables=["age"])
    assert plain.is_marginals
    assert not mixed.is_marginals
    assert mixed.bases == ((Prefix(), Ranges()), (Identity(),), (Identity(),), ())
    assert [mixed.basis_of(row, 0) for row in (1, 2, 3)] == [Prefix(), Ranges(), Ranges()]
    assert mixed.basis_of(2, 1) == Identity()
    assert mixed.cells.tolist() == [1, 100, 5050 * 2, 5050 * 16]
    assert mixed.exact_cells.tolist() == [1, 100, 10_100, 80_800]
    assert mixed.counted_cells.tolist() == [1, 100, 200, 1600]
    assert mixed.attribute_basis_index.tolist() == [[-1, -1], [0, -1], [1, 2], [1, 3]]
    # What no table asks any more is forgotten, and single values come back.
    again = mixed.with_bases({"age": Identity()})
    assert again.is_marginals
    assert again.has_tables_of(plain)
    assert not mixed.has_tables_of(plain)


@given(workloads_with_bases(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_the_order_in_which_bases_were_given_does_not_matter(workload, shuffled):
    """Asked table by table, in any order, from a union of its tables in any order."""
    tables = list(enumerate(workload.tables))
    shuffled.shuffle(tables)
    again = None
    for row, table in tables:
        one = Workload.of(workload.domain, [table], weights=[float(workload.weights[row])])
        names = list(table)
        shuffled.shuffle(names)
        for name in names:
            index = workload.domain.position(name)
            one = one.with_bases({name: workload.basis_of(row, index)})
        again = one if again is None else again | one
    for name in ("members", "weights", "basis_index", "attribute_basis_index", "cells"):
        np.testing.assert_array_equal(getattr(again, name), getattr(workload, name))
    assert again.bases == workload.bases
    assert again.has_tables_of(workload)


@given(workloads_with_bases())
@settings(deadline=None, max_examples=60)
def test_bases_of_each_table(workload):
    for row in range(len(workload)):
        cells = 1
        for column, index in enumerate(workload.attribute_indices(row)):
            basis = workload.basis_of(row, index)
            assert workload.attribute_bases[workload.attribute_basis_index[row, column]] == (
                index,
                basis,
            )
            assert workload.bases[index][workload.basis_index[row, column]] == basis
            cells *= len(basis_matrix(basis, workload.domain.attributes[index]))
        assert workload.exact_cells[row] == cells == workload.cells[row]
        assert np.all(workload.basis_index[row, len(workload.attribute_indices(row)) :] == -1)
    rows = workload.n_queries
    assert rows == [
        len(basis_matrix(basis, workload.domain.attributes[index]))
        for index, basis in workload.attribute_bases
    ]
    for name in ("basis_index", "members"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(workload, name)[0] = 0
    changed = workload.with_weights({workload.tables[0]: 7.0})
    assert changed.has_tables_of(workload)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: w.with_bases({"age": "ranges"}), r"'age' must be one of .* got str"),
        (lambda w: w.with_bases({"age": Ranges}), r"'age' must be one of .* got "),
        (lambda w: w.with_bases({"sex": CustomBasis([[1, 0, 1]])}), r"'sex'"),
        (lambda w: w.with_bases({"age": Hierarchy()}), r"'age' must have groups"),
        (lambda w: w.with_bases({"age": Hierarchy((100,))}), r"below the 100 values"),
        (
            lambda w: w.with_bases({"age": Prefix()}, tables=["sex"]),
            r"\(sex\) does not have .* 'age'",
        ),
        (lambda w: w.with_bases({"age": Prefix()}, tables=["region"]), r"\(region\) is not in the"),
    ],
)
def test_bases_that_are_refused(domain, make, message):
    with pytest.raises(WorkloadError, match=message):
        make(Workload.of(domain, ["age", "sex", ("age", "sex")]))


def test_unknown_attributes_have_no_basis(domain):
    with pytest.raises(DomainError, match="no attribute 'income'"):
        Workload.all_up_to(domain, 1).with_bases({"income": Prefix()})


def test_one_table_cannot_be_listed_with_two_bases(domain):
    one = Workload.of(domain, ["age"])
    with pytest.raises(WorkloadError, match="twice"):
        _ = one | one.with_bases({"age": Windows(7)})


def test_bases_that_are_not_listed_are_refused(domain):
    members = np.array([[0], [1]])
    numbers = np.ones(2), np.full(2, np.nan)
    bases = ((Prefix(),), (Identity(),), (), ())
    for ways in ([[1], [0]], [[-1], [0]], [[0]]):
        with pytest.raises(WorkloadError):
            Workload(domain, members, *numbers, bases, np.array(ways))
    with pytest.raises(WorkloadError):
        Workload(domain, members, *numbers, bases[:2], np.array([[0], [0]]))


# ---- required


def test_required_are_sorted_along_and_united(domain):
    workload = Workload.of(
        domain, [("age", "sex"), ("sex",)], targets=[5, 6], required=[True, False]
    )
    assert workload.required.tolist() == [False, True]
    united = workload | Workload.of(domain, [()], targets=[Target(3, required=True)])
    assert united.required.tolist() == [True, False, True]
    assert united.targets.tolist() == [3, 6, 5]
    assert not Workload.all_up_to(domain, 1).required.any()
    assert united.with_bases({"age": Prefix()}).required.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="read-only"):
        united.required[0] = False


def test_targets_and_required_are_changed(domain):
    workload = Workload.of(domain, [(), ("age",)], targets=[Target(3, required=True), None])
    assert workload.with_targets({(): 4}).required.tolist() == [True, False]
    assert workload.with_targets({(): Target(4)}).required.tolist() == [False, False]
    assert workload.with_targets({(): None}).required.tolist() == [False, False]
    margin = workload.with_targets({("age",): Target.parse("±50 required")})
    assert margin.required.tolist() == [True, True]
    assert margin.targets[1] == Target.parse("±50").standard_error
    assert workload.with_weights({(): 2}).required.tolist() == [True, False]
    assert margin.with_required({(): False}).required.tolist() == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda w: w.with_required({("age",): True}),
            r"table \(age\) must meet its target but has none",
        ),
        (lambda w: w.with_required({(): 1}), "must be true or false, got 1"),
        (
            lambda w: w.with_required({("age",): False, "age": False}),
            r"\(age\) is given two required",
        ),
        (lambda w: replace(w, required=np.array([True])), "2 times true or false"),
        (lambda w: replace(w, required=np.array([1, 0])), "2 times true or false, got int"),
        (lambda w: Workload.of(w.domain, [()], required=[True]), "but has none"),
        (
            lambda w: Workload.of(w.domain, [()], targets=[3], required=[True, True]),
            "2 required",
        ),
    ],
)
def test_required_that_cannot_be_are_refused(domain, change, message):
    workload = Workload.of(domain, [(), ("age",)], targets=[3, None])
    with pytest.raises(WorkloadError, match=message):
        change(workload)


def test_up_to_more_attributes_than_there_are_is_up_to_all():
    domain = Domain.from_sizes({"sex": 2, "age": 3})
    assert Workload.all_up_to(domain, 7).tables == Workload.all_up_to(domain, 2).tables
