"""Work in another process: its result, its errors, and that it can be stopped."""

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rpexplore.common import processes as module
from rpexplore.common.processes import in_other_process
from rpexplore.common.server import ServerSettings
from rpexplore.errors import DataError, RpexploreError
from tests.support.processor_time import PATIENCE

HOURS = 7200  # seconds: what is not ended is not done before


def reversed_there(content):
    sys.stdout.write("whatever is printed on the way")
    return os.getpid(), content[::-1]


def refuse():
    raise DataError("The value is wrong.", private="It was 17.")


def print_there(folder):
    """Start a program and wait for it, beside a temporary file: as a PDF is printed."""
    code = (
        "import os, pathlib, time; pathlib.Path('pid').write_text(f'{os.getpid()}\\n'); "
        f"time.sleep({HOURS})"
    )
    with TemporaryDirectory(dir=folder) as scratch:
        Path(scratch, "report.html").touch()
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)


def go_on(folder):
    """Ignore that the process is to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / "pid").write_text(f"{os.getpid()}\n")
    time.sleep(HOURS)


def has_begun(folder):
    pid = folder / "pid"
    return pid.is_file() and pid.read_text().endswith("\n")


def nothing_is_left(folder):
    """Whether the program of `print_there` has ended and its temporary folder is gone."""
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return os.listdir(folder) == ["pid"]
    return False


def wait_until(condition, *args):
    end = time.monotonic() + PATIENCE
    while not condition(*args):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_result_comes_from_another_process():
    content = b"0123456789" * 100_000  # more than a pipe holds
    pid, result = in_other_process(reversed_there, content)
    assert pid != os.getpid()
    assert result == content[::-1]


def test_it_has_a_lower_priority_on_a_planning_server_alone(monkeypatch):
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert in_other_process(os.getpriority, os.PRIO_PROCESS, 0) == here
    for name, text in ServerSettings(planning_only=True).variable.items():
        monkeypatch.setenv(name, text)
    assert in_other_process(os.getpriority, os.PRIO_PROCESS, 0) == min(here + 10, 19)


def test_an_error_is_raised_here_with_what_is_for_the_screen_only(capfd):
    with pytest.raises(DataError, match="The value is wrong") as caught:
        in_other_process(refuse)
    assert caught.value.on_screen() == "The value is wrong. It was 17."
    assert capfd.readouterr() == ("", "")


def test_it_is_ended_when_it_is_cancelled():
    calls = count()

    def cancel(doing, share):
        if next(calls) == 3:  # it is at work, or about to be
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_other_process(time.sleep, HOURS, on_progress=cancel)


def test_what_it_has_begun_ends_with_it_when_it_is_cancelled(tmp_path):
    def cancel(doing, share):
        if has_begun(tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_other_process(print_there, tmp_path, on_progress=cancel)
    assert nothing_is_left(tmp_path)


def test_what_it_has_begun_ends_with_it_when_its_parent_is_gone(tmp_path):
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from pathlib import Path; "
        f"from tests.common.test_other_process import in_other_process, print_there; "
        f"in_other_process(print_there, Path({str(tmp_path)!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        wait_until(has_begun, tmp_path)
        parent.kill()
    wait_until(nothing_is_left, tmp_path)


def test_a_process_that_cannot_clean_up_is_ended_all_the_same(tmp_path, monkeypatch):
    def cancel(doing, share):
        if has_begun(tmp_path):
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_CLEANING_UP", 0.1)
    with pytest.raises(KeyboardInterrupt):
        in_other_process(go_on, tmp_path, on_progress=cancel)


def test_a_process_that_dies_is_told():
    with pytest.raises(RpexploreError, match=r"exit code 7\)"):
        in_other_process(os._exit, 7)
