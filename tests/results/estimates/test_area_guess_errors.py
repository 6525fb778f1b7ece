"""Expected errors of best guesses by level: beside simulated releases, and what must hold."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rpexplore as rp
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.results.estimates.area_cells import cells_of
from rpexplore.results.estimates.area_families import SIZES
from rpexplore.results.estimates.area_guess_errors import (
    _good_shares,
    _sizes,
    guess_errors_by_level,
)
from rpexplore.results.estimates.area_guesses import BestGuesses, tables_with_errors
from rpexplore.results.estimates.whole_areas import known_totals

TREE = rp.AreaTree.from_columns(
    {"town": np.repeat([*"abcd"], 5), "block": np.tile([*"12345"], 4).astype(str)}
)
DOMAIN = rp.Domain.from_sizes({"sex": 2, "age": 4})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)
PLAN = plan_areas(
    rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, TABLES)),
    loss=rp.SumOfVariances(),
    budget=rp.Budget(rho="0.3"),
)


def test_errors_are_those_of_simulated_releases_whose_areas_differ_by_chance():
    """Blocks are drawn from a town, and answers from within them have the noise of the plan."""
    expected = rp.ExpectedCounts.of_total(480)
    errors = guess_errors_by_level(PLAN, expected).set_index("level")
    cells, generator = cells_of(PLAN), np.random.default_rng(2)
    spreads = {2: np.ones(len(SIZES) + 1)}
    tables = tables_with_errors(PLAN, cells)
    guesses = BestGuesses(
        TREE, cells, lambda *_: np.empty(0), known_totals(TREE, {}), PLAN, tables, spreads, {}
    )
    areas = np.arange(TREE.starts[2], TREE.starts[2] + 5)
    noise = guesses._noise(2)
    group = int(PLAN.groups.of_area[areas[0]])
    information = noise.entries(noise.information(group), np.arange(8), np.arange(8))
    root = np.linalg.cholesky(np.linalg.inv(information))
    above = np.full((1, 8), 15)
    squares = []
    for _ in range(100):
        truth = np.stack([generator.multinomial(15, np.full(5, 0.2)) for _ in range(8)], axis=1)
        answers = truth + generator.normal(size=(5, 8)) @ root.T
        found, _ = guesses.counts_of_parts(2, areas, np.array([5]), above, answers)
        of_tables = [
            np.mean(cells.margin_on(found - truth, 2, attributes).astype(float) ** 2)
            for attributes in tables[2]
        ]
        squares.append(np.mean(of_tables))
    # The town's own error comes on top in the forecast, and rounding in the simulation.
    simulated = np.sqrt(np.mean(squares))
    assert simulated == pytest.approx(errors["alike"]["block"], rel=0.1)
    assert simulated < 0.8 * errors["unbiased"]["block"]


def test_guesses_gain_most_in_small_areas_that_are_alike():
    errors = guess_errors_by_level(PLAN, rp.ExpectedCounts.of_total(4_000), cv_limit=0.5)
    assert errors["level"].tolist() == list(TREE.levels)
    np.testing.assert_allclose(errors["size"], [4_000, 1_000, 200])
    assert np.all(errors["alike"] <= errors["differing"] * (1 + 1e-12))
    assert np.all(errors["differing"] <= errors["unbiased"] * (1 + 1e-12))
    gains = (errors["alike"] / errors["unbiased"]).to_numpy()
    assert gains[0] == pytest.approx(1)
    assert gains[2] < gains[1] < 1
    assert np.all(errors["people_alike"] >= errors["people_unbiased"])


def test_only_levels_with_guesses_have_errors():
    asked = rp.AreaWorkload.of_levels(TREE, {TREE.levels[0]: TABLES, "town": TABLES})
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    errors = guess_errors_by_level(plan, rp.ExpectedCounts.of_total(100))
    assert errors["level"].tolist() == list(TREE.levels[:2])


def test_tables_of_other_levels_alone_are_not_judged():
    """A table that blocks do not have has no unbiased counts there, if parts of it are known."""
    asked = {"town": TABLES, "block": rp.Workload.all_up_to(DOMAIN, 1)}
    plan = plan_areas(
        rp.AreaWorkload.of_levels(TREE, {TREE.levels[0]: TABLES} | asked),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.3"),
    )
    errors = guess_errors_by_level(plan, rp.ExpectedCounts.of_total(400)).set_index("level")
    accuracy = plan.accuracy()
    for level in TREE.levels:
        stated = accuracy.loc[accuracy["level"] == level, "standard_error"]
        assert errors["unbiased"][level] == pytest.approx(np.sqrt(np.mean(stated**2)), rel=1e-6)
    assert errors["alike"]["block"] < errors["unbiased"]["block"]


def test_the_area_that_is_looked_at_has_the_median_noise_of_those_of_the_median_size():
    """All blocks hold 10. Those in the middle of the tree are alone in their towns: less noise."""
    towns = [*"a" * 8, *"bcde", *"f" * 8]
    tree = rp.AreaTree.from_columns(
        {"town": towns, "block": [str(row) for row in range(len(towns))]}
    )
    totals = rp.Workload.of(DOMAIN, [()])
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, totals))
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.3"))
    errors = guess_errors_by_level(plan, rp.ExpectedCounts.of_total(200)).set_index("level")
    accuracy = plan.accuracy()
    row = accuracy.loc[accuracy["level"] == "block"].iloc[0]
    assert errors["unbiased"]["block"] == pytest.approx(row["largest_standard_error"])


def test_areas_have_the_sizes_that_are_stated():
    blocks = np.arange(TREE.starts[2], TREE.starts[2] + 20)
    even = rp.ExpectedCounts.of_total(400)
    evenly = guess_errors_by_level(PLAN, even, totals=dict.fromkeys(blocks.tolist(), 20.0))
    pd.testing.assert_frame_equal(evenly, guess_errors_by_level(PLAN, even))
    # Town a has 300 and its first block 200 of these; 100 are left for its others, and 100 for b.
    towns = {1: 300.0, 3: 0.0, 4: 0.0, int(blocks[0]): 200.0}
    sizes = _sizes(TREE, 400, towns)
    assert sizes[:5].tolist() == [400, 300, 100, 0, 0]
    assert sizes[blocks].tolist() == [200, *[25] * 4, *[20] * 5, *[0] * 10]
    errors = guess_errors_by_level(PLAN, even, totals=towns).set_index("level")
    assert errors["size"]["block"] in (20, 25)  # the median of ten that are not empty
    assert errors["alike"].between(0, errors["unbiased"] * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["alike", "differing"])
def test_records_in_good_cells_are_those_of_counts_with_the_law_of_best_guesses(name):
    expected, errors = np.array([0.3, 2.0, 8.0, 20.0, 5.0]), np.array([0.3, 0.7, 1.5, 4.2, 0.1])
    counts = np.arange(2_000)[:, None]
    law = stats.poisson(expected) if name == "alike" else stats.nbinom(4, 4 / (4 + expected))
    assert np.all(law.var() >= expected * (1 - 1e-12))
    in_cells = counts * law.pmf(counts)
    by_hand = np.sum(in_cells * (errors <= 0.2 * counts), axis=0) / np.sum(in_cells, axis=0)
    found = _good_shares(errors**2, expected, 0.2, name, level=1)
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)
    assert 0 < found.min() < found[-1] == 1
    assert _good_shares(errors**2, expected, 0.2, name, level=0).tolist() == [0, 0, 1, 0, 1]


def test_records_in_good_cells_are_those_of_the_areas_that_most_people_live_in():
    """Nine blocks in ten are small, and one has nine records in ten."""
    blocks = np.arange(TREE.starts[2], TREE.starts[2] + 20).tolist()
    totals = dict.fromkeys(blocks, 8.0) | dict.fromkeys(blocks[::10], 8_000.0)
    expected = rp.ExpectedCounts.of_total(16_144)
    errors = guess_errors_by_level(PLAN, expected, totals=totals).set_index("level")
    assert errors["size"]["block"] == 8
    assert errors["people_alike"]["block"] == pytest.approx(1)
