"""Lists of queries as CSV: by conditions, and by the coefficients of all cells."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.common.text import as_seen
from rpexplore.errors import WorkloadError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from rpexplore.workload.query_files import (
    csv_of_coefficients,
    csv_of_conditions,
    csv_template,
    stated_from_csv,
)
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.targets import MARGIN, Target
from tests.support.processor_time import at_most
from tests.support.strategies import described_domains, domains, words

DOMAIN = Domain(
    (
        Attribute("sex", Categories(("F", "M"), ("women", "men"))),
        Attribute("age", Integers(0, 29, 10)),
    )
)
# What lists of queries call the cells.
CELLS = ["women, 0 to 9", "women, 10 to 19", "women, 20 to 29", "men, 0 to 9", "men, 10 to 19",
         "men, 20 to 29"]  # fmt: skip
TWENTY = Target(20)


def read(text, default=TWENTY, domain=DOMAIN):
    return stated_from_csv(domain, text.encode(), "q.csv", default)


def written(rows, delimiter=","):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


BY_CONDITION = [
    ["name", "condition", "target"],
    ["adults", "age >= 20", "± 50"],
    ["women", 'sex = "women"', ""],
]
BY_COEFFICIENTS = [
    ["name", "target", *CELLS],
    ["adults", "± 50", *"001001"],
    ["women", "20", *"111000"],
]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    "rows",
    [
        BY_CONDITION,
        [[" Name ", "CONDITION", "Target"], *BY_CONDITION[1:], [], ["", " ", ""]],
        [[row[index] for index in (2, 0, 1)] for row in BY_CONDITION],
        BY_COEFFICIENTS,
        [
            ["Target ", " NAME", *CELLS],
            *([row[1], row[0], *row[2:]] for row in BY_COEFFICIENTS[1:]),
        ],
        [[*row[:2], *row[:1:-1]] for row in BY_COEFFICIENTS],  # the cells in another order
        [
            BY_COEFFICIENTS[0],
            ["adults", "±50", "0", " 0", "1.0", "-0", "0e0", "1 "],
            ["women", "", *"111000"],
        ],
    ],
)
def test_both_kinds_are_read(rows, delimiter):
    for text in (
        written(rows, delimiter),
        "\ufeff" + written(rows, delimiter).replace("\r\n", "\n"),
    ):
        stated = read(text)
        assert stated.queries.names == ("adults", "women")
        assert stated.targets == (Target(50, MARGIN), TWENTY)
        assert stated.queries.coefficients.tolist() == [[0, 0, 1, 0, 0, 1], [1, 1, 1, 0, 0, 0]]


def test_names_and_targets_may_be_left_out():
    stated = read('condition\nage < 10\n"sex in (""F"")"\n')
    assert stated.queries.names == ("age < 10", 'sex in ("F")')
    assert stated.conditions == stated.queries.names
    assert stated.targets == (TWENTY, TWENTY)
    assert read("name,condition\n ,total\n").queries.names == ("total",)


def test_coefficients_may_be_any_decimals():
    row = [0.5, -2, 1e-6, 1e6, 0, 0.123456]
    stated = read(written([["name", *CELLS], ["a", *row]]))
    assert stated.queries.coefficients.tolist() == [row]
    assert stated.conditions == (None,)


def test_cells_may_be_called_like_the_other_columns():
    domain = Domain((Attribute("what", Categories(("target", "name", "condition"))),))
    rows = [["name", "target", "target", "name", "condition"], ["a", "3", 1, 0, 2]]
    assert read(written(rows), domain=domain).queries.coefficients.tolist() == [[1, 0, 2]]
    rows = [["name", "name", "condition", "target"], ["a", 1, 0, 2]]
    assert read(written(rows), domain=domain).queries.coefficients.tolist() == [[2, 1, 0]]


def test_cells_with_one_label_are_told_apart_by_their_order():
    domain = Domain(
        (
            Attribute("x", Categories(("a, b", "a"))),
            Attribute("y", Categories(("c", "b, c"))),
        )
    )
    rows = [["name", "a, b, c", "a, b, b, c", "a, c", "a, b, c"], ["q", 1, 2, 3, 4]]
    assert read(written(rows), domain=domain).queries.coefficients.tolist() == [[1, 2, 3, 4]]
    rows[0][1:3] = rows[0][2:0:-1]
    with pytest.raises(WorkloadError, match="columns as a template has them"):
        read(written(rows), domain=domain)


ONE = [*"100000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "q.csv must have a header with the columns name, condition and target"),
        ("age >= 20\n", "q.csv must have a header .* got a first line of 1 cell with none"),
        ("condition\n", "q.csv has no counts"),
        ("name,condition\nall,\n", "q.csv, line 2: There is no condition; write total"),
        ("name,condition,note\n", "as well; remove it"),
        ("name,condition,Name\n", "q.csv has the column name twice"),
        ("condition\ntotal\n\nage = 5\n", "q.csv, line 4: At character 7 .* cuts through"),
        ('condition\n"\n total"\nage = 5\n', "q.csv, line 4: "),
        ("condition\nage > 29\n", "q.csv, line 2: .* holds for no cell"),
        ("condition,target\ntotal,x\n", "q.csv, line 2: The target must be written like"),
        ("condition,target\ntotal,5 required\n", "q.csv, line 2: .* cannot be required"),
        ("condition\ntotal\ntotal\n", r"q.csv, line 3: .* given before \(q.csv, line 2\)"),
        ("condition\nage in (1, 2)\n", "q.csv, line 2: There are 2 values for 1 column; put"),
        ('condition\n"total\n', "q.csv is no usable CSV"),
        (written([["name", *CELLS[:5]], ["a", *ONE[:5]]]), "6 cells, and 1 have none: 'men, 20"),
        (written([["name", *CELLS, "men 0 to 9"]]), "column 8: There is no .* mean 'men, 0 to 9'"),
        (written([["name", *CELLS, "?"]]), "no cell '[?]'; the cells are 'women, .* 2 more"),
        (written([["name", *CELLS, CELLS[1]]]), "column 8: The cell 'women, 10 .* already"),
        (written([["target", *CELLS]]), "must have a header"),
        (written([["name", *CELLS], ["a", *ONE], ["b", *"10x000"]]),
         "q.csv, line 3: The coefficient of cell 'women, 20 to 29' must be a number .* got 'x'"),
        (written([["name", *CELLS], ["a", *"10000", ""]]), "line 2: .* got ''; write 0 where"),
        (written([["name", *CELLS], ["a", *"10000", "1_0"]]), "line 2: .* got '1_0'"),
        (written([["name", *CELLS], ["a", *"10000", "0,5"]], ";"), "line 2: .* got '0,5'"),
        (written([["name", *CELLS], ["a", *"10000", "nan"]]), "line 2: .* got 'nan'"),
        (written([["name", *CELLS], ["a", *"000000"]]), "q.csv, line 2: The count 'a' counts no"),
        (written([["name", *CELLS], ["a", *"10000", "1e-7"]]), "line 2: .* at most 6 decimals"),
        (written([["name", *CELLS], ["a", *"10000", "1e7"]]), "line 2: .* within ±1,000,000"),
        (written([["name", *CELLS], ["", *ONE]]), "q.csv, line 2: The name .* not empty"),
        (written([["name", *CELLS], ["a", *ONE, "1"]]), "line 2: There are 8 values for 7 columns"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_with_its_line(text, message):
    with pytest.raises(WorkloadError, match=message):
        read(text)


def test_every_query_needs_a_target():
    with pytest.raises(WorkloadError, match=r"line 3: The count needs a target"):
        read("condition,target\ntotal,5\nage < 10,\n", default=None)


def test_encodings_are_utf_8_and_by_its_byte_order_mark_utf_16():
    text = "name,condition\ngrößer,total"
    stated = stated_from_csv(DOMAIN, text.encode("utf-16"), "q.csv", TWENTY)
    assert stated.queries.names == ("größer",)
    for content, problem in (
        (text.encode("latin-1"), "is not UTF-8 text"),
        (text.encode("utf-16-le") + b"\x00\xd8", "is no text"),
        (text.encode("utf-32"), "is text in UTF-32"),
    ):
        with pytest.raises(WorkloadError, match=f"{problem}; save it as "):
            stated_from_csv(DOMAIN, content, "q.csv", TWENTY)


@pytest.mark.parametrize(
    "content",
    [
        b"condition\n" + b"a" * 10**6,
        b"," * 10**6,
        b"condition," * 10**5,
        b"name," + b'"women, 0 to 9",' * 10**5,
        b"condition\n" + b"total\n" * 10**5,
        b"condition\n" + b"\n" * 10**6 + b"x",
        b"condition\n" + b"(" * 10**5,
        bytes(10**6),
    ],
)
def test_hostile_files_are_refused_quickly(content):
    with at_most(3), pytest.raises(WorkloadError):
        stated_from_csv(DOMAIN, content, "q.csv", TWENTY)


NUMBERS = st.integers(-3, 3) | st.integers(-(10**6), 10**6).map(lambda units: units / 10**6)


@given(domains(max_attributes=3, max_size=4) | described_domains(), st.booleans(), st.data())
def test_lists_can_be_written_and_read_again(domain, counts, data):
    """Counts of cells as conditions and as coefficients, other queries as coefficients."""
    n_cells = math.prod(domain.sizes.tolist())
    assume(n_cells <= 100)
    number = st.sampled_from([0, 1]) if counts else NUMBERS
    row = st.lists(number, min_size=n_cells, max_size=n_cells).filter(any)
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    names = data.draw(st.lists(words(), min_size=len(rows), max_size=len(rows), unique_by=as_seen))
    queries = QueryList(domain, np.array(rows, dtype=float), names, np.arange(len(rows)) + 0.5)
    stated = StatedQueries.of(queries)
    texts = [csv_of_coefficients(stated)]
    if counts:
        texts.append(csv_of_conditions(stated))
    for text in texts:
        again = stated_from_csv(domain, text.encode(), "q.csv")
        assert again.queries.names == queries.names
        assert again.queries.coefficients.tolist() == queries.coefficients.tolist()
        assert again.targets == stated.targets


def test_conditions_and_targets_are_written_as_they_were_typed():
    text = "name,condition,target\r\nold,  age≥20 ,± 50 (90%)\r\n"
    assert csv_of_conditions(read(text)) == "name,condition,target\r\nold,age≥20,±50 at 90 %\r\n"
    assert csv_of_coefficients(read(text)).splitlines()[1] == "old,±50 at 90 %,0,0,1,0,0,1"


def test_queries_without_a_condition_are_named():
    stated = StatedQueries.of(
        QueryList(
            DOMAIN, np.array([[1, 1, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]]), ("a", "b"), np.ones(2)
        )
    )
    with pytest.raises(WorkloadError, match="'b' cannot be written as a condition; save the coeff"):
        csv_of_conditions(stated)


def test_a_template_is_usable_as_it_is():
    text = csv_template(DOMAIN)
    assert text.splitlines()[0] == ",".join(["name", "target", *(f'"{cell}"' for cell in CELLS)])
    stated = read(text)
    wanted = stated_from_text(
        DOMAIN,
        'total\nsex women: sex = "F"\nsex men: sex = "M"\nage 0 to 9: age < 10\n'
        "age 10 to 19: 10 <= age < 20\nage 20 to 29: age >= 20",
        Target(10),
    )
    assert stated.queries.names == wanted.queries.names
    assert stated.queries.coefficients.tolist() == wanted.queries.coefficients.tolist()
    assert stated.targets == wanted.targets
    with pytest.raises(WorkloadError, match="at most 1,024 cells"):
        csv_template(Domain.from_sizes({"a": 33, "b": 32}))
