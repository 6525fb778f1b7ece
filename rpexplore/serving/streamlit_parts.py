"""All private parts of Streamlit, Starlette and asyncio that the app uses; a check of their shape.

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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from packaging.version import Version
from starlette.datastructures import Headers

from rpexplore.common.server import ACCOUNT_HEADER, ACCOUNT_OF_USER
from rpexplore.common.server_files import log_event
from rpexplore.errors import RpexploreError

TESTED = ("1.67", "1.68")  # from the first version on, up to before the second; so in pyproject

_UPLOADS = "/_stcore/upload_file/"  # below it, the name of a session and of a file
_RUNTIME = "streamlit.runtime:Runtime"
_SESSIONS = "streamlit.runtime.websocket_session_manager:WebsocketSessionManager"
_CONTEXT = "streamlit.runtime.scriptrunner_utils.script_run_context"
_RUNNER = "streamlit.runtime.scriptrunner.script_runner:ScriptRunner"
_STATE = "streamlit.runtime.state.safe_session_state:SafeSessionState"
_TEXT_WIDGETS = "streamlit.elements.widgets.text_widgets:TextWidgetsMixin"
_MEDIA = "streamlit.runtime.memory_media_file_storage"
_STARLETTE = "streamlit.web.server.starlette"
_UPLOADED = "streamlit.runtime.memory_uploaded_file_manager"
_FORMS = "starlette.formparsers"
_MESSAGE = "streamlit.proto.BackMsg_pb2:BackMsg"


# Whose a session is, and what it holds of uploads.


class Upload(NamedTuple):
    """The session that an upload is for, and the name of its file there."""

    session: str
    file: str

    @classmethod
    def of(cls, path: str) -> "Upload | None":
        """The upload that a path below the base path is about, if it is about one."""
        session, _, file = path.removeprefix(_UPLOADS).partition("/")
        return cls(session, file) if path.startswith(_UPLOADS) else None

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
    waits for the end of such a call: it is made while the lock on the state is held, and here all
    runs of a session have one lock, where Streamlit gives each its own. That of a page, which only
    draws, is still broken off.
    """
    runner, state = resolve_name(_RUNNER), resolve_name(f"{_CONTEXT}:ThreadState")
    safe_state = resolve_name(_STATE)
    make_safe_state = safe_state.__init__
    locks = WeakValueDictionary[int, Any]()  # as long as a run has it
    callback = resolve_name(f"{_CONTEXT}:RunLocation").CALLBACK
    pause = runner._maybe_handle_execution_control_request

    def pause_outside_callbacks(self: Any) -> None:
        if not (self._execing and state.get().run_location is callback):
            pause(self)

    def share_lock(self: Any, state: Any, yield_callback: Callable[[], None]) -> None:
        make_safe_state(self, state, yield_callback)
        # Assigning to the attribute would set a value of the session.
        object.__setattr__(self, "_lock", locks.setdefault(id(state), self._lock))

    runner._maybe_handle_execution_control_request = pause_outside_callbacks
    safe_state.__init__ = share_lock


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


def keep_uploads_in_memory() -> None:
    """Keep what is uploaded off the disk.

    Starlette writes a file of more than 1 MB into the temporary folder while it arrives, from where
    Streamlit reads it. Streamlit bounds each request while it arrives, by `server.maxUploadSize`,
    so that memory needs no second bound.
    """
    resolve_name(f"{_FORMS}:MultiPartParser").spool_max_size = sys.maxsize


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


def look_up_single_values() -> None:
    """Let a widget look up its own value in a session's state.

    For that alone, Streamlit lists all values of the session, once for each widget with a key.
    """
    state = resolve_name(_STATE)
    listed = state.filtered_state.fget

    class Values(Mapping):
        def __init__(self, state: Any) -> None:
            self._state = state

        def __contains__(self, key: object) -> bool:
            return key in self._state

        def __getitem__(self, key: str) -> Any:
            return self._state[key]

        def __iter__(self) -> Iterator[str]:
            return iter(listed(self._state))

        def __len__(self) -> int:
            return len(listed(self._state))

    state.filtered_state = property(Values)


