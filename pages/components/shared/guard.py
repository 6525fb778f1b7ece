"""Who may use the app: the browser that was opened with this server's token, and nobody else.

Every local user and every web page can reach a port of this machine. This ASGI middleware stands in
front of all that Streamlit serves: requests for another host, from another origin, or without the
cookie for which the token is exchanged are refused, and no page may frame the app. Streamlit's own
check would ask a server outside for this machine's address before it refuses an origin, and would
allow every other port of this machine; no foreign origin gets as far as that.
"""

import html
import secrets
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.components.shared.web_security import (
    POLICY_VIOLATION,
    are_equal,
    is_foreign,
    plain_page,
    with_security_headers,
)
from rpexplore.common.webapp_files import TOKEN_PARAMETER

_HEALTH = "/_stcore/health"  # tells that the server is up, and nothing else
_REFUSED = """<p>This app belongs to the person who started it, and this browser has not shown its
token. Open the address that <code>rpexplore app</code> printed when it was started; it ends in
<code>{token}=…</code>.</p>"""


class Guard:
    """ASGI middleware that lets through only the browsers that have shown `token`.

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
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, with_security_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            await refusal(scope, receive, with_security_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered in place of the app; None if the app may answer."""
        headers = Headers(scope=scope)
        host, port = headers.get("host", ""), scope["server"][1]
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return Response(f"This is 127.0.0.1:{port}.", 421)
        if is_foreign(scope, f"http://{host}"):
            return Response("Other origins have no access.", 403)
        if scope["path"] == _HEALTH:
            return None
        cookie_name = f"rpexplore-session-{port}"  # cookies do not tell the ports of a host apart
        cookies = Request({**scope, "type": "http"}).cookies
        if are_equal(cookies.get(cookie_name, ""), self._cookie):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["type"] == "http" and are_equal(dict(query).get(TOKEN_PARAMETER, ""), self._token):
            return self._welcome(scope["path"], query, cookie_name)
        return HTMLResponse(plain_page(_REFUSED.format(token=TOKEN_PARAMETER)), status_code=403)

    def _welcome(self, path: str, query: list[tuple[str, str]], cookie_name: str) -> Response:
        """Exchange the token for the cookie, and go on to the address without the token.

        By a page, not by a redirect: a browser that follows one from another site, or from a file,
        does not send a strict cookie along.
        """
        left = urlencode([(name, value) for name, value in query if name != TOKEN_PARAMETER])
        # One slash, so that no path can be taken for the name of another host.
        address = html.escape("/" + path.lstrip("/") + (f"?{left}" if left else ""))
        body = f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open</a>'
        response = HTMLResponse(plain_page(body), headers={"cache-control": "no-store"})
        response.set_cookie(cookie_name, self._cookie, httponly=True, samesite="strict")
        return response
