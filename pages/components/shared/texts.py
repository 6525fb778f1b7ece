"""Texts that pages share: what each page is, notices, and where the way goes on."""

import streamlit as st

from pages.components.shared.session import current, escaped, project
from rpexplore.common.numbers import shown_few
from rpexplore.domain.domain import (
    Domain,
    describe_attributes_from_records,
    formulas_warning,
    unfinished,
)
from rpexplore.serving.sessions import HAND_OVER, last_step, plans_only

# ---- What each page is, in two sentences under its title, folded or open as it was left.


QUESTION = "What am I looking at?"
EXPLANATIONS = {
    "Data": "The codebook lists the attributes of the records and the values that each can "
    "have. Everything that follows is planned from it alone, before anybody opens the records.",
    "Tables": "This list is everything that you publish: tables, which count the records by some "
    "of the attributes; the same for areas, level by level; and counts of your own, under any "
    "condition. All lines are one plan, with one budget and one run.",
    "Plan": "More budget means less noise and less privacy. See which tables will be good enough, "
    "for how many people, before any record is read.",
    "Fairness": "Tables of one plan are not equally accurate, and this page shows which are the "
    "most and the least accurate, and why. Tables are shown beside those of other standard plans "
    "at the same budget.",
    "Trade-offs": "Each view answers what another budget, another objective or other tables would "
    "do to the accuracy. The plan stays as it is until you apply one of the choices.",
    "Scenarios": "A scenario is everything that a plan is made from: codebook, tables, objective "
    "and budget, under a name. To choose between plans, duplicate one, change the copy on the "
    "other pages, and compare both here.",
    "Release": "The plan leaves the app here: as a report for the board, as files for "
    "colleagues, or as a release, which counts the records and adds the noise. Only the run of a "
    "release spends privacy budget, and it spends it for good.",
    "Hand over": "The plan leaves this server here: as a report for the board, and as files for "
    "those who keep the records. They check it and run it where the records are; nothing is run "
    "here, and no privacy budget is spent.",
    "Results": "Released counts carry noise: the true count is within the margin of error 95 % of "
    "the time, and where results are biased, the page says what is known about their errors. You "
    "can make other tables and synthetic records from the released ones; nothing on this page "
    "reads the confidential records or costs privacy.",
}
_OPEN = "explanation is open"


def explained_title(title: str) -> None:
    """The title of a page with its explanation, open at first."""
    st.title(title)
    key = f"explanation of {title}"
    st.session_state.setdefault(key, st.session_state.get(_OPEN, True))
    with st.expander(QUESTION, type="compact", key=key, on_change="rerun") as explanation:
        st.markdown(EXPLANATIONS[title])
    st.session_state[_OPEN] = explanation.open


# ---- What several pages say of a codebook that lacks attributes or values, or shows records.


WITHOUT = ("Home", "Data", "Areas", "Own counts", "Scenarios", "Results")  # need no attributes
OF_ANY_PLAN = ("Tables", "Plan", "Release", HAND_OVER)  # nor these for areas and counts alone


def lacks_attributes(page: str) -> bool:
    """Whether the page of this title must wait for attributes; then it says so.

    Attributes without values are named as well, for they make tables look smaller than they are.
    """
    asks_for_others = current().kinds and "tables" not in current().kinds
    domain = current().domain
    waiting, is_empty = unfinished(domain), len(domain) == 0
    opens_areas = is_empty and page == "Tables" and st.query_params.get("part") == "areas"
    if page in WITHOUT or opens_areas or (page in OF_ANY_PLAN and asks_for_others):
        return False
    if is_empty:
        st.title(page)
        st.info(
            "No attributes yet: tables are made of attributes, such as age or region. Name at "
            "least one on the Data page, or start there from a codebook or from an example."
        )
    elif waiting:
        st.warning(
            f"No values yet for {escaped(shown_few(waiting))}: each counts as a single value, and "
            "tables with it look smaller and more accurate than they will be."
        )
    if is_empty or waiting:
        st.page_link("pages/codebook.py", label="To the codebook")
    if is_empty and page == "Tables":
        st.page_link("pages/workload.py", label="To areas", query_params={"part": "areas"})
    return is_empty


def values_from_records_warning(domain: Domain) -> None:
    """Say which attributes have values that nothing protects; nothing if there are none."""
    if names := describe_attributes_from_records(domain):
        st.warning(
            f"From the records: the values of {escaped(names)}. Nothing protects that they are "
            "listed, and they are published with every table: take out what is not publicly "
            "known, add what nobody happens to have, and then change the label, all on the "
            "Data page."
        )
    if warning := formulas_warning(domain):
        st.warning(escaped(warning))


# ---- The last line of a page: where the way goes on.


def next_page(page: str, title: str) -> None:
    """A link to the next page of the way."""
    st.page_link(f"pages/{page}.py", label=f"Next: {title}", icon=":material/arrow_forward:")


def next_is_last_step() -> None:
    """A link to the page where the plan leaves the app."""
    next_page(*last_step())


# ---- Pages that need records, which a server that plans only does not have.


def runs_here(title: str) -> bool:
    """Whether a page that needs records, or what was made of them, is there; else it says so."""
    project()  # on a new server, where this may be the first page to be requested
    if plans_only():
        st.title(title)
        st.info(
            "This server plans only: records, and what is released of them, stay where they are. "
            "There, “rpexplore app” has this page."
        )
    return not plans_only()
