"""How large the tables are, and whether they can be planned and released here."""

import shutil

import streamlit as st

from pages.components.shared.files import RELEASES, nearest_folder
from pages.components.shared.serving import plans_only
from pages.components.shared.session import change, current, escaped
from rpexplore.analysis import forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.common.formatting import describe_count, plural
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.feasibility import Fit, ReleaseSize, Remedy, computer_memory

HERE = "workload"


def fit() -> Fit:
    """Whether the tables can be planned, and whether their release fits this computer."""
    if plans_only():  # where it is released nobody knows here
        return Fit.of(current().workload, free_disk=float("inf"), memory=float("inf"))
    free_disk = shutil.disk_usage(nearest_folder(RELEASES)).free
    return Fit.of(current().workload, free_disk=free_disk, memory=computer_memory())


def sizes(planned: TablePlan | None) -> None:
    """Tables, cells, largest table, and what will be measured."""
    totals = forecast.totals(current().workload)
    st.metric("Tables", f"{totals.tables:,}")
    st.metric("Cells in all tables", describe_count(totals.cells))
    st.metric(
        "Cells of the largest table",
        describe_count(totals.largest_cells),
        help=f"The largest table is {escaped(totals.largest_table)}.",
    )
    if planned is not None:
        st.metric("Tables to measure", f"{len(planned.closure):,}", help=meaning("Residual"))


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
        if current().request.kind == "listed":
            st.markdown(f"Everything would fit with {limit} ({drops}).")
        else:
            st.button(f"Keep {limit} ({drops})", on_click=narrow, args=(fit.remedy,))
    if fit.obstacles:
        st.caption(
            "Tables of fewer attributes are smaller, and so are those of attributes with fewer "
            "values: the Codebook page can group them."
        )


def release_size() -> None:
    """What a release of the tables takes."""
    st.caption(f"{ReleaseSize.of(current().workload).text} Reading the records comes on top.")
