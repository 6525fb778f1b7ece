"""A crosstab as HTML, for the Results page and the page for readers, and the lines below it."""

from collections.abc import Iterable
from html import escape

import numpy as np

from rpexplore.common.text import rounded
from rpexplore.domain.readings import FLAGS
from rpexplore.planning.part_plan import Z_95
from rpexplore.results.formats.crosstab import Crosstab, Side
from rpexplore.results.formats.languages import ENGLISH, Language
from rpexplore.results.publication import Publication

CSS = """
.crosstab { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0; }
.crosstab caption { text-align: left; font-weight: 600; padding: 0 0 .4rem; }
.crosstab th, .crosstab td {
    padding: .3rem .7rem; text-align: right; font-weight: 400; white-space: nowrap;
    border: 0; border-bottom: 1px solid light-dark(#dfe5ec, #2c3743); vertical-align: baseline;
}
.crosstab thead th {
    font-weight: 600; font-size: .875em; color: light-dark(#44505e, #b4bfcb);
    vertical-align: bottom; white-space: normal; max-width: 12em;
}
.crosstab th[scope="colgroup"] { text-align: center; max-width: none; }
.crosstab thead tr:last-child > * { border-bottom-color: light-dark(#7f8b99, #6b7a8c); }
.crosstab .l { text-align: left; max-width: 22em; white-space: normal; }
.crosstab .again { color: light-dark(#5b6775, #93a0ae); }
.crosstab .x, .crosstab sup, .crosstab small { color: light-dark(#5b6775, #93a0ae); }
.crosstab sup { font-size: .7em; margin-left: .2em; display: inline-block; min-width: .8em; }
.crosstab small { font-size: .8em; margin-left: .3em; }
.crosstab .t { font-weight: 600; }
.crosstab tr.t > * { border-top: 1px solid light-dark(#7f8b99, #6b7a8c); font-weight: 600; }
"""
"""What the classes of a crosstab look like, in light and in dark."""

_MINUS = "−"
# The parts of a crosstab whose margins of error are often the same: how they are called.
_PARTS = (
    ("in_cells", False, False),
    ("in_row_totals", False, True),
    ("in_column_totals", True, False),
    ("in_grand_total", True, True),
)


