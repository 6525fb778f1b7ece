"""What is told of plainer mechanisms beside a plan."""

import math

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import baselines
from rpexplore.analysis.baselines import describe_missing, describe_times
from rpexplore.errors import PlanError
from rpexplore.planning.baselines.baselines import Baseline, LogVariances
from rpexplore.planning.baselines.plan_bound import plan_bound
from rpexplore.planning.planner import plan_tables, record_cost
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain.from_sizes({"age": 100, "sex": 2})
MARGINALS = rp.Workload.all_up_to(DOMAIN, 2)
AGES = rp.Workload.of(DOMAIN, [("age",)]).with_bases({"age": rp.Ranges()})


def planned(tables, loss=None, rho="0.5"):
    return plan_tables(tables, loss=loss or rp.SumOfVariances(), budget=rp.Budget(rho=rho))


def test_noise_in_every_cell_by_hand():
    plan = planned(MARGINALS, rho="0.125")
    row = rp.compare(plan).frame().set_index("name").loc["cells"]
    # At privacy cost 1/4 a sum of n cells has variance 4 n: the total, ages, sexes, and both.
    assert row["times_budget"] == pytest.approx(4 * (200 + 2 + 100 + 1) / plan.loss_value, rel=1e-5)
    assert row["budget_text"] == "29.2 times"
    errors = rp.compare(plan).of_tables().set_index("table")["noise in every cell"]
    assert errors["(total)"] == pytest.approx(math.sqrt(800))


@pytest.mark.parametrize(
    "loss", [rp.SumOfVariances(), rp.MaxVariance(), rp.PNorm(p=3)], ids=lambda loss: loss.option
)
def test_a_plan_with_so_many_times_the_budget_reaches_what_a_baseline_does(loss):
    plan = planned(MARGINALS, loss)
    row = rp.compare(plan).frame().set_index("name").loc["tables"]
    equal = planned(MARGINALS, loss, rho=repr(0.5 / float(row["times_budget"])))
    # Four tables with the same noise: variance 4 each.
    wanted = loss.value(4.0 * (MARGINALS.weights > 0), MARGINALS)
    assert equal.loss_value == pytest.approx(wanted, rel=1e-4)


def test_required_targets_have_to_be_met_by_baselines_too():
    targets = {table: rp.Target(3.0, required=True) for table in [("age",), ("sex",)]}
    tables = MARGINALS.with_targets(targets)
    plan = planned(tables, rp.SumWithinTargets(), rho="0.25")
    rows = rp.compare(plan).frame().set_index("name")
    # At privacy cost 1/2 four tables with the same noise have variance 8, and a sum of n cells 2 n:
    # the total of 200 and the largest table count in the average, 9 is the most of the others.
    of_tables = max(16 / plan.loss_value, 8 / 9)
    of_cells = max(2 * (200 + 1) / plan.loss_value, 200 / 9)
    assert rows["times_budget"]["tables"] == pytest.approx(of_tables, rel=1e-5)
    assert rows["times_budget"]["cells"] == pytest.approx(of_cells, rel=1e-5)
    assert "only chosen for the average" in rows["reason"]["product"]
    assert rp.compare(plan).bound_sentence == plan.proven


def test_sentences_name_the_nearest_the_bound_and_laplace_noise():
    compared = rp.compare(planned(MARGINALS))
    cells, nearest, bound, laplace = compared.sentences
    assert cells.startswith("Noise in every cell would need 29.2 times the privacy cost (ρ)")
    assert "does as well here" in nearest
    assert bound.startswith("No Gaussian mechanism, whatever it measures, does better")
    # Two marginals, of ages by sex and of sexes, at half of ε each: variance 2 · 2² / ε² of a cell,
    # and of tables of 1, 2, 100 and 200 cells 200 / 100, 2 / 1 and so on in turn; a hundredth less
    # by least squares, as the ages by sex tell the sexes, too.
    choice = next(row for row in compared.laplace if row.baseline.name == "data-cube")
    assert choice.variances is not None
    wanted = np.array([16, 16, 8, 8]) / 1.01
    np.testing.assert_allclose(np.exp(choice.variances.mean), wanted, rtol=1e-6)
    assert 0.95 * math.sqrt(48 / compared.plan.loss_value) < compared.laplace_epsilon
    assert compared.laplace_epsilon < math.sqrt(48 / compared.plan.loss_value)
    assert "the best product of totals and cells" in laplace
    assert describe_missing(compared).startswith("Binary hierarchies, hierarchies of the best")


