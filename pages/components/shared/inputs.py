"""Inputs that pages share: grids, numbers, choices of tables and of a measure, required targets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components.shared.session import attempt, change_fields, current, kept, say
from rpexplore.analysis.cell_accuracy import tables_with_cells
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.measures import STANDARD_ERROR, VARIANCE, Measure
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.text import number_of, number_text
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.part_plan import TITLES
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.workload import Workload

# ---- Editors: grids whose cells are applied to the scenario in every run, and removable lines.


def apply_cells(
    name: str, slot: str, apply: Callable[[dict[int, dict[str, Any]]], Sequence[str]]
) -> None:
    """Apply what was typed into an editor since it was first drawn, and say what is refused.

    Call it in every run, before the editor is drawn: the values are absolute, and applying them
    again changes nothing. What cannot be used keeps its message as long as it stands in the grid,
    and is mentioned once more when the editor forgets it (its page is left, or for a new codebook).

    `apply` is given {row: {column: value}}, and returns why some of it is refused.
    """
    cells = dict(st.session_state.get(revision(name), {}).get("edited_rows", {}))
    refused = apply(cells) if cells else ()
    for reason in refused:
        say(slot, "error", f"{reason} This change is not in effect until it is mended.")
    if not cells:
        for reason in st.session_state.get(f"{name} refused", ()):
            say(slot, "warning", f"A change you had typed was given up: {reason}")
    st.session_state[f"{name} refused"] = refused


def removable(text: str, key: str, remove: Callable[[], None]) -> None:
    """A line of Markdown with a button that removes what it tells."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    line.markdown(text, width="content")
    line.button("Remove", key=key, on_click=remove, type="tertiary")


def revision(name: str, step: bool = False) -> str:
    """A key for an editor; another one after a step, which makes it forget what was typed."""
    st.session_state[f"{name} revision"] = st.session_state.get(f"{name} revision", 0) + step
    forgotten = st.session_state.get("typed forgotten", 0)
    return f"{name} {forgotten}.{st.session_state[f'{name} revision']}"


# ---- Views, of which only the open one is drawn; which one that is stands in the address.


def tabs(key: str, views: Mapping[str, Callable[[], None]]) -> None:
    """A tab for each view."""
    shown = st.tabs(list(views), key=key, bind="query-params")
    for tab, draw in zip(shown, views.values(), strict=True):
        if tab.open:
            with tab:
                draw()


# ---- A field for a number that need not be whole.
#
# In a browser's own field for numbers a decimal comma is lost, and 1,5 becomes 15.


def number_field(
    label: str,
    key: str,
    *,
    where: Any = st,
    value: float | None = None,
    least: float | None = None,
    most: float | None = None,
    **options: Any,
) -> float | None:
    """The number in a field; None while it is blank or, which the page says, no such number."""
    # As wide as the field: in a row it would take all that is left.
    field = where.container(width=options.get("width", "stretch"))
    typed = field.text_input(label, number_text(value), key=key, **options)
    with field:
        return attempt(lambda: number_of(typed, least=least, most=most))


# ---- Which tables of the workload to look at: one of them, or those with some attributes.


MOST_TITLES = 1000  # tables to choose from; of more, attributes are chosen


def table_input(workload: Workload, usual: int, key: str) -> int | None:
    """The chosen table; None, which the page explains, while none is. usual: chosen at first."""
    if len(workload) <= MOST_TITLES:
        titles = kept(tables_with_cells, workload)
        if not titles:
            st.info("The total is a single cell; choose tables with attributes.")
            return None
        # By title, which means the same table in every workload; a browser keeps what it shows.
        numbers = {title: number for number, title in titles.items()}
        title = st.selectbox(
            "Table", list(numbers), list(titles).index(usual) if usual in titles else 0, key=key
        )
        return numbers[title]
    typed = st.multiselect(
        "The attributes of the table",
        workload.domain.names,
        workload.tables[usual],
        key=f"{key}, by attributes",
    )
    if not typed:
        st.info("The total is a single cell; choose a table with attributes.")
        return None
    return attempt(lambda: workload.position(typed), show=st.info)


def attributes_filter(workload: Workload, key: str, **options: Any) -> list[str]:
    """The attributes that a list of tables is narrowed to, of those that some table has."""
    names = [workload.domain.names[index] for index in workload.used]
    chosen = st.session_state.get(key, [])
    if not set(chosen) <= set(names):  # the tables that had these are gone
        st.session_state[key] = [name for name in chosen if name in names]
    return st.multiselect("Only tables with all of these attributes", names, key=key, **options)


# ---- The part of the plan that the pages under Compare look at.


def part_input() -> str:
    """Its kind, chosen where the plan has several; the choice holds on all pages."""
    kinds = current().kinds or ("tables",)
    if len(kinds) == 1:
        return kinds[0]
    kind = st.segmented_control(
        "Part of the plan",
        kinds,
        default=kinds[0],
        format_func=TITLES.__getitem__,
        required=True,
        key="part compared",
        persist_state="session",
    )
    return kind if kind in kinds else kinds[0]


# ---- The measure in which the pages that look further tell the accuracy.


TERMS = ("Standard error", "Variance", "Margin of error")


def measure_input() -> Measure:
    """The choice, which holds on all pages."""
    by_title = {measure.title: measure for measure in (STANDARD_ERROR, VARIANCE)}
    title = st.segmented_control(
        "Accuracy as",
        list(by_title),
        default=STANDARD_ERROR.title,
        required=True,
        key="accuracy",
        bind="query-params",
        help=" ".join(meaning(term) for term in TERMS),
    )
    return by_title.get(title or "", STANDARD_ERROR)


# ---- The way out where a required target is missed by an objective that does not see to it.


def required_first_button(planned: TablePlan, here: str) -> None:
    """Offered while it would change something. here: where refusals of the change are told."""
    counts = target_counts(planned)
    if counts.required_met == counts.required or current().loss.meets_required_targets:
        return
    st.button(
        "Put required targets first",
        help="At the same budget: required targets are met if the budget allows it, and the error "
        "of the other tables is then as small as it can be.",
        on_click=change_fields,
        args=(here,),
        kwargs={"loss": SumWithinTargets(getattr(current().loss, "weighting", "equal"))},
        key=f"required first, {here}",
    )
