"""Publicly known totals of tables: the estimate of least variance that meets them exactly."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import null_space

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.estimation.nonnegative import nonnegative
from rpexplore.releases import packed_tables
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.known_totals import (
    far_from_measured,
    known_totals_from_csv,
    with_known_totals,
)
from rpexplore.results.processed_tables import ProcessedTables
from tests.results.dense import World, release
from tests.support.oracles import marginal_matrix

SIZES = {"a": 2, "b": 3, "one": 1, "c": 4}
DOMAIN = rp.Domain.from_sizes(SIZES)
SHAPE = tuple(SIZES.values())
COUNTS = np.random.default_rng(5).poisson(2.0, SHAPE)
KNOWN = [("a", "b"), ("one", "c"), ("b", "c"), ()]


def summed(names, counts=COUNTS) -> np.ndarray:
    others = [axis for axis, name in enumerate(SIZES) if name not in names]
    return counts.sum(axis=tuple(others))


def world(seed: int, tables=((0, 1, 2), (0, 3), (1, 2, 3))) -> World:
    part = release(DOMAIN, COUNTS, list(tables), np.random.default_rng(seed), {}, "release")
    return World(DOMAIN, COUNTS, [part])


def constrained(one: World, known: list, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers and covariance by generalised least squares over all x that meet the totals."""
    totals = [tuple(map(DOMAIN.position, names)) for names in known]
    constraints = np.vstack([marginal_matrix(list(SHAPE), total) for total in totals])
    start = np.linalg.lstsq(constraints, constraints @ one.counts.ravel(), rcond=None)[0]
    free = null_space(constraints)
    measured = [each for part in one.parts for each in part.measured]
    information, total = 0.0, 0.0
    for each in measured:
        weighted = np.linalg.solve(each.covariance, each.matrix @ free).T
        information = information + weighted @ each.matrix @ free
        total = total + weighted @ (each.y - each.matrix @ start)
    inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
    moved = query @ free
    return query @ (start + free @ inverse @ total), moved @ inverse @ moved.T


@pytest.mark.parametrize("known", [[KNOWN[0]], KNOWN[1:3], [()], KNOWN], ids=str)
def test_it_is_least_squares_with_exact_constraints(known):
    one = world(1)
    estimates = with_known_totals(one.releases[0], {names: summed(names) for names in known})
    for n in range(4):
        for names in combinations(SIZES, n):
            if not one.releases[0].has(names):
                continue
            query = marginal_matrix(list(SHAPE), tuple(map(DOMAIN.position, names)))
            values, covariance = constrained(one, known, query)
            np.testing.assert_allclose(
                estimates.marginal(names).ravel(), values, rtol=1e-9, atol=1e-9
            )
            np.testing.assert_allclose(
                np.broadcast_to(estimates.marginal_variances(names), summed(names).shape).ravel(),
                np.diag(covariance), rtol=1e-9, atol=1e-9,
            )  # fmt: skip
    for names in known:
        assert estimates.marginal(names).tolist() == summed(names).tolist()
        cells = estimates.cells(names)
        assert set(cells["standard_error"].to_pylist()) == {0.0}
        assert set(cells["note"].to_pylist()) == {"publicly known"}


@pytest.mark.parametrize("n", [50, pytest.param(300, marks=pytest.mark.nightly)])
def test_intervals_of_all_else_cover_as_they_say(n):
    """Releases with normal noise: 95 % within three standard deviations of a binomial count."""
    inside = 0
    for seed in range(n):
        estimates = with_known_totals(world(seed).releases[0], {("a", "b"): summed(("a", "b"))})
        cells = estimates.cells(("b", "c"))
        truth = summed(("b", "c")).ravel()[5]
        lower, upper = (cells[name].to_numpy()[5] for name in ("lower_95", "upper_95"))
        inside += lower <= truth <= upper
    assert abs(inside - 0.95 * n) <= 3 * np.sqrt(0.95 * 0.05 * n)


