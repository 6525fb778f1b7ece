"""What is done when a widget changes is done to its end."""

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_run_context import RunLocation, ThreadState


def finish_callbacks() -> None:
    """Keep Streamlit from breaking off a widget's callback.

    It breaks off a session's script, wherever that reads the session's state, as soon as the
    browser asks for the next run; and so also what a widget calls when it changes. Who typed into a
    field and then clicked on another page would find nothing changed, or half of it. The next run
    waits for the end of such a call; that of a page, which only draws, is still broken off.
    """
    pause = ScriptRunner._maybe_handle_execution_control_request  # there is no public way

    def pause_outside_callbacks(self: ScriptRunner) -> None:
        if not (self._execing and ThreadState.get().run_location is RunLocation.CALLBACK):
            pause(self)

    ScriptRunner._maybe_handle_execution_control_request = pause_outside_callbacks
