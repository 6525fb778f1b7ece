"""Tables as people write them, in a field and in CSV files."""

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.table_text import (
    readable_title,
    split_at_table,
    table_from_text,
    tables_from_text,
    texts_of_tables,
    title,
    workload_from_csv,
)
from tests.support.processor_time import at_most

NAMES = ("age", "sex", "region", "hours, usual", 'so "called"', "a×b", " padded ", "x;y")
DOMAIN = Domain.from_sizes(dict.fromkeys(NAMES, 2))
ZERO_TO_3 = {"minimum": 0, "maximum": 3}


@pytest.mark.parametrize(
    ("text", "table"),
    [
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


def test_a_name_and_its_level_are_quoted_together_or_each_by_itself():
    fields = [
        {"name": name, "type": "integer", "constraints": ZERO_TO_3, "levels": {level: 2}}
        for name, level in (("name, x", "groups"), ("age", "a, b"), ("p @ q", "z"))
    ]
    domain = Domain.from_schema({"fields": fields}).with_levels
    table = ("name, x@groups", "age@a, b")
    for name in (
        '"name, x"@groups',
        '"name, x"@"groups"',
        '"name, x" @groups ',
        '"name, x@groups"',
    ):
        for other in ('age@"a, b"', '"age"@"a, b"', '"age@a, b"'):
            assert table_from_text(domain, f"{name},{other}") == table
    assert table_from_text(domain, "p @ q") == ("p @ q",)
    with pytest.raises(WorkloadError, match="names separated by commas"):
        table_from_text(domain, '"age""a, b"x')


@pytest.mark.parametrize("text", ["", "  "])
def test_no_text_is_not_the_total(text):
    with pytest.raises(WorkloadError, match="write total for the table without attributes"):
        table_from_text(DOMAIN, text)


def test_an_attribute_that_is_named_total_wins():
    domain = Domain.from_sizes({"total": 2, "age": 3})
    assert table_from_text(domain, "total") == ("total",)
    assert table_from_text(domain, "(total)") == ()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["age"], "total"),
        (["total"], "(total)"),
        (["(total)"], "total"),
        (["total", "(total)"], "((total))"),
    ],
)
def test_the_total_has_a_word_that_is_no_attribute(names, text):
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    assert [*texts_of_tables(domain, [()])] == [text]
    assert table_from_text(domain, text) == ()
    assert tables_from_text(domain, text) == ((),)


@pytest.mark.parametrize("text", ["(total", "total)", "((total)", "(age)"])
def test_brackets_are_closed(text):
    with pytest.raises(DomainError):
        table_from_text(DOMAIN, text)


ODD = [
    "total",
    "(total)",
    "a,b",
    '"a,b"',
    "a",
    "b",
    "a×b",
    "a × b",
    "x\u2028y",
    "x\x85",
    " a",
    "a;b",
]


@given(st.lists(st.sampled_from(ODD), unique=True, min_size=1, max_size=6), st.data())
def test_lists_of_odd_names_can_be_written_and_read_again(names, data):
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    table = st.lists(st.sampled_from(names), unique=True).map(
        lambda chosen: tuple(name for name in names if name in chosen)
    )
    tables = tuple(data.draw(st.lists(table, unique=True, min_size=1)))
    assert tables_from_text(domain, "\n".join(texts_of_tables(domain, tables))) == tables
    titles = [readable_title(domain, each) for each in tables]
    assert [table_from_text(domain, text) for text in titles] == list(tables)


def test_what_is_said_of_a_table_may_hold_an_equals_sign():
    domain = Domain.from_sizes({"age": 2, "a": 2, "a=b": 2})
    assert split_at_table(domain, "age=σ = 20") == ("age", "σ = 20")
    assert split_at_table(domain, "a=b=5") == ("a=b", "5")
    assert split_at_table(domain, "height=σ=5") == ("height=σ", "5")
    assert split_at_table(domain, "a=b=" + "=" * 10**6) == ("a=b", "=" * 10**6)


def test_titles():
    assert title(("age", "sex")) == "age × sex"
    assert title(()) == "(total)"
    assert readable_title(DOMAIN, ("age", "sex")) == "age × sex"


# ---- lists of several


