"""Who may use the app: one browser that has shown a token, or, of a shared server, every account.

Every local user and every web page can reach a port of this machine, and a shared server is reached
by a network. So ASGI middleware stands in front of all that Streamlit serves. Requests for another
host or from another origin are refused, and no page may frame the app. (Streamlit's own check would
ask a server outside for this machine's address before it refuses an origin, and would allow every
other port of this machine; no foreign origin gets as far as that.)
"""

import hmac
import html
import re
import secrets
from asyncio import to_thread
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rpexplore.common.installation import TOKEN_PARAMETER
from rpexplore.common.server import ACCOUNT_HEADER, PublicAddress, server_settings
from rpexplore.common.server_files import log_event
from rpexplore.serving.accounts import (
    BROWSER_COOKIE,
    LOG_OUT,
    Account,
    LoginRoutes,
    account_of_browser,
)
from rpexplore.serving.streamlit_parts import Upload, is_for_everybody

READY = "/ready"
_HEALTH = "/_stcore/health"  # tells that the server is up, and nothing else
_POLICY_VIOLATION, _TOO_BIG = 1008, 1009  # why a websocket is closed
_READING = ("GET", "HEAD")
_YEAR = 365 * 24 * 3600
# Of Streamlit's paths: those that are not served to anybody, and those of no page.
_CLOSED = ("/_stcore/metrics", "/auth", "/oauth2callback")
_PARTS = ("/_stcore", "/static", "/media", "/component")
_SECURITY = {
    "content-security-policy": "frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>rpexplore</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<body style="font: 1rem/1.5 sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem">
<h1>rpexplore</h1>{body}</body></html>"""
_NO_TOKEN = f"""<p>This app belongs to the person who started it, and this browser has not shown its
token. Open the address that <code>rpexplore app</code> printed when it was started; it ends in
<code>{TOKEN_PARAMETER}=…</code>.</p>"""


def _is_foreign(scope: Scope, own_origin: str) -> bool:
    """Whether a request comes from a page of another origin, or could and does not say."""
    origin = Headers(scope=scope).get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in (*_READING, "OPTIONS")
    return origin != own_origin and (changes or origin is not None)


def _with_security_headers(send: Send) -> Send:
    """Send answers with the headers that forbid framing, sniffing and referrers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_SECURITY)
        await send(message)

    return send_with_headers


