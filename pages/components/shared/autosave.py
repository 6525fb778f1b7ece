"""The session's project on disk: it survives a refresh of the browser and a restart of the server.

Which project a page shows is told by its address: the key of a saved project, or the name of an
example or of a blank project in which nothing was changed yet. Every browser finds all projects of
this computer; on a shared server all of its account, and no others.
"""

from contextlib import suppress

import streamlit as st

from rpexplore.common.server_files import log_event
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import Autosaves, SavedProject
from rpexplore.scenarios.examples import COUNTRY_KEY, EXAMPLES, sample_project
from rpexplore.scenarios.project import Project, project_of_file
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.accounts import account
from rpexplore.serving.limits import has_no_room, why_not_saved
from rpexplore.serving.sessions import plans_only

PARAMETER, BLANK, SAMPLE = "project", "blank", "sample"
_KEY, _SAVED, _PROBLEM = "autosave key", "autosave saved", "autosave problem"
_UNSAVED = "autosave name"  # of the example that the session shows, until something is changed
_DELETED = "autosave deleted"  # key, text and name of the project that was deleted last
_TROUBLE, _ACCOUNT = "autosave trouble", "autosave account"


def autosaves() -> Autosaves:
    """Where the projects of this session's account lie; of one's own app, all of them."""
    if not plans_only():
        return Autosaves.of_user()
    return Autosaves.of_account(account().folder)


def new_project() -> Project:
    """One scenario on the first example, so that a complete plan is there to look at."""
    return Project((EXAMPLES[0].scenario,))


def begin() -> str:
    """Start the session with the project of the address, else the one saved last, else a new one.

    Returns what went wrong with it, if anything, until something is saved.
    """
    if plans_only():
        # A session is its account's for good, whoever finds out how it is named.
        if st.session_state.get(_ACCOUNT, account().folder) != account().folder:
            st.session_state.clear()
        st.session_state[_ACCOUNT] = account().folder
    if "project" not in st.session_state:
        saves = autosaves()
        saves.remove_unused_areas()
        asked = st.query_params.get(PARAMETER, "")
        if (unsaved := unsaved_project(asked)) is not None:
            _open_unsaved(unsaved, asked)
        else:
            _open_unsaved(new_project(), SAMPLE)
            for key in dict.fromkeys((asked, *saved_keys()[:1])):
                try:
                    saved = saves.read(key)
                except (RpexploreError, OSError) as error:
                    why = str(error)
                    if plans_only():  # whose paths are nobody's business
                        why = "The project that was open last cannot be read any more."
                    st.session_state[_TROUBLE] = (
                        f"{why} It was left as it is; this is a new project."
                    )
                    continue
                if saved is not None:
                    _open(key, saved)
                    break
    unsaved_name = "" if is_saved() else st.session_state[_UNSAVED]
    st.query_params[PARAMETER] = unsaved_name or st.session_state[_KEY]
    return "" if is_saved() else st.session_state.get(_TROUBLE, "")


def open_key() -> str:
    """The key of this session's project."""
    return st.session_state[_KEY]


def take_saved(key: str) -> bool:
    """Go over to another saved project; False if it is not there any more."""
    try:
        saved = autosaves().read(key)
    except (RpexploreError, OSError):
        return False
    if saved is not None:
        _open(key, saved)
    return saved is not None


def unsaved_project(name: str) -> Project | None:
    """An example by its key, the sample survey or a blank project; None for another name."""
    if name == BLANK:
        return Project((Scenario(Domain(())),))
    if name == SAMPLE:
        return new_project()
    if name == COUNTRY_KEY:
        return sample_project()
    return next((example.project() for example in EXAMPLES if example.key == name), None)


def start_project(project: Project, name: str = "") -> None:
    """Go over to another project, and leave the current one as it was saved.

    name: of an `unsaved_project`, which is saved once something is changed; others are at once
    """
    _open_unsaved(project, name)
    if not name:
        save_project(project)


def project_of_upload(content: bytes, filename: str) -> Project:
    """The project in a file; areas that are not in it may be those of another project here."""
    saves = autosaves()
    project = project_of_file(content, filename, saves.tree_files)
    with suppress(OSError):  # said when the project is saved
        if not has_no_room(saves, project):
            saves.save_areas(project)  # also if it is the open one, whose areas were missing
    return project


def _open(key: str, saved: SavedProject) -> None:
    st.session_state.update({"project": saved.project, _KEY: key, _SAVED: saved.text})


def _open_unsaved(project: Project, name: str = "") -> None:
    key = Autosaves.new_key()
    st.session_state.update({"project": project, _KEY: key, _SAVED: None, _UNSAVED: name})


def save_project(project: Project) -> bool:
    """Save the project; False if another window had changed it, so that this one has a new key."""
    saves, text = autosaves(), project.text()
    key, saved = st.session_state[_KEY], st.session_state[_SAVED]
    if problem := why_not_saved(saves, project, key, text, is_new=saved is None):
        log_event("refused by a limit", limit="saved projects")
        st.session_state[_PROBLEM] = problem
        return True
    try:
        saves.save_areas(project)
        is_same = saves.save(key, text, saved)
        if not is_same:
            st.session_state[_KEY] = Autosaves.new_key()
            saves.save(st.session_state[_KEY], text, None)
    except OSError as error:
        where = "the server" if plans_only() else saves.folder
        st.session_state[_PROBLEM] = f"nothing can be written to {where} ({error.strerror})"
        return True
    st.session_state.update({_SAVED: text, _PROBLEM: ""})
    return is_same


def delete_saved(key: str) -> None:
    """Delete a saved project; `undelete` brings the one deleted last back."""
    saves = autosaves()
    with suppress(OSError):
        text = saves.text(key)
        if text is not None and key in saved_keys():
            listed = saves.projects().get(key)
            st.session_state[_DELETED] = (key, text, listed.project.name if listed else "")
            saves.path(key).unlink(missing_ok=True)
    if key == open_key():
        _open_unsaved(new_project(), SAMPLE)


def undelete() -> None:
    """Bring back the project that was deleted last."""
    key, text, _ = st.session_state.pop(_DELETED)
    with suppress(OSError):
        autosaves().save(key, text, None)


def deleted() -> str | None:
    """What the project is called that this session deleted last; None if there is none."""
    return st.session_state[_DELETED][2] if _DELETED in st.session_state else None


def saving_problem() -> str:
    """Why the project could not be saved; "" if it is saved."""
    return st.session_state.get(_PROBLEM, "")


def is_saved() -> bool:
    """Whether there is a saved state of this session's project."""
    return st.session_state.get(_SAVED) is not None


def saved_keys() -> list[str]:
    """The keys of all saved projects of this computer, or of the account on a shared server."""
    with suppress(OSError):
        return autosaves().keys()
    return []
