"""The log of a shared server: JSON lines, and no text that came from outside."""

import json
import os
import subprocess
import sys

import pytest

from rpexplore.common.server import ServerSettings
from rpexplore.common.server_files import event_line, log_event

CANARY = "Kanarienvogel"
# Every way by which a library, a thread or the interpreter itself could write something down.
NOISE = f"""
import asyncio, gc, logging, sys, threading, warnings
from rpexplore.common.server_files import take_over_logs
before = logging.getLogger("before")
before.addHandler(logging.StreamHandler())
before.propagate = False
take_over_logs()
text = "{CANARY}"

def fail():
    raise ValueError(text)

class Bad:
    def __del__(self):
        fail()

def logs(logger):
    logger.warning("of %s", text)
    logger.warning(text, extra={{"more": text}}, stack_info=True)
    try:
        fail()
    except ValueError:
        logger.exception(text)

logs(before)
logs(logging.getLogger("uvicorn.error"))
logging.error(text)
warnings.warn(text)
thread = threading.Thread(target=fail, name=text)
thread.start()
thread.join()
Bad()
gc.collect()

async def forgotten():
    asyncio.get_running_loop().create_task(failing())
    await asyncio.sleep(0)
    gc.collect()

async def failing():
    fail()

asyncio.run(forgotten())
gc.collect()
fail()
"""


@pytest.fixture(scope="module")
def complained() -> subprocess.CompletedProcess[str]:
    """What a process says in which everything goes wrong."""
    return subprocess.run(
        [sys.executable, "-c", NOISE],
        env=os.environ | ServerSettings(planning_only=True).variable,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_that_is_complained_of_is_said(complained):
    assert complained.returncode == 1
    assert complained.stdout == ""
    assert CANARY not in complained.stderr


def test_every_line_is_a_json_object_that_says_where(complained):
    lines = [json.loads(line) for line in complained.stderr.splitlines()]
    events = [line["event"] for line in lines]
    assert events.count("unexpected error") == 6
    assert events.count("library message") == 6
    assert {line.get("type") for line in lines} == {"ValueError", None}
    assert {line["level"] for line in lines if "level" in line} == {"WARNING", "ERROR"}
    assert all(line["time"].endswith("+00:00") for line in lines)


def test_the_place_of_an_error_is_in_this_program(monkeypatch, capsys):
    from rpexplore.common import server_files
    from rpexplore.common.server import PublicAddress

    settings = ServerSettings(planning_only=True)
    monkeypatch.setattr(server_files, "server_settings", lambda: settings)
    try:
        PublicAddress.parse(CANARY)
    except Exception as error:
        server_files.log_unexpected(error)
    line = json.loads(capsys.readouterr().err)
    assert line["type"] == "RpexploreError"
    assert line["place"].startswith("rpexplore/common/server.py:")


def test_ones_own_app_has_no_log(capsys):
    log_event("page run", seconds=1.0)
    assert capsys.readouterr() == ("", "")


def test_a_field_holds_numbers_and_words_alone():
    line = json.loads(event_line("x", a="Trade-offs", b=f"{CANARY}=\n", c=None, d=0.12345, e=7))
    assert {name: line[name] for name in line if name != "time"} == {
        "event": "x",
        "a": "Trade-offs",
        "d": 0.123,
        "e": 7,
    }
