"""The limits of a shared server, each said on the page, with nothing lost."""

import gc
import threading
import time
import weakref
from fractions import Fraction

import pytest
import streamlit as st

import rpexplore as rp
from rpexplore.common.file_kinds import zip_of
from rpexplore.data.files import columns, offered
from rpexplore.domain import expected_counts_file
from rpexplore.scenarios import project as project_module
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.project import content_of
from rpexplore.serving import sessions, tasks
from rpexplore.serving.sessions import reading
from rpexplore.serving.tasks import Task
from tests.pages.conftest import plain
from tests.support.processor_time import PATIENCE


@pytest.fixture
def limited(plan_only, monkeypatch):
    """Makes the app one of a shared server with these limits, where nobody is yet."""
    monkeypatch.setattr(sessions, "_places", set())
    return plan_only


@pytest.fixture
def outside_of_sessions(monkeypatch):
    """Work is done for nobody: each piece of it takes turns with those that `turn` says."""
    monkeypatch.setattr(tasks, "session_number", lambda: None)
    monkeypatch.setattr(tasks, "own_turn", lambda: threading.Semaphore())


def test_more_tables_than_the_limit_are_refused_and_the_plan_stays(app, limited, small):
    limited(tables=7)
    session = app("workload", small)  # all of up to two of three attributes: 1 + 3 + 3
    assert not session.error
    before = session.scenario
    session.number_input(key="order").set_value(3).run()
    assert "There would be 8 tables, and this server plans for at most 7" in plain(
        session.texts("error")
    )
    assert session.scenario == before
    session.open("plan")
    assert "95 % margin of error, median table" in session.metrics()


def test_a_file_above_the_limit_is_refused(app, limited, small):
    limited(upload_mb=1)
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("A file").run()
    content = b"attribute,value\n" + b"sex,F\n" * 200_000
    session.file_uploader(key="codebook").upload("c.csv", content).run()
    assert "takes files of at most 1 MB" in plain(session.texts("error"))
    assert session.scenario == small


def test_a_file_that_becomes_too_large_is_refused_before_it_is_read(app, limited, small):
    limited(unpacked_mb=1)
    session = app("scenarios", small)
    content = zip_of({"project.json": b" " * 2_000_000})
    session.file_uploader(key="project file").upload("p.zip", content).run()
    assert "becomes larger than 1 MB when it is read" in plain(session.texts("error"))


MANY = b"[" + b"{}," * 1_500_000 + b"{}]"  # 4.5 MB of text, 290 MB of objects


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("page", "box", "name", "content"),
    [
        ("codebook", "codebook", "c.json", MANY),
        ("codebook", "codebook", "c.csv", b"attribute,value\n" + b"a,b\n" * 2_000_000),
        ("codebook", "codebook", "c.xml", b"<codeBook>" + b"<v a=''/>" * 1_000_001),
        ("codebook", "expected margin", "m.csv", b"age,count\n" + b"1\n" * 2_000_001),
        ("scenarios", "project file", "p.zip", zip_of({"project.json": MANY})),
        ("scenarios", "project file", "p.json", b"[" + b'"",' * 2_000_001),
    ],
)
def test_a_file_of_too_many_values_is_refused_before_one_is_made(
    page, box, name, content, app, limited, small, monkeypatch
):
    limited()
    session = app(page, small)
    if page != "scenarios":
        session.segmented_control(key="codebook source").set_value("A file").run()
    read = []
    for module, reader in (
        (project_module, "utf8_text"),
        (columns, "utf8_text"),
        (columns, "draft_of_file"),
        (offered, "loads"),
        (expected_counts_file, "utf8_text"),
    ):
        monkeypatch.setattr(module, reader, lambda *given: read.append(given))
    session.file_uploader(key=box).upload(name, content).run()
    assert len(content) < 10**7
    assert "holds more than 2,000,000 values" in plain(session.texts("error"))
    assert not read  # neither when it came nor when the page was drawn
    assert session.scenario == small


def test_uploads_are_read_one_at_a_time_whoever_they_are_of(limited):
    limited()
    inside, most = [], []

    def read() -> None:
        with reading():
            inside.append(None)
            time.sleep(0.01)  # in which others would come in
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=read) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert most == [1] * 10


def test_a_further_visitor_is_asked_to_try_later(app, limited, small, monkeypatch):
    limited(sessions=1)
    # For Streamlit all tests are one session.
    monkeypatch.setattr(sessions, "_place", lambda: _kept_in_session(sessions._take_place))
    first = app("home", small)
    second = app("home", small)
    assert second.title[0].value == "All places are taken"
    assert "Try again in some minutes" in second.info[0].value
    assert not second.button
    assert first.run().title[0].value != "All places are taken"
    sessions._leave(*sessions._places)
    assert second.run().title[0].value == first.title[0].value


def _kept_in_session(make):
    if "place" not in st.session_state:
        st.session_state["place"] = make()


