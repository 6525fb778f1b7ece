"""Stated queries as plain values: read back exactly, and refused by name where they cannot be."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.text import as_seen
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.workload.presets import PRESETS
from rpexplore.workload.query_definitions import (
    StatedQueries,
    stated_from_json,
    stated_from_text,
    stated_to_json,
)
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.targets import CV, MARGIN, Target
from tests.support.strategies import domains, words

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})
TEXT = 'everybody: total ± 50\nold: age >= 8 & sex = "1" @ 5 % of 1000\nage < 3 @ 7.5'


def targets() -> st.SearchStrategy[Target]:
    value = st.floats(1e-6, 1e9)
    return (
        value.map(Target)
        | st.tuples(value, st.sampled_from([90, "99.9"])).map(lambda t: Target(t[0], MARGIN, t[1]))
        | value.map(lambda v: Target(v, CV, count="1234.5"))
    )


@st.composite
def stated_lists(draw) -> StatedQueries:
    """Queries by condition and by coefficients, in any order, with any targets."""
    domain = draw(domains(max_attributes=2, max_size=4))
    n_cells = int(np.prod(domain.sizes))
    names = draw(st.lists(words(), min_size=1, max_size=4, unique_by=as_seen))
    numbers = st.sampled_from([0, 1, -2, 0.5, 1e-6, 123456.25])
    rows = [draw(st.lists(numbers, min_size=n_cells, max_size=n_cells).filter(any)) for _ in names]
    conditions: list[str | None] = [None] * len(names)
    if draw(st.booleans()):
        rows[0], conditions[0] = [1] * n_cells, draw(st.sampled_from(["total", "", "a0 >= 0"]))
    wanted = tuple(draw(targets()) for _ in names)
    errors = np.array([target.standard_error for target in wanted])
    queries = QueryList(domain, np.array(rows, dtype=float), tuple(names), errors)
    return StatedQueries(queries, tuple(conditions), wanted)


@given(stated_lists())
def test_a_list_is_read_back_exactly(stated):
    text = json.dumps(stated_to_json(stated))
    again = stated_from_json(json.loads(text))
    assert again == stated
    assert again.queries.targets.tolist() == stated.queries.targets.tolist()
    assert json.dumps(stated_to_json(again)) == text


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.title)
def test_presets_are_read_back(preset):
    stated = StatedQueries.of(preset.queries())
    assert stated_from_json(stated_to_json(stated)) == stated


def test_a_typed_query_is_kept_as_it_was_typed():
    content = stated_to_json(stated_from_text(DOMAIN, TEXT))
    assert content["queries"] == [
        {"name": "everybody", "target": "±50 at 95 %", "condition": "total"},
        {"name": "old", "target": "5 % of 1000", "condition": 'age >= 8 & sex = "1"'},
        {"name": "age < 3", "target": "7.5", "condition": "age < 3"},
    ]


def test_a_query_by_coefficients_is_kept_by_its_runs_of_cells():
    queries = QueryList(rp.Domain.from_sizes({"x": 4}), [[1, 1, 0, 0.5]], ("q",), [3])  # pyright: ignore[reportArgumentType]
    assert stated_to_json(StatedQueries.of(queries))["queries"] == [
        {"name": "q", "target": "3", "terms": "[[0,1,1],[3,3,0.5]]"}
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("everybody", "all"),
        ("± 50", "± 51"),
        ("± 50", "@ 50"),
        ("age >= 8", "age > 7"),
        ("age < 3", "age < 4"),
    ],
)
def test_lists_differ_in_each_of_their_words(old, new):
    one, changed = (stated_from_text(DOMAIN, text) for text in (TEXT, TEXT.replace(old, new)))
    assert one == stated_from_text(DOMAIN, TEXT)
    assert hash(one) == hash(stated_from_text(DOMAIN, TEXT))
    assert one != changed


def test_lists_differ_in_their_coefficients_and_domain():
    rows = np.eye(2)
    lists = [
        StatedQueries.of(QueryList(domain, matrix, ("a", "b"), np.ones(2)))
        for domain, matrix in (
            (rp.Domain.from_sizes({"x": 2}), rows),
            (rp.Domain.from_sizes({"x": 2}), 2 * rows),
            (rp.Domain.from_sizes({"y": 2}), rows),
        )
    ]
    assert lists[0] != lists[1]
    assert lists[0] != lists[2]


def changed(**changes):
    content = stated_to_json(stated_from_text(DOMAIN, TEXT))
    content["queries"][1] |= changes
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "must hold exactly domain, queries"),
        ({"domain": {}}, "must hold exactly domain, queries"),
        (changed(more=1), "name, target and either"),
        (changed(terms="[]"), "name, target and either"),
        (changed(target=5), "all of them must be texts"),
        (changed(name=None), "all of them must be texts"),
        (changed(condition=["age"]), "all of them must be texts"),
        (changed(name="everybody"), "^Own count 2: The name 'everybody' was given before"),
        (changed(target="a lot"), "^Own count 2: The target must be written like"),
        (changed(target=""), "^Own count 2: The count needs a target"),
        (changed(target="20 required"), "^Own count 2: The target of a count cannot be required"),
        (changed(condition="income > 3"), "^Own count 2: .*no attribute 'income'"),
        (changed() | {"queries": []}, "at least one, got none"),
        (changed() | {"queries": {}}, "name, target and either"),
        (changed() | {"domain": {"fields": []}}, "filled list"),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": "[[0, 99, 1]]"}]},
            "terms of count 'x' must be .first cell",
        ),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": "[[0, 9"}]},
            "terms of count 'x' must be JSON",
        ),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": "[" * 100_000}]},
            "terms of count 'x' must be JSON",
        ),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": "[[0, 9, NaN]]"}]},
            "terms of count 'x' must be JSON",
        ),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": "[[0, 9, 1e999]]"}]},
            "coefficients of count 'x' must be numbers",
        ),
        (
            changed() | {"queries": [{"name": "x", "target": "1", "terms": [[0, 9, 1]]}]},
            "all of them must be texts",
        ),
    ],
)
def test_what_is_no_list_is_refused(content, message):
    with pytest.raises(RpexploreError, match=message):
        stated_from_json(content)


def test_a_name_of_two_queries_by_coefficients_is_refused():
    query = {"name": "x", "target": "1", "terms": "[[0, 0, 1]]"}
    content = changed() | {"queries": [query, query]}
    with pytest.raises(WorkloadError, match="Own count 2: The name 'x' was given before"):
        stated_from_json(content)
