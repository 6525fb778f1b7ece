"""Where a release goes and where it is booked; what is wrong with a path is said beside it."""

import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import streamlit as st

from pages.components.plan.objective import LETTERS, UNITS
from pages.components.release.form import ReleaseForm
from pages.components.shared.files import new_folder_input
from pages.components.shared.session import bound, escaped
from rpexplore.analysis.budget_units import (
    limit_for,
    limit_in_rho,
    restated_limit,
    stated_delta,
    stated_unit,
)
from rpexplore.analysis.glossary import meaning
from rpexplore.common.files import nearest_folder
from rpexplore.common.installation import RELEASES
from rpexplore.common.numbers import shown_few
from rpexplore.common.text import begins_formula, data_size
from rpexplore.data.source import Source
from rpexplore.domain.domain import texts_like_formulas
from rpexplore.errors import LedgerError, RpexploreError
from rpexplore.planning.plan import Plan
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.packed_tables import packed_tables
from rpexplore.releases.release import can_be_resumed
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.serving.release_tasks import is_writable, usable_ledger, usual_ledger

LIMIT_UNITS = ("rho", "epsilon")
_STATED = "limit stated in"  # the unit that the typed limit is in


def output_folder(form: ReleaseForm, *, parquet_only: bool, file_per_table: bool) -> Path | None:
    """The new folder for the release; None, with the reason on the screen, if it cannot be."""
    output = new_folder_input(
        "Folder for the release",
        "output",
        RELEASES / f"{_stem_of(form.data)}-{datetime.now(UTC).date().isoformat()}",
        lambda name: os.path.lexists(name) or can_be_resumed(name),
    )
    if output is None:
        return None
    if can_be_resumed(output):
        st.info(
            "A run into that folder was stopped after its noise was drawn: finish it below, or "
            "empty the field to get a new name for another run."
        )
        return None
    folder = nearest_folder(output)
    if not (os.path.isdir(folder) and is_writable(folder)):
        st.error(escaped(f"Nothing can be written to {folder}; choose another folder."))
        return None
    needed = PlanSteps.of(form.planned).n_bytes(
        parquet_only=parquet_only, file_per_table=file_per_table
    )
    free = shutil.disk_usage(folder).free
    st.caption(
        f"{escaped(str(output))} (a new folder, in which nothing is yet). The release needs about "
        f"{data_size(needed)}; {data_size(free)} are free there."
    )
    if needed > free:
        st.warning("The release will hardly fit there; choose another disk, or ask for less.")
    return output


def parquet_only_input() -> bool:
    """Whether to leave out CSV files."""
    return st.checkbox(
        "Parquet files only",
        key="parquet only",
        persist_state="session",
        help="CSV files take about half of the time of a release and two thirds of its disk. "
        "Parquet files are read by R, Python, DuckDB and many others; spreadsheets need CSV.",
    )


def pilot_only_input(planned: Plan) -> bool:
    """Whether to stop behind the pilot and look at the forecast; asked where there is a pilot."""
    tables = planned.part("tables")
    if tables is None or tables.pilot is None:
        return False
    if tables.then is not None:
        st.caption(
            "The run books the whole plan, measures its pilot, and stops. You then see the plan of "
            "the rest, made from the pilot's figures, and accept it at no further cost."
        )
        return True
    return st.checkbox(
        "Stop after the pilot",
        key="pilot only",
        persist_state="session",
        help="The whole run is booked, and its one-way tables are drawn and released in a folder "
        "of their own. A forecast from their figures then says how good all tables will be; going "
        "on costs nothing further.",
    )


def file_per_table_input(planned: Plan) -> bool:
    """Whether each table gets files of its own; asked where there are many."""
    tables = planned.part("tables")
    n_packed = 0 if tables is None else len(packed_tables(tables.workload))
    return n_packed > 0 and st.checkbox(
        "A file for each table",
        key="file per table",
        persist_state="session",
        help=f"Otherwise {n_packed:,} tables are in one Parquet file, tables.parquet, at a "
        "fraction of the time and disk. Results and every export read both alike.",
    )


