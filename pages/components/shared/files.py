"""Files on the pages: typed paths, uploads, downloads, and files and folders to choose from."""

import mimetypes
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.shared.session import EVERYWHERE, bound, escaped, say
from rpexplore.common.file_kinds import PARQUET, ZIP
from rpexplore.common.files import typed_path, why_no_name
from rpexplore.common.installation import RELEASES, data_folders
from rpexplore.data.files.offered import Kind, Offered, folders_with, offered
from rpexplore.errors import DomainError
from rpexplore.releases.atomic_folder import MANIFEST
from rpexplore.serving.limits import refuse_upload
from rpexplore.serving.sessions import limits, plans_only, reading
from rpexplore.serving.streamlit_parts import forget_uploaded

Content = str | bytes
_REFUSED = "refused uploads"  # their ids: what is in a box stays there till the end of the run


def new_folder_input(
    label: str, key: str, usual: Path, is_taken: Callable[[str], bool] = os.path.lexists
) -> Path | None:
    """A field for a new folder; None, and the page says why, if something is there.

    At first it holds `usual`, with a number behind it while that `is_taken`.
    """
    if not st.session_state.get(key):
        names = (f"{usual}-{n}" if n > 1 else str(usual) for n in range(1, 1000))
        st.session_state[key] = next(name for name in names if not is_taken(name))
    folder = typed_path(st.text_input(label, key=key, persist_state="session")).absolute()
    if problem := why_no_name(folder):
        st.error(escaped(f"A folder cannot have that name ({problem}); choose another one."))
        return None
    if os.path.lexists(folder):
        st.error(
            "There is something at that path already, and nothing is ever overwritten; name "
            "another folder, or empty the field to get a new name."
        )
        return None
    return folder


def upload(
    label: str,
    endings: Sequence[str] | None,
    key: str,
    take: Callable[[bytes, str], Any],
    **options: Any,
) -> Any:
    """A box for a file, whose content and name are given to `take` once it is there.

    endings: those of the names that it takes, None for all. Returns the file in it, if there is one
    that was not refused.
    """

    def taken() -> None:
        file = st.session_state[key]
        if file is None:
            return
        with reading():
            if not _refused([file], {ZIP} if "zip" in (endings or ()) else ()):
                take(file.getvalue(), file.name)

    file = st.file_uploader(label, endings, key=key, on_change=taken, **_limited(options))
    was_refused = file is not None and file.file_id in st.session_state.get(_REFUSED, ())
    return None if was_refused else file


def upload_several(
    label: str,
    endings: Sequence[str] | None,
    key: str,
    take: Callable[[Sequence[Any]], Any],
    **options: Any,
) -> None:
    """A box for files, which are given to `take` once there are any."""

    def taken() -> None:
        files = st.session_state[key]
        with reading():
            # A list of areas may be Parquet, beside its codebook alone.
            if files and not _refused(files, {PARQUET} if len(files) > 1 else ()):
                take(files)

    st.file_uploader(label, endings, True, key=key, on_change=taken, **_limited(options))


def _limited(options: dict[str, Any]) -> dict[str, Any]:
    if plans_only():
        options["max_upload_size"] = limits().upload_mb
    return options


def _refused(files: Sequence[Any], taken: Collection[bytes]) -> bool:
    """Whether a server without records refuses the files; the page says why, and they are gone.

    taken: as of `refuse_records`
    """
    if not plans_only():
        return False
    try:
        for file in files:
            refuse_upload(file.getvalue(), file.name, taken)
    except DomainError as error:
        say(EVERYWHERE, "error", f"{error} Nothing was changed, and the file was not kept.")
        for file in files:
            forget_uploaded(file)
            st.session_state.setdefault(_REFUSED, set()).add(file.file_id)
        return True
    return False


def forget_upload(key: str) -> None:
    """Take what is in an upload box out of the memory of a server without records."""
    file = st.session_state.get(key)
    if plans_only() and file is not None:
        forget_uploaded(file)


def download(
    file: str, content: Content | Callable[[], Content], label: str = "", **options: Any
) -> None:
    """A button for a file; its content is made when asked for, by a thread without a session."""
    mime = mimetypes.guess_type(file)[0]
    label = label or f"Download {file}"
    st.download_button(label, content, file, mime, on_click="ignore", **options)


# ---- A file or folder to read, chosen from those that the app was started for, or named by its
# path.
#
# The app belongs to whoever started it, who may read any file: the folders that `--data-folder`
# names are what is listed, not a limit.


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

    path = typed_path(typed) if typed.strip() else None
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
    return [*chosen, *(typed_path(line) for line in typed.splitlines() if line.strip())]


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
