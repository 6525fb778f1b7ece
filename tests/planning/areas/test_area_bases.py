"""Tables of areas in other bases than single values, against dense algebra."""

import json

import cvxpy
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import OutOfReachError, PlanError, WorkloadError
from rpexplore.planning.areas.area_loss import extreme_variances
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.plan import load_plan
from rpexplore.releases.area_files import CellErrors
from rpexplore.releases.area_parts import AreaParts
from tests.support.area_trees import incidence
from tests.support.explicit_optimum import dense_queries, lower_bound
from tests.support.plan_schemas import PLAN_VALIDATOR
from tests.support.plan_texts import flat, laid_out_compact

OTHERS = rp.Domain.from_sizes({"sex": 2, "age": 5})
TREE = rp.AreaTree.from_columns({"region": [*"NNNSW"], "town": ["1", "2", "3", "1", None]})
AGES = rp.Workload.of(OTHERS, [(), ("age",), ("sex", "age")], weights=[1, 3, 2])
GROUPS = rp.Hierarchy([2])


def asked_in(basis) -> rp.AreaWorkload:
    ages = AGES.with_bases({"age": basis})
    fewer = rp.Workload.of(OTHERS, [("sex",), ("age",)]).with_bases({"age": basis})
    return rp.AreaWorkload.of_levels(TREE, {"all": ages, "region": ages, "town": fewer})


BASES = [rp.Prefix(), rp.Ranges(), GROUPS, rp.Windows(2)]


@pytest.fixture(scope="module", params=BASES, ids=["prefix", "ranges", "groups", "windows"])
def plan(request):
    asked, budget = asked_in(request.param), rp.Budget(privacy_cost=1)
    return plan_areas(asked, loss=rp.SumOfVariances("cells"), budget=budget)


def gram_of(plan: AreaPlan) -> np.ndarray:
    """Of all that is measured, over areas without parts × cells of the other attributes."""
    sizes, gram = OTHERS.sizes.tolist(), 0.0
    for residual in range(len(plan.closure)):
        part = np.ones((1, 1))
        for index, n in enumerate(sizes):
            factor = np.ones((n, n))
            if index in plan.closure.attributes(residual):
                factor = np.eye(n) - 1 / n
                if index in plan.closure.strategies:
                    matrix = plan.closure.strategies[index].matrix
                    factor = matrix.T @ matrix
            part = np.kron(part, factor)
        for within, group in zip(incidence(plan.workload.tree), plan.groups.of_area, strict=True):
            variance = plan.exact_variance(residual, int(group))
            if variance is not None:
                gram = gram + float(1 / variance) * np.kron(np.outer(within, within), part)
    return gram


@pytest.mark.by_day(2)
def test_cost_loss_and_standard_errors_are_those_of_everything_that_is_measured(plan):
    gram = gram_of(plan)
    cost = float(plan.exact_privacy_cost)
    assert 0.97 < np.max(np.diag(gram)) <= cost * (1 + 1e-9)  # below where columns of R differ
    assert 1 - 1e-9 < cost <= 1
    covariance, loss, parts = (
        np.linalg.pinv(gram, rcond=1e-11, hermitian=True),
        0.0,
        AreaParts(plan),
    )
    for area, (within, kind) in enumerate(
        zip(incidence(TREE), plan.workload.kinds.tolist(), strict=True)
    ):
        if kind < 0:
            continue
        workload = plan.workload.workloads[kind]
        of_group = plan.residual_variances[:, plan.groups.of_area[[area]]]
        asking = plan.workload, plan.closure, kind, of_group
        smallest, largest = (extreme_variances(*asking, largest=each) for each in (False, True))
        queries, tables = dense_queries(workload)
        queries = np.kron(within, queries)
        variances = np.einsum("qi,ij,qj->q", queries, covariance, queries)
        loss += float(variances @ workload.weights[tables]) / plan.workload.areas_asked[kind]
        for row, table in enumerate(plan.workload.rows[kind].tolist()):
            expected = variances[tables == row]
            (errors,) = CellErrors.of(parts, table).areas(np.array([area]))
            np.testing.assert_allclose(np.broadcast_to(errors**2, expected.shape), expected)
            assert smallest[row, 0] == pytest.approx(expected.min())
            assert largest[row, 0] == pytest.approx(expected.max())
    assert plan.loss_value == pytest.approx(loss)
    assert plan.certificate.lower_bound <= plan.loss_value <= plan.certificate.lower_bound * 1.00011


