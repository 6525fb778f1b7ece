"""Best guesses for areas: the posterior by dense algebra, and what must hold of all of them."""

from itertools import combinations
from math import prod

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases import area_parts
from rpexplore.results.area_results import AreaResults
from rpexplore.results.estimates import area_families, area_guesses
from rpexplore.results.estimates.area_cells import cells_of
from rpexplore.results.estimates.area_counts import AreaCounts
from rpexplore.results.estimates.area_families import SIZES, size_classes
from rpexplore.results.estimates.area_guesses import (
    BestGuesses,
    find_spreads,
    tables_with_errors,
)
from rpexplore.results.estimates.whole_areas import WholeCounts, known_totals
from tests.benchmarks.small_areas import errors_of, sample_country
from tests.releases.area_plans import PLANS, TREE
from tests.results.estimates.test_area_counts import cells_of_areas, released  # noqa: F401
from tests.support.area_trees import incidence

SHAPE = (2, 3)  # sex, age
SPREADS = np.linspace(0.5, 3, len(SIZES) + 1)


def no_answers(level, areas):
    raise AssertionError("Answers are given.")


def guesses_of(plan, spreads):
    cells = cells_of(plan)
    return BestGuesses(
        TREE, cells, no_answers, known_totals(TREE, {}), plan, tables_with_errors(plan, cells),
        spreads, {},
    )  # fmt: skip


def dense_posterior(plan, areas, above, answers, totals):
    """Means float64[n_parts, 6] and covariance of the parts' cells, of which `above` is the sum.

    Of each part x ~ N(share · above, diag(τ share · above)); each residual of it was measured with
    the variance that a least-squares answer from within the part has, by the explicit inverse.
    """
    within, support = incidence(TREE), np.flatnonzero(above)
    k, n = len(support), len(areas)
    shares = totals / totals.sum()
    spread = SPREADS[size_classes(above[support] / n)]
    mean = np.concatenate([share * above[support] for share in shares])
    precision = np.diag(1 / (np.tile(spread, n) * mean))
    linear = precision @ mean
    residuals = [each for order in range(3) for each in combinations(range(2), order)]
    for place, area in enumerate(areas):
        inside = np.flatnonzero(within[area])
        own = np.flatnonzero(within[:, inside].any(1) & ~within[:, within[area] == 0].any(1))
        for residual in residuals:
            row = plan.closure.find(residual)
            multiples = plan.multiples[plan.of_residual[row], plan.groups.of_area[own]]
            t = multiples * float(plan.unit) * plan.factors[row]
            leaves = within[np.ix_(own, inside)]
            variance = np.sum(np.linalg.inv(leaves.T @ np.diag(t) @ leaves))
            factors = [np.eye(n) - 1 / n if i in residual else np.ones((n, n)) / n
                       for i, n in enumerate(SHAPE)]  # fmt: skip
            projection = np.kron(*factors)
            apart = prod(size for i, size in enumerate(SHAPE) if i not in residual)
            # Measured with covariance variance · ⊗ P, and spread over `apart` cells each.
            information = projection * apart / variance
            at = slice(place * k, (place + 1) * k)
            precision[at, at] += information[np.ix_(support, support)]
            moved = answers[place] + (totals[place] - answers[place].sum()) / answers.shape[1]
            linear[at] += (information @ moved)[support]
    covariance = np.linalg.inv(precision)
    posterior = covariance @ linear
    sums = np.tile(np.eye(k), n)
    gain = covariance @ sums.T @ np.linalg.inv(sums @ covariance @ sums.T)
    posterior = posterior + gain @ (above[support] - sums @ posterior)
    covariance = covariance - gain @ sums @ covariance
    means, whole = np.zeros((n, 6)), np.zeros((n, 6, n, 6))
    means[:, support] = posterior.reshape(n, k)
    parts = np.arange(n)
    whole[np.ix_(parts, support, parts, support)] = covariance.reshape(n, k, n, k)
    return means, whole


