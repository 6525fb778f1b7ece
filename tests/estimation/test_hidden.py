"""What tables may hide, against draws whose deviations are known."""

from itertools import chain, combinations

import numpy as np
import pytest

from rpexplore.domain.domain import subsets
from rpexplore.estimation.hidden import (
    Misfit,
    contradicted,
    free_counts,
    hidden_scales,
    misfits,
    towards_measured,
)
from rpexplore.estimation.smooth_tables import smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from tests.support.joint_records import JOINT_RECORDS

SIZES = np.array([6, 6, 6])
FAMILY = list(subsets((0, 1, 2)))


def contributions_of(counts):
    found = {}
    for subset in FAMILY:
        table = counts.sum(axis=tuple({0, 1, 2} - set(subset)))
        for axis in range(len(subset)):
            table = table - table.mean(axis=axis, keepdims=True)
        found[subset] = table
    return found


def noisy(exact, variance, rng, sizes=SIZES):
    drawn = {}
    for subset, values in exact.items():
        noise = rng.normal(0, variance**0.5, values.shape)
        for axis in range(len(subset)):
            noise = noise - noise.mean(axis=axis, keepdims=True)
        drawn[subset] = values + noise
    return MeasuredResiduals(drawn, dict.fromkeys(drawn, variance), np.array(sizes), {})


def test_free_counts_are_the_variances_that_are_left_where_sums_are_given():
    # Of one axis by the formula of normal counts: D − D 1 (1ᵀ D 1)⁻¹ 1ᵀ D.
    counts = np.array([90.0, 9.0, 1.0, 0.0])
    left = np.diag(counts) - np.outer(counts, counts) / counts.sum()
    np.testing.assert_allclose(free_counts(counts), np.diag(left))
    # A minority's records can only be taken for the majority's: both can move by as much. With
    # both sums of each axis given, one number is left; it has the variance 1/Σ 1/t.
    pair = np.array([[9_000.0, 900.0], [90.0, 10.0]])
    np.testing.assert_allclose(free_counts(pair), 1 / np.sum(1 / pair), rtol=0.12)
    assert not free_counts(np.diag([5.0, 0.0, 7.0])).any()  # one value follows from the other


def test_what_a_small_group_hides_is_not_looked_for_among_all_others():
    """Records of a small group are in other cells than the tables say, all others' in theirs."""
    rng, sizes, hidden, bounds = np.random.default_rng(3), np.array([2, 6, 6]), 4000.0, []
    tables = np.stack([np.full((6, 6), 10_000.0), np.full((6, 6), 100.0)])
    estimates = contributions_of(tables)
    for _ in range(40):
        off = rng.normal(0, hidden**0.5, (6, 6))
        truth = contributions_of(tables + np.stack([-off, off]))
        measured = noisy({**estimates, (0, 1, 2): truth[(0, 1, 2)]}, 900.0, rng, sizes)
        found = misfits(
            measured,
            estimates,
            lambda subset: tables.sum(axis=tuple({0, 1, 2} - set(subset))),
            lambda _, table: np.zeros_like(table),
        )
        scale = hidden_scales(found)[(0, 1, 2)]
        bounds.append(scale * free_counts(tables)[1].mean())
    # (1 − 1/6)² of the variance is left where sums are given.
    left = hidden * 25 / 36
    assert np.mean(np.array(bounds) >= left / 2) >= 0.9
    assert np.median(bounds) <= 4 * left


@pytest.mark.parametrize("hidden", [0.0, 4.0, 400.0])
def test_intervals_of_what_is_hidden_hold_about_as_often_as_stated(hidden):
    """In 93 of 100 cells, over draws: `hidden` is one of many values, and 95 % are of all."""
    rng, variance, held, bounds = np.random.default_rng(0), 900.0, [], []
    tables = np.full((6, 6, 6), 100.0)
    estimates = contributions_of(tables)
    for _ in range(40):
        # The truth deviates by variances τ t from tables that repeat nothing of the noise.
        truth = contributions_of(tables + rng.normal(0, np.sqrt(hidden * tables)))
        of_triple = {**estimates, (0, 1, 2): truth[(0, 1, 2)]}
        measured = noisy(of_triple, variance, rng)
        found = misfits(
            measured,
            estimates,
            lambda subset: tables.sum(axis=tuple({0, 1, 2} - set(subset))),
            lambda _, table: np.zeros_like(table),
        )
        stated = hidden_scales(found)[(0, 1, 2)] * free_counts(tables)
        held.append(np.mean(np.abs(truth[(0, 1, 2)]) <= 1.96 * np.sqrt(stated)))
        bounds.append(stated.mean() / 100)
    assert np.mean(held) >= 0.93
    # The distance varies by √(2/125) of the noise's 900: by as much as τ = 1.1.
    assert np.median(bounds) <= max(1.5 * hidden, 5.0)


