"""What processes that tests start need."""

import signal


def heed_signals() -> None:
    """In a new process: whoever started the tests may ignore these, as nohup and shells do."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
