"""The values of one attribute on the Data page: names, groups, bins, dates, missing values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.codebook.attributes import change_codebook
from pages.components.shared.inputs import apply_cells, number_field, revision
from pages.components.shared.session import attempt, change_domain, current, escaped, show_messages
from rpexplore.common.numbers import shown_few
from rpexplore.common.text import plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.dates import UNITS
from rpexplore.domain.domain import is_unfinished
from rpexplore.domain.ordered_values import Bins, Dates, Integers, Numbers
from rpexplore.scenarios import bins
from rpexplore.scenarios.bins import numbered
from rpexplore.scenarios.codebook_grid import (
    MAX_LISTED,
    categories_from_text,
    domain_with_labels,
    domain_with_level_lines,
    domain_with_values,
    lines_of_levels,
    lines_of_missing,
    values_of,
    with_missing_lines,
)

HERE = "labels"
LISTED, NUMBERS, DATES = "categories", "numbers", "dates"
GROUP_HELP = (
    "Group: what several values belong to, such as the part of the country that a region lies in. "
    "Groups within groups are written from the largest on: South \\> East."
)


def grid_of(attribute: Attribute) -> str:
    """The editor's name: another one for other values, whose rows are not those typed into."""
    values = attribute.values
    # Of categories without their labels, which are what is typed.
    key = hash(values.values if isinstance(values, Categories) else values)
    return f"labels of {attribute.name} {key}"


def apply_labels() -> None:
    """Apply typed labels and groups; call it before anything is drawn."""
    domain = current().domain
    name = st.session_state.get("attribute shown", next(iter(domain.names), None))
    if name not in domain or is_unfinished(domain[name]):
        return

    def apply(cells: dict[int, dict[str, Any]]) -> Sequence[str]:
        edited, refused = domain_with_labels(domain, name, cells)
        change_domain(HERE, lambda: edited)
        return refused

    apply_cells(grid_of(domain[name]), HERE, apply)


def use_categories(name: str) -> None:
    text = st.session_state[f"categories of {name}"]
    change_codebook(
        HERE,
        lambda: domain_with_values(current().domain, name, categories_from_text(text)),
    )


def first_values(name: str) -> None:
    """Widgets to give an attribute the values that it waits for."""
    kind = st.segmented_control(
        f"{escaped(name)} has no values yet. They are",
        [LISTED, NUMBERS, DATES],
        required=True,
        default=LISTED,
        key=f"first values of {name}",
    )
    if kind == NUMBERS:
        bin_editor(name)
        return
    if kind == DATES:
        date_editor(name)
        return
    st.text_area(
        "Categories as they stand in the data, one a line",
        key=f"categories of {name}",
        height=140,
        placeholder="Female\nMale",
    )
    st.button("Use these categories", on_click=use_categories, args=(name,))
    show_messages(HERE)


def values_and_labels() -> None:
    """One attribute's values: labels of categories and bins of numbers can be changed."""
    domain = current().domain
    name = st.selectbox("Attribute", domain.names, key="attribute shown")
    if name not in domain:
        return
    attribute = domain[name]
    if is_unfinished(attribute):
        first_values(name)
        return
    values = values_of(attribute)
    if attribute.size > len(values):
        st.caption(f"The first {len(values):,} of {attribute.size:,} values.")
    if isinstance(attribute.values, Categories):
        _editor(attribute, values)
        level_editor(attribute)
        return
    left, right = st.columns([1, 2], gap="large")
    if isinstance(attribute.values, Amounts):
        with left:
            st.markdown(
                "Tables can be weighted by it: choose it on the Tables page."
                if attribute.values.are_weights
                else "Tables have the sum, the number of records and the mean of its amounts."
            )
            st.caption(escaped(f"{attribute.values.clamping_sentence} Edit the limits above."))
        with right:
            missing_editor(name, attribute.values)
        return
    with left:
        _editor(
            attribute,
            numbered(attribute.values, MAX_LISTED).assign(group=values.group),
        )
    with right:
        if isinstance(attribute.values, Dates):
            date_editor(name)
        else:
            bin_editor(name)
        missing_editor(name, attribute.values)
    level_editor(attribute)


def _editor(attribute: Attribute, frame: pd.DataFrame) -> None:
    """Values, one a row: labels of categories can be typed, and the groups of any values."""
    has_labels = isinstance(attribute.values, Categories)
    st.data_editor(
        frame,
        key=revision(grid_of(attribute)),
        hide_index=True,
        width=640,
        height="auto" if has_labels else 300,
        alt=f"Values of {attribute.name}, editable",
        placeholder="",
        column_config={
            "value": st.column_config.TextColumn("Value in the data", disabled=True),
            "bin": st.column_config.NumberColumn("Bin", disabled=True, width=50),
            "label": st.column_config.TextColumn(
                "Label" if has_labels else "Values", disabled=not has_labels
            ),
            "group": st.column_config.TextColumn("Group", help=GROUP_HELP),
        },
    )
    show_messages(HERE)
    st.caption(
        f"{GROUP_HELP} On the Tables page the groups can then be the aggregation of the attribute."
    )


# ---- The bins of a numeric attribute on the Data page, with a preview before they are used.


BINS_HERE = "bins"
EQUAL, EDGES, MERGE, SPLIT = "Equal widths", "Own edges", "Merge", "Split"
WHOLE, REAL = "whole numbers", "numbers with decimals"
MOST_SHOWN = 1000


def use(name: str, values: bins.Numeric | Dates) -> None:
    change_codebook(BINS_HERE, lambda: domain_with_values(current().domain, name, values))