def test_lists_are_read_with_commas_crosses_and_empty_lines():
    text = "sex, age\r\n\n region × age \ntotal\n"
    assert tables_from_text(DOMAIN, text) == (("age", "sex"), ("age", "region"), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age\nheight", "Line 2: There is no attribute 'height'"),
        ("age, sex\nsex × age", "Line 2: the table age × sex is already in line 1"),
        ("age, age", "Line 1: The attribute 'age' is named twice"),
        ("  \n", "has no tables"),
    ],
)
def test_unusable_lists_name_the_line(text, message):
    with pytest.raises(WorkloadError, match=message):
        tables_from_text(DOMAIN, text)


@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_every_table_can_be_written_and_read_again(names):
    table = tuple(name for name in NAMES if name in names)
    assert [table_from_text(DOMAIN, text) for text in texts_of_tables(DOMAIN, [table])] == [table]


@pytest.mark.parametrize("text", ["age,", ",age", "age,,sex", "×", '"age', 'age"x"', '""'])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(WorkloadError, match="separated by commas"):
        table_from_text(DOMAIN, text)


@pytest.mark.parametrize(
    ("text", "message"), [("age,height", "'height'"), ("age,sex,age", "named twice")]
)
def test_unknown_and_repeated_attributes_are_named(text, message):
    with pytest.raises(DomainError, match=message):
        table_from_text(DOMAIN, text)


@pytest.mark.parametrize(
    "text",
    [
        'Attributes,weight,target\n"age,sex",5,\ntotal,,12.5\nregion,,\n',
        "attributes;Weight;target\nage × sex;5;\ntotal;;12.5\nregion;;\n",
        "weight,target,attributes,cells\n5,,sex;age,4\n,12.5,total,1\n1,,region,2\n",
    ],
)
def test_csv_tables_have_weights_and_targets(text):
    workload = workload_from_csv(DOMAIN, text, "tables.csv")
    assert workload.tables == [(), ("region",), ("age", "sex")]
    assert workload.weights.tolist() == [1, 1, 5]
    assert workload.targets[0] == 12.5
    assert all(math.isnan(target) for target in workload.targets[1:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header"),
        ("tables\nage\n", "the column attributes"),
        ("attributes,wieght\nage,5\n", "wieght"),
        ("attributes\nage,sex\n", "line 2: there are more values than columns"),
        ("attributes\nage\nheight\n", "line 3: There is no attribute 'height'"),
        ("attributes,weight\nage,much\n", "line 2: The weight must be a number"),
        ("attributes,target\nage,lots\n", "line 2: The target must be written like 20"),
        ("attributes,target\nage,-4\n", "line 2: The target must be a positive number"),
        ("attributes,target,required\nage,5,maybe\n", "line 2: The column required says yes or no"),
        (
            "attributes,target,required\nage,,yes\n",
            "line 2: There is no target that could be required",
        ),
        ("attributes,weight,Weight\nage,1,2\n", "has the column weight twice"),
        ("attributes\nage\nage\n", r"\(age\) is in the workload twice"),
        ("attributes,weight\nage,-1\n", "must be a positive number"),
        ("attributes\n", "at least one table"),
    ],
)
def test_csv_that_cannot_be_used_is_refused(text, message):
    with pytest.raises(WorkloadError, match=message):
        workload_from_csv(DOMAIN, text, "tables.csv")


def test_csv_targets_are_in_any_unit_and_may_be_required():
    text = (
        "attributes,target,required\nage,±50,\nsex,5 % of 1000 required,\nregion,1 000,YES\n"
        '"age,sex","1,000 required",no\n"age,region",,no\n'
    )
    workload = workload_from_csv(DOMAIN, text, "tables.csv")
    assert workload.tables[:3] == [("age",), ("sex",), ("region",)]
    margin = 50 / NormalDist().inv_cdf(0.975)
    assert workload.targets[:4].tolist() == pytest.approx([margin, 50, 1000, 1000])
    assert workload.required.tolist() == [False, True, True, False, False]
    assert math.isnan(workload.targets[4])


@pytest.mark.parametrize(
    "text",
    ["a" + " " * 100_000 + '"', " " * 100_000 + '",', '"' * 100_001],
    ids=["blanks behind", "blanks before", "quotes"],
)
def test_a_long_text_that_is_no_list_is_refused_at_once(text):
    with at_most(2), pytest.raises((DomainError, WorkloadError)):
        table_from_text(Domain.from_sizes({"a": 2}), "a," + text)
