"""Coding: by distinct values, as if every record were coded by itself."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data import arrow_values, coding
from rpexplore.data.arrow_values import distinct_values
from rpexplore.data.coding import Faults, Takers, coders
from rpexplore.domain.attribute import Values
from rpexplore.errors import DataError, DomainError

VALUE_SETS = [
    Categories(("0", "1", "-3", "127", "2.5", "a", "rest")),
    Integers(-3, 2**53, 2**40, (("127", "refused"), ("none", "none"))),
    Integers(-3, 300, 7, (("zz", "none"),)),
    Bins((-128, 0, 1.5, 300, 1e17), (("2.5", "odd"), ("none", "none"))),
]


def coder_of(domain, others=None):
    """The codes of a column, with a value that takes all others, or a `DataError` for these."""

    def codes(column):
        faults = Faults(domain, Takers.of(domain, others, others))
        (coder,) = coders(domain, [0]).values()
        codes = faults.codes(0, column, coder)
        faults.refuse()
        return codes

    return codes


COLUMNS = [
    (st.integers(-128, 127), pa.int8()),
    (st.integers(0, 255), pa.uint8()),
    (st.integers(-3, 400), pa.int16()),
    (st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5), pa.int64()),
    (st.integers(0, 2**64 - 1) | st.integers(0, 5), pa.uint64()),
    (st.sampled_from([0.0, -0.0, 1.0, 2.5, math.nan, math.inf, 1e300, 127.0]), pa.float64()),
    (st.sampled_from([0.0, 1.0, 2.5, math.nan]), pa.float16()),
    (st.sampled_from(["0", "1", "2.5", " 1", "+1", "a", "zz", "", "127"]), pa.string()),
    (st.sampled_from(["0", "1", "a"]), pa.dictionary(pa.int8(), pa.string())),
    (st.booleans(), pa.bool_()),
]


@given(
    st.sampled_from(COLUMNS), st.sampled_from(VALUE_SETS), st.data(), st.sampled_from([2, 1 << 16])
)
def test_codes_are_those_of_each_value_by_itself(column, values, data, narrow):
    kind, type_ = column
    drawn = data.draw(st.lists(kind | st.none(), max_size=10))
    domain = Domain((Attribute("c", values),))
    others = {"c": domain["c"].labels()[-1]}
    coder = coder_of(domain, others)
    strict = coder_of(domain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_values, "_NARROW", narrow)
        alone = []
        for value in drawn:
            one = pa.array([value], type_)
            alone += coder(one).tolist()
            try:
                assert strict(one).tolist() == alone[-1:]
            except DataError:
                assert alone[-1] == values.size - 1
        together = coder(pa.array(drawn, type_))
    assert together.tolist() == alone
    assert together.dtype == np.min_scalar_type(values.size - 1)


@given(st.sampled_from(COLUMNS), st.data(), st.sampled_from([2, 1 << 16]))
def test_looking_up_gives_the_column_back(column, data, narrow):
    kind, type_ = column
    drawn = pa.array(data.draw(st.lists(kind | st.none(), max_size=10)), type_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_values, "_NARROW", narrow)
        distinct, indices = distinct_values(drawn)
    listed = [*distinct.to_pylist(), None]
    assert repr([listed[index] for index in indices]) == repr(drawn.to_pylist())


def test_strings_are_compared_once_for_each_distinct_one(monkeypatch):
    """Also where they come as dictionaries, and however many records there are."""
    lengths = []
    as_text = coding.as_text
    monkeypatch.setattr(
        coding, "as_text", lambda column: lengths.append(len(column)) or as_text(column)
    )
    domain = Domain((Attribute("c", Categories(("a", "b"))),))
    coder = coder_of(domain)
    for column in (pa.array(["a", "b"] * 500), pa.array(["b", "a"] * 500).dictionary_encode()):
        coder(column)
    assert lengths == [2, 2]


def test_a_strange_value_that_no_record_has_is_no_matter():
    """A dictionary may list more than is used, and so may a range of numbers."""
    domain = Domain((Attribute("c", Categories(("1", "3"))),))
    coder = coder_of(domain)
    listed = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["3", "zz", "1"]))
    assert coder(listed).tolist() == [0, 1, 0]
    assert coder(pa.array([1, 3, 1])).tolist() == [0, 1, 0]
    with pytest.raises(DataError) as caught:
        coder(pa.array([1, 3, 2]))
    assert caught.value.private == "'c': 1 not in the codebook. It holds: 2."


def test_a_null_within_a_dictionary_is_missing():
    domain = Domain((Attribute("c", Categories(("a", "rest"))),))
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert coder_of(domain, {"c": "rest"})(column).tolist() == [0, 1, 1]
    with pytest.raises(DataError, match="missing value"):
        coder_of(domain)(column)


def test_part_of_a_column_is_coded_by_itself():
    domain = Domain((Attribute("c", Categories(("a", "b"))),))
    coder = coder_of(domain)
    for column in (
        pa.array(["x", "b", "a", "y"]),
        pa.array(["x", "b", "a", "y"]).dictionary_encode(),
    ):
        assert coder(column.slice(1, 2)).tolist() == [1, 0]


def test_unknown_others_are_refused():
    domain = Domain((Attribute("c", Integers(0, 3, missing=(("-9", "refused"),))),))
    with pytest.raises(DomainError, match="'d'"):
        Takers.of(domain, {"d": "refused"})
    with pytest.raises(DataError, match="'7'"):
        Takers.of(domain, missing_values={"c": "7"})
    with pytest.raises(DataError, match="real numbers"):
        Takers.of(domain, {"c": "3"})
    with pytest.raises(DataError, match="No attribute has the value 'none'"):
        Takers.of(domain, {"*": "none"})


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_a_number_at_an_edge_lies_there_whatever_its_precision(kind):
    """0.7 of 32 bits is 0.699999988…, and 0.1 of 16 bits 0.09997…: below what the codebook says."""
    edges = (0.1, 0.3, 0.7, 1.1)
    domain = Domain((Attribute("c", Bins(edges)),))
    column = pa.array(np.array(edges, kind.to_pandas_dtype()))
    assert column.type == kind
    code = coder_of(domain)
    assert code(column).tolist() == [0, 1, 2, 2]
    assert code(pa.concat_arrays([column] * 40)).tolist() == [0, 1, 2, 2] * 40
    for outside in (1.102, np.inf, -np.inf):
        with pytest.raises(DataError, match="not in the codebook"):
            code(pa.array([outside], pa.float64()).cast(kind, safe=False))


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_a_missing_number_is_missing_whatever_its_precision(kind):
    """One that the column cannot hold is not what becomes of it there: infinity, or nothing."""
    missing = (("0.7", "no answer"), ("1e300", "huge"), ("1e-300", "tiny"))
    values = Bins((0, 1), missing)
    column = pa.array(np.array([0.7, 0.5, 0, np.inf], kind.to_pandas_dtype()))
    coder = coders(Domain((Attribute("c", values),)), [0])[0]
    assert coder.signed_codes(column).tolist() == [1, 0, 0, -1]


def test_edges_that_a_column_cannot_tell_are_refused():
    code = coder_of(Domain((Attribute("c", Bins((0, 0.3, 0.30000000001, 1e300))),)))
    assert code(pa.array([0.3, 0.30000000001])).tolist() == [1, 2]
    with pytest.raises(DataError, match=r"0\.3 and 0\.30000000001 .* 'c' .* \(float32\); leave"):
        code(pa.array([0.3], pa.float32()))


def codes_of(values: Values, texts: list) -> list[int]:
    """The code of each value, −1 for one that is refused."""
    domain = Domain((Attribute("c", values),))
    return coders(domain, [0])[0].signed_codes(pa.array(texts)).tolist()


@pytest.mark.parametrize(
    ("values", "texts", "expected"),
    [
        # zero-padded codes, in either place, unless both are listed
        (
            Categories(("1", "2", "9")),
            ["01", "+2", "009", "2.0", "1 ", "1e0"],
            [0, 1, 2, 1, -1, -1],
        ),
        (Categories(("01", "02", "11")), ["1", "02", "0011", "3"], [0, 1, 2, -1]),
        (Categories(("1", "01")), ["1", "01", "001", "1.0"], [0, 1, -1, -1]),
        (Categories(("01", "a")), [1, 10, 0], [0, -1, -1]),
        # codes such as 1.1 are no numbers unless the codebook says so
        (Categories(("1.1", "1")), ["1.10", "1.1", "01.1", "1.0"], [-1, 0, -1, 1]),
        (
            Categories(("0.5", "1", "2.50", "0", "-.1"), are_numbers=True),
            [".5", "0.50", "01.00", "2.5", "-0", "-0.10", "5e-1", "0.05"],
            [0, 0, 1, 2, 3, 4, -1, -1],
        ),
        (Categories(("0.5", "1", "2.50"), are_numbers=True), [0.5, 1.0, 2.5, 0.25], [0, 1, 2, -1]),
        # booleans in their usual spellings, unless these are codes of something else
        (
            Categories(("true", "false", "unknown")),
            ["True", "TRUE", "1", "01", "0", "FALSE", "yes", "unknown", "tRUE", "2"],
            [0, 0, 0, 0, 1, 1, -1, 2, -1, -1],
        ),
        (Categories(("0", "1")), ["false", "True", "00"], [0, 1, 0]),
        (Categories(("0", "1")), [True, False], [1, 0]),
        (Categories(("0", "1", "2")), ["false", "True", "1"], [-1, -1, 1]),
        (Categories(("true", "false", "1")), ["True", "0", "1", "true"], [-1, -1, 2, 0]),
        (Categories(("true", "maybe")), ["True", "true"], [-1, 0]),
        # those of the codebook alone where it states any
        (
            Categories(("yes", "no"), spellings=(("y", "\u00e4"), ())),
            ["y", "yes", "no", "a\u0308", "n", "true"],
            [0, 0, 1, 0, -1, -1],
        ),
        (Categories(("true", "false"), spellings=(("ja",), ())), ["ja", "True"], [0, -1]),
    ],
)
def test_what_can_mean_one_value_alone_is_that_value(values, texts, expected):
    assert codes_of(values, texts) == expected


LAST = 2**53


@pytest.mark.parametrize(
    ("values", "numbers", "expected"),
    [
        (Integers(LAST - 2, LAST), [LAST - 1, LAST, LAST + 1, LAST + 2], [1, 2, -1, -1]),
        (Integers(-LAST, LAST, 2**51), [LAST - 1, LAST, LAST + 1, -LAST - 1], [7, 8, -1, -1]),
        (Bins((0, LAST)), [LAST, LAST + 1, -LAST], [0, -1, -1]),
        (Bins((0, LAST + 4, 1e300)), [LAST + 3, LAST + 4, LAST + 5, 2**63 - 1], [0, 1, 1, 1]),
        (Bins((-1e300, 2.5)), [2, 3, -(2**63)], [0, -1, 0]),
        (Bins((-1e300, -1e290)), [0, -(2**63)], [-1, -1]),
        (Bins((0, 9), (("-9", "a"), ("5", "b"))), [-9, 5, 6, 10], [1, 2, 0, -1]),
    ],
)
def test_whole_numbers_are_told_apart_where_floats_are_not(values, numbers, expected):
    assert codes_of(values, numbers) == expected
    if isinstance(values, Integers):  # written in digits, the same
        assert codes_of(values, [f" {number}" for number in numbers]) == expected
        assert codes_of(values, [f"0{LAST}.0", f"{LAST}.5"]) == [values.size - 1, -1]
    unsigned = [
        (number, code) for number, code in zip(numbers, expected, strict=True) if number > 0
    ]
    column = pa.array([number for number, _ in unsigned], pa.uint64())
    coder = coders(Domain((Attribute("c", values),)), [0])[0]
    assert coder.signed_codes(column).tolist() == [code for _, code in unsigned]


def test_every_attribute_that_has_the_value_takes_what_is_missing():
    domain = Domain(
        (
            Attribute("age", Integers(0, 3, missing=(("-9", "not stated"),))),
            Attribute("sex", Categories(("f", "m", "9"), ("female", "male", "not stated"))),
            Attribute("job", Categories(("yes", "no"))),
            Attribute("own", Categories(("1", "not stated", "not applicable"))),
        )
    )
    takers = Takers.of(domain, None, {"*": "not stated", "own": "not applicable"})
    assert takers == Takers({0: 4, 1: 2, 3: 2}, {})
    with pytest.raises(DataError, match="No attribute"):
        Takers.of(domain, {"*": "3"})