def test_a_session_that_goes_on_after_a_break_needs_a_place_again(app, limited, small, monkeypatch):
    limited(sessions=1)
    monkeypatch.setattr(sessions, "_place", lambda: None)
    session = app("home", small)
    assert session.title[0].value != "All places are taken"
    monkeypatch.setattr(
        sessions, "_places", {1}
    )  # of somebody else: Streamlit has given up its own
    monkeypatch.setattr(sessions, "_place", sessions._take_place)
    assert session.run().title[0].value == "All places are taken"


@pytest.mark.nightly
def test_what_goes_beyond_the_saved_projects_is_not_saved_and_says_so(app, limited, small):
    limited(projects=1)
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("0.3").run()
    assert not session.error
    first = session.query_params["project"]
    session.open("home").button(key=f"example {EXAMPLES[0].key}").click().run()
    session.open("plan").text_input(key="typed budget").set_value("0.4").run()
    assert "you have 1 saved projects" in plain(session.texts("error"))
    assert "Save the project as a file" in plain(session.texts("error"))
    assert dict(session.scenario.budget.stated)["epsilon"] == Fraction("0.4")  # nothing is lost
    session.open("home").button(key=f"Delete {first}").click().run()
    session.open("plan").text_input(key="typed budget").set_value("0.5").run()
    assert not session.error


def test_a_project_of_more_bytes_than_the_limit_is_not_saved(app, limited, small):
    limited(project_kb=1)
    session = app("plan", small.replaced(note="n" * 900))
    session.text_input(key="typed budget").set_value("0.3").run()
    assert "this server keeps at most 1 kB of one" in plain(session.texts("error"))


def test_areas_beyond_what_an_account_may_keep_are_not_saved(app, limited, small):
    limited(account_mb=0)
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    study = AreaStudy.of("areas.json", rp.AreaCodebook("home", tree, small.domain))
    session = app("plan", small.replaced(areas=study))
    session.text_input(key="typed budget").set_value("0.3").run()
    assert "as much as this server keeps for one account" in plain(session.texts("error"))
    saves = Autosaves.of_user().folder.parent
    assert not list(saves.rglob("areas-*"))
    content = content_of(session.project)
    session.open("scenarios")
    session.file_uploader(key="project file").upload("p.zip", content).run()
    assert not list(saves.rglob("areas-*"))


def test_undo_goes_back_so_many_steps(app, limited, small):
    limited(undo_steps=2)
    session = app("plan", small)
    for budget in ("0.2", "0.3", "0.4"):
        session.text_input(key="typed budget").set_value(budget).run()
    assert len(session.session_state["steps back"]) == 2


def test_a_session_works_on_one_thing_at_a_time(limited, monkeypatch, outside_of_sessions):
    limited()
    own, going, most = threading.Semaphore(), [0], [0]
    monkeypatch.setattr(tasks, "own_turn", lambda: own)

    def work(on_progress):
        going[0] += 1
        most[0] = max(most[0], going[0])
        time.sleep(0.05)
        going[0] -= 1
        return True

    started = [Task(work).start() for _ in range(4)]
    for task in started:
        task.wait(PATIENCE)
    assert [task.result for task in started] == [True] * 4
    assert most[0] == 1


def test_the_server_works_on_no_more_than_it_has_processors(
    limited, monkeypatch, outside_of_sessions
):
    limited()
    monkeypatch.setattr(sessions, "_processors", threading.BoundedSemaphore(1))
    held, finish = threading.Event(), threading.Event()

    def first(on_progress):
        held.set()
        finish.wait(PATIENCE)

    going = Task(first).start()
    assert held.wait(PATIENCE)
    waiting = Task(lambda on_progress: "done").start()
    deadline = time.monotonic() + PATIENCE
    while waiting.doing != "Waiting for others on this server":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    given_up = Task(lambda on_progress: "done").start()
    given_up.cancel()
    given_up.wait(PATIENCE)
    assert given_up.error == "Cancelled."
    finish.set()
    going.wait(PATIENCE)
    waiting.wait(PATIENCE)
    assert waiting.result == "done"


def test_work_beyond_its_time_ends_with_a_sentence(limited, monkeypatch, outside_of_sessions):
    limited(solve_seconds=0)

    def work(on_progress):
        time.sleep(0.01)
        on_progress("Planning", 0.5)

    task = Task(work).start()
    task.wait(PATIENCE)
    assert "This takes more than" in task.error
    assert task.result is None


def test_the_memory_of_a_session_goes_with_it(app, limited, small):
    limited()
    session = app("plan", small)
    plan = weakref.ref(session.planned)
    workload = weakref.ref(session.planned.workload)
    session.open("tradeoffs").open("fairness").open("handover")
    del session
    gc.collect()
    assert plan() is None
    assert workload() is None or workload() is vars(small).get("workload")
