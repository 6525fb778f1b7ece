"""Plans of tables with attributes at several levels, against dense matrices."""

import itertools
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import cvxpy
import numpy as np
import pytest
from scipy import sparse

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.data.source import Counts
from rpexplore.planning import optimal_strategies
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    marginal,
    query_matrices,
)
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import optimum, optimum_with_strategies_of
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.measurement import exact_residual
from rpexplore.workload.table_text import query_matrix
from tests.support.explicit_optimum import dense_queries, lower_bound

nightly = partial(pytest.param, marks=pytest.mark.nightly)

SAMPLE = Path(__file__).parents[2] / "sample_data"
AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 19},
    # "odd" crosses the others: 5 to 9 and 0-17 are split by it.
    "levels": {"five": 5, "adult": "0-17, 18+", "odd": "0-6, 7-19"},
}
SEXES = {"name": "sex", "constraints": {"enum": ["m", "f"]}}
RACES = {
    "name": "race",
    "constraints": {"enum": ["a", "b", "c"]},
    "levels": {"ab": {"AB": ["a", "b"], "C": ["c"]}},
}
ONE = rp.Budget(privacy_cost=1)


def workload_of(fields, tables) -> rp.Workload:
    return rp.Workload.of(rp.Domain.from_schema({"fields": fields}), tables)


def random_family(number: int) -> rp.Workload:
    """Two to five tables of two attributes with uneven trees, and one of two values."""
    random = np.random.default_rng(number)
    fields = []
    for name in "ab":
        sizes = random.integers(1, 6, random.integers(2, 5))
        groups = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
        field = {"name": name, "constraints": {"minimum": 0, "maximum": len(groups) - 1}}
        if len(sizes) < len(groups):
            field["levels"] = {"g": groups}
        fields.append(field)
    fields.append({"name": "c", "constraints": {"minimum": 0, "maximum": 1}})
    names = [("", "a", "a@g"), ("", "b", "b@g"), ("", "c")]
    known = rp.Domain.from_schema({"fields": fields}).with_levels
    tables = [tuple(filter(None, table)) for table in itertools.product(*names)]
    choices = [table for table in tables if all(name in known for name in table)]
    chosen = random.choice(len(choices), random.integers(2, 6), replace=False)
    return rp.Workload.of(known, [choices[place] for place in chosen])


def crossing() -> rp.Workload:
    tables = [("sex", "age@five"), ("age@adult", "race"), ("age@odd", "race@ab"), ("age", "sex")]
    return workload_of([AGES, SEXES, RACES], [*tables, ()])


def summed() -> rp.Workload:
    """Sums of groups: adults alone, single years with their total, a difference, one group."""
    with_total = rp.CustomBasis(np.eye(5, 4) + np.eye(5)[:, 4:])
    tables = {
        ("sex", "age@five"): {"age@five": with_total},
        ("race", "age@adult"): {"age@adult": rp.CustomBasis(((0, 1),))},
        ("sex", "age@odd", "race@ab"): {"race@ab": rp.CustomBasis(((2, -2),))},
        ("sex", "age"): {"age": rp.Windows(3), "sex": rp.CustomBasis(((1, 0),))},
        ("race@ab",): {"race@ab": rp.CustomBasis(((1, 0), (1, 0), (0, 1)))},
    }
    workload = workload_of([AGES, SEXES, RACES], [*tables, ()])
    for table, bases in tables.items():
        workload = workload.with_bases(bases, tables=[table])
    return workload


four, nine, sixteen = (partial(random_family, number) for number in (4, 9, 16))


@cache
def least_sum(make: Callable[[], rp.Workload]) -> TablePlan:
    """The plan of the smallest sum for tables, made once."""
    return rp.plan(make(), loss=rp.SumOfVariances(), budget=ONE).part("tables")


def measured_matrix(plan, residual: int) -> np.ndarray:
    """What is measured of every single record: float64[n_measured, n_records]."""
    sizes = plan.domain.of_records.sizes.tolist()
    columns = []
    for cell in np.ndindex(*sizes):
        counts = np.zeros(sizes, dtype=np.int64)
        counts[cell] = 1
        exact = exact_residual(plan, residual, Counts({tuple(range(len(sizes))): counts}, 1))
        columns.append(exact.ravel())
    return np.stack(columns, axis=1).astype(float)


