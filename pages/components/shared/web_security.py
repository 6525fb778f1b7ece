"""What every server of the app answers with and refuses, whoever it is for."""

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Scope, Send

POLICY_VIOLATION = 1008  # why a websocket is closed
_SAFE = ("GET", "HEAD", "OPTIONS")
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


def plain_page(body: str) -> str:
    """A page without anything of the app but its name."""
    return _PAGE.format(body=body)


def is_foreign(scope: Scope, own_origin: str) -> bool:
    """Whether a request comes from a page of another origin, or could and does not say."""
    origin = Headers(scope=scope).get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in _SAFE
    return origin != own_origin and (changes or origin is not None)


def are_equal(shown: str, secret: str) -> bool:
    """Whether a text is a secret one; how long that takes tells nothing."""
    return hmac.compare_digest(shown.encode(), secret.encode())


def with_security_headers(send: Send) -> Send:
    """Send answers with the headers that forbid framing, sniffing and referrers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_SECURITY)
        await send(message)

    return send_with_headers
