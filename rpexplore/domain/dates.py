"""Days of the calendar: the steps that group them, their labels, and how texts write them.

A day is a whole number, that of `datetime.date.toordinal`: 1 is 0001-01-01. Files and engines read
texts by the same patterns, so that a text means the same day everywhere.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from rpexplore.common.numbers import shown_value
from rpexplore.errors import DomainError

UNITS = ("day", "week", "month", "quarter", "year")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_MOST = 4_000_000  # of units in a step; the calendar of 9,999 years has fewer days

YEAR_AND_MONTH = "%Y-%m"
"""The format of the Table Schema type yearmonth."""

# ---- Steps: how the days from a first to a last one are grouped.


@dataclass(frozen=True)
class Step:
    """Groups of `count` units of the calendar: 1 month, 5 years."""

    count: int
    unit: str

    @classmethod
    def parse(cls, text: Any) -> "Step":
        """The step that is written "month" or "5 years"; `DomainError` for anything else."""
        units = "|".join(UNITS)
        match = None
        if isinstance(text, str):
            match = re.fullmatch(rf"\s*(?:([0-9]{{1,7}})\s+)?({units})s?\s*", text.lower())
        count = int(match[1] or 1) if match else 0
        if not match or not 1 <= count <= _MOST:
            raise DomainError(
                f"The step of dates must be day, week, month, quarter or year, or some of them, "
                f'such as "5 years", got {shown_value(text)}.'
            )
        return cls(count, match[2])

    def __str__(self) -> str:
        return self.unit if self.count == 1 else f"{self.count} {self.unit}s"

    @property
    def months(self) -> int:
        """How many months a group has; 0 for one of days or weeks."""
        return self.count * _MONTHS.get(self.unit, 0)

    @property
    def width(self) -> int:
        """How many months a group has, or days if it is not of months."""
        return self.months or self.count * _DAYS[self.unit]

    def origin(self, first: date) -> int:
        """The number of the month in which the group of this day begins, or of the day.

        Weeks begin on Monday, quarters and years as in the calendar; groups of several of them are
        counted from the one that holds the first day.
        """
        if self.months:
            month = first.month - 1
            return first.year * 12 + month - month % _MONTHS[self.unit]
        return first.toordinal() - (first.weekday() if self.unit == "week" else 0)

    def number(self, day: date) -> int:
        """The number of the month that a day is in, or of the day, as in `origin`."""
        return day.year * 12 + day.month - 1 if self.months else day.toordinal()


def day_of_month(number: int) -> int:
    """The first day of the month of this number, year · 12 + month − 1; far ones are cut off."""
    year, month = divmod(number, 12)
    return (
        date.max.toordinal() + 1 if year > date.max.year else date(year, month + 1, 1).toordinal()
    )


# ---- Labels: 2026-01-31, 2026-W05, 2026-01, 2026-Q1, 2026, and ranges of them.


def label_of_days(first: int, last: int, unit: str) -> str:
    """The days first … last: by their units if they are whole ones, else by the days."""
    begins, ends = begins_unit(first, unit), begins_unit(last + 1, unit)
    unit = unit if begins and ends else "day"
    low, high = unit_label(first, unit), unit_label(last, unit)
    return low if low == high else f"{low} to {high}"


def label_up_to(last: int, unit: str) -> str:
    """All days up to this one."""
    return f"≤ {unit_label(last, unit if begins_unit(last + 1, unit) else 'day')}"


def begins_unit(day: int, unit: str) -> bool:
    """Whether a day is the first one of a week, a month, a quarter or a year."""
    if unit == "day" or day > date.max.toordinal():
        return True
    at = date.fromordinal(day)
    if unit == "week":
        return at.weekday() == 0
    return at.day == 1 and (at.month - 1) % _MONTHS[unit] == 0


def unit_label(day: int, unit: str) -> str:
    """What the unit is called that a day is in."""
    at = date.fromordinal(day)
    if unit == "week":
        year, week, _ = at.isocalendar()
        return f"{year:04}-W{week:02}"
    text = at.isoformat()
    if unit == "quarter":
        return f"{text[:4]}-Q{(at.month + 2) // 3}"
    return text[: {"day": 10, "month": 7, "year": 4}[unit]]


# ---- Days as codebooks write them.


def stated_day(value: Any, *, is_last: bool = False) -> date:
    """The day that a codebook states: 2026-01-31; of 2026-01, 2026-Q1 and 2026 an end.

    Raises `DomainError` for anything else, and for a time of day.
    """
    if isinstance(value, datetime) and value.time() == time.min and value.tzinfo is None:
        return value.date()
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    text = value.strip() if isinstance(value, str) else ""
    match = re.fullmatch(r"([0-9]{4})(?:-(?:([0-9]{2})(?:-([0-9]{2}))?|Q([1-4])))?", text)
    try:
        if match and match[3]:
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match:
            month = int(match[2] or 3 * int(match[4] or 1) - 2)
            first = date(int(match[1]), month, 1)
            behind = first.year * 12 + month - 1 + (1 if match[2] else 3 if match[4] else 12)
            return date.fromordinal(day_of_month(behind) - 1) if is_last else first
    except ValueError:
        pass
    raise DomainError(f"A day must be written as 2026-01-31, got {shown_value(value)}.")


def stated_limit(value: Any, *, is_lower: bool, is_exclusive: bool) -> date:
    """The first or the last day that a limit of a Table Schema leaves, also one with a time."""
    day = value
    if isinstance(value, str) and (match := re.fullmatch(r"(.{10})[T ](.*)", value.strip())):
        day, at = match.groups()
        is_whole = re.fullmatch(r"00:00(:00([.]0+)?)?Z?", at) and is_lower != is_exclusive
        is_end = re.fullmatch(r"23:59(:59([.]9+)?)?Z?", at) and not is_lower and not is_exclusive
        if not is_whole and not is_end:
            raise DomainError(
                f"A limit must be where a day begins or ends, got {shown_value(value)}; write the "
                "day alone."
            )
    if not is_exclusive:
        return stated_day(day, is_last=not is_lower)
    try:
        if is_lower:
            return stated_day(day, is_last=True) + timedelta(1)
        return stated_day(day) - timedelta(1)
    except OverflowError:
        raise DomainError(f"There is no day beyond {shown_value(value)}.") from None


# ---- Texts of records that write a day.

BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What pyarrow takes for a blank at the end of a text."""

