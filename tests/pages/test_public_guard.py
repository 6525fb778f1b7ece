"""Who gets through to a shared server, asked without one: by host, origin, path and cookie."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.user_info import generate_login_redirect_url

from pages.components.shared import accounts, public_guard, session_owners
from pages.components.shared.accounts import BROWSER_COOKIE, Account, log_out
from pages.components.shared.public_guard import PublicGuard
from rpexplore.common.public_address import PublicAddress

PUBLIC = "https://plan.agency.example/plan"
ORIGIN = {"origin": "https://plan.agency.example"}
STREAM = "wss://plan.agency.example/plan/_stcore/stream"
KEY = "k" * 43


async def _page(request: Request) -> Response:
    response = PlainTextResponse(f"the app by {request.url.scheme}")
    response.set_cookie("_streamlit_user", "x", httponly=True, max_age=30 * 24 * 3600)
    response.set_cookie("plain", "x", samesite="strict")
    response.delete_cookie("old", path="/")
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
    guard = PublicGuard(INNER, PublicAddress.parse(address), providers, lambda: is_ready)
    return TestClient(guard, base_url=PUBLIC.removesuffix("/plan"), follow_redirects=False)


@pytest.fixture
def logged_in(monkeypatch) -> Account:
    """Whoever asks with a login provider is this account, as long as it holds."""
    account = Account("a" * 64, "Ada", "one login")
    monkeypatch.setattr(accounts, "_ended", {})
    monkeypatch.setattr(
        public_guard, "account_of_login", lambda *_: account if account.holds else None
    )
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


def test_what_changes_something_names_its_origin(monkeypatch):
    monkeypatch.setattr(public_guard, "may_upload", lambda path, _account: path.endswith("/a/b"))
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
    user, plain, old, browser = answer.headers.get_list("set-cookie")
    assert user == "_streamlit_user=x; httponly; max-age=43200; path=/plan; samesite=lax; secure"
    assert plain == "plain=x; path=/plan; samesite=strict; secure"
    assert "path=/;" in old.lower()  # it goes away where it was
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


@pytest.mark.parametrize(
    "path", ["/static/x.js", "/media/x", "/_stcore/host-config", "/index.html", "/auth/logout"]
)
def test_nobody_gets_a_part_of_the_app(path):
    for cookies in ({}, {"_streamlit_user": "forged"}, {BROWSER_COOKIE: KEY}):
        asking = client("default")
        asking.cookies.update(cookies)
        assert asking.get(f"/plan{path}").text == "This is not served here."
        assert asking.put(f"/plan{path}", headers=ORIGIN).status_code == 403
        with (
            pytest.raises(WebSocketDisconnect),
            asking.websocket_connect(STREAM, headers=ORIGIN),
        ):
            pass


def test_the_way_to_the_provider(monkeypatch):
    monkeypatch.setattr(public_guard, "generate_login_redirect_url", lambda name: f"/to/{name}")
    asking = client("staff", "guests")
    assert "Log in with staff" in asking.get("/plan/").text
    assert asking.get("/plan/log-in?provider=guests").headers["location"] == "/to/guests"
    for wrong in ("", "?provider=others", "?provider="):
        assert asking.get(f"/plan/log-in{wrong}").status_code == 404
    assert asking.get("/plan/oauth2callback?state=x").status_code == 200
    assert callable(generate_login_redirect_url)


def test_logging_out_ends_the_connections_of_the_login(logged_in):
    asking = client("default")
    with asking.websocket_connect(STREAM, headers=ORIGIN) as connection:
        connection.send_text("x")
        assert connection.receive_text() == "heard x"
        assert asking.get("/plan/auth/logout", headers={"sec-fetch-site": "cross-site"}).is_error
        assert logged_in.holds
        assert asking.get("/plan/auth/logout", headers={"sec-fetch-site": "same-origin"}).is_success
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


@pytest.mark.parametrize(("seconds", "events"), [(60, ["logged in"]), (0, [])])
def test_only_who_has_logged_in_is_logged_as_that(monkeypatch, seconds, events):
    logged: list[str] = []
    monkeypatch.setattr(public_guard, "log_event", logged.append)

    async def callback(_request: Request) -> Response:
        response = PlainTextResponse("")
        response.set_cookie("_streamlit_user", "x", max_age=seconds)
        return response

    inner = Starlette(routes=[Route("/plan/oauth2callback", callback)])
    guard = PublicGuard(inner, PublicAddress.parse(PUBLIC), ("staff",), lambda: True)
    TestClient(guard, base_url=PUBLIC.removesuffix("/plan")).get("/plan/oauth2callback")
    assert logged == events


def test_ended_logins_are_forgotten_when_they_would_have_ended(monkeypatch):
    monkeypatch.setattr(accounts, "_ended", {})
    log_out(Account("a" * 64, "Ada", "old", 1.0))
    log_out(Account("a" * 64, "Ada", "new"))
    assert accounts._ended == {"new": float("inf")}


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

    runtime = SimpleNamespace(uploaded_file_mgr=held, get_client=lambda _session: None)
    monkeypatch.setattr(session_owners.Runtime, "instance", lambda: runtime)
    inner = Starlette(
        routes=[Route("/plan/_stcore/upload_file/{session}/{file}", put, methods=["PUT"])]
    )
    guard = PublicGuard(inner, PublicAddress.parse(PUBLIC), (), lambda: True)
    asking = TestClient(guard, base_url=PUBLIC.removesuffix("/plan"))
    asking.cookies.set(BROWSER_COOKIE, KEY)
    path = "/plan/_stcore/upload_file/a/new"
    assert asking.put(path, headers=ORIGIN, content=b"").status_code == 403  # not connected
    monkeypatch.setattr(public_guard, "may_upload", lambda *_: True)
    assert asking.put(path, headers=ORIGIN, content=b"").status_code == 204
    assert asking.put(path, headers=ORIGIN, content=b"x").status_code == 413
    assert [*held.file_storage["a"]] == ["old"]
