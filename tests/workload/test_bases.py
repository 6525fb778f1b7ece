"""Query bases: what they are called, what they refuse, and files with custom bases."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Integers
from rpexplore.common.json_fields import FieldError
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import (
    CustomBasis,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Windows,
    from_json,
    to_json,
)
from rpexplore.workload.bases.base import MAX_VALUES, leave_values_open
from rpexplore.workload.table_text import query_matrix
from tests.support.strategies import words

LETTERS = Attribute("grade", Categories(("A", "B", "C", "D")))
AGES = Attribute("age", Integers(0, 99))
PLACES = Attribute(
    "place",
    Categories(("a", "b", "c", "d", "e")),
    groups=(("S", "SE"), ("S", "SW"), ("N",), ("S", "SE"), ()),
)


@pytest.mark.parametrize(
    ("basis", "attribute", "rows", "description"),
    [
        (Identity(), AGES, 100, "single values"),
        (Prefix(), AGES, 100, "cumulative: up to each value"),
        (Ranges(), AGES, 5050, "ranges: every range of values"),
        (Windows(5), AGES, 100, "moving sums of 5 values"),
        (Windows(1), AGES, 100, "single values"),
        (Windows(100), AGES, 100, "cumulative: up to each value"),
        (Hierarchy((20, 5)), AGES, 126, "hierarchy: groups of 5 and 20 values, and single values"),
        (Hierarchy((30,)), AGES, 105, "hierarchy: groups of 30 values, and single values"),
        # N and S; within S, SE and SW.
        (Hierarchy(), PLACES, 5 + 1 + 4, "hierarchy: groups and single values"),
        (CustomBasis(np.eye(4)), LETTERS, 4, "own matrix"),
        (CustomBasis(np.eye(4), name="mine"), LETTERS, 4, "own matrix (mine)"),
    ],
)
def test_rows_and_descriptions(basis, attribute, rows, description):
    basis.check(attribute)
    assert basis.n_rows(attribute) == rows
    assert basis.describe(attribute) == description
    assert basis.is_identity == isinstance(basis, Identity)


def test_counting_the_rows_builds_nothing():
    assert Identity().n_rows(Attribute("x", Integers(1, 10**6))) == 10**6
    assert Ranges().n_rows(Attribute("x", Integers(1, 4000))) == 8_002_000


def test_groups_of_a_hierarchy_by_level_also_those_of_one_value():
    south, east, west = ((0, 1, 3), ("S",)), ((0, 3), ("S", "SE")), ((1,), ("S", "SW"))
    assert Hierarchy().groups(PLACES) == [south, ((2,), ("N",)), east, west]
    assert Hierarchy().parents(PLACES) == [None, 0, 0, 1, 1, 3, 4, 2, 3, 0]
    x = Attribute("x", Integers(0, 4))
    members = [(0, 1, 2, 3), (0, 1), (2, 3)]  # 4 alone is called as the value
    assert Hierarchy((2, 4)).groups(x) == [(values, ()) for values in members]
    assert Hierarchy((2, 4)).parents(x) == [None, 0, 1, 1, 2, 2, 3, 3, 0]


def test_a_group_of_all_values_is_the_total_and_one_of_the_same_as_its_parent_a_row():
    groups = (("all", "x", "y"), ("all", "x", "y"), ("all", "z"))
    attribute = Attribute("a", Categories(("1", "2", "3")), groups=groups)
    found = [path for _, path in Hierarchy().groups(attribute)]
    assert found == [("all", "x"), ("all", "z"), ("all", "x", "y")]
    label = Hierarchy().row_label(attribute)
    assert [label(row) for row in range(7)] == ["all", "x", "z", "y", "1", "2", "3"]


@pytest.mark.parametrize(
    "basis",
    [
        Identity(),
        Prefix(),
        Ranges(),
        Windows(3),
        Hierarchy(),
        Hierarchy((2, 4)),
        CustomBasis([[2]]),
    ],
)
def test_one_value_has_every_basis(basis):
    attribute = Attribute("x", Categories(("only",)))
    basis.check(attribute)
    assert basis.n_rows(attribute) == 1


def finite():
    size = st.floats(1e-12, 1e12)
    return st.just(0.0) | size | size.map(lambda x: -x) | st.integers(-5, 5).map(float)


@st.composite
def custom_bases(draw):
    n = draw(st.integers(1, 5))
    row = st.lists(finite(), min_size=n, max_size=n).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=5))
    label = words()
    labels = st.lists(label, min_size=len(rows), max_size=len(rows), unique=True)
    return CustomBasis(
        tuple(map(tuple, rows)), draw(st.just([]) | labels), draw(st.just("") | label)
    )


def bases():
    widths = st.lists(st.integers(2, 4), max_size=3).map(lambda w: np.cumprod(w).tolist())
    return st.one_of(
        st.sampled_from([Identity(), Prefix(), Ranges()]),
        st.integers(1, 10**6).map(Windows),
        widths.map(tuple).map(Hierarchy),
        custom_bases(),
    )


@given(bases())
@settings(deadline=None)
def test_json_round_trip_is_exact(basis):
    again = from_json(json.loads(json.dumps(to_json(basis))))
    assert again == basis
    assert hash(again) == hash(basis)
    assert again.kind == basis.kind == to_json(basis)["kind"]


def test_bases_differ_by_what_they_ask():
    all_kinds = [
        Identity(),
        Prefix(),
        Ranges(),
        Windows(1),
        Windows(2),
        Hierarchy(),
        CustomBasis([[1]]),
    ]
    all_kinds += [
        CustomBasis([[2]]),
        CustomBasis([[1]], name="a"),
        CustomBasis([[1]], ["a"]),
        Hierarchy((2,)),
    ]
    assert len(set(all_kinds)) == len(all_kinds)
    assert Hierarchy((20, 5)) == Hierarchy((5, 20))
    assert CustomBasis(((0.0, 1),)) == CustomBasis(np.array([[-0.0, 1]]))
    assert not CustomBasis(np.eye(2)).is_identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Windows(0), r"at least 1, got 0"),
        (lambda: Windows(2.5), r"whole number of at least 1, got 2.5"),
        (lambda: Hierarchy((1,)), r"at least 2, got 1"),
        (lambda: Hierarchy(("5",)), r"at least 2, got '5'"),
        (lambda: Hierarchy(5), r"must be a list, got 5"),
        (lambda: Hierarchy((5, 12)), r"multiple .* got 5 and 12; try 10"),
        (lambda: Hierarchy((5, 6)), r"got 5 and 6; try 10"),
        (lambda: Hierarchy((5, 5)), r"got 5 and 5"),
        (lambda: CustomBasis(()), r"at least one query"),
        (lambda: CustomBasis(((),)), r"at least one query and one value"),
        (lambda: CustomBasis(np.ones(3)), r"two dimensions, got 1"),
        (lambda: CustomBasis(("ab", "cd")), r"list of rows"),
        (lambda: CustomBasis(((1, 2), (3,))), r"query 2 has 1 and query 1 has 2"),
        (lambda: CustomBasis((("1", "2"),)), r"rows of real numbers"),
        (lambda: CustomBasis(((1j,),)), r"rows of real numbers"),
        (lambda: CustomBasis(((None,),)), r"rows of real numbers"),
        (lambda: CustomBasis(((1, 2), (1, float("nan")))), r"Query 2, column 2 .* got nan"),
        (lambda: CustomBasis(((1, float("inf")),)), r"Query 1, column 2 .* got inf"),
        (lambda: CustomBasis(((1, 1e13),)), r"1e-12 to 1e12, got 1e\+13"),
        (lambda: CustomBasis(((1, 1e-13),)), r"1e-12 to 1e12, got 1e-13"),
        (lambda: CustomBasis(((1, 1), (0, 0))), r"Query 2 is all zeros .* remove"),
        (lambda: CustomBasis(((1,),), ("a", "b")), r"1 queries but 2 labels"),
        (lambda: CustomBasis(((1,),), "a"), r"list of texts"),
        (
            lambda: CustomBasis(((1,), (2,)), ("a", " ")),
            r"label number 2 must be a text .* got ' '",
        ),
        (lambda: CustomBasis(((1,), (2,)), ("a", "a")), r"'a' stands for two"),
        (lambda: CustomBasis(((1,),), name=3), r"name .* got 3"),
        (lambda: CustomBasis(np.ones((10_001, 1))), r"at most 10,000 queries, got 10,001"),
        (lambda: CustomBasis(np.ones((1, 1_001))), r"at most 1,000 values, got 1,001"),
        (lambda: CustomBasis(np.ones((4_001, 500))), r"at most 2,000,000 entries .* 2,000,500"),
        (lambda: from_json({"kind": "wavelet"}), r"must be identity, .* got 'wavelet'"),
        (lambda: from_json({"kind": "windows", "width": "5"}), r"got '5'"),
        (lambda: from_json({"kind": "custom", "name": "", "labels": "a", "rows": [[1]]}), r"list"),
    ],
)
def test_refused(make, message):
    with pytest.raises(WorkloadError, match=message):
        make()


@pytest.mark.parametrize("content", [{}, {"kind": "windows"}, {"kind": "custom"}, 3, None])
def test_json_that_is_no_basis(content):
    with pytest.raises((KeyError, TypeError, FieldError)):
        from_json(content)


MANY = Attribute("income", Integers(0, MAX_VALUES))


@pytest.mark.parametrize(
    ("basis", "attribute", "message"),
    [
        (Prefix(), MANY, r"'income' must have at most 4,096 values .* got 4,097; group"),
        (Ranges(), MANY, r"'income'"),
        (Windows(2), MANY, r"'income'"),
        (Hierarchy((2,)), MANY, r"'income' must have at most"),
        (Hierarchy(), AGES, r"'age' must have groups .* has none; name the groups"),
        (Hierarchy((5, 100)), AGES, r"below the 100 values of attribute 'age', got 100"),
        (CustomBasis(np.eye(3)), LETTERS, r"each of the 4 values of attribute 'grade', got 3"),
        (CustomBasis([[1, 1]], name="mine"), LETTERS, r"matrix 'mine' must have one number"),
    ],
)
def test_unfit_for_the_attribute(basis, attribute, message):
    with pytest.raises(WorkloadError, match=message):
        basis.check(attribute)


@given(st.data())
@settings(deadline=None)
def test_matrices_of_any_rank_are_taken_and_what_they_leave_open_is_known(data):
    """The rank is computed apart, over the integers modulo a large prime."""
    n = data.draw(st.integers(1, 6))
    row = st.lists(st.integers(-1, 2), min_size=n, max_size=n).filter(any)
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    attribute = Attribute("x", Categories(tuple("ABCDEF"[:n])))
    basis, half = CustomBasis(rows), len(rows) // 2
    basis.check(attribute)
    assert leave_values_open((basis,), attribute) == (rank_modulo_prime(rows) < n)
    if half:  # of two matrices, what they leave open together
        two = CustomBasis(rows[:half]), CustomBasis(rows[half:])
        assert leave_values_open(two, attribute) == leave_values_open((basis,), attribute)
        assert not leave_values_open((two[0], Identity()), attribute)


def rank_modulo_prime(rows):
    prime, rows, rank = 2**31 - 1, [list(map(int, row)) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column] % prime), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] * inverse
            rows[r] = [(a - factor * b) % prime for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


def test_the_scale_of_a_query_does_not_matter():
    CustomBasis([[1e-12, 0], [1e12, 1e12]]).check(Attribute("x", Integers(0, 1)))


NAMED = Attribute("sex", Categories(("f", "m", "x"), ("women", "men", "others")))
EYE = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@pytest.mark.parametrize(
    ("text", "attribute", "rows", "labels"),
    [
        ("1,0,0\n0,1,0\n0,0,1\n", NAMED, EYE, ()),
        ("\ufeff1, 0 ,0\r\n\r\n0,1,0\r\n0,0,1", NAMED, EYE, ()),
        ("f,m,x\n1,0,0\n0,1,0\n0,0,1\n", NAMED, EYE, ()),
        ("x,f,m\n0,1,0\n0,0,1\n1,0,0\n", NAMED, EYE, ()),
        ("others,women,men\n0,1,0\n0,0,1\n1,0,0\n", NAMED, EYE, ()),
        ("a,1,0,0\nb,0,1,0\n3,0,0,1\n", NAMED, EYE, ("a", "b", "3")),
        ("what,x,f,m\na,0,1,0\nb,0,0,1\nc,1,0,0\n", NAMED, EYE, ("a", "b", "c")),
        ('query,x,f,m\n1,0,1,0\n2,0,0,1\n"3, 4",1,0,0\n', NAMED, EYE, ("1", "2", "3, 4")),
        (",1,0\na,0,1\nb,1,0\n", Attribute("x", Integers(0, 1)), ((1, 0), (0, 1)), ("a", "b")),
        ("Query,0,1\n5,1,0.5\n6,0,-1e3\n", Attribute("x", Integers(0, 1)),
         ((1, 0.5), (0, -1000)), ("5", "6")),
        ("0 to under 1,1 to 2\n1,0\n1,1\n", Attribute("x", Bins((0, 1, 2))), ((1, 0), (1, 1)), ()),
        ("only,2\n", Attribute("x", Integers(0, 0)), ((2,),), ("only",)),
    ],
)  # fmt: skip
def test_custom_bases_of_a_csv_file(text, attribute, rows, labels):
    assert CustomBasis.read(text.encode(), "mine.v2.csv", attribute) == CustomBasis(
        rows, labels, "mine.v2"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"q\.csv must have one column for each of the 3 values .* 'sex'.* got 0 columns"),
        ("1,0\n0,1\n", r"got 2 columns"),
        ("1,0,0,0\n0,1,0,0\n", r"got 4 columns"),
        ("1,0,0\n0,1\n", r"line 2 must have 3 cells like the first line, got 2"),
        ("f,m,x\n1,0,0\n0,one,0\n", r"line 3, column 2 must be a finite number, got 'one'"),
        ("a,1,0,0\nb,0,,0\n", r"line 2, column 3 must be a finite number, got ''"),
        ("1,0,0\nnan,0,0\n", r"line 2, column 1 .* got 'nan'"),
        ("1,0,0\n0,1_0,0\n", r"line 2, column 2 .* got '1_0'"),
        ("f,m,z\n1,0,0\n", r"line 1, column 3 .* name of a value of attribute 'sex', got 'z'"),
        ("what,f,1,x\na,1,0,0\n", r"line 1, column 3 .* got '1'"),
        ("f,m,m\n1,0,0\n", r"line 1 must name each value of attribute .* once"),
        ("f,men,x\n1,0,0\n", r"all of them as they are stored or all by their labels"),
        ("f,m,x\n", r"at least one query"),
        ("f,m,x\n1,0,0\n0,0,0\n", r"q\.csv: Query 2 is all zeros"),
        ("a,1,0,0\na,0,1,0\n", r"q\.csv: The label 'a' stands for two"),
        ('"1,0,0\n', r"q\.csv is no usable CSV .* quote"),
        ("1,0,0\n" * 10_002, r"at most 10,000 queries"),
        ("1,0,0\n" * 10_001, r"at most 10,000 queries"),
    ],
)
def test_unusable_csv(text, message):
    with pytest.raises(WorkloadError, match=message):
        CustomBasis.read(text.encode(), "q.csv", NAMED)


@pytest.mark.parametrize("text", ["0,1\n1,1\n1,0\n", "a,0,1\nb,1,0\n"])
def test_a_first_line_of_numbers_that_could_name_the_values_is_not_guessed(text):
    with pytest.raises(WorkloadError, match=r"line 1 could name .* 'query' first; .* down"):
        CustomBasis.read(text.encode(), "q.csv", Attribute("x", Integers(0, 1)))


def npy(matrix, **options):
    content = io.BytesIO()
    np.save(content, matrix, **options)
    return content.getvalue()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint64, bool])
def test_custom_bases_of_an_npy_file(dtype):
    matrix = np.tril(np.ones((3, 3), dtype))
    assert CustomBasis.read(npy(matrix), "q.npy", NAMED) == CustomBasis(matrix, (), "q")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"q\.npy is not a matrix .* numpy\.save"),
        (b"1,0,0\n", r"is not a matrix"),
        (b"PK\x03\x04", r"is not a matrix"),
        (npy(np.eye(3))[:-4], r"is not a matrix"),
        (b"PK\x03\x04", r"is not a matrix of numbers in NumPy's .npy format; write"),
        (npy(np.array([[{}]]), allow_pickle=True), r"is not a matrix"),
        (npy(np.ones(3)), r"q\.npy: An own matrix must have two dimensions, got 1"),
        (npy(np.eye(3) * 1j), r"real numbers, got complex128"),
        (npy(np.array([["a"]])), r"real numbers"),
        (npy(np.full((3, 3), np.inf)), r"q\.npy: Query 1, col"),
        (npy(np.eye(2)), r"one number for each of the 3 values"),
    ],
)
def test_unusable_npy(content, message):
    with pytest.raises(WorkloadError, match=message):
        CustomBasis.read(content, "q.npy", NAMED)


def test_several_matrices_in_one_file_are_refused():
    content = io.BytesIO()
    np.savez(content, np.eye(3))
    with pytest.raises(WorkloadError, match=r"must hold one matrix"):
        CustomBasis.read(content.getvalue(), "q.npy", NAMED)


def test_a_width_of_thousands_of_digits_is_refused():
    with pytest.raises(WorkloadError, match=r"must be whole numbers .* got '9{37}\.\.\.'"):
        Hierarchy.from_parameter("9" * 5000)


def test_the_levels_of_a_hierarchy_are_its_rows_in_order():
    paths = (("N", "N1"), ("N", "N1"), ("N", "N2"), ("S",), ("S", "S1"), ("S", "S1"))
    region = Attribute("region", Categories(tuple("abcdef")), groups=paths)
    sex = Attribute("sex", Categories(tuple("fmx")), groups=(("all but x",),) * 2 + ((),))
    age, one = (Attribute("age", Integers(1, high)) for high in (11, 1))
    for basis, attribute, wanted in (
        # N2 has a single value, and is a group all the same.
        (Hierarchy(), region, {"groups, level 1": 2, "groups, level 2": 3}),
        (Hierarchy(), sex, {"groups": 1}),
        # 1–4, 5–8, 9–11; 9–10 in twos, and 11 alone.
        (Hierarchy((2, 4)), age, {"groups of 4": 3, "groups of 2": 5}),
        # 9–11 are as many as a group of 8 and one of 4 can have there.
        (Hierarchy((4, 8)), age, {"groups of 8": 2, "groups of 4": 2}),
    ):
        levels = basis.levels(attribute)
        counts = {"total": 1} | wanted | {"single values": attribute.size}
        assert {name: len(rows) for name, rows in levels.items()} == counts
        assert [row for rows in levels.values() for row in rows] == [
            *range(basis.n_rows(attribute))
        ]
        matrix = query_matrix(basis, attribute).of(np.eye(attribute.size), 0)
        assert set(matrix[levels["total"]].sum(axis=1)) == {attribute.size}
        assert set(matrix[levels["single values"]].sum(axis=1)) == {1}
        for name in wanted:  # of one level, no two groups share a value
            assert matrix[levels[name]].sum(axis=0).max() == 1
    assert Hierarchy((2,)).levels(one) == {"single values": range(1)}