def test_a_residual_farther_than_noise_explains_is_contradicted():
    right = Misfit(distance=1.1, kept=0.0, signal=0.1, degrees_of_freedom=100)
    by_chance = Misfit(distance=2.5, kept=0.0, signal=0.1, degrees_of_freedom=2)
    wrong = Misfit(distance=2.5, kept=0.0, signal=0.1, degrees_of_freedom=100)
    # P(χ²_2 > 5) = 0.08 and P(χ²_100 > 250) = 4e-15.
    assert contradicted({(0,): right, (1,): by_chance, (2,): wrong}) == [(2,)]


def test_an_estimate_moves_to_the_measurement_but_for_the_share_of_its_noise():
    measured = noisy(contributions_of(np.full((6, 6, 6), 10.0)), 4.0, np.random.default_rng(1))
    estimates = {subset: np.zeros_like(measured.contributions[subset]) for subset in FAMILY}
    moved = towards_measured(measured, estimates, {(0, 1): Misfit(4.0, 0.0, 1.0, 25)})
    np.testing.assert_allclose(moved[(0, 1)], 0.75 * measured.contributions[(0, 1)])
    assert not moved[(0, 2)].any()


def test_intervals_hold_cells_of_a_derived_variable():
    """w = (u + v) mod 6: no pair shows it, and the noise hides half of it."""
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 6, (2, 20_000))
    counts = np.zeros((6, 6, 6))
    np.add.at(counts, (u, v, np.where(rng.random(20_000) < 0.3, (u + v) % 6, v)), 1)
    held = []
    for _ in range(3):
        smooth = smooth_residuals(noisy(contributions_of(counts), 3600.0, rng))
        off = np.abs(smooth.table((0, 1, 2)) - counts) / smooth.standard_errors((0, 1, 2))
        held.append((off <= 1.96)[counts >= 20])
    assert np.mean(held) >= 0.85


@pytest.mark.nightly
@pytest.mark.parametrize("name", JOINT_RECORDS)
def test_intervals_hold_cells_of_20_in_every_table_of_joint_records(name):
    domain, records = JOINT_RECORDS[name]()
    triples = list(combinations(range(len(domain)), 3))
    family = sorted(set(chain.from_iterable(map(subsets, triples))), key=lambda s: (len(s), s))
    sizes, rng = domain.sizes, np.random.default_rng(0)

    def table(subset):
        shape = tuple(sizes[list(subset)])
        cells = np.ravel_multi_index(tuple(records[:, list(subset)].T), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    held, cells = dict.fromkeys(triples, 0), dict.fromkeys(triples, 0)
    for _ in range(3):
        contributions = {}
        for subset in family:
            values = (
                table(subset) + rng.normal(0, 10.0, sizes[list(subset)])
                if subset
                else np.array(5e4)
            )
            for axis in range(len(subset)):
                values = values - values.mean(axis=axis, keepdims=True)
            contributions[subset] = np.array(values)
        variances = dict.fromkeys(family, 100.0)
        smooth = smooth_residuals(MeasuredResiduals(contributions, variances, sizes, {}))
        for triple in triples:
            large = table(triple) >= 20
            off = np.abs(smooth.table(triple) - table(triple)) / smooth.standard_errors(triple)
            held[triple] += int(np.sum(off[large] <= 1.96))
            cells[triple] += int(large.sum())
    shares = [held[triple] / cells[triple] for triple in triples if cells[triple] >= 100]
    assert np.mean(shares) >= 0.93
    assert min(shares) >= 0.8
