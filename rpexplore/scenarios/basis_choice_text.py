"""Basis choices as lines of text: "age=prefix", "age=windows:5", "age=custom:mine.csv@age,sex"."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rpexplore.common.formatting import joined
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.basis_choices import BasisChoice, changed_basis_choices, with_basis_choices
from rpexplore.workload.bases import BASES, Basis, CustomBasis
from rpexplore.workload.table_text import table_from_text
from rpexplore.workload.workload import Workload

ReadCustom = Callable[[Path, Attribute], CustomBasis]


def text_forms() -> str:
    """The texts that stand for a basis, for a sentence."""
    return joined([form for basis in BASES.values() for form in basis.text_forms], " or ")


def basis_choice_from_text(domain: Domain, text: str, read_custom: ReadCustom) -> BasisChoice:
    """The choice of a line: an attribute, =, its basis, and maybe @ and a table.

    read_custom: reads a file with a custom basis of an attribute

    Raises `RpexploreError` for anything else, or a basis that the attribute cannot have.
    """
    signs = [index for index, character in enumerate(text) if character == "="]
    for sign in reversed(signs):  # names of attributes may hold one, too
        if text[:sign] in domain:
            return _choice(domain, domain[text[:sign]], text[sign + 1 :], text, read_custom)
    name = text.partition("=")[0]
    if len(signs) == 1 and name.strip():
        domain.position(name)  # names what it has, or what may be meant
    raise WorkloadError(
        f"{text!r} must be an attribute, =, and its basis ({text_forms()}), such as age=prefix."
    )


def text_of_basis_choice(
    basis_choice: BasisChoice, tables: Sequence[str], file: str = ""
) -> list[str]:
    """The choice as lines, one for each table; `basis_choice_from_text` undoes it.

    tables: the text of each of its tables. file: the name of the file with its custom basis.
    """
    basis = basis_choice.basis
    parameter = file if basis.parameter == "file" else basis.parameter_text()
    line = f"{basis_choice.attribute}={basis.kind}"
    if parameter:
        line += f":{parameter}"
    return [f"{line}@{table}" for table in tables] or [line]


def with_listed_basis_choices(workload: Workload, basis_choices: Sequence[BasisChoice]) -> Workload:
    """The workload with these bases; a later choice takes the place of an earlier one.

    Raises `WorkloadError` for one that has nothing to change, since no table is there for it.
    """
    merged: tuple[BasisChoice, ...] = ()
    for choice in basis_choices:
        index = workload.domain.position(choice.attribute)
        if not choice.tables and index not in workload.used:
            raise WorkloadError(
                f"No table has the attribute {choice.attribute!r}; leave out its basis, or add a "
                "table with it."
            )
        for table in choice.tables:
            workload.position(table)
        merged = changed_basis_choices(merged, choice.attribute, choice.basis, choice.tables)
    return with_basis_choices(workload, merged)


def _choice(
    domain: Domain, attribute: Attribute, basis_text: str, text: str, read_custom: ReadCustom
) -> BasisChoice:
    for candidate, table_text in _splits_at_table(basis_text):
        basis = _basis(candidate, attribute, read_custom, is_last=table_text is None)
        if basis is None:
            continue
        basis.check(attribute)
        tables = () if table_text is None else (table_from_text(domain, table_text),)
        return BasisChoice(attribute.name, basis, tables)
    raise WorkloadError(f"{text!r} must give the basis of {attribute.name!r}: {text_forms()}.")


def _splits_at_table(text: str) -> Iterator[tuple[str, str | None]]:
    """Where a basis may end and a table begin; names of files and attributes may hold an @."""
    for index, character in enumerate(text):
        if character == "@":
            yield text[:index].strip(), text[index + 1 :]
    yield text.strip(), None


def _basis(
    text: str, attribute: Attribute, read_custom: ReadCustom, *, is_last: bool
) -> Basis | None:
    """The basis of a text; None where it is none, or names a file that is not there."""
    kind, _, parameter = text.partition(":")
    if kind not in BASES:
        return None
    if BASES[kind].parameter != "file":
        return BASES[kind].from_parameter(parameter)
    if not parameter or not (is_last or Path(parameter).is_file()):
        return None
    return read_custom(Path(parameter), attribute)
