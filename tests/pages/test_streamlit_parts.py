"""What is private in Streamlit and asyncio: in one module, as it was tested, or nothing starts."""

import ast
import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
from packaging.version import Version
from streamlit import config
from streamlit.runtime import memory_media_file_storage
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from rpexplore.common.server import ACCOUNT_HEADER, ACCOUNT_OF_USER
from rpexplore.errors import RpexploreError
from rpexplore.serving import streamlit_parts
from rpexplore.serving.streamlit_parts import (
    PARTS,
    TESTED,
    finish_callbacks,
    look_up_single_values,
    prepare_streamlit,
    send_at_once,
    tell_files_apart,
)
from tests.support.planning_server import free_port

ROOT = Path(__file__).parents[2]
RUNNER = "streamlit.runtime.scriptrunner.script_runner:ScriptRunner"
SESSIONS = "streamlit.runtime.websocket_session_manager:WebsocketSessionManager"
UPLOADED = "streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager"
ROUTE = "streamlit.web.server.starlette.starlette_routes:_ROUTE_UPLOAD_FILE"
MATCHES = "streamlit.runtime.app_session:AppSession.matches_user_info"
GET_CLIENT = "streamlit.runtime:Runtime.get_client"
MESSAGE = "streamlit.proto.BackMsg_pb2:BackMsg"
PAUSE = f"{RUNNER}._maybe_handle_execution_control_request"
MAKE_STATE = "streamlit.runtime.state.safe_session_state:SafeSessionState.__init__"
FILE_ID = "streamlit.runtime.memory_media_file_storage:_calculate_file_id"
NO_DELAY = "asyncio.base_events:_set_nodelay"
VALUES = "streamlit.runtime.state.safe_session_state:SafeSessionState.filtered_state"
TRUSTED = "server.trustedUserHeaders"
VITAL = [name for part in PARTS if part.is_vital for name in part.shapes]
# What is used beside those, and what is named when it is gone.
MORE = {
    ROUTE: GET_CLIENT,
    "streamlit.runtime:Runtime.instance": "streamlit.runtime:Runtime",
    "streamlit.runtime:Runtime.uploaded_file_mgr": "streamlit.runtime:Runtime",
    "streamlit.runtime.session_manager:SessionClient.client_context": "SessionClient",
    "streamlit.runtime.session_manager:ClientContext.headers": "ClientContext",
    f"{UPLOADED}.get_upload_urls": UPLOADED,
    f"{UPLOADED}.remove_file": UPLOADED,
}


def place(name: str) -> tuple[object, str]:
    """Where something is, and its name there."""
    module, _, path = name.partition(":")
    holder, _, last = path.rpartition(".")
    return resolve_name(f"{module}:{holder}" if holder else module), last


@pytest.fixture
def mended(monkeypatch):
    """What is mended is as it was when the test is over."""
    for name in (PAUSE, MAKE_STATE, FILE_ID, NO_DELAY, VALUES):
        holder, last = place(name)
        monkeypatch.setattr(holder, last, getattr(holder, last))


@pytest.fixture
def told(mended) -> Iterator[None]:
    """Streamlit is told, as by the command line, in which header a session's account is."""
    config.set_option(TRUSTED, {ACCOUNT_HEADER: ACCOUNT_OF_USER})
    yield
    config.set_option(TRUSTED, {})


def test_what_was_tested_is_what_is_installed_and_demanded(told):
    prepare_streamlit(planning_only=True)
    low, high = TESTED
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"streamlit>={low},<{high}" in project["optional-dependencies"]["app"]
    locks = "".join(path.read_text("utf-8") for path in ROOT.glob("requirements*.lock"))
    locked = re.findall(r"(?m)^streamlit==(\S+)", locks)
    for known in (version("streamlit"), *locked):
        assert Version(low) <= Version(known) < Version(high)
    assert locked


@pytest.mark.parametrize(("installed", "starts"), [("1.67.3", True), ("1.68.0", False)])
def test_a_planning_server_starts_with_a_tested_version_alone(told, monkeypatch, installed, starts):
    monkeypatch.setattr(streamlit_parts, "version", lambda _package: installed)
    if starts:
        prepare_streamlit(planning_only=True)
    else:
        with pytest.raises(RpexploreError, match=r'1\.68\.0 .*pip install "streamlit>='):
            prepare_streamlit(planning_only=True)
    prepare_streamlit(planning_only=False)


