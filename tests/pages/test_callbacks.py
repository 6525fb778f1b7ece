"""What is typed just before the browser asks for the next run is kept."""

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest

from pages.components.shared.callbacks import finish_callbacks


def page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def take() -> None:
        context = get_script_run_ctx()
        assert context is not None
        assert context.script_requests is not None
        context.script_requests.request_rerun(RerunData())  # as a click elsewhere does
        st.session_state["taken"] = st.session_state["field"]

    st.text_input("Field", key="field", on_change=take)


def test_a_callback_is_not_broken_off_by_the_next_run(monkeypatch):
    def taken() -> bool:
        session = AppTest.from_function(page).run()
        session.text_input(key="field").set_value("people").run()
        assert not session.exception
        return "taken" in session.session_state

    assert not taken()  # by Streamlit itself
    name = "_maybe_handle_execution_control_request"
    monkeypatch.setattr(ScriptRunner, name, getattr(ScriptRunner, name))
    finish_callbacks()
    assert taken()
