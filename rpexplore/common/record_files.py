"""Which files hold records, by their first bytes and their endings; and how they are refused."""

import re

from rpexplore.common.file_kinds import HEAD
from rpexplore.common.statistics_files import PACKAGES, statistics_format
from rpexplore.errors import DomainError

_OF_PARQUET = b"PAR1"
_BEGINNINGS = {
    _OF_PARQUET: "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x1f\x8b": "compressed by gzip",
}
# Stata before its version 13: the version, the order of bytes, and 1.
_OLD_STATA = re.compile(rb"[\x66-\x73][\x01\x02]\x01\x00", re.DOTALL)
_PORTABLE_SPSS = b"SPSS PORT FILE"  # behind tables of characters


def refuse_records(content: bytes, filename: str, *, may_be_parquet: bool = False) -> None:
    """Raise `DomainError` for a file of a kind that holds records, by its content or its ending.

    may_be_parquet: where a public list may come as a Parquet file
    """
    form = statistics_format(content[:HEAD], filename)
    if form is None and (_OLD_STATA.match(content) or _PORTABLE_SPSS in content[:HEAD]):
        form = "dta" if _OLD_STATA.match(content) else "por"
    if form is not None:
        raise DomainError(
            f"{filename} is a file of {PACKAGES[form]}, which holds records, and this server takes "
            "none. Make the codebook where the file is (rpexplore schema FILE --out codebook.json) "
            "and upload codebook.json."
        )
    for beginning, kind in _BEGINNINGS.items():
        if content.startswith(beginning) and not (may_be_parquet and beginning == _OF_PARQUET):
            raise refusal(filename, kind)


def refusal(filename: str, kind: str) -> DomainError:
    """The error for a file of this kind, which holds records or may hold them."""
    return DomainError(
        f"{filename} is {kind}, and this server takes no records. Make the codebook where the "
        "records are, on the Codebook page of your own app (rpexplore app), download codebook.json "
        "there, and upload that."
    )