@pytest.mark.parametrize("level", [1, 3])
def test_counts_and_errors_are_those_of_the_dense_posterior(level, monkeypatch):
    """Squared errors are the posterior variance of a cell and what the whole count is off."""
    monkeypatch.setattr(area_families, "_LEAST_RATIO", np.inf)  # normal laws alone
    plan, generator = PLANS["the same"], np.random.default_rng(level)
    areas = np.arange(*TREE.starts[[level, level + 1]])
    areas = areas[TREE.parents[areas] == TREE.parents[areas[0]]]
    above = np.array([40, 3, 0, 11, 25, 7])
    answers = generator.normal(above / len(areas), 3, (len(areas), 6))
    guesses = guesses_of(plan, {level: SPREADS})
    n_parts = np.array([len(areas)])
    n_columns = guesses.columns(level)[-1][2].stop

    counts, errors = guesses.counts_of_parts(
        level, areas, n_parts, above[None], answers, np.zeros((1, n_columns))
    )

    assert counts.sum(axis=0).tolist() == above.tolist()
    totals = counts.sum(axis=1)
    assert np.all(totals > 0)
    means, covariance = dense_posterior(plan, areas, above, answers, totals)
    assert errors is not None
    for attributes, _, columns in guesses.columns(level):
        if not attributes:
            continue  # of totals it is the least-squares error
        axes = tuple(axis for axis in range(2) if axis not in attributes)
        for part in range(len(areas)):
            own = covariance[part, :, part, :].reshape(*SHAPE, *SHAPE)
            own = own.sum(axis=(*axes, *(axis + 2 for axis in axes)))
            variances = np.diag(own.reshape(errors[part, columns].size, -1))
            off = (counts[part] - means[part]).reshape(SHAPE).sum(axis=axes).ravel()
            expected = variances + off**2
            np.testing.assert_allclose(errors[part, columns], expected, rtol=1e-5, atol=1e-6)
    # Whole counts are not far from the means: each cell within 1, if these are not negative.
    if np.all(means >= 0):
        assert np.max(np.abs(counts - means)) < 2


def test_totals_are_those_of_the_dense_posterior():
    """Of x = T · shares + deviations with next to no prior on T, and all that was measured of x."""
    plan, spreads = PLANS["the same"], SPREADS
    noise = area_families.CellNoise.of_plan(plan, cells_of(plan), 3)
    group = int(plan.groups.of_area[TREE.starts[3]])
    above = np.array([40, 3, 0, 11, 25, 7])
    family = area_families.Family.of(noise, group, above, spreads, 2)
    generator = np.random.default_rng(1)
    answers = generator.normal(above / 2, 3, (2, 6))
    measured, alphas = answers.sum(axis=1), np.array([1.0, 0.6])
    alone = np.full(2, 1e9)  # so that nothing contradicts it

    totals, variances = family.totals(answers, alphas, measured, alone)

    support, cells = np.flatnonzero(above), np.arange(6)
    information = noise.entries(noise.information(group), cells, cells)
    shares = above[support] / above.sum()
    spread = spreads[size_classes(above[support] / 2)]
    for part in range(2):
        total, own = measured[part], alphas[part] * information[support]
        for _ in range(2):
            prior = 1e8 * np.outer(shares, shares) + np.diag(spread * total * shares)
            covariance = np.linalg.inv(np.linalg.inv(prior) + own[:, support])
            total = np.sum(covariance @ own @ answers[part])
        np.testing.assert_allclose(totals[part], total, rtol=1e-5)
        np.testing.assert_allclose(variances[part], np.sum(covariance), rtol=1e-5)
    # A total is left alone where the answers to it and to the cells cannot both be right.
    alone = variances + (totals - measured) ** 2 / 9
    kept, _ = family.totals(answers, alphas, measured, 0.99 * alone)
    np.testing.assert_array_equal(kept, measured)
    moved, _ = family.totals(answers, alphas, measured, 1.01 * alone)
    np.testing.assert_array_equal(moved, totals)


