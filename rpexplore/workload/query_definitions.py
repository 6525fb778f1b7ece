"""Stated queries: a list of queries with the text of each as it was typed."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rpexplore.common.json_fields import FieldError, check_keys, dumps, loads, refusing
from rpexplore.common.numbers import shown
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.condition_atoms import ConditionAtoms
from rpexplore.workload.conditions import (
    MAX_LENGTH,
    TOTAL,
    cells_of_condition,
    condition_of_atoms,
    condition_of_cells,
)
from rpexplore.workload.counts_by import counts_by
from rpexplore.workload.own_sums import Measure, checked_measure, split_definition
from rpexplore.workload.query_list import (
    MAX_CELLS,
    MOST_CELLS,
    QueryList,
    check_attributes,
    check_list_size,
    checked_n_cells,
    row_from_terms,
    terms_from_row,
)
from rpexplore.workload.table_text import in_quotes
from rpexplore.workload.targets import NOTATIONS, Target

# A list as text has one query a line: its name and a colon, its condition, and behind ± or @ its
# target. The name and the target may be left out:
#
#     adults: age >= 18 ± 50
#     "born < 1950": born < 1950 @ 5 % of 1000
#     region = "north" & sex = "female"
#
#     adults: age >= 18 by sex, age@five-year ± 20
#
# The third kind stands for a count of each combination (`counts_by`).
#
# A name that holds one of the signs of conditions, or a quotation mark, stands in double quotation
# marks (doubled inside). A query without a name is called by its condition.


_MAX_TARGET_LENGTH = 200
# A line without blanks around it.
_NAMED = re.compile(
    r"""
      " (?P<quoted> (?:[^"]|"")* ) " \s* :
    | (?P<plain> [^\s'"`“„‘:<>=≤≥≠!~¬|&±@] [^"`:<>=≤≥≠!~¬|&±@]* ) :
    """,
    re.VERBOSE,
)
# Texts in quotation marks and names in backquotes may hold an @ or ±; an @ between an attribute and
# its level is no sign, unless σ or se follow, as targets have them.
_TARGET = re.compile(
    r"""
      (?: `[^`]*` | [^\W\d]\w* )@(?!σ|se\b)(?=[^\W\d]|`)
    | "[^"]*" | '[^']*' | `[^`]*` | [“„][^“”„]*[“”] | ‘[^‘’]*’
    | (?P<sign> ± | \+\s*(?:/\s*)?[-−] | @ )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, repr=False)
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
                    f"There must be one of the {noun} for each of {len(self.queries):,} counts, "
                    f"got {len(values):,}."
                )
        errors = [target.standard_error for target in self.targets]
        if errors != self.queries.targets.tolist():
            raise WorkloadError("The targets must be those of the counts; make the list with them.")

    @classmethod
    def of(cls, queries: QueryList, target: Target | None = None) -> "StatedQueries":
        """Queries that were not typed, with their own standard errors as targets, or one target."""
        if target is not None:
            queries = replace(queries, targets=np.full(len(queries), target.standard_error))
        targets = tuple(target or Target(error) for error in queries.targets.tolist())
        return cls(queries, (None,) * len(queries), targets)

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def all_conditions(self) -> tuple[str | None, ...]:
        """`condition` of every query, in the order of the list; finding one takes a moment."""
        return tuple(self.condition(query) for query in range(len(self)))

    def condition(self, query: int) -> str | None:
        """The condition of a query as it was typed, or one that counts the same cells.

        None where there is no such, or none of usual length.
        """
        condition, row = self.conditions[query], self.queries.coefficients[query]
        if condition is not None or not np.isin(row, (0.0, 1.0)).all():
            return TOTAL if condition == "" and TOTAL not in self.queries.domain else condition
        if self.queries.atoms is not None:
            return condition_of_atoms(self.queries.atoms, row == 1)
        return condition_of_cells(self.queries.domain, row == 1)


Line: TypeAlias = tuple[str, str, str | ArrayLike, str]
"""One query as it is stated: where, name, definition and target.

Where it is, such as "Line 3", is named in errors. The definition is a condition, which names a
query without a name, or a coefficient for each cell; the target "" is the default.
"""


def with_conditions(domain: Domain, lines: Iterable[Line]) -> Iterator[Line]:
    """Lines that people wrote, those by other attributes taken apart.

    Everything is counted by the word total, unless an attribute is called so: raises
    `WorkloadError` for a line without a condition, for what behind the word by is no attribute, and
    for the line with which a list gets too long.
    """
    n_counts = 0
    for line in lines:
        if isinstance(line[2], str) and not line[2].strip() and TOTAL not in domain:
            raise WorkloadError(
                f"{line[0]}: There is no condition; write {TOTAL} where every record counts."
            )
        where, name, definition, target = line
        if not isinstance(definition, str):
            yield line
            continue
        with refusing(WorkloadError, where):
            counts = list(counts_by(domain, name, definition))
            n_counts += len(counts)
            check_list_size(n_counts, 1)  # before all lines are taken apart
        for own_name, condition in counts:
            yield where, own_name, condition, target