def key_of(widget: str, name: str, present: bins.Numeric | Dates | None) -> str:
    """A widget's key: another one for other bins, whose numbers are not those typed before."""
    return f"{widget} of {name} {hash(present)}"


def bin_editor(name: str) -> None:
    """Other bins for the attribute, which take effect with a click; what is typed stays."""
    values = current().domain[name].values
    present = values if isinstance(values, Integers | Bins) else None
    show_messages(BINS_HERE)
    methods: dict[str, Callable[[str, Any], bins.Numeric | None]] = {EQUAL: _equal, EDGES: _edges}
    if present is not None:
        methods |= {MERGE: _merged, SPLIT: _split}
    how = st.segmented_control(
        "Change the bins", list(methods), required=True, default=EQUAL, key=f"how to bin {name}"
    )
    _offer(name, present, attempt(lambda: methods[how](name, present)))


def _offer(
    name: str, present: bins.Numeric | Dates | None, changed: bins.Numeric | Dates | None
) -> None:
    """What the attribute would have, and the button that uses it."""
    if changed is None:
        return
    if present is not None:
        changed = replace(changed, missing=present.missing, recode=present.recode)
    if changed == present:
        st.caption(f"As it is: {escaped(bins.describe(changed))}")
        return
    st.markdown(f"This would give **{escaped(bins.describe(changed))}**")
    if more := bins.widened(present, changed):
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


# ---- Dates: a first and a last day with a step, or edges.


BY_STEP = "Equal steps"


def date_editor(name: str) -> None:
    """Other dates for the attribute, which take effect with a click; what is typed stays."""
    values = current().domain[name].values
    present = values if isinstance(values, Dates) else None
    show_messages(BINS_HERE)
    how = st.segmented_control(
        "Change the dates",
        [BY_STEP, EDGES],
        required=True,
        default=EDGES if present and present.edges else BY_STEP,
        key=f"how to group {name}",
    )
    form = st.text_input(
        "How the records write a day, if they are texts",
        value=present.format if present else "",
        placeholder="2026-01-31, or for example %d/%m/%Y",
        key=key_of("format", name, present),
    )
    make = _days_by_step if how == BY_STEP else _days_by_edges
    _offer(name, present, attempt(lambda: make(name, present, form.strip())))


def _days_by_step(name: str, present: Dates | None, form: str) -> Dates | None:
    typed = []
    stated = (present.first, present.last, present.step) if present else ("", "", "")
    labels = ("First day", "Last day", "In groups of")
    examples = ("2026-01-01", "2026-12-31", f"{', '.join(UNITS)}, 5 years")
    columns = st.columns(3)
    for column, label, value, example in zip(columns, labels, stated, examples, strict=True):
        key = key_of(label, name, present)
        typed.append(column.text_input(label, str(value), placeholder=example, key=key).strip())
    first, last, step = typed
    if not first or not last:
        st.caption("Give the first and the last day, from public knowledge.")
        return None
    return Dates(first, last, step, (), form)


def _days_by_edges(name: str, present: Dates | None, form: str) -> Dates | None:
    edges = present.edges if present else ()
    text = st.text_area(
        "The days on which groups begin, in order, and the last day of all",
        value=", ".join(map(str, edges)),
        key=key_of("edges", name, present),
        height=100,
        placeholder="2026-01-01, 2026-03-15, 2026-12-31",
    )
    return bins.dates_from_text(text, form) if text.strip() else None


# ---- Levels: groups that tables have in place of the values.


LEVELS_HERE = "levels"
LEVEL_HELP = (
    "Tables can have the groups of a level in place of the values, and have less noise then: pick "
    "age@adult on the Tables page. Every value lies in one group. Numbers: a width (five-year: 5) "
    "or bands (adult: 0-17, 18+); dates: a longer step (year: year); any values: lists, such as "
    "continent: Europe = DE, FR; America = US."
)


def level_editor(attribute: Attribute) -> None:
    """The levels of an attribute, one a line, and the groups that each has."""
    key = f"levels of {attribute.name} {hash(attribute)}"

    def use_levels() -> None:
        text = st.session_state[key]
        change_codebook(
            LEVELS_HERE, lambda: domain_with_level_lines(current().domain, attribute.name, text)
        )

    with st.expander("Levels: groups that tables can have in place of the values"):
        show_messages(LEVELS_HERE)
        st.text_area(
            "Levels, one a line: name: groups",
            value=lines_of_levels(attribute),
            key=key,
            height=100,
            placeholder="adult: 0-17, 18+\nfive-year: 5",
            help=LEVEL_HELP,
        )
        st.button("Use these levels", on_click=use_levels)
        for level in attribute.all_levels:
            st.caption(
                f"{escaped(attribute.name)}@{escaped(level.name)}: "
                f"{escaped(plural(len(level.labels), 'group'))}, "
                f"{escaped(shown_few(level.labels))}"
            )


# ---- Cells for missing values, behind numbers and dates.


def missing_editor(name: str, values: Numbers) -> None:
    """The values that stand for no answer, one a line, each with the label of its cell."""
    key = f"missing of {name} {hash(values)}"
    st.text_area(
        "Missing values, one a line: the value in the data = its label",
        value=lines_of_missing(values),
        key=key,
        height=100,
        placeholder="-9 = refused\n = not stated",
        help="Records with such a value are counted in a cell of its own, which no range and no "
        "cumulative sum holds. A line that begins with = stands for empty cells. Values with one "
        "label share a cell.",
    )

    def use_missing() -> None:
        text = st.session_state[key]
        change_codebook(
            BINS_HERE,
            lambda: domain_with_values(current().domain, name, with_missing_lines(values, text)),
        )

    st.button("Use these missing values", on_click=use_missing)
