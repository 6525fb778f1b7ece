"""Who gets through to a shared server, asked without one: by host, origin, path and cookie."""

from contextlib import suppress
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from rpexplore.common.server import ACCOUNT_HEADER, PublicAddress
from rpexplore.common.server_files import Login
from rpexplore.serving import accounts, guard, streamlit_parts
from rpexplore.serving.accounts import (
    BROWSER_COOKIE,
    Account,
    LoginRoutes,
    account_of_browser,
    log_out,
)
from rpexplore.serving.guard import PublicGuard

PUBLIC = "https://plan.agency.example/plan"
ORIGIN = {"origin": "https://plan.agency.example"}
STREAM = "wss://plan.agency.example/plan/_stcore/stream"
KEY = "k" * 43


async def _page(request: Request) -> Response:
    response = PlainTextResponse(f"the app by {request.url.scheme}")
    response.set_cookie("first", "x", httponly=True, max_age=60, samesite=None)
    response.set_cookie("second", "x", samesite="strict", secure=True)
    return response


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    with suppress(WebSocketDisconnect):
        while True:
            await websocket.send_text(f"heard {await websocket.receive_text()}")


INNER = Starlette(
    routes=[WebSocketRoute("/plan/_stcore/stream", _echo), Route("/{path:path}", _page)],
)


def client(*providers: str, is_ready: bool = True, address: str = PUBLIC) -> TestClient:
    public, login = PublicAddress.parse(address), None
    if providers:
        section = {"client_id": "x", "client_secret": "x", "server_metadata_url": "https://login"}
        login = LoginRoutes(Login(dict.fromkeys(providers, section), "x" * 32, "/back"), public)
    inner = PublicGuard(INNER, public, login, lambda: is_ready)
    return TestClient(inner, base_url=PUBLIC.removesuffix("/plan"), follow_redirects=False)


@pytest.fixture
def logged_in(monkeypatch) -> Account:
    """Whoever asks with a login provider is this account, as long as it holds."""
    account = Account("a" * 64, "Ada", "one login")
    monkeypatch.setattr(accounts, "_ended", set())
    monkeypatch.setattr(LoginRoutes, "account", lambda *_: account if account.holds else None)
    return account


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/plan/", {}, 200),
        ("/plan", {}, 308),
        ("/plan/tables", ORIGIN, 200),
        ("/plan/", {"host": "plan.agency.example:8501"}, 421),
        ("/plan/", {"host": "127.0.0.1"}, 421),
        ("/plan/", {"host": "x", "x-forwarded-host": "plan.agency.example"}, 421),
        ("/plan/", {"origin": "http://plan.agency.example"}, 403),  # without TLS
        ("/plan/", {"origin": "https://plan.agency.example:444"}, 403),
        ("/plan/", {"origin": "null"}, 403),
        ("/", {}, 404),
        ("/planning/", {}, 404),
        ("/plan/_stcore/metrics", {}, 404),
        ("/plan/auth/login", {}, 404),  # nobody logs in here
        ("/plan/static/x.js", {}, 403),  # before the first page
        ("/plan/media/x.csv", {}, 403),
    ],
)
def test_only_the_public_address_is_served(path, headers, status):
    assert client().get(path, headers=headers).status_code == status


def test_nobody_says_by_a_header_who_they_are():
    async def app(request: Request) -> Response:
        return PlainTextResponse("\n".join(request.headers.getlist(ACCOUNT_HEADER)))

    inner = Starlette(routes=[Route("/{path:path}", app)])
    served = PublicGuard(inner, PublicAddress.parse(PUBLIC), None, lambda: True)
    asking = TestClient(served, base_url=PUBLIC.removesuffix("/plan"))
    forged = {ACCOUNT_HEADER.upper(): Account("a" * 64).header}
    assert asking.get("/plan/", headers=forged).text == ""  # nobody yet
    asking.cookies.set(BROWSER_COOKIE, KEY)
    own = account_of_browser({BROWSER_COOKIE: KEY})
    assert own is not None
    assert asking.get("/plan/", headers=forged).text == own.header


