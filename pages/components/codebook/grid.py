"""The attributes as a grid on the Codebook page, and what is still missing of them."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.components.shared.codebook_notices import values_from_records_warning
from pages.components.shared.editors import apply_cells, revision
from pages.components.shared.files import download
from pages.components.shared.session import change_domain, current, escaped, show_messages
from rpexplore.domain.domain import Domain
from rpexplore.domain.provenance import unfinished
from rpexplore.scenarios import codebook_grid, codebook_import

HERE = "codebook"
GRID = "codebook grid"  # its messages stand below it


def change_codebook(slot: str, make: Callable[[], Domain], **options: Any) -> bool:
    """`change_domain`, after which the grid forgets what was typed: it would come on top."""
    done = change_domain(slot, make, **options)
    if done:
        revision(GRID, step=True)
    return done


def add_attribute() -> None:
    change_codebook(HERE, lambda: codebook_grid.with_new_attribute(current().domain))


def apply_typed() -> None:
    """Apply what was typed into the grid; what cannot be used says why and stays there."""
    domain = current().domain

    def apply(cells: dict[int, dict[str, Any]]) -> Sequence[str]:
        edited, renamed, refused = codebook_grid.domain_from_grid(domain, cells)
        change_domain(GRID, lambda: edited, renamed=renamed)
        return refused

    apply_cells(GRID, GRID, apply)
    if len(current().domain) != len(domain):
        revision(GRID, step=True)


def grid() -> None:
    """The attributes, editable, and what is still missing of them."""
    domain = current().domain
    columns = {
        "name": st.column_config.TextColumn("Name in the data", width=130, required=True),
        "label": st.column_config.TextColumn("Label", width=170),
        "kind": st.column_config.SelectboxColumn(
            "Kind", width=125, options=codebook_grid.KINDS, required=True
        ),
        "size": st.column_config.NumberColumn(
            "Values", width=65, disabled=True, format="localized"
        ),
        "values": st.column_config.ListColumn("Categories, or edges of bins", width=230),
        "minimum": st.column_config.NumberColumn("Lowest", width=75, step=1, format="%d"),
        "maximum": st.column_config.NumberColumn("Highest", width=80, step=1, format="%d"),
        "step": st.column_config.NumberColumn("In groups of", width=105, step=1, format="%d"),
        "remove": st.column_config.CheckboxColumn("Remove", width=75),
    }
    st.data_editor(
        codebook_grid.codebook_grid(domain),
        key=revision(GRID),
        hide_index=True,
        height="content" if len(domain) <= 15 else 560,
        placeholder="",
        alt="Attributes of the codebook, editable",
        column_config=columns,
        column_order=list(columns),
    )
    show_messages(GRID)
    if waiting := unfinished(domain):
        st.warning(
            f"No values yet: {escaped(', '.join(waiting))}. Type the categories, or the lowest and "
            "highest value, into the grid, or use the box below it. Until then each of them counts "
            "as a single value, and a release would refuse the records."
        )
    values_from_records_warning(domain)


def downloads() -> None:
    domain = current().domain
    problem = codebook_import.why_no_csv(domain)
    with st.container(horizontal=True):
        st.button("Add an attribute", icon=":material/add:", on_click=add_attribute)
        download("codebook.json", lambda: domain.text("codebook.json"))
        download(
            "codebook.csv",
            lambda: domain.text("codebook.csv"),
            disabled=bool(problem),
            help=escaped(problem) or None,
        )
