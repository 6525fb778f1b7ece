"""What processes that tests start need."""

import signal


def heed_signals() -> None:
    """In a new process: whoever started the tests may ignore these, as nohup and shells do."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def dumpable() -> str:
    """Whether memory of this process may be dumped, 0 or 1, and the sizes that a core may have."""
    import ctypes
    import resource

    get_dumpable = 3  # PR_GET_DUMPABLE in linux/prctl.h
    return f"{ctypes.CDLL(None).prctl(get_dumpable)} {resource.getrlimit(resource.RLIMIT_CORE)}"
