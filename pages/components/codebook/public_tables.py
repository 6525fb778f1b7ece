"""What is public of the records: their number, public tables, and the design of their survey."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from pages.components.shared.expected_counts import HERE, design_inputs, expected_total_input
from pages.components.shared.files import upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import attempt, change, current, escaped, show_messages
from rpexplore.common.text import count_of, describe_count, number_of, plural
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.expected_counts import ExpectedCounts, title_of
from rpexplore.domain.expected_counts_file import public_table_from_csv
from rpexplore.domain.public_tables import PublicTable, without_margin
from rpexplore.errors import WorkloadError

_OPEN = "public table"  # of the session: (index of the table, or −1 for a new one; attribute)
_GRID = "counts of public table"
_MOST_TYPED = 2_000  # values of an attribute
_MOST_OFFERED = 8


def public_inputs() -> None:
    """Number of records, public tables and design; all are kept with the scenario."""
    st.info(
        "Type or load only what is **already public**: a census total, earlier published tables. "
        "It is saved with the scenario and named in the report. Never take it from the "
        "confidential records: that would publish something about them without any noise."
    )
    left, right = st.columns(2)
    with left:
        expected_total_input()
    with right:
        upload(
            "Add a public table: CSV with some attributes or levels as columns, and count or share",
            ["csv"],
            "expected margin",
            _load,
            help="Lines before the header may say where it is from: # name: Census, # date: 2021, "
            "# source: Statistics Office.",
        )
    _list()
    _missing()
    _editor()
    design_inputs()
    show_messages(HERE)


def _load(content: bytes, name: str) -> None:
    _set(-1, lambda: public_table_from_csv(current().domain.with_levels, content, name))


def _set(place: int, make: Callable[[], PublicTable]) -> None:
    """Put a table in place of another one, or behind them all, and close the editor."""

    tables = current().public
    before, behind = (tables, ()) if place < 0 else (tables[:place], tables[place + 1 :])
    if change(HERE, lambda: current().with_public((*before, make(), *behind))):
        st.session_state[_OPEN] = None


def _remove(place: int) -> None:
    tables = current().public
    change(HERE, lambda: current().with_public((*tables[:place], *tables[place + 1 :])))
    st.session_state[_OPEN] = None


def _open(place: int, attribute: str = "") -> None:
    st.session_state[_OPEN] = (place, attribute)
    revision(_GRID, step=True)


def _list() -> None:
    """Each table with its source, and where they contradict each other."""
    for place, table in enumerate(current().public):
        counts = table.counts
        of = "shares" if table.is_shares else f"{describe_count(round(counts.total))} in all"
        by = f"by {escaped(title_of(counts.attributes))}, " if table.name else ""
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                f"**{escaped(table.citation)}**: {by}{plural(len(counts.counts), 'cell')}, {of}",
                width="content",
            )
            for label, act in (("Edit", _open), ("Remove", _remove)):
                key = f"{label} public table {place}"
                st.button(label, key=key, on_click=act, args=(place,), type="tertiary")
    public = attempt(lambda: current().public_tables)
    for sentence in () if public is None else public.contradictions:
        st.warning(escaped(sentence))


def _missing() -> None:
    """What would make forecasts better, each a click away."""
    scenario = current()
    workload = attempt(lambda: scenario.workload, show=lambda _: None)
    names = scenario.domain.names
    if workload is not None:
        names = tuple(workload.domain.names[index] for index in workload.used)
    if scenario.expected is None:
        st.caption("Forecasts need the number of records, or a public table that counts them.")
    missing = without_margin(scenario.domain, scenario.public, names)
    if not missing:
        return
    st.caption(
        "Nothing is public about these attributes, so forecasts have wide ranges. Add how many "
        f"{escaped(scenario.record_noun)} have each value."
    )
    with st.container(horizontal=True):
        for name in missing[:_MOST_OFFERED]:
            st.button(f"Add {escaped(name)}", key=f"add {name}", on_click=_open, args=(-1, name))
        if len(missing) > _MOST_OFFERED:
            st.caption(f"and {len(missing) - _MOST_OFFERED:,} more")


def _editor() -> None:
    """A table's name, date and source; of one attribute also its counts, as a grid."""
    opened = st.session_state.get(_OPEN)
    if opened is None:
        return
    place, name = opened
    known, tables = current().domain.with_levels, current().public
    if place >= len(tables) or (place < 0 and name not in known):
        return
    table = tables[place] if place >= 0 else None
    if table is not None and len(table.counts.attributes) == 1:
        name = table.counts.attributes[0]
    has_one = name in known
    attribute = known[name] if has_one else None
    if attribute is not None and attribute.size > _MOST_TYPED:
        st.caption(f"{escaped(name)} has too many values to be typed here; load a file.")
        attribute = None
        if table is None:
            return
    with st.form(revision(_GRID)):
        key = revision("fact of public table")
        facts = st.columns(3)
        typed = [
            column.text_input(label, getattr(table, field, ""), placeholder=hint, key=key + field)
            for column, (field, label, hint) in zip(
                facts,
                (
                    ("name", "Name", "Census"),
                    ("date", "Date", "2021, 2021-01 or 2021-01-31"),
                    ("source", "Source", "Statistics Office"),
                ),
                strict=True,
            )
        ]
        is_shares, frame = table is not None and table.is_shares, None
        if attribute is not None:
            is_shares = st.toggle("In per cent", is_shares, key=f"{key} per cent")
            frame = _grid(attribute, table)
        if st.form_submit_button("Save the table" if place >= 0 else "Add the table"):

            def made() -> PublicTable:
                counts = table.counts if table is not None else None
                if frame is not None and attribute is not None:
                    counts = _typed_counts(attribute, frame, is_shares)
                assert counts is not None
                called, date, source = typed
                return PublicTable(counts, called, date, source, is_shares=is_shares)

            _set(place, made)
            st.rerun()


def _grid(attribute: Attribute, table: PublicTable | None) -> pd.DataFrame:
    counts = [""] * attribute.size
    if table is not None:
        counts = [f"{count:.15g}" for count in table.counts.counts]
    frame = pd.DataFrame(
        {"value": attribute.stored_values(), "label": attribute.labels(), "count": counts}
    )
    return st.data_editor(
        frame if list(frame["value"]) != list(frame["label"]) else frame.drop(columns="label"),
        key=f"{revision(_GRID)} grid",
        hide_index=True,
        width=480,
        height=min(38 + 35 * attribute.size, 420),
        alt=f"Public counts by {attribute.name}, editable",
        placeholder="",
        column_config={
            "value": st.column_config.TextColumn(attribute.name, disabled=True),
            "label": st.column_config.TextColumn("Label", disabled=True),
            "count": st.column_config.TextColumn("Count or per cent"),
        },
    )


def _typed_counts(attribute: Attribute, frame: pd.DataFrame, is_shares: bool) -> ExpectedCounts:
    """The counts of the grid, which may have thousands separators, or the shares.

    Raises `WorkloadError` for a value without a count, or one that is no number.
    """
    read = number_of if is_shares else count_of
    values, counts = attribute.stored_values(), list[float]()
    for value, text in zip(values, frame["count"].fillna("").tolist(), strict=True):
        count = read(str(text), f"The count of {attribute.name} = {value}", least=0.0)
        if count is None:
            raise WorkloadError(
                f"{attribute.name} = {value} has no count; type 0 where there is nobody."
            )
        counts.append(count)
    return ExpectedCounts((attribute.name,), (tuple(values),), tuple(counts))
