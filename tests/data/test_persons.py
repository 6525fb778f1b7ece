"""Persons: which records are kept, against a loop over people; each person's alone."""

import datetime
import math
import random
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.common.processes import no_progress
from rpexplore.data import persons
from rpexplore.data.persons import kept_records
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError

SECRET = "s3cr3t-person"


def kept(columns: dict, most: int, excess="keep first", order=None, cuts=(), types=None):
    """Which records are kept, with the records in batches that end at these cuts."""
    table = pa.table(
        {name: pa.array(values, (types or {}).get(name)) for name, values in columns.items()}
    )
    n_records = table.num_rows
    ends = [0, *sorted(cut % (n_records + 1) for cut in cuts), n_records]
    batches = (
        (batch, end / max(n_records, 1))
        for start, end in pairwise(ends)
        for batch in table.slice(start, end - start).to_batches()
    )
    rule = PersonRule("id", most, excess, order)
    return kept_records(batches, rule, no_progress).tolist()


def first_of_each(ids: list, keys: list, most: int) -> list[bool]:
    """By a loop: of every person the `most` records with the smallest key, earlier ones first."""
    are_kept = [False] * len(ids)
    for person in set(ids):
        own = [index for index, each in enumerate(ids) if each == person]
        for index in sorted(own, key=lambda index: keys[index])[:most]:
            are_kept[index] = True
    return are_kept


IDS = [
    (st.integers(-3, 3), None),
    (st.integers(-(10**18) - 1, -(10**18) + 1), None),
    (st.integers(2**63, 2**63 + 3), pa.uint64()),
    (st.sampled_from(["a", "b", "0", "-1", "1", "1.1", "9" * 18, "9" * 19, "00x"]), None),
    (st.sampled_from([f"{SECRET}-{i}" for i in range(4)]), pa.large_string()),
    (st.sampled_from([0.0, 1.0, -(2.0**53) + 1]), None),
    (st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)), None),
]


@given(st.sampled_from(IDS), st.integers(1, 3), st.lists(st.integers(0, 50), max_size=3), st.data())
def test_the_first_records_of_every_person_are_kept(kind, most, cuts, data):
    values, type_ = kind
    ids = data.draw(st.lists(values, max_size=20))
    expected = first_of_each(ids, [0] * len(ids), most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persons, "_PIECE", data.draw(st.sampled_from([2, 1 << 20])))
        assert kept({"id": ids}, most, cuts=cuts, types={"id": type_}) == expected
        if all(expected):
            assert kept({"id": ids}, most, "refuse", cuts=cuts, types={"id": type_}) == expected
        else:
            with pytest.raises(DataError, match="more records than"):
                kept({"id": ids}, most, "refuse", cuts=cuts, types={"id": type_})


def key_of(value) -> tuple:
    """Numbers, then texts, then what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (2, 0.0, "")
    try:
        return (0, float(value), "")
    except (TypeError, ValueError):
        return (1, 0.0, str(value))


ORDERS = [
    st.integers(-2, 12) | st.none(),
    st.sampled_from([1.5, -2.0, math.inf, -math.inf, math.nan, None]),
    st.sampled_from(["9", "10", "1e1", " 3 ", "b", "a", "ä", "Z", None]),
    st.dates(datetime.date(1999, 12, 30), datetime.date(2000, 1, 2)) | st.none(),
    st.none(),
]


@given(
    st.sampled_from(ORDERS),
    st.integers(1, 3),
    st.lists(st.integers(0, 50), max_size=3),
    st.sampled_from([(0, 1), ("a", "b")]),
    st.data(),
)
def test_the_smallest_of_the_order_come_first(values, most, cuts, of_ids, data):
    ids = data.draw(st.lists(st.sampled_from(of_ids), max_size=15))
    order = data.draw(st.lists(values, min_size=len(ids), max_size=len(ids)))
    are_kept = kept({"id": ids, "t": order}, most, order="t", cuts=cuts)
    assert are_kept == first_of_each(ids, [key_of(value) for value in order], most)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["9", "10", "x", None])), max_size=12)
)
def test_what_is_kept_of_a_person_depends_on_that_person_alone(records):
    """Even where only another's texts show that the order is not all numbers."""
    ids, order = [each[0] for each in records], [each[1] for each in records]
    together = kept({"id": ids, "t": pa.array(order, pa.string())}, 1, order="t")
    for person in "ab":
        own = [index for index, each in enumerate(ids) if each == person]
        texts = pa.array([order[index] for index in own], pa.string())
        alone = kept({"id": [person] * len(own), "t": texts}, 1, order="t")
        assert [together[index] for index in own] == alone


