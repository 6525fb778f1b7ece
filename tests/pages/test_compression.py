"""What `CompressedScripts` sends in place of Streamlit's files."""

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor

import pytest

from rpexplore.serving.compression import CompressedScripts

SCRIPT = b"let x = 1;\n" * 1000
ASKED = []


async def files(scope, receive, send):
    """Serves every path ending in `x.js` in two pieces, and nothing else."""
    ASKED.append(scope["path"])
    is_there = scope["path"].endswith("x.js")
    headers = [(b"content-type", b"text/javascript"), (b"etag", b'"1"'),
               (b"content-length", str(len(SCRIPT)).encode())]  # fmt: skip
    await send({"type": "http.response.start", "status": 200 if is_there else 404,
                "headers": headers if is_there else []})  # fmt: skip
    half = len(SCRIPT) // 2 if is_there else 0
    await send({"type": "http.response.body", "body": SCRIPT[:half], "more_body": True})
    await send({"type": "http.response.body", "body": SCRIPT[half:] if is_there else b"none"})


def answered(app, path="/static/js/x.js", method="GET", **headers):
    """Status, headers and body of an answer."""
    sent = []

    async def send(message):
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    # In a thread of its own, as a browser that other tests drive has a loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, app(scope, None, send)).result()
    start, *rest = sent
    return start["status"], dict(start["headers"]), b"".join(one.get("body", b"") for one in rest)


def test_a_script_is_compressed_once_and_says_so():
    app, before = CompressedScripts(files), len(ASKED)
    for _ in range(2):
        status, headers, body = answered(app, accept_encoding="br, gzip")
        assert (status, gzip.decompress(body)) == (200, SCRIPT)
        assert headers[b"content-encoding"] == b"gzip"
        assert headers[b"content-length"] == str(len(body)).encode()
        assert headers[b"vary"] == b"Accept-Encoding"
        assert headers[b"etag"] == b'"1"'
        assert len(body) < len(SCRIPT) / 50
    assert len(ASKED) == before + 1


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"accept_encoding": "gzip", "range": "bytes=0-9"},
        {"accept_encoding": "gzip", "path": "/media/x.js"},
        {"accept_encoding": "gzip", "method": "HEAD"},
    ],
)
def test_nothing_else_is_touched(asked):
    status, headers, body = answered(CompressedScripts(files), **asked)
    assert (status, body) == (200, SCRIPT)
    assert b"content-encoding" not in headers


def test_what_broke_off_is_not_kept():
    """Who loads the page again while it loads leaves requests in the middle."""
    broken = [True]

    async def breaking_off(scope, receive, send):
        async def until_left(message):
            is_last = message["type"] == "http.response.body" and "more_body" not in message
            if not (broken and is_last):
                await send(message)

        await files(scope, receive, until_left)

    app = CompressedScripts(breaking_off)
    with pytest.raises(ValueError, match="not enough values"):
        answered(app, accept_encoding="gzip")
    broken.clear()
    assert gzip.decompress(answered(app, accept_encoding="gzip")[2]) == SCRIPT


def test_what_is_not_there_is_not_kept():
    app = CompressedScripts(files)
    for _ in range(2):
        answer = answered(app, path="/static/js/y.js", accept_encoding="gzip")
        assert answer == (404, {}, b"none")
