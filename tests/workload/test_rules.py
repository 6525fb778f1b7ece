"""Rules: what share of people or cells must be in accurate cells, as typed and as written."""

from decimal import Decimal

import pytest

import rpexplore as rp
from rpexplore.workload.rules import parse_rule, rules_of

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "a, and in b": 3})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)
EACH = "CV<=20% for 90% of people in each table"


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        (EACH, rp.Rule("0.2", "0.9")),
        (
            "cv ≤ 2,5 % for 100 % of the cells in sex,age",
            rp.Rule("0.025", 1, "cells", [("age", "sex")]),
        ),
        (
            "CV < 5% for at least 50% of persons in every table, surely",
            rp.Rule(0.05, 0.5, certainty="surely"),
        ),
        (
            'CV<=1% for 9% of records in total and in "a, and in b"',
            rp.Rule("0.01", "0.09", tables=[(), "a, and in b"]),
        ),
    ],
)
def test_a_rule_is_read_and_written(typed, rule):
    assert parse_rule(DOMAIN, typed) == rule
    assert parse_rule(DOMAIN, str(rule)) == rule
    assert rules_of(TABLES, [typed]) == rules_of(TABLES, [rule])


def test_of_rules_that_do_not_say_it_the_certainty_is_that_of_all():
    first, second = rules_of(TABLES, [EACH, "CV<=5% for 9% of cells in sex, surely"], "surely")
    assert (first.certainty, second.certainty) == ("surely", "surely")
    assert first.cv == Decimal("0.2")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["CV<=0% for 90% of people in each table"], "above 0 % and at most 100 %, got 0 %"),
        (["CV<=20% for 110% of people in each table"], "at most 100 %, got 110 %"),
        (["CV<=20% for 90% of people in agee"], "did you mean 'age'"),
        (["CV<=20% for 90% of people in age,sex,age"], "twice"),
        (["CV<=0.2 for 90% of people in each table"], "must be written like CV<=20% for 90%"),
        (["CV<=20% for 90% of people"], "must be written like"),
        ([EACH, EACH], "stated twice"),
        ([EACH, "CV<=10% for 95% of people in each table"], "contradict each other"),
        ([EACH, "CV<=30% for 80% of people in age,sex"], "contradict each other"),
        ([rp.Rule("0.2", 1, tables=[("age", "sex", "a, and in b")])], "not asked for"),
        (EACH, "must be a list"),
    ],
)
def test_what_is_no_rule_is_refused_in_a_sentence(typed, message):
    with pytest.raises(rp.errors.RpexploreError, match=message.replace("(", r"\(")) as refused:
        rules_of(TABLES, typed)
    assert "\n" not in str(refused.value)


def test_rules_that_say_different_things_stand_side_by_side():
    stated = [
        EACH,
        "CV<=20% for 90% of cells in each table",
        "CV<=30% for 95% of people in each table",
        "CV<=10% for 90% of people in age,sex",
    ]
    assert len(rules_of(TABLES, stated)) == 4
