"""Release: run the plan on records, once, and look at the noisy tables."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from pages._records import data_source, other_categories
from pages._release_view import account_line, finished_run, run_in_progress
from pages._run import Run
from pages._session import escaped, plan
from rpexplore.plan import Plan
from rpexplore.release import Progress, Release, release
from rpexplore.words import count_in_words, plural, rounded


def new_name(data: Path) -> str:
    """A folder for the release that is not there yet."""
    day = datetime.now(UTC).date().isoformat()
    names = (f"releases/{data.stem}-{day}" + (f"-{n}" if n > 1 else "") for n in range(1, 1000))
    return next(name for name in names if not Path(name).exists())


def start(work: Callable[[Progress], Release]) -> None:
    """Begin the run, unless one was begun already: a second click comes here too."""
    if "run" not in st.session_state:
        st.session_state["run"] = Run(work)


def set_up(planned: Plan) -> None:
    """Everything to be decided before a run, and the button."""
    data = data_source()
    other = other_categories(planned)
    if data is None:
        st.info("Name the file with the records to go on.")
        return
    st.subheader("Where to write, and what it costs")
    if not st.session_state.get("output"):
        st.session_state["output"] = new_name(data)
    output = Path(
        st.text_input("Folder for the release", key="output", persist_state="session").strip()
    ).expanduser()
    st.caption(f"{escaped(str(output.absolute()))} (a new folder, in which nothing is yet)")
    with st.expander("Ledger and cap"):
        ledger = st.text_input(
            "Ledger file",
            key="ledger",
            persist_state="session",
            placeholder="beside the records",
            help="Every run is entered there before its noise is drawn, with what it costs.",
        )
        cap = st.text_input(
            "Cap: the total ρ that all releases of these records may cost",
            key="cap",
            persist_state="session",
            placeholder="no cap",
            help="Noted in the ledger at the first run; runs beyond it are refused.",
        )
    affordable = account_line(planned, data, ledger.strip() or None)
    taken = output.exists()
    if taken:
        st.error("There is something in that place already, and a release is never overwritten.")
    st.button(
        f"Run the release: spend ρ = {rounded(planned.rho, 4, 'up')}",
        type="primary",
        disabled=taken or not affordable,
        on_click=start,
        args=(
            lambda progress: release(
                planned,
                data,
                output,
                other=other,
                ledger=ledger.strip() or None,
                cap_rho=cap.strip() or None,
                progress=progress,
            ),
        ),
    )


st.title("Release")
run: Run | None = st.session_state.get("run")
if run is not None and run.is_going:
    run_in_progress()
elif run is not None:
    finished_run(run)
else:
    st.markdown(
        "The plan is run on the records **once**: they are counted, noise is added, and noisy "
        "tables with their intervals are written to a new folder. What it costs is entered in a "
        "ledger first. Nothing leaves this computer."
    )
    planned = plan()
    if planned is not None:
        cells = count_in_words(sum(planned.workload.exact_cells.tolist()))
        st.markdown(
            f"The plan: {plural(len(planned.workload), 'table')} with {cells} cells, ρ = "
            f"{rounded(planned.rho, 4, 'up')} for {planned.budget.unit}."
        )
        set_up(planned)
