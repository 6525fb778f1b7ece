"""The session's study on disk: it survives a refresh of the browser and a restart of the server.

Which study is one's own is told by a key, in the page's address and in a cookie of the browser.
The cookie has the keys of the studies that this browser changed last.
"""

import hashlib

import streamlit as st

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.autosave import Draft, Drafts
from rpexplore.scenarios.project import Study
from rpexplore.scenarios.scenario import Scenario

PARAMETER = "study"
MOST_REMEMBERED = 10
_KEY, _SAVED, _PROBLEM = "draft key", "draft saved", "draft problem"
_REMEMBERED, _TROUBLE = "draft cookie", "draft trouble"


def new_study() -> Study:
    """One scenario on the sample data, so that a complete plan is there to look at."""
    sample = Domain.load(sample_data_folder() / "household.json")
    return Study((Scenario(sample, counted="people"),))


def begin() -> str:
    """Start the session with the study that this browser had open, or a new one.

    Returns what went wrong with it, if anything, until something is saved.
    """
    if "study" not in st.session_state:
        drafts = Drafts.of_user()
        st.session_state.update({"study": new_study(), _KEY: Drafts.new_key(), _SAVED: None})
        for key in (st.query_params.get(PARAMETER), *remembered_keys()[:1]):
            try:
                draft = drafts.read(key) if key else None
            except (RpexploreError, OSError) as error:
                st.session_state[_TROUBLE] = f"{error} It was left as it is; this is a new study."
                continue
            if draft is not None:
                _open(key, draft)
                break
    st.query_params[PARAMETER] = st.session_state[_KEY]
    return "" if is_saved() else st.session_state.get(_TROUBLE, "")


def open_draft(key: str) -> bool:
    """Go over to another saved study of this browser; False if it is not there any more."""
    try:
        draft = Drafts.of_user().read(key)
    except (RpexploreError, OSError):
        return False
    if draft is not None:
        _open(key, draft)
    return draft is not None


def _open(key: str, draft: Draft) -> None:
    st.session_state.update({"study": draft.study, _KEY: key, _SAVED: draft.text})


def save_draft(study: Study) -> bool:
    """Save the study; False if another window had changed it, so that this one has a new key."""
    drafts, text, undivided = Drafts.of_user(), study.text(), True
    try:
        if not drafts.save(st.session_state[_KEY], text, st.session_state[_SAVED]):
            undivided = False
            st.session_state[_KEY] = Drafts.new_key()
            drafts.save(st.session_state[_KEY], text, None)
    except OSError as error:
        st.session_state[_PROBLEM] = f"{drafts.folder} ({error.strerror})"
        return True
    st.session_state[_SAVED] = text
    st.session_state[_PROBLEM] = ""
    st.session_state[_REMEMBERED] = False
    return undivided


def saving_problem() -> str:
    """Where the study could not be saved, and why; "" if it is saved."""
    return st.session_state.get(_PROBLEM, "")


def is_saved() -> bool:
    """Whether there is a draft of this session's study."""
    return st.session_state.get(_SAVED) is not None


def other_drafts() -> dict[str, Draft]:
    """The other studies that this browser changed last, by their keys; those that can be read."""
    found = {}
    for key in remembered_keys():
        try:
            draft = Drafts.of_user().read(key) if key != st.session_state[_KEY] else None
        except (RpexploreError, OSError):
            continue
        if draft is not None:
            found[key] = draft
    return found


def remembered_keys() -> list[str]:
    """The keys in the browser's cookie, the one changed last first."""
    cookie = st.context.cookies.get(_cookie_name())
    # (Under the test runner a cookie is no text.)
    return cookie.split(".") if isinstance(cookie, str) else []


def remember_in_browser() -> None:
    """Leave the key with the browser, for when the app is opened without the whole address.

    Only after a change: looking at a study, or another tab, is no reason to forget the last one.
    """
    if st.session_state.get(_REMEMBERED, True):
        return
    st.session_state[_REMEMBERED] = True
    key = st.session_state[_KEY]
    keys = [key, *(each for each in remembered_keys() if each != key)][:MOST_REMEMBERED]
    # All that goes into the script is hexadecimal digits and dots.
    kept = ".".join(each for each in keys if len(each) == 32 and each.isalnum())
    cookie = f"{_cookie_name()}={kept}; path=/; max-age=31536000; SameSite=Strict"
    st.html(f"<script>document.cookie = '{cookie}'</script>", unsafe_allow_javascript=True)


def _cookie_name() -> str:
    """One for each place of drafts: cookies do not tell the ports of a machine apart."""
    folder = hashlib.sha256(str(Drafts.of_user().folder.absolute()).encode()).hexdigest()
    return f"rpexplore-{folder[:8]}"
