"""What the theme's settings cannot say."""

import streamlit as st

# The primary colour is made for white text upon it (buttons, chosen options). Where Streamlit
# writes text in that colour itself, it would be too faint in the dark theme.
_STYLE = """<style>
button[data-selected="true"] p,
[data-testid="stSlider"] [data-testid="stMarkdownContainer"] p {
    color: light-dark(#060c13, #e8edf3);
}
</style>"""


def style() -> None:
    """Text colours of the theme, where they do not reach by themselves."""
    st.html(_STYLE)
