"""Whether a shared server is ready for people: it can draw pages, save projects and is to stay."""

import tempfile
import threading

from rpexplore.common.files import home_folder

_imported, _stopping = threading.Event(), threading.Event()


def pages_are_imported() -> None:
    """Note that the first page can be drawn at once."""
    _imported.set()


def begin_to_stop() -> None:
    """Note that the server is about to end."""
    _stopping.set()


def is_stopping() -> bool:
    """Whether it is."""
    return _stopping.is_set()


def is_ready() -> bool:
    """Whether somebody who comes now can work."""
    return _imported.is_set() and not is_stopping() and _can_save()


def _can_save() -> bool:
    try:
        home_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home_folder()) as file:
            file.write(b"saved")
        return True
    except OSError:
        return False
