"""Consistent whole counts: what must hold of every one, and the problems they are made of."""

import tracemalloc
from itertools import pairwise

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.domain import subsets
from rpexplore.errors import ReleaseError
from rpexplore.results.estimates.area_cells import AreaCells, check_cells
from rpexplore.results.estimates.family_tables import (
    FamilyTables,
    nearest_parts,
    nearest_tables,
    rounded_tables,
)
from rpexplore.results.estimates.nearer_tables import with_nearer_parts
from rpexplore.results.estimates.whole_areas import (
    WholeCounts,
    known_totals,
    nearest_in_known,
)
from tests.support.area_trees import area_trees, incidence

SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def tables_with_sums(draw):
    """Some small tables, and whole row and column sums above 0 with the same total in each."""
    shapes = draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4))
    generator = draw(SEEDS)
    counts = [generator.integers(0, 4, shape) for shape in shapes]
    for each in counts:
        each[0, :] += 1
        each[:, 0] += 1
    tables = FamilyTables(*np.array(shapes).T)
    rows, columns = (np.concatenate([each.sum(axis) for each in counts]) for axis in (1, 0))
    return tables, rows, columns, generator.normal(size=len(tables.rows)) * 5


def nearest_to(values, tables, rows, columns):
    return nearest_tables(
        values, tables, rows.astype(float), columns.astype(float), tolerance=1e-9, most_rounds=1000
    )


@given(tables_with_sums())
def test_nearest_tables_solve_the_quadratic_programme(problem):
    tables, rows, columns, values = problem

    found = nearest_to(values, tables, rows, columns)

    n_rows, n_columns = int(tables.n_rows[0]), int(tables.n_columns[0])
    first = values[: n_rows * n_columns].reshape(n_rows, n_columns)
    x = cvxpy.Variable((n_rows, n_columns), nonneg=True)
    sums = [cvxpy.sum(x, axis=1) == rows[:n_rows], cvxpy.sum(x, axis=0) == columns[:n_columns]]
    exactly = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    distance = cvxpy.Minimize(cvxpy.sum_squares(x - first))
    cvxpy.Problem(distance, sums).solve(solver="CLARABEL", **exactly)
    np.testing.assert_allclose(found[: first.size].reshape(first.shape), x.value, atol=1e-4)
    np.testing.assert_allclose(tables.row_sums(found), rows, atol=1e-8)
    np.testing.assert_allclose(tables.column_sums(found), columns, atol=1e-6)


@given(tables_with_sums())
def test_tables_are_rounded_to_neighbours_with_the_same_sums(problem):
    tables, rows, columns, values = problem
    nearest = nearest_to(values, tables, rows, columns)

    for given_values in (nearest, np.maximum(values, 0)):  # the latter are far from these sums
        found = rounded_tables(given_values, tables, rows, columns)
        assert np.all(found >= 0)
        assert tables.row_sums(found).tolist() == rows.tolist()
        assert tables.column_sums(found).tolist() == columns.tolist()

    found = rounded_tables(nearest, tables, rows, columns)
    assert np.all(found >= np.floor(nearest - 1e-5))
    assert np.all(found <= np.ceil(nearest + 1e-5))


