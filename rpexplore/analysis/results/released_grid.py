"""The grid of released cells: counts as texts, one attribute down and maybe a second across.

Unbiased and smooth counts have their margin beside them. Of other processed counts no error is
known: the margin is that of the unbiased ones, and stands apart, in a column or a sentence.
"""

import numpy as np
import pandas as pd

from rpexplore.analysis.results.released_cells import ReleasedCells
from rpexplore.common.formatting import rounded
from rpexplore.planning.accuracy_frame import Z_95

MARGIN = "unbiased ±"  # the column of margins


def released_grid(cells: ReleasedCells, cv_limit: float | None = None) -> pd.DataFrame:
    """Counts and margins as texts, "2,481 ±54", the first axis down and the second across.

    Where a smooth count less its margin is below 0, the interval from 0 on: "3 [0–18]".

    The first column is the labels, and the codes before them where there are some; heads of
    columns have both. The last one is the margin of a row's unbiased counts, where counts have no
    margin of their own and rows differ.
    With a limit of coefficients of variation, those that are not publishable are in
    parentheses; cells without a value are empty. For one or two axes.
    """
    texts = _texts(cells)
    if cv_limit is not None:
        publishable = cells.publishable(cv_limit).ravel().tolist()
        texts = [
            text if plain or not text else f"({text})"
            for text, plain in zip(texts, publishable, strict=True)
        ]
    down, *across = cells.axes
    columns = across[0].headings if across else ("count",)
    table = np.array(texts, dtype=object).reshape(len(down.labels), -1)
    frame = pd.DataFrame(table, columns=list(columns))
    names = [f"{down.name} label", down.name] if down.codes else [down.name]
    for name, column in zip(names, (down.labels, down.codes), strict=False):
        frame.insert(0, name, list(column), allow_duplicates=True)
    margins = _row_margins(cells)
    if margins is not None:
        frame.insert(frame.shape[1], MARGIN, margins, allow_duplicates=True)
    return frame


def describe_margins(cells: ReleasedCells, *, are_known: bool) -> str:
    """The meaning of the margins in a grid; are_known: whether those of smooth counts are."""
    if cells.is_smooth:
        return (
            "± is 1.96 times the model-based error, which nothing guarantees; in brackets the "
            "interval, where it would reach below 0."
            if are_known
            else ""
        )
    if not cells.is_biased:
        return "± is the 95 % margin of error."
    if _row_margins(cells) is not None:
        within = f"The unbiased counts of a row are within the margin in the column “{MARGIN}”"
    else:
        margins = cells.standard_error * Z_95
        low, high = (rounded(float(end), 3) for end in (np.min(margins), np.max(margins)))
        within = f"The unbiased counts are within {low}"
        if low != high:
            within += f" (the most accurate cell) to {high} (the least accurate one)"
    return (
        f"{within} of the true ones, 95 % of the time. Of the counts here, which are biased, no "
        "error is known."
    )


def _row_margins(cells: ReleasedCells) -> list[str] | None:
    """The margin of the unbiased counts of each row; None where rows have none, or all the same."""
    if cells.is_smooth or not cells.is_biased:
        return None
    errors = cells.standard_error.reshape(len(cells.axes[0].labels), -1)
    ends = np.stack([errors.min(axis=1), errors.max(axis=1)], axis=1) * Z_95
    low, high = ([rounded(end, 3, zeros=True) for end in column] for column in ends.T.tolist())
    return low if low == high and len(set(low)) > 1 else None


def _texts(cells: ReleasedCells) -> list[str]:
    """Each cell as a text, "2,481 ±54", or "3 [0–18]" where a smooth count would be below 0.

    Of smooth counts the margin is 1.96 times the model-based error, left out where unknown; other
    processed counts are alone. "" without a value.
    """
    value, margin = cells.value, cells.margin
    if cells.model_error is not None:
        margin = Z_95 * cells.model_error
    elif cells.is_biased:
        margin = np.full_like(value, np.nan)
    lower, upper = (np.maximum(end, 0.0) for end in (value - margin, value + margin))
    cut = cells.is_smooth & (value >= 0) & (value < margin)
    columns = (column.ravel().tolist() for column in (value, margin, lower, upper, cut))
    return [
        f"{value:,.0f} [{rounded(low, 3)}–{rounded(high, 3)}]"
        if is_cut
        else _with_margin(value, margin)
        for value, margin, low, high, is_cut in zip(*columns, strict=True)
    ]


def _with_margin(value: float, margin: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if np.isnan(margin) else f"{value:,.0f} ±{rounded(margin, 3)}"