# What was there when it was tested, and the check.


@dataclass(frozen=True)
class Part:
    """Private things that the app uses together.

    purpose   what a planning server needs them for, behind "to"
    shapes    by their names: the parameters of a function, in parentheses, and no others; or what a
              function must refer to, or a class must have
    mend      what is mended with them when the server starts
    works     tries what a shape does not tell
    lacking   what one's own app lacks without them; "" for what only a planning server uses
    is_vital  whether a planning server may not run without them
    """

    purpose: str
    shapes: Mapping[str, str]
    mend: Callable[[], None] | None = None
    works: Callable[[], bool] = lambda: True
    lacking: str = ""
    is_vital: bool = True

    @property
    def changed(self) -> list[str]:
        """The names of those that are gone or have another shape; all, if only the try fails."""
        changed = [name for name, shape in self.shapes.items() if not _has_shape(name, shape)]
        if changed:
            return changed
        try:
            return [] if self.works() else [*self.shapes]
        except Exception:  # whatever something that has changed raises
            return [*self.shapes]


def _has_shape(name: str, shape: str) -> bool:
    try:
        found = resolve_name(name)
        if shape.startswith("("):
            return shape == f"({', '.join(inspect.signature(found).parameters)})"
    except Exception:  # it is gone, or no function
        return False
    code = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
    has = {*code.co_names} if code else {*dir(found), *getattr(found, "__dataclass_fields__", ())}
    return {*shape.split()} <= has


def _uploads_are_held_by_session() -> bool:
    manager = resolve_name(_UPLOADED)
    held = manager.MemoryUploadedFileManager(_UPLOADS.rstrip("/"))
    (urls,) = held.get_upload_urls("session", ["name"])
    held.add_file(
        "session", manager.UploadedFileRec(urls.file_id, "name", "text/plain", b"content")
    )
    upload = Upload.of(urls.upload_url)
    data = held.file_storage["session"][urls.file_id].data
    held.remove_file("session", urls.file_id)
    return (upload, data, held.file_storage["session"]) == (
        ("session", urls.file_id),
        b"content",
        {},
    )