def stated_from_lines(
    domain: Domain, lines: Iterable[Line], default: Target | None = None
) -> StatedQueries:
    """The queries of some lines; `WorkloadError` naming the line that cannot be used.

    default: the target of queries that have none of their own
    """
    check_attributes(domain)
    are_merged = math.prod(domain.sizes.tolist()) > MAX_CELLS
    if are_merged:
        lines = list(lines)
        if all(isinstance(definition, str) for _, _, definition, _ in lines):
            return _stated_by_atoms(domain, lines, default)
    n_cells = checked_n_cells(domain, MOST_CELLS)
    rows: list[np.ndarray] = []
    conditions: list[str | None] = []
    names = _Names()
    targets: list[Target] = []
    for where, name, definition, target_text in lines:
        with refusing(WorkloadError, where):
            check_list_size(len(rows) + 1, n_cells, given=are_merged)
            if isinstance(definition, str):
                condition = definition.strip()
                row = row_of_definition(domain, condition)
                _refuse_nobody(row, condition)
                name = name if name.strip() else condition or TOTAL
            else:
                condition, row = None, np.array(definition, dtype=np.float64)
            names.check(name)
            target = _target(target_text, default)
            QueryList.of_cells(domain, row[None], (name,), [target.standard_error])
        rows.append(row)
        conditions.append(condition)
        targets.append(target)
        names.add(name, where)
    check_list_size(len(rows), n_cells, given=are_merged)
    errors = np.array([target.standard_error for target in targets])
    queries = QueryList.of_cells(domain, np.array(rows), names.all, errors)
    return StatedQueries(queries, tuple(conditions), tuple(targets))


def _stated_by_atoms(
    domain: Domain, lines: Iterable[Line], default: Target | None
) -> StatedQueries:
    """The same for a domain of too many cells for coefficients: over what conditions tell apart."""
    atoms_of = ConditionAtoms(domain)
    names, conditions, targets = _Names(), list[str](), list[Target]()
    measures: list[Measure | None] = []
    for where, name, definition, target_text in lines:
        with refusing(WorkloadError, where):
            check_list_size(len(targets) + 1, 1)
            assert isinstance(definition, str)
            condition = definition.strip()
            measure, within = split_definition(condition)
            measures.append(None if measure is None else checked_measure(domain, measure))
            atoms_of.add(within)
            name = name if name.strip() else condition or TOTAL
            names.check(name)
            targets.append(_target(target_text, default))
        conditions.append(condition)
        names.add(name, where)
    check_list_size(len(targets), 1)
    for index in domain.amounts:  # each of their values is told apart
        atoms_of.add_values(index)
    atoms, holds = atoms_of.made(names.all)
    rows = holds[: len(targets)].astype(np.float64)
    starts = len(targets) + np.cumsum([0, *(domain.attributes[i].size for i in domain.amounts)])
    for row, measure in zip(rows, measures, strict=True):
        numbers = {} if measure is None else measure.coefficients(domain)
        for index, start in zip(domain.amounts, starts.tolist(), strict=False):
            if index in numbers:
                row *= numbers[index] @ holds[start : start + len(numbers[index])]
    for where, condition, row in zip(names.lines, conditions, rows, strict=True):
        with refusing(WorkloadError, where):
            _refuse_nobody(row, condition)
    errors = np.array([target.standard_error for target in targets])
    queries = QueryList(domain, rows, names.all, errors, atoms)
    return StatedQueries(queries, tuple(conditions), tuple(targets))


def row_of_definition(domain: Domain, definition: str) -> np.ndarray:
    """A coefficient for each cell, float64[n_cells]."""
    measure, condition = split_definition(definition)
    row = cells_of_condition(domain, condition).astype(np.float64)
    if measure is None:
        return row
    sizes = domain.sizes.tolist()
    for index, numbers in checked_measure(domain, measure).coefficients(domain).items():
        row = row * np.tile(
            np.repeat(numbers, math.prod(sizes[index + 1 :])), math.prod(sizes[:index])
        )
    return row


def _refuse_nobody(row: np.ndarray, condition: str) -> None:
    if not row.any():
        raise WorkloadError(
            f"The condition {shown(condition)!r} holds for no cell, so nothing would "
            "be counted; mend it, or remove the line."
        )


