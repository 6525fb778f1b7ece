"""All private parts of Streamlit and asyncio that the app uses, and a check of their shape.

What Streamlit documents is used anywhere; what it keeps to itself is used in this module alone (a
test looks). Each private part is listed in `PARTS` with what it is for. Before the server starts,
`prepare_streamlit` looks whether each of them is there and has the shape that it had when it was
tested: a planning server does not start without one of them, and the app on one's own machine says
what it lacks and goes on.
"""

import hashlib
import hmac
import inspect
import json
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any, NamedTuple

from packaging.version import Version
from starlette.datastructures import Headers

from rpexplore.common.event_log import log_event
from rpexplore.common.server_settings import ACCOUNT_HEADER
from rpexplore.errors import RpexploreError

TESTED = ("1.67", "1.68")  # from the first version on, up to before the second; so in pyproject
UPLOADS = "/_stcore/upload_file/"  # below it, the name of a session and of a file

_RUNTIME = "streamlit.runtime:Runtime"
_UPLOADED = "streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager"
_SESSIONS = "streamlit.runtime.websocket_session_manager:WebsocketSessionManager"
_CONTEXT = "streamlit.runtime.scriptrunner_utils.script_run_context"
_RUNNER = "streamlit.runtime.scriptrunner.script_runner:ScriptRunner"
_MEDIA = "streamlit.runtime.memory_media_file_storage"
_MESSAGE = "streamlit.proto.BackMsg_pb2:BackMsg"


@dataclass(frozen=True)
class Part:
    """A private part that the app relies on.

    name      where it is
    purpose   what a planning server needs it for, behind "to"
    lacking   what one's own app lacks without it; "" for what only a planning server uses
    is_needed whether a planning server may not run without it
    is_as_tested  looks whether it is there, with the shape that is relied on
    """

    name: str
    purpose: str
    is_as_tested: Callable[[], bool]
    lacking: str = ""
    is_needed: bool = True

    @property
    def has_changed(self) -> bool:
        """Whether it is gone, or has another shape."""
        try:
            return not self.is_as_tested()
        except Exception:  # whatever a changed part raises where it is looked at
            return True


def prepare_streamlit(planning_only: bool) -> None:
    """Check the private parts, and mend what is mended with them; before the server starts.

    Raises `RpexploreError` for a planning server whose Streamlit was not tested or has changed.
    """
    changed = [part for part in PARTS if part.has_changed]
    if planning_only:
        _refuse_untested([part for part in changed if part.is_needed])
        for part in changed:
            log_event("library changed", part=part.name)
    else:
        for part in changed:
            if part.lacking:
                sys.stderr.write(f"{_versions()} {part.name} has changed: {part.lacking}.\n")
    for mended, mend in _MENDED.items():
        if mended not in changed:
            mend()


def _refuse_untested(changed: list[Part]) -> None:
    if changed:
        what = "; ".join(f"{part.name}, used to {part.purpose}" for part in changed)
        problem = f"These private parts have changed: {what}."
    elif Version(TESTED[0]) <= Version(version("streamlit")) < Version(TESTED[1]):
        return
    else:
        problem = "That version was not tried."
    raise RpexploreError(
        f"The planning server does not start. {_versions()} {problem} Install a tested version "
        f'with: pip install "streamlit>={TESTED[0]},<{TESTED[1]}", or a newer rpexplore.'
    )


def _versions() -> str:
    return (
        f"Streamlit {version('streamlit')} is installed, and rpexplore was tested with {TESTED[0]} "
        f"and later, before {TESTED[1]}."
    )


# Whose a session is, and what it holds of uploads.


