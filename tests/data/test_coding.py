"""Coding: by distinct values, as if every record were coded by itself."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data import coding
from rpexplore.data.coding import Faults, Takers, coders, distinct_values
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
        patch.setattr(coding, "_NARROW", narrow)
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
        patch.setattr(coding, "_NARROW", narrow)
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