class _Names:
    """The names of a list's counts so far, and the line of each."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self._lines)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines.values())

    def check(self, name: str) -> None:
        if name in self._lines:
            line = self._lines[name][:1].lower() + self._lines[name][1:]
            raise WorkloadError(
                f"The name {shown(name)!r} was given before ({line}); give each count its own name."
            )

    def add(self, name: str, line: str) -> None:
        self._lines[name] = line


def _target(text: str, default: Target | None) -> Target:
    if not text.strip():
        if default is None:
            raise WorkloadError(
                f"The count needs a target; write it like {NOTATIONS}, or give a target for all "
                "counts that have none of their own."
            )
        return default
    if len(text) > _MAX_TARGET_LENGTH:
        raise WorkloadError(f"The target must be written like {NOTATIONS}, got a long text.")
    target = Target.parse(text)
    if target.required:
        raise WorkloadError(
            "The target of a count cannot be required, since all counts of a list are met in "
            f"proportion to their targets; write {target.text}."
        )
    return target


def stated_from_text(domain: Domain, text: str, default: Target | None = None) -> StatedQueries:
    """The queries of a list with one a line; empty lines are skipped.

    default: the target of queries that have none of their own

    Raises `WorkloadError` naming the line, and the character from which on it cannot be used.
    """
    return stated_from_lines(domain, with_conditions(domain, _lines(text)), default)


def text_from_stated(stated: StatedQueries) -> str:
    """The list with one query a line; `stated_from_text` undoes it.

    Raises `WorkloadError` for a query that no line can hold.
    """
    return "\n".join(_line(stated, query) for query in range(len(stated)))


def conditions_of_text(text: str) -> list[str]:
    """The conditions of a list with one query a line."""
    return [condition for _, _, condition, _ in _lines(text)]


def _lines(text: str) -> Iterator[tuple[str, str, str, str]]:
    """For each query of a text its position, name, condition and target."""
    # Not splitlines: names may hold what Unicode calls a line separator.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"Line {number:,}"
            yield where, *_parts(line, where)


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
            f"The count {shown(name)!r} cannot be written as a condition; save the list as CSV "
            "with the coefficients of every cell."
        )
    target = stated.targets[query].text
    end = target if target.startswith("±") else f"@ {target}"
    starts = [(f"{name}:", name), (f"{in_quotes(name)}:", name)]
    if name == (condition or TOTAL):
        starts.insert(0, ("", ""))
    for start, called in starts:
        line = " ".join(filter(None, (start, condition, end)))
        usual = "\n" not in line and len(line) <= MAX_LENGTH
        if usual and _parts(line, "") == (called, condition, target):
            return line
    raise WorkloadError(
        f"The count {shown(name)!r} cannot be written in a line of its own, since it is long or "
        "holds a line break; save the list as CSV."
    )


# ---- Stated queries as plain values, as a scenario's file has them.
#
# Each query has its name, its target as it was typed, and its condition; or, where it was given by
# coefficients, their terms (`query_list.terms_from_row`): as JSON within a text, which is read and
# written many times as fast as numbers that a file has on lines of their own. Standard errors and
# cells follow from these when the file is read, so that they cannot disagree with what is shown.


_KEYS = ({"name", "target", "condition"}, {"name", "target", "terms"})


def stated_to_json(stated: StatedQueries) -> dict[str, Any]:
    """Plain values for a file; `stated_from_json` undoes it exactly."""
    queries, rows = [], stated.queries.coefficients
    if None in stated.conditions:
        rows = stated.queries.cell_coefficients
    for name, target, condition, row in zip(
        stated.queries.names,
        stated.targets,
        stated.conditions,
        rows,
        strict=True,
    ):
        definition = {"condition": condition}
        if condition is None:
            definition = {"terms": dumps(terms_from_row(row))}
        queries.append({"name": name, "target": target.text, **definition})
    schema = stated.queries.domain.to_schema()
    return {"domain": schema, "queries": queries}


def stated_from_json(content: Any) -> StatedQueries:
    """The queries of a file; `RpexploreError` naming the query that cannot be used."""
    check_keys(content, ("domain", "queries"), "a list of own counts")
    domain = Domain.from_schema(content["domain"])
    n_cells, queries = math.prod(domain.sizes.tolist()), content["queries"]
    if not isinstance(queries, list) or not all(map(_is_query, queries)):
        raise WorkloadError(
            "Every own count must hold name, target and either condition or terms, no more; all of "
            "them must be texts."
        )
    check_list_size(len(queries), n_cells if n_cells <= MAX_CELLS else 1)
    lines = (
        _line_of_fields(number, query, n_cells) for number, query in enumerate(queries, start=1)
    )
    return stated_from_lines(domain, lines)


def _line_of_fields(number: int, query: dict[str, str], n_cells: int) -> Line:
    name, definition = query["name"], query.get("condition")
    if definition is None:
        if n_cells > MOST_CELLS:
            raise WorkloadError(
                f"The own count {shown(name)!r} must have a condition, since there are more than "
                f"{MOST_CELLS:,} cells."
            )
        try:
            terms = loads(query["terms"])
        except FieldError:
            raise WorkloadError(
                f"The terms of count {shown(name)!r} must be JSON such as [[0, 9, 1]]."
            ) from None
        definition = row_from_terms(terms, n_cells, name)
    return f"Own count {number:,}", name, definition, query["target"]


def _is_query(query: Any) -> bool:
    if not isinstance(query, dict) or set(query) not in _KEYS:
        return False
    return all(isinstance(text, str) for text in query.values())
