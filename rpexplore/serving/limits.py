"""What a planning server takes: uploaded files without records, and projects within its limits."""

from collections.abc import Collection
from contextlib import suppress

from rpexplore.common.file_kinds import number_of_values, refuse_records, unpacked_size
from rpexplore.common.server_files import log_event
from rpexplore.common.text import data_size
from rpexplore.errors import DomainError
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project
from rpexplore.serving.sessions import limits, plans_only

_REMEDY = "Leave out what planning does not need, or plan with your own app."


def refuse_upload(content: bytes, filename: str, taken: Collection[bytes] = ()) -> None:
    """Raise `DomainError` for a file with records, or one that is too large or becomes so.

    taken: as of `refuse_records`
    """
    most, most_unpacked = limits().upload_mb, limits().unpacked_mb
    if len(content) > most * 10**6:
        log_event("refused by a limit", limit="upload_mb")
        raise DomainError(
            f"{filename} has {data_size(len(content))}, and this server takes files of at most "
            f"{most:,} MB. {_REMEDY}"
        )
    refuse_records(content, filename, taken=taken)
    if unpacked_size(content, most_unpacked * 10**6) > most_unpacked * 10**6:
        limit, problem = "unpacked_mb", f"becomes larger than {most_unpacked:,} MB when it is read"
    elif number_of_values(content) > limits().upload_values:
        limit, problem = "upload_values", f"holds more than {limits().upload_values:,} values"
    else:
        return
    log_event("refused by a limit", limit=limit)
    raise DomainError(f"{filename} {problem}, and this server takes no such files. {_REMEDY}")


def why_not_saved(saves: Autosaves, project: Project, key: str, text: str, *, is_new: bool) -> str:
    """Why a planning server does not keep a project; "" if it does, and in one's own app.

    key, text: of the project in the saves; is_new: whether no state of it is saved yet
    """
    if not plans_only():
        return ""
    most, size = limits(), len(text.encode())
    if size > 1000 * most.project_kb:
        return (
            f"the project has {data_size(size)}, and this server keeps at most "
            f"{data_size(1000 * most.project_kb)} of one; delete scenarios that are not needed"
        )
    with suppress(OSError):  # said when it is saved
        if has_no_room(saves, project):
            return (
                f"you have saved {data_size(10**6 * most.account_mb)}, as much as this server "
                "keeps for one account with areas; delete projects on the page Home (areas that "
                "none of them has any more go a day later)"
            )
        others = {*saves.keys()} - {key}
        if is_new and len(others) >= most.projects:
            return (
                f"you have {len(others):,} saved projects, as many as this server keeps for one "
                "account; delete one on the page Home"
            )
    return ""


def has_no_room(saves: Autosaves, project: Project) -> bool:
    """Whether a planning server keeps no more areas of an account, and the project brings some.

    Raises `OSError`.
    """
    if not plans_only():
        return False
    brings = any(
        areas.is_read and not saves.has_tree(sha256) for sha256, areas in project.areas.items()
    )
    return brings and saves.size >= 10**6 * limits().account_mb