@pytest.mark.parametrize(
    "make",
    [
        summed,
        nightly(crossing, id="crossing"),
        nightly(nine, id="nine"),
        nightly(sixteen, id="sixteen"),
    ],
)
def test_tables_are_unbiased_and_have_the_stated_variances_and_cost(make):
    plan = least_sum(make)
    workload = plan.workload
    closure = plan.closure
    assert closure.trees
    matrices = [measured_matrix(plan, residual) for residual in range(len(closure))]
    variances = [
        sigma_squared * float(closure.integer_scale(residual)) ** 2
        for residual, sigma_squared in enumerate(plan.sigma_squared.floats.tolist())
    ]
    queries, of_tables = dense_queries(workload)
    for table in range(len(workload)):
        expected, variance = 0.0, 0.0
        for residual in closure.subsets(table).tolist():
            matrix, subset = matrices[residual], closure.attributes(residual)
            shape = exact_residual_shape(closure, subset)
            decoded = []
            for unit in np.eye(len(matrix)):
                parts = {
                    closure.attributes(other): np.zeros(
                        [closure.sizes[index] for index in closure.attributes(other)]
                    )
                    for other in closure.subsets(table).tolist()
                }
                parts[subset] = contribution(unit.reshape(shape), subset, closure.strategies)
                indices = workload.attribute_indices(table)
                values = marginal(indices, closure.sizes, parts, closure.strategies, closure.trees)
                decoded.append(answers_of(workload, table, values))
            decoding = np.stack(decoded, axis=1)
            expected = expected + decoding @ matrix
            variance = variance + variances[residual] * np.sum(decoding**2, axis=1)
        assert np.allclose(expected, queries[of_tables == table], atol=1e-9)
        stated = CellVariances(workload, closure).variances_of(table, plan.sigma_squared.floats)
        assert np.allclose(variance, stated.ravel(), rtol=1e-9)
        assert np.isclose(np.mean(variance), plan.mean_variances[table], rtol=1e-9)
    costs = [
        np.sum(matrix**2, axis=0) / variance
        for matrix, variance in zip(matrices, variances, strict=True)
    ]
    largest = float(np.max(np.sum(costs, axis=0)))
    assert largest <= float(plan.exact_privacy_cost) * (1 + 1e-12)  # sums of floats
    assert plan.exact_privacy_cost <= 1
    assert float(plan.exact_privacy_cost) <= largest * 1.02  # rounded up by at most 2 / 256


def answers_of(workload: rp.Workload, table: int, values: np.ndarray) -> np.ndarray:
    """The cells of a table from its marginal, one after the other."""
    matrices = query_matrices(workload)
    bases = [basis for basis in workload.attribute_basis_index[table].tolist() if basis >= 0]
    return answers(values, [matrices[basis] for basis in bases]).ravel()


def exact_residual_shape(closure: Closure, subset: tuple[int, ...]) -> list[int]:
    return [int(closure.sizes[index]) - (index in closure.strategies) for index in subset]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("number", [4, 8, 13])
def test_a_plan_is_near_the_optimum_of_all_gaussian_mechanisms(number):
    workload = random_family(number)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=ONE).part("tables")
    queries, of_tables = dense_queries(workload)
    weights = 1 / workload.cells[of_tables]
    least = lower_bound((queries * weights[:, None]).T @ queries, 1e-4)
    assert plan.certificate.lower_bound <= plan.loss_value <= 1.05 * least


@pytest.mark.nightly
def test_shares_that_prices_rule_out_would_not_have_been_chosen(monkeypatch):
    loss = rp.SumOfVariances()
    families = [random_family(number) for number in range(8)]
    found = [optimum(tables, loss=loss).solution.sigma_squared for tables in families]
    search, n_searched = optimal_strategies._Sums, 0

    def each_by_itself(table_weights):
        def value(closure):
            nonlocal n_searched
            n_searched += 1
            return search(table_weights)(closure)

        return value

    monkeypatch.setattr(optimal_strategies, "_Sums", each_by_itself)
    for tables, sigma_squared in zip(families, found, strict=True):
        assert np.array_equal(optimum(tables, loss=loss).solution.sigma_squared, sigma_squared)
    assert n_searched > 20


