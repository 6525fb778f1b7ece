"""Who may use a shared server: browsers at its public address that are logged in, if it asks that.

This ASGI middleware stands in front of all that Streamlit serves. Requests for another host or
path, or from another origin, are refused by the address that the server was started with; what a
proxy or a client writes into X-Forwarded headers is not asked. Without an account nothing of the
app is served, and an open connection ends with its login. What the app sends to one browser is
never kept for another: every cookie is for this address alone, and sent by TLS only.
"""

import html
import re
import secrets
from asyncio import to_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import parse_qs, quote

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.user_info import generate_login_redirect_url

from pages.components.shared.accounts import (
    BROWSER_COOKIE,
    HOURS_LOGGED_IN,
    Account,
    account_of_browser,
    account_of_login,
    log_out,
)
from pages.components.shared.session_owners import (
    is_upload,
    may_upload,
    of_account,
    within_limit,
)
from pages.components.shared.web_security import (
    POLICY_VIOLATION,
    is_foreign,
    plain_page,
    with_security_headers,
)
from rpexplore.common.event_log import log_event
from rpexplore.common.public_address import PublicAddress

LOG_IN, READY = "/log-in", "/ready"
_HEALTH, _METRICS = "/_stcore/health", "/_stcore/metrics"
_LOGIN, _LOGOUT, _CALLBACK = "/auth/login", "/auth/logout", "/oauth2callback"
_USER_COOKIE = re.compile(r"_streamlit_user(_tokens)?(_\d+)?")
_READING = ("GET", "HEAD")
_YEAR = 365 * 24 * 3600
# What is below these is no page that a browser opens.
_PARTS = ("/_stcore", "/static", "/media", "/component", "/auth", _CALLBACK)


