"""Work in another process: its result, its errors, and that it can be stopped."""

import os
import sys
import time

import pytest

from rpexplore.common.other_process import in_other_process
from rpexplore.errors import DataError, RpexploreError


def reversed_there(content):
    sys.stdout.write("whatever is printed on the way")
    return os.getpid(), content[::-1]


def refuse():
    raise DataError("The value is wrong.", private="It was 17.")


def test_the_result_comes_from_another_process():
    content = b"0123456789" * 100_000  # more than a pipe holds
    pid, result = in_other_process(reversed_there, content)
    assert pid != os.getpid()
    assert result == content[::-1]


def test_an_error_is_raised_here_with_what_is_for_the_screen_only(capfd):
    with pytest.raises(DataError, match="The value is wrong") as caught:
        in_other_process(refuse)
    assert caught.value.on_screen() == "The value is wrong. It was 17."
    assert capfd.readouterr() == ("", "")


def test_it_is_ended_when_it_is_cancelled():
    def cancel(doing, share):
        if time.monotonic() > start + 0.5:
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_other_process(time.sleep, 60, on_progress=cancel)
    assert time.monotonic() - start < 30


def test_a_process_that_dies_is_told():
    with pytest.raises(RpexploreError, match=r"exit code 7\)"):
        in_other_process(os._exit, 7)
