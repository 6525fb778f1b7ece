"""What stands above the pages: which scenario is open, undo, whether all is saved; notices."""

import streamlit as st

from pages.components.shared.accounts import account
from pages.components.shared.autosave import is_saved, open_key, saving_problem
from pages.components.shared.login import LOG_OUT
from pages.components.shared.serving import where_kept
from pages.components.shared.session import (
    EVERYWHERE,
    bound,
    can_step,
    change_project,
    current,
    escaped,
    project,
    say,
    show_messages,
    step,
)
from rpexplore.analysis.budget_units import stated_text
from rpexplore.common.formatting import joined
from rpexplore.common.server_settings import server_settings
from rpexplore.planning.plan import TITLES

_TOLD = "project whose new split was told"


def open_scenario(name: str) -> None:
    if name in project().names:  # it may have been changed meanwhile
        position = project().names.index(name)
        change_project(EVERYWHERE, lambda: project().opened(position))


def bar() -> None:
    """Draw the line."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    if survey := current().survey:
        line.markdown(f"**{escaped(survey)}**", width="content")
    line.selectbox(
        "Open scenario",
        project().names,
        label_visibility="collapsed",
        width=260,
        help="Scenarios are kept and compared on the Scenarios page.",
        **bound("open scenario", project().current.name, open_scenario),
    )
    for back, label in ((True, "Undo"), (False, "Redo")):
        line.button(
            label,
            icon=f":material/{label.lower()}:",
            key=f"{label} step",
            on_click=step,
            args=(back,),
            disabled=not can_step(back),
            type="tertiary",
        )
    if is_saved() and not saving_problem():
        line.caption(f"All changes are saved {where_kept()}.")


def account_line() -> None:
    """Who is logged in, and the way out; nothing without login."""
    if server_settings().login_file:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"Logged in as {escaped(account().name)}", width="content")
            way_out = f"{server_settings().public_address.base_path}{LOG_OUT}"
            look = "color: inherit; font-size: 0.875rem"  # readable in both themes
            st.html(f'<a href="{way_out}" style="{look}">Log out</a>', width="content")


def notices(problem: str) -> None:
    """What is to be read on every page.

    problem: what went wrong when the session's project was opened, if anything
    """
    if problem:
        say(EVERYWHERE, "error", problem)
    if unsaved := saving_problem():
        st.error(
            f"Changes are not saved: {escaped(unsaved)}. Save the "
            "project as a file on the Scenarios page before you close the browser."
        )
    _say_split_anew()
    show_messages(EVERYWHERE)


def _say_split_anew() -> None:
    """Once, of a project of a time when every section had the whole budget."""
    if not project().splits_anew or st.session_state.get(_TOLD) == open_key():
        return
    scenarios = [scenario for scenario in project().scenarios if len(scenario.kinds) > 1]
    shown = current() if current() in scenarios else scenarios[0] if scenarios else None
    if shown is not None:
        titles = joined([TITLES[kind].lower() for kind in shown.kinds])
        say(
            EVERYWHERE,
            "info",
            f"{titles[0].upper()}{titles[1:]} of “{shown.name}” now share one budget of "
            f"{stated_text(shown.budget)}; before, each had its own. Look at the split on the page "
            "Plan, under Sections.",
        )
    st.session_state[_TOLD] = open_key()