class PublicGuard:
    """ASGI middleware that lets through only requests to `address`, each with its account.

    providers: with whom people log in; none where a browser is known by its cookie alone
    is_ready: whether the server is ready for people; asked in a thread
    """

    def __init__(
        self,
        app: ASGIApp,
        address: PublicAddress,
        providers: Sequence[str],
        is_ready: Callable[[], bool],
    ) -> None:
        self._app = app
        self._address = address
        self._providers = providers
        self._is_ready = is_ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = READY if scope["path"] == READY else self._path(scope)
        if scope["type"] == "http" and path in (_HEALTH, READY) and scope["method"] in _READING:
            # Asked by what watches the server, at whatever address; they tell nothing else.
            await self._watch(path, scope, receive, send)
            return
        # By what people reach it, whatever the proxy said.
        scheme = {"http": "https", "websocket": "wss"} if self._address.is_secure else {}
        scope = {**scope, "scheme": scheme.get(scope["type"], scope["scheme"])}
        account = self._account(scope)
        refusal = self._refusal(scope, path, account)
        if refusal is not None:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            else:
                await refusal(scope, receive, with_security_headers(send))
        elif scope["type"] == "websocket":
            assert account is not None
            connection = _Connection(account, receive, send)
            await self._app(of_account(scope, account), connection.receive, connection.send)
        else:
            if path == _LOGOUT and account is not None:
                log_out(account)
                log_event("logged out")
            answering = self._answering(scope, path, send)
            if path is not None and is_upload(path):
                answering = within_limit(path, answering)
            await self._app(scope, receive, answering)

    def _path(self, scope: Scope) -> str | None:
        """The path below that of the public address; None for one that is not below it."""
        base, path = self._address.base_path, scope["path"]
        return path.removeprefix(base) if path.startswith(f"{base}/") else None

    def _account(self, scope: Scope) -> Account | None:
        cookies = Request({**scope, "type": "http"}).cookies
        if self._providers:
            return account_of_login(cookies, self._address.origin)
        return account_of_browser(cookies)

    def _refusal(self, scope: Scope, path: str | None, account: Account | None) -> Response | None:
        """What is answered in place of the app; None if the app may answer."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._address.host]:
            return _refused("host", 421)
        if is_foreign(scope, self._address.origin):
            return _refused("origin", 403)
        if path is None and scope["path"] == self._address.base_path:
            return RedirectResponse(str(self._address), 308)
        if path is None or path.startswith(_METRICS):
            return _refused("path", 404)
        is_websocket = scope["type"] == "websocket"
        if not self._providers:
            if path in (_LOGIN, _LOGOUT, _CALLBACK):
                return _refused("path", 404)
            # The first page brings the key, and with it all else is asked for.
            is_first = not is_websocket and scope["method"] in _READING and _is_page(path)
            if account is None:
                return None if is_first else _refused("no account", 403)
        elif path == LOG_IN and not is_websocket:
            return self._to_provider(scope)
        elif path in (_LOGIN, _CALLBACK) and not is_websocket:
            return None
        elif path == _LOGOUT and headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refused("origin", 403)  # another page would end a login by a link
        if account is None:
            return _refused("no account", 403) if is_websocket else self._login_page(path)
        if is_upload(path) and not may_upload(path, account):
            return _refused("no account", 403)
        return None

    def _login_page(self, path: str) -> Response:
        if not _is_page(path):
            return _refused("no account", 403)
        links = "".join(
            f'<p><a href="{self._address.base_path}{LOG_IN}?provider={quote(provider)}">Log in'
            f"{f' with {html.escape(provider)}' if len(self._providers) > 1 else ''}</a></p>"
            for provider in self._providers
        )
        page = plain_page(f"<p>Plan the release of noisy tables.</p>{links}")
        return HTMLResponse(page, 403, {"cache-control": "no-store"})

    def _to_provider(self, scope: Scope) -> Response:
        """Go on as `st.login` does, which only a session of the app could call."""
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("provider", [""])[0]
        if asked not in self._providers:
            return _refused("path", 404)
        address = generate_login_redirect_url(asked)
        return RedirectResponse(address, 302, {"cache-control": "no-store"})

    async def _watch(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path == _HEALTH:
            await self._app(scope, receive, self._answering(scope, path, send))
            return
        is_ready = await to_thread(self._is_ready)
        answer = Response("ready" if is_ready else "not ready", 200 if is_ready else 503)
        answer.headers["cache-control"] = "no-store"
        await answer(scope, receive, with_security_headers(send))

    def _answering(self, scope: Scope, path: str | None, send: Send) -> Send:
        """Send what the app answers, with cookies for this address alone."""

        async def send_with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                cookies = headers.getlist("set-cookie")
                del headers["set-cookie"]
                for cookie in cookies:
                    headers.append("set-cookie", self._own_cookie(cookie))
                if path == _CALLBACK and any(map(_begins_login, cookies)):
                    log_event("logged in")
                if not self._providers and path is not None and _is_page(path):
                    headers.append("set-cookie", self._browser_cookie(scope))
            await send(message)

        return with_security_headers(send_with_cookies)

    def _own_cookie(self, cookie: str) -> str:
        """A cookie of Streamlit's for this address alone, and no longer than a login."""
        value, *others = cookie.split("; ")
        attributes = {
            name.lower(): content for name, _, content in (o.partition("=") for o in others)
        }
        if attributes.get("max-age") != "0":  # of one that goes away the path is the old one
            attributes["path"] = self._address.base_path or "/"
        if _USER_COOKIE.fullmatch(value.partition("=")[0]) and int(attributes.get("max-age", 0)):
            attributes["max-age"] = str(HOURS_LOGGED_IN * 3600)
            attributes.pop("expires", None)
        attributes.setdefault("samesite", "lax")
        if self._address.is_secure:
            attributes["secure"] = ""
        return "; ".join([value, *(f"{n}={c}" if c else n for n, c in attributes.items())])

    def _browser_cookie(self, scope: Scope) -> str:
        """The key of a browser: the one that it has, for another year, or a new one."""
        held = Request(scope).cookies
        key = held[BROWSER_COOKIE] if account_of_browser(held) else secrets.token_urlsafe(32)
        # Lax: with a strict one, who follows a link from elsewhere would come as another browser.
        kept = f"{BROWSER_COOKIE}={key}; Max-Age={_YEAR}; HttpOnly; SameSite=Lax"
        return self._own_cookie(kept)


def _is_page(path: str) -> bool:
    """Whether a path is that of a page, which a browser opens by itself."""
    return not path.startswith(_PARTS) and "." not in path


def _refused(reason: str, status: int) -> Response:
    """An answer that tells nothing."""
    log_event("request refused", reason=reason, status=status)
    return Response("This is not served here.", status)


class _Connection:
    """A websocket as long as the login of its account holds; then it is closed."""

    def __init__(self, account: Account, receive: Receive, send: Send) -> None:
        self._account = account
        self._receive, self._send = receive, send
        self._is_closed = False

    async def receive(self) -> Message:
        message = await self._receive()
        while _is_for_everybody(message):
            message = await self._receive()
        if message["type"] == "websocket.receive" and not await self._holds():
            return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}
        return message

    async def send(self, message: Message) -> None:
        if await self._holds():
            await self._send(message)

    async def _holds(self) -> bool:
        if not self._is_closed and not self._account.holds:
            self._is_closed = True
            log_event("login ended")
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION})
        return not self._is_closed


def _begins_login(cookie: str) -> bool:
    """Whether a cookie stands for somebody; one that goes away says that nobody has logged in."""
    return cookie.startswith("_streamlit_user=") and "max-age=0" not in cookie.lower().split("; ")


def _is_for_everybody(message: Message) -> bool:
    """Whether a browser asks what would be done to all sessions: to clear what they keep."""
    asked = BackMsg()
    with suppress(DecodeError):  # which Streamlit answers
        asked.ParseFromString(message.get("bytes") or b"")
    return asked.WhichOneof("type") == "clear_cache"