def test_sums_of_groups_are_planned_and_read_again(tmp_path):
    plan = rp.plan(summed(), loss=rp.SumOfVariances(), budget=ONE)
    queries, of_tables = dense_queries(summed())
    weights = 1 / summed().cells[of_tables]
    least = lower_bound((queries * weights[:, None]).T @ queries, 1e-3)
    assert least <= plan.loss_value <= 1.28 * least
    assert plan.part("tables").certificate.gap < 1e-6
    plan.save(tmp_path / "plan.json")
    again = rp.Plan.load(tmp_path / "plan.json")
    assert again.sha256 == plan.sha256
    assert rp.verify(again).holds


def test_other_mechanisms_are_compared_for_the_sums_of_groups_that_tables_have():
    """As if levels were attributes of their own, whose single values are measured alike."""
    closure = least_sum(summed).closure
    domain = summed().domain
    of_levels = {index for tree in closure.trees for index in tree.of_tables}
    for (index, basis), known in zip(summed().attribute_bases, closure.moments, strict=True):
        if index in of_levels:
            n_values = int(domain.sizes[index])
            rows = query_matrix(basis, domain.attributes[index]).of(np.eye(n_values), 0)
            even = rows.mean(axis=1)
            assert known.total == pytest.approx(even**2, abs=1e-12)
            assert known.spread == pytest.approx(np.sum((rows - even[:, None]) ** 2, axis=1))


def test_age_groups_beside_adults_by_race_cost_what_they_must():
    """Of the census: P12 with the tables of adults by race; a dense search found 3.749."""
    request = tomllib.loads((SAMPLE / "census-tables.toml").read_text("utf-8"))
    assert (request["loss"], request["privacy-cost"]) == ("sum", "1")
    domain = rp.Domain.load(SAMPLE / request["codebook"])
    workload = rp.Workload.of(domain, [tuple(table.split(",")) for table in request["table"]])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=ONE).part("tables")
    assert 3.749 <= float(np.sum(plan.mean_variances)) <= 3.749 * 1.01


@pytest.mark.by_day(1)
@pytest.mark.parametrize("loss", [rp.SumOfVariances(), rp.MaxVariance(), rp.PNorm(p=4)])
def test_a_plan_is_read_again_and_holds_what_it_claims(loss, tmp_path):
    plan = rp.plan(crossing(), loss=loss, budget=rp.Budget(rho="0.5"))
    plan.save(tmp_path / "plan.json")
    again = rp.Plan.load(tmp_path / "plan.json")
    assert again.sha256 == plan.sha256
    assert rp.verify(again).holds
    assert again.part("tables").certificate.gap < 1e-4


def test_prices_of_records_that_prove_nothing_are_noticed():
    plan = least_sum(crossing)
    closure = plan.closure
    tampered = np.full(closure.n_kinds, 1 / closure.n_kinds)
    changed = replace(plan, closure=closure.with_prices(tampered))
    failed = [check.name for check in rp.verify(changed).checks if not check.holds]
    assert failed == ["optimality"]


def test_a_record_that_costs_more_than_the_others_is_noticed():
    plan = least_sum(crossing)
    block = plan.closure.trees[0].numbers[-1]
    dear = next(r for r in range(len(plan.closure)) if block in plan.closure.attributes(r))
    digits = plan.sigma_squared.digits.copy()
    digits[dear] //= 2
    changed = replace(plan, sigma_squared=Decimals(digits, plan.sigma_squared.exponents))
    checks = {check.name: check.holds for check in rp.verify(changed).checks}
    assert not checks["privacy cost"]


