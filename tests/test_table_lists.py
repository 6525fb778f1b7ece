"""Tables as people write them, in a field and in CSV files."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.domain import Domain
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.table_lists import table_from_text, text_from_table, workload_from_csv

NAMES = ("age", "sex", "region", "hours, usual", 'so "called"', "a×b", " padded ", "x;y")
DOMAIN = Domain.from_sizes(dict.fromkeys(NAMES, 2))


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("", ()),
        ("total", ()),
        ("age", ("age",)),
        ("age,sex", ("age", "sex")),
        (" sex ; age ", ("age", "sex")),
        ("region × age × sex", ("age", "sex", "region")),
        ("hours, usual", ("hours, usual",)),
        ('age,"hours, usual"', ("age", "hours, usual")),
        ('"so ""called""" , age', ("age", 'so "called"')),
        ('" padded "', (" padded ",)),
    ],
)
def test_a_text_is_the_table_it_lists(text, table):
    assert table_from_text(DOMAIN, text) == table


def test_an_attribute_that_is_named_total_wins():
    domain = Domain.from_sizes({"total": 2, "age": 3})
    assert table_from_text(domain, "total") == ("total",)
    assert table_from_text(domain, "") == ()


@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_every_table_can_be_written_and_read_again(names):
    assert set(table_from_text(DOMAIN, text_from_table(names))) == set(names)


@pytest.mark.parametrize("text", ["age,", ",age", "age,,sex", "×", '"age', 'age"x"', '""'])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(WorkloadError, match="separated by commas"):
        table_from_text(DOMAIN, text)


@pytest.mark.parametrize(
    ("text", "told"), [("age,height", "'height'"), ("age,sex,age", "named twice")]
)
def test_unknown_and_repeated_attributes_are_named(text, told):
    with pytest.raises(DomainError, match=told):
        table_from_text(DOMAIN, text)


@pytest.mark.parametrize(
    "text",
    [
        'Attributes,weight,target\n"age,sex",5,\ntotal,,12.5\nregion,,\n',
        "attributes;Weight;target\nage × sex;5;\ntotal;;12.5\nregion;;\n",
        "weight,target,attributes,cells\n5,,sex;age,4\n,12.5,,1\n1,,region,2\n",
    ],
)
def test_csv_tables_have_weights_and_targets(text):
    workload = workload_from_csv(DOMAIN, text, "tables.csv")
    assert workload.tables == [(), ("region",), ("age", "sex")]
    assert workload.weights.tolist() == [1, 1, 5]
    assert workload.targets[0] == 12.5
    assert all(math.isnan(target) for target in workload.targets[1:])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no header"),
        ("tables\nage\n", "the column attributes"),
        ("attributes,wieght\nage,5\n", "wieght"),
        ("attributes\nage,sex\n", "line 2: there are more values than columns"),
        ("attributes\nage\nheight\n", "line 3: There is no attribute 'height'"),
        ("attributes,weight\nage,much\n", "line 2: The weight must be a number"),
        ("attributes,target\nage,1 000\n", "line 2: The target must be a number"),
        ("attributes\nage\nage\n", r"\(age\) is in the workload twice"),
        ("attributes,weight\nage,-1\n", "must be a positive number"),
        ("attributes\n", "at least one table"),
    ],
)
def test_csv_that_cannot_be_used_is_refused(text, told):
    with pytest.raises(WorkloadError, match=told):
        workload_from_csv(DOMAIN, text, "tables.csv")
