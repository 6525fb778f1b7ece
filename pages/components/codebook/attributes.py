"""The attributes as a grid on the Data page, impossible combinations, and areas."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.components.areas.study import is_read
from pages.components.shared.area_walk import area_levels
from pages.components.shared.files import download
from pages.components.shared.inputs import apply_cells, revision
from pages.components.shared.session import (
    bound,
    change,
    change_domain,
    current,
    escaped,
    show_messages,
)
from pages.components.shared.texts import values_from_records_warning
from rpexplore.analysis.glossary import meaning
from rpexplore.domain.domain import Domain, unfinished
from rpexplore.domain.values import example_of
from rpexplore.scenarios import codebook_grid, codebook_import
from rpexplore.scenarios.codebook_import import combinations_in_words, domain_with_lines, lines_of

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
        "values": st.column_config.ListColumn("Categories, or edges", width=230),
        "minimum": st.column_config.TextColumn(
            "Lowest", width=95, help="A whole number, or the first day: 2026-01-01"
        ),
        "maximum": st.column_config.TextColumn(
            "Highest", width=95, help="A whole number, or the last day: 2026-12-31"
        ),
        "step": st.column_config.TextColumn(
            "In groups of",
            width=105,
            help="A whole number; of dates day, week, month, quarter, year, or some: 5 years",
        ),
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
        )
    if problem:
        st.caption(escaped(f"No codebook.csv: {problem[0].lower()}{problem[1:]}"))


# ---- Impossible combinations on the Data page, one a line.


IMPOSSIBLE_HERE = "impossible"
REFUSED = "refused combinations"  # in the session: the codebook, and lines that do not fit it


def stated_combinations() -> None:
    """What the codebook states to be impossible, in short."""
    if current().domain.impossible:
        words = combinations_in_words(current().domain)
        st.markdown(escaped(f"No record has these together: {words}."))


def impossible_combinations() -> None:
    """The combinations that the codebook states, editable; refused lines stay to be mended."""
    domain = current().domain
    refused_by, typed = st.session_state.get(REFUSED, (None, ""))
    st.markdown(
        f"{meaning('Impossible combination')} Nonnegative, smooth and whole tables are 0 there, "
        "and synthetic records are made without them. Planning does not use them, and the noise "
        "stays the same."
    )
    st.text_area(
        "Impossible combinations, one a line",
        placeholder=example_of(domain),
        height=110,
        help="Values are named as in a condition: a value, a range such as 0..14, several with "
        "commas between. An empty field states none.",
        **bound(
            "impossible combinations", typed if refused_by == domain else lines_of(domain), _take
        ),
    )
    show_messages(IMPOSSIBLE_HERE)


def _take(typed: str) -> None:
    domain = current().domain
    taken = change(
        IMPOSSIBLE_HERE, lambda: current().replaced(domain=domain_with_lines(domain, typed))
    )
    st.session_state[REFUSED] = (None, "") if taken else (domain, typed)


# ---- The areas of the scenario on the Data page, and where they are planned.


def areas_of_codebook() -> None:
    """The levels of the areas, if the scenario has any."""
    opened = current().areas
    if opened is None:
        return
    st.subheader("Areas")
    st.markdown(
        "Areas are beside the attributes above, with a codebook of their own. Their tables are "
        "chosen on the page Tables."
    )
    if is_read(opened):
        area_levels(opened)
    st.page_link(
        "pages/workload.py",
        label="Choose their tables",
        icon=":material/arrow_forward:",
        query_params={"part": "areas"},
    )
