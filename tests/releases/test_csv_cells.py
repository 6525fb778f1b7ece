"""CSV of cells: every number against the decimal it is, every text against Python's csv."""

import csv
import io
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore.releases import table_cells
from rpexplore.releases.table_cells import CsvWriter, csv_decimals

NUMBERS = st.floats(-1e5, 1e5) | st.integers(-(10**9), 10**9).map(lambda k: k / 10**4)


def column_of(texts: list[str]) -> pa.DictionaryArray:
    return pa.array(texts, pa.string()).dictionary_encode()


def written(columns: dict[str, pa.Array], decimals: int, *, escape_formulas=False) -> str:
    table, file = pa.table(columns), io.BytesIO()
    CsvWriter(file, table.column_names, decimals, escape_formulas=escape_formulas).write(table)
    return file.getvalue().decode()


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=40), st.integers(0, 9))
def test_numbers_are_rounded_to_the_decimals(numbers, decimals):
    header, *rows = rows_of(written({"value": pa.array(np.array(numbers))}, decimals))
    assert header == ["value"]
    if all(number == int(number) for number in numbers):
        decimals = 0
    pattern = rf"-?(0|[1-9]\d*)\.\d{{{decimals}}}" if decimals else r"-?(0|[1-9]\d*)"
    unit = Decimal(1).scaleb(-decimals)
    for number, (text,) in zip(numbers, rows, strict=True):
        assert re.fullmatch(pattern, text)
        # Half a unit, and what x · 10^d of up to 15 digits is rounded by.
        assert abs(Decimal(text) - Decimal(number)) <= unit * Decimal("0.501")
        assert not (text.startswith("-") and Decimal(text) == 0)


def test_every_number_of_digits_is_written():
    """All lengths of whole part and decimals, in one column and so beside each other."""
    numbers = [sign * int("123456789012"[:n]) for n in range(1, 13) for sign in (1, -1)]
    numbers += [0, 10**4, 10**8, 10**4 - 1, 10**8 - 1, 10**8 + 7, 20_000, 12_000_034]
    for decimals in range(1, 7):
        values = [Decimal(number).scaleb(-decimals) for number in numbers]
        text = written({"value": pa.array(np.array([float(v) for v in values]))}, decimals)
        assert text.split("\n")[1:-1] == [format(v, "f") for v in values]


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=["Cs"])),
)
@pytest.mark.parametrize("most", [table_cells._MOST_TEXTS, 0])
def test_texts_and_names_come_back_and_are_quoted(most, texts, name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_cells, "_MOST_TEXTS", most)
        text = written({name: column_of(texts), "n": pa.array([0.5] * len(texts))}, 1)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([[name, "n"], *([label, 0.5] for label in texts)])
    assert text == buffer.getvalue()


def test_formulas_are_escaped_if_wanted():
    columns = {"=a": column_of(["-x", "y", "+z"]), "n": pa.array([-1.5, 0.0, 2.25])}
    assert written(columns, 2) == '"=a","n"\n"-x",-1.50\n"y",0.00\n"+z",2.25\n'
    escaped = '"\'=a","n"\n"\'-x",-1.50\n"y",0.00\n"\'+z",2.25\n'
    assert written(columns, 2, escape_formulas=True) == escaped


def test_empty_whole_and_enormous_columns():
    columns = {
        "none": pa.array([None, None], pa.float64()),
        "some": pa.array([1.25, None]),
        "whole": pa.array([3.0, -1e15]),
        "huge": pa.array([1e30, 0.5]),
    }
    _, *rows = rows_of(written(columns, 3))
    assert [row[:3] for row in rows] == [["", "1.250", "3"], ["", "", "-1000000000000000"]]
    assert [float(row[3]) for row in rows] == [1e30, 0.5]


def test_rows_of_several_pieces_are_one_after_another():
    n = 3 * table_cells._ROWS + 7
    numbers = np.random.default_rng(1).normal(0, 1000, n)
    codes = np.arange(n) % 7
    texts = pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(list("abcdefg")))
    text = written({"t": texts, "v": pa.array(numbers)}, 4)
    expected = [f'"{"abcdefg"[c]}",{v:.4f}' for c, v in zip(codes, numbers, strict=True)]
    assert text.split("\n")[1:-1] == expected


@given(st.floats(1e-9, 1e12), st.floats(0, 1e15))
def test_a_unit_of_the_last_decimal_is_a_millionth_of_the_smallest_error(error, largest):
    decimals = csv_decimals(error, largest)
    assert decimals == 0 or len(str(int(largest))) + decimals <= 15
    if len(str(int(largest))) + decimals < 15:
        assert 10.0**-decimals <= error * 1e-6 * (1 + 1e-12) or decimals == 0 <= error - 1e6
    assert decimals == 0 or 10.0 ** (1 - decimals) > error * 1e-6 * (1 - 1e-12)