def test_axes_are_those_of_the_names_that_are_given():
    estimates = world(1).releases[0]
    left = with_known_totals(estimates, {("c", "b"): summed(("b", "c")).T, "a": summed(("a",))})
    right = with_known_totals(estimates, {("b", "c"): summed(("b", "c")), ("a",): summed("a")})
    assert left.known_tables == right.known_tables == [("a",), ("b", "c")]
    np.testing.assert_array_equal(left.marginal(("a", "c")), right.marginal(("a", "c")))


@pytest.mark.parametrize("method", ["nonnegative", "smooth", None])
def test_all_tables_have_the_totals_whatever_is_made_of_them(tmp_path, method):
    """Overlapping ones: a × b, b × c; in whole numbers all tables of two attributes agree."""
    known = {names: summed(names) for names in (("a", "b"), ("b", "c"))}
    source = world(3, tables=[(0, 1), (1, 3), (0, 3), (0, 1, 3)]).releases[0]
    made = rp.postprocess(
        source, tmp_path / "made", method=method, rounded=True, known_totals=known
    )
    values = {}
    for names in made.table_names:
        rows = made.table(names)
        values[names] = rows["value"].to_numpy().reshape([SIZES[name] for name in names])
        is_known = names in known
        assert set(rows["value_is"] == "publicly known") == {is_known}
        assert set(rows["standard_error"] == 0) == {is_known}
    for names, counts in known.items():
        assert values[names].tolist() == counts.tolist()
    assert values[("a", "c")].sum(axis=0).tolist() == summed("c").tolist()
    assert values[("a", "b", "c")].sum(axis=2).tolist() == summed(("a", "b")).tolist()
    assert values[("a", "b", "c")].sum(axis=0).tolist() == summed(("b", "c")).tolist()
    if method:
        assert all(table.min() >= 0 for table in values.values())
    assert "publicly known totals met" in made.label
    again = ProcessedTables.load(tmp_path / "made")
    assert again.known_tables == [["a", "b"], ["b", "c"]]
    assert "a × b and b × c are publicly known" in (tmp_path / "made/README.md").read_text()


@pytest.mark.parametrize("n", [4, pytest.param(14, marks=pytest.mark.nightly)])
def test_small_tables_in_one_file_say_which_counts_are_known(tmp_path, monkeypatch, n):
    if n == 4:
        monkeypatch.setattr(packed_tables, "MOST_FILES", 3)
    sizes = {f"a{i:02}": 2 for i in range(n)}
    domain = rp.Domain.from_sizes(sizes)
    tables = [(i, j) for i, j in combinations(range(n), 2)] + [(i,) for i in range(n)]
    rng = np.random.default_rng(2)
    counts = np.full((2,) * n, 2.0 ** (14 - n))
    estimates = release(domain, counts, tables, rng, {}, "release").given
    known = {("a00", "a03"): [[4000, 4100], [4092, 4192]]}
    made = rp.postprocess(estimates, tmp_path / "made", rounded=True, known_totals=known)
    assert (tmp_path / "made/tables.parquet").is_file()
    for names, is_known in ((("a00", "a03"), True), (("a03",), True), (("a00", "a02"), False)):
        rows = made.table(names)
        assert set(rows["value_is"] == "publicly known") == {is_known}
        assert set(rows["standard_error"] == 0) == {is_known}
    assert made.table("a00", "a03")["value"].tolist() == [4000, 4100, 4092, 4192]
    assert made.table("a03")["value"].tolist() == [8092, 8292]


