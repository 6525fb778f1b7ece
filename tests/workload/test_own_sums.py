"""Own counts that add up amounts: how they are written, and which coefficients they are."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.workload import query_definitions, query_list
from rpexplore.workload.own_sums import joined_definition, split_definition
from rpexplore.workload.query_definitions import (
    stated_from_json,
    stated_from_text,
    stated_to_json,
    text_from_stated,
)
from rpexplore.workload.query_edits import about_attributes, domain_of_text, with_queries

INCOME = rp.Amounts("-0.5", "99.5", decimals=1, unit="EUR", missing=(("", "not stated"),))
DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"))),
        rp.Attribute("income", INCOME),
        rp.Attribute("w", rp.Amounts(0, 4, are_weights=True)),
        rp.Attribute("age", rp.Integers(0, 4)),
    )
)
LINES = """all: sum(income) ± 5
old: sum(income) where age >= 3 by sex ± 5
with: RECORDS( `income` ) where sex = "f" | age < 2 ± 5
weighted: sum(w) where age >= 3 ± 5
both: sum(income * w) where sex = "m" ± 5
plain: age >= 3 ± 5"""
Y, STATED, W = np.array([-0.5, 99.5, 0]), np.array([1, 1, 0]), np.array([0, 4])
AGES, SEXES = np.arange(5), np.eye(2)


def expected() -> np.ndarray:
    """The coefficients of `LINES`, by hand: float64[7, sex, income, w, age]."""

    def product(sex, income, w, age):
        return np.einsum("s,i,w,a->siwa", sex, income, w, age)

    old, every = (AGES >= 3) * 1, np.ones(5)
    return np.array(
        [
            product(np.ones(2), Y, np.ones(2), every),
            product(SEXES[0], Y, np.ones(2), old),
            product(SEXES[1], Y, np.ones(2), old),
            product(SEXES[0], STATED, np.ones(2), every)
            + product(SEXES[1], STATED, np.ones(2), AGES < 2),
            product(np.ones(2), np.ones(3), W, old),
            product(SEXES[1], Y, W, every),
            product(np.ones(2), np.ones(3), np.ones(2), old),
        ]
    )


@pytest.mark.parametrize("most", [1024, 10])
def test_sums_have_the_limits_as_coefficients(monkeypatch, most):
    """By cells, and by what conditions and amounts tell apart."""
    for module in (query_definitions, query_list):
        monkeypatch.setattr(module, "MAX_CELLS", most)
    assert domain_of_text(DOMAIN, LINES, None) == DOMAIN
    stated = stated_from_text(DOMAIN, LINES)
    assert (stated.queries.atoms is None) == (most == 1024)
    np.testing.assert_array_equal(stated.queries.cell_coefficients, expected().reshape(7, -1))
    assert stated.queries.names[1:3] == ("old, sex = f", "old, sex = m")
    assert stated.queries.steps == 1000 * 4
    assert stated_from_text(DOMAIN, text_from_stated(stated)).queries == stated.queries
    assert stated_from_json(stated_to_json(stated)).queries == stated.queries


def test_lists_with_sums_are_joined_and_get_further_attributes():
    about = rp.Domain((DOMAIN["sex"], DOMAIN["income"]))
    one = stated_from_text(about, "all: sum(income) ± 5")
    other = stated_from_text(rp.Domain((DOMAIN["age"],)), "old: age >= 3 ± 5")
    joint = with_queries(one, other)
    assert joint.queries.domain.names == ("sex", "income", "age")
    assert joint.conditions == ("sum(income)", "age >= 3")
    wide = about_attributes(one, DOMAIN)
    np.testing.assert_array_equal(wide.queries.coefficients, expected()[:1].reshape(1, -1))


def test_a_typed_sum_is_joined_with_chosen_conditions():
    joined = joined_definition(["sex == 'f'"], "sum(income) where age < 2 | age > 3")
    assert joined == "sum(income) where sex == 'f' & (age < 2 | age > 3)"
    assert joined_definition([], "age < 2") == "age < 2"
    assert joined_definition(["sex == 'f'"], "sum(income)") == "sum(income) where sex == 'f'"


def test_names_that_are_no_words_are_in_backquotes():
    measure, condition = split_definition("sum(`net income (EUR)` * w) where a = 1")
    assert (measure.names, condition) == (("net income (EUR)", "w"), "a = 1")
    assert split_definition(measure.definition("a = 1")) == (measure, condition)
    assert split_definition("summary = 1") == (None, "summary = 1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("income > 5 ± 5", "'income' has amounts, which are added up"),
        ("sum(income) age > 2 ± 5", "there must be the word where and a condition"),
        ("sum(pay) ± 5", "no attribute 'pay' to add up"),
        ("sum(age) ± 5", "'age' is none"),
        ("sum(w * w) ± 5", "must be the sum of amounts times weights"),
        ("records(income * w) ± 5", "must be the sum of amounts times weights"),
    ],
)
def test_what_cannot_be_added_up_is_named(line, message):
    with pytest.raises(WorkloadError, match=message):
        stated_from_text(DOMAIN, line)


def test_what_conditions_and_amounts_tell_apart_has_names_and_conditions(monkeypatch):
    for module in (query_definitions, query_list):
        monkeypatch.setattr(module, "MAX_CELLS", 10)
    queries = stated_from_text(DOMAIN, "plain: age >= 3 by sex ± 5\nall: sum(income) ± 5").queries
    labels = queries.cell_labels
    assert labels[0] == 'sex == "f" & income at -0.5 & w at 0 & age <= 2 and 1 more'
    assert any("income not stated & w at 4 & age >= 3" in label for label in labels)
    assert len(set(labels)) == len(labels)
    stated = stated_from_json(stated_to_json(query_definitions.StatedQueries.of(queries)))
    assert stated.all_conditions == ('sex == "f" & age >= 3', 'sex == "m" & age >= 3', None)
