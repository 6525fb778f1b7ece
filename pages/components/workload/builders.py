"""A line of tables on the Tables page: which tables there are, and whether they fit."""

import shutil
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.session import bound, change, current, escaped, kept
from rpexplore.analysis import measures, workload_grid
from rpexplore.analysis.glossary import meaning
from rpexplore.common.files import nearest_folder
from rpexplore.common.installation import RELEASES
from rpexplore.common.text import describe_count, needed_number_of, number_text, plural
from rpexplore.planning.plan import Plan
from rpexplore.releases.feasibility import Fit, ReleaseSize, Remedy, computer_memory
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import rows_of_line, with_line_settings
from rpexplore.serving.sessions import plans_only
from rpexplore.workload.table_text import tables_from_text, texts_of_tables
from rpexplore.workload.targets import NOTATIONS, Target

# ---- A line: the quick builders and what narrows them, or a list; weight, target; what it gives.


NAMES = {
    "up_to": "Up to k-way",
    "of_order": "Exactly k-way",
    "at_most_cells": "Up to n cells",
    "listed": "My own list",
}
HERE = "workload"
MOST_LISTED = 2000


def which_tables(number: int) -> None:
    """What chooses the tables of a line, and their weight and target."""
    line = current().request.lines[number]
    editor = _LineEditor(number)
    with st.container(key="inputs"):
        st.radio(
            "Which tables?",
            list(NAMES),
            format_func=NAMES.__getitem__,
            **editor.bound("kind", line.kind, editor.set_kind),
        )
        with st.container(gap="small"):
            if line.kind == "listed":
                editor.own_list()
            else:
                editor.numbers()
        if line.kind != "listed":
            with st.container(gap="small"):
                editor.attributes()
        with st.container(gap="small"):
            editor.weight_and_target()