def test_levels_that_cut_each_other_leave_noise_that_nothing_depends_on():
    """A block of the chain of levels may be alike in every value of the one level that needs it."""
    ages = {
        "name": "age",
        "constraints": {"minimum": 0, "maximum": 8},
        "levels": {"three": 3, "odd": list("eoeoeoeoe"), "adult": "0-2, 3+"},
    }
    days = {"name": "day", "constraints": {"minimum": 0, "maximum": 3}, "levels": {"q": 2}}
    workload = workload_of(
        [ages, SEXES, days], [("age@odd",), ("age@three", "sex"), ("age@adult", "day@q")]
    )
    for loss in (rp.SumOfVariances(), rp.MaxVariance()):
        plan = rp.plan(workload, loss=loss, budget=ONE)
        assert plan.part("tables").certificate.gap < 1e-6
        assert rp.verify(plan).holds


def test_levels_of_one_attribute_stand_beside_sums_of_another():
    races = {"name": "race", "constraints": {"minimum": 0, "maximum": 5}}
    tables = [("age@five", "race"), ("age@adult", "sex"), ("age",), ("race",)]
    workload = workload_of([AGES, SEXES, races], tables).with_bases({"race": rp.Prefix()})
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=ONE).part("tables")
    assert rp.verify(plan).holds
    queries, of_tables = dense_queries(workload)
    weights = 1 / workload.cells[of_tables]
    least = lower_bound((queries * weights[:, None]).T @ queries, 1e-3)
    assert plan.certificate.lower_bound <= plan.loss_value <= 1.1 * least


def test_residuals_that_no_table_depends_on_have_noise_whatever_the_prices():
    """Kinds of records may have the price 0, and what only these pay for costs something still."""
    groups = ["g0"] * 2 + ["g1"] * 10
    region = {"name": "region", "constraints": {"minimum": 0, "maximum": 11}}
    fields = [region | {"levels": {"two": groups}}]
    fields += [{"name": "x", "constraints": {"minimum": 0, "maximum": 2}}]
    workload = workload_of(fields, [("region@two", "x"), ("region", "x")])
    workload = workload.with_bases({"x": rp.CustomBasis(((1, -1, 0), (0, 1, -1)))})
    plan = rp.plan(workload, loss=rp.MaxVariance(), budget=ONE)
    assert rp.verify(plan).holds


def test_other_tables_with_levels_have_blocks_of_their_own():
    """Comparing scenarios takes the strategies of one for the tables of another where it can."""
    reference = optimum(crossing(), loss=rp.SumOfVariances(), budget=ONE)
    tables = [("sex", "age@five"), ("age@odd", "race"), ("age", "sex")]
    other = workload_of([AGES, SEXES, RACES], tables)
    found = optimum_with_strategies_of(reference, other, rp.SumOfVariances())
    alone = rp.plan(other, loss=rp.SumOfVariances(), budget=ONE)
    assert found.at(ONE).loss_value == alone.loss_value


def with_targets(
    make: Callable[[], rp.Workload], share: float, *, all_required: bool
) -> rp.Workload:
    """Targets that are this share of the errors of the least accurate cells at the smallest sum."""
    plan = least_sum(make)
    workload = plan.workload
    required = np.arange(len(workload)) < len(workload) / 2
    errors = np.sqrt(plan.table_variances.largest)
    targets = errors * np.where(required, share, 1.2)
    return replace(workload, targets=targets, required=required | all_required)


BY_CELL = (
    rp.MaxVariance(),
    rp.SumWithinTargets(),
    rp.MaxWithinTargets(),
    rp.SumWithBoundedMax(slack=0.05),
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("loss", "make"),
    [
        *((loss, nine) for loss in BY_CELL[:2]),
        *(nightly(loss, nine) for loss in BY_CELL[2:]),
        (rp.SumWithinTargets(), crossing),
        (rp.MaxVariance(), summed),
        *(nightly(loss, crossing) for loss in BY_CELL),
        *(nightly(loss, summed) for loss in BY_CELL[1:]),
        *(nightly(loss, four) for loss in BY_CELL),
    ],
)
def test_what_looks_at_single_cells_is_proven_and_verified(loss, make):
    workload = with_targets(make, 0.9, all_required=False)
    plan = rp.plan(workload, loss=loss, budget=ONE).part("tables")
    assert plan.certificate.gap < 3e-6
    assert rp.verify(plan).holds
    if loss.meets_required_targets:
        errors = np.sqrt(plan.table_variances.largest)
        assert np.all(errors <= np.where(workload.required, workload.targets, np.inf))


