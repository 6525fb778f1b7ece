"""Counts by other attributes: one for each combination, at single values or at levels."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import cells_of_condition
from rpexplore.workload.query_definitions import (
    conditions_of_text,
    stated_from_text,
    text_from_stated,
)
from rpexplore.workload.query_edits import domain_of_conditions, domain_of_text
from rpexplore.workload.query_files import (
    conditions_of_csv,
    csv_of_conditions,
    stated_from_csv,
)

AGES = {"type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
BOOK = rp.Domain.from_schema(
    {
        "fields": [
            {"name": "age", **AGES, "levels": {"thirds": "0-32, 33-65, 66+"}},
            {
                "name": "sex",
                "type": "string",
                "constraints": {"enum": ["F", "M"]},
                "categories": [
                    {"value": "F", "label": "women"},
                    {"value": "M", "label": "men, boys"},
                ],
            },
            {"name": "region", "type": "string", "constraints": {"enum": ["n", "s", "by"]}},
        ]
    }
)


def listed(text: str):
    return stated_from_text(domain_of_text(BOOK, text, None), text)


def test_one_count_stands_for_one_of_each_combination_with_its_target():
    stated = listed("adults in the north: age >= 18 & region == 'n' by sex, age@thirds ± 20")
    names = [
        f"adults in the north, sex = {sex}, age@thirds = {ages}"
        for sex in ("women", "men, boys")
        for ages in ("0-32", "33-65", "66+")
    ]
    assert list(stated.queries.names) == names
    assert {target.text for target in stated.targets} == {"±20 at 95 %"}
    domain = stated.queries.domain
    assert domain.names == ("age", "sex", "region")
    age, sex, region = np.unravel_index(np.arange(600), (100, 2, 3))
    for place, condition in enumerate(stated.conditions):
        ages = (place % 3 * 33 <= age) & (age < (place % 3 + 1) * 33 + (place % 3 == 2))
        own = ages & (age >= 18) & (sex == place // 3) & (region == 0)
        assert condition is not None
        assert cells_of_condition(domain, condition).tolist() == own.tolist()
    # It is kept as the counts that it stands for.
    assert stated_from_text(domain, text_from_stated(stated)) == stated
    csv = csv_of_conditions(stated).encode()
    assert stated_from_csv(domain, csv, "own.csv") == stated


def test_combinations_that_the_condition_rules_out_are_left_out():
    stated = listed("old: age >= 40 by age@thirds ± 9")
    assert stated.queries.names == ("old, age@thirds = 33-65", "old, age@thirds = 66+")
    with pytest.raises(WorkloadError, match=r"Line 1: .* holds for no cell"):
        listed("nobody: age < 3 & age > 5 by age@thirds ± 9")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("by sex @ 5", ["total, sex = women", "total, sex = men, boys"]),
        ("total by sex @ σ 5", ["total, sex = women", "total, sex = men, boys"]),
        ("all: total by `sex`@5", ["all, sex = women", "all, sex = men, boys"]),
        (
            "`age`@thirds = 66+ by sex@σ 5",
            ["`age`@thirds = 66+, sex = women", "`age`@thirds = 66+, sex = men, boys"],
        ),
        (
            "total by `age`@thirds @ 5",
            [f"total, age@thirds = {x}" for x in ("0-32", "33-65", "66+")],
        ),
        (
            "total by age@`thirds` @ 5",
            [f"total, age@thirds = {x}" for x in ("0-32", "33-65", "66+")],
        ),
        ("region == 'by' @ 5", ["region == 'by'"]),
        (
            "sex == 'F' | age < 9 by region @ 5 % of 1000",
            [f"sex == 'F' | age < 9, region = {name}" for name in ("n", "s", "by")],
        ),
        (
            "total by `age@thirds` @ 5",
            [f"total, age@thirds = {x}" for x in ("0-32", "33-65", "66+")],
        ),
    ],
)
def test_ways_to_write_it(text, names):
    assert list(listed(text).queries.names) == names


def test_alternatives_are_kept_together():
    stated = listed("sex == 'F' | age < 9 by region @ 5")
    assert [int(row.sum()) for row in stated.queries.coefficients] == [109, 109, 109]


def test_a_column_of_a_file_says_it_too():
    csv = b"name,condition,by,target\nold,age > 60,sex,20\nall,total,,30\neach,,age@thirds,9\n"
    domain = domain_of_conditions(BOOK, conditions_of_csv(csv, "own.csv"))
    assert domain.names == ("age", "sex")
    stated = stated_from_csv(domain, csv, "own.csv")
    names = ["old, sex = women", "old, sex = men, boys", "all", "each, age@thirds = 0-32"]
    assert list(stated.queries.names[:4]) == names
    assert stated.queries.targets.tolist() == [20, 20, 30, 9, 9, 9]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: sex == 'F' by regio ± 4", r"Line 1: Behind the word by .*'regio'"),
        ("x: sex == 'F' by age@fifths ± 4", r"'age' has no level 'fifths'; it has '?thirds"),
        ("x: sex == 'F' by region, region ± 4", "'region' is named twice"),
        ("x: sex == 'F' by age, age@thirds ± 4", "'age' is named twice"),
    ],
)
def test_what_is_no_attribute_is_named(text, said):
    with pytest.raises(WorkloadError, match=said):
        listed(text)
    with pytest.raises(WorkloadError, match=said.removeprefix("Line 1: ")):
        domain_of_conditions(BOOK, conditions_of_text(text))


def test_an_attribute_may_be_called_by():
    domain = rp.Domain.from_sizes({"by": 3, "a": 4})
    assert stated_from_text(domain, "a < 2 & by == 1 ± 3").queries.names == ("a < 2 & by == 1",)
    assert len(stated_from_text(domain, "a < 2 by by ± 3")) == 3


def test_too_many_combinations_are_refused_before_they_are_made():
    domain = rp.Domain.from_sizes({"a": 1000, "b": 1000})
    with pytest.raises(WorkloadError, match="at most 10,000 own counts, got 1,000,000"):
        stated_from_text(domain, "total by a, b ± 3")
