"""Streamlit's own scripts, sent compressed: over a slow line they are most of a first visit."""

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LEAST = 1000  # bytes: below, nothing is gained


class CompressedScripts:
    """Middleware that compresses each script and style sheet once and keeps it.

    Streamlit leaves its files as they are, because what it has at hand would compress them for each
    visitor anew. Their names hold their hashes, so that what is kept stays right; all of them take
    some 4 MB.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[str, tuple[list[tuple[bytes, bytes]], bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _can_be_compressed(scope):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path not in self._kept:
            start: Message = {}
            body = bytearray()
            is_whole = False

            async def take(message: Message) -> None:
                nonlocal is_whole
                if message["type"] == "http.response.start":
                    start.update(message)
                else:
                    body.extend(message.get("body", b""))
                    is_whole = not message.get("more_body", False)

            await self._app(scope, receive, take)
            if not is_whole:
                return  # whoever asked has left in the middle, as by loading the page again
            if start["status"] != 200 or len(body) < _LEAST:
                await send(start)
                await send({"type": "http.response.body", "body": bytes(body)})
                return
            packed = await asyncio.to_thread(gzip.compress, bytes(body), 6, mtime=0)
            headers = MutableHeaders(raw=list(start["headers"]))
            headers["content-encoding"] = "gzip"
            headers["content-length"] = str(len(packed))
            headers.add_vary_header("Accept-Encoding")
            self._kept[path] = headers.raw, packed
        headers, packed = self._kept[path]
        response = Response(packed)
        response.raw_headers = list(headers)
        await response(scope, receive, send)


def _can_be_compressed(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return (
        scope["method"] == "GET"
        and "/static/" in scope["path"]
        and scope["path"].endswith((".js", ".css"))
        and "gzip" in headers.get("accept-encoding", "")
        and not {"range", "if-none-match", "if-modified-since"} & set(headers.keys())
    )
