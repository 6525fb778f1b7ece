"""Lists of linear queries: exact numbers, and refusals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.text import as_seen
from rpexplore.errors import WorkloadError
from rpexplore.workload.query_definitions import (
    StatedQueries,
    stated_from_json,
    stated_from_text,
    stated_to_json,
)
from rpexplore.workload.query_edits import about_attributes, with_queries
from rpexplore.workload.query_files import csv_of_coefficients, stated_from_csv
from rpexplore.workload.query_list import MAX_CELLS, QueryList
from tests.support.query_lists import query_list
from tests.support.strategies import described_domains, words

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("F", "M"))),
        rp.Attribute("age", rp.Integers(0, 29, 10)),
    )
)
ROWS = [[1, 1, 1, 0, 0, 0], [0.5, 0, -0.25, 0.000001, 0, 0]]


def queries(**changed):
    given = {"domain": DOMAIN, "coefficients": ROWS, "names": ("women", "mix"), "targets": [3, 4.5]}
    return QueryList(**(given | changed))


def test_cells_are_in_row_major_order():
    made = queries()
    assert len(made) == 2
    assert made.n_cells == 6
    assert made.cell_labels[:4] == ("F, 0 to 9", "F, 10 to 19", "F, 20 to 29", "M, 0 to 9")
    assert made.counted_cells.tolist() == [True, True, True, True, False, False]
    assert repr(made) == "<QueryList of 2 queries over 6 cells>"


def test_of_many_cells_those_with_equal_coefficients_are_one_atom(tmp_path):
    """Any pattern of a few numbers over 5,000 cells is kept, in every form that a list has."""
    sizes = {"a": 25, "b": 10, "c": 20}
    domain, rng = rp.Domain.from_sizes(sizes), np.random.default_rng(0)
    patterns = [
        np.kron(rng.integers(0, 3, (2, 25)) / 4, np.ones(200)),  # by a alone
        rng.integers(0, 2, (2, 5000)).astype(float),  # any cells
        np.tile(np.arange(20.0), (1, 250)),  # by c alone
    ]
    for rows in patterns:
        rows[:, 0] = 1
        names = [f"q{number}" for number in range(len(rows))]
        made = QueryList.of_cells(domain, rows, names, np.full(len(rows), 3.0))
        assert made.n_cells == len(np.unique(rows, axis=1).T)
        assert np.array_equal(made.cell_coefficients, rows)
        stated = StatedQueries.of(made)
        assert stated_from_json(stated_to_json(stated)).queries == made
        read = stated_from_csv(domain, csv_of_coefficients(stated).encode(), "a file")
        assert read.queries == made
        # Beside counts by conditions, and with another attribute.
        women = stated_from_text(domain, "few: a < 3 & b = 2 ± 9")
        both = with_queries(stated, women).queries.cell_coefficients
        assert np.array_equal(both[:-1], rows)
        assert both[-1].sum() == 3 * 20
        wider = about_attributes(stated, rp.Domain.from_sizes({**sizes, "d": 2}))
        assert np.array_equal(wider.queries.cell_coefficients, np.repeat(rows, 2, axis=1))
    with pytest.raises(WorkloadError, match=r"at most 20,000 groups of cells apart, got 30,000"):
        QueryList.of_cells(rp.Domain.from_sizes({"a": 30_000}), [np.arange(30_000.0)], ["q"], [1])
    with pytest.raises(WorkloadError, match="at most 200,000 cells"):
        QueryList.of_cells(rp.Domain.from_sizes({"a": 500, "b": 401}), [[1]], ["q"], [1])


@st.composite
def lists(draw):
    """Any list over a small domain, with coefficients of any number of decimals up to six."""
    domain = draw(described_domains().filter(lambda domain: np.prod(domain.sizes) <= MAX_CELLS))
    n_cells = int(np.prod(domain.sizes))
    indices = draw(st.integers(0, 6))
    number = st.integers(-(10**6), 10**6).map(lambda units: units / 10**indices) | st.just(0.0)
    count = draw(st.integers(1, 3))
    values = [draw(st.lists(number, min_size=1, max_size=4)) for _ in range(count)]
    rows = [np.resize(row, n_cells) for row in values]
    for row in rows:
        if not row.any():
            row[0] = 1
    names = draw(st.lists(words(), min_size=count, max_size=count, unique_by=as_seen))
    targets = [draw(st.floats(1e-9, 1e12)) for _ in range(count)]
    return QueryList(domain, np.array(rows), tuple(names), np.array(targets))


@given(lists())
def test_integers_are_the_decimals_exactly(made):
    for row, whole, below in zip(
        made.coefficients.tolist(), made.integers.tolist(), made.denominators.tolist(), strict=True
    ):
        assert [Fraction(repr(value)) for value in row] == [Fraction(one, below) for one in whole]
        assert 10**6 % below == 0
        assert below == 1 or any(one % 10 for one in whole), "no smaller power of ten does"


def test_nothing_can_be_changed_afterwards():
    rows, made = np.array(ROWS), None
    made = queries(coefficients=rows)
    rows[0, 0] = 7
    assert made.coefficients[0, 0] == 1
    for array in (made.coefficients, made.targets, made.integers, made.denominators):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2
    assert not np.signbit(queries(coefficients=[[1, -0.0, 0, 0, 0, 0]] * 2).coefficients).any()


ZERO = [0] * 6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"domain": rp.Domain(())}, "at least one attribute"),
        ({"domain": None}, "at least one attribute"),
        ({"domain": rp.Domain.from_sizes({"a": 25, "b": 41})}, r"a .25. × b .41. = 1,025; leave"),
        ({"domain": rp.Domain.from_sizes({"a": 10**6, "b": 10**6})}, "about 1 trillion"),
        ({"coefficients": np.empty((0, 6)), "names": (), "targets": []}, "at least one, got none"),
        ({"coefficients": [[1, 2, 3]] * 2}, r"each of the 6 cells, got the shape \(2, 3\)"),
        ({"coefficients": [[1] * 6, [1]]}, "rows of one length"),
        ({"coefficients": [["1"] * 6] * 2}, "must be numbers"),
        ({"coefficients": [[True] * 6] * 2}, "must be numbers"),
        ({"coefficients": [[1] * 6, ZERO]}, "'mix' counts no cell"),
        ({"coefficients": [[1] * 6, [1, np.nan, 0, 0, 0, 0]]}, "'mix' .* got nan for cell 2"),
        ({"coefficients": [[1] * 6, [np.inf, *ZERO[1:]]]}, "got inf for cell 1"),
        ({"coefficients": [[1000000.5] * 6] * 2}, r"within ±1,000,000 .* got 1000000.5"),
        ({"coefficients": [[0.0000015] * 6] * 2}, "at most 6 decimals, got 1.5e-06"),
        ({"coefficients": [[1 / 3] * 6] * 2}, "at most 6 decimals"),
        ({"names": ("one", "one")}, "'one' stands for two counts"),
        ({"names": ("one", " ")}, "name of count 2 must be a text"),
        ({"names": ("one", 2)}, "name of count 2 must be a text"),
        ({"names": ("one",)}, "2 counts but 1 names"),
        ({"names": "ab"}, "must be a list of texts"),
        ({"targets": [1]}, "as many targets"),
        ({"targets": [1, 0]}, "target of count 'mix' .* got 0"),
        ({"targets": [1, np.nan]}, "got nan"),
        ({"targets": [1, -3]}, "got -3"),
        ({"targets": [1, 1e13]}, "from 1e-09 to 1e"),
        ({"targets": ["a", "b"]}, "targets must be numbers"),
    ],
)
def test_refusals(changed, message):
    with pytest.raises(WorkloadError, match=message):
        queries(**changed)


def test_too_many_queries():
    with pytest.raises(WorkloadError, match="at most 10,000 own counts, got 10,001"):
        query_list(np.ones((10_001, 2)))
    with pytest.raises(WorkloadError, match=r"4,800 own counts can be over at most 842 .* 1,024"):
        query_list(np.ones((4_800, 1_024)))