PARTS = (
    Part(
        "leave each session with its account",
        {
            f"{_STARLETTE}.starlette_websocket:gather_user_info": "(headers)",
            "streamlit.runtime.app_session:AppSession.matches_user_info": "(self, user_info)",
            f"{_SESSIONS}.connect_session": "matches_user_info",
            f"{_SESSIONS}._resume_stored_session": "matches_user_info",
        },
        # The command line has Streamlit told so, by its hidden option `server.trustedUserHeaders`.
        works=lambda: (
            resolve_name(f"{_STARLETTE}.starlette_websocket:gather_user_info")(
                Headers({ACCOUNT_HEADER: "ada"})
            )
            == {ACCOUNT_OF_USER: "ada"}
        ),
    ),
    Part(
        "take uploads from a session's own account alone, and hold no more than its limit",
        {
            _RUNTIME: "instance get_client uploaded_file_mgr",
            f"{_RUNTIME}.get_client": "(self, session_id)",
            "streamlit.runtime.session_manager:SessionClient": "client_context",
            "streamlit.runtime.session_manager:ClientContext": "headers",
            f"{_STARLETTE}.starlette_routes:create_upload_routes": "_ROUTE_UPLOAD_FILE",
        },
        works=lambda: (
            f"/{resolve_name(f'{_STARLETTE}.starlette_routes:_ROUTE_UPLOAD_FILE')}"
            == f"{_UPLOADS}{{session_id}}/{{file_id}}"
        ),
    ),
    Part(
        "remove refused uploads from memory",
        {
            f"{_UPLOADED}:MemoryUploadedFileManager": "remove_file",
            f"{_CONTEXT}:get_script_run_ctx": "",
            f"{_CONTEXT}:ScriptRunContext": "session_id uploaded_file_mgr",
        },
        works=_uploads_are_held_by_session,
    ),
    Part(
        "keep uploads off the disk",
        {
            f"{_FORMS}:MultiPartParser": "spool_max_size",
            f"{_FORMS}:MultiPartParser.on_headers_finished": "SpooledTemporaryFile spool_max_size",
            "starlette.requests:Request._get_form": "MultiPartParser",
            f"{_STARLETTE}.starlette_routes:_MAX_UPLOAD_MULTIPART_OVERHEAD_BYTES": "",
        },
        mend=keep_uploads_in_memory,
        lacking="a file that you drop on a page may be on the disk, in the temporary folder, while "
        "it arrives",
    ),
    Part(
        "keep one browser from clearing what all others work on",
        {_MESSAGE: "ParseFromString WhichOneof"},
        works=lambda: is_for_everybody(
            resolve_name(_MESSAGE)(clear_cache=True).SerializeToString()
        ),
    ),
    Part(
        "give each download an address that nobody can guess",
        {
            f"{_MEDIA}:_calculate_file_id": "(data, mimetype, filename)",
            f"{_MEDIA}:MemoryMediaFileStorage.load_and_get_id": "_calculate_file_id",
        },
        mend=tell_files_apart,
        lacking="of two large downloads that have much in common you may be given the other",
    ),
    Part(
        "keep what is typed just before a click on another page",
        {
            f"{_RUNNER}._maybe_handle_execution_control_request": "(self)",
            f"{_RUNNER}._set_execing_flag": "_execing",
            f"{_STATE}.__init__": "(self, state, yield_callback)",
            f"{_STATE}.on_script_will_rerun": "_lock _state",
            f"{_CONTEXT}:ThreadState": "get",
            f"{_CONTEXT}:RunLocation": "CALLBACK",
            f"{_CONTEXT}:FragmentThreadState": "run_location",
        },
        mend=finish_callbacks,
        lacking="what you type just before you click on another page may be lost",
    ),
    Part(
        "send messages without delay",
        {
            "asyncio.base_events:_set_nodelay": "(sock)",
            "asyncio.selector_events:_SelectorSocketTransport.__init__": "_set_nodelay",
        },
        mend=send_at_once,
        lacking="pages may come up to 40 ms later",
        is_vital=False,
    ),
    Part(
        "draw widgets without listing all that a session keeps",
        {
            _STATE: "filtered_state __contains__ __getitem__",
            f"{_TEXT_WIDGETS}._text_input": "filtered_state",
        },
        mend=look_up_single_values,
        lacking="pages with many fields take a little longer",
        is_vital=False,
    ),
)


def prepare_streamlit(planning_only: bool) -> None:
    """Check the private parts, and mend what is mended with them; before the server starts.

    Raises `RpexploreError` for a planning server whose Streamlit was not tested or has changed.
    """
    installed, (low, high) = version("streamlit"), TESTED
    versions = (
        f"Streamlit {installed} is installed, and rpexplore was tested with {low} and later, "
        f"before {high}."
    )
    changes = [(part, ", ".join(part.changed)) for part in PARTS]
    vital = [f"{what} (used to {part.purpose})" for part, what in changes if what and part.is_vital]
    if planning_only and (vital or not Version(low) <= Version(installed) < Version(high)):
        problem = f"Private parts have changed: {'; '.join(vital)}. " if vital else ""
        raise RpexploreError(
            f"The planning server does not start. {versions} {problem}Install a tested version "
            f'with: pip install "streamlit>={low},<{high}", or a newer rpexplore.'
        )
    for part, what in changes:
        if not what:
            if part.mend is not None:
                part.mend()
        elif planning_only:
            log_event("library changed", part=what)
        elif part.lacking:
            sys.stderr.write(f"{versions} {what} has changed: {part.lacking}.\n")
