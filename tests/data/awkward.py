"""Columns of awkward values, and domains that read them: files and engines must agree on all."""

import datetime
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pytest

from rpexplore import Attribute, Bins, Categories, Dates, Domain, Integers
from rpexplore.data.engines.coding import BLANKS

DAY = datetime.date
TEXTS = [
    "a", "A", "a ", " a", "ä", "a\u0308", "", " ", "3", "3.0", " 3", "3 ", "+3", "03", "3e0", ".5",
    "5.", "-0", "0", "-1", "10", "0.1", "0.30000000000000004", "0.3", "1e1", "1E+1", "1e400",
    "-1e400", "1e-400", "1e99999", "1e-99999", "9" * 400, "0." + "0" * 400 + "1", "nan", "NaN",
    "inf", "Infinity", "0x1", "1_0", "1 0", "١", "true", "TRUE", "1", "01", "+1.0",
    "0.50", "03.0", "0.10", "1,0", "9007199254740992", "9007199254740993", "-09007199254740992.0",
    "9007199254740992e0", "'", '"', "\\", "\\x61",
    "%", "a\nb", "2024-01-31", "3d", "3f", "1e", ".", "+",
    *(f"{blank}3{blank}" for blank in BLANKS), None,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 1.0, 3.0, 0.1, 0.3, 0.1 + 0.2, 2.5, -1.0, 9.999999999999998, 10.0, 1e15, 1e16,
    0.7, 2.0**53, 2.0**53 + 2, 1e300, 5e-324, np.nextafter(10, 11), np.inf, -np.inf, np.nan, None,
]  # fmt: skip
WHOLE = [
    0, 1, 3, -1, 10, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**53 + 4, 2**53 + 5, -(2**53),
    -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 5, None,
]  # fmt: skip
CENTS = ["0.00", "3.00", "0.10", "0.30", "-1.00", "10.00", "2.50", "99999999.99", None]
DATES = [
    "2024-01-31", " 2024-02-29 ", "2023-02-29", "2024-1-31", "2024-13-01", "2024-00-01",
    "0000-01-01", "2024-01-00", "2024-04-31", "2024-12-31", "1900-02-29", "2000-02-29",
    "9999-12-31", "0001-01-01", "2024-01-31T13:30", "2024-01-31 23:59:59.999",
    "2024-01-31T24:00", "2024-01-31T00:00:00Z", "2024-01-31 00:00:00+00",
    "2024-01-31T00:00:00+01:00", "2024-01-31T13:30Z", "2024-01-31 00:00:00", "31/01/2024",
    "1/2/2024", "31.01.2024", "2024-01", "2024", "20240131", "2024-01-31x", "", "none", "-9",
    "2023-12-31", "2024-03-15", "2024-03-14", "2025-01-01", None, "2024-Q1", " 2024Q2\u2003",
    "2024-Q3", "2024-q4", "2024-Q5", "2024-W05", "2024W06", "202403", "2024-03", "2025",
]  # fmt: skip
COLUMNS = {
    "text": pa.array(TEXTS, pa.string()),
    "float": pa.array(FLOATS, pa.float64()),
    "single": pa.array(FLOATS, pa.float32()),
    "whole": pa.array(WHOLE, pa.int64()),
    "flag": pa.array([True, False, None]),
    "cents": pa.array(CENTS).cast(pa.decimal128(10, 2)),
    "day": pa.array([DAY(2024, 1, 31), DAY(1969, 12, 31), DAY(2024, 2, 1), None]),
}
MOMENT = datetime.datetime
MOMENTS = [
    MOMENT(2024, 1, 31), MOMENT(2024, 1, 31, 13, 30), MOMENT(2024, 2, 1, 0, 0, 0, 1),
    MOMENT(1, 1, 1), MOMENT(1969, 12, 31, 23, 59, 59, 999999), MOMENT(9999, 12, 31),
    MOMENT(2023, 12, 31), None,
]  # fmt: skip
COLUMNS |= {
    "date": pa.array(DATES, pa.string()),
    "time": pa.array(MOMENTS, pa.timestamp("us")),
    "zoned": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "digits": pa.array([20240131, 20240230, 2024131, 202401310, 2024, 20231231, -9, None]),
}
N_ROWS = max(map(len, COLUMNS.values()))


def listed_texts() -> tuple[str, ...]:
    """All texts that can be categories, and more than are compared one after the other."""
    filled = [text for text in TEXTS if text and text.strip()]
    forms = Counter(normalize("NFC", text) for text in filled)
    # Engines know the two forms of letters, but not those of blanks.
    written = [text for text in filled if text == "ä" or forms[normalize("NFC", text)] == 1]
    more = ["2.5", "0.25", "1e+16", "1e+300", "5e-324", "3.00", "0.10", "1.0"]
    return tuple(dict.fromkeys([*written, *more, "false", "rest"]))


