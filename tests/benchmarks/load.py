"""The shared planning server under load: 50 sessions at once on the Adult data.

Each session is one of the team: another budget, another name. Two loads: every session moves the
slider of the budget at random times, every ten seconds on average; and all move it within the same
second. Seconds from the message that a browser would send to the one that says that the page is
complete, so that waiting for other sessions is in them. The client runs on the same machine.

In the second kind of step, on Trade-offs, a session asks what leaving out the tables of an
attribute would change for all others, which is a plan of its own.
"""

import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import log10
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project
from rpexplore.serving.accounts import BROWSER_COOKIE, account_of_browser
from tests.benchmarks.app import adult, empty_rerun, server_seconds, settle
from tests.benchmarks.measure import Row, descendants_gigabytes
from tests.support.planning_server import free_port, planning_server

SESSIONS = 50
SECONDS = 40.0  # that the sessions move their sliders, each every
PAUSE = 10.0  # seconds on average
PATIENCE = 120
CONTAINING = "Tables with all of these attributes"
SLIDER = "← more private · more accurate →"
LEAST_PARSED = 512  # bytes; a longer message is an element, which is looked at only for its label
PLANNED = b"Proven optimal for this objective"
STOPS = ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"]


@dataclass
class Member:
    """One session: its socket, its widgets by their labels, and what it has been shown."""

    socket: ClientConnection
    key: str
    name: str
    page: str = ""
    widgets: dict[str, str] = field(default_factory=dict)
    shown: bytes = b""
    n_bytes: int = 0

    def visit(self, name: str) -> float:
        message = BackMsg()
        message.rerun_script.page_name = name
        return self._ask(message, learn=True)

    def slide(self, value: str) -> float:
        """Move the slider of the budget."""
        message = self._message()
        widget = message.rerun_script.widget_states.widgets.add()
        widget.id = self.widgets[SLIDER]
        widget.string_array_value.data.append(value)
        return self._ask(message)

    def leave_out(self, attribute: int) -> float:
        """On Trade-offs, ask what it would change to leave out all tables of this attribute."""
        message = self._message()
        widget = message.rerun_script.widget_states.widgets.add()
        widget.id = self.widgets[CONTAINING]
        widget.string_array_value.data.append(f"a{attribute:02}")
        return self._ask(message)

    def _message(self) -> BackMsg:
        message = BackMsg()
        message.rerun_script.page_script_hash = self.page
        return message

    def _ask(self, message: BackMsg, *, learn: bool = False) -> float:
        message.rerun_script.query_string = f"project={self.key}&tradeoffs=What+if"
        start, shown = time.perf_counter(), []
        self.socket.send(message.SerializeToString())
        while True:
            raw = self.socket.recv(timeout=PATIENCE, decode=False)
            shown.append(raw)
            if not learn and len(raw) > LEAST_PARSED:
                continue
            answer = ForwardMsg.FromString(raw)
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                self.page = answer.new_session.page_script_hash
            elif kind == "navigation":
                self.page = answer.navigation.page_script_hash or self.page
            elif kind == "delta" and learn:
                self._learn(answer)
            elif kind == "script_finished":
                took = time.perf_counter() - start
                self.shown = b"".join(shown)
                self.n_bytes = len(self.shown)
                return took

    def _learn(self, answer: ForwardMsg) -> None:
        element = answer.delta.new_element
        drawn = getattr(element, element.WhichOneof("type") or "", None)
        if label := getattr(drawn, "label", ""):
            self.widgets[label] = getattr(drawn, "id", "")