def test_what_changes_something_names_its_origin(monkeypatch):
    monkeypatch.setattr(guard, "_may_upload", lambda upload, _account: upload == ("a", "b"))
    asking = client()
    asking.cookies.set(BROWSER_COOKIE, KEY)
    assert asking.put("/plan/_stcore/upload_file/a/b").status_code == 403
    assert asking.put("/plan/_stcore/upload_file/a/b", headers=ORIGIN).status_code == 405
    assert asking.put("/plan/_stcore/upload_file/c/d", headers=ORIGIN).status_code == 403
    for headers in ({}, {"origin": "https://example.org"}):
        with (
            pytest.raises(WebSocketDisconnect),
            asking.websocket_connect(STREAM, headers=headers),
        ):
            pass
    with asking.websocket_connect(STREAM, headers=ORIGIN) as connection:
        connection.send_text("x")
        assert connection.receive_text() == "heard x"


def test_two_hosts_in_one_request_are_refused():
    headers = [("host", "plan.agency.example"), ("host", "example.org")]
    assert client().get("/plan/", headers=headers).status_code == 421


def test_the_scheme_is_that_of_the_address():
    answer = client().get("/plan/", headers={"x-forwarded-proto": "http"})
    assert answer.text == "the app by https"


def test_cookies_are_for_this_address_alone():
    answer = client().get("/plan/")
    first, second, browser = answer.headers.get_list("set-cookie")
    assert first == "first=x; HttpOnly; Max-Age=60; Path=/plan; SameSite=Lax; Secure"
    assert second == "second=x; SameSite=strict; Path=/plan; Secure"
    assert browser.startswith(f"{BROWSER_COOKIE}=")
    for part in ("HttpOnly", "SameSite=Lax", "path=/plan", "secure"):
        assert part.lower() in browser.lower()
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_browser_keeps_its_key_and_gets_one_nobody_can_guess():
    def key(**cookies: str) -> str:
        asking = client()
        asking.cookies.update(cookies)
        kept = asking.get("/plan/").headers.get_list("set-cookie")[-1]
        return kept.partition(";")[0].removeprefix(f"{BROWSER_COOKIE}=")

    first, second = key(), key()
    assert len(first) == len(second) == 43
    assert first != second
    assert key(**{BROWSER_COOKIE: first}) == first
    assert key(**{BROWSER_COOKIE: "../../autosaves"}) not in ("../../autosaves", first)


@pytest.mark.parametrize("path", ["/plan/", "/plan/tables?project=x"])
def test_nobody_gets_more_than_a_login_page(path):
    answer = client("default").get(path)
    assert answer.status_code == 403
    assert "/plan/log-in?provider=default" in answer.text
    assert "the app" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    "path",
    [
        "/static/x.js",
        "/media/x",
        "/_stcore/host-config",
        "/index.html",
        "/auth/logout",
        "/_stcore/upload_file/a/b",
    ],
)
def test_nobody_gets_a_part_of_the_app(path):
    for cookies in ({}, {"rpexplore-login": "forged"}, {BROWSER_COOKIE: KEY}):
        asking = client("default")
        asking.cookies.update(cookies)
        assert asking.get(f"/plan{path}").text == "This is not served here."
        assert asking.put(f"/plan{path}", headers=ORIGIN).text == "This is not served here."
        with (
            pytest.raises(WebSocketDisconnect),
            asking.websocket_connect(STREAM, headers=ORIGIN),
        ):
            pass


def test_only_providers_of_the_file_are_gone_to():
    asking = client("staff", "guests")
    assert "Log in with staff" in asking.get("/plan/").text
    for wrong in ("", "?provider=others", "?provider="):
        assert asking.get(f"/plan/log-in{wrong}").status_code == 404
    for method in ("PUT", "POST", "HEAD"):
        answer = asking.request(method, "/plan/oauth2callback", headers=ORIGIN)
        assert answer.status_code == 404