_REST = (("rest", "rest"),)
VALUES = {
    "listed": Categories(listed_texts()),
    "whole": Categories(("3.0", "0", "-1", "ä", "rest")),
    "few": Categories(("3", "a", "0.1", "0.3", "2.5", "nan", "inf", "true", "2024-01-31", "rest")),
    "padded": Categories(("03", "0.0", "-01", "+10", "rest")),
    "wider": Categories(("03", "00", "10", "rest")),
    "yes": Categories(("TRUE", "false", "rest")),
    "spelled": Categories(("ä", "3", "rest"), spellings=(("a", "A"), ("true", "10"), ())),
    "numbers": Categories(("3", ".30", "-1.0", "0.1", "2.5", "10", "rest"), are_numbers=True),
    "steps": Integers(-1, 10, 3, (("0", "refused"), ("true", "odd"), ("a", "odd"), *_REST)),
    "wide": Integers(-(2**53), 2**53, 2**50, (("", "nothing"), *_REST)),
    "bins": Bins(
        (-1, 0, 0.1, 0.3, 0.30000000000000004, 2.5, 10, 1e16),
        (("0.1", "a tenth"), ("-3e300", "far"), ("3", "three"), ("ä", "letter"), *_REST),
    ),
    "tiny": Bins((0, 5e-324, 1), (("NaN", "no number"), ("1e300", "large"), *_REST)),
    "edges": Bins(
        (-1, 0, 5e-324, 0.1, 0.3, 0.7, 2.5, 10, 1e16, 1e300),
        (("0.7", "no answer"), ("1e300", "huge"), *_REST),
    ),
    "large": Bins(
        (-(2.0**63), -(2.0**53), 0.5, 2.0**53, 2.0**53 + 4, 1e18, 2.0**63),
        (("3", "three"), *_REST),
    ),
    "days": Dates("2023-12-31", "2025-01-01", missing=(("2024-02-01", "no day"), *_REST)),
    "weeks": Dates("2023-12-30", "2024-12-30", "2 weeks", missing=(("", "empty"), *_REST)),
    "months": Dates("2024-01-15", "2024-12-31", "month", missing=(("9999-12-31", "open"), *_REST)),
    "years": Dates("0001", "9999", "7 years", missing=(("-9", "none"), ("none", "none"), *_REST)),
    "own": Dates(edges=("2024-01-31", "2024-02-29", "2024-03-15", "2024-12-31"), missing=_REST),
    "form": Dates("2024", "2024", "quarter", format="%d/%m/%Y", missing=_REST),
    "joined": Dates("2023", "2024", "10 days", format="%Y%m%d", missing=(("-9", "x"), *_REST)),
    "short": Dates("2023", "2024", "year", format="%Y-%m", missing=_REST),
    "year": Dates("2023", "2024", "year", format="%Y", missing=_REST),
    "quarters": Dates("2024-01-15", "2024-12-31", "quarter", missing=_REST),
    "periods": Dates("2020", "2029", "2 years", missing=(("2025", "no year"), *_REST)),
    "numbers or days": Integers(
        0, 10, missing=(("2024-01-31", "a day"), ("2024-01-31 13:30:00", "a time"), *_REST)
    ),
    "beyond": Integers(
        0, 10, missing=(("9007199254740992", "none"), ("-9007199254740993", "less"), *_REST)
    ),
    "exact": Bins((-(2.0**53), 0, 2.0**53), (("-1", "none"), *_REST)),
}
_OF_DAYS = (
    "days",
    "weeks",
    "months",
    "years",
    "own",
    "form",
    "short",
    "year",
    "quarters",
    "periods",
)
_OTHERS = tuple(
    name for name in VALUES if name not in (*_OF_DAYS, "joined", "numbers or days", "beyond")
)
WAYS = {
    "text": (*_OTHERS, "beyond"),
    "float": _OTHERS,
    "date": (*_OF_DAYS, "few", "joined", "numbers or days"),
    "time": (*_OF_DAYS, "few", "numbers or days"),
    "zoned": (*_OF_DAYS, "few"),
    "digits": ("days", "joined", "year", "months", "periods"),
    "single": ("listed", "few", "edges", "numbers"),
    "whole": (
        "few",
        "wide",
        "bins",
        "large",
        "exact",
        "whole",
        "padded",
        "yes",
        "spelled",
        "beyond",
        "numbers",
    ),
    "flag": ("few", "steps", "days", "yes", "spelled"),
    "cents": ("listed", "bins", "numbers", "padded", "wider"),
    "day": ("few", "bins", "numbers or days", *_OF_DAYS),
}


def some_ways() -> dict[str, tuple[str, ...]]:
    """Every way with one column, of those that have it the one with the fewest so far."""
    chosen: dict[str, tuple[str, ...]] = dict.fromkeys(WAYS, ())
    for way in sorted(VALUES, key=lambda way: sum(way in ways for ways in WAYS.values())):
        least = min((name for name in WAYS if way in WAYS[name]), key=lambda n: len(chosen[n]))
        chosen[least] += (way,)
    return chosen


SOME = some_ways()
SOME_OR_ALL = [
    pytest.param(SOME, id="some"),
    pytest.param(WAYS, id="all", marks=pytest.mark.nightly),
]
Ways: TypeAlias = Mapping[str, tuple[str, ...]]


def table(ways: Ways = SOME) -> pa.Table:
    """All columns, each once for each way to read it, and the number of the row."""
    columns: dict[str, pa.Array] = {"row": pa.array(range(N_ROWS), pa.int64())}
    for name, column in COLUMNS.items():
        filled = pa.concat_arrays([column, pa.nulls(N_ROWS - len(column), column.type)])
        columns |= {f"{name} {way}": filled for way in ways[name]}
    return pa.table(columns)


def domain(ways: Ways = SOME) -> Domain:
    attributes = [Attribute("row", Integers(0, N_ROWS - 1))]
    for name in COLUMNS:
        attributes += [Attribute(f"{name} {way}", VALUES[way]) for way in ways[name]]
    return Domain(tuple(attributes))


def tables(ways: Ways = SOME) -> list[tuple[int, int]]:
    return [(0, index) for index in range(1, len(domain(ways)))]


def takers(ways: Ways = SOME) -> dict[str, dict[str, str]]:
    """The last value of every attribute but the first takes what is unknown, another what is
    missing."""
    attributes = domain(ways).attributes[1:]
    return {
        "unknown_values": {a.name: a.stored_values()[-1] for a in attributes},
        "missing_values": {
            a.name: a.stored_values()[0 if isinstance(a.values, Categories) else a.n_ordered]
            for a in attributes
        },
    }
