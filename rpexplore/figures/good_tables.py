"""Squares, bars and typical counts of tables, as HTML; every text in it is escaped."""

from collections.abc import Mapping, Sequence
from html import escape

from rpexplore.analysis.good_tables import Mark, Matrix
from rpexplore.analysis.typical_counts import TypicalCounts

CSS = """
.good-tables { overflow-x: auto; container-type: inline-size; font-size: 0.8125rem;
    color: light-dark(#2b3642, #c9d2dc); }
.good-tables table { border-collapse: separate; border-spacing: 2px; }
.good-tables .bars { width: 100%; border-spacing: 0 3px; }
.good-tables th { font-weight: 400; padding: 0 0.4rem 0 0; text-align: left; white-space: nowrap; }
.good-tables thead th { padding: 0; text-align: center; vertical-align: bottom; }
.good-tables thead span {
    display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg);
    max-height: 6.5rem; overflow: hidden; text-overflow: ellipsis;
}
.good-tables td { padding: 0; }
.good-tables button {
    font: inherit; color: inherit; background: none; border: 0; border-radius: 3px; cursor: pointer;
    font-variant-numeric: tabular-nums;
}
/* As wide as there is room for --n of them beside their names. */
.good-tables .square {
    width: clamp(1.35rem, calc((100cqi - 7.5rem) / var(--n) - 3px), 2.6rem);
    height: 1.75rem; padding: 0; display: block;
}
@container (max-width: 30rem) { .good-tables .square { font-size: 0.6875rem; } }
.good-tables .row {
    display: grid; grid-template-columns: minmax(6rem, 2fr) minmax(3rem, 3fr) minmax(9rem, auto);
    gap: 0.75rem; align-items: center; width: 100%; padding: 0.3rem 0.25rem; text-align: left;
}
.good-tables i { display: block; height: 0.6rem; border-radius: 0.3rem;
    background: light-dark(#e9eef5, #242e39); }
.good-tables b { display: block; height: 100%; border-radius: 0.3rem; }
.shown .good { background: light-dark(#1d4f91, #3c76c3); color: #ffffff; }
.shown .open { background: light-dark(#9dc0e8, #27486f); color: light-dark(#0b2340, #e6f0fb); }
.shown .half { background: light-dark(#d6e4f4, #1f3147); color: light-dark(#1f3147, #cddcee); }
.shown .poor { background: light-dark(#eceff3, #1d252f); color: light-dark(#4a5664, #a7b3c0); }
.shown .plain { background: light-dark(#eceff3, #1d252f); color: inherit; }
.good-tables b.half, .good-tables b.plain { background: light-dark(#7fa3cf, #4c74a6); }
.good-tables b.poor { background: light-dark(#98a4b2, #5d6a79); }
.good-tables button:hover { outline: 1px solid light-dark(#5b6775, #a7b3c0); outline-offset: -1px; }
.good-tables button[aria-pressed="true"] {
    outline: 2px solid light-dark(#b45309, #f0a94b); outline-offset: -2px;
}
.good-tables button:focus-visible {
    outline: 3px solid light-dark(#b45309, #f0a94b); outline-offset: -3px;
}
"""
"""What the classes of squares and bars look like, in light and in dark."""

# Every square is a button, and one of them is reached by the tab key: arrows go to the others.
SCRIPT = """
export default ({ parentElement, data, setTriggerValue }) => {
  const root = parentElement.querySelector(".good-tables")
  const buttons = () => [...root.querySelectorAll("button")]
  const focused = parentElement.activeElement?.dataset?.table
  if (root.dataset.shown !== data.html) {
    root.innerHTML = data.html
    root.dataset.shown = data.html
    const all = buttons()
    const stop = all.find((button) => button.ariaPressed === "true") ?? all[0]
    for (const button of all) button.tabIndex = button === stop ? 0 : -1
    all.find((button) => button.dataset.table === focused)?.focus()
  }
  root.onclick = (event) => {
    const button = event.target.closest("button")
    if (button) setTriggerValue("table", Number(button.dataset.table))
  }
  root.onkeydown = (event) => {
    const cell = event.target.closest("td")
    if (!cell || !event.key.startsWith("Arrow")) return
    event.preventDefault()
    const all = buttons(), row = cell.parentElement
    const at = all.indexOf(event.target)
    let next = all[at + (event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1)]
    if (row.cells.length > 1 && /Up|Down/.test(event.key)) {
      const other = event.key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling
      next = other?.cells[cell.cellIndex]?.querySelector("button")
    }
    next?.focus()
  }
}
"""
"""What makes a component of Streamlit of them: it shows `data.html` and tells a click."""