def test_of_ranges_of_one_attribute_the_bound_is_near():
    compared = rp.compare(planned(AGES))
    assert 0.995 < compared.least_share <= 1
    assert "whatever it measures, does better by more than 0.5 %" in compared.bound_sentence
    assert "data-cube" not in [row.baseline.name for row in compared.there]


def test_factors_in_words():
    assert describe_times(math.log(1.234)) == "1.23 times"
    assert describe_times(math.log(72)) == "72 times"
    assert describe_times(math.log(12_345)) == "12,345 times"
    assert describe_times(396.4 * math.log(10)) == "about 10^396 times"


def test_only_plans_of_tables_are_compared():
    queries = rp.QueryList(
        rp.Domain.from_sizes({"sex": 2}), [[1, 1], [0, 1]], ("everybody", "women"), [5, 3]
    )
    with pytest.raises(PlanError, match="known beforehand; got a plan of own counts"):
        rp.compare(query_plan(queries, budget=rp.Budget(rho="0.5")))


class Impossible(Baseline):
    """More accurate than anything can be, as rounding errors once made one."""

    def variances(self, workload, closure, loss):
        logs = np.full(len(workload), -600.0)
        return LogVariances(logs, logs)


def test_no_yardstick_is_stated_outside_its_bounds(monkeypatch):
    plan = planned(AGES)
    before = rp.compare(plan)
    wrong = Impossible("wrong", "wrong", "nobody")
    monkeypatch.setattr(baselines, "BASELINES", (*baselines.BASELINES, wrong))
    monkeypatch.setattr(baselines, "LAPLACE_BASELINES", (*baselines.LAPLACE_BASELINES, wrong))
    compared = rp.compare(plan)
    assert [row.reason for row in compared.missing if row.baseline is wrong] == [
        "only where its errors can be computed."
    ]
    assert compared.laplace_epsilon == before.laplace_epsilon


def test_mixed_bases_are_proven_by_the_plan_where_the_root_takes_longer(monkeypatch):
    def little(*args, most_work=0.0):
        assert most_work == baselines.LITTLE_WORK

    monkeypatch.setattr(baselines, "gaussian_bound", little)
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 6, "region": 3}), 2)
    tables = tables.with_bases({"age": rp.Prefix()}, tables=[("age",)])
    plan = planned(tables, rp.SumOfVariances())
    weights = plan.loss.table_weights(tables)
    bound = plan_bound(tables, plan.closure, plan.sigma_squared.floats, weights)
    assert bound is not None
    share = bound / record_cost(plan.budget) / plan.loss_value
    assert rp.compare(plan).least_share == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    "loss", [rp.SumOfVariances(), rp.PNorm(p=3), rp.MaxVariance()], ids=lambda loss: loss.option
)
def test_mixed_bases_are_proven_near_what_any_gaussian_mechanism_can_do(loss):
    """By each table's bound alone it was a half."""
    domain = rp.Domain.from_sizes({"age": 12, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2).with_bases({"age": rp.Prefix()})
    tables = tables.with_bases({"age": rp.Ranges()}, tables=[("age", "sex")])
    compared = rp.compare(planned(tables, loss))
    assert compared.least_share > (0.7 if isinstance(loss, rp.MaxVariance) else 0.97)
    assert compared.least_share <= 1
    assert "weak bound" not in compared.bound_sentence