def test_totals_of_no_nonnegative_counts_are_refused():
    """Each two of a, b, c differ in all records: with two values each, that cannot be."""
    domain = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    counts = np.full((2, 2, 2), 10)
    part = release(domain, counts, [(0, 1, 2)], np.random.default_rng(1), {}, "release")
    differ = [[0, 40], [40, 0]]
    known = {("a", "b"): differ, ("a", "c"): differ, ("b", "c"): differ}
    found = with_known_totals(part.given, known)
    with pytest.raises(
        ReleaseError,
        match="meet all of the known totals at once: the nearest ones miss a total by 13",
    ):
        nonnegative(found.contributions, domain.sizes, {}, kept=found.public)


def test_they_are_kept_in_a_folder_of_their_own_and_by_what_is_made_of_it(tmp_path):
    source = world(1).releases[0]
    estimates = with_known_totals(source, {("a", "b"): summed(("a", "b"))})
    write_combined(estimates, tmp_path / "known")
    again = load_combined(tmp_path / "known")
    assert again.known_tables == [("a", "b")]
    assert "meets publicly known totals" in again.label
    made = rp.postprocess(again, tmp_path / "made", method="nonnegative")
    rows = made.table("a", "b", "one")
    assert rows["value"].tolist() == summed(("a", "b")).ravel().tolist()
    assert set(rows["value_is"]) == {"publicly known"}
    alone = combine(again)
    assert alone.label == again.label
    assert alone.known_tables == [("a", "b")]
    with pytest.raises(ReleaseError, match="not combined with others"):
        combine(again, world(2).releases[0])
    with pytest.raises(ReleaseError, match=r"contradict each other, at most by 1: a.*exact"):
        with_known_totals(again, {"a": np.add(summed("a"), [1, 0])})


