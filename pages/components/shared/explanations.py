"""What each page is, in two sentences under its title, folded or open as it was left."""

import streamlit as st

QUESTION = "What am I looking at?"
EXPLANATIONS = {
    "Codebook": "The codebook lists the attributes of the records and the values that each can "
    "have. Everything that follows is planned from it alone, before anybody opens the records.",
    "Tables": "Here you choose which tables to publish; each counts the records by some of the "
    "attributes. Weights and targets say which tables matter more, and how accurate they must be.",
    "Plan": "A plan says how much random noise protects each table: a larger privacy budget means "
    "less noise and less privacy. The page shows how accurate all tables become, and for how many "
    "cells that is good enough, before any record is read.",
    "Fairness": "Tables of one plan are not equally accurate, and this page shows which are the "
    "most and the least accurate, and why. Other standard plans at the same budget stand beside "
    "yours.",
    "Trade-offs": "Each view answers what another budget, another objective or other tables would "
    "do to the accuracy. The plan stays as it is until you apply one of the choices.",
    "Scenarios": "A scenario is everything that a plan is made from: codebook, tables, objective "
    "and budget, under a name. To choose between plans, duplicate one, change the copy on the "
    "other pages, and compare both here.",
    "Queries": "Queries are counts under conditions of your own, where whole tables would be too "
    "much. All of a list are planned together, for the smallest budget that gives each the "
    "accuracy it needs.",
    "Areas": "Areas in areas, such as the municipalities of a country, are planned together: every "
    "area gets the noise that is best for it, and areas agree with the parts that they consist of. "
    "Their tables belong to the scenario, and so does the budget, that of the Plan page.",
    "Release": "The plan leaves the app here: as a report for the board, as files for "
    "colleagues, or as a release, which counts the records and adds the noise. Only the run of a "
    "release spends privacy budget, and it spends it for good.",
    "Hand over": "The plan leaves this server here: as a report for the board, and as files for "
    "those who keep the records. They check it and run it where the records are; nothing is run "
    "here, and no privacy budget is spent.",
    "Results": "Released counts are noisy: unbiased ones have the interval in which the true count "
    "lies 95 % of the time, and of biased ones, such as adaptive estimates, the page says what is "
    "known of their errors. Other tables and records are made of them here; nothing on this page "
    "reads a record, and nothing costs privacy.",
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