def test_what_needs_the_conic_solver_says_so_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr("rpexplore.common.installation.find_spec", lambda name: None)
    with pytest.raises(rp.errors.RpexploreError, match="rpexplore\\[custom\\]"):
        rp.plan(crossing(), loss=rp.MaxVariance(), budget=ONE)


@pytest.mark.nightly
@pytest.mark.parametrize("share", [0.5, *map(nightly, (2.0, 5.0))])
def test_targets_far_from_the_errors_are_planned_as_well(share):
    workload = with_targets(crossing, share, all_required=False)
    budget = rp.Budget(privacy_cost=5)
    plan = rp.plan(workload, loss=rp.SumWithinTargets(), budget=budget).part("tables")
    assert plan.certificate.gap < 3e-6
    assert rp.verify(plan).holds


@pytest.mark.nightly
def test_the_smallest_budget_for_targets_is_enough_and_no_smaller_one_is():
    workload = with_targets(crossing, 0.9, all_required=True)
    smallest = rp.minimum_budget(workload)
    plan = rp.plan(workload, loss=rp.SumWithinTargets(), budget=smallest.budget).part("tables")
    assert np.all(np.sqrt(plan.table_variances.largest) <= workload.targets)
    less = rp.Budget(rho=smallest.rho * 0.9999)
    with pytest.raises(rp.errors.RpexploreError, match="cannot all be met"):
        rp.plan(workload, loss=rp.SumWithinTargets(), budget=less)


def test_one_level_costs_what_as_many_values_cost():
    fields = [AGES, SEXES]
    of_level = rp.plan(
        workload_of(fields, [("age@five", "sex")]), loss=rp.SumOfVariances(), budget=ONE
    )
    four = rp.Workload.of(rp.Domain.from_sizes({"age": 4, "sex": 2}), [("age", "sex")])
    of_four = rp.plan(four, loss=rp.SumOfVariances(), budget=ONE)
    assert of_level.part("tables").loss_value == of_four.part("tables").loss_value


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda w: rp.plan(w, loss=rp.CustomLoss(cvxpy.max, "largest"), budget=ONE),
            "one level of each",
        ),
        (
            lambda w: rp.plan(
                workload_of(
                    [AGES | {"constraints": {"minimum": 0, "maximum": 299}, "levels": {"ten": 10}}],
                    [("age",), ("age@ten",)],
                ).with_bases({"age": rp.Ranges()}),
                loss=rp.SumOfVariances(),
                budget=ONE,
            ),
            "45,150 sums of 300 groups",
        ),
        (
            lambda w: rp.plan(rp.Rounds(w, 1000), budget=ONE),
            "aggregations out|levels",
        ),
    ],
)
def test_what_is_not_there_for_several_levels_is_refused(ask, message):
    with pytest.raises(rp.errors.RpexploreError, match=message):
        ask(crossing())


@pytest.mark.parametrize("make", [crossing, nine, sixteen], ids=["crossing", "nine", "sixteen"])
def test_covariances_of_many_queries_are_those_of_each_pair(make):
    plan = least_sum(make)
    workload = plan.workload
    random = np.random.default_rng(0)
    for table in range(len(workload)):
        noise = plan.marginal_noise(workload.attribute_indices(table))
        sizes = [int(noise.domain.sizes[index]) for index in noise.attributes]
        left, right = (
            {
                index: random.integers(-2, 3, (rows, size)).astype(float)
                for index, size in zip(noise.attributes, sizes, strict=True)
            }
            for rows in (3, 1)  # one row on the right is paired with all on the left
        )
        found = noise.covariances(
            {index: sparse.csr_array(rows) for index, rows in left.items()},
            {index: sparse.csr_array(rows) for index, rows in right.items()},
        )
        assert found.shape == (3,) * len(sizes)
        of_right = {index: rows[0] for index, rows in right.items()}
        for place in np.ndindex(*found.shape):
            own = {
                index: left[index][row] for index, row in zip(noise.attributes, place, strict=True)
            }
            assert found[place] == pytest.approx(noise.covariance(own, of_right), abs=1e-9)
