"""What the server sends is not held back by the system, and is what was asked for."""

import asyncio
import socket
from asyncio import base_events
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor

from streamlit.runtime import memory_media_file_storage
from streamlit.runtime.media_file_storage import MediaFileKind

from pages.components.shared import server
from pages.components.shared.server import send_at_once


def awaited(work: Coroutine[None, None, bool]) -> bool:
    """What work returns; in a thread, as Playwright leaves a loop running in that of the tests."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def test_messages_are_sent_at_once(monkeypatch):
    async def is_set() -> bool:
        """Of a connection to a socket that is made as Streamlit makes its own."""
        found = asyncio.Future[int]()

        async def look(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = socket.socket(socket.AF_INET)
        listening.bind(("127.0.0.1", 0))
        async with await asyncio.start_server(look, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return bool(await found)

    assert not awaited(is_set())  # by Python itself
    name = "_set_nodelay"
    monkeypatch.setattr(base_events, name, getattr(base_events, name))
    send_at_once()
    assert awaited(is_set())


def test_files_that_have_much_in_common_are_told_apart(monkeypatch):
    storage = memory_media_file_storage
    monkeypatch.setattr(storage, "_calculate_file_id", storage._calculate_file_id)
    server.tell_files_apart()
    kept = storage.MemoryMediaFileStorage("/media")

    def address(content: bytes, name: str = "plan.json") -> str:
        return kept.load_and_get_id(content, "text/plain", MediaFileKind.DOWNLOADABLE, name)

    of_ada = b"x" * 700_000 + b"a" + b"x" * 2_000_000
    of_ben = of_ada.replace(b"a", b"b")
    assert kept.get_file(f"{address(of_ada)}.txt").content == of_ada
    assert kept.get_file(f"{address(of_ben)}.txt").content == of_ben
    before = address(of_ada)
    assert before == address(of_ada) != address(of_ada, "other.json")
    server.tell_files_apart()
    assert address(of_ada) != before  # of another server: it cannot be worked out
