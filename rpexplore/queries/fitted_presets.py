"""A preset fitted to a codebook: its queries about the attributes that have its roles.

In a preset that is given by lines, a line is a query that counts some categories of some roles. It
is left out where the values of an attribute do not make up these categories.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from rpexplore.common.formatting import plural, rounded
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.builders import USUAL_TARGET, query_list, table_queries
from rpexplore.queries.edits import chosen_domain
from rpexplore.queries.preset_roles import FittedRole, Role, RoleMatch
from rpexplore.queries.query_list import QueryList, check_list_size
from rpexplore.workload.bases import Basis, Hierarchy, Identity
from rpexplore.workload.query_matrix import query_matrix

Line: TypeAlias = tuple[str, Mapping[str, frozenset[int]], float]
"""A query: its name, the categories that it counts of each role, by key, and its target."""

Table: TypeAlias = dict[str, Basis]
"""The basis of each attribute of a table, by name."""

GEOGRAPHY = Role(
    "geography",
    "Geography",
    (
        *("area", "block", "borough", "canton", "city", "county", "department", "district"),
        *("geography", "municipality", "postcode", "precinct", "province", "region", "state"),
        *("territory", "tract", "ward", "zip"),
    ),
)


@dataclass(frozen=True)
class FittedPreset:
    """The queries of a preset for a codebook, and the names of the lines that are left out."""

    queries: QueryList
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """ "26 queries over 28 cells, with their own targets: …. 3 lines of …"."""
        text = (
            f"{plural(len(self.queries), 'query')} over {plural(self.queries.n_cells, 'cell')}, "
            f"with their own targets: {describe_targets(self.queries)}."
        )
        if not self.left_out:
            return text
        return (
            f"{text} {plural(len(self.left_out), 'line')} of the preset cannot be counted with "
            f"these attributes and categories, such as “{self.left_out[0]}”."
        )


@dataclass(frozen=True)
class Preset:
    """A list of queries to start from, given by lines or by tables.

    title        on screen
    explanation  in one sentence
    roles        that it asks by; one of them may be `GEOGRAPHY`, then it asks for each area as well
    own          makes attributes of its own, called by the keys of their roles
    lines        its queries, of roles with categories
    tables       its tables, for the attribute of each role, by key, which are asked by each value
    target       the standard error of each cell of its tables
    marginals    the same as tables of the workload: the roles of each, without geography
    """

    title: str
    explanation: str
    roles: tuple[Role, ...]
    own: Callable[[], Domain]
    lines: Callable[[], Iterator[Line]] | None = None
    tables: Callable[[Mapping[str, Attribute]], Sequence[Table]] | None = None
    target: float = USUAL_TARGET
    marginals: tuple[tuple[str, ...], ...] = ()

    def queries(self) -> QueryList:
        """The queries about attributes of its own."""
        domain = self.own()
        roles = [role for role in self.roles if role.key in domain]
        matches = {role.key: RoleMatch(role.key, role.categories) for role in roles}
        return self.fitted(domain, matches).queries

    def fitted(self, codebook: Domain, matches: Mapping[str, RoleMatch]) -> FittedPreset:
        """The queries about a codebook's attributes.

        matches: by the key of the role; a role without one is left out

        Raises `WorkloadError` for matches that cannot be, and for too many cells or queries.
        """
        attributes = self._attributes(codebook, matches)
        domain = chosen_domain(codebook, [attribute.name for attribute in attributes.values()])
        area = attributes.pop(GEOGRAPHY.key, None)
        by_area = [] if area is None else _by_area(area)
        if self.tables is not None:
            tables = self.tables(attributes)
            crossed = [table | by for by in by_area or [{}] for table in tables]
            return FittedPreset(table_queries(domain, crossed, self.target))
        assert self.lines is not None
        roles = {
            role.key: FittedRole.of(role, matches[role.key], codebook)
            for role in self.roles
            if role.key in attributes
        }
        counted, left_out = _counted(roles, self.lines())
        areas = [(None, {})]
        if area is not None:
            areas = [(label, {area.name: row}) for by in by_area for label, row in _areas(area, by)]
        check_list_size(len(counted) * len(areas), math.prod(domain.sizes.tolist()))
        lines = (
            (name if label is None else f"{name}, {label}", _row(domain, rows | of_area), target)
            for label, of_area in areas
            for name, rows, target in counted
        )
        return FittedPreset(query_list(domain, lines), left_out)

    def fitted_marginals(
        self, codebook: Domain, matches: Mapping[str, RoleMatch]
    ) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table; those of roles without a match are left out.

        Raises `WorkloadError` for matches that cannot be.
        """
        attributes = self._attributes(codebook, matches)
        names = {key: attribute.name for key, attribute in attributes.items()}
        area = [names[GEOGRAPHY.key]] if GEOGRAPHY.key in names else []
        tables = [keys for keys in self.marginals if all(key in names for key in keys)]
        return tuple(codebook.in_order([*(names[key] for key in keys), *area]) for keys in tables)

    def _attributes(
        self, codebook: Domain, matches: Mapping[str, RoleMatch]
    ) -> dict[str, Attribute]:
        """The attribute of each role that is not left out, by key, in the order of the roles."""
        attributes: dict[str, Attribute] = {}
        taken: dict[str, str] = {}  # the title of the role of each attribute
        for role in self.roles:
            if role.key in matches:
                attribute = attributes[role.key] = codebook[matches[role.key].attribute]
                if attribute.name in taken:
                    raise WorkloadError(
                        f"{role.title}: {attribute.name!r} is the attribute of "
                        f"{taken[attribute.name]} already; choose another one, or leave one of the "
                        "two out."
                    )
                taken[attribute.name] = role.title
            elif role.is_required:
                raise WorkloadError(
                    f"{role.title}: no attribute is chosen; choose one, or another preset."
                )
        return attributes


def describe_targets(queries: QueryList) -> str:
    """The targets of a preset's queries: "standard errors of 5 to 10"."""
    least, most = (rounded(limit, 3) for limit in (queries.targets.min(), queries.targets.max()))
    return (
        f"a standard error of {least}" if least == most else f"standard errors of {least} to {most}"
    )


def _counted(
    roles: Mapping[str, FittedRole], lines: Iterator[Line]
) -> tuple[list[tuple[str, dict[str, np.ndarray], float]], tuple[str, ...]]:
    """(name, coefficients for the values of each attribute, target) of lines; others by name."""
    counted, left_out = [], []
    for name, wanted, target in lines:
        rows: dict[str, np.ndarray] = {}
        for key, categories in wanted.items():
            row = roles[key].row(categories) if key in roles else None
            if row is None:
                left_out.append(name)
                break
            rows[roles[key].attribute.name] = row
        else:
            counted.append((name, rows, target))
    return counted, tuple(left_out)


def _row(domain: Domain, rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """The coefficients of the cells, from those of the values of some attributes."""
    factors = [rows.get(attribute.name, np.ones(attribute.size)) for attribute in domain]
    return reduce(np.kron, factors)


def _by_area(area: Attribute) -> list[Table]:
    """All areas together, and each; with the groups of areas that the codebook has."""
    if area.groups:
        return [{area.name: Hierarchy()}]
    return [{}, {area.name: Identity()}]


def _areas(area: Attribute, by: Table) -> Iterator[tuple[str | None, np.ndarray]]:
    """The name of each area of a table, None for all together, and its values."""
    if not by:
        yield None, np.ones(area.size)
        return
    matrix = query_matrix(by[area.name], area)
    for label, row in zip(matrix.labels(), matrix.of(np.eye(area.size), 0), strict=True):
        yield None if row.all() else label, row