_TYPICAL_CSS = """
.typical-frame { overflow-x: auto; }
.typical-frame:focus-visible { outline: 2px solid light-dark(#1d4f91, #8fb8f0); }
.typical { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.875rem; }
.typical th, .typical td { padding: 0.2rem 0.55rem; text-align: right; font-weight: 400; border: 0;
    border-bottom: 1px solid light-dark(#dfe5ec, #2c3743); white-space: nowrap; }
.typical thead th { color: light-dark(#44505e, #b4bfcb); font-size: 0.8125rem;
    white-space: normal; vertical-align: bottom; max-width: 8em; }
.typical th:first-child { text-align: left; padding-left: 0; max-width: 14em; white-space: normal; }
.typical .x { color: light-dark(#5b6775, #93a0ae); }
.typical b { font-weight: 600; }
.typical sup { font-size: 0.7em; margin-left: 0.2em; color: light-dark(#5b6775, #93a0ae); }
"""


def squares(matrix: Matrix, of_tables: Mapping[int, Mark], opened: int) -> str:
    """The matrix as a table of buttons, one a table; opened: the place of the one that is open."""
    heads = "".join(f'<th scope="col"><span>{escape(name)}</span></th>' for name in matrix.names)
    rows = []
    for name, places in zip(matrix.names, matrix.places, strict=True):
        cells = "".join(
            f"<td>{_button(of_tables[place], opened, 'square')}</td>" if place >= 0 else "<td></td>"
            for place in places
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<table style="--n: {len(matrix.names)}"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def bars(of_tables: Sequence[Mark], opened: int) -> str:
    """A row with a bar for each table; those that can be opened are buttons."""
    rows = "".join(f"<tr><td>{_button(mark, opened, 'row')}</td></tr>" for mark in of_tables)
    return f'<table class="bars"><tbody>{rows}</tbody></table>'


def _button(mark: Mark, opened: int, form: str) -> str:
    says, kind, content = escape(mark.says), mark.kind, escape(mark.text)
    if form == "row":
        content = (
            f"<span>{escape(mark.title)}</span>"
            f'<i><b class="{kind}" style="width: {100 * mark.share:.1f}%"></b></i>'
            f"<span>{escape(mark.full)}</span>"
        )
        kind = ""
    if mark.place < 0:
        return f'<div class="{form} {kind}">{content}</div>'
    pressed = "true" if mark.place == opened else "false"
    return (
        f'<button type="button" class="{form} {kind}" data-table="{mark.place}" title="{says}" '
        f'aria-label="{says}" aria-pressed="{pressed}">{content}</button>'
    )


def typical_table(shown: TypicalCounts) -> str:
    """Typical counts by rows and columns, with flags; ranges are told where one points."""
    across = [escape(label) for label in shown.columns]
    corner = escape(f"{shown.down} \\ {shown.across}" if shown.across else shown.down)
    heads = "".join(f'<th scope="col">{label}</th>' for label in across)
    rows = []
    for row, label in enumerate(shown.rows):
        cells = []
        for column in range(len(across)):
            text = f"{shown.counts[row, column]:,.0f}"
            kind, says = "", "public"
            if shown.is_public[row, column]:
                text = f"<b>{text}</b>"
            else:
                says = f"{shown.low[row, column]:,.0f} to {shown.high[row, column]:,.0f}"
            if shown.is_doubtful[row, column]:
                kind, text = ' class="x"', f"({text})"
            flag = shown.flags[row, column]
            cells.append(f'<td{kind} title="{says}">{text}<sup>{flag}</sup></td>')
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    head = f'<thead><tr><th scope="col">{corner}</th>{heads}</tr></thead>'
    return (
        f'<style>{_TYPICAL_CSS}</style><div class="typical-frame" role="region" tabindex="0" '
        f'aria-label="Typical counts"><table class="typical">{head}'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
