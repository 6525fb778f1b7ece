"""A table of the results as a grid: every cell with its interval."""

import streamlit as st

from pages.components.results.cells import columns_of, file_of
from pages.components.shared.charts import numbers
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.released_cells import describe_margin
from rpexplore.postprocessing.results import Results


def grid(found: Results, chosen: tuple[str, ...], record_noun: str) -> None:
    """The table as it was released, and how accurate it is."""
    frame = kept("results grid", (found, chosen), lambda: found.table(chosen))
    margin = escaped(describe_margin(frame, record_noun))
    if found.is_biased:
        st.markdown(
            f"The unbiased count is within {margin} of the true one, 95 % of the time. The "
            "processed count is biased: no error of it is known, and it may lie outside the "
            "interval."
        )
    else:
        st.markdown(
            f"A count is within {margin} of the true one, 95 % of the time. Counts are unbiased, "
            "not rounded, and may be negative."
        )
    alt = "Processed table" if found.is_biased else "Noisy table"
    numbers(frame, columns_of(frame), file_of(chosen), alt)
