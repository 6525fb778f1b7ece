"""Tables that are codebooks under other names of their columns: what each column is, guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from rpexplore.common.files import as_utf8, utf8_text
from rpexplore.common.numbers import shown
from rpexplore.common.spreadsheets import numbered, sheets_of, spreadsheet_kind
from rpexplore.common.text import csv_rows
from rpexplore.domain.codebook_rows import attributes_from_csv, below_title
from rpexplore.domain.domain import Domain
from rpexplore.domain.table_codebooks import codebook_of_sheets
from rpexplore.errors import DomainError

ROLES = ("attribute", "value", "label", "group")
"""What a column of a codebook with one row a value can be; the first two are needed."""
ROLES_OF_VARIABLES = ("name", "values", "type", "label", "missing")
"""The same of one row an attribute."""
_SHOWN = 3  # rows
# In the languages of offices, the surest first; compared in small letters.
_NAMES = {
    "attribute": (
        "attribute", "variable", "variable name", "variablenname", "varname", "merkmal", "attribut",
        "nom de variable", "nombre de variable", "var", "field", "feld", "champ", "campo", "item",
        "column", "name", "nom", "nombre",
    ),
    "value": (
        "value", "code", "category code", "wert", "ausprägung", "auspraegung", "schlüssel",
        "schluessel", "modalité", "valeur", "código", "codigo", "valor", "kode", "key", "category",
    ),
    "label": (
        "label", "value label", "bedeutung", "bezeichnung", "beschreibung", "libellé", "libelle",
        "etiqueta", "description", "descripción", "descripcion", "meaning", "title", "titel",
        "text",
    ),
    "group": ("group", "gruppe", "groupe", "grupo"),
    "values": (
        "values", "werte", "wertebereich", "ausprägungen", "codes", "modalités",
        "valeurs", "valores", "códigos", "range", "categories", "kategorien",
    ),
    "type": ("type", "typ", "tipo", "kind", "art"),
    "missing": ("missing", "missings", "fehlend", "fehlende werte", "manquant", "perdidos"),
}  # fmt: skip


@dataclass(frozen=True)
class ForeignTable:
    """A table that may be a codebook, if somebody says what its columns are.

    filename  by which errors call it
    header    the names of its columns; of a spreadsheet those of the first sheet that has some
    rows      the first rows below
    content   of the whole file
    """

    filename: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, content: bytes, filename: str) -> "ForeignTable":
        """The table in a file, of which the first rows are read.

        Raises `DomainError` for a file that is neither CSV nor a spreadsheet, or has one column.
        """
        if spreadsheet_kind(filename):
            sheets = sheets_of(content, filename, DomainError).values()
            tables = (numbered(rows) for rows in sheets)
        else:
            content = as_utf8(content)
            text = utf8_text(content, filename, DomainError)
            tables = iter([csv_rows(text, filename, DomainError, delimiter=None)])
        for rows in tables:
            first = [row for _, row in islice(below_title(rows, _has_names), 1 + _SHOWN)]
            if first and _has_names(first[0]):
                names = tuple(name.strip() for name in first[0])
                return cls(filename, names, tuple(map(tuple, first[1:])), content)
        raise DomainError(
            f"{shown(filename)} has no table with two columns or more that have names; give its "
            "columns names, such as attribute and value."
        )

    @property
    def columns(self) -> list[str]:
        """The names that tell a column from all others, in order."""
        return [name for name in self.header if name and self.header.count(name) == 1]

    @property
    def guess(self) -> dict[str, str]:
        """What each column of one row a value seems to be: role -> column, by their names.

        The first two columns that are nothing else are the attribute and the value.
        """
        return self._guessed(ROLES, {role: _NAMES[role] for role in ROLES})

    @property
    def guess_of_variables(self) -> dict[str, str]:
        """The same of a table with one row an attribute."""
        names = {role: _NAMES.get(role, ()) for role in ROLES_OF_VARIABLES}
        return self._guessed(ROLES_OF_VARIABLES, names | {"name": _NAMES["attribute"]})

    @property
    def seems_of_variables(self) -> bool:
        """Whether it seems to have one row an attribute: a column says of its values, by its name,
        and none of one value."""
        heads = {name.casefold() for name in self.columns}
        return bool(heads.intersection(_NAMES["values"])) and not heads & {*_NAMES["value"]}

    def _guessed(
        self, roles: Sequence[str], known_names: Mapping[str, Sequence[str]]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        names = {name.casefold(): name for name in reversed(self.columns)}
        for role in roles:
            known = (names[name] for name in known_names[role] if name in names)
            column = next((one for one in known if one not in found.values()), None)
            if column is not None:
                found[role] = column
        left = [name for name in self.columns if name not in found.values()]
        for role in roles[:2]:
            if role not in found and left:
                found[role] = left.pop(0)
        return found

    def codebook(self, columns: Mapping[str, str]) -> Domain:
        """The attributes, by what each column is; raises `DomainError` if it cannot be so.

        columns: as of `Domain.load`
        """
        needed = ROLES_OF_VARIABLES if "name" in columns or "values" in columns else ROLES
        if missing := [role for role in needed[:2] if role not in columns]:
            listed = ", ".join(repr(shown(name)) for name in self.columns)
            raise DomainError(
                f"A codebook needs a column with the {missing[0]}; say which of {listed} it is."
            )
        if spreadsheet_kind(self.filename):
            return codebook_of_sheets(self.content, self.filename, columns).domain
        text = utf8_text(self.content, self.filename, DomainError)
        return Domain(tuple(attributes_from_csv(text, self.filename, columns)))


def _has_names(row: Sequence[str]) -> bool:
    """Whether a row may name columns: two or more."""
    return len({cell.strip() for cell in row} - {""}) > 1
