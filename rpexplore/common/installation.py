"""The installed package: its optional extras, and where the app's own files are."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rpexplore.errors import MissingExtraError, RpexploreError

# ---- The optional extras of this package, as far as they are installed.

RELEASES = Path("releases")  # where the app proposes to write them, below the current folder


def require(package: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtraError` unless a package can be imported.

    Args:
        package: The name it is imported by.
        extra: The extra that installs it: a key of `[project.optional-dependencies]`.
        purpose: What it is needed for, after "for": "charts and reports".
    """
    if find_spec(package) is None:
        raise MissingExtraError(
            f"The package {package!r} is needed for {purpose}, and is not installed; install it "
            f'with: pip install "rpexplore[{extra}]"'
        )


# ---- Where the app's own files are, in a wheel inside the package or in a checkout beside it; and
# the folders that it lists files of.


# How `rpexplore app` hands the token of a server down to it, and to the browser.
TOKEN_VARIABLE = "RPEXPLORE_APP_TOKEN"
TOKEN_PARAMETER = "token"
REFUSED = 2  # the exit code of a server that has said in a sentence why it does not start
_FOLDERS_VARIABLE = "RPEXPLORE_DATA_FOLDERS"

_PACKAGE = Path(__file__).resolve().parents[1]


def app_script() -> Path:
    """app.py, with its pages and settings beside it. Raises `RpexploreError` if missing."""
    return _folder() / "app.py"


def sample_data_folder() -> Path:
    """The folder of the sample data. Raises `RpexploreError` if missing."""
    return _folder() / "sample_data"


def data_folders_variable(folders: Iterable[Path]) -> dict[str, str]:
    """The variable of the environment that names the data folders of a server; none for none.

    Raises `RpexploreError` for what is no folder.
    """
    paths = [folder.resolve() for folder in folders]
    for path in paths:
        if not path.is_dir():
            raise RpexploreError(f"There is no folder {str(path)!r}; name another --data-folder.")
    return {_FOLDERS_VARIABLE: json.dumps([str(path) for path in paths])} if paths else {}


def data_folders() -> list[Path]:
    """The folders whose files the app offers: those it was started with, or the sample data."""
    named = os.environ.get(_FOLDERS_VARIABLE)
    if named:
        return [Path(folder) for folder in json.loads(named)]
    with suppress(RpexploreError):
        return [sample_data_folder()]
    return []


def is_sample_data(folder: Path) -> bool:
    """Whether the sample data lie there: invented, and no place for the user's own files."""
    try:
        return folder.samefile(sample_data_folder())
    except (OSError, RpexploreError):
        return False


def _folder() -> Path:
    installed, checkout = _PACKAGE / "webapp", _PACKAGE.parent
    # Beside an installed package lie other people's files, which could well have these names.
    candidates = [installed, checkout] if (checkout / "pyproject.toml").is_file() else [installed]
    for folder in candidates:
        if (folder / "app.py").is_file() and (folder / "sample_data").is_dir():
            return folder
    raise RpexploreError(
        f"The app's files (app.py and sample_data) are not in {str(candidates[-1])!r}; install "
        "rpexplore again."
    )
