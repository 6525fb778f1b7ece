"""Condition texts: read again, they count the same cells."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.workload.conditions import cells_of_condition, condition_of_cells
from tests.support.strategies import described_domains, domains

DOMAIN = Domain(
    (
        Attribute("age", Integers(0, 99, 10)),
        Attribute("hours worked", Bins((0, 0.5, 10, 40, 60))),
        Attribute(
            "region", Categories(("n", "s", "e", "w"), ("north", 'the "south"', "east", "n"))
        ),
    )
)


@given(domains() | described_domains(), st.data())
def test_every_set_of_cells_has_a_condition(domain, data):
    n_cells = math.prod(domain.sizes.tolist())
    assume(n_cells <= 1024)
    counted = np.array(data.draw(st.lists(st.booleans(), min_size=n_cells, max_size=n_cells)))
    assume(counted.any())
    text = condition_of_cells(domain, counted)
    assert text is not None
    assert cells_of_condition(domain, text).tolist() == counted.tolist()


@given(domains() | described_domains(), st.data())
def test_a_choice_of_values_of_each_attribute_needs_no_alternatives(domain, data):
    """Every part is about one attribute, and each attribute is named in one part at most."""
    assume(math.prod(domain.sizes.tolist()) <= 1024)
    counted = np.ones(1, dtype=bool)
    telling = 0
    for attribute in domain:
        first = data.draw(st.integers(0, attribute.size - 1))
        end = attribute.n_ordered if first < attribute.n_ordered else attribute.size
        last = data.draw(st.integers(first, end - 1))  # no range goes on to missing values
        chosen = (np.arange(attribute.size) >= first) & (np.arange(attribute.size) <= last)
        telling += not chosen.all()
        counted = np.kron(counted, chosen)
    text = condition_of_cells(domain, counted)
    assert text is not None
    assert cells_of_condition(domain, text).tolist() == counted.tolist()
    odd = "".join(label for attribute in domain for label in (*attribute.labels(), attribute.name))
    if not set("&|") & set(odd):
        assert " | " not in text
        assert text.count(" & ") == max(telling - 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "total",
        "age <= 19",
        "age >= 80",
        "20 <= age <= 49",
        "`hours worked` < 0.5",
        "0.5 <= `hours worked` < 40",
        "`hours worked` >= 40",
        'region == "north"',
        'region != "the ""south"""',
        'region in ("north", "w")',  # the label "n" is what is stored for another region
        'age <= 9 & `hours worked` >= 10 & region != "east"',
        "(age <= 9 | 20 <= age <= 29)",
        "age <= 9 & `hours worked` < 0.5 | 10 <= age <= 19 & `hours worked` >= 10",
        'age <= 9 & (`hours worked` < 0.5 & region == "north" | `hours worked` >= 40)',
    ],
)
def test_conditions_are_written_as_people_would(text):
    assert condition_of_cells(DOMAIN, cells_of_condition(DOMAIN, text)) == text


def test_single_numbers_are_named():
    domain = Domain((Attribute("age", Integers(-1, 3)),))
    assert condition_of_cells(domain, np.arange(-1, 4) == -1) == "age == -1"
    assert condition_of_cells(domain, np.arange(-1, 4) == 2) == "age == 2"


def test_what_is_too_long_for_a_condition_has_none():
    values = tuple(f"{index:0100}" for index in range(1000))
    domain = Domain((Attribute("x", Categories(values)),))
    assert condition_of_cells(domain, np.arange(1000) % 2 == 0) is None
    text = condition_of_cells(domain, np.arange(1000) < 900)  # what it leaves out is shorter
    assert text is not None
    assert text.startswith("x not in (")


def test_no_cell_at_all_has_no_condition():
    with pytest.raises(ValueError, match="a count of no cell"):
        condition_of_cells(DOMAIN, np.zeros(160, dtype=bool))


def test_everything_is_empty_where_total_is_an_attribute():
    assert condition_of_cells(Domain.from_sizes({"total": 2}), np.ones(2, dtype=bool)) == ""
