"""The session's project on disk: it survives a refresh of the browser and a restart of the server.

Which project a page shows is told by a key in its address. The keys of the projects that a browser
changed last are in a cookie, and it opens no others: an address that is passed on does not show
somebody else's project. On a shared server an account opens what lies in its own folder.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import streamlit as st

from pages.components.shared.accounts import account
from pages.components.shared.serving import limits, plans_only
from rpexplore.common.server_files import log_event
from rpexplore.common.text import data_size
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import Autosaves, SavedProject
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.project import Project, project_of_file

PARAMETER = "project"
MOST_REMEMBERED = 50  # keys in a cookie, which must stay below 4 KB
_KEY, _SAVED, _PROBLEM = "autosave key", "autosave saved", "autosave problem"
_REMEMBERED, _TROUBLE = "autosave cookie", "autosave trouble"
_SAVED_HERE = "autosave keys"  # of the projects that this session has saved, the last one first
_ACCOUNT = "autosave account"


def autosaves() -> Autosaves:
    """Where the projects of this session's account lie; of one's own app, all of them."""
    if not plans_only():
        return Autosaves.of_user()
    return Autosaves.of_account(account().folder)


def new_project() -> Project:
    """One scenario on the first example, so that a complete plan is there to look at."""
    return Project((EXAMPLES[0].scenario,))


def begin() -> str:
    """Start the session with the project that this browser had open, or a new one.

    Returns what went wrong with it, if anything, until something is saved.
    """
    if plans_only():
        # A session is its account's for good, whoever finds out how it is named.
        if st.session_state.get(_ACCOUNT, account().folder) != account().folder:
            st.session_state.clear()
        st.session_state[_ACCOUNT] = account().folder
    if "project" not in st.session_state:
        saves, remembered = autosaves(), remembered_keys()
        saves.remove_unused_areas()
        st.session_state.update({"project": new_project(), _KEY: Autosaves.new_key(), _SAVED: None})
        in_address = [key for key in remembered if key == st.query_params.get(PARAMETER)]
        for key in (*in_address, *remembered[:1]):
            try:
                saved = saves.read(key)
            except (RpexploreError, OSError) as error:
                why = str(error)
                if plans_only():  # whose paths are nobody's business
                    why = "The project that was open last cannot be read any more."
                st.session_state[_TROUBLE] = f"{why} It was left as it is; this is a new project."
                continue
            if saved is not None:
                _open(key, saved)
                break
    st.query_params[PARAMETER] = st.session_state[_KEY]
    return "" if is_saved() else st.session_state.get(_TROUBLE, "")


def open_key() -> str:
    """The key of this session's project."""
    return st.session_state[_KEY]


def take_saved(key: str) -> bool:
    """Go over to another saved project of this browser; False if it is not there any more."""
    try:
        saved = autosaves().read(key)
    except (RpexploreError, OSError):
        return False
    if saved is not None:
        _open(key, saved)
    return saved is not None


def start_project(project: Project) -> None:
    """Go over to a project that is saved by itself, and leave the current one as it was saved.

    One that this browser has saved with nothing changed is opened again.
    """
    saves, text = autosaves(), project.text()
    key, before = Autosaves.new_key(), None
    for remembered in remembered_keys():
        with suppress(OSError):
            if saves.text(remembered) == text:
                key, before = remembered, text
                break
    st.session_state.update({"project": project, _KEY: key, _SAVED: before})
    save_project(project)


def project_of_upload(content: bytes, filename: str) -> Project:
    """The project in a file; areas that are not in it may be those of another project here."""
    saves = autosaves()
    project = project_of_file(content, filename, saves.tree_files)
    with suppress(OSError):  # said when the project is saved
        if not _has_no_room(saves, project):
            saves.save_areas(project)  # also if it is the open one, whose areas were missing
    return project


def _open(key: str, saved: SavedProject) -> None:
    st.session_state.update({"project": saved.project, _KEY: key, _SAVED: saved.text})


def save_project(project: Project) -> bool:
    """Save the project; False if another window had changed it, so that this one has a new key."""
    saves, text = autosaves(), project.text()
    if problem := _beyond_limits(saves, project, text):
        log_event("refused by a limit", limit="saved projects")
        st.session_state[_PROBLEM] = problem
        return True
    try:
        saves.save_areas(project)
        is_same = saves.save(st.session_state[_KEY], text, st.session_state[_SAVED])
        if not is_same:
            st.session_state[_KEY] = Autosaves.new_key()
            saves.save(st.session_state[_KEY], text, None)
    except OSError as error:
        where = "the server" if plans_only() else saves.folder
        st.session_state[_PROBLEM] = f"nothing can be written to {where} ({error.strerror})"
        return True
    key = st.session_state[_KEY]
    others = [other for other in st.session_state.get(_SAVED_HERE, []) if other != key]
    st.session_state.update(
        {_SAVED: text, _SAVED_HERE: [key, *others], _PROBLEM: "", _REMEMBERED: False}
    )
    return is_same


