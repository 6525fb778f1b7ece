"""Logging in and out at a provider, without a browser; and every cookie that opens nothing."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import itsdangerous
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from rpexplore.common.server import ACCOUNT_HEADER, PublicAddress
from rpexplore.common.server_files import Login
from rpexplore.serving import accounts
from rpexplore.serving.accounts import Account, LoginRoutes
from rpexplore.serving.guard import PublicGuard
from tests.support.identity_provider import IdentityProvider, identity_provider

PUBLIC = "https://plan.agency.example/plan"
COOKIE = "rpexplore-login"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture(autouse=True)
def logged(monkeypatch) -> list[str]:
    """What the log says."""
    events: list[str] = []
    monkeypatch.setattr(accounts, "_ended", set())
    monkeypatch.setattr(accounts, "log_event", lambda event, **_: events.append(event))
    return events


@pytest.fixture
def path(provider, tmp_path) -> Path:
    """The login file."""
    path = tmp_path / "login.toml"
    path.touch(0o600)
    path.write_text(provider.login_file(), "utf-8")
    return path


def browser(path: Path, address: str = PUBLIC) -> TestClient:
    """One that was never there."""

    async def app(request: Request) -> Response:
        assert "session" not in request.scope
        return PlainTextResponse(request.headers[ACCOUNT_HEADER])

    public = PublicAddress.parse(address)
    routes = LoginRoutes(Login.read(path, public), public)
    inner = Starlette(routes=[Route("/{path:path}", app)])
    served = PublicGuard(inner, public, routes, lambda: True)
    return TestClient(served, base_url=public.origin, follow_redirects=False)


def sent_back(asking: TestClient, person: str = "ada") -> str:
    """Where a provider sends somebody back to who has said who they are."""
    begun = asking.get("/plan/log-in?provider=default")
    assert begun.headers["cache-control"] == "no-store"
    answer = httpx.get(f"{begun.headers['location']}&person={person}", trust_env=False)
    assert answer.status_code == 302
    return answer.headers["location"].removeprefix(PUBLIC.removesuffix("/plan"))


def account(asking: TestClient) -> Account | None:
    """Who the app is told that asks; None for nobody."""
    answer = asking.get("/plan/")
    return Account.of_header(answer.text) if answer.is_success else None


def test_in_and_out_again(path, provider, logged):
    asking = browser(path)
    assert account(asking) is None
    back = sent_back(asking)
    answer = asking.get(back)
    assert answer.headers["location"] == f"{PUBLIC}/"
    (cookie,) = answer.headers.get_list("set-cookie")
    for part in (f"{COOKIE}=", "path=/plan", "Max-Age=43200", "httponly", "samesite=lax", "secure"):
        assert part in cookie
    ada, kept = account(asking), asking.cookies[COOKIE]
    assert ada is not None
    assert ada.name == "Ada <b>"
    # Once is enough: neither here nor in another browser does the way back open anything again.
    assert "set-cookie" not in asking.get(back).headers
    stranger = browser(path)
    assert stranger.get(back).headers["location"] == f"{PUBLIC}/"
    assert account(stranger) is None
    assert account(asking) == ada

    out = asking.get("/plan/log-out").headers["location"]
    assert out.startswith(f"{provider.issuer}/end?id_token_hint=ey")
    assert f"client_id={provider.client}" in out
    home = asking.get(httpx.get(out, trust_env=False).headers["location"].split("example")[1])
    assert home.headers["location"] == f"{PUBLIC}/"
    assert COOKIE not in asking.cookies
    asking.cookies.set(COOKIE, kept, path="/plan", domain="plan.agency.example")
    assert account(asking) is None  # what was copied before
    assert logged == ["logged in", "logged out"]


def test_two_people_are_two_accounts_and_one_stays_one(path, provider, monkeypatch):
    found = []
    for person, seconds in (("ada", 0), ("ben", 0), ("ada", 60)):
        monkeypatch.setattr(provider, "seconds_ago", seconds)
        asking = browser(path)
        asking.get(sent_back(asking, person))
        found.append(account(asking))
    ada, ben, again = found
    assert ada.folder == again.folder != ben.folder
    assert ada.login != again.login


def test_an_old_login_is_none(path, provider, monkeypatch, logged):
    monkeypatch.setattr(provider, "seconds_ago", 12 * 3600)
    asking = browser(path)
    asking.get(sent_back(asking))
    assert account(asking) is None
    assert not logged


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "changed", ["?error=denied&state=x", "?code=x&state=x", "?code=x", "?state=x", ""]
)
def test_another_way_back_logs_nobody_in_or_out(path, changed):
    asking = browser(path)
    sent_back(asking)
    assert asking.get(f"/plan/oauth2callback{changed}").headers["location"] == f"{PUBLIC}/"
    assert account(asking) is None
    asking.get(sent_back(asking))
    assert account(asking) is not None
    assert asking.get(f"/plan/oauth2callback{changed}").headers["location"] == f"{PUBLIC}/"
    assert account(asking) is not None


def test_a_code_of_somebody_else_logs_nobody_in(path, logged):
    ada, ben = browser(path), browser(path)
    of_ada = sent_back(ada)
    sent_back(ben)
    assert ben.get(of_ada).status_code == 302
    assert account(ben) is None
    assert logged == ["login failed"]


def test_a_provider_that_does_not_answer_is_logged_without_its_text(path, logged):
    path.write_text(path.read_text("utf-8").replace(".well-known", "nowhere"), "utf-8")
    asking = browser(path)
    answer = asking.get("/plan/log-in?provider=default")
    assert answer.headers["location"] == f"{PUBLIC}/"
    assert logged == ["login failed"]


def test_only_a_cookie_that_this_server_signed_for_this_address_counts(path):
    asking = browser(path)
    asking.get(sent_back(asking))
    whole = asking.cookies[COOKIE]

    def opens(cookie: str, server: Path = path, address: str = PUBLIC) -> bool:
        headers = {"cookie": f"{COOKIE}={cookie}".encode("latin-1")}
        return browser(server, address).get("/plan/", headers=headers).status_code == 200

    assert opens(whole)
    assert not opens(whole, address="https://plan.agency.example:8443/plan")
    another = path.with_name("other.toml")
    another.touch(0o600)
    another.write_text(path.read_text("utf-8").replace('cookie_secret = "', 'cookie_secret = "x'))
    assert not opens(whole, another)
    content, _, signature = whole.partition(".")
    claims = b64encode(json.dumps({"iss": "x", "sub": "ben", "iat": 1_800_000_000}).encode())
    for forged in (
        "x",
        "null",
        "ä",
        content,
        f"{claims.decode()}.{signature}",
        itsdangerous.TimestampSigner("x" * 64).sign(claims).decode(),
    ):
        assert not opens(forged), forged
    assert not opens("")
