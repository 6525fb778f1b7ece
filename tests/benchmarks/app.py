"""The app's server, called as a browser calls it: seconds to an updated page, and bytes.

The time runs from the message that a browser would send to the one that says the page is complete,
so it holds the page's script, all that it computes, the packing and the way there. What the browser
needs to draw comes on top. The app's own program, the same for every page, is not in the bytes.
"""

import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

import rpexplore as rp
from rpexplore.common.installation import TOKEN_PARAMETER
from rpexplore.common.text import capitalised
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.serialization import loss_choices
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.benchmarks.measure import Row, processes_seconds
from tests.browser.conftest import TOKEN, running_app

PAGES = (
    "",
    "codebook",
    "workload",
    "plan",
    "fairness",
    "tradeoffs",
    "scenarios",
    "queries",
    "release",
    "results",
)
TIMED = ("plan", "fairness", "tradeoffs")
REPEATS = 4
_EMPTY_RERUNS = 20
PATIENCE = 60
AVERAGE, LARGEST = (capitalised(loss_choices()[kind].objective) for kind in ("sum", "max"))


class Visitor:
    """A session with the server: where it is, and what is typed, chosen and pressed there."""

    def __init__(self, socket, key: str) -> None:
        self._socket, self._query = socket, f"project={key}"
        self._page, self._widgets = "", dict[str, str]()

    def visit(self, name: str) -> tuple[float, int]:
        """(seconds, bytes) until a page is complete, opened by its address."""
        message = BackMsg()
        message.rerun_script.page_name = name
        return self._ask(message)

    def give(self, label: str, text: str) -> float:
        """Seconds until the page, which must be open, follows what is typed or chosen."""
        message, widget = self._of(label)
        widget.string_value = text
        return self._ask(message)[0]

    def press(self, label: str) -> float:
        """Seconds until the page, which must be open, follows the button."""
        message, widget = self._of(label)
        widget.trigger_value = True
        return self._ask(message)[0]

    def _of(self, label: str) -> tuple[BackMsg, WidgetState]:
        message = BackMsg()
        message.rerun_script.page_script_hash = self._page
        widget = message.rerun_script.widget_states.widgets.add()
        widget.id = self._widgets[label]
        return message, widget

    def _ask(self, message: BackMsg) -> tuple[float, int]:
        message.rerun_script.query_string = self._query
        start, n_bytes = time.perf_counter(), 0
        self._socket.send(message.SerializeToString())
        while True:
            raw = self._socket.recv(timeout=PATIENCE)
            n_bytes += len(raw)
            answer = ForwardMsg.FromString(raw)
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                self._page = answer.new_session.page_script_hash
            elif kind == "navigation":
                self._page = answer.navigation.page_script_hash or self._page
            elif kind == "delta":
                element = answer.delta.new_element
                drawn = getattr(element, element.WhichOneof("type") or "", None)
                if label := getattr(drawn, "label", ""):
                    self._widgets[label] = getattr(drawn, "id", "")
            elif kind == "script_finished":
                return time.perf_counter() - start, n_bytes


@contextmanager
def visiting(scenario: Scenario) -> Iterator[Visitor]:
    """A visitor of an app of its own, with this scenario."""
    with tempfile.TemporaryDirectory() as home:
        key = Autosaves.new_key()
        Autosaves(Path(home) / "autosaves").save(key, Project((scenario,)).text(), None)
        with running_app(Path(home)) as address:
            with urllib.request.urlopen(f"{address}/?{TOKEN_PARAMETER}={TOKEN}") as welcome:
                session = welcome.headers["set-cookie"].partition(";")[0]
            with connect(
                address.replace("http", "ws", 1) + "/_stcore/stream",
                origin=Origin(address),
                additional_headers={"Cookie": session},
                subprotocols=[Subprotocol("streamlit")],
                max_size=None,
            ) as socket:
                visitor = Visitor(socket, key)
                visitor.visit("")
                yield visitor