async def _refuse(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
    else:
        await refusal(scope, receive, send)


class Guard:
    """Middleware of one's own app: lets through only the browsers that have shown `token`.

    The token comes once, in an address; from then on a cookie that scripts cannot read stands for
    it. Both end with the server.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token
        self._cookie = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal, send = self._refusal(scope), _with_security_headers(send)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await _refuse(refusal, scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered in place of the app; None if the app may answer."""
        host, port = Headers(scope=scope).get("host", ""), scope["server"][1]
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return Response(f"This is 127.0.0.1:{port}.", 421)
        if _is_foreign(scope, f"http://{host}"):
            return Response("Other origins have no access.", 403)
        if scope["path"] == _HEALTH:
            return None
        cookie_name = f"rpexplore-session-{port}"  # cookies do not tell the ports of a host apart
        if _are_equal(HTTPConnection(scope).cookies.get(cookie_name, ""), self._cookie):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = dict(query).get(TOKEN_PARAMETER, "")
        if scope["type"] != "http" or not _are_equal(shown, self._token):
            return HTMLResponse(_PAGE.format(body=_NO_TOKEN), status_code=403)
        # Exchange the token for the cookie, and go on to the address without the token: by a page,
        # as a browser that follows a redirect from another site, or from a file, sends no strict
        # cookie along. One slash, so that no path can be taken for the name of another host.
        left = urlencode([(name, value) for name, value in query if name != TOKEN_PARAMETER])
        address = html.escape("/" + scope["path"].lstrip("/") + (f"?{left}" if left else ""))
        body = f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open</a>'
        welcome = HTMLResponse(_PAGE.format(body=body), headers={"cache-control": "no-store"})
        welcome.set_cookie(cookie_name, self._cookie, httponly=True, samesite="strict")
        return welcome


class PublicGuard:
    """Middleware of a shared server: lets through requests to `address`, each with its account.

    What a proxy or a client writes into X-Forwarded headers is not asked. Without an account
    nothing of the app is served, and an open connection ends with its login. Every cookie is for
    this address alone, and sent by TLS only.

    login: how people log in; None where a browser is known by its cookie alone
    is_ready: whether the server is ready for people; asked in a thread
    """

    def __init__(
        self,
        app: ASGIApp,
        address: PublicAddress,
        login: LoginRoutes | None,
        is_ready: Callable[[], bool],
    ) -> None:
        self._app = app
        self._address = address
        self._login = login
        self._is_ready = is_ready
        self._serving = self._serve if login is None else login.signed(self._serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path, send = self._path(scope), _with_security_headers(send)
        if scope["type"] == "http" and path in (_HEALTH, READY) and scope["method"] in _READING:
            # Asked by what watches the server, at whatever address; they tell nothing else.
            await self._watch(path, scope, receive, send)
            return
        # By what people reach it, whatever the proxy said.
        secure = {"http": "https", "websocket": "wss"} if self._address.is_secure else {}
        scope = {**scope, "scheme": secure.get(scope["type"], scope["scheme"])}
        await self._serving(scope, receive, send)

    def _path(self, scope: Scope) -> str | None:
        """The path below that of the public address; None for one that is not below it."""
        base, path = self._address.base_path, scope["path"]
        return path.removeprefix(base) if path.startswith(f"{base}/") or path == READY else None

    async def _watch(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path == _HEALTH:
            await self._app(scope, receive, self._with_own_cookies(send))
            return
        is_ready = await to_thread(self._is_ready)
        answer = Response("ready" if is_ready else "not ready", 200 if is_ready else 503)
        answer.headers["cache-control"] = "no-store"
        await answer(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that `scope["session"]` is known of, where people log in."""
        path = self._path(scope)
        if self._login is not None:
            account = self._login.account(scope)
        else:
            account = account_of_browser(HTTPConnection(scope).cookies)
        refusal = await self._refusal(scope, path, account)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        # The app has a session of its own, and is told whose a connection is by nobody else.
        name = ACCOUNT_HEADER.encode()
        headers = [header for header in scope["headers"] if header[0].lower() != name]
        if account is not None:
            headers.append((name, account.header.encode()))
        inner = {key: value for key, value in scope.items() if key != "session"}
        inner["headers"] = headers
        if scope["type"] == "websocket":
            assert account is not None
            connection = _Connection(account, receive, send)
            await self._app(inner, connection.receive, connection.send)
            return
        send = self._with_own_cookies(send, self._browser_key(scope, path))
        upload = Upload.of(path or "")
        await self._app(inner, receive, send if upload is None else _within_limit(upload, send))

    async def _refusal(
        self, scope: Scope, path: str | None, account: Account | None
    ) -> Response | None:
        """What is answered in place of the app; None if the app may answer."""
        headers, is_websocket = Headers(scope=scope), scope["type"] == "websocket"
        if headers.getlist("host") != [self._address.host]:
            return _refused("host", 421)
        if _is_foreign(scope, self._address.origin):
            return _refused("origin", 403)
        if path is None and scope["path"] == self._address.base_path:
            return RedirectResponse(str(self._address), 308)
        if self._login is not None and path in self._login.paths:
            if path == LOG_OUT and headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return _refused("origin", 403)  # another page would end a login by a link
            if is_websocket or scope["method"] != "GET":
                return _refused("path", 404)
            return await self._login.answer(path, Request(scope)) or _refused("path", 404)
        if path is None or path.startswith(_CLOSED):
            return _refused("path", 404)
        if account is None:
            # Without login the first page brings the key, and with it all else is asked for.
            is_first = not is_websocket and scope["method"] in _READING and _is_page(path)
            if not is_first:
                return _refused("no account", 403)
            return None if self._login is None else self._login_page(self._login)
        upload = Upload.of(path)
        if upload is not None and not _may_upload(upload, account):
            return _refused("no account", 403)
        return None

    @staticmethod
    def _login_page(login: LoginRoutes) -> Response:
        several = len(login.providers) > 1
        links = "".join(
            f'<p><a href="{login.address_of(provider)}">Log in'
            f"{f' with {html.escape(provider)}' if several else ''}</a></p>"
            for provider in login.providers
        )
        body = f"<p>Plan the release of noisy tables.</p>{links}"
        return HTMLResponse(_PAGE.format(body=body), 403, {"cache-control": "no-store"})

    def _browser_key(self, scope: Scope, path: str | None) -> str:
        """The cookie with a browser's key: the one that it has, for another year, or a new one.

        "" where people log in, and for what is no page.
        """
        if self._login is not None or path is None or not _is_page(path):
            return ""
        held = HTTPConnection(scope).cookies
        key = held[BROWSER_COOKIE] if account_of_browser(held) else secrets.token_urlsafe(32)
        # Lax: with a strict one, who follows a link from elsewhere would come as another browser.
        return f"{BROWSER_COOKIE}={key}; Max-Age={_YEAR}; HttpOnly; SameSite=Lax"

    def _with_own_cookies(self, send: Send, more: str = "") -> Send:
        """Send what the app answers, and one more cookie, with cookies for this address alone."""

        async def send_with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                cookies = [*headers.getlist("set-cookie"), *([more] if more else [])]
                del headers["set-cookie"]
                for cookie in cookies:
                    headers.append("set-cookie", self._own_cookie(cookie))
            await send(message)

        return send_with_cookies

    def _own_cookie(self, cookie: str) -> str:
        others = r"(?i);\s*(path=[^;]*|secure)(?=;|$)"
        kept = re.sub(others, "", cookie) + f"; Path={self._address.base_path or '/'}"
        if not re.search(r"(?i);\s*samesite=", kept):
            kept += "; SameSite=Lax"
        return kept + "; Secure" * self._address.is_secure


class _Connection:
    """A websocket as long as the login of its account holds; then it is closed.

    So it is by a message that is too large: of small values, Streamlit makes it 13 times as large.
    """

    def __init__(self, account: Account, receive: Receive, send: Send) -> None:
        self._account = account
        self._receive, self._send = receive, send
        self._is_closed = False

    async def receive(self) -> Message:
        while True:
            message = await self._receive()
            content = message.get("bytes") or b""
            size = len(content) or len(message.get("text") or "")
            if size > server_settings().limits.message_mb * 10**6:
                log_event("refused by a limit", limit="message_mb")
                return await self._closed(_TOO_BIG)
            if not is_for_everybody(content):
                break
        if message["type"] == "websocket.receive" and not await self._holds():
            return await self._closed(_POLICY_VIOLATION)
        return message

    async def send(self, message: Message) -> None:
        if await self._holds():
            await self._send(message)

    async def _holds(self) -> bool:
        if not self._is_closed and not self._account.holds:
            log_event("login ended")
            await self._closed(_POLICY_VIOLATION)
        return not self._is_closed

    async def _closed(self, code: int) -> Message:
        """Close the websocket, once; what the app is told."""
        if not self._is_closed:
            self._is_closed = True
            await self._send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}


def _is_page(path: str) -> bool:
    """Whether a path is that of a page, which a browser opens by itself."""
    return not path.startswith(_PARTS) and "." not in path


def _are_equal(shown: str, secret: str) -> bool:
    """Whether a text is a secret one; how long that takes tells nothing."""
    return hmac.compare_digest(shown.encode(), secret.encode())


def _refused(reason: str, status: int) -> Response:
    """An answer that tells nothing."""
    log_event("request refused", reason=reason, status=status)
    return Response("This is not served here.", status)


def _may_upload(upload: Upload, account: Account) -> bool:
    """Whether the session that an upload is for is connected, and of this account."""
    owner = upload.owner
    return owner is not None and Account.of_header(owner).folder == account.folder


def _within_limit(upload: Upload, send: Send) -> Send:
    """Send what is answered to an upload; one that is too much for its session is not kept."""

    async def send_checked(message: Message) -> None:
        is_kept = message["type"] == "http.response.start" and message["status"] < 300
        if is_kept and upload.size_of_session > server_settings().limits.uploads_mb * 10**6:
            upload.remove()
            log_event("refused by a limit", limit="uploads_mb")
            message = {**message, "status": 413}
        await send(message)

    return send_checked