def test_what_is_saved_is_what_is_loaded_and_holds(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    loaded = AreaPlan.load(tmp_path / "plan.json")
    assert loaded.text == plan.text
    assert loaded.workload.workloads[2].bases == plan.workload.workloads[2].bases
    assert rp.verify(loaded).holds
    PLAN_VALIDATOR.validate(json.loads(plan.text))


def test_one_level_is_near_the_best_of_all_gaussian_mechanisms():
    tree = rp.AreaTree.from_columns({"region": [*"abc"]})
    ages = rp.Workload.of(OTHERS, [("age",)]).with_bases({"age": rp.Prefix()})
    asked = rp.AreaWorkload.of_levels(tree, {"region": ages})
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(ages)
    queries = queries[:, :5]  # of one sex: both are alike
    assert plan.loss_value == pytest.approx(lower_bound(queries.T @ queries) / 5, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["bases"][1]["bases"].append({"kind": "identity"}),
            "single values first",
        ),
        (
            lambda content: content["workloads"][0]["tables"][1].update(basis_index=[4]),
            "one basis_index",
        ),
        (lambda content: content["strategies"].clear(), "one strategy for each attribute"),
        (lambda content: content["strategies"][0]["matrix"][0].reverse(), None),
    ],
)
def test_wrong_bases_and_strategies_are_found(tmp_path, change, message):
    asked = asked_in(rp.Prefix()).with_areas(np.array([1]), AGES.with_bases({"age": rp.Prefix()}))
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    plan.save(tmp_path / "plan.json")
    content = flat(json.loads((tmp_path / "plan.json").read_text("utf-8")))
    change(content)
    (tmp_path / "plan.json").write_text(laid_out_compact(content), "utf-8")
    if message is not None:
        with pytest.raises(PlanError, match=message):
            load_plan(tmp_path / "plan.json")
        return
    assert not rp.verify(load_plan(tmp_path / "plan.json")).holds


def test_bases_are_the_same_on_all_levels():
    both = {"all": AGES, "region": AGES.with_bases({"age": rp.Prefix()})}
    with pytest.raises(WorkloadError, match="'age' in one basis on one level"):
        _ = rp.AreaWorkload.of_levels(TREE, both).tables


class Explicit:
    """Cells of one attribute in a basis, on all levels, as a convex problem of the precisions."""

    def __init__(self, plan: AreaPlan, queries: np.ndarray) -> None:
        (strategy,) = plan.closure.strategies.values()
        within = incidence(TREE)
        precisions = cvxpy.Variable((2, len(within)), nonneg=True)
        self.cost = within.T @ (precisions[0] + float(strategy.cost_factor) * precisions[1])
        factors = (
            (queries @ strategy.reference) ** 2,
            np.sum((queries @ strategy.decoding) ** 2, axis=1),
        )
        self.cells = [
            sum(
                factor * cvxpy.matrix_frac(row, within.T @ cvxpy.diag(t) @ within)
                for factor, t in zip(factors, precisions, strict=True)
            )
            for row in within
        ]

    def best(self, objective, cells=()) -> float:
        """The smallest objective at a cost of 1 where these variances over targets² are ≤ 1."""
        constraints = [self.cost <= 1, *(each <= 1 for each in cells)]
        return cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(solver="CLARABEL")


def of_ages(**targets: float) -> rp.AreaWorkload:
    levels = {
        level: rp.Workload.of(
            OTHERS, [("age",)], targets=[target], required=[level == "town"]
        ).with_bases({"age": rp.Prefix()})
        for level, target in targets.items()
    }
    return rp.AreaWorkload.of_levels(TREE, levels)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "loss",
    [rp.MaxVariance(relative_to="target"), rp.SumWithinTargets(), rp.MaxWithinTargets()],
    ids=["max", "sum within", "max within"],
)
def test_least_accurate_cells_are_looked_at_one_by_one(loss, tmp_path):
    targets = {"all": 3.0, "region": 2.0, "town": 1.6}
    asked = of_ages(**targets)
    plan = plan_areas(asked, loss=loss, budget=rp.Budget(privacy_cost=1))
    explicit = Explicit(plan, np.tri(5))
    levels = [TREE.levels[level] for level in TREE.level_of]
    ratios = {level: [] for level in targets}
    for level, cells in zip(levels, explicit.cells, strict=True):
        ratios[level].append(cells / targets[level] ** 2)
    largest = {level: [cvxpy.max(each) for each in of_level] for level, of_level in ratios.items()}
    if isinstance(loss, rp.MaxVariance):
        every = [one for of_level in largest.values() for one in of_level]
        best = explicit.best(cvxpy.max(cvxpy.hstack(every)))
    elif isinstance(loss, rp.MaxWithinTargets):
        others = cvxpy.max(cvxpy.hstack(largest["all"] + largest["region"]))
        best = explicit.best(others, largest["town"])
    else:
        means = [
            targets[level] ** 2 * sum(map(cvxpy.sum, ratios[level])) / 5 / len(ratios[level])
            for level in ("all", "region")
        ]
        best = explicit.best(sum(means), largest["town"])
    assert plan.certificate.lower_bound <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= plan.loss_value <= best * (1 + 3.1e-3)
    plan.save(tmp_path / "plan.json")
    loaded = AreaPlan.load(tmp_path / "plan.json")
    PLAN_VALIDATOR.validate(json.loads(plan.text))
    assert (loaded.text, rp.verify(loaded).holds) == (plan.text, True)
    assert plan.accuracy()["shadow_price"].sum() == pytest.approx(1)
    errors = plan.accuracy().set_index("level")["largest_standard_error"]
    if loss.meets_required_targets:
        assert errors["town"] <= targets["town"]
        with pytest.raises(OutOfReachError, match=r"\(age\) on town"):
            plan_areas(asked, loss=loss, budget=rp.Budget(privacy_cost="0.3"))
    else:
        assert max(errors[level] / target for level, target in targets.items()) ** 2 == (
            pytest.approx(plan.loss_value)
        )