class Upload(NamedTuple):
    """The session that an upload is for, and the name of its file there."""

    session: str
    file: str

    @classmethod
    def of(cls, path: str) -> "Upload | None":
        """The upload that a path below the base path is about, if it is about one."""
        session, _, file = path.removeprefix(UPLOADS).partition("/")
        return cls(session, file) if path.startswith(UPLOADS) else None

    @property
    def owner(self) -> str | None:
        """What the header of its session's account says; None if nobody is connected to it."""
        client = resolve_name(_RUNTIME).instance().get_client(self.session)
        context = None if client is None else client.client_context
        return None if context is None else dict(context.headers).get(ACCOUNT_HEADER)

    @property
    def size_of_session(self) -> int:
        """How many bytes its session holds of all its uploads."""
        held = resolve_name(_RUNTIME).instance().uploaded_file_mgr.file_storage
        return sum(len(file.data) for file in list(held.get(self.session, {}).values()))

    def remove(self) -> None:
        """Take the file out of the server's memory."""
        resolve_name(_RUNTIME).instance().uploaded_file_mgr.remove_file(self.session, self.file)


def forget_uploaded(file: Any) -> None:
    """Take a file of this session's upload boxes out of the server's memory, as its cross does."""
    context = resolve_name(f"{_CONTEXT}:get_script_run_ctx")()
    if context is not None:
        context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)


def is_for_everybody(message: bytes) -> bool:
    """Whether a browser asks what would be done to all sessions: to clear what they keep."""
    asked = resolve_name(_MESSAGE)()
    try:
        asked.ParseFromString(message)
    except Exception:  # Streamlit answers to what is no message
        return False
    return asked.WhichOneof("type") == "clear_cache"


# What is mended.


def finish_callbacks() -> None:
    """Keep Streamlit from breaking off a widget's callback.

    It breaks off a session's script, wherever that reads the session's state, as soon as the
    browser asks for the next run; and so also what a widget calls when it changes. Who typed into a
    field and then clicked on another page would find nothing changed, or half of it. The next run
    waits for the end of such a call; that of a page, which only draws, is still broken off.
    """
    runner, state = resolve_name(_RUNNER), resolve_name(f"{_CONTEXT}:ThreadState")
    callback = resolve_name(f"{_CONTEXT}:RunLocation").CALLBACK
    pause = runner._maybe_handle_execution_control_request

    def pause_outside_callbacks(self: Any) -> None:
        if not (self._execing and state.get().run_location is callback):
            pause(self)

    runner._maybe_handle_execution_control_request = pause_outside_callbacks


def tell_files_apart() -> None:
    """Give each file that a page offers an address by all of its content, which nobody can guess.

    Streamlit takes a checksum of three parts of a file above 1 MB: who asks for one file would be
    given another that has these in common, be it somebody else's.
    """
    key = secrets.token_bytes(32)

    def file_id(data: bytes, mimetype: str, filename: str | None = None) -> str:
        about = json.dumps([mimetype, filename]).encode()
        return hmac.new(key, hashlib.sha256(about).digest() + data, hashlib.sha256).hexdigest()

    resolve_name(_MEDIA)._calculate_file_id = file_id


def send_at_once() -> None:
    """Keep the system from holding back what the server sends.

    asyncio turns that off (Nagle's algorithm) only where a socket names TCP as its protocol, which
    Streamlit's does not. What is written in two pieces, as each file and each part of a page, would
    wait up to 40 ms for the browser to acknowledge the first.
    """

    def turn_off(sock: socket.socket) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    resolve_name("asyncio.base_events")._set_nodelay = turn_off


# What each part looked like when it was tested.


def _takes(name: str, *parameters: str) -> bool:
    """Whether a function, or a method behind `self`, has these parameters and no others."""
    found = [taken for taken in inspect.signature(resolve_name(name)).parameters if taken != "self"]
    return found == list(parameters)


def _mentions(name: str, *words: str) -> bool:
    """Whether the code of a function reads or writes attributes or globals of these names."""
    return set(words) <= {*inspect.unwrap(resolve_name(name)).__code__.co_names}


def _has(name: str, *attributes: str) -> bool:
    return all(hasattr(resolve_name(name), attribute) for attribute in attributes)


def _sessions_stay_with_accounts() -> bool:
    told = resolve_name("streamlit.web.server.starlette.starlette_websocket:gather_user_info")
    return (
        # The command line has Streamlit told so: `server.trustedUserHeaders`.
        told(Headers({ACCOUNT_HEADER: "ada"})) == {"account": "ada"}
        and _takes("streamlit.runtime.app_session:AppSession.matches_user_info", "user_info")
        and _mentions(f"{_SESSIONS}.connect_session", "matches_user_info")
        and _mentions(f"{_SESSIONS}._resume_stored_session", "matches_user_info")
    )


