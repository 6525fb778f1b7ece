"""The gallery of examples on the Home page, each with a small picture."""

import base64

import streamlit as st

from pages.components.home.doors import open_example
from pages.components.shared.session import escaped
from rpexplore.scenarios.examples import EXAMPLES

# What the tables of each example are about, by its key: SVG of 100 × 48.
PICTURES = {
    "household": """<g fill="#3c76c3" opacity=".55"><path d="M2 24h18v24H2zM26 8h18v40H26z"/>
<path d="M50 16h18v32H50zM74 30h18v18H74z"/></g>""",
    "redistricting": """<path d="M2 2h92v44H2zM48 2v44M48 24h46M71 24v22" fill="none"
stroke="#3c76c3" stroke-width="2.5"/>""",
    "labour-force": """<path d="M2 42L28 26L52 32L94 6" fill="none" stroke="#3c76c3"
stroke-width="3"/><path d="M2 14h92" stroke="#3c76c3" stroke-dasharray="5 5"/>""",
    "hospital-stays": """<g fill="#3c76c3" opacity=".55"><circle cx="12" cy="34" r="9"/>
<circle cx="41" cy="30" r="14"/><circle cx="76" cy="26" r="19"/></g>""",
}


def gallery() -> None:
    """Every example: what it is, what it answers, and a button that opens it."""
    st.subheader("Examples")
    st.caption("Each opens afresh; earlier work is kept under “A saved project”.")
    for column, example in zip(st.columns(len(EXAMPLES)), EXAMPLES, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            _picture(PICTURES[example.key])
            st.button(
                example.title,
                key=f"example {example.key}",
                width="stretch",
                on_click=open_example,
                args=(example,),
            )
            st.markdown(escaped(example.question))
            st.caption(escaped(example.summary))


def _picture(drawing: str) -> None:
    """An ornament: it has no text, and no button to see it larger as Streamlit's images have."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 48">{drawing}</svg>'
    data = base64.b64encode(svg.encode()).decode()
    st.html(f'<img alt="" width="100" height="48" src="data:image/svg+xml;base64,{data}">')