@pytest.mark.parametrize(("gone", "named"), [*zip(VITAL, VITAL, strict=True), *MORE.items()])
def test_a_planning_server_names_the_part_that_is_gone(told, monkeypatch, gone, named):
    monkeypatch.delattr(*place(gone))
    with pytest.raises(RpexploreError) as refused:
        prepare_streamlit(planning_only=True)
    said = str(refused.value)
    assert named in said
    assert "(used to " in said
    assert f"tested with {TESTED[0]} and later, before {TESTED[1]}" in said
    assert "pip install" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("name", "shape", "named"),
    [
        (MATCHES, lambda self: True, MATCHES),
        (f"{SESSIONS}.connect_session", lambda self, client: None, "connect_session"),
        (ROUTE, "_stcore/upload/{file_id}", GET_CLIENT),
        (GET_CLIENT, lambda self: None, GET_CLIENT),
        (f"{UPLOADED}.remove_file", lambda self, session_id, file_id: None, UPLOADED),
        (MESSAGE, lambda **_: SimpleNamespace(SerializeToString=bytes), MESSAGE),
        (FILE_ID, lambda file: "", FILE_ID),
        (PAUSE, lambda self, request: None, PAUSE),
    ],
)
def test_a_planning_server_names_the_part_of_another_shape(told, monkeypatch, name, shape, named):
    monkeypatch.setattr(*place(name), shape)
    with pytest.raises(RpexploreError, match="have changed") as refused:
        prepare_streamlit(planning_only=True)
    assert named in str(refused.value)


def test_a_planning_server_that_was_not_told_the_header_of_accounts_does_not_start(mended):
    assert config.get_option(TRUSTED) == {}
    with pytest.raises(RpexploreError, match="used to leave each session with its account"):
        prepare_streamlit(planning_only=True)


def test_ones_own_app_says_what_it_lacks_and_goes_on(mended, monkeypatch, capsys):
    prepare_streamlit(planning_only=False)
    assert not capsys.readouterr().err
    for name in (PAUSE, FILE_ID, MESSAGE):
        monkeypatch.delattr(*place(name))
    prepare_streamlit(planning_only=False)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2  # and nothing of what only a planning server needs
    assert all("has changed: " in line for line in said)
    assert any(line.endswith("click on another page may be lost.") for line in said)


def test_a_planning_server_goes_on_where_it_is_only_slower(told, monkeypatch):
    logged = []
    monkeypatch.setattr(streamlit_parts, "log_event", lambda _event, **more: logged.append(more))
    monkeypatch.delattr(*place(NO_DELAY))
    prepare_streamlit(planning_only=True)
    assert logged == [{"part": NO_DELAY}]


