"""CSV texts: read row by row, and written, formulas escaped where that is wanted.

Lines that are written end as RFC 4180 says: a text that holds either line end is then quoted.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    import pandas as pd

FORMULAS_ESCAPED = (
    "In CSV files an apostrophe stands before texts that a spreadsheet would take for formulas."
)
FORMULA_SIGNS = "=+-@\t\r"
"""What a text begins with that spreadsheets take for a formula."""


def csv_rows(
    text: str, source: str, error: type[RpexploreError], delimiter: str | None = ","
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text, each with the number of its last line; `error` for an open quote.

    Empty lines behind the first one are left out. delimiter: None is the semicolon where the first
    line has one and no comma, and else the comma.
    """
    if delimiter is None:
        header = text.partition("\n")[0]
        delimiter = ";" if ";" in header and "," not in header else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row or reader.line_num == 1:
                yield reader.line_num, row
    except csv.Error as problem:
        raise error(
            f"{source} is no usable CSV (line {reader.line_num}: {problem}); check that every "
            "quote is closed."
        ) from None


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def csv_of_frame(frame: "pd.DataFrame", *, escape_formulas: bool = False) -> str:
    """The columns of a frame as CSV, without its index."""
    if escape_formulas:
        frame = frame.rename(columns=without_formula).map(without_formula)
    return frame.to_csv(index=False, lineterminator="\r\n")


def begins_formula(text: str) -> bool:
    """Whether a spreadsheet that opens the text in a CSV file would take it for a formula."""
    return text.startswith(tuple(FORMULA_SIGNS))


def without_formula(cell: Any) -> Any:
    """A text with an apostrophe before what would be a formula; any other cell as it is."""
    return f"'{cell}" if isinstance(cell, str) and begins_formula(cell) else cell
