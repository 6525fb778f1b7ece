"""Laws of counts: against SciPy, and sums over all tables that the answers could come from."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rpexplore.results.estimates.area_cells import cells_of
from rpexplore.results.estimates.area_families import SIZES, CellNoise, Family
from rpexplore.results.estimates.area_guesses import BestGuesses, tables_with_errors
from rpexplore.results.estimates.count_laws import MOST, negative_binomial, power_law
from rpexplore.results.estimates.whole_areas import known_totals
from tests.releases.area_plans import PLANS, TREE

COUNTS = np.arange(MOST + 1)


def test_the_negative_binomial_law_is_that_of_scipy_and_poissons_at_a_ratio_of_1():
    means, ratios = np.array([0.3, 4.0, 2.0]), np.array([2.5, 1.7, 0.6])
    found = negative_binomial(means, ratios, 9)
    found -= found[:, :1]
    for row in range(2):
        chance = 1 / ratios[row]
        size = means[row] * chance / (1 - chance)
        expected = stats.nbinom.logpmf(COUNTS[:10], size, chance)
        np.testing.assert_allclose(found[row], expected - expected[0])
    expected = stats.poisson.logpmf(COUNTS[:10], 2.0)
    np.testing.assert_allclose(found[2], expected - expected[0], atol=0.4)


@pytest.mark.parametrize("power", [0.75, 2.0])
def test_the_power_law_is_one_that_counts_were_drawn_from(power):
    generator, total = np.random.default_rng(3), 20_000
    places = np.arange(total + 1.0)
    chances = (places + 0.3) ** -power
    counts = generator.choice(places, 3_000, p=chances / chances.sum())
    variances = np.full(3_000, 2.0)
    found = power_law(generator.normal(counts, np.sqrt(2)), variances, total)
    expected = np.log(chances / chances.sum())[: MOST + 1]
    assert np.max(np.abs(found - expected)[:20]) < 0.35
    # Most of all, how many are 0.
    assert np.exp(found[0]) == pytest.approx(np.exp(expected[0]), rel=0.1)


def all_parts(above):
    """All tables int64[n, 2, k] of two parts that add up to the counts."""
    first = np.array(list(product(*(range(count + 1) for count in above))))
    return np.stack([first, above - first], axis=1)


def test_means_are_those_of_all_tables_of_two_parts():
    """Normal laws miss such small means by twice as much, and state larger variances."""
    plan, shares, alphas = PLANS["the same"], np.array([0.5, 0.5]), np.ones(2)
    noise = CellNoise.of_plan(plan, cells_of(plan), 3)
    group = int(plan.groups.of_area[TREE.starts[3]])
    above, spreads = np.array([6, 1, 0, 2, 9, 1]), np.full(len(SIZES) + 1, 1.5)
    family, support = Family.of(noise, group, above, spreads, 2), np.flatnonzero(above)
    information = noise.entries(noise.information(group), np.arange(6), np.arange(6))
    tables, mean = all_parts(above[support]), above[support] / 2
    logs = negative_binomial(mean, np.full(len(support), 1.5), 9)
    prior = logs[np.arange(len(support)), tables].sum(axis=(1, 2))
    root = np.linalg.cholesky(np.linalg.inv(information))
    generator, off, off_by_normal = np.random.default_rng(0), [], []
    exact, stated = [], []
    for _ in range(8):
        truth = generator.binomial(above, 0.5)
        answers = np.stack([truth, above - truth]) + generator.normal(size=(2, 6)) @ root.T
        answers[1] += above - answers.sum(axis=0)  # nothing is measured of what is known together
        x = np.zeros((len(tables), 2, 6))
        x[:, :, support] = tables
        weights = prior - np.einsum("npi,ij,npj->n", x - answers, information, x - answers) / 2
        weights = np.exp(weights - weights.max())
        weights /= weights.sum()
        expected = np.tensordot(weights, tables, 1)
        variances = np.tensordot(weights, (tables - expected) ** 2, 1)

        found, own = family.posterior_of_counts(answers, shares[:, None] * above, shares, alphas)
        own *= 1 - own / own.sum(axis=0)
        exact.append(variances.mean())
        stated.append(np.mean(own @ family.squares(np.arange(5), 5).T))
        normal, _ = family.posterior(answers, shares[:, None] * above, shares, alphas)
        off.append(np.abs(found - expected).mean())
        off_by_normal.append(np.abs(normal - expected).mean())
        np.testing.assert_allclose(found.sum(axis=0), above[support])
    assert np.mean(off) < np.mean(off_by_normal) / 2
    assert 1 < np.mean(stated) / np.mean(exact) < 1.3


def test_the_top_has_the_means_of_all_tables_with_its_sums():
    """Rare kinds are mostly 0: the power law, given the sums of the stage before."""
    plan = PLANS["the same"]
    cells, n_cells = cells_of(plan), 6
    truth = np.array([[5.0, 0, 0], [0, 1, 9]])
    answers = (truth + np.random.default_rng(2).normal(0, 0.8, truth.shape)).ravel()
    guesses = BestGuesses(
        TREE, cells, lambda level, areas: answers[None], known_totals(TREE, {}), plan,
        tables_with_errors(plan, cells), {}, {},
    )  # fmt: skip
    assert not cells.has_unknown(0)
    sums = np.array([5, 10])
    means, covariance = guesses._posterior_of_top(sums)

    noise = CellNoise.of_plan(plan, cells, 0)
    every = np.arange(n_cells)
    information = noise.entries(noise.information(0), every, every)
    logs = power_law(answers, noise.cell_variances(0, every), round(answers.sum()))
    tables = np.array([
        (*first, 5 - sum(first), *second, 10 - sum(second))
        for first in product(range(6), repeat=2) if sum(first) <= 5
        for second in product(range(11), repeat=2) if sum(second) <= 10
    ])  # fmt: skip
    off = tables - answers
    weights = logs[tables].sum(axis=1) - np.einsum("ni,ij,nj->n", off, information, off) / 2
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    expected = weights @ tables
    np.testing.assert_allclose(means, expected, atol=0.1)
    variances = weights @ (tables - expected) ** 2
    np.testing.assert_allclose(np.diag(covariance), variances, atol=0.2)
