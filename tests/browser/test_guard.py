"""Requests of other users, other pages and other machines, to an app that is not theirs."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from rpexplore.cli import serve
from rpexplore.common.installation import TOKEN_PARAMETER
from tests.browser.conftest import PATIENCE, TOKEN, running_app
from tests.pages.conftest import TITLES

STREAM = "/_stcore/stream"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def answer(server: str, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    """The answer to a request; a header's name with `_` for `-`."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=PATIENCE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in named)
    for name, value in named.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


@pytest.fixture(scope="module")
def cookie(server) -> str:
    """The cookie of a browser that has shown the token."""
    welcome = answer(server, f"/?{TOKEN_PARAMETER}={TOKEN}")
    assert welcome.status == 200
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie + welcome.read().decode()
    return cookie.partition(";")[0]


@pytest.mark.parametrize(
    "path",
    ["/", "/plan", "/static/js/index.js", "/_stcore/host-config", "/media/x", STREAM, "/?token="],
)
def test_nothing_is_served_without_the_token(server, path):
    assert answer(server, path).status == 403
    assert answer(server, path, Cookie="rpexplore-session=x; token=x").status == 403
    assert answer(server, f"{path.partition('?')[0]}?token={'0' * 32}").status == 403
    assert answer(server, path, "POST", Origin=server).status == 403


def test_a_file_cannot_be_put_without_the_token(server):
    path = "/_stcore/upload_file/a/b"
    assert answer(server, path, "PUT", Origin=server).status == 403
    assert answer(server, path, "DELETE", Origin=server).status == 403


def test_only_its_own_exact_origin_may_open_a_session(server, cookie):
    def status(**headers: str) -> int:
        return answer(server, STREAM, **UPGRADE, Cookie=cookie, **headers).status

    port = urlsplit(server).port
    assert status(Origin=server) == 101
    assert status(Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 101
    for origin in (
        "http://localhost:8000",
        f"http://localhost:{port}",  # the same machine by another name is another origin
        "http://127.0.0.1",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}.example.org",
        "http://example.org",
        "null",
        "",
    ):
        assert status(Origin=origin) == 403, origin
    assert status() == 403
    assert answer(server, STREAM, **UPGRADE, Origin=server).status == 403


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "0.0.0.0:{port}", ""])
def test_another_name_of_the_host_is_refused(server, cookie, host):
    host = host.format(port=urlsplit(server).port)
    assert answer(server, "/", Host=host, Cookie=cookie).status == 421


def test_every_answer_forbids_framing_sniffing_and_referrers(server, cookie):
    for path, headers in (("/", {}), ("/", {"Cookie": cookie}), ("/_stcore/health", {})):
        sent = answer(server, path, **headers).headers
        assert sent["content-security-policy"] == "frame-ancestors 'none'"
        assert sent["x-content-type-options"] == "nosniff"
        assert sent["referrer-policy"] == "no-referrer"


def test_the_token_leads_to_no_other_host(server):
    page = answer(server, f"//example.org/?{TOKEN_PARAMETER}={TOKEN}&project=<b>").read().decode()
    assert "url=/example.org/?project=%3Cb%3E" in page


# Of both, what a browser is sent is looked at above.
@pytest.mark.nightly
def test_the_token_leaves_the_address_and_scripts_do_not_see_the_cookie(page, server):
    expect(page.get_by_role("heading", level=1, name=TITLES["home"])).to_be_visible()
    assert TOKEN not in page.url
    assert "session" not in page.evaluate("document.cookie")


@pytest.mark.nightly
def test_no_other_page_can_frame_it(page, server, tmp_path):
    (tmp_path / "frame.html").write_text(f'<iframe src="{server}/"></iframe>')
    outer = page.context.new_page()
    with outer.expect_console_message(lambda message: "frame-ancestors" in message.text):
        outer.goto((tmp_path / "frame.html").as_uri())


def test_a_foreign_origin_makes_the_server_ask_nobody(tmp_path, monkeypatch):
    """Streamlit's own check would ask a web server for this machine's address, by the proxy."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def listen() -> None:
            while True:
                try:
                    connection, _ = proxy.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(1000))

        threading.Thread(target=listen, daemon=True).start()
        host, port = proxy.getsockname()
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"{host}:{port}")
        with running_app(tmp_path) as server:
            for origin in ("http://example.org", "http://localhost:8000"):
                assert answer(server, STREAM, **UPGRADE, Origin=origin).status == 403
    assert not requests


def test_the_server_ends_with_the_program_that_started_it(tmp_path):
    command = [sys.executable, "-m", "rpexplore.cli.main", "app", "--no-browser", "--port"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = os.environ | {"RPEXPLORE_HOME": str(tmp_path)}
    with subprocess.Popen([*command, str(port)], env=home, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        line = parent.stdout.readline().decode()
        assert f"http://127.0.0.1:{port}/?{TOKEN_PARAMETER}=" in line
        parent.kill()
    deadline = time.monotonic() + PATIENCE
    while serve._answers(f"http://127.0.0.1:{port}"):
        assert time.monotonic() < deadline, "the server outlived the program"
        time.sleep(0.1)


def test_the_token_is_in_no_argument_of_a_program():
    with serve._link("http://127.0.0.1:1/?token=secret") as address:
        path = Path(urlsplit(address).path)
        assert "secret" not in address
        assert "secret" in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()
