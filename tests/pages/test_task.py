"""Work outside the script thread: how far it is, how it ends, and that it can be stopped."""

import threading
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from rpexplore.errors import DataError
from rpexplore.serving import server, tasks
from rpexplore.serving.tasks import Task


def ended(task):
    task.wait(20)
    assert not task.is_going
    return task


def test_the_result_is_there_in_the_end():
    task = ended(Task(lambda on_progress: on_progress("Half", 0.5) or 42).start())
    assert (task.result, task.error) == (42, "")
    assert (task.share, task.doing) == (0.5, "Half")


def test_the_step_says_how_long_the_rest_takes_once_that_can_be_told(monkeypatch):
    now = iter([100.0, 102.0, 108.0, 108.0])
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: next(now)))
    task = ended(Task(lambda on_progress: on_progress("Fitting", 0.25)).start())
    assert task.step == "Fitting …"  # after two seconds
    assert task.step == "Fitting … about 24 seconds left"  # 8 seconds for the first quarter
    task.share = 0.01
    assert task.step == "Fitting …"


def test_it_stops_at_the_next_report_after_it_was_cancelled():
    reached, go_on = threading.Event(), threading.Event()
    steps = []

    def work(on_progress):
        reached.set()
        go_on.wait(20)
        steps.append("before")
        on_progress("Half", 0.5)
        steps.append("after")

    task = Task(work).start()
    reached.wait(20)
    task.cancel()
    go_on.set()
    ended(task)
    assert steps == ["before"]
    assert (task.result, task.error, task.was_cancelled) == (None, "Cancelled.", True)


def test_what_is_finished_stays():
    reached, go_on = threading.Event(), threading.Event()

    def work(on_progress):
        reached.set()
        go_on.wait(20)
        on_progress("Done", 1.0)
        return "finished"

    task = Task(work).start()
    reached.wait(20)
    task.cancel()
    go_on.set()
    assert ended(task).result == "finished"


def test_a_free_cancel_comes_too_late_once_the_work_has_gone_on():
    reached, go_on = threading.Event(), threading.Event()

    def work(on_progress):
        on_progress("Booking", 0.1)
        reached.set()
        go_on.wait(20)
        on_progress("Half", 0.5)
        return "finished"

    task = Task(work).start()
    reached.wait(20)
    task.cancel(before=0.1)  # a click on what was drawn before the booking
    assert not task.was_cancelled
    go_on.set()
    assert ended(task).result == "finished"


@pytest.fixture
def stopped(monkeypatch):
    """A server that has been stopped, and what its process would have ended with."""
    codes = []
    for name, value in {"_SECONDS_TO_END": 0.0, "_stopping": threading.Event()}.items():
        monkeypatch.setattr(server, name, value)
    monkeypatch.setattr(server, "os", SimpleNamespace(_exit=codes.append))
    monkeypatch.setattr(tasks, "_SECONDS_FOR_CANCELLED", 0.0)
    server._stopping.set()
    return codes


@pytest.mark.parametrize(("share", "is_waited_for"), [(0.1, False), (0.3, True)])
def test_a_stopped_server_waits_for_what_is_booked_alone(stopped, share, is_waited_for):
    reached, go_on = threading.Event(), threading.Event()

    def work(on_progress):
        on_progress("Counting", share)
        reached.set()
        go_on.wait(20)  # does not report for long
        on_progress("Drawing", 0.5)
        return "released"

    task = Task(work, kept_from=0.3).start()
    reached.wait(20)
    ending = threading.Thread(target=server._end_in_time)
    ending.start()
    ending.join(0.2 if is_waited_for else 20)
    assert stopped == ([] if is_waited_for else [1])
    go_on.set()
    ending.join(20)
    assert stopped == [1]
    assert ended(task).result == ("released" if is_waited_for else None)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("Bad value.", private="It was 17."), "Bad value. It was 17."),
        (MemoryError(), "not enough memory"),
        (RuntimeError("holds a record: 17"), "unexpectedly (RuntimeError)"),
    ],
)
def test_errors_are_for_the_screen(error, message, capsys):
    def work(on_progress):
        raise error

    task = ended(Task(work).start())
    assert message in task.error
    assert task.result is None
    captured = capsys.readouterr()
    assert "17" not in captured.out + captured.err
    if isinstance(error, RuntimeError):
        assert "17" not in task.error


def redrawn():
    """A page that says something while work goes on, whose end draws it again."""
    import streamlit as st

    from pages.components.shared.background import follow
    from pages.components.shared.session import forget_messages, say, show_messages
    from rpexplore.serving.tasks import Task

    forget_messages()
    runs = st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    if runs == 1:
        say("here", "success", "Applied.")
    show_messages("here")
    if runs == 1:
        follow(Task(lambda on_progress: None), "work")  # not begun, so that it is not going on


def test_a_message_stays_when_the_end_of_work_draws_the_page_again():
    session = AppTest.from_function(redrawn).run()
    assert session.session_state["runs"] == 2
    assert [box.value for box in session.success] == ["Applied\\."]
    assert not session.run().success
