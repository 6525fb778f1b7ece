"""The first picture of the app: the cells of a table, by how large the noise is beside them."""

from html import escape

from rpexplore.analysis.first_look import LIMIT, FirstLook

_SMALL = 0.05  # CV up to which a cell is shown as the best
KEY = (
    f"Dark green: the noise is at most {100 * _SMALL:g} % of the count; light green: at most "
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
