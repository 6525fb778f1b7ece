"""Stated queries: a list of queries with the text of each as it was typed.

A list as text has one query a line: its name and a colon, its condition, and behind ± or @ its
target. The name and the target may be left out:

    adults: age >= 18 ± 50
    "born < 1950": born < 1950 @ 5 % of 1000
    region = "north" & sex = "female"

A name that holds one of the signs of conditions, or a quotation mark, stands in double quotation
marks (doubled inside). A query without a name is called by its condition.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.common.json_fields import refusing
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.condition_tokens import MAX_LENGTH
from rpexplore.queries.condition_writer import condition_of_cells
from rpexplore.queries.conditions import TOTAL, cells_of_condition
from rpexplore.queries.query_list import QueryList, check_list_size, checked_n_cells
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

_MAX_TARGET_LENGTH = 200
# A line without blanks around it.
_NAMED = re.compile(
    r"""
      " (?P<quoted> (?:[^"]|"")* ) " \s* :
    | (?P<plain> [^\s'"`“„‘:<>=≤≥≠!~¬|&±@] [^"`:<>=≤≥≠!~¬|&±@]* ) :
    """,
    re.VERBOSE,
)
# Texts in quotation marks and names in backquotes may hold an @ or ±.
_TARGET = re.compile(
    r"""
      "[^"]*" | '[^']*' | `[^`]*` | [“„][^“”„]*[“”] | ‘[^‘’]*’
    | (?P<sign> ± | \+\s*(?:/\s*)?[-−] | @ )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, eq=False, repr=False)
class StatedQueries:
    """A list of queries, the condition of each, and its target as it was typed.

    conditions  None for a query that was given by coefficients; `condition` finds one for it
    targets     their standard errors are the targets of the queries

    Raises `WorkloadError` if there is not one condition and one fitting target for each query.
    """

    queries: QueryList
    conditions: tuple[str | None, ...]
    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        for noun, values in (("conditions", self.conditions), ("targets", self.targets)):
            if len(values) != len(self.queries):
                raise WorkloadError(
                    f"There must be one of the {noun} for each of {len(self.queries):,} queries, "
                    f"got {len(values):,}."
                )
        errors = [target.standard_error for target in self.targets]
        if errors != self.queries.targets.tolist():
            raise WorkloadError(
                "The targets must be those of the queries; make the list of queries with them."
            )

    @classmethod
    def of(cls, queries: QueryList) -> "StatedQueries":
        """Queries that were not typed; their targets are standard errors."""
        targets = tuple(Target(error) for error in queries.targets.tolist())
        return cls(queries, (None,) * len(queries), targets)

    def __eq__(self, other: object) -> bool:
        """Whether they state the same queries, by the same texts and in the same order."""
        if not isinstance(other, StatedQueries):
            return NotImplemented
        return self._key == other._key and np.array_equal(
            self.queries.coefficients, other.queries.coefficients
        )

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        """All there is but the coefficients."""
        return self.queries.names, self.conditions, self.targets, self.queries.domain

    def __len__(self) -> int:
        return len(self.queries)

    def condition(self, query: int) -> str | None:
        """The condition of a query as it was typed, or one that counts the same cells.

        None where there is no such, or none of usual length.
        """
        condition, row = self.conditions[query], self.queries.coefficients[query]
        if condition is not None or not np.isin(row, (0.0, 1.0)).all():
            return condition
        return condition_of_cells(self.queries.domain, row == 1)


