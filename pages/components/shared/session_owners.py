"""Whose a session of Streamlit's is on a shared server, and what it holds of uploads.

Streamlit lets a connection go on with any session that it names, and takes uploads for any. So it
is told whose each connection is, which it keeps apart; before an upload the guard asks for that.
"""

from typing import Any

from starlette.types import Message, Scope, Send
from streamlit.runtime import Runtime

from pages.components.shared.accounts import Account
from rpexplore.common.event_log import log_event
from rpexplore.common.server_settings import ACCOUNT_HEADER, server_settings

_UPLOADS = "/_stcore/upload_file/"


def of_account(scope: Scope, account: Account) -> Scope:
    """A connection that says whose it is, and nothing that its client has said of that."""
    name = ACCOUNT_HEADER.encode()
    others = [header for header in scope["headers"] if header[0].lower() != name]
    return {**scope, "headers": [*others, (name, account.folder.encode())]}


def is_upload(path: str) -> bool:
    """Whether a path, below the base path, is of an uploaded file."""
    return path.startswith(_UPLOADS)


def may_upload(path: str, account: Account) -> bool:
    """Whether the session that an upload is for is connected, and of this account."""
    client = Runtime.instance().get_client(_session_and_file(path)[0])
    if client is None or client.client_context is None:
        return False
    return dict(client.client_context.headers).get(ACCOUNT_HEADER) == account.folder


def within_limit(path: str, send: Send) -> Send:
    """Send what is answered to an upload; one that is too much for its session is not kept."""
    session, file = _session_and_file(path)

    async def send_checked(message: Message) -> None:
        is_kept = message["type"] == "http.response.start" and message["status"] < 300
        if is_kept and _holds_too_much(session):
            held: Any = Runtime.instance().uploaded_file_mgr
            held.remove_file(session, file)
            log_event("refused by a limit", limit="uploads_mb")
            message = {**message, "status": 413}
        await send(message)

    return send_checked


def _holds_too_much(session: str) -> bool:
    held: Any = Runtime.instance().uploaded_file_mgr  # the one in memory
    sizes = [len(file.data) for file in list(held.file_storage.get(session, {}).values())]
    return sum(sizes) > server_settings().limits.uploads_mb * 10**6


def _session_and_file(path: str) -> tuple[str, str]:
    session, _, file = path.removeprefix(_UPLOADS).partition("/")
    return session, file