def test_totals_that_noise_does_not_explain_are_named():
    source = world(1).releases[0]
    right = with_known_totals(source, {"a": summed("a")})
    assert far_from_measured(source, right) == ""
    wrong = with_known_totals(source, {"a": np.add(summed("a"), [0, 500])})
    assert "standard errors apart" in far_from_measured(source, wrong)


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"a": [1.5, 2]}, "is 1.5; known totals are whole numbers"),
        ({"a": [-1, 2]}, "is -1; known"),
        ({"a": [1, np.nan]}, "is nan; known"),
        ({"a": [1, 2, 3]}, "must have the shape (2,)"),
        ({"a": ["x", "y"]}, "must be whole numbers"),
        ({"z": [1]}, "'z' is no attribute of the tables"),
        ({("a", "a"): [[1, 2], [3, 4]]}, "twice"),
        ({("a", "b", "c"): np.ones((2, 3, 4))}, "are of a × b × c, and no table"),
        ({"a": [3, 4], (): 9}, "at most by 2: all records is 7 in the known totals of a, and 9 in"),
        ({}, "There are no known totals"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused(totals, message):
    with pytest.raises(ReleaseError) as error:
        with_known_totals(world(1).releases[0], totals)
    assert message in str(error.value)


def test_impossible_combinations_have_no_known_records():
    domain = rp.Domain(
        (
            rp.Attribute("a", rp.Categories(("x", "y"))),
            rp.Attribute("b", rp.Categories(("k", "l"))),
        ),
        ({"a": "x", "b": "k"},),
    )
    counts = np.array([[0, 5], [2, 3]])
    part = release(domain, counts, [(0, 1)], np.random.default_rng(1), {}, "release")
    with pytest.raises(ReleaseError, match="a = x, b = k is 1, and the codebook"):
        with_known_totals(part.given, {("a", "b"): [[1, 4], [2, 3]]})
    text = b"a;b;count\nx;l;5\ny;k;2\ny;l;3\n"
    (found,) = known_totals_from_csv(part.given, "k.csv", text).values()
    assert found.tolist() == counts.tolist()
    found = with_known_totals(part.given, {"b": [2, 8]})
    with pytest.raises(ReleaseError, match="not made smooth"):
        rp.postprocess(found, "nowhere", method="smooth")


def test_a_file_by_too_many_combinations_is_refused_before_they_are_held():
    domain = rp.Domain.from_sizes({"a": 100_000, "b": 100_000, "c": 3})
    source = SimpleNamespace(domain=domain)
    with pytest.raises(ReleaseError, match="a × b, which have 10,000,000,000 combinations"):
        known_totals_from_csv(source, "k.csv", b"a,b,total\n1,1,5\n")


# Children are single, and the young have no work.
HOUSEHOLDS = rp.Domain(
    (
        rp.Attribute("age", rp.Categories(("child", "young", "old"))),
        rp.Attribute("married", rp.Categories(("no", "yes"))),
        rp.Attribute("work", rp.Categories(("none", "part", "full"))),
        rp.Attribute("sex", rp.Categories(("F", "M"))),
    ),
    ({"age": "child", "married": "yes"}, {"age": "child..young", "work": "part..full"}),
)


def households(seed: int):
    """Counts that have nobody in an impossible cell, and noisy tables of all pairs and a triple."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3.0, (3, 2, 3, 2))
    counts[0, 1], counts[:2, :, 1:] = 0, 0
    tables = [*combinations(range(4), 2), (0, 1, 3)]
    return counts, release(HOUSEHOLDS, counts, tables, rng, {}, "release").given


@pytest.mark.parametrize(
    "known",
    [
        [("married", "sex"), ("work",)],
        pytest.param([("age", "sex"), ("age", "married")], marks=pytest.mark.nightly),
        pytest.param([("work", "sex")], marks=pytest.mark.nightly),
        [("sex",)],
    ],
    ids=str,
)
def test_whole_nonnegative_tables_have_them_where_combinations_are_impossible(tmp_path, known):
    counts, source = households(4)

    def of(names):
        others = [axis for axis, name in enumerate(HOUSEHOLDS.names) if name not in names]
        return counts.sum(axis=tuple(others))

    made = rp.postprocess(
        source,
        tmp_path / "made",
        method="nonnegative",
        rounded=True,
        known_totals={names: of(names) for names in known},
    )
    for names in made.table_names:
        shape = [HOUSEHOLDS[name].size for name in names]
        values = made.table(*names)["value"].to_numpy().reshape(shape)
        assert values.min() >= 0
        possible = HOUSEHOLDS.structural_zeros.possible(HOUSEHOLDS.positions(names))
        if possible is not None:
            assert not values[~possible].any()
        for total in known:
            shared = [name for name in names if name in total]
            others = [axis for axis, name in enumerate(names) if name not in shared]
            if len(names) <= 2:  # larger ones where such whole numbers are found
                assert values.sum(axis=tuple(others)).tolist() == of(shared).tolist()


def test_totals_that_only_impossible_combinations_meet_are_refused(tmp_path):
    """12 have work and 7 are old: with 5/3 more old, and fewer in each kind of work, it agrees."""
    _, source = households(4)
    known = {"age": [10, 3, 7], "work": [8, 6, 6]}
    with pytest.raises(
        ReleaseError, match=r"an impossible combination: the nearest ones miss a total by 1\.7"
    ):
        rp.postprocess(source, tmp_path / "made", method="nonnegative", known_totals=known)
    assert not (tmp_path / "made").exists()


def test_totals_that_leave_possible_cells_empty_are_met(tmp_path):
    """7 have work and 7 are old: nobody old is without, though no total of 0 says so."""
    _, source = households(4)
    known = {"age": [10, 3, 7], "work": [13, 3, 4]}
    made = rp.postprocess(source, tmp_path / "made", method="nonnegative", known_totals=known)
    values = made.table("age", "work")["value"].to_numpy().reshape(3, 3)
    np.testing.assert_allclose(values, [[10, 0, 0], [3, 0, 0], [0, 3, 4]], atol=1e-9)


def test_multiples_are_refused(tmp_path):
    source = world(1).releases[0]
    with pytest.raises(ReleaseError, match="would not be multiples of 5"):
        rp.postprocess(source, tmp_path / "x", rounded=5, known_totals={"a": summed("a")})
