"""A release in the background: a rerun of the page, or another page, must not stop it or start
it twice, because a run that has been booked is charged whether or not it finishes."""

import threading
from collections.abc import Callable

from rpexplore.errors import RpexploreError
from rpexplore.release import Progress, Release


class Run:
    """One run: `doing` and `share` while it goes on, then a `release` or an `error` for the screen.

    The error's text may hold what was read from records; it is shown and not kept anywhere else.
    """

    def __init__(self, work: Callable[[Progress], Release]) -> None:
        self.doing, self.share = "Starting", 0.0
        self.release: Release | None = None
        self.error = ""
        self._work = work
        # Not a daemon: a server that is stopped waits for a run that has been booked.
        self._thread = threading.Thread(target=self._go, name="release", daemon=False)
        self._thread.start()

    @property
    def is_going(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Return when the run has ended, or after so many seconds."""
        self._thread.join(seconds)

    def _go(self) -> None:
        try:
            self.release = self._work(self._note)
        except RpexploreError as error:
            self.error = error.on_screen()
        except MemoryError:
            self.error = "There is not enough memory; ask for fewer or smaller tables."
        except Exception as error:
            # Its text could hold anything; a thread would print it with all its values.
            self.error = f"The run stopped unexpectedly ({type(error).__name__}); please report it."

    def _note(self, doing: str, share: float) -> None:
        self.doing, self.share = doing, min(max(share, 0.0), 1.0)
