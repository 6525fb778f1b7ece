"""What is around every page: title, mark, style, session state, navigation, the line on top."""

from pathlib import Path

import streamlit as st

from pages import BESIDE, all_pages
from pages.components.shared.autosave import begin, is_saved, open_key, saving_problem
from pages.components.shared.session import (
    EVERYWHERE,
    bound,
    can_step,
    change_project,
    current,
    escaped,
    forget_messages,
    project,
    say,
    show_messages,
    step,
)
from pages.components.shared.texts import lacks_attributes
from rpexplore.analysis.budget_units import stated_text
from rpexplore.common.server import server_settings
from rpexplore.common.server_files import timed_event
from rpexplore.common.text import joined
from rpexplore.planning.part_plan import TITLES
from rpexplore.serving.accounts import LOG_OUT, account
from rpexplore.serving.sessions import has_place, limits, session_number, where_kept

STYLE = Path(__file__).parents[3] / ".streamlit/style.css"  # beside the theme


def draw() -> None:
    """One run of a session's script."""
    st.set_page_config(page_title="rpexplore", page_icon=ICON, layout="wide")
    st.logo(LOGO)
    st.html(STYLE)
    if not has_place():
        st.title("All places are taken")
        st.info(
            f"{limits().sessions:,} people use this planning server now, as many "
            "as it has room for. Try again in some minutes; saved projects are as they were left."
        )
        return
    forget_messages()
    problem = begin()
    page = st.navigation(all_pages(), position="top")
    with timed_event("page run", session=session_number(), page=page.title):
        top = st.container()
        _beside(page.url_path)
        if not lacks_attributes(page.title):
            page.run()
        with top:  # last, because the page itself may change the scenario
            account_line()
            if page.title != "Home":
                bar()
            notices(problem)


def _beside(path: str) -> None:
    """Links to the pages that the same entry of the row above leads to, if it has several."""
    for pages in BESIDE:
        if path in pages:
            with st.container(horizontal=True, gap="xxsmall", key="beside"):
                for name, title in pages.items():
                    st.page_link(f"pages/{name}.py", label=title)


# ---- What stands above the pages: which scenario is open, undo, whether all is saved; notices.


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
    steps = line.container(horizontal=True, gap="small", width="content")  # both in one line
    for back, label in ((True, "Undo"), (False, "Redo")):
        steps.button(
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
    """Once, of a project of a time when every part had the whole budget."""
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
            "Plan, under Parts of the plan.",
        )
    st.session_state[_TOLD] = open_key()


# ---- The mark of the product and its name, drawn here: four cells of a table, one of them
# fainter.
#
# For a named icon Streamlit would make the browser ask a font service; and a picture does not see
# the fonts of the page that it is on, so the letters are strokes.


_CELLS = """<g fill="#3c76c3"><rect x="1" y="2" width="9" height="9" rx="2"/>
<rect x="12" y="2" width="9" height="9" rx="2"/><rect x="1" y="13" width="9" height="9" rx="2"/>
<rect x="12" y="13" width="9" height="9" rx="2" opacity=".4"/></g>"""

ICON = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 1 22 22">{_CELLS}</svg>"""

# One path a letter, in the text colour of the theme: r, p, e, x, p, l, o, r, e.
LOGO = f"""<svg xmlns="http://www.w3.org/2000/svg" width="132" height="24" viewBox="0 0 132 24">
<style>
path {{ fill: none; stroke: #060c13; stroke-width: 2; stroke-linecap: round }}
@media (prefers-color-scheme: dark) {{ path {{ stroke: #e8edf3 }} }}
</style>{_CELLS}
<path d="M32 17V8m0 4.5a4 4 0 0 1 4.5-4.4"/>
<path d="M41 22V8m0 4.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M53.5 12.6h8.6a4.3 4.5 0 1 0-1.300 3.2"/>
<path d="M66 8l7 9m0-9l-7 9"/>
<path d="M77.5 22V8m0 4.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M91 4v13"/>
<path d="M95 12.5a4.4 4.5 0 1 1 0 .1"/>
<path d="M108.5 17V8m0 4.5a4 4 0 0 1 4.5-4.4"/>
<path d="M116 12.6h8.6a4.3 4.5 0 1 0-1.300 3.2"/>
</svg>"""
