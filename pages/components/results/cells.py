"""What the views of a table share: its cells, the choice of attributes, and columns of numbers."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.components.shared.charts import exhibit, numbers
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.errors import RpexploreError
from rpexplore.postprocessing.results import Results

MOST_OPTIONS = 1000  # values of an attribute, to choose from
TOGETHER = "all together"
View = Callable[[Results, tuple[str, ...], str], None]


def read(view: View, found: Results, chosen: tuple[str, ...], record_noun: str) -> None:
    """Draw a view; what cannot be read is said instead."""
    try:
        view(found, chosen, record_noun)
    except RpexploreError as error:
        st.error(escaped(error.on_screen()))
    except OSError as error:
        st.error(escaped(f"The tables cannot be read any more ({error.strerror or error})."))


def whole(found: Results, chosen: tuple[str, ...]) -> ReleasedCells:
    """All cells of the table of the chosen attributes."""
    return kept("results whole", (found, chosen), lambda: _cells(found, chosen))


def drawn(
    found: Results, axes: Sequence[str], fixed: Mapping[str, int], others: Collection[str]
) -> ReleasedCells | None:
    """The cells along these axes, at fixed values, others summed; None, if that is not there."""
    names = found.ordered([*axes, *fixed])
    if not found.has(names):
        st.info(
            "Processed counts cannot be summed any further, and there is no processed table "
            f"without {escaped(' and '.join(others))}; choose a value there."
        )
        return None
    cells = kept("results drawn", (found, names), lambda: _cells(found, names))
    return cells.at(fixed).along(axes)


def fixed_values(found: Results, cells: ReleasedCells, axes: Collection[str]) -> dict[str, int]:
    """The chosen value of each attribute that is on no axis; those that are summed are left out."""
    fixed, can_be_summed = {}, found.has(axes)
    for axis in cells.axes:
        size = len(axis.labels)
        if axis.name in axes or size > MOST_OPTIONS:
            continue
        labels = [TOGETHER, *axis.labels]
        row = st.selectbox(
            escaped(axis.name),
            range(len(labels)),
            index=0 if can_be_summed else 1,
            format_func=labels.__getitem__,
            key=f"results value of {axis.name} among {size}{'' if can_be_summed else ', no sum'}",
        )
        if row:
            fixed[axis.name] = row - 1
    return fixed


def by_size(cells: ReleasedCells) -> list[str]:
    """The attributes, those with the most values first."""
    return [axis.name for axis in sorted(cells.axes, key=lambda axis: -len(axis.labels))]


def chart(
    figure: go.Figure, cells: ReleasedCells, sentence: str, alt: str, summed: Collection[str]
) -> None:
    """A chart of cells, and its numbers as a table and as CSV."""
    more = f"{escaped(', '.join(summed))}: {TOGETHER}." if summed else ""
    exhibit(figure, sentence, alt, more)
    with st.expander("The numbers of this chart"):
        frame = cells.frame
        numbers(frame, columns_of(frame), file_of([axis.name for axis in cells.axes]), alt)


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    """How to show the columns of a table: labels, counts, intervals."""
    number, is_processed = st.column_config.NumberColumn, "value_is" in frame.columns[-1:]
    named: dict[str, Any] = {
        "value": number(
            "Processed count (biased)" if is_processed else "Noisy count", format="%.1f"
        ),
        "standard_error": number("Standard error σ", format="%.3g"),
        "lower_95": number("95 % interval from", format="%.1f"),
        "upper_95": number("to", format="%.1f"),
    }
    if is_processed:
        named["unbiased_value"] = number("Noisy count (unbiased)", format="%.1f")
        named["value_is"] = "What the processed count is"
    return {name: named.get(name, name) for name in frame.columns}


def file_of(names: Sequence[str]) -> str:
    """What to call a downloaded table: "age_sex.csv", as in the folder of a release."""
    words = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names)
    return f"{'_'.join(filter(None, words))[:80] or 'table'}.csv"


def _cells(found: Results, names: tuple[str, ...]) -> ReleasedCells:
    return ReleasedCells.of(found.counts(names), names)