def _beyond_limits(saves: Autosaves, project: Project, text: str) -> str:
    """Why a shared server does not keep the project; "" if it does."""
    if not plans_only():
        return ""
    most, size = limits(), len(text.encode())
    if size > 1000 * most.project_kb:
        return (
            f"the project has {data_size(size)}, and this server keeps at most "
            f"{data_size(1000 * most.project_kb)} of one; delete scenarios that are not needed"
        )
    with suppress(OSError):  # said when it is saved
        if _has_no_room(saves, project):
            return (
                f"you have saved {data_size(10**6 * most.account_mb)}, as much as this server "
                "keeps for one account with areas; delete projects on the Scenarios page (areas "
                "that none of them has any more go a day later)"
            )
        others = {*saves.keys()} - {st.session_state[_KEY]}
        if st.session_state[_SAVED] is None and len(others) >= most.projects:
            return (
                f"you have {len(others):,} saved projects, as many as this server keeps for one "
                "account; delete one on the Scenarios page, under “Open another project”"
            )
    return ""


def _has_no_room(saves: Autosaves, project: Project) -> bool:
    """Whether a shared server keeps no more areas of this account, and the project brings some.

    Raises `OSError`.
    """
    if not plans_only():
        return False
    brings = any(
        areas.is_read and not saves.has_tree(sha256) for sha256, areas in project.areas.items()
    )
    return brings and saves.size >= 10**6 * limits().account_mb


def delete_saved(key: str) -> None:
    """Delete another saved project of the account for good."""
    if key != open_key() and key in remembered_keys():
        with suppress(OSError):
            autosaves().path(key).unlink(missing_ok=True)


def saving_problem() -> str:
    """Why the project could not be saved; "" if it is saved."""
    return st.session_state.get(_PROBLEM, "")


def is_saved() -> bool:
    """Whether there is a saved state of this session's project."""
    return st.session_state.get(_SAVED) is not None


def other_saved_projects() -> dict[str, SavedProject]:
    """The other projects that this browser changed last, by their keys; those that can be read."""
    return {key: saved for key, saved in _saved_projects() if key != open_key()}


def recent_projects(most: int) -> dict[str, SavedProject]:
    """The projects that this browser changed last, with the current one, by their keys."""
    return dict(islice(_saved_projects(), most))


def _saved_projects() -> Iterator[tuple[str, SavedProject]]:
    for key in remembered_keys():
        with suppress(RpexploreError, OSError):
            saved = autosaves().read(key)
            if saved is not None:
                yield key, saved


def remembered_keys() -> list[str]:
    """The keys of this session and of the browser's cookie, the one changed last first.

    The cookie is that with which the session began. On a shared server: all of the account.
    """
    if plans_only():
        with suppress(OSError):
            return autosaves().keys()
        return []
    cookie = st.context.cookies.get(cookie_name(Autosaves.of_user().folder))
    # (Under the test runner a cookie is no text.)
    keys = cookie.split(".") if isinstance(cookie, str) else []
    return list(dict.fromkeys([*st.session_state.get(_SAVED_HERE, []), *keys]))


def remember_in_browser() -> None:
    """Leave the key with the browser, for when the app is opened without the whole address.

    Only after a change: looking at a project, or another tab, is no reason to forget the last one.
    """
    if st.session_state.get(_REMEMBERED, True) or plans_only():
        return
    st.session_state[_REMEMBERED] = True
    keys = list(dict.fromkeys([st.session_state[_KEY], *remembered_keys()]))[:MOST_REMEMBERED]
    # All that goes into the script is hexadecimal digits and dots.
    value = ".".join(key for key in keys if len(key) == 32 and key.isalnum())
    name = cookie_name(Autosaves.of_user().folder)
    cookie = f"{name}={value}; path=/; max-age=31536000; SameSite=Strict"
    st.html(f"<script>document.cookie = '{cookie}'</script>", unsafe_allow_javascript=True)


def cookie_name(folder: Path) -> str:
    """One for each folder of saved projects: cookies do not tell the ports of a machine apart."""
    return f"rpexplore-{hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:8]}"
