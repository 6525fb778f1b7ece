"""Queries as lines of text: what they ask, and what is refused with its line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import cells_of_condition
from rpexplore.workload.query_definitions import (
    StatedQueries,
    conditions_of_text,
    stated_from_text,
    text_from_stated,
)
from rpexplore.workload.query_edits import domain_of_conditions
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.targets import CV, MARGIN, Target
from tests.support.processor_time import at_most
from tests.support.strategies import words

DOMAIN = Domain(
    (
        Attribute("age", Integers(0, 99, 10)),
        Attribute("sex", Categories(("F", "M"), ("women", "men"))),
        Attribute("a:b @ c", Categories(("x: y ± 3", "z"))),
    )
)
TWENTY = Target(20)


def test_a_list_has_one_query_a_line():
    stated = stated_from_text(
        DOMAIN,
        """
        adults: age >= 20 ± 50
        women's: sex = "women" @ 5 % of 1000\r
        "age < 20": age < 20 @ 7.5
        age < 20 & `a:b @ c` = "x: y ± 3" ±30 @ 99 %
        total @ ±10 (90 %)
        everybody once more: total
        men: sex == "M"
        """.replace("women's", "women"),
        TWENTY,
    )
    assert stated.queries.names == (
        "adults",
        "women",
        "age < 20",
        'age < 20 & `a:b @ c` = "x: y ± 3"',
        "total",
        "everybody once more",
        "men",
    )
    assert stated.targets == (
        Target(50, MARGIN),
        Target(5, CV, count=1000),
        Target("7.5"),
        Target(30, MARGIN, 99),
        Target(10, MARGIN, 90),
        TWENTY,
        TWENTY,
    )
    errors = [50 / 1.959963985, 50, 7.5, 30 / 2.575829304, 10 / 1.644853627, 20, 20]
    assert stated.queries.targets == pytest.approx(errors)
    conditions = [
        "age >= 20", 'sex = "women"', "age < 20", 'age < 20 & `a:b @ c` = "x: y ± 3"', "total",
        "total", 'sex == "M"',
    ]  # fmt: skip
    assert stated.conditions == tuple(conditions)
    for row, condition in zip(stated.queries.coefficients, conditions, strict=True):
        assert row.tolist() == cells_of_condition(DOMAIN, condition).tolist()


@pytest.mark.parametrize(
    ("line", "name", "condition", "target"),
    [
        ("x:age<20@3", "x", "age<20", 3),
        ("x: age<20 +-3", "x", "age<20", 3 / 1.959963985),
        ("x: age<20 +/- 3", "x", "age<20", 3 / 1.959963985),
        ("total", "total", "total", 20),
        (": total".strip(": "), "total", "total", 20),
        ('"women": sex = "F"', "women", 'sex = "F"', 20),
        ('"F" = sex', '"F" = sex', '"F" = sex', 20),
        ("'F' = sex @ 5", "'F' = sex", "'F' = sex", 5),
        ('"19"" ±": total ± 3', '19" ±', "total", 3 / 1.959963985),
        ("a, b; (c): total", "a, b; (c)", "total", 20),
        ("l'âge: total", "l'âge", "total", 20),
    ],
)
def test_names_conditions_and_targets_are_told_apart(line, name, condition, target):
    stated = stated_from_text(DOMAIN, line, TWENTY)
    assert stated.queries.names == (name,)
    assert stated.conditions == (condition,)
    assert stated.queries.targets.tolist() == pytest.approx([target])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one, got none"),
        ("total\n\nage >= 25", "Line 3: At character 8 of the condition, '25': >= 25 cuts"),
        ("total\nages >= 20", "Line 2: At character 1 .* did you mean 'age'"),
        ("a: total\nb: total\na: age < 20", r"Line 3: The name 'a' was given before \(line 1\)"),
        ("age >= 100", "Line 1: The condition 'age >= 100' holds for no cell"),
        ("total @ a lot", "Line 1: The target must be written like 20"),
        (
            "total ± 5 required",
            "Line 1: The target of a count cannot be required, .* write ±5 at 95 %",
        ),
        ("total @", "Line 1: There must be a target behind @"),
        ("total\nwomen: ± 5", "Line 2: There is no condition; write total where every record"),
        ("total @ -3", "Line 1: .* positive number"),
        ("total @ 1e13", "Line 1: The target of count 'total' must be a standard error"),
        ("total ± " + "9" * 300, "Line 1: The target must be written like .* a long text"),
        (": total", "Line 1: At character 1 .* a colon can only stand behind the name"),
        ("age < 20: total", "a colon can only stand behind .* double quotation marks"),
        ('" ": total', "Line 1: There must be a name before the colon"),
        ("x" * 20_001, "Line 1 must have at most 20,000 characters, got 20,001"),
        ("total\n" + "(" * 100, "Line 2: At character 51"),
    ],
)
def test_what_is_refused_is_told_with_its_line(text, message):
    with pytest.raises(WorkloadError, match=message):
        stated_from_text(DOMAIN, text, TWENTY)


def test_every_query_needs_a_target():
    with pytest.raises(WorkloadError, match="Line 2: The count needs a target; write it like 20"):
        stated_from_text(DOMAIN, "total ± 5\nage < 20")
    assert stated_from_text(DOMAIN, "total ± 5").targets == (Target(5, MARGIN),)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**6,
        "\n" * 10**6,
        "total @ 1\n" * 10**5,
        '"' * 20_000,
        "+" + " " * 19_000 + "x",
        "„" * 19_000 + "@",
        "l" + " " * 19_000 + "?",
        "total @ +" + " " * 19_000,
    ],
)
def test_hostile_lists_are_refused_quickly(text):
    with at_most(2), pytest.raises(WorkloadError):
        stated_from_text(DOMAIN, text)


@pytest.mark.nightly
def test_long_lists_are_read_in_seconds():
    domain = Domain.from_sizes({"x": 200})
    lines = [f"q{index}: x = {index % 200} @ 3" for index in range(10_001)]
    with (
        at_most(20),
        pytest.raises(WorkloadError, match=r"Line 10,001: .* at most 10,000 own counts"),
    ):
        stated_from_text(domain, "\n".join(lines))
    stated = stated_from_text(domain, "\n".join(lines[:1_000]))
    assert np.array_equal(stated.queries.coefficients, np.tile(np.eye(200), (5, 1)))


TARGETS = st.builds(Target, st.integers(1, 10**6)) | st.builds(
    Target,
    st.decimals("0.01", 1000, places=2),
    st.just(MARGIN),
    st.sampled_from([90, 95, "99.9"]),
)
ROWS = st.lists(st.sampled_from([0, 1]), min_size=40, max_size=40).filter(any)


@given(st.data())
def test_lists_can_be_written_and_read_again(data):
    """With conditions as they were typed, and with conditions found for coefficients."""
    typed = ["total", "", "age<20", "`a:b @ c` = 'x: y ± 3'", '"F" = sex', "sex in [“M”]"]
    rows, conditions, names, targets = [], [], [], []
    for _ in range(data.draw(st.integers(1, 5))):
        condition = data.draw(st.none() | st.sampled_from(typed))
        row = data.draw(ROWS) if condition is None else cells_of_condition(DOMAIN, condition)
        name = data.draw(words() | st.sampled_from([condition or "total", "it's @ 3", "x ± 2"]))
        if name not in names:
            rows.append(np.array(row, dtype=float))
            conditions.append(condition)
            names.append(name)
            targets.append(data.draw(TARGETS))
    errors = np.array([target.standard_error for target in targets])
    queries = QueryList(DOMAIN, np.array(rows), tuple(names), errors)
    stated = StatedQueries(queries, tuple(conditions), tuple(targets))
    if any("\n" in name for name in names):
        with pytest.raises(WorkloadError, match="cannot be written in a line of its own"):
            text_from_stated(stated)
        return
    again = stated_from_text(DOMAIN, text_from_stated(stated))
    assert again.queries.names == queries.names
    assert again.queries.coefficients.tolist() == queries.coefficients.tolist()
    assert again.targets == stated.targets
    assert text_from_stated(again) == text_from_stated(stated)


def test_queries_that_were_not_typed_have_conditions_where_there_are_any():
    rows = np.array([[1, 0, 0], [0, 1, 1], [1, -1, 0], [0.5, 0, 0]])
    domain = Domain((Attribute("x", Integers(1, 3)),))
    stated = StatedQueries.of(
        QueryList(domain, rows, ("a", "b", "c", "d"), np.array([1, 2.5, 3, 4]))
    )
    assert [stated.condition(index) for index in range(4)] == ["x == 1", "x >= 2", None, None]
    assert stated.targets == (Target(1), Target("2.5"), Target(3), Target(4))
    with pytest.raises(WorkloadError, match="'c' cannot be written as a condition; save the list"):
        text_from_stated(stated)


def test_what_was_stated_must_fit_the_queries():
    queries = QueryList(Domain.from_sizes({"x": 1}), np.ones((1, 1)), ("a",), np.ones(1))
    for conditions, targets in (((), (Target(1),)), (("",), ()), (("",), (Target(2),))):
        with pytest.raises(WorkloadError):
            StatedQueries(queries, conditions, targets)


def test_the_domain_of_a_list_can_be_found_before_it_is_read():
    schema = Domain.from_sizes({"big": 5_000, "sex": 2, "age": 100, "region": 12})
    text = "old: age > 65 @ 3\n\nsex = 1 & age < 18 ± 5\n"
    domain = domain_of_conditions(schema, conditions_of_text(text))
    assert domain.names == ("sex", "age")
    assert stated_from_text(domain, text, TWENTY).queries.n_cells == 200
