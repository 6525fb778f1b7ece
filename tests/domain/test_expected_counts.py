"""Expected counts: what they refuse, files, and how they follow a schema."""

import csv
import io
import itertools
import json
import math

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.expected_counts import MAX_CELLS, ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.errors import WorkloadError
from rpexplore.releases.table_cells import label_columns, table_of_cells
from tests.support.strategies import described_domains

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 29, 10)),
        rp.Attribute("sex", rp.Categories(("1", "2"), ("Female", "Male"))),
        rp.Attribute("region", rp.Categories(("N", "S"))),
        rp.Attribute("count", rp.Categories(("few", "many"))),
    )
)
CSV = "sex,age,count\n" + "".join(
    f"{sex},{age},{10 * i + j}\n"
    for i, sex in enumerate(["Female", "2"])
    for j, age in enumerate(["0 to 9", "10 to 19", "20 to 29"])
)


def read(text, domain=DOMAIN):
    return expected_counts_from_csv(domain, text.encode(), "margin.csv")


def test_a_total():
    expected = ExpectedCounts.of_total(5000)
    assert expected.total == 5000
    assert expected.shape == ()
    assert expected.margin == 5000.0
    assert expected.text == "5,000 in total, spread evenly over the cells of each table"


def test_a_csv_is_read_in_the_order_of_the_codebook():
    expected = read(CSV)
    assert expected.attributes == ("age", "sex")
    assert expected.values == (("0 to 9", "10 to 19", "20 to 29"), ("1", "2"))
    assert expected.margin.tolist() == [[0, 10], [1, 11], [2, 12]]
    assert expected.total == 36
    assert "36 in total, by age × sex as published" in expected.text


@pytest.mark.parametrize(
    "text",
    [
        CSV.replace(",", ";"),
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n") + "\r\n\r\n",
        CSV.replace("sex,age", " sex , age ").replace("2,", " 2 ,"),
        CSV.replace(",count", ",Count"),
        CSV.replace(",count", ",value"),
    ],
)
def test_csv_may_be_written_in_other_ways(text):
    assert read(text) == read(CSV)


def test_counts_may_have_a_decimal_comma():
    expected = read("sex;count\n1;0,5\n2;1\n")
    assert expected.total == 1.5
    assert read('sex,count\n1,"0,5"\n2,1\n') == expected
    with pytest.raises(WorkloadError, match=r"Line 2: .* 1,500 may mean"):
        read("sex;count\n1;1,500\n2;1\n")


def test_a_total_may_be_a_csv():
    assert read("count\n5000\n") == ExpectedCounts.of_total(5000)


def test_the_last_column_called_count_holds_the_counts():
    expected = read("count,count\nmany,3\nfew,4\n")
    assert expected.attributes == ("count",)
    assert expected.counts == (4.0, 3.0)


def test_a_released_table_can_be_read(tmp_path):
    names = ["value", "lower_95"]
    attributes = [DOMAIN["sex"], *(rp.Attribute(n, rp.Categories(("a", "b"))) for n in names)]
    domain = rp.Domain((*DOMAIN.attributes, *attributes[1:]))
    counts = np.arange(8.0).reshape(2, 2, 2)
    released = table_of_cells(
        [label_columns(each) for each in attributes], counts, np.full(counts.shape, 9.0)
    )
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(released, path)
    expected = expected_counts_from_csv(domain, path.read_bytes(), path.name)
    assert expected.attributes == ("sex", "value", "lower_95")
    np.testing.assert_array_equal(expected.margin, counts)