def test_areas_of_very_many_cells_are_estimated_cell_by_cell(monkeypatch):
    """From the variance of each alone: m + τm/(τm + σ²)(y − m), all parts together adding up."""
    monkeypatch.setattr(area_families, "MOST_TOGETHER", 2)
    plan, areas = PLANS["the same"], np.arange(*TREE.starts[[1, 2]])
    spreads = np.full(len(SIZES) + 1, 2.0)
    guesses = guesses_of(plan, {1: spreads})
    above = np.array([40, 3, 0, 11, 25, 7])
    noise = area_families.CellNoise.of_plan(plan, guesses.cells, 1)
    family = area_families.Family.of(noise, 1, above, spreads, 2)
    answers = np.array([[25.0, 1, 1, 3, 10, 3], [17, 2, -2, 9, 14, 3]])
    expected = np.array([[0.5], [0.5]]) * above
    means, variances = family.posterior(answers, expected, np.array([0.5, 0.5]), np.ones(2))
    m, sigma = expected[0, family.support], noise.cell_variances(1, np.arange(1))
    alone = m + 2 * m / (2 * m + sigma) * (answers[:, family.support] - m)
    surplus = alone.sum(axis=0) - above[family.support]
    np.testing.assert_allclose(means, alone - surplus / 2)
    np.testing.assert_allclose(
        variances[0] * 2 * above[family.support], sigma * 2 * m / (2 * m + sigma)
    )
    generator = np.random.default_rng(0)
    counts, errors = guesses.counts_of_parts(
        1, areas, np.array([len(areas)]), above[None], generator.normal(9, 3, (len(areas), 6)),
        np.ones((1, guesses.columns(1)[-1][2].stop)),
    )  # fmt: skip
    assert counts.sum(axis=0).tolist() == above.tolist()
    assert errors is not None
    assert np.all(errors > 0)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ["the same", "less further down", "none below"])
def test_guesses_are_whole_and_add_up_and_records_have_them(released, tmp_path, name):  # noqa: F811
    plan = PLANS[name]
    release = released(plan)
    rp.postprocess(release, tmp_path / "guesses", method="smooth", in_areas=True)
    guesses = AreaCounts.load(tmp_path / "guesses")
    assert guesses.is_smooth

    cells = cells_of_areas(guesses, plan)
    errors = cells_of_areas(guesses, plan, "model_error")
    assert cells_of_areas(guesses, plan, "unbiased_value") == cells_of_areas(release, plan)
    totals = {}
    for attributes, of_areas in cells.items():
        for area, own in of_areas.items():
            assert min(own) >= 0
            assert min(errors[attributes][area]) >= 0
            assert all(value == int(value) for value in own)
            assert totals.setdefault(area, sum(own)) == sum(own)
            parts = np.flatnonzero(TREE.parents == area).tolist()
            if parts and set(parts) <= of_areas.keys():
                assert np.sum([of_areas[part] for part in parts], axis=0).tolist() == own

    records = rp.synthesize(release, tmp_path / "records", in_areas=True)
    rows = records.records()
    assert len(rows) == records.n_records == totals[0]
    levels = list(TREE.levels[1:])
    # No folder is named like a column, or readers take the codes from it as numbers.
    folders = sorted(each.name for each in (tmp_path / "records" / "records").iterdir())
    assert folders == ["by_region=N", "by_region=S", "by_region=W"]
    for attributes, of_areas in cells.items():
        names = [each for each in attributes if each != "one"]
        for area, own in of_areas.items():
            path = TREE.path(area)
            inside = rows
            for level, code in zip(levels, path, strict=False):
                inside = inside[inside[level].astype(str) == code]
            codes = np.zeros(len(inside), dtype=int)
            for each in names:
                size = plan.domain.attributes[plan.domain.names.index(each)].size
                codes = codes * size + np.asarray(inside[each]).astype(int)
            assert np.bincount(codes, minlength=len(own)).tolist() == own


