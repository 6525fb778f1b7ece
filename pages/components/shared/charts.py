"""How figures, charts and their numbers are shown: in words, as a picture, as a table, as CSV."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.components.v2 import component

from pages.components.shared.files import download
from pages.components.shared.session import escaped
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, csv_of_frame
from rpexplore.figures.chart import Chart, Column, in_per_cent, number_format

MOST_ROWS = 2000  # of a table that travels whole
NUMBERS = "Numbers and picture of this chart"
METRIC_WIDTH = 220  # px, for labels that would be cut off


def chart_with_numbers(
    chart: Chart, more: str = "", *, take: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """A chart with its caption and its numbers to look up: every chart of the app.

    more: Markdown for the caption. take: called with a point of a curve that is clicked, as Plotly
    has it ("x", "y", "point_index")
    """
    name = Path(chart.file).stem
    look: Any = {
        "alt": chart.alternative_text,
        "config": _CONFIG | {"toImageButtonOptions": {"filename": name, "scale": 2}},
    }
    if take is None:
        st.plotly_chart(chart.figure, **look)
    else:
        key = f"clicked in {name}"

        def clicked() -> None:
            for point in st.session_state[key]["selection"]["points"][:1]:
                take(point)

        st.plotly_chart(chart.figure, key=key, on_select=clicked, selection_mode="points", **look)
    st.caption(f"{escaped(chart.caption)} {more}".strip())
    with st.expander(NUMBERS):
        listing(chart.frame, chart.columns, chart.subject)
        with st.container(horizontal=True):
            download_frame(chart.frame, chart.file)
            _MOUNT(key=f"pictures of {name}", width="content", height="content")


def folded(label: str, key: str, draw: Callable[[], None], **options: Any) -> None:
    """An expander that is folded at first; what is in it costs nothing until it is opened."""
    shown = st.expander(label, key=key, on_change="rerun", **options)
    if shown.open:
        with shown:
            draw()


def metrics(*figures: tuple[str, str, str]) -> None:
    """Figures side by side, or below where there is no room: label, value, caption (Markdown)."""
    line = st.container(horizontal=True)
    for label, value, caption in figures:
        with line.container(width=METRIC_WIDTH, gap="xxsmall"):
            st.metric(label, value)
            if caption:
                # Numbers and equations stay in one line.
                st.caption(caption.replace("e-", "e\u2011").replace(" = ", "\u00a0=\u00a0"))


def numbers(frame: pd.DataFrame, columns: Mapping[str, Any], file: str, alt: str) -> None:
    """A frame as a table, with the columns of `listing`, and as CSV."""
    listing(frame, columns, alt)
    download_frame(frame, file)


def download_frame(frame: pd.DataFrame, file: str) -> None:
    """A button for a frame as CSV."""
    download(file, lambda: csv_of_frame(frame))


def listing(frame: pd.DataFrame, columns: Mapping[str, Any], alt: str) -> None:
    """A frame as a table of these columns; a long one is served as it is scrolled.

    columns: by name, a `Column` or what Streamlit takes
    """
    shown = in_per_cent(frame, columns)
    st.dataframe(
        shown,
        lazy=len(frame) > MOST_ROWS,
        hide_index=True,
        placeholder="–",
        alt=alt,
        column_order=list(columns),
        column_config={
            name: _configuration(frame[name], column) if isinstance(column, Column) else column
            for name, column in columns.items()
        },
    )


def _configuration(values: Any, column: Column) -> Any:
    if column.kind == "name":
        return column.heading
    heading = capitalised(column.heading)
    explained = meaning(column.term) if column.term else None
    if column.kind == "text":
        return st.column_config.Column(heading, help=explained)
    form = number_format(values, column)
    return st.column_config.NumberColumn(heading, format=form, help=explained)


# ---- Buttons that download a chart as a picture, which the browser itself draws.


# Plotly draws the picture when its own button is clicked, which is hidden (`_CONFIG`,
# `.streamlit/style.css`):
# it offers one format alone, and would lie on the chart.
_SCRIPT = """
export default ({ parentElement }) => {
  const isBefore = (chart) =>
    chart.compareDocumentPosition(parentElement.host) & Node.DOCUMENT_POSITION_FOLLOWING
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => {
      const chart = [...document.querySelectorAll(".js-plotly-plot")].filter(isBefore).at(-1)
      chart._context.toImageButtonOptions.format = button.dataset.format
      chart.querySelector(".modebar-btn").click()
    }
  }
}
"""
_BUTTONS = """
<button type="button" data-format="png">Download PNG</button>
<button type="button" data-format="svg">Download SVG</button>
"""
# As Streamlit's own buttons look.
_STYLE = """
button {
  min-height: 2.5rem; margin-right: 0.5rem; padding: 0.25rem 0.75rem;
  font: inherit; font-family: var(--st-font); color: var(--st-text-color);
  background: var(--st-background-color); cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
}
button:hover { border-color: var(--st-primary-color); color: var(--st-link-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
_MOUNT = component("chart pictures", html=_BUTTONS, css=_STYLE, js=_SCRIPT)
_CONFIG = {
    "displayModeBar": True,
    "modeBarButtons": [["toImage"]],
    "displaylogo": False,
    "displayNotifier": False,
}
