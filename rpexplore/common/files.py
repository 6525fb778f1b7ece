"""The user's folder: where what the program keeps by itself is kept."""

import os
import tempfile
from pathlib import Path


def home_folder() -> Path:
    """`.rpexplore` in the user's home, or what RPEXPLORE_HOME says. It need not exist yet."""
    named = os.environ.get("RPEXPLORE_HOME")
    try:
        return Path(named) if named else Path.home() / ".rpexplore"
    except RuntimeError:  # a user without a home, in a container say
        return Path(tempfile.gettempdir()) / f"rpexplore-{os.getuid()}"