_HOUR, _SIXTY = "([01][0-9]|2[0-3])", "[0-5][0-9]"
# A time falls into its day. With a zone it may be another day elsewhere, unless it is the midnight
# of UTC, by which files write days as times.
_ISO_TIME = (
    f"([T ]({_HOUR}:{_SIXTY}(:{_SIXTY}([.][0-9]+)?)?|00:00(:00([.]0+)?)? ?(Z|[+]00(:?00)?)))?"
)
_DIRECTIVES = {
    "Y": "([0-9]{4})", "m": "([0-9]{1,2})", "d": "([0-9]{1,2})",
    "H": "([01]?[0-9]|2[0-3])", "M": "[0-5]?[0-9]", "S": "[0-5]?[0-9]", "f": "[0-9]{1,9}",
    "%": "%",
}  # fmt: skip
_ALIASES = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y"}


@dataclass(frozen=True)
class Reading:
    """How texts write a day: a regular expression, and which of its groups is which.

    Groups are numbered from 1. A month or a day that is not written is 0: the first one is meant.
    The pattern is for RE2, PostgreSQL, Java and Python alike.
    """

    pattern: str
    year: int
    month: int
    day: int

    def ordinal(self, text: str) -> int | None:
        """The day that a text writes; None if it writes none."""
        if not (match := re.search(self.pattern, text)):
            return None
        numbers = (int(match[group]) if group else 1 for group in (self.year, self.month, self.day))
        try:
            return date(*numbers).toordinal()
        except ValueError:
            return None


@lru_cache(maxsize=64)
def reading_of(form: str) -> Reading:
    """The reading of a format such as "%d/%m/%Y"; of "" for 2026-01-31, maybe with a time.

    Raises `DomainError` for a format that does not say a day, or that cannot be read everywhere.
    """
    if not form:
        pattern = f"^[{BLANKS}]*([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_ISO_TIME}[{BLANKS}]*$"
        return Reading(pattern, 1, 2, 3)
    for alias, meaning in _ALIASES.items():
        form = form.replace(alias, meaning)
    groups: dict[str, int] = {}
    parts, n_groups = [], 0
    pieces = re.findall(r"%.|[^%]+|%$", form, re.DOTALL)
    for number, piece in enumerate(pieces):
        if piece[0] != "%":
            # Each in brackets, but for those that would be something else there.
            parts += [f"\\{sign}" if sign in "^\\[]" else f"[{sign}]" for sign in piece]
            continue
        directive = piece[1:]
        if directive not in _DIRECTIVES or directive in groups:
            raise DomainError(
                f"The format {shown_value(form)} of dates cannot be read because of {piece!r}; "
                "write it with %Y, %m and %d, each once, and %H, %M and %S for a time."
            )
        text = _DIRECTIVES[directive]
        is_next = number + 1 < len(pieces) and re.match(r"%[^%]|[0-9]", pieces[number + 1])
        is_behind = number and re.match(r"%[^%]", pieces[number - 1])
        if is_next or is_behind:  # 2026111 could be two days
            text = text.replace("{1,2}", "{2}").replace("]?", "]")
        if directive != "%":
            groups[directive] = n_groups + 1
        n_groups += text.count("(")
        parts.append(text)
    month, day = groups.get("m", 0), groups.get("d", 0)
    if "Y" not in groups or (day and not month):
        raise DomainError(
            f"The format {shown_value(form)} must say a day, by %Y, %m and %d; leave it out for "
            "2026-01-31."
        )
    pattern = f"^[{BLANKS}]*{''.join(parts)}[{BLANKS}]*$"
    return Reading(pattern, groups["Y"], month, day)
