"""Planning servers as processes, started as whoever runs one does, and who speaks to a server."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

PATIENCE = 60  # seconds, for a busy machine


@dataclass(frozen=True)
class PlanningServer:
    """One that runs: its port, its home folder, and the files of what it has said."""

    port: int
    home: Path
    stdout: Path
    stderr: Path
    process: subprocess.Popen

    @property
    def events(self) -> list[dict]:
        """The lines of its log, each of which has to be a JSON object."""
        return [json.loads(line) for line in self.stderr.read_text("utf-8").splitlines()]

    @property
    def said(self) -> str:
        """All that it has said."""
        return self.stdout.read_text("utf-8") + self.stderr.read_text("utf-8")

    def wait_for(self, path: str, status: int = 200) -> None:
        """Wait until it answers so."""
        deadline = time.monotonic() + PATIENCE
        while answered(f"http://127.0.0.1:{self.port}{path}") != status:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)


def answered(address: str) -> int | None:
    """The status of the answer to a request; None where nobody answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def planning_server(
    folder: Path, *options: str, port: int, ready: str = "/ready", more: Mapping[str, str] = {}
) -> Iterator[PlanningServer]:
    """A server with these options beside `--planning-only`, ready at a path; its home is in folder.

    It is stopped at the end, and has to end by itself.

    more: variables of its environment
    """
    home = folder / "home"
    command = [sys.executable, "-m", "rpexplore.cli.main", "app", "--planning-only"]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            env=os.environ | {"RPEXPLORE_HOME": str(home), "no_proxy": "127.0.0.1", **more},
            stdout=out,
            stderr=err,
        )
    server = PlanningServer(port, home, folder / "stdout", folder / "stderr", process)
    try:
        server.wait_for(ready)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()  # the server ends when its input does
            process.wait()
            pytest.fail(f"the server did not end when it was stopped: {server.said}")
        assert "server cut off" not in server.said


class Browser:
    """One that does what it wants, with a key and a token against forgery that it was given.

    first: the path that is opened first, with the token of one's own app
    """

    def __init__(self, port: int, first: str = "/") -> None:
        self.port, self.cookies = port, {}
        for path in (first, "/_stcore/health"):
            for cookie in self._ask("GET", path).headers.get_all("set-cookie") or []:
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value

    @property
    def own(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    def _ask(self, method: str, path: str, body: bytes = b"", **headers: str):
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request(method, path, body, self.own | headers)
            answer = connection.getresponse()
            answer.read()
            return answer

    def upload(self, session: str, file: str, content: bytes = b"", method: str = "PUT") -> int:
        """The status of the answer to a file that is put into a session, or taken out."""
        begin = b'--B\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        headers = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "X-Xsrftoken": self.cookies["_streamlit_xsrf"],
            "Content-Type": "multipart/form-data; boundary=B",
        }
        path = f"/_stcore/upload_file/{session}/{file}"
        return self._ask(method, path, begin + content + b"\r\n--B--\r\n", **headers).status

    def connected(self, session: str = "", **headers: str) -> ClientConnection:
        names = ["streamlit", self.cookies["_streamlit_xsrf"], *([session] if session else [])]
        return connect(
            f"ws://127.0.0.1:{self.port}/_stcore/stream",
            origin=Origin(f"http://127.0.0.1:{self.port}"),
            additional_headers=self.own | headers,
            subprotocols=[Subprotocol(name) for name in names],
            max_size=None,
            max_queue=None,  # else it could not be closed for ten seconds while some is unread
        )