def test_logging_out_ends_the_connections_of_the_login(logged_in):
    asking = client("default")
    with asking.websocket_connect(STREAM, headers=ORIGIN) as connection:
        connection.send_text("x")
        assert connection.receive_text() == "heard x"
        assert asking.get("/plan/log-out", headers={"sec-fetch-site": "cross-site"}).is_error
        assert logged_in.holds
        answer = asking.get("/plan/log-out", headers={"sec-fetch-site": "same-origin"})
        assert answer.headers["location"] == f"{PUBLIC}/"
        assert not logged_in.holds
        connection.send_text("y")
        with pytest.raises(WebSocketDisconnect):
            connection.receive_text()
    assert asking.get("/plan/").status_code == 403


def test_a_login_that_ends_by_itself_closes_its_connections(logged_in, monkeypatch):
    with client("default").websocket_connect(STREAM, headers=ORIGIN) as connection:
        monkeypatch.setattr(accounts, "time", SimpleNamespace(time=lambda: float("inf")))
        connection.send_text("x")
        with pytest.raises(WebSocketDisconnect):
            connection.receive_text()


def test_a_login_that_was_logged_out_stays_so_whatever_the_clock_does(monkeypatch):
    """The clock jumps ahead, somebody else logs out, and it goes back."""
    monkeypatch.setattr(accounts, "_ended", set())
    now = {"time": 100.0}
    monkeypatch.setattr(accounts, "time", SimpleNamespace(time=lambda: now["time"]))
    ada, ben = (Account(name * 64, name, name, 200.0) for name in "ab")
    log_out(ada)
    now["time"] = 1e6
    log_out(ben)
    now["time"] = 100.0
    assert not ada.holds


@pytest.mark.parametrize("host", ["plan.agency.example", "127.0.0.1:8501", "10.0.0.7"])
def test_what_watches_the_server_is_told_one_word(host):
    headers = {"host": host}
    assert client("default").get("/plan/_stcore/health", headers=headers).status_code == 200
    ready = client("default").get("/plan/ready", headers=headers)
    assert (ready.status_code, ready.text) == (200, "ready")
    assert client("default").get("/ready", headers=headers).text == "ready"
    not_yet = client("default", is_ready=False).get("/plan/ready", headers=headers)
    assert (not_yet.status_code, not_yet.text) == (503, "not ready")
    assert client("default").put("/plan/ready", headers={**headers, **ORIGIN}).is_error


def test_an_upload_beyond_what_a_session_may_hold_is_not_kept(monkeypatch):
    held = SimpleNamespace(file_storage={"a": {"old": SimpleNamespace(data=b"x" * 50_000_000)}})
    held.remove_file = lambda session, file: held.file_storage[session].pop(file)

    async def put(request: Request) -> Response:
        file = SimpleNamespace(data=await request.body())
        held.file_storage[request.path_params["session"]][request.path_params["file"]] = file
        return Response(status_code=204)

    client = SimpleNamespace(client_context=SimpleNamespace(headers=[]))
    runtime = SimpleNamespace(uploaded_file_mgr=held, get_client=lambda _session: client)
    monkeypatch.setattr(resolve_name(streamlit_parts._RUNTIME), "instance", lambda: runtime)
    inner = Starlette(
        routes=[Route("/plan/_stcore/upload_file/{session}/{file}", put, methods=["PUT"])]
    )
    served = PublicGuard(inner, PublicAddress.parse(PUBLIC), None, lambda: True)
    asking = TestClient(served, base_url=PUBLIC.removesuffix("/plan"))
    asking.cookies.set(BROWSER_COOKIE, KEY)
    own = account_of_browser({BROWSER_COOKIE: KEY})
    assert own is not None
    path = "/plan/_stcore/upload_file/a/new"
    assert asking.put(path, headers=ORIGIN, content=b"").status_code == 403  # not connected
    for folder, status in (("b" * 64, 403), (own.folder, 204)):
        client.client_context.headers = [(ACCOUNT_HEADER, Account(folder).header)]
        assert asking.put(path, headers=ORIGIN, content=b"").status_code == status
    assert asking.put(path, headers=ORIGIN, content=b"").status_code == 204
    assert asking.put(path, headers=ORIGIN, content=b"x").status_code == 413
    assert [*held.file_storage["a"]] == ["old"]
