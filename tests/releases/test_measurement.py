"""Measurement: Ξ x against dense matrices, noise of exactly the plan's scale, nothing overflows."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Budget, Domain, Prefix, Ranges, SumOfVariances, Workload
from rpexplore.common.numbers import Decimals
from rpexplore.data.source import Counts
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.measurement import check_countable, check_measurable, measure_residual
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA
from tests.support.exact_counts import counts_of
from tests.support.generalised import any_plan, any_strategy, workloads_with_bases
from tests.support.oracles import kron
from tests.support.strategies import domains, workloads

DEVIATIONS = 6.8  # a normal variable is farther out with probability 1e-11


def plan_of(sizes, tables=None, rho="1/2") -> TablePlan:
    domain = Domain.from_sizes({f"a{i}": size for i, size in enumerate(sizes)})
    workload = Workload.of(domain, [domain.names] if tables is None else tables)
    return plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=rho))


def records_of(domain: Domain, n_records: int, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    codes = {index: rng.integers(0, n, n_records) for index, n in enumerate(domain.sizes)}
    return counts_of(codes, n_records, domain.sizes)


def without_noise(size, gamma_squared):
    return np.zeros(size, dtype=np.int64)


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", without_noise)


@dataclass
class Crowd:
    """Stands in for records: as many as one likes, all alike."""

    n_records: int

    sizes: tuple[int, ...] = ()

    def counts(self, indices):
        counts = np.zeros([self.sizes[index] for index in indices], dtype=np.int64)
        counts[(0,) * len(indices)] = self.n_records
        return counts


@settings(max_examples=40, deadline=None)
@given(workloads(domains(max_attributes=3)), st.integers(0, 2**32), st.integers(0, 50))
def test_without_noise_the_exact_residual_is_measured(workload, seed, n_records):
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    records = records_of(workload.domain, n_records, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", without_noise)
        for residual in range(len(planned.closure)):
            indices = planned.closure.attributes(residual)
            sizes = [int(workload.domain.sizes[index]) for index in indices]
            xi = reduce(
                np.kron, [n * np.eye(n, dtype=int) - 1 for n in sizes], np.ones((1, 1), dtype=int)
            )
            drawn = measure_residual(planned, residual, records)
            assert drawn.dtype == np.int64
            assert drawn.shape == tuple(sizes)
            assert np.array_equal(drawn.ravel(), xi @ records.counts(indices).ravel())


def test_sensitivity_is_what_the_cost_is_computed_from(exact):
    """One record more changes Ξ x by ∏ n_i (n_i − 1) in squared length, wherever it is."""
    planned = plan_of([3, 2, 4])
    rows = np.array(np.meshgrid(range(3), range(2), range(4))).reshape(3, -1)
    for residual in range(len(planned.closure)):
        indices = planned.closure.attributes(residual)
        sizes = [int(planned.closure.sizes[index]) for index in indices]
        gamma_squared = planned.sigma_squared.fraction(residual) * np.prod(sizes, dtype=object) ** 2
        cost = Fraction(int(np.prod([n * (n - 1) for n in sizes], dtype=object)), 1) / gamma_squared
        p = np.prod([Fraction(n - 1, n) for n in sizes], dtype=object)
        assert cost == p / planned.sigma_squared.fraction(residual)
        for row in rows.T:
            one = counts_of({i: row[i : i + 1] for i in range(3)}, 1, planned.workload.domain.sizes)
            length = np.sum(measure_residual(planned, residual, one) ** 2)
            assert length == np.prod([n * (n - 1) for n in sizes])


def test_the_sampler_is_asked_for_exactly_the_plans_noise(monkeypatch):
    planned = plan_of([3, 2, 1, 4], rho="1/3")
    requested = []

    def spy(size, gamma_squared):
        requested.append((size, gamma_squared))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
    for residual in range(len(planned.closure)):
        measure_residual(planned, residual, records_of(planned.workload.domain, 3))
    texts = planned.sigma_squared.texts()
    subsets = [s for k in range(4) for s in combinations([3, 2, 4], k)]
    assert requested == [
        (int(np.prod(sizes)), Fraction(text) * int(np.prod(sizes)) ** 2)
        for sizes, text in zip(subsets, texts, strict=True)
    ]
    assert all(type(gamma_squared) is Fraction for _, gamma_squared in requested)


def integer_matrices(planned: TablePlan, indices) -> list[np.ndarray]:
    """Ξ's factor for each attribute, in Python integers."""
    factors = []
    for index in indices:
        strategy, n = planned.closure.strategies.get(index), int(planned.closure.sizes[index])
        factor = n * np.eye(n, dtype=int) - 1 if strategy is None else strategy.integers
        factors.append(factor.astype(object))
    return factors


