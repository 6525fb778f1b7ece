"""Files whose dictionary a codebook is drafted from, by what they hold or their endings."""

from pathlib import Path

from rpexplore.common.file_kinds import HEAD
from rpexplore.common.files import file_bytes
from rpexplore.common.formatting import data_size
from rpexplore.common.statistics_files import PACKAGES, statistics_format
from rpexplore.domain.codebooks.ddi import variables_of_ddi
from rpexplore.domain.codebooks.statistics_file import variables_of_statistics_file
from rpexplore.domain.codebooks.variables import Draft, draft_of
from rpexplore.errors import DomainError

MOST_BYTES = 50_000_000
"""Of a codebook, in whatever format; files of records may be larger."""


def dictionary_kind(head: bytes, filename: str) -> str:
    """The kind of file in words, by its first bytes or its ending; "" for another kind."""
    if form := statistics_format(head, filename):
        return f"{PACKAGES[form]} file"
    is_marked_up = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"<?xml", b"<codeBook"))
    return "DDI codebook" if is_marked_up or filename.lower().endswith(".xml") else ""


def draft_of_file(content: bytes | Path, filename: str) -> Draft:
    """The codebook in a file of a kind that has one.

    Args:
        content: What it holds, or where it is.
        filename: Whose ending counts, and what errors call it.

    Raises:
        DomainError: For one that cannot be read. Of a file of records none is read.
    """
    head = _head(content, filename)
    if form := statistics_format(head, filename):
        return draft_of(variables_of_statistics_file(content, form, filename))
    refuse_large(len(content) if isinstance(content, bytes) else content.stat().st_size, filename)
    if isinstance(content, Path):
        content = file_bytes(content, filename, DomainError)
    return draft_of(variables_of_ddi(content, filename))


def refuse_large(size: int, filename: str) -> None:
    """Raise `DomainError` for more bytes than any codebook has."""
    if size > MOST_BYTES:
        raise DomainError(
            f"{filename} has {data_size(size)}, more than any codebook ({data_size(MOST_BYTES)}); "
            "leave out what is no attribute."
        )


def _head(content: bytes | Path, filename: str) -> bytes:
    if isinstance(content, bytes):
        return content[:HEAD]
    try:
        with content.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise DomainError(
            f"{filename} cannot be read ({error.strerror}); check the path."
        ) from None