class StatedLines:
    """Collects queries line by line; what it refuses names the line.

    Where a line is, such as "Line 3", comes first; the target is a text, "" for the default.
    """

    def __init__(self, domain: Domain, default: Target | None) -> None:
        self._domain, self._default = domain, default
        self._n_cells = checked_n_cells(domain)
        self._rows: list[np.ndarray] = []
        self._conditions: list[str | None] = []
        self._targets: list[Target] = []
        self._lines: dict[str, str] = {}  # where each name was

    def __len__(self) -> int:
        return len(self._rows)

    def add_condition(self, where: str, name: str, condition: str, target: str) -> None:
        """A query by its condition, called by it if it has no name."""
        condition = condition.strip()
        with refusing(WorkloadError, where):
            row = cells_of_condition(self._domain, condition)
            if not row.any():
                raise WorkloadError(
                    f"The condition {shown(condition)!r} holds for no cell, so nothing would be "
                    "counted; mend it, or remove the line."
                )
        name = name if name.strip() else condition or TOTAL
        self._add(where, name, row.astype(np.float64), target, condition)

    def add_coefficients(
        self, where: str, name: str, row: Sequence[float] | np.ndarray, target: str
    ) -> None:
        """A query by its coefficient for each cell."""
        self._add(where, name, np.array(row, dtype=np.float64), target, None)

    def _add(
        self, where: str, name: str, row: np.ndarray, target: str, condition: str | None
    ) -> None:
        with refusing(WorkloadError, where):
            check_list_size(len(self._rows) + 1, self._n_cells)
            if name in self._lines:
                raise WorkloadError(
                    f"The name {shown(name)!r} was given before ({self._lines[name]}); give each "
                    "query its own name."
                )
            wanted = self._target(target)
            QueryList(self._domain, row[None], (name,), np.array([wanted.standard_error]))
        self._rows.append(row)
        self._conditions.append(condition)
        self._targets.append(wanted)
        self._lines[name] = where[:1].lower() + where[1:]

    def _target(self, text: str) -> Target:
        if not text.strip():
            if self._default is None:
                raise WorkloadError(
                    f"The query needs a target; write it like {NOTATIONS}, or give a target for "
                    "all queries that have none of their own."
                )
            return self._default
        if len(text) > _MAX_TARGET_LENGTH:
            raise WorkloadError(f"The target must be written like {NOTATIONS}, got a long text.")
        target = parse_target(text)
        if target.required:
            raise WorkloadError(
                "The target of a query cannot be required, since all queries of a list are met in "
                f"proportion to their targets; write {target.text}."
            )
        return target

    def stated(self) -> StatedQueries:
        """All queries that were added; `WorkloadError` if there are none."""
        check_list_size(len(self._rows), self._n_cells)
        errors = np.array([target.standard_error for target in self._targets])
        queries = QueryList(self._domain, np.array(self._rows), tuple(self._lines), errors)
        return StatedQueries(queries, tuple(self._conditions), tuple(self._targets))


def stated_from_text(domain: Domain, text: str, default: Target | None = None) -> StatedQueries:
    """The queries of a list with one a line; empty lines are skipped.

    default: the target of queries that have none of their own

    Raises `WorkloadError` naming the line, and the character from which on it cannot be used.
    """
    lines = StatedLines(domain, default)
    # Not splitlines: names may hold what Unicode calls a line separator.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"Line {number:,}"
            lines.add_condition(where, *_parts(line, where))
    return lines.stated()


def text_from_stated(stated: StatedQueries) -> str:
    """The list with one query a line; `stated_from_text` undoes it.

    Raises `WorkloadError` for a query that no line can hold.
    """
    return "\n".join(_line(stated, query) for query in range(len(stated)))


def conditions_of_text(text: str) -> list[str]:
    """The conditions of a list with one query a line."""
    lines = enumerate(text.split("\n"), start=1)
    return [_parts(line, f"Line {number:,}")[1] for number, line in lines if line.strip()]


def _parts(line: str, where: str) -> tuple[str, str, str]:
    """The name, the condition and the target of a line; "" for what it does not have."""
    if len(line) > MAX_LENGTH:
        raise WorkloadError(
            f"{where} must have at most {MAX_LENGTH:,} characters, got {len(line):,}; split it, or "
            "give the coefficients of the cells in a file."
        )
    line = line.strip()
    name = ""
    if match := _NAMED.match(line):
        quoted = match["quoted"]
        name = match["plain"].strip() if quoted is None else quoted.replace('""', '"')
        if not name.strip():
            raise WorkloadError(f"{where}: There must be a name before the colon; write one.")
        line = line[match.end() :]
    sign = next((match for match in _TARGET.finditer(line) if match["sign"]), None)
    if sign is None:
        return name, line.strip(), ""
    target = line[sign.end() if sign["sign"] == "@" else sign.start() :].strip()
    if not target:
        raise WorkloadError(f"{where}: There must be a target behind @, such as {NOTATIONS}.")
    return name, line[: sign.start()].strip(), target


def _line(stated: StatedQueries, query: int) -> str:
    """The line of one query, as short as can be read again."""
    name, condition = stated.queries.names[query], stated.condition(query)
    if condition is None:
        raise WorkloadError(
            f"The query {shown(name)!r} cannot be written as a condition; save the list as CSV "
            "with the coefficients of every cell."
        )
    target = stated.targets[query].text
    end = target if target.startswith("±") else f"@ {target}"
    doubled = name.replace('"', '""')
    starts = [(f"{name}:", name), (f'"{doubled}":', name)]
    if name == (condition or TOTAL):
        starts.insert(0, ("", ""))
    for start, called in starts:
        line = " ".join(filter(None, (start, condition, end)))
        usual = "\n" not in line and len(line) <= MAX_LENGTH
        if usual and _parts(line, "") == (called, condition, target):
            return line
    raise WorkloadError(
        f"The query {shown(name)!r} cannot be written in a line of its own, since it is long or "
        "holds a line break; save the list as CSV."
    )