def test_a_person_is_one_whatever_the_types_of_files():
    """An integer column in one file, texts in the next."""
    batches = [
        (pa.record_batch({"id": pa.array(values)}), share)
        for values, share in (([3, 4], 0.3), (["3", "x"], 0.6), ([3, 5], 1.0))
    ]
    are_kept = kept_records(batches, PersonRule("id", 2, "keep first"), no_progress)
    assert are_kept.tolist() == [True, True, True, True, False, True]


@pytest.mark.parametrize("number", [0, -7, 10**18 - 1, 10**18, 2**63 - 1, -(2**63)])
def test_a_number_and_its_text_are_one_person(number):
    batches = [(pa.record_batch({"id": pa.array([each])}), 1.0) for each in (number, str(number))]
    assert kept_records(batches, PersonRule("id", 1, "keep first"), no_progress).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "ids", [[1, None], ["a", None], [1.0, math.nan], [None, None], ["a", None, "b"] * 10]
)
@pytest.mark.parametrize("excess", ["refuse", "keep first"])
def test_a_record_of_nobody_is_refused(ids, excess):
    with pytest.raises(DataError, match="whose it is") as caught:
        kept({"id": ids}, 100, excess)
    assert "'id'" in str(caught.value)


@given(st.text(st.sampled_from("0017.+-eETZz:NA/ _\n"), max_size=12))
def test_ids_that_are_told_fast_are_what_the_slow_way_makes_of_them(text):
    def replaced(text, steps):
        for pattern, replacement in steps:
            # In engines a group has one digit: \10 is the first and a zero.
            of_python = re.sub(r"\\([1-9])", r"\\g<\1>", replacement)
            text = re.sub(at_the_end(pattern), of_python, text)
        return text

    def at_the_end(pattern):
        """With the end of all for each $, which in Python may have a line end behind it."""
        return re.sub(r"(?<![!\[])[$]", r"\\Z", pattern)

    def matches(pattern):
        return re.search(at_the_end(pattern), text) is not None

    is_plain = matches(persons.PLAIN_ID)
    if is_plain or matches(persons.DIGITS_ID):
        assert replaced(text, persons.CANONICAL) == text
        assert not matches(persons.NOBODY_ID)
        assert not matches(persons.UNCLEAR_ID)
        number = text
        for _, steps in persons.AS_NUMBER:
            number = replaced(number, steps)
        assert number == (text if is_plain else text.lstrip("0") or "0")


def test_steps_that_engines_leave_out_change_nothing():
    chosen, texts = random.Random(1), []
    for _ in range(5_000):
        between = chosen.choice(["", ",", ".", " ", "'", "\u2019", "\u066c"])
        parts = [chosen.choice(["1", "0", "07", "12", "345", "0000"]) for _ in range(3)]
        sign, point = (
            chosen.choice(["", "-", "+", "\u2212", "#"]),
            chosen.choice(["", ",5", ".00", "\u066b1"]),
        )
        text = sign + between.join(parts[: chosen.randint(1, 3)]) + point
        text += chosen.choice(["", "e3", "D01", "E+2", " x", "\u0663"])
        texts.append(text)
    made = pa.array(texts, pa.string())
    for needed, steps in persons.AS_NUMBER:
        before, made = made, persons._replaced(made, steps)
        if needed:
            is_left_out = pc.invert(pc.match_substring_regex(before, needed))
            assert made.filter(is_left_out) == before.filter(is_left_out)


def test_no_records_are_kept_of_none():
    assert kept({"id": pa.array([], pa.int64())}, 1) == []
    assert kept_records([], PersonRule("id", 1), no_progress).shape == (0,)


def test_an_allowance_of_no_records_is_refused():
    with pytest.raises(DataError, match="at least one record"):
        kept({"id": [1]}, 0)


def test_errors_hold_nothing_of_the_records():
    with pytest.raises(DataError) as caught:
        kept({"id": [SECRET] * 3}, 2, "refuse")
    assert SECRET not in str(caught.value) + repr(caught.value.args)
    assert "'id'" in str(caught.value)


def test_many_people():
    """Against numpy: the third and later records of 50,000 people, by number and by name."""
    ids = np.random.default_rng(0).integers(0, 50_000, 200_000)
    order = np.argsort(ids, kind="stable")
    starts = np.searchsorted(ids[order], ids[order])
    expected = np.empty(len(ids), dtype=bool)
    expected[order] = np.arange(len(ids)) - starts < 2
    cuts = range(0, len(ids), 30_000)
    assert kept({"id": ids * 10**12}, 2, cuts=cuts) == expected.tolist()
    names = pa.array(ids).cast(pa.string()).to_numpy(zero_copy_only=False) + "x"
    assert kept({"id": names}, 2, cuts=cuts) == expected.tolist()
