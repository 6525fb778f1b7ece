"""What tables and the rows of their query matrices are called; tables as text and CSV."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown
from rpexplore.common.text import csv_rows, joined, refuse_twice, shown_header
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Integers
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.base import Operator
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


# ---- What tables are called, and lists of them as people write them, one a line or in a CSV file.
#
# A table is its attribute names separated by commas, semicolons or ×. A name that holds one of
# these, or a quotation mark, stands in double quotation marks (doubled inside). The total is the
# empty text or the word total, which may stand in brackets: (total) is no attribute named total.


Table = tuple[str, ...]  # attribute names in domain order

TOTAL = "total"

# What the table frames of a plan have besides: a list that was written out can be read again.
_COLUMNS = {"attributes", "weight", "target", "required"}
_PASSED_OVER = {"part", "item", "cells", "margin_95", "met", "shadow_price"}
_PASSED_OVER |= {"standard_error", "largest_standard_error", "smallest_standard_error"}
# Columns of lists that earlier versions wrote.
_PASSED_OVER |= {"aggregation", "order", "mean_variance", "max_variance"}
_TRUTHS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
# Nothing is tried twice (*+): a long text that is no list would stop all else in this process.
_NAME = re.compile(
    r"""\s*+ (?: "(?P<quoted>(?:[^"]|"")*+)"\s*+ (?P<level>@[^",;×]*+)?+ | (?P<plain>[^",;×]*+) )
    (?: (?<=@) "(?P<quoted_level>(?:[^"]|"")*+)"\s*+ )?+ (?P<end>[,;×]|$)""",
    re.VERBOSE,
)
_NEEDS_QUOTES = re.compile(r'[",;×]|^\s|\s$')


def table_from_text(domain: Domain, text: str) -> Table:
    """The attribute names a text lists, in domain order; () for the total.

    Raises `WorkloadError` for a text that is no list, `DomainError` for unknown or repeated names.
    """
    text = text.strip()
    if text in domain:
        return domain.in_order(text)
    if not text:
        raise WorkloadError(
            f"A table must be named by its attributes, got an empty text; write {TOTAL} for the "
            "table without attributes."
        )
    if _is_total(text):
        return ()
    names: list[str] = []
    start, more = 0, True
    while more:
        match, name = _NAME.match(text, start), ""
        if match is not None:
            quoted, plain, level, quoted_level = match.group(
                "quoted", "plain", "level", "quoted_level"
            )
            name = plain.strip() if quoted is None else quoted.replace('""', '"')
            name += (level or "").rstrip() + (quoted_level or "").replace('""', '"')
        if match is None or not name:
            raise WorkloadError(
                f"The table {text!r} must be attribute names separated by commas, such as "
                "age,sex; a name with a comma or a quotation mark in it stands in double quotation "
                "marks, which are doubled within it."
            )
        names.append(name)
        start, more = match.end(), match["end"] != ""
    return domain.in_order(names)


def texts_of_tables(domain: Domain, tables: Iterable[Table]) -> Iterable[str]:
    """The text of each table, such that `table_from_text` undoes it in this domain.

    None is empty, and none holds a line break: each can be a line of a list.
    """
    safe = not any(_is_total(name) or any(mark in name for mark in '",;×') for name in domain.names)
    needs_quotes = not safe or any(_NEEDS_QUOTES.search(name) for name in domain.names)
    for table in tables:
        if table and not needs_quotes:
            yield ",".join(table)
            continue
        candidates = _candidates(domain, table)
        readable = (text for text in candidates if safe or _is_read_as(domain, text, table))
        # A name may be another's in quotation marks; by itself it needs none.
        yield next(readable, title(table))


def split_at_table(domain: Domain, text: str) -> tuple[str, str]:
    """A table, and what is said of it behind the last = that has a table before it.

    Names may hold one, and so may what is said: "age=σ = 20".
    """
    # No table has more of them than all names: what is said may have very many. In NFD, as some
    # programs write texts, ≠ is one with a stroke.
    most = sum(normalize("NFD", name).count("=") for name in domain.names)
    places = [match.start() for match in islice(re.finditer("=", text), most + 1)]
    for place in reversed(places):
        with suppress(RpexploreError):
            table_from_text(domain, text[:place])
            return text[:place], text[place + 1 :]
    table_text, _, said = text.rpartition("=")
    return table_text, said


def _candidates(domain: Domain, table: Table) -> Iterator[str]:
    """Texts that may be read as the table, the plainest first."""
    if not table:
        yield from ("(" * depth + TOTAL + ")" * depth for depth in range(len(domain) + 1))
        return
    yield ",".join(in_quotes(name) if _NEEDS_QUOTES.search(name) else name for name in table)
    # All together are an attribute's name as well; more blanks make it another text.
    names = [in_quotes(name) for name in table]
    yield from ((", " + " " * blanks).join(names) for blanks in range(len(domain) + 1))


