"""The session's study on disk: it survives a refresh of the browser and a restart of the server.

Which study is one's own is told by a key, in the page's address and in a cookie of the browser.
"""

import streamlit as st

from rpexplore.domain import Domain
from rpexplore.drafts import Drafts
from rpexplore.scenario import Scenario
from rpexplore.study import Study
from rpexplore.webapp_location import sample_data_folder

PARAMETER = "study"
COOKIE = "rpexplore-study"
_KEY, _SAVED, _PROBLEM = "draft key", "draft saved", "draft problem"


def new_study() -> Study:
    """One scenario on the sample data, so that a complete plan is there to look at."""
    sample = Domain.load(sample_data_folder() / "household.json")
    return Study((Scenario(sample, counted="people"),))


def begin() -> None:
    """Start the session with the study that this browser had open, or a new one."""
    if "study" in st.session_state:
        st.query_params[PARAMETER] = st.session_state[_KEY]
        return
    drafts = Drafts.of_user()
    for key in (st.query_params.get(PARAMETER), st.context.cookies.get(COOKIE)):
        # (Under the test runner a cookie is no text.)
        if isinstance(key, str) and (study := drafts.study(key)) is not None:
            st.session_state.update({"study": study, _KEY: key, _SAVED: drafts.text(key)})
            break
    else:
        st.session_state.update({"study": new_study(), _KEY: Drafts.new_key(), _SAVED: None})
    st.query_params[PARAMETER] = st.session_state[_KEY]


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
    return undivided


def saving_problem() -> str:
    """Where the study could not be saved, and why; "" if it is saved."""
    return st.session_state.get(_PROBLEM, "")


def is_saved() -> bool:
    """Whether there is a draft of this session's study."""
    return st.session_state.get(_SAVED) is not None


def remember_in_browser() -> None:
    """Leave the key with the browser, for when the app is opened without the whole address."""
    if is_saved():
        key = st.session_state[_KEY]  # 32 hexadecimal digits
        cookie = f"{COOKIE}={key}; path=/; max-age=31536000; SameSite=Strict"
        st.html(f"<script>document.cookie = '{cookie}'</script>", unsafe_allow_javascript=True)
