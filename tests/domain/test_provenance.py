"""Where values come from, and the words that every document has for it."""

import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import (
    FOUND_IN_RECORDS,
    TO_COMPLETE,
    describe_attributes_from_records,
    except_from_records,
    label_from_records,
)


def domain_with(*names: str) -> rp.Domain:
    values = Categories(("x", "y"))
    taken = [Attribute(name, values, label_from_records("")) for name in names]
    return rp.Domain((Attribute("public", values, "Label"), *taken))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("a", "a"),
        ("ab", "a and b"),
        ("abc", "a, b and c"),
        ("abcde", "a, b, c, d and e"),
        ("abcdefg", "a, b, c, d, e and 2 more"),
    ],
)
def test_attributes_from_records_are_named(names, text):
    domain = domain_with(*names)
    assert describe_attributes_from_records(domain) == text
    assert bool(except_from_records(domain)) == bool(names)


def test_a_sentence_that_holds_is_left_as_it_is():
    assert except_from_records(domain_with()) == ""
    assert except_from_records(domain_with("sex")) == (
        ", except the values of sex, which were taken from the records and are not protected"
    )


def test_several_codebooks_are_named_together():
    assert describe_attributes_from_records(
        domain_with("a", "b"), domain_with(), domain_with("b", "c")
    ) == ("a, b and c")


def test_labels():
    assert label_from_records("") == FOUND_IN_RECORDS
    assert label_from_records("Sex") == f"Sex ({FOUND_IN_RECORDS})"
    assert label_from_records(label_from_records("Sex")) == label_from_records("Sex")


def test_what_still_waits_for_values_has_none_from_records():
    waiting = rp.Domain((Attribute("a", TO_COMPLETE, FOUND_IN_RECORDS),))
    assert describe_attributes_from_records(waiting) == ""