def html_of(
    table: Crosstab, publication: Publication, caption: str = "", language: Language = ENGLISH
) -> str:
    """The crosstab as a table of HTML; every text in it is escaped.

    Figures that are not publishable are grey and in brackets, or left empty, as `publication` says.
    Margins of error stand beside the figures where they are not the same in all of them.
    """
    head = _head(table, language)
    flags, texts = table.flags, texts_of(table, language)
    beside = _margins_beside(table, language)
    doubtful = table.doubtful(publication)
    body = []
    before: tuple[str, ...] = ()
    n_rows = len(table.rows)
    for row in range(len(table.values)):
        is_total = row >= n_rows
        if is_total:
            cells = [_total_head(table, language)]
        else:
            cells = [_row_head(table.rows, row, before, language)]
        before = () if is_total else table.rows.labels[row]
        for column in range(table.values.shape[1]):
            text, kind = texts[row, column], "t" if column >= len(table.columns) else ""
            if table.is_small(row, column):
                kind = f"{kind} x".strip()
                text = escape(language.text("fewer_than", n=table.fewer_than))
            elif text and doubtful[row, column]:
                kind = f"{kind} x".strip()
                text = "" if publication.leave_empty else f"({text})"
            if text and not table.is_small(row, column):
                text += f"<sup>{flags[row, column]}</sup>" if flags[row, column] else ""
                text += f"<small>±{beside[row, column]}</small>" if beside[row, column] else ""
            cells.append(f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>")
        row_start = '<tr class="t">' if is_total else "<tr>"
        body.append(f"{row_start}{''.join(cells)}</tr>")
    return (
        f'<table class="crosstab">{f"<caption>{escape(caption)}</caption>" if caption else ""}'
        f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    )


def legend(
    table: Crosstab,
    publication: Publication,
    *,
    with_quality: bool = True,
    elsewhere: str = "beside_figures",
    language: Language = ENGLISH,
) -> list[str]:
    """What flags, brackets and margins of a crosstab mean, in sentences of plain text.

    with_quality: whether flags and brackets are among them
    elsewhere: where margins are that are not the same, a key of `TEXTS`
    """
    sentences = [_margin_sentence(table, elsewhere, language)]
    if with_quality and np.any(table.flags != ""):
        limits = [
            language.text("limit", letter=letter, limit=language.rounded(100 * limit))
            for letter, limit in FLAGS
        ]
        limits[0] = language.text("first_limit", limit=language.rounded(100 * FLAGS[0][1]))
        quality = "quality_of_counts" if table.unit else "quality"
        sentences.append(language.text(quality, limits=" · ".join(limits)))
    if with_quality and np.any(table.doubtful(publication)):
        how = "left_empty" if publication.leave_empty else "in_brackets"
        limit = language.rounded(100 * publication.cv_limit)
        sentences.append(language.text(how, limit=limit))
    if table.small is not None and table.small.any():
        sentences.append(language.text("small_counts", n=table.fewer_than))
    has_totals = table.has_total_row or table.has_total_column
    if table.unit:
        pass
    elif table.kind == "noisy" and has_totals:
        sentences.append(language.text("cells_add_up"))
    elif has_totals:
        sentences.append(language.text("totals_of_smaller"))
    return [sentence for sentence in (*sentences, *map(language.say, table.said)) if sentence]


def texts_of(table: Crosstab, language: Language = ENGLISH) -> np.ndarray:
    """The figures as texts, with thousands separators; "" where there is none.

    Counts are whole; sums and means smaller than their errors' digits have decimals.
    """
    decimals = 1 if table.unit else decimals_of(table)
    texts = [
        "" if np.isnan(value) else language.number(_number(value, decimals))
        for value in table.values.ravel()
    ]
    return np.array(texts, dtype=object).reshape(table.values.shape)


def decimals_of(table: Crosstab) -> int:
    """How many decimals figures need: none unless all errors are below 0.5."""
    errors = table.errors[np.isfinite(table.errors) & (table.errors > 0)]
    if not len(errors) or float(errors.max()) >= 0.5:
        return 0
    return min(2 + int(np.ceil(-np.log10(2 * float(errors.max())))) - 1, 6)


def _number(value: float, decimals: int) -> str:
    text = f"{abs(value):,.{decimals}f}"
    is_zero = not text.strip("0.,")
    return f"{_MINUS}{text}" if value < 0 and not is_zero else text


def _head(table: Crosstab, language: Language) -> str:
    """Rows of column heads: the attribute across, and its values."""
    columns, names = table.columns, [escape(name) for name in table.rows.names]
    own = "".join(f'<th scope="col" class="l">{name}</th>' for name in names) or "<td></td>"
    if not columns.names:
        unit = language.text("share" if table.unit else table.head)
        return f'<tr>{own}<th scope="col">{unit}</th></tr>'
    above = (
        f'<tr><td colspan="{max(len(names), 1)}"></td>'
        f'<th scope="colgroup" colspan="{table.values.shape[1]}">{escape(columns.names[0])}</th>'
        "</tr>"
    )
    labels = [label for (label,) in columns.labels]
    labels += [language.text("total")] if table.has_total_column else []
    heads = "".join(f'<th scope="col">{escape(label)}</th>' for label in labels)
    return f"{above}<tr>{own}{heads}</tr>"


def _row_head(side: Side, row: int, before: tuple[str, ...], language: Language) -> str:
    """The labels of a row; those that the row before has too are grey."""
    if not side.names:
        return f'<th scope="row" class="l">{language.text("all")}</th>'
    heads, are_alike = [], True
    for place, (label, code) in enumerate(zip(side.labels[row], side.codes[row], strict=True)):
        are_alike = are_alike and before[place : place + 1] == (label,)
        kind = "l again" if are_alike else "l"
        # The code goes without saying in the label, or where it says no more.
        shown = f" <small>{escape(code)}</small>" if code and code != label else ""
        heads.append(f'<th scope="row" class="{kind}">{escape(label)}{shown}</th>')
    return "".join(heads)


def _total_head(table: Crosstab, language: Language) -> str:
    n_heads, total = max(len(table.rows.names), 1), language.text("total")
    return f'<th scope="row" class="l" colspan="{n_heads}">{total}</th>'


# ---- Margins of error: one line where they are the same, else beside the figures.


def _parts(table: Crosstab) -> Iterable[tuple[str, tuple[slice, slice]]]:
    """Cells and totals, those that there are: the key of their name, and where they are."""
    n_rows, n_columns = len(table.rows), len(table.columns)
    for key, in_total_row, in_total_column in _PARTS:
        if (in_total_row and not table.has_total_row) or (
            in_total_column and not table.has_total_column
        ):
            continue
        if key == "in_column_totals" and not table.columns.names:
            key = "in_total"
        rows = slice(n_rows, None) if in_total_row else slice(n_rows)
        columns = slice(n_columns, None) if in_total_column else slice(n_columns)
        yield key, (rows, columns)


def _same_margin(margins: np.ndarray) -> str:
    """The one margin of some figures, to three digits; "" where they differ or are not known."""
    known = margins[np.isfinite(margins)]
    if not known.size:
        return ""
    texts = {rounded(float(end), 3) for end in (known.min(), known.max())}
    return texts.pop() if len(texts) == 1 else ""


def _margins_beside(table: Crosstab, language: Language = ENGLISH) -> np.ndarray:
    """The margins as texts where they stand beside their figures, else ""."""

    def text_of(margin: float) -> str:
        is_there = not np.isnan(margin) and margin != 0
        return language.rounded(margin, 2, zeros=True) if is_there else ""

    texts = np.full(table.values.shape, "", dtype=object)
    if table.kind == "processed":  # margins are those of the unbiased counts
        return texts
    margins = Z_95 * table.errors
    for _, place in _parts(table):
        if not _same_margin(margins[place]):
            texts[place] = np.vectorize(text_of, otypes=[object])(margins[place])
    return texts


def has_margins_beside(table: Crosstab) -> bool:
    """Whether some margins are not the same, so that no line can state them all."""
    return bool(np.any(_margins_beside(table) != ""))


def _margin_sentence(table: Crosstab, elsewhere: str, language: Language) -> str:
    margins = Z_95 * table.errors
    if not np.isfinite(margins).any():
        return language.text("no_margin_of_shares") if table.unit else ""
    if table.kind == "processed":
        low, high = (
            language.rounded(float(end)) for end in (np.nanmin(margins), np.nanmax(margins))
        )
        if not np.nanmax(margins):
            return language.text("all_exact")
        within = low if low == high else language.text("from_to", low=low, high=high)
        return language.text("biased", within=within)
    where = "margin_points_where" if table.unit else "margin_where"
    listed, others = [], []
    for key, place in _parts(table):
        margin, words = _same_margin(margins[place]), language.text(key)
        if not margin:
            others.append(words)
        elif margin != "0":  # a total is 100 % of itself, without any error
            listed.append(language.text(where, margin=language.number(margin), where=words))
    if others:
        unequal = language.text(elsewhere)
        listed.append(f"{unequal} {language.joined(others)}" if listed else unequal)
    by_model = table.kind in ("smooth", "estimated")
    return language.text("margin_by_model" if by_model else "margin", listed=", ".join(listed))