@pytest.mark.by_day(1)
def test_best_guesses_of_nobody_make_no_records(released, tmp_path):  # noqa: F811
    release = released(PLANS["the same"])
    nobody = rp.postprocess(
        release, tmp_path / "guesses", method="smooth", in_areas=True, known_totals={0: 0}
    )
    with pytest.raises(ReleaseError, match="nobody in any area"):
        rp.synthesize(AreaResults(release, nobody), tmp_path / "records", in_areas=True)
    assert not (tmp_path / "records").exists()


def test_areas_like_their_surroundings_are_guessed_better_than_they_are_counted():
    """Where parts have the shares of the whole, means come from it and not from noise."""
    plan, generator = PLANS["the same"], np.random.default_rng(5)
    level, areas = 3, np.arange(*TREE.starts[[3, 4]])
    areas = areas[TREE.parents[areas] == TREE.parents[areas[0]]]
    truth = np.tile([9.0, 1, 0, 4, 2, 0], (len(areas), 1))
    above = truth.sum(axis=0).astype(np.int64)[None]
    like = guesses_of(plan, {level: np.full(len(SIZES) + 1, 1e-3)})
    whole = WholeCounts(TREE, like.cells, no_answers, like.totals)
    off = []
    for _ in range(30):
        answers = truth + generator.normal(0, 3, truth.shape)
        n_parts = np.array([len(areas)])
        given = level, areas, n_parts, above, answers
        off.append(
            [np.abs(each.counts_of_parts(*given)[0] - truth).sum() for each in (like, whole)]
        )
    guessed, counted = np.mean(off, axis=0)
    assert guessed < 0.8 * counted


@pytest.mark.nightly
def test_guesses_for_the_sample_country_are_nearer_than_whole_counts_and_errors_hold():
    plan, counts = sample_country()
    errors = errors_of(plan, counts, 3)
    ratios = list(errors.ratios("whole").values())
    assert np.mean(ratios) <= 0.92  # on the two upper levels nothing is gained
    assert max(ratios) <= 1.1
    districts = [errors.mean("guesses", 4, table) for table in ((1, 2), (0, 1), (1,), ())]
    assert np.all(np.array(districts) <= [7.0, 8.0, 5.7, 1.8])  # docs/areas.md
    assert errors.shares_covered.min() >= 0.85
    assert errors.shares_covered.mean() >= 0.93


def test_how_areas_differ_is_found_on_levels_that_few_subtrees_have(tmp_path, monkeypatch):
    """Or each subtree would find it for itself, and for those after it."""
    monkeypatch.setattr(area_parts, "PART_NUMBERS", 12)
    monkeypatch.setattr(area_guesses, "_PARTS", 1)
    rows = [("A", None), *(("B", str(town)) for town in range(3))]
    tree = rp.AreaTree.from_columns(
        {"region": [row[0] for row in rows], "town": [row[1] for row in rows]}
    )
    domain = rp.Domain.from_sizes({"sex": 2})
    sexes = rp.Workload.of(domain, [("sex",), ()])
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
    plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    records = pd.DataFrame(
        [(*row, sex) for row in rows for sex in (0, 1) for _ in range(20)],
        columns=pd.Index(["region", "town", "sex"]),
    )
    ledger = tmp_path / "ledger.sqlite"
    release = rp.release(plan, records, tmp_path / "release", name="people", ledger=ledger)
    areas = release.part("areas")
    assert areas is not None
    assert (areas.parts.level, len(areas.parts.areas)) == (1, 3)
    cells = cells_of(areas.plan)
    tables, totals = tables_with_errors(areas.plan, cells), known_totals(tree, {})
    found = []

    def made_of(own, spreads, curves):
        found.append(BestGuesses(tree, cells, own, totals, areas.plan, tables, spreads, curves))
        return found[-1]

    spreads = find_spreads(made_of, areas.parts, areas.answers_in_areas, cells)
    assert spreads.keys() == {1, 2}
    assert any(np.any(each.curves.get(2, 0)) for each in found)