def _uploads_have_owners() -> bool:
    route = "streamlit.web.server.starlette.starlette_routes:_ROUTE_UPLOAD_FILE"
    (urls,) = resolve_name(_UPLOADED)(UPLOADS.rstrip("/")).get_upload_urls("session", ["name"])
    return (
        f"/{resolve_name(route)}" == f"{UPLOADS}{{session_id}}/{{file_id}}"
        and Upload.of(urls.upload_url) == Upload("session", urls.file_id)
        and _has(_RUNTIME, "instance")
        and _takes(f"{_RUNTIME}.get_client", "session_id")
        and _has("streamlit.runtime.session_manager:SessionClient", "client_context")
        and _has("streamlit.runtime.session_manager:ClientContext", "headers")
    )


def _uploads_can_be_removed() -> bool:
    held, record = resolve_name(_UPLOADED)(""), "streamlit.runtime.uploaded_file_manager"
    file = resolve_name(f"{record}:UploadedFileRec")("file", "name", "text/plain", b"content")
    held.add_file("session", file)
    was_there = held.file_storage["session"]["file"].data == b"content"
    held.remove_file("session", "file")
    return (
        was_there
        and not held.file_storage.get("session")
        and _has(_RUNTIME, "uploaded_file_mgr")
        and callable(resolve_name(f"{_CONTEXT}:get_script_run_ctx"))
        and {"session_id", "uploaded_file_mgr"}
        <= set(resolve_name(f"{_CONTEXT}:ScriptRunContext").__dataclass_fields__)
    )


def _callbacks_can_be_finished() -> bool:
    return (
        _takes(f"{_RUNNER}._maybe_handle_execution_control_request")
        and _mentions(f"{_RUNNER}._set_execing_flag", "_execing")
        and _has(f"{_CONTEXT}:RunLocation", "CALLBACK")
        and _has(f"{_CONTEXT}:ThreadState", "get")
        and "run_location" in resolve_name(f"{_CONTEXT}:FragmentThreadState").__dataclass_fields__
    )


FILES_APART = Part(
    f"{_MEDIA}._calculate_file_id",
    "give each download an address that nobody can guess",
    lambda: (
        _takes(f"{_MEDIA}:_calculate_file_id", "data", "mimetype", "filename")
        and _mentions(f"{_MEDIA}:MemoryMediaFileStorage.load_and_get_id", "_calculate_file_id")
    ),
    lacking="of two large downloads that have much in common you may be given the other",
)
CALLBACKS = Part(
    "streamlit.runtime.scriptrunner.ScriptRunner._maybe_handle_execution_control_request",
    "keep what is typed just before a click on another page",
    _callbacks_can_be_finished,
    lacking="what you type just before you click on another page may be lost",
)
AT_ONCE = Part(
    "asyncio.base_events._set_nodelay",
    "send messages without delay",
    lambda: (
        _takes("asyncio.base_events:_set_nodelay", "sock")
        and _mentions("asyncio.selector_events:_SelectorSocketTransport.__init__", "_set_nodelay")
    ),
    lacking="pages may come up to 40 ms later",
    is_needed=False,
)
PARTS = (
    Part(
        "server.trustedUserHeaders",
        "leave each session with its account",
        _sessions_stay_with_accounts,
    ),
    Part(
        "streamlit.runtime.Runtime.get_client",
        "take uploads from a session's own account alone",
        _uploads_have_owners,
    ),
    Part(
        "streamlit.runtime.Runtime.uploaded_file_mgr",
        "remove refused uploads from memory",
        _uploads_can_be_removed,
    ),
    Part(
        "streamlit.proto.BackMsg.clear_cache",
        "keep one browser from clearing what all others work on",
        lambda: is_for_everybody(resolve_name(_MESSAGE)(clear_cache=True).SerializeToString()),
    ),
    FILES_APART,
    CALLBACKS,
    AT_ONCE,
)
_MENDED = {FILES_APART: tell_files_apart, CALLBACKS: finish_callbacks, AT_ONCE: send_at_once}
