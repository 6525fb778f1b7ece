"""Synthetic records against the exact maximum-entropy distribution, and what no record may be."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.results.synthetic import population
from rpexplore.results.synthetic.impossible import Impossible
from rpexplore.results.synthetic.population import population_records
from rpexplore.results.synthetic.targets import PairTargets, refuse_many_values, targets_from_tables


def tables_of(full, sets):
    """{attributes: marginal} of a full table, one axis an attribute."""
    axes = range(full.ndim)
    return {s: full.sum(axis=tuple(axis for axis in axes if axis not in s)) for s in sets}


def targets_of(full, pairs) -> PairTargets:
    """The targets that the marginals of a full table are."""
    marginals = tables_of(full, [*pairs, *((i,) for i in range(full.ndim))])
    return targets_from_tables(marginals.__getitem__, tuple(range(full.ndim)), pairs)


def maximum_entropy(targets, mask):
    """Dense proportional fitting from a uniform distribution on `mask`."""
    full = mask / mask.sum()
    for _ in range(300):
        for axes, table in targets.pairs.items():
            rest = tuple(axis for axis in range(full.ndim) if axis not in axes)
            sums = full.sum(axis=rest, keepdims=True)
            factor = np.divide(np.expand_dims(table, rest), sums, where=sums > 0, out=0 * sums)
            full = full * factor
    return full


def frequencies(codes, shape):
    cells = np.ravel_multi_index(tuple(codes.T), shape)
    return np.bincount(cells, minlength=np.prod(shape)).reshape(shape) / len(codes)


def records(targets, n, never=(), seed=b"seed"):
    return population_records(targets, n, seed, Impossible(targets.sizes, tuple(never)))


def dependent(shape, seed=1):
    full = np.random.default_rng(seed).gamma(0.5, size=shape)
    return full / full.sum()


def test_records_are_of_the_distribution_of_maximum_entropy():
    """Of the pairs that are known, of four in a ring and one that is alone."""
    full = dependent((3, 4, 2, 3))
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    targets = targets_of(full, pairs)
    expected = maximum_entropy(targets, np.ones(full.shape))
    n = 8_000
    codes = records(targets, n)
    drawn = frequencies(codes, full.shape)
    # Pairs are nearer than independent draws would be (mean of |noise| √(2p/πn) a cell)…
    for axes, table in tables_of(drawn, pairs).items():
        assert (
            np.abs(table - targets.pairs[axes]).sum() < 0.5 * np.sqrt(2 * table / np.pi / n).sum()
        )
    # … and all cells together about as near: the model, not only its pairs, is the right one.
    assert np.abs(drawn - expected).sum() < 1.3 * np.sqrt(2 * expected / np.pi / n).sum()


def test_the_same_seed_gives_the_same_records(monkeypatch):
    monkeypatch.setattr(population, "_FEWEST", 500)
    targets = targets_of(dependent((3, 5, 2)), [(0, 1), (0, 2), (1, 2)])
    first = records(targets, 500)
    assert np.array_equal(first, records(targets, 500))
    assert not np.array_equal(first, records(targets, 500, seed=b"other"))


def test_no_record_is_impossible_and_the_others_are_as_before():
    """Never a0=0 with a1≥2, never a1=0, and never three values together."""
    full = dependent((3, 4, 2, 3))
    mask = np.ones(full.shape, dtype=bool)
    mask[0, 2:], mask[:, 0], mask[1, 1, :, 1:] = False, False, False
    never = [
        {0: np.array([1, 0, 0], bool), 1: np.array([0, 0, 1, 1], bool)},
        {1: np.array([1, 0, 0, 0], bool)},
        {0: np.array([0, 1, 0], bool), 1: np.eye(4, dtype=bool)[1], 3: np.array([0, 1, 1], bool)},
    ]
    possible = full * mask / (full * mask).sum()
    pairs = list(combinations(range(4), 2))
    codes = records(targets_of(possible, pairs), 4_000, never)
    drawn = frequencies(codes, full.shape)
    assert not drawn[~mask].any()
    expected = maximum_entropy(targets_of(possible, pairs), mask)
    assert np.abs(drawn - expected).sum() < 1.5 * np.sqrt(2 * expected / np.pi / 4_000).sum()
    # Of targets that know nothing of it, too.
    assert not frequencies(records(targets_of(full, pairs), 1500, never), full.shape)[~mask].any()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("sizes", [(3, 2, 3), (3, 2, 3, 3)])
def test_groups_that_impossible_combinations_hold_apart_keep_their_size(sizes):
    """All of a0 = k have a2 = k (and a3 = k), which no table has together: 0.1, 0.3 and 0.6.

    Independent draws that are possible would have 0.01, 0.09 and 0.36 of 0.46 for a0 and a2 alone.
    """
    alike = [0, *range(2, len(sizes))]
    never = []
    for first, second in pairwise(alike):
        for value in range(3):
            members = np.arange(3) == value
            never.append({first: members, second: ~members})
    full = np.zeros(sizes)
    for value, share in enumerate((0.1, 0.3, 0.6)):
        full[(value, slice(None), *(value,) * (len(sizes) - 2))] = share / 2
    targets = targets_of(full, [(min(i, 1), max(i, 1)) for i in alike])
    codes = records(targets, 5_000, never)
    for attribute in alike:
        shares = np.bincount(codes[:, attribute], minlength=3) / 5_000
        assert shares == pytest.approx([0.1, 0.3, 0.6], abs=0.01)
    assert targets.groups_off(codes) == []


def test_groups_that_cannot_have_their_size_are_told():
    """Four fifths have a0 = 1, four fifths a2 = 1, and nobody both: at least 3 of 5 are off."""
    full = np.zeros((2, 1, 2))
    full[:, 0] = [[0.2, 0.0], [0.0, 0.8]]
    targets = targets_of(full, [(0, 1), (1, 2)])
    second = np.array([False, True])
    codes = records(targets, 1_000, [{0: second, 2: second}])
    off = targets.groups_off(codes)
    assert {group[0] for group in off} == {0, 2}
    assert sum(wanted - share for _, value, share, wanted in off if value == 1) >= 0.6 - 1e-9


def test_possible_records_are_found_where_a_draw_hardly_finds_any():
    """Twelve attributes of two values of which each must have the first: 1 of 4,096 records."""
    full = [np.array([1e-9, 1 - 1e-9])] * 12
    never = [{i: np.array([False, True]), (i + 1) % 12: np.ones(2, bool)} for i in range(12)]
    assert not records(PairTargets(tuple(full), {}), 50, never).any()


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("shape", "pairs", "n"),
    [
        ((7,), [], 100),
        ((1,), [], 3),
        ((1, 2, 1, 200), [(1, 3)], 500),
        ((2, 2), [(0, 1)], 1),
        ((4, 3, 2), [], 200),
        ((2, 40, 2), [(0, 1), (1, 2), (0, 2)], 500),
    ],
)
def test_of_any_domain(shape, pairs, n, monkeypatch):
    monkeypatch.setattr(population, "_FEWEST", 500)
    targets = targets_of(dependent(shape), pairs)
    codes = records(targets, n)
    assert codes.shape == (n, len(shape))
    assert np.all((codes >= 0) & (codes < np.array(shape)))
    for axis, shares in enumerate(targets.one_way):
        counts = np.bincount(codes[:, axis], minlength=len(shares))
        assert np.all(np.abs(counts - n * shares) < 5 * np.sqrt(n * shares) + 2)


def test_tables_with_cells_below_0_and_totals_that_disagree():
    """Of unbiased tables as they were released."""
    rng = np.random.default_rng(0)
    noisy = {
        s: 300 * t + rng.normal(0, 20, t.shape)
        for s, t in tables_of(dependent((3, 4)), [(0,), (1,), (0, 1)]).items()
    }
    targets = targets_from_tables(noisy.__getitem__, (0, 1), [(0, 1)])
    assert all(np.all(table >= 0) for table in (*targets.one_way, targets.pairs[0, 1]))
    drawn = frequencies(records(targets, 5000), (3, 4))
    assert np.abs(drawn - targets.pairs[0, 1]).max() < 0.004


def test_what_is_refused():
    domain = Domain.from_sizes({"a": 2, "b": 3, "sum": 5000, "more": 4000})
    impossible = Impossible.of(domain, (0, 1), [{"a": "0"}, {"a": "1", "b": "0..2"}])
    with pytest.raises(ReleaseError, match="Every record is in one of the impossible"):
        population_records(targets_of(dependent((2, 3)), [(0, 1)]), 5, b"", impossible)
    with pytest.raises(ReleaseError, match="'sum' is in no table"):
        Impossible.of(domain, (0, 1), [{"sum": "0"}])
    with pytest.raises(ReleaseError, match="must name"):
        Impossible.of(domain, (0, 1), [{}])
    with pytest.raises(DomainError, match="must be named by"):
        Impossible.of(domain, (0, 1), [{"a": "7"}])
    with pytest.raises(ReleaseError, match="9,000 values together"):
        refuse_many_values(domain, (2, 3))


def test_the_share_that_a_condition_takes():
    """Of counts 1 to 6 in a table of 2 × 3, 21 together; nothing is known of three attributes."""
    targets = targets_of(np.arange(1.0, 7.0).reshape(2, 3, 1), [(0, 1)])
    second, ends = np.array([False, True]), np.array([True, False, True])
    assert targets.share_of({0: second}) == pytest.approx(15 / 21)
    assert targets.share_of({1: ends, 0: second}) == pytest.approx(10 / 21)
    assert targets.share_of({1: ends, 2: np.array([True])}) is None


def test_no_value_without_a_share_is_drawn():
    targets = PairTargets((np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.5])), {})
    assert set(records(targets, 20_000)[:, 0]) == {1}


def test_the_misfit_of_independent_draws():
    """Of 50 records, against the mean of 300 draws."""
    full = dependent((3, 5))
    targets, numbers = targets_of(full, [(0, 1)]), np.random.default_rng(0)
    drawn = [numbers.choice(15, 50, p=full.ravel()) for _ in range(300)]
    misfits = [targets.misfit(np.stack(np.unravel_index(cells, (3, 5)), axis=1)) for cells in drawn]
    assert targets.sampling_misfit(50) == pytest.approx(np.mean(misfits), rel=0.05)
