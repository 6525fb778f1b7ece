"""Buttons that download a chart as a picture, which the browser itself draws."""

from streamlit.components.v2 import component

# Plotly draws the picture when its own button is clicked, which is hidden (`CONFIG`, `app.STYLE`):
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


def picture_config(name: str) -> dict:
    """The settings with which Plotly can draw a chart; name: of the file, without ending."""
    return {
        "displayModeBar": True,
        "modeBarButtons": [["toImage"]],
        "displaylogo": False,
        "displayNotifier": False,
        "toImageButtonOptions": {"filename": name, "scale": 2},
    }


def picture_buttons(name: str) -> None:
    """Buttons for the chart before them, as PNG and as SVG; name: of its files, without ending."""
    _MOUNT(key=f"pictures of {name}", width="content", height="content")