@settings(max_examples=40, deadline=None)
@given(workloads_with_bases(max_attributes=3), st.integers(0, 2**32), st.integers(0, 50))
def test_without_noise_the_integer_matrices_are_measured(workload, seed, n_records):
    planned, requested = any_plan(workload, seed, rho="1/3"), []
    records = records_of(workload.domain, n_records, seed)

    def spy(size, gamma_squared):
        requested.append((size, gamma_squared))
        return np.zeros(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
        for residual in range(len(planned.closure)):
            indices = planned.closure.attributes(residual)
            factors = integer_matrices(planned, indices)
            drawn = measure_residual(planned, residual, records)
            assert drawn.dtype == np.int64
            assert drawn.shape == tuple(len(factor) for factor in factors)
            expected = kron(factors) @ records.counts(indices).ravel()
            assert drawn.ravel().tolist() == expected.tolist()
            # The cost of exactly this noise on exactly these integers is the plan's.
            size, gamma_squared = requested[-1]
            assert size == drawn.size
            longest = max(
                (sum(x * x for x in column) for column in kron(factors).T.tolist()), default=1
            )
            cost = float(longest / gamma_squared)
            stated = planned.closure.privacy_cost_factor[residual]
            assert cost == pytest.approx(stated / planned.sigma_squared.floats[residual], rel=1e-13)
            assert type(gamma_squared) is Fraction


@settings(max_examples=40, deadline=None)
@given(workloads_with_bases(max_attributes=3), st.integers(0, 2**32))
def test_what_all_residuals_cost_together_is_within_the_budget(workload, seed):
    """In exact rationals, for the record for whom it is largest."""
    planned, scales = any_plan(workload, seed, rho="1/3"), []
    records = records_of(workload.domain, 0)

    def spy(size, gamma_squared):
        scales.append(gamma_squared)
        return np.zeros(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
        for residual in range(len(planned.closure)):
            measure_residual(planned, residual, records)
    sizes, costs = workload.domain.sizes.tolist(), []
    for cell in np.ndindex(*sizes):
        cost = Fraction(0)
        for residual, gamma_squared in enumerate(scales):
            indices = planned.closure.attributes(residual)
            factors = zip(indices, integer_matrices(planned, indices), strict=True)
            # 0 where a residual does not look at the record, as where x₀ and the total tell x₁.
            norms = [int(np.sum(factor[:, cell[index]] ** 2)) for index, factor in factors]
            cost += math.prod(norms) / gamma_squared
        costs.append(cost)
    assert max(costs) <= planned.exact_privacy_cost <= Fraction(2, 3)
    assert max(costs) >= planned.exact_privacy_cost * (1 - Fraction(1, 10**9))


def test_every_residual_has_noise_of_its_own():
    planned = plan_of([2] * 6, rho="1e-6")
    records = records_of(planned.workload.domain, 10)
    drawn = [
        measure_residual(planned, residual, records) for residual in range(len(planned.closure))
    ]
    again = [
        measure_residual(planned, residual, records) for residual in range(len(planned.closure))
    ]
    # Scales here are 2^10 and more; all 64 residuals equal twice would be chance of 2^-600.
    assert any(not np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    cells = np.concatenate([array.ravel() for array in drawn])
    assert len(np.unique(np.abs(cells))) > len(cells) // 2


@pytest.mark.parametrize(
    "table",
    [
        ("a0", "a1"),
        *(pytest.param(table, marks=pytest.mark.nightly) for table in [(), ("a0",), ("a1",)]),
    ],
)
def test_the_variance_of_the_noise_is_gamma_squared(table):
    """Mean square over 10^6 cells: a deviation is 0.14 %, so 1 % more or less is rejected.

    A right scale fails with probability 1e-11; a scale (not its square) wrong by 1 % lies 14
    deviations off and passes with probability below 1e-11.
    """
    planned = plan_of([1000, 1000], tables=[(), ("a0",), ("a1",), ("a0", "a1")], rho="0.001")
    indices = planned.workload.domain.positions(table)
    residual = planned.closure.find(indices)
    cells = 1000 ** len(indices)
    repeats = 10**6 // cells if cells > 1 else 3_000
    nobody = counts_of({}, 0, (1000, 1000))
    noise = np.array([measure_residual(planned, residual, nobody) for _ in range(repeats)]).astype(
        float
    )
    scale = float(planned.sigma_squared.fraction(residual)) ** 0.5 * cells
    assert scale > 10  # so that the discrete variance is γ² to far below 1e-9

    def deviations(gamma):
        return (np.mean((noise / gamma) ** 2) - 1) / np.sqrt(2 / noise.size)

    assert abs(deviations(scale)) < DEVIATIONS
    assert abs(np.mean(noise) / scale * np.sqrt(noise.size)) < DEVIATIONS
    if noise.size >= 10**6:
        assert deviations(scale * 1.01) < -DEVIATIONS
        assert deviations(scale * 0.99) > DEVIATIONS


# --- limits


@pytest.mark.parametrize("sizes", [[2], [7, 5], [50, 40, 30], [1000, 999]])
def test_as_many_records_as_are_allowed_do_not_overflow(sizes, monkeypatch):
    planned = plan_of(sizes)
    cells = int(np.prod(sizes))
    most = (2**61 - 1) // cells
    check_countable(planned, Crowd(most - most // 10**9))
    with pytest.raises(ReleaseError, match="too many records"):
        check_countable(planned, Crowd(most + most // 10**9))
    for noise in (2**61, -(2**61)):  # beyond what the sampler can return
        monkeypatch.setattr(
            "rpexplore.releases.measurement.discrete_gaussian",
            lambda size, gamma_squared, noise=noise: np.full(size, noise, dtype=np.int64),
        )
        for residual in range(len(planned.closure)):
            indices = planned.closure.attributes(residual)
            drawn = measure_residual(planned, residual, Crowd(most, tuple(sizes)))
            expected = np.array(most, dtype=object)  # Python integers do not overflow
            for index in indices:
                unit = np.full(sizes[index], -1, dtype=object)
                unit[0] = sizes[index] - 1
                expected = np.multiply.outer(expected, unit)
            expected = expected + noise
            assert np.array_equal(drawn.astype(object), expected)


@dataclass
class Together:
    """Stands in for records: all alike, where each integer matrix has its largest number."""

    n_records: int
    strategies: dict[int, Strategy]
    sizes: tuple[int, ...]

    def counts(self, indices):
        cell = []
        for index in indices:
            strategy = self.strategies.get(index)
            largest = 0 if strategy is None else np.argmax(np.abs(strategy.integers).max(axis=0))
            cell.append(int(largest))
        counts = np.zeros([self.sizes[index] for index in indices], dtype=np.int64)
        counts[tuple(cell)] = self.n_records
        return counts


def largest_integers(n: int) -> Strategy:
    """A row of ±2^20 whose first half adds up, and single values as often."""
    signs = np.where(np.arange(n) < n / 2, 1, -1)
    return Strategy(np.vstack([signs, np.eye(n, dtype=int)[1:-1]]) * 2**20, 0)


@pytest.mark.parametrize(
    ("sizes", "n_in_ranges"), [([2], 1), ([3, 4], 2), ([5, 4, 30], 2), ([6, 6], 1), ([300, 3], 1)]
)
def test_as_many_records_as_are_allowed_do_not_overflow_strategies(sizes, n_in_ranges, monkeypatch):
    """At the border, for counts and noise that push the same way: against Python's integers."""
    domain = Domain.from_sizes({f"a{i}": n for i, n in enumerate(sizes)})
    workload = Workload.of(domain, [domain.names]).with_bases(
        {name: Ranges() for name in domain.names[:n_in_ranges]}
    )
    strategies = {index: largest_integers(sizes[index]) for index in range(n_in_ranges)}
    if sizes[0] > 100:
        strategies = {0: any_strategy(sizes[0], 1)}
    planned = any_plan(workload, 1)
    closure = planned.closure.with_strategies(workload, strategies)
    planned = replace(planned, closure=closure)
    largest = 1
    for index, n in enumerate(sizes):
        largest *= int(np.abs(strategies[index].integers).max()) if index in strategies else n
    most = (2**61 - 1) // largest
    check_countable(planned, Crowd(most - most // 10**9))
    with pytest.raises(ReleaseError, match="too many records"):
        check_countable(planned, Crowd(most + most // 10**9 + 1))
    records = Together(most, strategies, tuple(sizes))
    for noise in (2**61, -(2**61)):  # beyond what the sampler can return
        monkeypatch.setattr(
            "rpexplore.releases.measurement.discrete_gaussian",
            lambda size, gamma_squared, noise=noise: np.full(size, noise, dtype=np.int64),
        )
        for residual in range(len(closure)):
            indices = closure.attributes(residual)
            drawn = measure_residual(planned, residual, records)
            expected = records.counts(indices).astype(object)
            for axis, factor in enumerate(integer_matrices(planned, indices)):
                expected = np.moveaxis(np.tensordot(factor, expected, (1, axis)), 0, axis)
            assert np.array_equal(expected + noise, drawn.astype(object))
            if len(indices) == len(sizes) == n_in_ranges:
                assert np.max(np.abs(expected)) > 2**60  # the border is where it should be


def test_partial_sums_at_the_border_do_not_overflow(exact):
    """Records that add up to nothing in the end, but to half of the limit on the way."""
    n = 6
    workload = Workload.of(Domain.from_sizes({"a0": n}), ["a0"]).with_bases({"a0": Prefix()})
    planned = any_plan(workload, 1)
    strategy = largest_integers(n)
    planned = replace(planned, closure=planned.closure.with_strategies(workload, {0: strategy}))
    most = (2**61 - 1) // 2**20
    check_countable(planned, Crowd(most - most // 10**9))
    counts = np.full(n, most // n)
    sums = np.cumsum(strategy.integers[0].astype(object) * counts.astype(object))
    assert sums.max() > 2**59
    assert sums[-1] == 0

    class Many:
        n_records = most

        def counts(self, indices):
            return counts if indices else np.array(counts.sum())

    drawn = measure_residual(planned, 1, Many())
    expected = strategy.integers.astype(object) @ counts.astype(object)
    assert drawn.tolist() == expected.tolist()


def test_the_refusal_of_too_many_records_does_not_say_how_many():
    with pytest.raises(ReleaseError) as caught:
        check_countable(plan_of([5, 4]), Crowd(2**60 + 12345))
    assert "(a0 × a1)" in str(caught.value)
    assert not any(part in str(caught.value) for part in (str(2**60 + 12345), "12345"))


def test_a_table_that_is_too_large_is_refused():
    planned = plan_of([200_001, 5_000], tables=[("a0", "a1"), ("a0",)])
    with pytest.raises(ReleaseError, match=r"\(a0 × a1\).* 1,000,005,000 cells.* 1,000,000,000"):
        check_measurable(planned)
    check_measurable(plan_of([200_000, 5_000], tables=[("a0", "a1"), ("a0",)]))


def test_tables_of_many_answers_are_refused_by_their_answers():
    """500 values are 125,250 ranges; two such attributes are 250,000 counts, but 2^34 answers."""
    domain = Domain.from_sizes({"a": 500, "b": 500})
    tables = Workload.of(domain, [("a", "b"), "a"])
    check_measurable(any_plan(tables.with_bases({"a": Prefix(), "b": Prefix()}), 1))
    too_many = any_plan(tables.with_bases({"a": Ranges(), "b": Ranges()}), 1)
    with pytest.raises(ReleaseError, match=r"\(a × b\) has 15,687,562,500 cells"):
        check_measurable(too_many)


def test_the_noise_on_integers_is_limited_by_their_power_of_two():
    domain = Domain.from_sizes({"a": 4, "b": 4})
    workload = Workload.all_up_to(domain, 2).with_bases({"a": Prefix(), "b": Prefix()})
    planned = any_plan(workload, 1)  # 2^10 · R of each attribute
    residual = planned.closure.find((0, 1))
    limit = LARGEST_GAMMA // 2**20
    check_measurable(
        with_sigma_squared(planned, residual, str(int(limit**2 * 0.9999) // 1000 * 1000))
    )
    with pytest.raises(ReleaseError, match=r"noise .* \(a × b\) is too large"):
        check_measurable(
            with_sigma_squared(planned, residual, str(int(limit**2 * 1.0001) // 1000 * 1000))
        )


def with_sigma_squared(planned: TablePlan, residual: int, text: str) -> TablePlan:
    texts = planned.sigma_squared.texts()
    texts[residual] = text
    return replace(planned, sigma_squared=Decimals.parse(texts))


@given(
    st.integers(-(10**6), 10**6),
    st.sampled_from([(), ("a0",), ("a1",), ("a0", "a1")]),
)
def test_what_passes_the_check_passes_the_sampler(parts, table):
    """σ within a millionth of the limit 2^52 / ∏ n_i, on either side."""
    planned = plan_of([7, 1000], tables=[(), ("a0",), ("a1",), ("a0", "a1")])
    indices = planned.workload.domain.positions(table)
    cells = int(np.prod([planned.closure.sizes[index] for index in indices]))
    limit = Fraction(LARGEST_GAMMA**2, cells**2)
    sigma_squared = int(limit * (10**12 + parts) / 10**12 * 10**3)
    text = f"{sigma_squared // 1000}.{sigma_squared % 1000:03d}"
    text = (
        text
        if len(text) < 19
        else str(sigma_squared // 1000)[:17].ljust(len(str(sigma_squared // 1000)), "0")
    )
    planned = with_sigma_squared(planned, planned.closure.find(indices), text)
    if Fraction(text) < limit * (1 - Fraction(3, 10**9)):
        check_measurable(planned)
    try:
        check_measurable(planned)
    except ReleaseError:
        return
    measure_residual(planned, planned.closure.find(indices), Crowd(5, (7, 1000)))


def test_a_hopeless_budget_is_refused():
    with pytest.raises(ReleaseError, match="use a larger budget"):
        check_measurable(plan_of([100, 100], rho="1e-30"))