def test_negative_numbers_of_a_release_are_read_as_0_and_counted():
    text = "sex,region,value,standard_error\n1,N,-4,3\n1,S,7,3\n2,N,-0.5,3\n2,S,2,3\n"
    expected = read(text)
    assert expected.margin.tolist() == [[0, 7], [0, 2]]
    assert expected.text.endswith("; 2 negative numbers read as 0")
    backwards = rp.Domain(DOMAIN.attributes[::-1])
    for same in (expected.fitted(backwards), ExpectedCounts.from_json(expected.to_json())):
        assert same.text.endswith("; 2 negative numbers read as 0")
    assert "negative" not in read(CSV).text
    assert "negative" not in read(CSV).to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a column called count, got no header"),
        ("sex,age\n1,2\n", "must be a column called count, got 'sex', 'age'"),
        ("sex,height,count\n", "'height' is no attribute of the codebook"),
        ("sex,sex,count\n", "two columns 'sex'"),
        ("sex,value,value\n1,1,2\n2,3,4\n", "two columns called value"),
        ("sex,count\n3,1\n", "Line 2: 'sex' has no value '3' in the codebook; it has '1', '2'."),
        ("sex,count\n1,1\n1,2\n", "Line 3: sex = Female is there twice"),
        ("sex,count\n1,1\nFemale,2\n", "Line 3: sex = Female is there twice"),
        ("count\n1\n1\n", "Line 3: all records is there twice"),
        ("count\n", "1 row of 1 missing, the first for all records"),
        (
            "sex,region,count\n1,N,5\n2,N,5\n",
            "2 rows of 4 missing, the first for sex = Female, ",
        ),
        ("sex,count\n1,-1\n2,1\n", "Line 2: The count must be 0 to 1e+15, got -1"),
        ("sex,count\n1,-1\n2,1\n", "got -1; write 0 for it"),
        ("sex,value\n1,-1\n2,1\n", "got -1; write 0 for it"),
        ("sex,count\n1,1_5\n2,1\n", "must be a number such as 1250, got '1_5'"),
        ("sex,value,standard_error\n1,-inf,1\n2,1,1\n", "got -inf"),
        ("sex,value,standard_error\n1,-3,1\n2,-1,1\n", "must not all be zero"),
        ("sex,count\n1,nan\n2,1\n", "got nan"),
        ("sex,count\n1,1e16\n2,1\n", "got 1e16"),
        ('sex,count\n1,"1,250"\n2,1\n', "Line 2: The number 1,250 may mean 1250 or 1.250"),
        ("sex,count\n1,\n2,1\n", "must be a number such as 1250, got ''"),
        ("sex,count\n1,1,1\n2,1\n", "Line 2: There are 3 values for 2 columns"),
        ("sex,count\n1,0\n2,0\n", "must not all be zero"),
        ('sex,count\n"1,0\n', "check that every quote is closed"),
    ],
)
def test_a_bad_csv_is_refused_with_one_clear_error(text, message):
    with pytest.raises(WorkloadError) as error:
        read(text)
    assert str(error.value).startswith("margin.csv")
    assert message in str(error.value)


def test_a_csv_in_another_encoding_is_refused():
    with pytest.raises(WorkloadError, match=r"margin\.csv is not UTF-8"):
        expected_counts_from_csv(DOMAIN, "sex,count\nä,1".encode("latin-1"), "margin.csv")


def test_a_margin_of_too_many_cells_is_refused_before_it_is_made():
    domain = rp.Domain.from_sizes({"a": 10**6, "b": 10**6})
    with pytest.raises(WorkloadError, match="about 1 trillion"):
        read("a,b,count\n", domain)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (((), (), ()), "must have 1 count, got 0"),
        ((("a",), (("x", "y"),), (1,)), "by a must have 2 counts, got 1"),
        ((("a", "a"), (("x",), ("y",)), (1,)), "once each"),
        ((("a",), (("x", "x"),), (1, 1)), "once each"),
        ((("a",), (("x", ""),), (1, 1)), "filled texts"),
        (((1,), (("x",),), (1,)), "filled texts"),
        (((), (), (True,)), "must be a number"),
        (((), (), (-1,)), "0 to 1e"),
        (((), (), (math.inf,)), "0 to 1e"),
        (((), (), (0,)), "all be zero"),
        (((), (), (5e-324,)), "5e-324 is a number that cannot be computed with; write 0"),
        ((("a",), (tuple(map(str, range(MAX_CELLS + 1))),), (1,) * (MAX_CELLS + 1)), "at most"),
        ((tuple("abcdefghijklmnopq"), (("x",),) * 17, (1,)), "at most 16 attributes"),
    ],
)
def test_refuses(parts, message):
    with pytest.raises(WorkloadError, match=message):
        ExpectedCounts(*parts)


# ---- following a schema


