"""Attributes of dates: steps and edges, labels, what codebooks say of them, texts of records."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Dates, Domain, Prefix
from rpexplore.data.coding import ordinal_of
from rpexplore.domain.dates import UNITS
from rpexplore.domain.domain import difference_of_cells
from rpexplore.domain.values import selected_values
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.conditions import tokens_of
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.value_comparisons import values_where

FIRST, LAST = "2026-01-01", "2026-12-31"


def labels(values: Dates) -> list[str]:
    return [values.label(index) for index in range(values.size)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (Dates("2026-01-30", "2026-02-01"), ["2026-01-30", "2026-01-31", "2026-02-01"]),
        (
            Dates("2026-01-01", "2026-01-09", "4 days"),
            ["2026-01-01 to 2026-01-04", "2026-01-05 to 2026-01-08", "2026-01-09"],
        ),
        # The first of January 2026 is a Thursday.
        (
            Dates(FIRST, "2026-01-18", "week"),
            ["2026-01-01 to 2026-01-04", "2026-W02", "2026-W03"],
        ),
        (Dates("2026", "2026", "quarter"), ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]),
        # A month that is there in part is named by its days.
        (
            Dates("2026-01-15", "2026-03-30", "month"),
            ["2026-01-15 to 2026-01-31", "2026-02", "2026-03-01 to 2026-03-30"],
        ),
        (Dates("1999-12", "2000-03", "2 months"), ["1999-12 to 2000-01", "2000-02 to 2000-03"]),
        (Dates("2001", "2012", "5 years"), ["2001 to 2005", "2006 to 2010", "2011 to 2012"]),
        (
            Dates(edges=(FIRST, "2026-01-02", LAST), missing=(("", "not stated"),)),
            ["2026-01-01", "2026-01-02 to 2026-12-31", "not stated"],
        ),
    ],
)
def test_groups_are_named_by_whole_units_or_by_days(values, expected):
    assert labels(values) == expected
    attribute = Attribute("day", values)
    for index, label in enumerate(expected):
        assert selected_values(attribute, label) == (index,)


@given(
    st.dates(),
    st.integers(0, 3000),
    st.sampled_from(UNITS),
    st.integers(1, 40),
)
def test_every_day_is_in_one_group_and_labels_are_distinct(first, days, unit, count):
    last = date.fromordinal(min(first.toordinal() + days, date.max.toordinal()))
    values = Dates(first, last, f"{count} {unit}s")
    starts = [*values.starts, last.toordinal() + 1]
    assert len(values.starts) == values.n_ordered
    assert starts[0] == first.toordinal()
    assert np.all(np.diff(starts) > 0)
    for left, right in pairwise(starts[1:-1]):
        inner = date.fromordinal(left), date.fromordinal(right)
        months = {"month": 1, "quarter": 3, "year": 12}.get(unit, 0) * count
        if months:
            assert [day.day for day in inner] == [1, 1]
            assert (inner[1].year - inner[0].year) * 12 + inner[1].month - inner[0].month == months
        else:
            assert inner[1] - inner[0] == timedelta(count * {"day": 1, "week": 7}[unit])
    named = labels(values)
    size = min(values.size, 30)
    named += [values.range_label(0, index) for index in range(1, size)]
    named += [values.up_to_label(index) for index in range(size)]
    assert len(set(named)) == len(named)


@given(st.dates())
def test_days_have_the_numbers_of_the_calendar(day):
    assert ordinal_of(day.year, day.month, day.day) == day.toordinal()


def field(**more):
    return {"name": "day", "type": "date", **more}


def of(**more) -> Dates:
    values = Domain.from_schema({"fields": [field(**more)]})["day"].values
    assert isinstance(values, Dates)
    return values


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"constraints": {"minimum": FIRST, "maximum": LAST}}, Dates(FIRST, LAST, "day")),
        (
            {"constraints": {"minimum": "2026", "maximum": "2027", "step": "month"}},
            Dates(FIRST, "2027-12-31", "month"),
        ),
        (
            {"constraints": {"exclusiveMinimum": FIRST, "exclusiveMaximum": LAST}, "step": "week"},
            Dates("2026-01-02", "2026-12-30", "week"),
        ),
        ({"bins": [FIRST, "2026-07-01", LAST]}, Dates(edges=(FIRST, "2026-07-01", LAST))),
        (
            {"type": "yearmonth", "constraints": {"minimum": "2026-01", "maximum": "2026-12"}},
            Dates("2026", "2026", "month", format="%Y-%m"),
        ),
        (
            {
                "type": "datetime",
                "constraints": {
                    "minimum": "2026-01-01T00:00:00Z",
                    "exclusiveMaximum": "2027-01-01T00:00:00",
                },
            },
            Dates(FIRST, LAST),
        ),
        (
            {
                "format": "%d.%m.%Y",
                "constraints": {"minimum": FIRST, "maximum": LAST},
                "missingValues": [{"value": "01.01.1900", "label": "unknown"}, ""],
            },
            Dates(
                FIRST,
                LAST,
                format="%d.%m.%Y",
                missing=(("01.01.1900", "unknown"), ("", "not stated")),
            ),
        ),
    ],
)
def test_what_a_codebook_says_of_dates_is_read_and_written(stated, expected):
    domain = Domain.from_schema({"fields": [field(**stated)]})
    assert domain["day"].values == expected
    assert Domain.from_schema(domain.to_schema()) == domain


@pytest.mark.parametrize(
    ("stated", "match"),
    [
        ({"constraints": {"minimum": FIRST}}, "its days are not known"),
        ({"constraints": {"minimum": FIRST, "maximum": "2026-02-30"}}, "A day must be written as"),
        ({"constraints": {"minimum": LAST, "maximum": FIRST}}, "must not be before the first"),
        ({"constraints": {"minimum": 2026, "maximum": LAST}}, "A day must be written as"),
        (
            {"constraints": {"minimum": f"{FIRST}T12:00:00", "maximum": LAST}},
            "where a day begins or ends",
        ),
        (
            {"constraints": {"minimum": FIRST, "maximum": LAST, "step": "fortnight"}},
            "step of dates must be day, week, month",
        ),
        ({"constraints": {"minimum": FIRST, "maximum": LAST, "step": 5}}, "step of dates must be"),
        ({"bins": [FIRST]}, "at least two edges"),
        ({"bins": [LAST, FIRST]}, "Edges must increase"),
        ({"bins": [0, 1]}, "A day must be written as"),
        ({"bins": [FIRST, LAST], "step": "day"}, "bins and a step"),
        (
            {"bins": [FIRST, LAST], "constraints": {"maximum": "2026-06-30"}},
            "reach beyond its maximum",
        ),
        ({"bins": [FIRST, LAST], "format": "any"}, 'its format "any" leaves open'),
        ({"bins": [FIRST, LAST], "format": "%d/%m/%y"}, "cannot be read because of '%y'"),
        ({"bins": [FIRST, LAST], "format": "%d %B %Y"}, "cannot be read because of '%B'"),
        ({"bins": [FIRST, LAST], "format": "%d/%Y"}, "must say a day"),
        ({"bins": [FIRST, "2026-02-15", LAST], "format": "%Y-%m"}, "in more than one group"),
        (
            {"bins": [FIRST, LAST], "missingValues": [{"value": "x", "label": "2026-01"}]},
            "must tell it from the dates",
        ),
        (
            {"bins": [FIRST, LAST], "missingValues": ["1900-01-01", "1900-01-01T00:00:00"]},
            "is listed twice",
        ),
    ],
)
def test_what_cannot_be_dates_is_refused(stated, match):
    with pytest.raises(DomainError, match=match):
        of(**stated)


def test_days_may_be_those_of_python():
    assert Dates(date(2026, 1, 1), datetime(2026, 12, 31)) == Dates(FIRST, LAST)  # noqa: DTZ001
    with pytest.raises(DomainError, match="A day must be written"):
        Dates(datetime(2026, 1, 1, 12), LAST)  # noqa: DTZ001


# --- selections, conditions, cumulative sums

DAY = Attribute("day", Dates("2026-01-15", "2026-12-31", "month", missing=(("", "open"),)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03", [2]),
        ("2026-Q2", [3, 4, 5]),
        ("2026-03-01..2026-04-30", [2, 3]),
        ("..2026-02", [0, 1]),
        ("2026-12..", [11]),
        ("open,2026-12", [11, 12]),
    ],
)
def test_selections_name_days_and_months(text, expected):
    assert list(selected_values(DAY, text)) == expected


@pytest.mark.parametrize("text", ["2026-03-02", "2026-03-02..2026-04-30", "2025", "2026", "x"])
def test_selections_that_cut_through_a_group_are_refused(text):
    with pytest.raises(DomainError, match="must be named by"):
        selected_values(DAY, text)


@pytest.mark.parametrize(
    ("operator", "text", "expected"),
    [
        ("==", "2026-03", [2]),
        ("==", "2026-Q2", [3, 4, 5]),
        ("!=", "2026-Q2", [0, 1, 2, *range(6, 13)]),
        ("<", "2026-03-01", [0, 1]),
        ("<", "2026-03", [0, 1]),
        ("<=", "2026-03", [0, 1, 2]),
        (">", "2026-11-30", [11]),
        (">=", "2026-11", [10, 11]),
        (">", "2026-11", [11]),
    ],
)
def test_days_compare_in_their_order_and_missing_ones_never(operator, text, expected):
    assert np.flatnonzero(values_where(DAY, operator, text)).tolist() == expected


def test_comparisons_that_cut_through_a_month_are_refused_with_those_that_do_not():
    with pytest.raises(WorkloadError, match=r'cuts .*write < "2026-03-01" or <= "2026-03-3'):
        values_where(DAY, "<", "2026-03-15")
    with pytest.raises(WorkloadError, match="with a day in quotation marks"):
        values_where(DAY, "<", "soon")
    with pytest.raises(WorkloadError, match="begin with 0"):
        tokens_of("day > 2026-03-01")


def test_cumulative_sums_end_before_the_missing_ones():
    rows = [query_matrix(Prefix(), DAY).label(row) for row in (0, 1, 11, 12)]
    assert rows == ["≤ 2026-01", "≤ 2026-02", "≤ 2026-12", "open"]


def test_cells_of_the_same_days_count_the_same():
    def domain(values):
        return Domain((Attribute("day", values),))

    months = Dates(FIRST, "2026-02-28", "month")
    for same in (
        replace(months, format="%d/%m/%Y"),
        Dates(edges=(FIRST, "2026-02-01", "2026-02-28")),
    ):
        assert difference_of_cells(domain(months), domain(same)) == ""
    for other in (replace(months, last="2026-02-27"), replace(months, step="day")):
        assert "different values of 'day'" in difference_of_cells(domain(months), domain(other))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (Dates("2026", "2026", "quarter"), {"2026-Q1": 0, "2026Q4": 3, "2026-01": None}),
        # The first week of 2026 begins in 2025, and is cut off.
        (
            Dates("2026-01-01", "2026-01-18", "week"),
            {"2026-W03": 2, "2026W02": 1, "2026-W01": None},
        ),
        (Dates("2026-01-15", "2026-03-31", "month"), {"2026-01": None, "2026-02": 1, "202603": 2}),
        (Dates("2001", "2012", "5 years"), {"2001": 0, "2012": 2, "2013": None}),
        (Dates("2026", "2026", "month", format="%Y/%m"), {"2026-01": None}),
        (Dates("0001", "9999", "year"), {"2026": None}),  # more than statements compare with
        (Dates("2026", "2026", "day"), {"2026": None}),
    ],
)
def test_whole_periods_are_written_as_they_are_called(values, expected):
    assert {text: values.written_periods.get(text) for text in expected} == expected
