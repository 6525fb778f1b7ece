"""Rows of counts by attributes, in files that people have: which columns they are, and which cells.

Expected counts, public tables and known totals are read by it: some attributes as columns, in any
order, and a column of counts; a value is written as it stands in the data or as its label.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few
from rpexplore.common.text import plural, shown_header
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import RELEASED
from rpexplore.domain.values import index_by_value
from rpexplore.errors import RpexploreError

TOTALS = (
    "total", "count", "population", "persons", "people", "residents", "anzahl", "einwohner",
    "bevölkerung", "bevoelkerung", "personen", "insgesamt", "effectif", "nombre", "habitants",
    "personnes", "población", "poblacion", "habitantes", "personas",
)  # fmt: skip
"""A column of counts in the languages of offices, the surest first; in small letters."""

# What else a release's tables have for each cell, and what an attribute of that name is called.
_FIGURES = {column.name for column in RELEASED}
_ATTRIBUTE, _LABEL = " (attribute)", " label"


@dataclass(frozen=True)
class CountColumns:
    """The columns of a file of counts.

    header   as it was read
    columns  index of an attribute -> its column, ascending
    count    the column of the counts
    error    what is raised for rows that cannot be used
    """

    domain: Domain
    header: Sequence[str]
    columns: dict[int, int]
    count: int
    error: type[RpexploreError]

    @classmethod
    def of(
        cls,
        domain: Domain,
        header: Sequence[str],
        counts: Sequence[str],
        error: type[RpexploreError],
        *,
        owner: str = "codebook",
        remedy: str = "rename it, or take it out after summing over it",
    ) -> "CountColumns":
        """The columns by their names; raises `error` for those that are nothing.

        Other columns of a release's tables are passed over: labels, errors, intervals, notes.

        counts: what the column of counts may be called, the surest first; an attribute may be
            called so too. owner: whose attributes they are, remedy: of a column that is none, for
            errors
        """
        titles = [name.strip().lower() for name in header]
        # A name that no attribute has is surer; of two columns of one name the last has the counts.
        names = sorted(counts, key=lambda name: name in domain)
        called = next((name for name in names if name in titles), None)
        if called is None:
            raise error(
                f"There must be a column called {counts[0]}, got "
                f"{shown_header(header, (*counts, *domain.names))}; give it, and a column for each "
                "attribute that counts are by."
            )
        if titles.count(called) > 1 and called not in domain:
            raise error(f"There are two columns called {called}; keep one of them.")
        count = len(titles) - 1 - titles[::-1].index(called)
        columns: dict[int, int] = {}
        for column, title in enumerate(header):
            if column == count or _is_passed_over(title, header, domain):
                continue
            candidates = (title, title.strip(), title.removesuffix(_ATTRIBUTE))
            name = next((name for name in candidates if name in domain), None)
            if name is None:
                raise error(
                    f"The column {shown(title)!r} is no attribute of the {owner}; {remedy}."
                )
            index = domain.position(name)
            if index in columns:
                raise error(f"There are two columns {name!r}; keep one.")
            columns[index] = column
        return cls(domain, header, dict(sorted(columns.items())), count, error)

    def cells(
        self, rows: Iterator[tuple[int, list[str]]], *, may_be_empty: bool = False
    ) -> Iterator[tuple[int, dict[int, int], str]]:
        """(line, {index of an attribute: that of its value}, text of the count) of each row.

        Empty rows are passed over. may_be_empty: whether an attribute may be left empty, in a row
        of all its values; it is then not in the cell. Raises `error` with the line.
        """
        for number, row in rows:
            if not any(text.strip() for text in row):
                continue
            with refusing(self.error, f"Line {number}"):
                if len(row) != len(self.header):
                    raise self.error(
                        f"There are {plural(len(row), 'value')} for "
                        f"{plural(len(self.header), 'column')}; put texts that hold a comma in "
                        "quotes."
                    )
                cell = {
                    index: self._value(self.domain.attributes[index], row[column])
                    for index, column in self.columns.items()
                    if row[column].strip() or not may_be_empty
                }
            yield number, cell, row[self.count]

    def _value(self, attribute: Attribute, text: str) -> int:
        index_of = index_by_value(attribute)
        text = normalize("NFC", text)
        index = index_of.get(text, index_of.get(text.strip()))
        if index is None:
            raise self.error(
                f"{attribute.name!r} has no value {shown(text)!r} in the codebook; it has "
                f"{shown_few(attribute.stored_values())}."
            )
        return index


def _is_passed_over(title: str, header: Sequence[str], domain: Domain) -> bool:
    """Whether a release's tables have this column beside their attributes and counts."""
    if f"{title}{_ATTRIBUTE}" in header:
        return True
    labels = title.endswith(_LABEL) and title.removesuffix(_LABEL) in header
    return (labels or title in _FIGURES) and title not in domain


def describe_cell(domain: Domain, attributes: Sequence[int], cell: Sequence[Any]) -> str:
    """A combination of values in words: "sex = F, age = 0-17"; "all records" of none."""
    parts = [
        f"{domain.names[index]} = {domain.attributes[index].values.label(int(place))}"
        for index, place in zip(attributes, cell, strict=True)
    ]
    return ", ".join(parts) or "all records"