@contextmanager
def team(n_sessions: int = SESSIONS) -> Iterator[list[Member]]:
    """So many accounts of one server, each with a project of its own on the Plan page."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as until_the_end:
        port = free_port()
        server = planning_server(Path(folder), "--no-login", port=port)
        until_the_end.enter_context(server)

        def member(number: int) -> Member:
            cookie, key = secrets.token_urlsafe(32), Autosaves.new_key()
            name = f"team member {number:03}"
            account = account_of_browser({BROWSER_COOKIE: cookie})
            assert account is not None
            saves = Autosaves(Path(folder, "home", "accounts", account.folder))
            saves.save(key, Project((adult().replaced(survey=name),)).text(), None)
            socket = connect(
                f"ws://127.0.0.1:{port}/_stcore/stream",
                origin=Origin(f"http://127.0.0.1:{port}"),
                additional_headers={"Cookie": f"{BROWSER_COOKIE}={cookie}"},
                subprotocols=[Subprotocol("streamlit")],
                max_size=None,
            )
            until_the_end.enter_context(socket)
            return Member(socket, key, name)

        members = [member(number) for number in range(n_sessions)]
        at_once(members, _planned)
        yield members


def _planned(member: Member) -> float:
    """Seconds until the Plan page is there with its plan."""
    took = member.visit("")
    while PLANNED not in member.shown:
        took += member.visit("plan")
    return took


def at_once(members: Sequence[Member], step: Callable[[Member], float]) -> list[float]:
    """The seconds of a step of each, all begun together."""
    with ThreadPoolExecutor(len(members)) as threads:
        return list(threads.map(step, members))


def steady(members: Sequence[Member], step: Callable[[Member], float]) -> list[float]:
    """The seconds of all steps, each session taking one every `PAUSE` seconds on average."""
    end = time.perf_counter() + SECONDS

    def steps(member: Member) -> list[float]:
        times, pauses = [], random.Random(member.name)
        time.sleep(pauses.uniform(0, PAUSE))
        while time.perf_counter() < end:
            times.append(step(member))
            time.sleep(pauses.expovariate(1 / PAUSE))
        return times

    with ThreadPoolExecutor(len(members)) as threads:
        return [took for times in threads.map(steps, members) for took in times]


def moved(members: Sequence[Member]) -> Callable[[Member], float]:
    """A step of the slider, which checks that what comes back is the session's own."""
    names = {member.name.encode() for member in members}
    stops = {member.name: iter(_stops(member.name)) for member in members}

    def step(member: Member) -> float:
        value = next(stops[member.name])
        took = member.slide(value)
        others = [name for name in names - {member.name.encode()} if name in member.shown]
        assert member.name.encode() in member.shown
        assert not others, f"{member.name} was shown what is of {others}"
        assert f"ρ = {value}".encode() in member.shown, f"{member.name} asked for {value}"
        return took

    return step


def _stops(name: str) -> Iterator[str]:
    """Budgets in an order of its own, never one twice in a row."""
    chosen, last = random.Random(name), ""
    while True:
        last = chosen.choice([stop for stop in STOPS if stop != last])
        yield last


def load() -> list[Row]:
    """Steps under both loads, and the peak of the server."""
    with team() as members:
        step = moved(members)
        at_once(members, step)  # what is worked out once for all
        settle()  # else what the server still plans in the background would be in the steps
        own = [step(members[0]) for _ in range(5)]
        before = server_seconds()
        at_once(members[: SESSIONS // 10], step)
        of_few = server_seconds() - before
        before = server_seconds()
        burst = at_once(members, step)
        worked = server_seconds() - before
        spread = steady(members, step)
        bytes_a_step = max(member.n_bytes for member in members)
        gigabytes = descendants_gigabytes()
    floor = SESSIONS * empty_rerun()
    what = f"{SESSIONS} sessions, Adult up to 3-way"
    return [
        (f"{what}: slider, one alone, s", min(own), "<=", 0.12),
        ("  processor time of the server for one step of each, s", worked, "<=", 2.5),
        ("  times as many reruns of an empty script", worked / floor, "<=", 20),
        (
            "  exponent of this time from a tenth of the sessions on",
            log10(worked / of_few),
            "<=",
            1.1,
        ),
        *_rows("slider, all within a second", burst),
        *_rows(f"slider, each every {PAUSE:g} s", spread),
        ("  payload of a step, MB", bytes_a_step / 1e6, "<=", 0.5),
        ("  peak memory of the server, GB", gigabytes, "<=", 1.5),
    ]


def load_what_if() -> list[Row]:
    """The same on Trade-offs, where each session asks what leaving out some tables would change."""
    with team() as members:
        at_once(members, lambda member: member.visit("tradeoffs"))
        chosen = {member.name: random.Random(member.name) for member in members}

        def step(member: Member) -> float:
            took = member.leave_out(chosen[member.name].randrange(14))
            assert member.name.encode() in member.shown
            return took

        burst, spread = at_once(members, step), steady(members, step)
        gigabytes = descendants_gigabytes()
    return [
        *_rows("what if, all within a second", burst, f"{SESSIONS} sessions, Adult up to 3-way: "),
        *_rows(f"what if, each every {PAUSE:g} s", spread),
        ("  peak memory of the server, GB", gigabytes, "<=", 1.5),
    ]


def _rows(what: str, times: Sequence[float], before: str = "  ") -> list[Row]:
    return [
        (f"{before}{what}: median, s", float(np.median(times)), "<=", 2.5),
        (f"  {what}: 95th percentile, s", float(np.quantile(times, 0.95)), "<=", 2.5),
        (f"  {what}: longest, s", max(times), "<=", 5.0),
    ]


CASES = (load, load_what_if)
