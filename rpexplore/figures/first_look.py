"""Small pictures: cells of a table by the noise beside them; two neighbouring sets of records."""

import base64
from html import escape

from rpexplore.analysis.first_look import LIMIT, FirstLook
from rpexplore.privacy.budget import Budget

_SMALL = 0.05  # CV up to which a cell is shown as the best
_MANY, _STEP = 9, 22  # records of a set, and points from one to the next
KEY = (
    f"Strong green: the noise is at most {100 * _SMALL:g} % of the count; faint green: at most "
    f"{100 * LIMIT:g} %; in brackets: more."
)


def first_look_table(shown: FirstLook) -> str:
    """The table as HTML; the app's style has the colours."""
    heads = "".join(f'<th scope="col"><span>{escape(text)}</span></th>' for text in shown.across)
    rows = []
    for label, counts, cvs in zip(
        shown.down, shown.counts.tolist(), shown.cv.tolist(), strict=True
    ):
        cells = []
        for count, cv in zip(counts, cvs, strict=True):
            kind = "good" if cv <= _SMALL else "fair" if cv <= LIMIT else "poor"
            text = f"({count:,.0f})" if kind == "poor" else f"{count:,.0f}"
            cells.append(f'<td class="{kind}">{text}</td>')
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    return (
        f'<table class="first-look"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def neighbours_picture(budget: Budget) -> str:
    """Two neighbouring sets of records as an image: a disc each, those of the unit filled."""
    own = range(3, 3 + min(budget.max_records_per_person or 1, 4))
    width = _STEP * _MANY
    discs = []
    for row, y in enumerate((16, 48)):
        for place in range(_MANY):
            x, look = _STEP * place + 11, 'fill="none" stroke="#8a929c"'
            if place in own:
                look = f'fill="{"#d95f02" if row and budget.replaces else "#1b6ca8"}"'
                if row and not budget.replaces:
                    look = 'fill="none" stroke="#1b6ca8" stroke-dasharray="2 3"'
            discs.append(f'<circle cx="{x}" cy="{y}" r="7" {look}/>')
    said = escape(f"Two sets of records: {budget.neighbours_text}")
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 64">{"".join(discs)}</svg>'
    # Streamlit takes SVG out of HTML, but leaves images.
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{said}" width="{width}" height="64" src="data:image/svg+xml;base64,{data}">'