def _is_read_as(domain: Domain, text: str, table: Table) -> bool:
    try:
        return table_from_text(domain, text) == table
    except RpexploreError:
        return False


def in_quotes(text: str) -> str:
    """The text in double quotation marks, doubled inside."""
    return '"' + text.replace('"', '""') + '"'


def readable_title(domain: Domain, table: Table) -> str:
    """A table's title, or its text where the title would be read as another table."""
    text = title(table)
    if _is_read_as(domain, text, table):
        return text
    return next(iter(texts_of_tables(domain, [table])))


def tables_from_text(domain: Domain, text: str) -> tuple[Table, ...]:
    """The tables of a list, one a line; empty lines are skipped.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    tables: dict[Table, int] = {}
    # Not splitlines: names may hold what Unicode calls a line separator.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        with refusing(WorkloadError, f"Line {number}"):
            table = table_from_text(domain, line)
        if table in tables:
            raise WorkloadError(
                f"Line {number}: the table {title(table)} is already in line {tables[table]}; "
                "keep one of them."
            )
        tables[table] = number
    if not tables:
        raise WorkloadError('The list has no tables; write one a line, such as "age, sex".')
    return tuple(tables)


def workload_from_csv(domain: Domain, text: str, source: str) -> Workload:
    """The workload of a CSV text with the columns attributes and maybe weight, target and required.

    Targets are texts as `Target.parse` has them; an empty required is what the target says.
    `source` is named in errors; a `WorkloadError` names the line that cannot be used.
    """
    rows = csv_rows(text, source, WorkloadError, delimiter=None)
    _, header = next(rows, (1, []))
    columns = [column.strip().lower() for column in header]
    strangers = set(columns) - _COLUMNS - _PASSED_OVER
    if "attributes" not in columns or strangers:
        raise WorkloadError(
            f"{source} must have a header with the column attributes and, if wanted, weight, "
            f"target and required, got {shown_header(columns, _COLUMNS)}."
        )
    refuse_twice(columns, ("attributes", "weight", "target", "required"), source, WorkloadError)
    tables: list[Table] = []
    weights: list[float] = []
    targets: list[Target | None] = []
    for number, cells in rows:
        with refusing(WorkloadError, f"{source}, line {number}"):
            if len(cells) > len(columns):
                raise WorkloadError(
                    "there are more values than columns; put the attribute names in double "
                    "quotation marks, or separate them by ×."
                )
            row = dict(zip(columns, cells, strict=False))
            tables.append(table_from_text(domain, row.get("attributes", "")))
            weights.append(weight_from_text(row.get("weight") or "1"))
            targets.append(_target_of_row(row.get("target", ""), row.get("required", "")))
    return Workload.of(domain, tables, weights=weights, targets=targets)


def weight_from_text(text: str) -> float:
    """The number of a weight; `WorkloadError` for anything else."""
    try:
        return float(text)
    except ValueError:
        raise WorkloadError(f"The weight must be a number such as 2.5, got {text!r}.") from None


def _target_of_row(text: str, required: str) -> Target | None:
    target = Target.parse(text) if text.strip() else None
    word = required.strip().lower()
    if word not in {"", *_TRUTHS}:
        raise WorkloadError(f"The column required says yes or no, got {shown(required)!r}.")
    if target is None:
        if _TRUTHS.get(word):
            raise WorkloadError("There is no target that could be required; give one.")
        return None
    return replace(target, required=_TRUTHS.get(word, target.required))


def _is_total(text: str) -> bool:
    """Whether it is the word for the total, in any number of brackets."""
    word = text.strip("()")
    brackets = (len(text) - len(word)) // 2
    return word == TOTAL and text == "(" * brackets + word + ")" * brackets


def title(table: Table) -> str:
    """The title of a table on screen: "age × sex", "(total)"."""
    return " × ".join(table) or "(total)"


def list_titles(tables: Sequence[Table], most: int = 5) -> str:
    """The first few tables for a sentence: "age; age × sex; and 3 more"."""
    more = f"; and {len(tables) - most:,} more" if len(tables) > most else ""
    return "; ".join(title(table) for table in tables[:most]) + more


def titles(workload: Workload, tables: np.ndarray) -> list[str]:
    """Titles of the tables at these indices, int64[n].

    "age × sex", "sum of income by sex", "weighted count (w) by sex", "weighted sum of income by
    sex".
    """
    attribute_titles = [
        attribute_title(workload.domain.attributes[index], basis)
        for index, basis in workload.attribute_bases
    ]
    of_amounts = {
        place for place, (_, basis) in enumerate(workload.attribute_bases) if basis.of_amounts
    }
    found = []
    for row in workload.attribute_basis_index[tables].tolist():
        names = [attribute_titles[index] for index in row if index >= 0 and index not in of_amounts]
        if amount := [index for index in row if index in of_amounts]:
            # Of amounts and weights, the amounts are what is summed.
            summed = min(amount, key=lambda place: workload.attribute_bases[place][1].of_weights)
            what = ("weighted " if len(amount) > 1 else "") + attribute_titles[summed]
            found.append(f"{what} by {joined(names)}" if names else what)
        else:
            found.append(title(tuple(names)))
    return found


@lru_cache(maxsize=2)  # most of the work for a long list, and the same at every budget
def all_titles(workload: Workload) -> list[str]:
    """Titles of all tables of a workload, which must not be changed."""
    return titles(workload, np.arange(len(workload)))


@lru_cache(maxsize=2)
def titles_column(workload: Workload) -> "pd.Series":
    """`all_titles` as a column of a frame."""
    import pandas as pd  # half of the time that importing this package would take

    return pd.Series(all_titles(workload), dtype="str")


def title_of(workload: Workload, table: int) -> str:
    """The title of the table at this index."""
    return titles(workload, np.array([table]))[0]


def attribute_title(attribute: Attribute, basis: Basis) -> str:
    """ "sex", "age (cumulative)", "region (hierarchy)", "sum of income in EUR"."""
    suffix = basis.suffix(attribute)
    if isinstance(attribute.values, Amounts) and attribute.values.are_weights:
        return f"weighted count ({attribute.name})"
    if basis.of_amounts:
        unit = getattr(attribute.values, "unit", "")
        return f"sum of {attribute.name} in {unit}" if unit else f"sum of {attribute.name}"
    return f"{attribute.name} ({suffix})" if suffix else attribute.name


# ---- QueryMatrix: the matrix W of a query basis for one attribute, and its rows' names (RP+ §7).


@dataclass(frozen=True, eq=False)
class QueryMatrix:
    """The queries that a basis has for an attribute; `query_matrix` makes it.

    operator: W [n_rows, n_values], shared by attributes that differ in labels only
    """

    basis: Basis
    attribute: Attribute
    operator: Operator

    @property
    def n_values(self) -> int:
        return self.operator.n_values

    @property
    def n_rows(self) -> int:
        return self.operator.n_rows

    def of(self, x: np.ndarray, axis: int = -1) -> np.ndarray:
        """W applied along an axis, float64[…, n_rows, …]; for the identity maybe `x` itself.

        Raises ValueError if the axis has another length.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape[axis] != self.n_values:
            raise ValueError(f"axis {axis} must have {self.n_values} values, got {x.shape[axis]}")
        return self.operator.of(x, axis)

    @cached_property
    def label(self) -> Callable[[int], str]:
        """From a row to what its query is called: "30", "≤ 24", "18 to 24", "all"; all differ."""
        return self.basis.row_label(self.attribute)

    def labels(self) -> list[str]:
        """Labels of the queries, in order, [n_rows]."""
        return [self.label(row) for row in range(self.n_rows)]

    @property
    def mean_gram(self) -> np.ndarray:
        """G of the mean square of a query, xᵀGx for numbers x of the values: float64[n, n]."""
        return self.operator.gram / self.n_rows

    @cached_property
    def whole(self) -> int | None:
        """The first row that counts all values, each once; None if there is none."""
        if self.n_values == 1 or self.basis.of_amounts:
            return None
        if self.basis.starts_with_total:
            return 0
        # Σ w = Σ w² = n only if all entries are 1 (Cauchy–Schwarz).
        sums = self.operator.of(np.ones(self.n_values), 0)
        squares = self.operator.row_quadratics(np.eye(self.n_values))
        rows = np.flatnonzero((sums == self.n_values) & (squares == self.n_values))
        return int(rows[0]) if rows.size else None


def query_matrix(basis: Basis, attribute: Attribute) -> QueryMatrix:
    """The queries of a basis for an attribute; `WorkloadError` if the attribute cannot have it."""
    basis.check(attribute)
    groups = attribute.groups if basis.uses_groups else ()
    n_ordered = attribute.n_ordered if basis.depends_on_order else attribute.size
    return QueryMatrix(basis, attribute, _operator(basis, attribute.size, n_ordered, groups))


@lru_cache(maxsize=32)
def _operator(
    basis: Basis, size: int, n_ordered: int, groups: tuple[tuple[str, ...], ...]
) -> Operator:
    """Attributes that differ in names only share what is computed."""
    missing = tuple((f".{index}", f"missing {index}") for index in range(size - n_ordered))
    return basis.operator(Attribute("any", Integers(1, n_ordered, missing=missing), groups=groups))
