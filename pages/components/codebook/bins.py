"""The bins of a numeric attribute on the Codebook page, with a preview before they are used."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.codebook.grid import change_codebook
from pages.components.shared.numbers import number_field
from pages.components.shared.session import attempt, current, escaped, show_messages
from rpexplore.domain.attribute import Bins, Integers
from rpexplore.scenarios import bins
from rpexplore.scenarios.codebook_grid import domain_with_values

HERE = "bins"
EQUAL, EDGES, MERGE, SPLIT = "Equal widths", "Own edges", "Merge", "Split"
WHOLE, REAL = "whole numbers", "numbers with decimals"
MOST_SHOWN = 1000


def use(name: str, values: bins.Numeric) -> None:
    change_codebook(HERE, lambda: domain_with_values(current().domain, name, values))


def key_of(widget: str, name: str, present: bins.Numeric | None) -> str:
    """A widget's key: another one for other bins, whose numbers are not those typed before."""
    return f"{widget} of {name} {hash(present)}"


def bin_editor(name: str) -> None:
    """Other bins for the attribute, which take effect with a click; what is typed stays."""
    values = current().domain[name].values
    present = values if isinstance(values, Integers | Bins) else None
    show_messages(HERE)
    methods: dict[str, Callable[[str, Any], bins.Numeric | None]] = {EQUAL: _equal, EDGES: _edges}
    if present is not None:
        methods |= {MERGE: _merged, SPLIT: _split}
    how = st.segmented_control(
        "Change the bins", list(methods), required=True, default=EQUAL, key=f"how to bin {name}"
    )
    changed = attempt(lambda: methods[how](name, present))
    if changed is None:
        return
    if changed == present:
        st.caption(f"As it is: {escaped(bins.describe(changed))}")
        return
    st.markdown(f"This would give **{escaped(bins.describe(changed))}**")
    if present is not None and (more := bins.widened(present, changed)):
        st.caption(more)
    st.button("Use these bins", on_click=use, args=(name, changed))
    st.dataframe(
        bins.numbered(changed, MOST_SHOWN),
        hide_index=True,
        width=360,
        height=min(36 * (changed.size + 1), 260),
        alt=f"Bins that {name} would have",
        column_config={"bin": "Bin", "label": "Values"},
    )


def _equal(name: str, present: bins.Numeric | None) -> bins.Numeric | None:
    lowest, highest, width = bins.limits(present) if present else (None, None, None)
    kind, *columns = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
    whole = kind.segmented_control(
        "Its values are",
        [WHOLE, REAL],
        required=True,
        default=REAL if isinstance(present, Bins) else WHOLE,
        key=key_of("numbers", name, present),
    )
    numbers = []
    for column, label, value in zip(
        columns, ("From", "To", "Width of a bin"), (lowest, highest, width), strict=True
    ):
        number = number_field(label, key_of(label, name, present), where=column, value=value)
        if number is not None:
            numbers.append(number)
    if len(numbers) < 3:
        st.caption("Give the lowest and highest value and the width, from public knowledge.")
        return None
    return bins.equal_bins(*numbers, whole=whole == WHOLE)


def _edges(name: str, present: bins.Numeric | None) -> bins.Numeric | None:
    text = st.text_area(
        "Edges in ascending order, separated by commas, or by semicolons beside decimal commas: "
        "each bin goes from one edge to under the next, the last one includes its upper edge",
        value=", ".join(bins.edge_texts(bins.as_bins(present))) if present else "",
        key=key_of("edges", name, present),
        height=100,
        placeholder="0, 500, 1000, 2500, 10000",
    )
    return bins.bins_from_text(text) if text.strip() else None


def _merged(name: str, present: bins.Numeric) -> bins.Numeric:
    left, right = st.columns(2)
    first = _bin_number(left, "From bin", 1, name, present)
    last = _bin_number(right, "to bin", min(2, present.size), name, present)
    return bins.merged(present, first, last)


def _split(name: str, present: bins.Numeric) -> bins.Numeric | None:
    left, right = st.columns(2)
    number = _bin_number(left, "Bin", 1, name, present)
    at = number_field(
        "The upper part begins at",
        key_of(f"split {number}", name, present),
        where=right,
        value=bins.middle(present, number),
    )
    return None if at is None else bins.split(present, number, at)


def _bin_number(column: Any, label: str, value: int, name: str, present: bins.Numeric) -> int:
    number = column.number_input(label, 1, present.size, value, key=key_of(label, name, present))
    column.caption(escaped(present.label(number - 1)))
    return number
