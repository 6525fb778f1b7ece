"""The signal of a terminal that is closed."""

import signal
from collections.abc import Callable
from typing import Any


def take_hangup(handler: Callable[..., Any]) -> None:
    """Have `handler` called, unless it is ignored (nohup), or the system has no such signal."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) == signal.SIG_DFL:
        signal.signal(hangup, handler)
