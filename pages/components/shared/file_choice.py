"""A file or folder to read, chosen from those that the app was started for, or named by its path.

The app belongs to whoever started it, who may read any file: the folders that `--data-folder` names
are what is listed, not a limit.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.shared.files import RELEASES, path_of
from pages.components.shared.session import bound, escaped
from rpexplore.common.webapp_files import data_folders
from rpexplore.data.files.offered import Kind, Offered, folders_with, offered
from rpexplore.releases.atomic_folder import MANIFEST

_OTHER = "Another path"


def released_folders() -> Offered:
    """The folders of releases, and of what was made of them."""
    return offered([*data_folders(), RELEASES], folders_with(MANIFEST))


def finished_at(folder: Path) -> int:
    """When such a folder was finished; another time, and it is read anew."""
    try:
        return (folder / MANIFEST).stat().st_mtime_ns
    except OSError:
        return 0


def data_files(kind: Kind) -> Offered:
    """What of this kind lies under the data folders."""
    return offered(data_folders(), kind)


def path_choice(
    label: str,
    key: str,
    choices: Offered,
    *,
    help: str,
    example: str,
    on_change: Callable[[], Any] = lambda: None,
) -> Path | None:
    """A path from a list that can be searched, or a typed one; None while there is none.

    key: of the typed path, which holds what was chosen as well
    example: of a path, shown where none is typed
    """
    row = st.container(horizontal=True, vertical_alignment="bottom")
    listed = row.container()
    with row.popover(_OTHER):
        typed = st.text_input(
            "Path on this computer",
            key=key,
            persist_state="session",
            placeholder=example,
            width=420,
            on_change=on_change,
        )

    def take(chosen: Path | None) -> None:
        st.session_state[key] = "" if chosen is None else str(chosen)
        on_change()

    path = path_of(typed) if typed.strip() else None
    options = list(choices.names)
    if path is not None and path not in choices.names:
        options.insert(0, path)
    with listed:
        st.selectbox(
            label,
            options,
            index=None,
            format_func=lambda option: choices.names.get(option, str(option)),
            placeholder=_placeholder(choices),
            help=_help(help),
            **bound(f"{key} listed", path, take),
        )
        _tell_cut(choices)
    return path


def paths_choice(label: str, key: str, choices: Offered, *, help: str) -> list[Path]:
    """Several paths: from a list that can be searched, and typed ones."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    listed = row.container()
    with row.popover(_OTHER):
        typed = st.text_area("Paths on this computer, one a line", key=key, persist_state="session")
    kept = f"{key} listed"
    if kept in st.session_state:  # without those that are gone meanwhile
        st.session_state[kept] = [one for one in st.session_state[kept] if one in choices.names]
    with listed:
        chosen: Sequence[Path] = st.multiselect(
            label,
            list(choices.names),
            format_func=choices.names.__getitem__,
            key=kept,
            persist_state="session",
            placeholder=_placeholder(choices),
            help=_help(help),
        )
        _tell_cut(choices)
    return [*chosen, *(path_of(line) for line in typed.splitlines() if line.strip())]


def _placeholder(choices: Offered) -> str:
    return "Choose, or type to search" if choices.names else "Nothing to choose from here"


def _help(help: str) -> str:
    folders = ", ".join(escaped(str(folder)) for folder in data_folders()) or "no folder"
    return (
        f"{help} The list holds what lies under {folders}; `rpexplore app --data-folder FOLDER` "
        f"lists other folders. Anything else can be named under “{_OTHER}”."
    )


def _tell_cut(choices: Offered) -> None:
    if choices.is_cut:
        st.caption(
            f"Only the first {len(choices.names):,} are listed: there is more in these folders. "
            f"Name others under “{_OTHER}”, or start the app with a smaller `--data-folder`."
        )
