"""The line of a terminal that shows that work goes on."""

import shutil
import sys
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Self

_PAUSE = 0.2  # seconds from one drawing to the next


class ProgressLine:
    """What is done, which share of it, and for how long; a thread draws it anew until the end.

    As a context manager: it is wiped out afterwards.
    """

    def __init__(self, doing: str) -> None:
        self._doing, self._share = doing, None
        self._begun = monotonic()
        self._screen = sys.stderr
        self._ended = Event()
        self._drawing = Thread(target=self._draw_until_ended, daemon=True)

    def __enter__(self) -> Self:
        self._drawing.start()
        return self

    def update(self, doing: str, share: float) -> None:
        self._doing, self._share = doing, share

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._drawing.join()

    def _draw_until_ended(self) -> None:
        drawn = 0  # signs on the line
        with suppress(OSError, ValueError):  # the terminal may have been closed
            while not self._ended.wait(_PAUSE):
                text = self._text()
                self._write(f"\r{text:{drawn}}")
                drawn = len(text)
            self._write(f"\r{'':{drawn}}\r")

    def _text(self) -> str:
        minutes, seconds = divmod(int(monotonic() - self._begun), 60)
        share = "" if self._share is None else f" {self._share:.0%}"
        end = f"{share} {minutes}:{seconds:02}"
        # The last column stays empty: a full line would go on to the next one.
        room = shutil.get_terminal_size().columns - 1 - len(end)
        return self._doing[: max(room, 0)] + end

    def _write(self, text: str) -> None:
        self._screen.write(text)
        self._screen.flush()
