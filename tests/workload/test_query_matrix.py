"""QueryMatrix: every operation against the dense matrix W, written down row by row."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Integers
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import CustomBasis, Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.workload.table_text import query_matrix


def dense(basis, attribute):
    """W by its definition, [n_rows, n]."""
    n = attribute.size
    match basis:
        case Identity():
            rows = [{i} for i in range(n)]
        case Prefix():
            rows = [set(range(i + 1)) for i in range(n)]
        case Ranges():
            rows = [set(range(a, b + 1)) for a in range(n) for b in range(a, n)]
        case Windows():
            rows = [{j for j in range(n) if i - basis.width < j <= i} for i in range(n)]
        case Hierarchy():
            rows = nodes(basis, attribute)
        case CustomBasis():
            return np.array(basis.rows)
    return np.array([[float(j in row) for j in range(n)] for row in rows])


def nodes(basis, attribute):
    """The total, groups from coarse to fine, single values; groups by width once."""
    n = attribute.size
    if basis.widths:
        paths = [[v // width for width in sorted(basis.widths)[::-1]] for v in range(n)]
    else:
        paths = [list(path) for path in attribute.groups] or [[]] * n
    rows = [set(range(n))] if n > 1 else []
    for depth in range(1, 9):
        heads = [path[:depth] for path in paths if len(path) >= depth]
        for head in map(list, dict.fromkeys(map(tuple, heads))):
            node = {v for v in range(n) if paths[v][:depth] == head}
            if len(node) < n and not (basis.widths and (len(node) == 1 or node in rows)):
                rows.append(node)
    return [*rows, *({v} for v in range(n))]


@st.composite
def grouped(draw, n):
    path = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)
    paths = draw(st.lists(path, min_size=n, max_size=n).filter(lambda p: n == 1 or any(p)))
    return Attribute("x", Categories(tuple(f"v{i}" for i in range(n))), groups=tuple(paths))


@st.composite
def basis_and_attribute(draw):
    """A basis and an attribute."""
    n = draw(st.integers(1, 12))
    attribute = Attribute("x", Integers(0, n - 1))
    kind = draw(st.sampled_from(["simple", "windows", "tree", "widths", "custom"]))
    if kind == "tree":
        return Hierarchy(), draw(grouped(n))
    if kind == "windows":
        return Windows(draw(st.integers(1, n + 2))), attribute
    if kind == "widths":
        below = np.cumprod(draw(st.lists(st.integers(2, 3), min_size=1, max_size=3)))
        return Hierarchy(tuple(w for w in below.tolist() if w < n) or (2,)), Attribute(
            "x", Integers(0, max(n, 3) - 1)
        )
    if kind == "custom":
        entries = st.integers(-2, 2).map(float)
        more = st.lists(entries, min_size=n, max_size=n).filter(any)
        return CustomBasis([*np.eye(n).tolist(), *draw(st.lists(more, max_size=3))]), attribute
    return draw(st.sampled_from([Identity(), Prefix(), Ranges()])), attribute


@given(basis_and_attribute(), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=200)
def test_every_operation_equals_that_of_the_dense_matrix(case, seed):
    basis, attribute = case
    w = dense(basis, attribute)
    asks = query_matrix(basis, attribute)
    rng = np.random.default_rng(seed)
    n_rows, n = w.shape
    assert (asks.n_rows, asks.n_values) == (n_rows, n) == (basis.n_rows(attribute), attribute.size)
    assert (np.linalg.matrix_rank(w)) == n
    np.testing.assert_array_equal(asks.of(np.eye(n), 0), w)
    np.testing.assert_array_equal(asks.operator.gram, w.T @ w)
    assert not asks.operator.gram.flags.writeable
    weights = rng.random(n_rows)
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(
        asks.operator.weighted_gram(weights), w.T @ np.diag(weights) @ w, **near
    )
    m = rng.normal(size=(n, n))
    m += m.T
    np.testing.assert_allclose(asks.operator.row_quadratics(m), np.diag(w @ m @ w.T), atol=1e-11)
    for axis in (0, 1, 2, -1):
        shape = [2, 3, 4]
        shape[axis] = n
        x = rng.normal(size=shape)
        expected = np.moveaxis(np.tensordot(w, x, (1, axis)), 0, axis)
        np.testing.assert_allclose(asks.of(x, axis), expected, **near)
    whole = rng.integers(0, 10**9, n)
    np.testing.assert_array_equal(asks.of(whole), w @ whole)
    labels = asks.labels()
    assert len(set(labels)) == len(labels) == n_rows
    assert [asks.label(r) for r in range(n_rows)] == labels


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_closed_forms_of_gram_matrices(n):
    i, j = np.indices((n, n))
    x = Attribute("x", Integers(1, n))
    np.testing.assert_array_equal(query_matrix(Prefix(), x).operator.gram, n - np.maximum(i, j))
    formula = (np.minimum(i, j) + 1) * (n - np.maximum(i, j))
    np.testing.assert_array_equal(query_matrix(Ranges(), x).operator.gram, formula)
    np.testing.assert_array_equal(query_matrix(Identity(), x).operator.gram, np.eye(n))


def test_a_million_single_values_are_no_matrix():
    x = Attribute("x", Integers(1, 10**6))
    asks = query_matrix(Identity(), x)
    np.testing.assert_array_equal(asks.of(np.arange(10.0**6)), np.arange(10.0**6))
    assert asks.label(10**6 - 1) == "1000000"


def test_ranges_of_a_thousand_values():
    """Some rows of what would be a matrix of 500,500 × 1,000."""
    n = 1000
    x = Attribute("x", Integers(0, n - 1))
    asks = query_matrix(Ranges(), x)
    rng = np.random.default_rng(1)
    m = rng.normal(size=(n, n))
    m, values = m + m.T, rng.normal(size=n)
    quadratics, answers = asks.operator.row_quadratics(m), asks.of(values)
    assert quadratics.shape == answers.shape == (asks.n_rows,) == (500_500,)
    first, last = np.triu_indices(n)
    for r in (0, 1, 999, 1000, 123_456, 500_499):
        row = (np.arange(n) >= first[r]) & (np.arange(n) <= last[r])
        np.testing.assert_allclose(quadratics[r], row @ m @ row, atol=1e-7)
        np.testing.assert_allclose(answers[r], row @ values, atol=1e-10)
    assert asks.label(1000) == "1"
    assert asks.label(1001) == "1 to 2"


def test_equal_matrices_share_what_is_computed_and_others_do_not():
    a, b = (Attribute(name, Integers(low, low + 9)) for name, low in (("a", 0), ("b", 5)))
    assert query_matrix(Prefix(), a).operator.gram is query_matrix(Prefix(), b).operator.gram
    assert query_matrix(Prefix(), a).label(0) != query_matrix(Prefix(), b).label(0)
    assert query_matrix(Ranges(), a).operator.gram is not query_matrix(Prefix(), a).operator.gram
    names = Categories(("1", "2", "3"))
    left = Attribute("x", names, groups=(("s",), ("s",), ()))
    right = Attribute("x", names, groups=((), ("s",), ("s",)))
    assert (
        query_matrix(Hierarchy(), left).operator.gram
        != query_matrix(Hierarchy(), right).operator.gram
    ).any()


STEPS = Attribute("age", Integers(0, 11, 5))
BINS = Attribute("income", Bins((0, 10, 30.5, 100)))
LETTERS = Attribute("grade", Categories(("1", "2", "3"), ("A", "B", "C")))
CITIES = Attribute(
    "city",
    Categories(("New York", "Buffalo", "Rome", "Bari", "Boston")),
    groups=(("US", "New York"), ("US", "New York"), ("IT",), ("IT",), ("US",)),
)


@pytest.mark.parametrize(
    ("basis", "attribute", "labels"),
    [
        (Identity(), STEPS, ["0 to 4", "5 to 9", "10 to 11"]),
        (Prefix(), STEPS, ["≤ 4", "≤ 9", "≤ 11"]),
        (Ranges(), STEPS, ["0 to 4", "0 to 9", "0 to 11", "5 to 9", "5 to 11", "10 to 11"]),
        (Windows(2), STEPS, ["0 to 4", "0 to 9", "5 to 11"]),
        (Hierarchy((2,)), STEPS, ["all", "0 to 9", "0 to 4", "5 to 9", "10 to 11"]),
        (Prefix(), Attribute("x", Integers(17, 18)), ["≤ 17", "≤ 18"]),
        (Ranges(), Attribute("x", Integers(17, 18)), ["17", "17 to 18", "18"]),
        (Prefix(), BINS, ["under 10", "under 30.5", "≤ 100"]),
        (Windows(2), BINS, ["0 to under 10", "0 to under 30.5", "10 to 100"]),
        (Prefix(), LETTERS, ["up to A", "up to B", "up to C"]),
        (Ranges(), LETTERS, ["A", "A to B", "A to C", "B", "B to C", "C"]),
        (CustomBasis(np.eye(3), ("x", "y", "z")), LETTERS, ["x", "y", "z"]),
        (CustomBasis(np.eye(3)), LETTERS, ["query 1", "query 2", "query 3"]),
        (
            Hierarchy(),
            CITIES,
            ["all", "US", "IT", "US > New York", "New York", "Buffalo", "Rome", "Bari", "Boston"],
        ),
        (Hierarchy(), Attribute("x", Categories(("only",))), ["only"]),
        (
            Hierarchy((2,)),
            Attribute("x", Categories(("all", "b", "c"))),
            ["all (all)", "all to b", "all", "b", "c"],
        ),
    ],
)
def test_labels(basis, attribute, labels):
    asks = query_matrix(basis, attribute)
    assert asks.labels() == labels
    assert [asks.label(r) for r in range(asks.n_rows)] == labels


def test_groups_that_are_called_alike_have_distinct_labels():
    groups = {
        "x": ("N", "1"), "y": ("N", "1"), "S": ("N",),
        "N > 1": ("S", "1"), "p": ("S", "1"), "q": ("S",),
        "r": ("x",), "s": ("x",),
    }  # fmt: skip
    attribute = Attribute("a", Categories(tuple(groups)), groups=tuple(groups.values()))
    labels = query_matrix(Hierarchy(), attribute).labels()
    assert labels == ["all", "N", "S (all)", "x (all)", "N > 1 (all)", "S > 1", *groups]


@given(st.data())
@settings(deadline=None)
def test_labels_are_distinct_whatever_the_values_are_called(data):
    part = st.sampled_from(["a", "to", "–", "all", "up to", "(all)", ">"])
    name = st.lists(part, min_size=1, max_size=4).map(" ".join)
    names = data.draw(st.lists(name, min_size=3, max_size=8, unique=True))
    level = st.sampled_from(["a", "all", "to", *(n for n in names if " > " not in f" {n} ")])
    path = st.lists(level, max_size=2).map(tuple)
    paths = data.draw(
        st.lists(path, min_size=len(names), max_size=len(names)).filter(any), label="paths"
    )
    attribute = Attribute("x", Categories(tuple(names)), groups=tuple(paths))
    for basis in (Prefix(), Ranges(), Windows(2), Hierarchy(), Hierarchy((2,))):
        labels = query_matrix(basis, attribute).labels()
        assert len(set(labels)) == len(labels)


def test_refused():
    x = Attribute("x", Integers(0, 3))
    with pytest.raises(WorkloadError, match="groups"):
        query_matrix(Hierarchy(), x)
    with pytest.raises(ValueError, match="axis 1 must have 4 values, got 5"):
        query_matrix(Prefix(), x).of(np.ones((4, 5)), 1)


def test_rolling_sums_of_more_values_than_there_are_are_running_totals():
    attribute = Attribute("a", Integers(0, 4))
    wide, prefix = (query_matrix(basis, attribute) for basis in (Windows(10**30), Prefix()))
    np.testing.assert_array_equal(wide.of(np.eye(5), 0), prefix.of(np.eye(5), 0))


@pytest.mark.parametrize("values", [Integers(0, 5), Bins(range(7))], ids=["whole", "bins"])
@pytest.mark.parametrize("basis", [Prefix(), Ranges(), Windows(3), Windows(9), Hierarchy((2,))])
def test_missing_values_of_numbers_stand_by_themselves(basis, values):
    """The rows about numbers are those without missing values; each missing value has its own."""
    numbers = Attribute("n", values)
    attribute = Attribute("n", replace(values, missing=(("-9", "refused"), ("", "empty"))))
    matrix, alone = query_matrix(basis, attribute), query_matrix(basis, numbers)
    w, w_alone = matrix.of(np.eye(8), 0), alone.of(np.eye(6), 0)
    total = np.all(w == 1, axis=1)  # of a hierarchy, everybody
    assert w.shape == (len(w_alone) + 2, 8) == (matrix.n_rows, 8)
    touches = np.any(w[:, 6:] != 0, axis=1) & ~total
    assert np.array_equal(w[touches], np.eye(8)[6:])
    assert np.array_equal(w[~touches & ~total, :6], w_alone[: len(w_alone)][sum(total) :])
    assert [matrix.label(row) for row in np.flatnonzero(touches)] == ["refused", "empty"]
    labels = matrix.labels()
    assert [labels[row] for row in np.flatnonzero(~touches)] == alone.labels()
    assert matrix.operator.row_quadratics(np.eye(8)).tolist() == np.sum(w * w, axis=1).tolist()
