"""Levels in conditions, against the values that lie in their groups."""

import numpy as np
import pytest

from rpexplore import Attribute, Categories, Dates, Domain, Integers
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import attributes_of_condition, cells_of_condition
from rpexplore.workload.counts_by import counts_by, names_in_condition
from rpexplore.workload.universe import universe_of

AGES = np.arange(100)
FIVE_YEAR = tuple("85+" if age >= 85 else f"{age // 5 * 5}-{age // 5 * 5 + 4}" for age in AGES)
PARITY = tuple("odd" if age % 2 else "even" for age in AGES)
SIZES = ("large", "large", "small", "middle", "large")  # of 5, 3, 1, 2 and 4 rooms
DOMAIN = Domain(
    (
        Attribute(
            "age",
            Integers(0, 99),
            levels=(Level("five-year", FIVE_YEAR), Level("odd or even", PARITY)),
        ),
        Attribute("rooms", Categories(("5", "3", "1", "2", "4")), levels=(Level("size", SIZES),)),
        Attribute(
            "born",
            Dates("2000-01-01", "2001-12-31"),
            levels=(Level("year", ("2000",) * 366 + ("2001",) * 365),),
        ),
    )
)


def ages(text):
    """Whether a condition on age holds, bool[100]."""
    return cells_of_condition(Domain((DOMAIN["age"],)), text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("age@five-year=65-69", (AGES >= 65) & (AGES <= 69)),
        ('age@five-year == "65-69"', (AGES >= 65) & (AGES <= 69)),
        ("`age@five-year` = 85+", AGES >= 85),
        ("age@five-year = 65–69", (AGES >= 65) & (AGES <= 69)),
        ('age@five-year > "65 to 69"', AGES >= 70),
        ("age@five-year != 85+", AGES < 85),
        ("age@five-year in (0-4, 85+)", (AGES < 5) | (AGES >= 85)),
        ("age@`five-year` not in (65-69)", (AGES < 65) | (AGES > 69)),
        ("age@five-year >= 65-69", AGES >= 65),
        ("age@five-year > 65-69", AGES >= 70),
        ("age@five-year <= 65-69", AGES < 70),
        ('"65-69" <= age@five-year < 80-84', (AGES >= 65) & (AGES < 80)),
        ("age@five-year >= 65", AGES >= 65),
        ('age@`odd or even` = "odd" & age@five-year < 5-9', (AGES % 2 == 1) & (AGES < 5)),
    ],
)
def test_groups_of_a_level_are_the_values_that_lie_in_them(text, holds):
    np.testing.assert_array_equal(ages(text), holds)
    assert attributes_of_condition(DOMAIN, text) == ("age",)
    assert "age" in names_in_condition(f"{text} by rooms", DOMAIN)


def test_groups_have_the_order_of_numbers_that_categories_are():
    sizes = Domain((DOMAIN["rooms"],))
    for text in ('rooms@size >= "middle"', 'rooms@size != "small"', "rooms@size > 1"):
        holds = cells_of_condition(sizes, text)
        assert holds.tolist() == [True, True, False, True, True]


def test_years_of_days():
    born = Domain((DOMAIN["born"],))
    for text in ("born@year = 2001", "born@year > 2000", 'born@year >= "2001"'):
        np.testing.assert_array_equal(cells_of_condition(born, text), np.arange(731) >= 366)


def test_a_count_at_a_level_by_another_level():
    made = list(counts_by(DOMAIN, "old", "age@five-year >= 65-69 by age@five-year"))
    assert [name for name, _ in made] == [
        f"old, age@five-year = {group}" for group in ("65-69", "70-74", "75-79", "80-84", "85+")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age@ten = 60", "character 1 .* 'age' has no level 'ten'; it has 'five-year', 'odd or"),
        ("rooms@ten = 60", "'rooms' has no level 'ten'; it has 'size'"),
        ("aged@ten = 60", "there is no attribute 'aged' in the domain; did you mean 'age'"),
        ("age@five-year = 65-70", "'age@five-year' has no value '65-70'; did you mean '"),
        ("age@five-year = 67", "'age@five-year' has no value 67; its values are '0-4', '5-9', …"),
        ("age@five-year > 67", "part of the group '65-69' .*; compare with a group, or .* > 67"),
        ('age@`odd or even` >= "odd"', 'no order .* in \\("even", "odd"\\)'),
        ("age@five-year", "must be compared with a value"),
        (
            "age @five-year = 65-69",
            "must stand between an attribute and one of its levels, without",
        ),
        ("age = 65-69", "At character 9 .* must be & or | between"),
    ],
)
def test_what_is_no_level_or_none_of_its_groups_is_refused_with_a_remedy(text, message):
    domain = Domain((DOMAIN["age"], DOMAIN["rooms"]))
    with pytest.raises(WorkloadError, match=message):
        cells_of_condition(domain, text)


@pytest.mark.parametrize("text", ["age@five-year = 65-69", "`birth year`@decade = 1990"])
def test_the_condition_of_a_universe_has_no_levels(text):
    with pytest.raises(WorkloadError, match="records have no level here; compare the attribute's"):
        universe_of(text, DOMAIN)
    assert universe_of("`birth@year` = 1990", DOMAIN).text == "`birth@year` = 1990"