def escape_formulas_input(planned: Plan) -> bool:
    """Whether to escape formulas in CSV files; asked where there is a text that looks like one."""
    counts = planned.part("counts")
    names = counts.queries.names if counts is not None else ()
    texts = [*filter(begins_formula, names), *texts_like_formulas(planned.domain)]
    return bool(texts) and st.checkbox(
        "Escape formulas in CSV files",
        key="escape formulas",
        persist_state="session",
        help=escaped(
            f"A spreadsheet takes {shown_few(texts)} for formulas; an apostrophe before them keeps "
            "it from that."
        ),
    )


def _stem_of(data: Source) -> str:
    """What the records are called, as the beginning of a folder's name."""
    name = re.sub(r"\.(csv|csv\.gz|parquet|pq)$", "", data.name.rpartition("/")[2])
    return re.sub(r"[^\w-]+", "-", name.partition(" at ")[0]).strip("-") or "release"


def ledger_input(form: ReleaseForm) -> Ledger | None:
    """The ledger that the release is booked in; None while none can be used."""
    usual, where = usual_ledger(form.data)
    typed = st.text_input(
        "Ledger",
        key="ledger",
        persist_state="session",
        placeholder=where,
        help=f"{meaning('Ledger')} The path of a file; or postgresql:NAME, a ledger in PostgreSQL "
        "by the name of a connection.",
    )
    usable = form.attempt(lambda: [usable_ledger(form.data, typed, usual)])
    if usable is None:
        return None
    (ledger,) = usable
    if ledger is not None:
        st.caption(escaped(ledger.name))
    else:
        form.wait(
            "Name the ledger to go on: a database has no folder for it. Use the same one for every "
            "release of these records."
        )
    return ledger


def account_of(form: ReleaseForm, ledger: Ledger) -> Account | None:
    """What the ledger holds on the records; None, and the page says why, if it cannot be read."""

    def read() -> Account:
        try:
            return ledger.account(form.data)
        except OSError as error:
            raise LedgerError(
                f"The ledger cannot be read ({error.strerror}); check its path."
            ) from error

    return form.attempt(read)


def limit_input(form: ReleaseForm, account: Account | None) -> Fraction | None:
    """The budget limit that was typed, as ρ of the plan's unit; None where there is none.

    One is offered before the first run of the records.
    """
    budget = form.planned.budget
    delta, stated = stated_delta(budget), stated_unit(budget)
    unit = st.session_state.setdefault(_STATED, stated if stated in LIMIT_UNITS else "rho")
    st.segmented_control(
        "Budget limit, stated as",
        LIMIT_UNITS,
        format_func=UNITS.__getitem__,
        required=True,
        help=f"{meaning('Budget limit')} Noted in the ledger at the first run.",
        **bound("limit unit", unit, lambda chosen: _restate_limit(chosen, delta)),
    )
    typed = st.text_input(
        "Budget limit, ρ" if unit == "rho" else f"Budget limit, ε at δ = {delta}",
        key="limit",
        persist_state="session",
        placeholder="no limit",
    ).strip()
    if typed:
        return form.attempt(lambda: limit_in_rho(typed, unit, delta))
    if account is not None and not account.entries and account.limit_record_rho is None:
        st.markdown(
            "This is the first run on these records. Without a budget limit, later runs may spend "
            "any amount. Set one now, with room for:"
        )
        with st.container(horizontal=True):
            for room, times in (("This run only", 1), ("One more like it", 2)):
                number = limit_for(times * form.planned.rho, unit, delta)
                label = f"{room}: {LETTERS[unit]} = {number}"
                st.button(label, on_click=_take_limit, args=(number,))
        if unit != "rho":
            st.caption(
                "A limit adds up ρ, and this is the ε that ρ alone proves; the noise of a single "
                "run may prove a smaller one."
            )
    return None


def _restate_limit(unit: str | None, delta: str) -> None:
    """State a typed limit in the unit just chosen, never as more; back again it is as typed."""
    typed, before = st.session_state.get("limit", ""), st.session_state[_STATED]
    if unit in (None, before):  # of two quick runs the browser may miss what the first has set
        return
    st.session_state[_STATED] = unit
    number = st.session_state.get("limit restated", {}).get((typed, before, delta))
    with suppress(RpexploreError):  # what is no limit stays as typed, and is refused as before
        if number is None:
            number = restated_limit(typed, before, unit, delta)
        st.session_state["limit restated"] = {(number, unit, delta): typed}
        _take_limit(number)


def _take_limit(number: str) -> None:
    st.session_state["limit"] = number