class _LineEditor:
    """The widgets of one line of tables, which have the keys of the line."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.line = current().request.lines[number]

    def key(self, name: str) -> str:
        return name if self.number == 0 else f"{name} {self.number + 1}"

    @property
    def typed(self) -> str | None:
        """The list as it was typed, while it cannot be used."""
        return (st.session_state.get("typed list") or {}).get(self.number)

    def type(self, text: str | None) -> None:
        typed = st.session_state.get("typed list") or {}
        st.session_state["typed list"] = typed | {self.number: text}

    def bound(self, name: str, value: Any, take: Any) -> dict[str, Any]:
        return bound(self.key(name), value, take)

    def _changed(self, **fields: Any) -> Scenario:
        lines = list(current().request.lines)
        lines[self.number] = replace(lines[self.number], **fields)
        return current().with_lines(lines)

    def set(self, **fields: Any) -> None:
        change(HERE, lambda: self._changed(**fields))

    def set_kind(self, kind: str) -> None:
        listed = self.line.listed
        if kind == "listed" and not listed:
            listed = workload_grid.first_list(current(), MOST_LISTED)
        self.set(kind=kind, listed=listed)

    def numbers(self) -> None:
        """The numbers of a builder."""
        line, domain = self.line, current().domain
        if line.kind == "at_most_cells":
            self._number("Cells in a table, at most", "cells", line.cells, min_value=1)
            return
        self._number(
            "Attributes in a table" + ("" if line.kind == "of_order" else ", at most"),
            "order",
            min(line.order, len(domain)),
            min_value=0,
            max_value=len(domain),
        )
        self._number(
            "Cells in a table, at most",
            "most_cells",
            line.most_cells,
            min_value=1,
            value=None,  # it can be emptied
            placeholder="any",
        )

    def _number(self, label: str, field: str, present: int | None, **more: Any) -> None:
        def take(value: float | None) -> None:
            self.set(**{field: None if value is None else int(value)})

        st.number_input(label, step=1, **self.bound(field, present, take), **more)

    def attributes(self) -> None:
        """The attributes that the tables may have, and those that each has."""
        for label, field, placeholder in (
            ("Made of these attributes only", "only", "all attributes"),
            ("With all of these attributes", "containing", "none in particular"),
        ):
            st.multiselect(
                label,
                current().domain.with_levels.names,
                placeholder=placeholder,
                **self.bound(field, list(getattr(self.line, field)), partial(self._take, field)),
            )

    def _take(self, field: str, names: list[str]) -> None:
        self.set(**{field: current().domain.with_levels.in_order(names)})

    def weight_and_target(self) -> None:
        """A weight and a target for all tables of the line; blank where its tables differ."""
        scenario = current()
        rows = rows_of_line(scenario, self.line)
        weights = set(scenario.workload.weights[rows].tolist())
        targets, which = scenario.request.targets(scenario.workload)
        wanted = {str(targets[index]) if index >= 0 else "" for index in which[rows].tolist()}

        def take(of_weight: bool, typed: str) -> None:
            def changed() -> Scenario:
                given: float | Target | None = None
                if typed.strip():
                    given = (
                        needed_number_of(typed, "The weight", least=0.0)
                        if of_weight
                        else Target.parse(typed)
                    )
                return with_line_settings(current(), self.number, of_weight=of_weight, given=given)

            change(HERE, changed)

        for label, values, of_weight, help_text in (
            ("Weight of these tables", set(map(number_text, weights)), True, ""),
            ("Target of these tables", wanted, False, f" Type {NOTATIONS}."),
        ):
            st.text_input(
                label,
                placeholder="they differ" if len(values) > 1 else "none",
                help=meaning("Weight" if of_weight else "Target") + help_text,
                **self.bound(
                    label, min(values) if len(values) == 1 else "", partial(take, of_weight)
                ),
            )

    def take_list(self) -> None:
        """Apply the typed list; a refused one is kept to be mended, and says so on every visit."""
        text = self.typed
        if text is not None and self.line.kind == "listed":
            done = change(
                HERE,
                lambda: self._changed(listed=tables_from_text(current().domain.with_levels, text)),
                otherwise="The plan still uses the list before this one.",
            )
            self.type(None if done else text)

    def own_list(self) -> None:
        """The list as text."""
        listed, refused = self.line.listed, self.typed
        domain = current().domain.with_levels
        if len(listed) > MOST_LISTED and refused is None:
            st.info(
                f"The list has {plural(len(listed), 'table')}, too many to edit as text. Add "
                "tables in lines of their own, or choose another way above to start afresh."
            )
        else:
            text = "\n".join(texts_of_tables(domain, listed)) if refused is None else refused
            (total,) = texts_of_tables(domain, [()])
            st.text_area(
                "One table a line, its attributes separated by commas or ×; "
                f"{total} stands for the total",
                height=120 if len(listed) < 4 else 220,
                **self.bound("listed", text, self.type),
            )


def take_lists() -> None:
    """Apply typed lists, of all lines; call it before anything is drawn."""
    for number in range(len(current().request.lines)):
        _LineEditor(number).take_list()


# ---- How large the tables are, and whether they can be planned and released here.


def fit() -> Fit:
    """Whether the tables can be planned, and whether their release fits this computer."""
    if plans_only():  # where it is released nobody knows here
        return Fit.of(current().workload, free_disk=float("inf"), memory=float("inf"))
    free_disk = shutil.disk_usage(nearest_folder(RELEASES)).free
    return Fit.of(current().workload, free_disk=free_disk, memory=computer_memory())


def size(planned: Plan | None) -> None:
    """Tables, cells, the largest table, what will be measured, and what a release takes."""
    workload = current().workload
    totals, measured, written = measures.totals(workload), "", None
    if planned is not None:
        if (tables := planned.part("tables")) is not None:
            measured = f", computed from {plural(len(tables.closure), 'noisy measurement')}"
        written = kept(bytes_written, planned)
    st.caption(
        escaped(
            f"In all {plural(totals.tables, 'table')} with {describe_count(totals.cells)} cells, "
            f"at most {describe_count(totals.largest_cells)} in one ({totals.largest_table})"
            f"{measured}. {ReleaseSize.of(workload).text(written)} Reading the records comes on "
            "top. Sums of cells of a table need no table of their own."
        )
    )


def bytes_written(planned: Plan) -> float:
    """About how much its release writes, as the page Release says it."""
    return PlanSteps.of(planned).n_bytes(parquet_only=False)


def narrow(remedy: Remedy) -> None:
    request = current().request.within(most_cells=remedy.most_cells, most_order=remedy.most_order)
    change(HERE, lambda: current().replaced(request=request))


def obstacles(fit: Fit) -> None:
    """What is in the way, and a button that clears it where one limit can; else what it takes."""
    for sentence in fit.obstacles:
        (st.warning if fit.can_be_planned else st.error)(escaped(sentence))
    if fit.remedy is not None:
        limit = f"tables of at most {fit.remedy.limit}"
        drops = f"drops {fit.remedy.dropped:,} of {plural(len(current().workload), 'table')}"
        if any(line.kind == "listed" for line in current().request.lines):
            st.markdown(f"Everything would fit with {limit} ({drops}).")
        else:
            st.button(f"Keep {limit} ({drops})", on_click=narrow, args=(fit.remedy,))
    if fit.obstacles:
        st.caption(
            "Tables of fewer attributes are smaller, and so are those of attributes with fewer "
            "values: the Data page can group them."
        )