@given(SEEDS, st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_nearest_parts_are_projections_on_simplices(generator, sizes):
    values, totals = generator.normal(size=sum(sizes)) * 5, generator.integers(0, 5, len(sizes))
    first = np.cumsum(sizes) - sizes
    found = nearest_parts(values, first, totals.astype(float))
    assert np.all(found >= 0)
    for start, size, total in zip(first, sizes, totals, strict=True):
        own, moved = found[start : start + size], (found - values)[start : start + size]
        assert np.sum(own) == pytest.approx(total, abs=1e-9)
        # All that are above 0 moved alike, and none of the others by less: they stopped at 0.
        if total:
            assert moved[own > 0] == pytest.approx(np.min(moved), abs=1e-9)


@st.composite
def answered_trees(draw):
    """A small tree, answers on its levels, and cells of less detail further down."""
    tree, generator = draw(area_trees()), draw(SEEDS)
    sets = [(0, 1), (0, 1), (0,), ()]
    start = draw(st.integers(0, 3))
    attributes = tuple(sets[min(start + level, 3)] for level in range(len(tree.levels)))
    known = frozenset(draw(st.sets(st.sampled_from([(0,), (1,), (0, 1)])))) | {()}
    n_cells = int(np.prod([(2, 3)[index] for index in attributes[0]]))
    possible = np.array([True, *draw(st.lists(st.booleans(), min_size=5, max_size=5))])
    cells = AreaCells((2, 3), attributes, (known,) * len(attributes), possible[:n_cells])
    answers = []
    for level in range(len(tree.levels)):
        areas = tree.level_slice(level)
        shape = areas.stop - areas.start, int(np.prod(cells.shape(level)))
        found = generator.normal(size=shape) * 5
        answers.append(found - cells.unknown_part(level, found))
    return tree, cells, answers


def of_all(tree, cells, answers, totals):
    """Counts of each level."""
    found = [np.full(of_level.shape, -1) for of_level in answers]

    def within(level, areas):
        return slice(*(number - tree.starts[level] for number in (areas.start, areas.stop)))

    whole = WholeCounts(tree, cells, lambda n, some: answers[n][within(n, some)], totals)
    last = len(tree.levels) - 1
    for level, areas, counts, _ in whole.downwards(0, slice(0, 1), whole.of_top(), last):
        found[level][within(level, areas)] = counts
    return found


@given(answered_trees(), SEEDS, st.booleans())
def test_counts_add_up_and_meet_what_is_stated(problem, generator, are_known):
    tree, cells, answers = problem
    totals = {}
    if are_known:
        last = generator.integers(0, len(tree.levels))
        own = generator.integers(0, 6, int(np.count_nonzero(tree.n_parts == 0)))
        sums = (incidence(tree) @ own).astype(int)
        totals = dict(enumerate(sums[: tree.starts[last + 1]].tolist()))

    counts = of_all(tree, cells, answers, known_totals(tree, totals))

    assert all(np.all(of_level >= 0) for of_level in counts)
    for level, (above, below) in enumerate(pairwise(counts)):
        sums = np.zeros((len(above), below.shape[1]), dtype=int)
        np.add.at(sums, tree.parents[tree.level_slice(level + 1)] - tree.starts[level], below)
        divided = tree.n_parts[tree.level_slice(level)] > 0
        np.testing.assert_array_equal(sums[divided], cells.margins(above, level)[divided])
    assert np.all(counts[0][0, ~cells.possible] == 0)
    found_totals = np.concatenate([of_level.sum(axis=1) for of_level in counts]).tolist()
    expected = totals or {0: max(round(float(answers[0].sum())), 0)}
    assert {area: found_totals[area] for area in expected} == expected


def nearest_given(values, margins, above):
    """Cells of parts ≥ 0 with these margins and sums over parts, float64[n_parts, n_cells]."""
    x = cvxpy.Variable(values.shape, nonneg=True)
    groups = np.repeat(np.eye(margins.shape[1]), values.shape[1] // margins.shape[1], axis=0)
    distance = cvxpy.Minimize(cvxpy.sum_squares(x - values))
    sums = [x @ groups == margins, cvxpy.sum(x, axis=0) == above]
    cvxpy.Problem(distance, sums).solve(solver="CLARABEL")
    return x.value


def test_each_margin_is_the_nearest_given_the_one_before():
    tree = rp.AreaTree.from_columns({"top": ["x"] * 6, "town": list("123456")})
    generator = np.random.default_rng(1)
    answers = [generator.poisson(40, (1, 12)) + 0.3, generator.normal(7, 12, (6, 12))]
    known = frozenset(subsets((0, 1, 2)))
    cells = AreaCells((3, 2, 2), ((0, 1, 2),) * 2, (known,) * 2, np.ones(12, dtype=bool))
    found = [each.reshape(-1, 3, 2, 2) for each in of_all(tree, cells, answers, np.full(7, -1))]

    # The attributes of two values come first, the one of three last.
    for coarse, fine, n_margins in [((1, 2, 3), (1, 3), 1), ((1, 3), (1,), 2), ((1,), (), 4)]:
        answered = answers[1].reshape(found[1].shape).sum(axis=fine)
        shape = (6, n_margins, -1)
        axes = (0, 2, 3, 1) if not fine else range(answered.ndim)
        answered, above, parts = (
            each.transpose(axes).reshape(len(each), -1)
            for each in (answered, found[0].sum(axis=fine), found[1].sum(axis=fine))
        )
        margins = parts.reshape(shape).sum(axis=2)
        assert margins.tolist() == found[1].sum(axis=coarse).reshape(6, -1).tolist()
        nearest = nearest_given(answered, margins, above[0])
        assert np.all(np.abs(parts - nearest) < 1.05)


def test_margins_of_few_large_cells_are_no_worse_than_unbiased_ones():
    # 40 people in each of 200 towns, most of 60 groups empty in each; noise of 1.5 a cell of all
    # groups, of 2 groups and of both, and a total known better, as where all tables count alike.
    tree = rp.AreaTree.from_columns({"top": ["x"] * 200, "town": np.arange(200).astype(str)})
    generator = np.random.default_rng(2)
    shares = np.outer(0.7 ** np.arange(60), [0.7, 0.3])
    truth = generator.poisson(40 * shares / shares.sum(), (200, 60, 2)).astype(float)
    noise = generator.normal(0, 1.5, truth.shape)
    for axis, size in ((1, 60), (2, 2)):
        noise += (size**-0.5 - 1) * noise.mean(axis=axis, keepdims=True)
    answers = (truth + noise).reshape(200, -1)
    above = truth.sum(axis=0).reshape(1, -1)
    known = frozenset(subsets((0, 1)))
    cells = AreaCells((60, 2), ((0, 1),) * 2, (known,) * 2, np.ones(120, dtype=bool))
    counts = of_all(tree, cells, [above, answers], np.full(201, -1))[1]

    def error(values, axis):
        return np.abs((values - truth.reshape(200, -1)).reshape(truth.shape).sum(axis=axis)).sum()

    assert error(counts, axis=1) < 1.05 * error(answers, axis=1)
    assert error(counts, axis=()) < 0.3 * error(answers, axis=())


TREE = rp.AreaTree.from_columns({"region": list("NNNSS"), "town": list("12312")})
ALL_KNOWN = frozenset([(), (0,), (1,), (0, 1)])


def test_answers_that_are_counts_already_stay_as_they_are():
    counts = np.random.default_rng(3).integers(0, 9, (TREE.n_areas, 6))
    counts[1], counts[2] = counts[3:6].sum(axis=0), counts[6:].sum(axis=0)
    counts[0] = counts[1] + counts[2]
    answers = [counts[TREE.level_slice(level)].astype(float) for level in range(3)]
    cells = AreaCells((2, 3), ((0, 1),) * 3, (ALL_KNOWN,) * 3, np.ones(6, dtype=bool))
    found = of_all(TREE, cells, answers, known_totals(TREE, {}))
    np.testing.assert_array_equal(np.concatenate(found), counts)


def known_part(cells, level, tables):
    return tables - cells.unknown_part(level, tables)


PAIRS = [(0, 1), (0, 2), (1, 2)]


def off_without_noise(seed, tables):
    """By how much known tables of random records are off, on all levels: int64[n]."""
    generator = np.random.default_rng(seed)
    sizes = tuple(generator.integers(2, 6, 3).tolist())
    shares = generator.dirichlet(np.full(np.prod(sizes), 0.3))  # many cells of nobody
    truth = np.zeros((TREE.n_areas, len(shares)), dtype=int)
    truth[3:] = generator.multinomial(int(generator.integers(10, 200)), shares, 5)
    truth[1], truth[2] = truth[3:6].sum(axis=0), truth[6:].sum(axis=0)
    truth[0] = truth[1] + truth[2]
    known = frozenset(each for table in tables for each in subsets(table))
    cells = AreaCells(sizes, ((0, 1, 2),) * 3, (known,) * 3, np.ones(len(shares), dtype=bool))
    levels = [truth[TREE.level_slice(level)].astype(float) for level in range(3)]
    answers = [own - cells.unknown_part(level, own) for level, own in enumerate(levels)]
    found = np.concatenate(of_all(TREE, cells, answers, known_totals(TREE, {})))
    off = [np.abs(cells.margin_on(found - truth, 0, table)).ravel() for table in tables]
    return np.concatenate(off)


def test_without_noise_tables_of_attributes_that_no_table_has_together_are_right():
    off = np.concatenate([off_without_noise(seed, PAIRS[:2]) for seed in range(8)])
    assert off.max() <= 1
    assert np.mean(off > 0) <= 0.05
    # Of three pairs cells of an area may be such that no cells of its parts fit exactly.
    off = np.concatenate([off_without_noise(seed, PAIRS) for seed in range(8)])
    assert off.max() <= 3
    assert np.mean(off > 0) <= 0.12


def test_parts_with_many_cells_are_brought_near_without_all_pairs_of_these():
    generator, n_cells = np.random.default_rng(3), 2_500
    truth = generator.poisson(2, (3, n_cells)) + 1
    counts = truth.copy()
    counts[0] += np.arange(n_cells) < 50  # of the first fifty cells too many, of others too few
    counts[1] -= np.arange(n_cells) < 50
    counts[0] -= np.arange(n_cells) >= n_cells - 50
    counts[1] += np.arange(n_cells) >= n_cells - 50
    tables = [np.arange(n_cells) // 50, np.arange(n_cells) % 50]
    tracemalloc.start()
    found = with_nearer_parts(counts, truth.astype(float), tables, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15e6  # all pairs are 6,250,000 numbers, 50 MB
    off = [np.bincount(own, found[0] - truth[0]) for own in tables]
    assert np.max(np.abs(np.concatenate(off))) <= 1
    np.testing.assert_array_equal(found.sum(axis=0), counts.sum(axis=0))
    np.testing.assert_array_equal(found.sum(axis=1), counts.sum(axis=1))


@given(SEEDS, st.floats(0, 1))
def test_cells_are_the_nearest_in_what_is_known(generator, weight):
    sizes, n_parts = (2, 2, 2), 3
    known = frozenset(each for table in PAIRS for each in subsets(table))
    cells = AreaCells(sizes, ((0, 1, 2),), (known,), np.ones(8, dtype=bool))
    counts = generator.poisson(2, (n_parts, 8)) * generator.integers(0, 2, 8)
    values = counts + generator.normal(size=counts.shape) * 2
    margins, above = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)

    found = nearest_in_known(
        values, np.array([n_parts]), margins, above, cells.unknown_in_stages(0), np.array([weight])
    )

    apart = np.ones(1)  # U: of the eight cells the difference of differences of differences
    for _ in range(3):
        apart = np.kron(apart, np.array([1, -1]) / np.sqrt(2))
    unknown = np.outer(apart, apart)
    metric = np.eye(8) - (1 - weight) * unknown
    x = cvxpy.Variable(values.shape, nonneg=True)
    distance = sum(cvxpy.quad_form(x[part] - values[part], metric) for part in range(n_parts))
    sums = [cvxpy.sum(x, axis=1) == margins[:, 0], cvxpy.sum(x, axis=0) == above[0]]
    cvxpy.Problem(cvxpy.Minimize(distance), sums).solve(solver="CLARABEL")
    off = [each - values for each in (found, x.value)]
    mine, least = (np.einsum("ci,ij,cj", each, metric, each) for each in off)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=0), above[0], atol=0.03)
    np.testing.assert_allclose(found.sum(axis=1), margins[:, 0], atol=0.03)
    assert mine <= least + 0.02 * (1 + least)


def test_what_is_not_asked_of_parts_is_shared_by_their_totals():
    # Of towns totals alone are known: 12 and 6, of cells 8, 4, 6 in all.
    tree = rp.AreaTree.from_columns({"top": ["x", "x"], "town": ["1", "2"]})
    answers = [np.array([[8.0, 4.0, 6.0]]), np.array([[4.0] * 3, [2.0] * 3])]
    known = (frozenset([(), (0,)]), frozenset([()]))
    cells = AreaCells((3,), ((0,), (0,)), known, np.ones(3, dtype=bool))
    found = of_all(tree, cells, answers, known_totals(tree, {}))
    assert found[1].sum(axis=1).tolist() == [12, 6]
    np.testing.assert_allclose(found[1], [[16 / 3, 8 / 3, 4], [8 / 3, 4 / 3, 2]], atol=1)


def test_what_cannot_be_met_is_refused():
    for totals, why in [
        ({0: 5, 1: 3}, "all is known for some of its parts only"),
        ({1: 3, 2: 2}, "all is known for its parts, but not for itself"),
        ({0: 5, 1: 3, 2: 1}, "all is not the sum of those of its parts"),
        ({0: -5}, "all is negative"),
    ]:
        with pytest.raises(ReleaseError, match=why):
            known_totals(TREE, totals)
    cells = AreaCells((2,), ((0,),) * 3, (frozenset([(), (0,)]),) * 3, np.zeros(2, dtype=bool))
    answers = [np.full((n, 2), 3.0) for n in (1, 2, 5)]
    with pytest.raises(ReleaseError, match="impossible, but there are 6 records"):
        of_all(TREE, cells, answers, known_totals(TREE, {}))
    with pytest.raises(ReleaseError, match="has 10,000,000,000 cells"):
        check_cells((10,) * 10)