@pytest.mark.nightly
def test_whoever_starts_it_is_told_in_one_line(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "known = metadata.version\n"
        "metadata.version = lambda name: '1.99.0' if name == 'streamlit' else known(name)\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "rpexplore.cli.main", "app", "--planning-only", "--no-login"]
    ended = subprocess.run(
        [*command, "--port", str(free_port())],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "RPEXPLORE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert not ended.stdout
    (said,) = ended.stderr.splitlines()
    assert said.startswith("Error: The planning server does not start. Streamlit 1.99.0 is")


PUBLIC = {"streamlit", "streamlit.components.v2", "asyncio"}
PRIVATE_MODULES = {"runtime", "web", "config", "proto", "auth_util", "user_info", "base_events"}


def private_uses(text: str) -> set[str]:
    """What a module takes of Streamlit and asyncio that they do not document."""
    used = set()
    if not re.search("streamlit|asyncio", text):  # as in most modules
        return used
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                used |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                used |= {module} | {
                    f"{module}.{alias.name}" for alias in names if alias.name in PRIVATE_MODULES
                }
            case ast.Attribute(value=ast.Name(id=("st" | "asyncio") as owner), attr=name):
                if name.startswith("_") or name in PRIVATE_MODULES:
                    used.add(f"streamlit.{owner}.{name}")
            case ast.Constant(value=str(name)) if re.fullmatch(r"[\w.]+(:[\w.]+)?", name):
                used.add(name)
    return {name for name in used - PUBLIC if name.startswith(("streamlit.", "asyncio."))}


def test_private_parts_are_used_in_one_module():
    place = ROOT / "rpexplore/serving/streamlit_parts.py"
    modules = [path for room in ("pages", "rpexplore") for path in (ROOT / room).rglob("*.py")]
    used = {
        path.name: private_uses(path.read_text("utf-8")) for path in (ROOT / "app.py", *modules)
    }
    assert [name for name, uses in used.items() if uses] == [place.name]


@pytest.mark.parametrize(
    "text",
    [
        "from streamlit import runtime",
        "from streamlit.runtime import Runtime",
        "import streamlit.web.bootstrap",
        "import streamlit as st\nst.runtime.exists()",
        "import streamlit as st\nst._main",
        "import asyncio\nasyncio.base_events._set_nodelay = None",
        "from asyncio import base_events",
        "import_module('streamlit.user_info')",
    ],
)
def test_the_checker_tells_a_private_part(text):
    assert private_uses(text)


def awaited(work: Coroutine[None, None, bool]) -> bool:
    """What work returns; in a thread, as Playwright leaves a loop running in that of the tests."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def test_messages_are_sent_at_once(mended):
    async def is_set() -> bool:
        """Of a connection to a socket that is made as Streamlit makes its own."""
        found = asyncio.Future[int]()

        async def look(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = socket.socket(socket.AF_INET)
        listening.bind(("127.0.0.1", 0))
        async with await asyncio.start_server(look, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return bool(await found)

    assert not awaited(is_set())  # by Python itself
    send_at_once()
    assert awaited(is_set())


def test_files_that_have_much_in_common_are_told_apart(mended):
    tell_files_apart()
    kept = memory_media_file_storage.MemoryMediaFileStorage("/media")

    def address(content: bytes, name: str = "plan.json") -> str:
        return kept.load_and_get_id(content, "text/plain", MediaFileKind.DOWNLOADABLE, name)

    of_ada = b"x" * 700_000 + b"a" + b"x" * 2_000_000
    of_ben = of_ada.replace(b"a", b"b")
    assert kept.get_file(f"{address(of_ada)}.txt").content == of_ada
    assert kept.get_file(f"{address(of_ben)}.txt").content == of_ben
    before = address(of_ada)
    assert before == address(of_ada) != address(of_ada, "other.json")
    tell_files_apart()
    assert address(of_ada) != before  # of another server: it cannot be worked out


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


def test_a_callback_is_not_broken_off_by_the_next_run(mended):
    def taken() -> bool:
        session = AppTest.from_function(page).run()
        session.text_input(key="field").set_value("people").run()
        assert not session.exception
        return "taken" in session.session_state

    assert not taken()  # by Streamlit itself
    finish_callbacks()
    assert taken()


def test_the_next_run_begins_when_the_callbacks_of_the_last_one_are_done(mended, monkeypatch):
    state = SessionState()

    def order(patience: float) -> list[str]:
        """What happens, in order, if the next run begins in the middle of a callback."""
        happened: list[str] = []

        def begin(name: str) -> None:
            SafeSessionState(state, lambda: None).on_script_will_rerun(None)
            happened.append(name)

        next_run = threading.Thread(target=begin, args=["next run"])

        def callbacks(*_: object, **__: object) -> None:
            if threading.current_thread() is not next_run:
                next_run.start()
                next_run.join(patience)  # as far as it comes
                happened.append("callback")

        monkeypatch.setattr(SessionState, "on_script_will_rerun", callbacks)
        begin("run")
        next_run.join()
        return happened

    assert order(60) == ["next run", "callback", "run"]  # by Streamlit itself
    finish_callbacks()
    assert order(0.2)[0] == "callback"


def test_a_widget_looks_up_its_own_value_as_in_the_list_of_all(mended, monkeypatch):
    state = SafeSessionState(SessionState(), lambda: None)
    state["typed"], state["nothing"] = "a", None
    listed = state.filtered_state
    look_up_single_values()
    values = state.filtered_state
    assert dict(values) == listed == {"typed": "a", "nothing": None}
    assert "other" not in values
    assert len(values) == 2

    def refuse(_state: SessionState) -> None:
        raise AssertionError("all values were listed")

    monkeypatch.setattr(SessionState, "filtered_state", property(refuse))
    assert values["typed"] == "a"
    assert "nothing" in values
