"""What to look at before a codebook is used: what its file leaves out."""

from collections.abc import Collection, Mapping
from pathlib import Path

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.numbers import shown
from rpexplore.common.spreadsheets import spreadsheet_kind
from rpexplore.domain.codebook_formats import dictionary_kind, draft_of_file
from rpexplore.domain.domain import Domain
from rpexplore.domain.record_layout import RecordLayout, layout_of_ddi
from rpexplore.domain.stated_schema import schema_in_json
from rpexplore.errors import DomainError


def describe_left_out(without_values: Mapping[str, str], *, is_draft: bool = False) -> str:
    """Which attributes of a codebook are left out, for it lists no values: {name: its type}.

    is_draft: whether the file is no codebook of ours, but a dictionary with labels
    """
    names = [f"{shown(name)} (type {shown(kind)})" for name, kind in without_values.items()]
    more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
    remedy = (
        "Give constraints.enum, bins, or a minimum and maximum of whole numbers or days there, or "
        "add them in the grid."
    )
    if is_draft:
        remedy = "Give two of their values or more a label there, or add them to the codebook."
    return (
        f"Left out, because the file lists no values for them: {', '.join(names[:4])}{more}. "
        f"{remedy}"
    )


def remarks_on_codebook(
    path: Path,
    resource: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    filled: Collection[str] = (),
) -> list[str]:
    """What to look at before the codebook in this file is used.

    resource, columns, encoding: as of `Domain.load`
    filled: attributes that have values from elsewhere
    """

    def left_out(listed: Mapping[str, str]) -> dict[str, str]:
        return {name: kind for name, kind in listed.items() if name not in filled}

    if path.suffix.lower() == ".json":
        text = utf8_text(file_bytes(path, str(path), DomainError), str(path), DomainError)
        stated = schema_in_json(text, path.name, resource)
        remarks = [*stated.remarks]
        is_left_out = stated.describes_tables and stated.has_fields
        if is_left_out and (names := left_out(stated.without_values)):
            remarks.append(describe_left_out(names))
        return remarks
    if not dictionary_kind(b"", path.name):
        return []
    draft = draft_of_file(path, f"The codebook {str(path)!r}", columns, encoding=encoding)
    remarks = [*draft.remarks]
    if names := left_out(draft.without_values):
        remarks.append(describe_left_out(names, is_draft=True))
    return remarks


def layout_of_codebook(path: Path) -> tuple[RecordLayout | None, str]:
    """Where the columns of records are, where a DDI codebook says so, and a sentence about it.

    The sentence names those that are no attributes, or says why records cannot be read; "" for a
    codebook without positions.
    """
    name = f"The codebook {str(path)!r}"
    if path.suffix.lower() != ".xml":
        return None, ""
    try:
        layout = layout_of_ddi(file_bytes(path, name, DomainError), name)
    except DomainError as error:
        return None, f"Records of fixed width cannot be read by it: {error}"
    if layout is None:
        return None, ""
    listed = {attribute.name for attribute in Domain.load(path)}
    others = [
        f"{shown(column)} {place.text}"
        for column, place in layout.by_name.items()
        if column not in listed
    ]
    more = f" Columns that are no attributes: {', '.join(others)}." if others else ""
    return layout, (
        f"Records of fixed width have {layout.width:,} characters a line: release them with "
        f"--positions {path}.{more}"
    )


def remark_on_weights(path: Path) -> str:
    """By what the records of this codebook are weighted, says its file; "" if it says nothing."""
    if not dictionary_kind(b"", path.name) or spreadsheet_kind(path.name):
        return ""
    return draft_of_file(path, f"The codebook {str(path)!r}").weighted