def test_counts_follow_reordered_and_renamed_attributes():
    expected = read(CSV)
    domain = rp.Domain(
        (
            rp.Attribute("gender", rp.Categories(("2", "1"))),
            DOMAIN["region"],
            DOMAIN["age"],
        )
    )
    moved = expected.fitted(domain, {"sex": "gender"})
    assert moved.attributes == ("gender", "age")
    assert moved.values == (("2", "1"), ("0 to 9", "10 to 19", "20 to 29"))
    assert moved.margin.tolist() == [[10, 11, 12], [0, 1, 2]]


def test_counts_that_fit_stay_as_they_are():
    assert read(CSV).fitted(DOMAIN) == read(CSV)
    assert ExpectedCounts.of_total(3).fitted(DOMAIN) == ExpectedCounts.of_total(3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([rp.Attribute("age", rp.Integers(0, 29, 10))], "no attribute 'sex' any more"),
        ([DOMAIN["age"], rp.Attribute("sex", rp.Categories(("1", "2", "3")))], "'sex' has other"),
        (
            [DOMAIN["sex"], rp.Attribute("age", rp.Integers(0, 29, 5))],
            "'age' has no value '0 to 9' in",
        ),
        (
            [DOMAIN["sex"], rp.Attribute("age", rp.Integers(0, 10**6 - 1))],
            "'age' has no value '0 to 9'",
        ),
    ],
)
def test_counts_say_why_they_do_not_fit(attributes, message):
    with pytest.raises(WorkloadError, match=message):
        read(CSV).fitted(rp.Domain(tuple(attributes)))


@settings(deadline=None, max_examples=50)
@given(st.data(), described_domains())
def test_moving_there_and_back_changes_nothing(data, domain):
    picked = data.draw(st.lists(st.sampled_from(domain.attributes), unique=True, max_size=3))
    shape = [attribute.size for attribute in picked]
    if math.prod(shape) > 10_000:
        return
    counts = np.arange(1.0, math.prod(shape) + 1)
    expected = ExpectedCounts(
        tuple(each.name for each in picked),
        tuple(tuple(each.stored_values()) for each in picked),
        tuple(counts.tolist()),
    )
    in_order = expected.fitted(domain)
    backwards = rp.Domain(domain.attributes[::-1])
    assert in_order.fitted(backwards).fitted(domain) == in_order
    indices = [domain.names.index(name) for name in expected.attributes]
    np.testing.assert_array_equal(
        in_order.margin, np.transpose(expected.margin, np.argsort(indices, kind="stable"))
    )


# ---- files


def test_json_there_and_back():
    for expected in (read(CSV), ExpectedCounts.of_total(0.5)):
        text = json.dumps(expected.to_json())
        assert ExpectedCounts.from_json(json.loads(text)) == expected


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"attributes": "ab", "values": [["x"], ["y"]], "counts": [1]},
        {"attributes": ["a"], "values": ["xy"], "counts": [1, 1]},
        {"attributes": ["a"], "values": [["x"]], "counts": "1"},
        {"attributes": ["a"], "values": [["x"]], "counts": [None]},
        {"attributes": [], "values": [], "counts": ["much"]},
        {"attributes": [], "values": [], "counts": [1], "negative": -1},
        {"attributes": [], "values": [], "counts": [1], "negative": "1"},
        {"attributes": [[]], "values": [["x"]], "counts": [1]},
        {"attributes": ["a"], "values": [[["x"]]], "counts": [1]},
    ],
)
def test_other_json_is_refused(content):
    with pytest.raises(WorkloadError):
        ExpectedCounts.from_json(content)


@settings(deadline=None, max_examples=50)
@given(st.data(), described_domains())
def test_a_written_margin_is_read_again(data, domain):
    """Whatever the names and values are: quotes, commas, line ends, blanks."""
    picked = data.draw(st.lists(st.sampled_from(domain.attributes), unique=True, max_size=2))
    picked = sorted(picked, key=lambda each: domain.indices[each.name])
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*(each.name for each in picked), "count"])
    cells = list(itertools.product(*(each.stored_values() for each in picked)))
    writer.writerows([*cell, index + 1] for index, cell in enumerate(cells))
    expected = expected_counts_from_csv(domain, text.getvalue().encode(), "m.csv")
    assert expected.attributes == tuple(each.name for each in picked)
    np.testing.assert_array_equal(expected.margin.ravel(), np.arange(len(cells)) + 1)
