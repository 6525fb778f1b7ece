"""Askings as a line of text: "age=prefix", "age=windows:5", "age=custom:questions.csv@age,sex"."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.basis_choices import BasisChoice, changed_basis_choices, with_basis_choices
from rpexplore.workload.bases import Basis, Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.workload.custom_basis import CustomBasis
from rpexplore.workload.table_text import table_from_text, title
from rpexplore.workload.workload import Workload

WAYS = "identity, prefix, ranges, windows:WIDTH, hierarchy, hierarchy:WIDTH,WIDTH or custom:FILE"

_SIMPLE = {each.kind: each for each in (Identity(), Prefix(), Ranges(), Hierarchy())}
_WITH_WIDTHS = re.compile(r"(windows|hierarchy):([0-9 ,]+)")

ReadCustom = Callable[[Path, Attribute], CustomBasis]


def basis_choice_from_text(domain: Domain, text: str, read_custom: ReadCustom) -> BasisChoice:
    """The asking of a line: an attribute, =, how it is asked, and maybe @ and a table.

    read_custom: reads a file of own questions about an attribute

    Raises `RpexploreError` for anything else, or a way in which the attribute cannot be asked.
    """
    parts = text.split("=")
    splits = (("=".join(parts[:i]), "=".join(parts[i:])) for i in range(len(parts) - 1, 0, -1))
    for name, way in splits:
        if name in domain:
            return _basis_choices(domain, domain[name], way, text, read_custom)
    if len(parts) == 2 and parts[0].strip():
        domain.position(parts[0])  # names what it has, or what may be meant
    raise WorkloadError(
        f"{text!r} must be an attribute, =, and how it is asked ({WAYS}), such as age=prefix."
    )


def text_of_basis_choice(
    basis_choice: BasisChoice, tables: Sequence[str], file: str = ""
) -> list[str]:
    """The asking as lines, one for each table; `basis_choice_from_text` undoes it.

    tables: the text of each of its tables. file: the name of the file with its own questions.
    """
    start = f"{basis_choice.attribute}={_text_of_basis(basis_choice.basis, file)}"
    return [f"{start}@{table}" for table in tables] or [start]


def with_listed_basis_choices(workload: Workload, basis_choices: Sequence[BasisChoice]) -> Workload:
    """The workload asked in these ways; a later one takes the place of an earlier one.

    Raises `WorkloadError` for one that has nothing to change, since no table is there for it.
    """
    merged: tuple[BasisChoice, ...] = ()
    for each in basis_choices:
        place = workload.domain.position(each.attribute)
        if not each.tables and place not in workload.used:
            raise WorkloadError(
                f"No table that is asked for has the attribute {each.attribute!r}; leave out how "
                "it is asked, or ask for a table with it."
            )
        for table in each.tables:
            workload.position(table)
        merged = changed_basis_choices(merged, each.attribute, each.basis, each.tables)
    return with_basis_choices(workload, merged)


def _basis_choices(
    domain: Domain, attribute: Attribute, way: str, text: str, read_custom: ReadCustom
) -> BasisChoice:
    for given, table in _with_table(way):
        basis = _basis(given, attribute, read_custom, certain=table is None)
        if basis is not None:
            basis.check(attribute)
            tables = () if table is None else (table_from_text(domain, table),)
            if tables and attribute.name not in tables[0]:
                raise WorkloadError(
                    f"The table {title(tables[0])} does not have the attribute "
                    f"{attribute.name!r} that {text!r} asks in it; name it for a table that does."
                )
            return BasisChoice(attribute.name, basis, tables)
    raise WorkloadError(f"{text!r} must say how {attribute.name!r} is asked: {WAYS}.")


def _with_table(way: str) -> Iterator[tuple[str, str | None]]:
    """Where a way may end and a table begin; names of files and attributes may hold an @."""
    at = way.find("@")
    while at >= 0:
        yield way[:at].strip(), way[at + 1 :]
        at = way.find("@", at + 1)
    yield way.strip(), None


def _basis(
    text: str, attribute: Attribute, read_custom: ReadCustom, *, certain: bool
) -> Basis | None:
    """The basis of a text; None where it is none, or names a file that is not there."""
    if text in _SIMPLE:
        return _SIMPLE[text]
    match = _WITH_WIDTHS.fullmatch(text)
    if match is not None:
        widths = [int(part) for part in match[2].split(",") if part.strip()]
        if match[1] == "hierarchy" and widths:
            return Hierarchy(tuple(widths))
        return Windows(widths[0]) if len(widths) == 1 else None
    kind, _, file = text.partition(":")
    if kind != CustomBasis.kind or not file:
        return None
    return read_custom(Path(file), attribute) if certain or Path(file).is_file() else None


def _text_of_basis(basis: Basis, file: str) -> str:
    match basis:
        case Windows():
            return f"windows:{basis.width}"
        case Hierarchy() if basis.widths:
            return f"hierarchy:{','.join(map(str, basis.widths))}"
        case CustomBasis():
            return f"custom:{file}"
    return basis.kind
