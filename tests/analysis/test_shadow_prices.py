"""Shadow prices: which tables are binding, and whether less accuracy for them helps as said."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import binding_targets
from rpexplore.planning.planner import optimum
from tests.analysis.schemes import accuracy_of, with_errors
from tests.published import figures

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})
BUDGET = rp.Budget(rho="0.1")


def with_prices(*prices):
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(len(prices))})
    workload = rp.Workload.all_of_order(domain, 1)
    return with_errors(workload, np.ones(len(prices)), prices)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda x: sum(x) > 1e-3))
def test_holders_are_the_fewest(prices):
    prices = np.array(prices) / np.sum(prices)
    binding = binding_targets.binding_tables(with_prices(*prices))
    ordered = np.sort(prices)[::-1]
    count = len(binding)
    assert ordered[:count].sum() >= 0.8 * (1 - 1e-9)
    assert ordered[: count - 1].sum() < 0.8
    assert prices[binding].tolist() == ordered[:count].tolist()
    assert binding[0] == np.argmax(prices)


def test_by_table_by_order_and_by_attribute():
    accuracy = accuracy_of(figures.workload("CPS", "<=3"), rp.SumOfVariances("cells"))
    workload, prices = accuracy.workload, accuracy.shadow_prices
    tables = binding_targets.by_table(accuracy, most=None)
    assert tables["share"].sum() == pytest.approx(1)
    assert tables["share"].tolist() == np.sort(prices)[::-1].tolist()
    assert len(binding_targets.by_table(accuracy)) == 10
    orders = binding_targets.by_order(accuracy)
    assert orders["tables"].tolist() == [1, 5, 10, 10]
    for order, share in enumerate(orders["share"]):
        assert share == pytest.approx(prices[workload.orders == order].sum())
    frame = binding_targets.by_attribute(accuracy).set_index("attribute")
    for name in workload.domain.names:
        has = np.array([name in table for table in workload.tables])
        assert frame.loc[name, "share"] == pytest.approx(prices[has].sum())
        assert frame.loc[name, "tables"] == has.sum()
        assert frame.loc[name, "share_of_tables"] == has.mean()
    assert frame["share"].is_monotonic_decreasing


@pytest.mark.parametrize("loss", [rp.SumOfVariances("sqrt"), rp.MaxVariance()])
def test_a_little_less_weight_lowers_the_loss_by_the_share(loss):
    """What the words promise: 10 % less weight, about a tenth of the share less loss."""
    workload = rp.Workload.all_up_to(DOMAIN, 2).with_weights({("age",): 5.0, ("sex",): 2.0})
    before = optimum(workload, loss=loss, tolerance=1e-9)
    position = int(np.argmax(before.solution.shadow_prices))
    weights = workload.weights.copy()
    weights[position] *= 0.999
    after = optimum(
        rp.Workload(DOMAIN, workload.members, weights, workload.targets),
        loss=loss,
        tolerance=1e-9,
    )
    fall = 1 - after.solution.lower_bound / before.solution.lower_bound
    assert fall == pytest.approx(0.001 * before.solution.shadow_prices[position], rel=0.01)


def test_a_little_larger_target_lowers_the_loss_by_twice_the_share():
    workload = rp.Workload.all_up_to(DOMAIN, 1).with_targets(
        {(): 3.0, ("age",): 1.0, ("sex",): 2.0, ("region",): 2.0}
    )
    loss = rp.MaxVariance(relative_to="target")
    before = optimum(workload, loss=loss, tolerance=1e-9)
    position = int(np.argmax(before.solution.shadow_prices))
    table = workload.tables[position]
    target = float(workload.targets[position]) * 1.001
    after = optimum(workload.with_targets({table: target}), loss=loss, tolerance=1e-9)
    fall = 1 - after.solution.lower_bound / before.solution.lower_bound
    assert fall == pytest.approx(0.002 * before.solution.shadow_prices[position], rel=0.01)


# ---- words


def words_of(*prices, loss=None):
    return binding_targets.describe_shadow_prices(with_prices(*prices), loss or rp.MaxVariance())


def test_words_for_a_few_tables():
    sentence = words_of(0.5, 0.1, 0.3, 0.1)
    assert sentence == (
        "2 of 4 tables are binding, with 80 % of the largest variance: a0; a2. Less accuracy for "
        "the first helps most: with its weight 10 % less, the largest variance falls by about 5 %."
    )


def test_the_largest_variance_is_one_by_weight_where_there_is_weight():
    tables = rp.Workload.all_up_to(DOMAIN, 1)
    weighted = tables.with_weights({("age",): 4.0})
    assert binding_targets.describe_loss(rp.MaxVariance(), tables) == "the largest variance"
    assert "weighted" in binding_targets.describe_loss(rp.MaxVariance(), weighted)
    by_target = rp.MaxVariance(relative_to="target")  # weight has no say
    for workload in (tables, weighted):
        assert binding_targets.describe_loss(by_target, workload) == by_target.description


def test_nearly_all_of_it_is_not_all():
    assert words_of(0.9999, 0.0001).startswith(
        "1 of 2 tables is binding, with 99.99 % of the largest"
    )


def test_words_for_one_table():
    sentence = words_of(0.9, 0.1, loss=rp.SumOfVariances())
    assert sentence.startswith(
        "1 of 2 tables is binding, with 90 % of the weighted sum of variances: a0. Less accuracy "
        "for it helps most: with its"
    )
    assert "falls by about 9 %" in sentence


def test_words_for_many_tables():
    sentence = words_of(*[0.01] * 100)
    assert sentence.startswith("80 of 100 tables are binding, with 80 % of ")


def test_words_for_the_only_table():
    assert words_of(1.0) == "The only table has all of the largest variance."


def test_words_for_targets():
    sentence = words_of(0.9, 0.1, loss=rp.MaxVariance(relative_to="target"))
    assert "the largest variance relative to its target: a0" in sentence
    assert "with its target 5 % larger" in sentence


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("table", "The table (total) has 40 % of it."),
        ("order", "The total has 40 % of it, with 17 %"),
        ("attribute", "The tables with a4 have 30 % of it, with"),
    ],
)
def test_the_first_in_a_sentence(kind, text):
    accuracy = accuracy_of(figures.workload("CPS", "<=1"), rp.MaxVariance())
    prices = np.array([0.4, 0.1, 0.1, 0.05, 0.05, 0.3])
    accuracy = replace(accuracy, shadow_prices=prices)
    frame = binding_targets.FRAMES[kind](accuracy)
    if kind == "order":
        frame = frame.head(1)
    assert binding_targets.describe_first(frame, kind, "it").startswith(text)
