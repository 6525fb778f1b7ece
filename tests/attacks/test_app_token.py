"""The token of one's own app, and the cookie that replaces it: both end with their server."""

from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from rpexplore.common.installation import TOKEN_PARAMETER
from rpexplore.serving.guard import Guard


def server(token: str) -> TestClient:
    """A new one on the same port, with a browser that was never there."""
    return TestClient(Guard(PlainTextResponse("the app"), token), base_url="http://127.0.0.1:8501")


def test_what_one_server_was_shown_opens_nothing_of_the_next_one():
    first = server("of the first")
    assert first.get("/").status_code == 403
    assert first.get("/", params={TOKEN_PARAMETER: "of the first"}).status_code == 200
    assert first.get("/").text == "the app"
    cookies = {**first.cookies}
    assert len(cookies) == 1
    for token in ("of the second", "of the first"):  # though somebody gives it the same token
        second = server(token)
        second.cookies.update(cookies)
        assert second.get("/").status_code == 403
    assert server("of the second").get("/", params={TOKEN_PARAMETER: "of the first"}).is_error


def test_a_token_in_another_place_than_the_address_opens_nothing():
    for where in ("headers", "cookies"):
        browser = server("token")
        getattr(browser, where).update({TOKEN_PARAMETER: "token", "authorization": "Bearer token"})
        assert browser.get("/").status_code == 403