def figures(scenario: Scenario) -> tuple[dict[str, float], dict[str, float], float]:
    """(megabytes of each page, seconds of each thing done, processor time of a budget step)."""
    megabytes, seconds, worked = {}, {}, []
    with visiting(scenario) as visitor:
        for name in PAGES:
            visitor.visit(name)  # plans, where that is needed
            visits = [visitor.visit(name) for _ in range(REPEATS)]
            seconds[f"open {name or 'home'}"] = min(took for took, _ in visits)
            megabytes[name or "home"] = visits[0][1] / 1e6
        visitor.visit("plan")
        settle()
        for name in TIMED:
            times = []
            for repeat in range(REPEATS):
                visitor.visit("plan")
                before = server_seconds()
                changed = visitor.give("Privacy budget ρ", f"0.1{TIMED.index(name)}{repeat + 1}")
                worked.append(server_seconds() - before)
                times.append(changed if name == "plan" else visitor.visit(name)[0])
            seconds[f"budget to {name}"] = min(times)
        visitor.visit("plan")
        visitor.give("Objective", LARGEST)  # solved now, and kept
        visitor.press("Undo")
        seconds["change of objective"] = min(
            visitor.give("Objective", objective) for objective in (LARGEST, AVERAGE) * 2
        )
        seconds["undo"] = min(visitor.press("Undo") for _ in range(REPEATS))
    return megabytes, seconds, float(np.mean(worked))


def empty_rerun() -> float:
    """Processor time that Streamlit's server takes to run a script of one line again."""
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        script = Path(home) / "empty.py"
        script.write_text("import streamlit as st; st.text('nothing')\n", "utf-8")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [
            *(sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}"),
            *("--server.headless=true", "--browser.gatherUsageStats=false"),
            "--runner.postScriptGC=false",  # as the app
        ]
        process = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL)
        try:
            visitor = _visitor_of_any(f"127.0.0.1:{port}")
            before = server_seconds()
            for _ in range(_EMPTY_RERUNS):
                visitor.visit("")
            return (server_seconds() - before) / _EMPTY_RERUNS
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _visitor_of_any(address: str) -> Visitor:
    """A visitor of the server there, once it answers, who has seen its page."""
    for _ in range(10 * PATIENCE):
        try:
            connection = connect(
                f"ws://{address}/_stcore/stream",
                origin=Origin(f"http://{address}"),
                subprotocols=[Subprotocol("streamlit")],
            )
        except OSError:
            time.sleep(0.1)
            continue
        visitor = Visitor(connection, "")
        visitor.visit("")
        return visitor
    raise TimeoutError(f"no server answers at {address}")


def settle() -> None:
    """Wait until the server works on nothing in the background any more, a few minutes at most."""
    for _ in range(PATIENCE):
        before = server_seconds()
        time.sleep(4)
        if server_seconds() - before < 0.4:
            return


def server_seconds() -> float:
    """Processor time of the processes that this one has started, and that still run."""
    return processes_seconds() - time.process_time()


def adult() -> Scenario:
    """The 14 attributes of the Adult data, all tables of up to three."""
    sizes = [100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2]
    domain = rp.Domain.from_sizes({f"a{index:02}": size for index, size in enumerate(sizes)})
    return Scenario(domain, WorkloadRequest(order=3), expected=ExpectedCounts.of_total(50_000))


def hundred() -> Scenario:
    """A hundred attributes of mixed sizes, all 166,751 tables of up to three."""
    domain = rp.Domain.from_sizes({f"a{index:02}": 2 + index % 20 for index in range(100)})
    return Scenario(domain, WorkloadRequest(order=3), expected=ExpectedCounts.of_total(50_000))


def app_of(
    scenario: Scenario, what: str, limit: float, worked: float, times_empty: float
) -> list[Row]:
    megabytes, seconds, of_step = figures(scenario)
    return [
        (f"app, {what}: a budget step on Plan, processor s", of_step, "<=", worked),
        ("  times a rerun of an empty script", of_step / empty_rerun(), "<=", times_empty),
        *((f"app, {what}: {step}, s", took, "<=", limit) for step, took in seconds.items()),
        *((f"  payload of the {name} page, MB", size, "<=", 3) for name, size in megabytes.items()),
    ]


def app_adult() -> list[Row]:
    return app_of(adult(), "Adult up to 3-way", 0.25, 0.12, 25)


def app_hundred() -> list[Row]:
    return app_of(hundred(), "166,751 tables", 0.8, 0.3, 200)


CASES = (app_adult, app_hundred)
