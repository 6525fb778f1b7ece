"""Where a release goes and where it is booked; what is wrong with a path is said beside it."""

import os
import re
import shutil
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import streamlit as st

from pages.components.shared.paths import RELEASES, nearest_folder, path_of
from pages.components.shared.session import escaped
from rpexplore.common.exact_numbers import exact_fraction
from rpexplore.common.formatting import data_size
from rpexplore.data.source import Source
from rpexplore.errors import RpexploreError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.ledger import FILENAME, Account, Ledger
from rpexplore.releases.release import can_be_resumed, run_of


def output_folder(planned: ReleasePlan, data: Source) -> Path | None:
    """The new folder for the release; None, with the reason on the screen, if it cannot be."""
    if not st.session_state.get("output"):
        st.session_state["output"] = _new_name(data)
    output = path_of(st.text_input("Folder for the release", key="output", persist_state="session"))
    if os.path.lexists(output):
        st.error(
            "There is something at that path already, and a release is never overwritten; name "
            "another folder, or empty the field to get a new name."
        )
        return None
    if can_be_resumed(output):
        st.info(
            "A run into that folder was stopped after its noise was drawn: finish it below, or "
            "empty the field to get a new name for another run."
        )
        return None
    folder = nearest_folder(output)
    if not (os.path.isdir(folder) and _writable(folder)):
        st.error(escaped(f"Nothing can be written to {folder}; choose another folder."))
        return None
    needed = run_of(planned).n_bytes
    free = shutil.disk_usage(folder).free
    st.caption(
        f"{escaped(str(output.absolute()))} (a new folder, in which nothing is yet). The release "
        f"needs about {data_size(needed)}; {data_size(free)} are free there."
    )
    if needed > free:
        st.warning("The release will hardly fit there; choose another disk, or ask for less.")
    return output


def ledger_of(data: Source, sample: bool) -> tuple[Ledger, Account] | None:
    """The ledger and what it holds on the records; None, with the reason on the screen, without."""
    typed = st.text_input(
        "Ledger file",
        key="ledger",
        persist_state="session",
        placeholder=_usual_ledger(data, sample),
        help="Every run is entered there before its noise is drawn, with what it costs.",
    )
    is_made = False  # whether its folder is made when it is needed
    if typed.strip():
        ledger = Ledger(path_of(typed))
    elif data.home is None:
        st.info(
            "Name the ledger file to go on: a database has no folder for it. Use the same one for "
            "every release of these records."
        )
        return None
    else:
        # The sample may be part of an installed package, which is no place for one's own files. But
        # where the command line has booked a run on it already, that is its account.
        ledger = Ledger.beside(data)
        if sample and not ledger.path.exists():
            ledger, is_made = Ledger(RELEASES / FILENAME), True
    path = ledger.path
    if not is_made and not os.path.isdir(path.parent):
        st.error(escaped(f"There is no folder {path.parent} for the ledger; check the path."))
        return None
    is_new = not os.path.lexists(path)
    if os.path.isdir(path) or not (_writable(nearest_folder(path)) and (is_new or _writable(path))):
        st.error(escaped(f"The ledger {path} cannot be written; name another file."))
        return None
    try:
        account = ledger.account(data)
    except (RpexploreError, OSError) as error:
        st.error(escaped(str(error)))
        return None
    st.caption(escaped(str(path)))
    return ledger, account


def _usual_ledger(data: Source, sample: bool) -> str:
    if sample:
        return "beside the releases"
    return "/data/ledger.sqlite" if data.home is None else "beside the records"


def limit_input() -> tuple[bool, Fraction | None]:
    """Whether the budget limit that was typed is valid, and the limit (ρ of the plan's unit)."""
    typed = st.text_input(
        "Budget limit: the total ρ that all releases of these records may cost",
        key="limit",
        persist_state="session",
        placeholder="no limit",
        help="Noted in the ledger at the first run; runs beyond it are refused.",
    ).strip()
    try:
        limit = exact_fraction(typed, "The budget limit") if typed else None
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return False, None
    if limit is not None and limit <= 0:
        st.error(escaped(f"The budget limit must be a positive ρ, got {typed}."))
        return False, None
    return True, limit


def _new_name(data: Source) -> str:
    """A folder for the release that is not there yet."""
    name = re.sub(r"\.(csv|csv\.gz|parquet|pq)$", "", data.name.rpartition("/")[2])
    name = re.sub(r"[^\w-]+", "-", name.partition(" at ")[0]).strip("-") or "release"
    stem = f"{name}-{datetime.now(UTC).date().isoformat()}"
    names = (str(RELEASES / (stem + (f"-{n}" if n > 1 else ""))) for n in range(1, 1000))
    return next(name for name in names if not os.path.lexists(name) and not can_be_resumed(name))


def _writable(path: Path) -> bool:
    mode = os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
    return os.access(path, mode)
