"""Files that hold passwords: TOML, for their owner alone, and never quoted in an error."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from rpexplore.errors import RpexploreError


def secret_toml(path: Path, what: str, error: type[RpexploreError]) -> dict[str, Any] | None:
    """The content of a TOML file of secrets; None if it is no TOML, which its reader has to say.

    Raises `error`, which calls the file by `what`, if others than its owner may use it or it cannot
    be read, and `FileNotFoundError`.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise error(
                    f"{what} {str(path)!r} must be for its owner alone, but others "
                    f"may use it (mode {stat.S_IMODE(mode):o}); run: chmod 600 {path}"
                )
            return tomllib.load(file)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise error(
            f"{what} {str(path)!r} cannot be read ({problem.strerror}); check the path."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None  # the parser may quote what it could not read
