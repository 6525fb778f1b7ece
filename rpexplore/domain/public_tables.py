"""Public tables: counts published elsewhere, several at once, that say what records are like.

Each has counts by some attributes, or by levels of them. Together they say how many records there
are, and what share of them is where; what no table says is left to whoever reads them. Tables that
share attributes must agree there: where they do not, the newer one is followed, and said.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date as calendar_date
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import check_text, describe_share, joined, plural, rounded
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts, checked_records, title_of
from rpexplore.errors import WorkloadError

MAX_TOGETHER = 300_000  # cells of attributes that public tables connect
_MOST_IMPOSSIBLE = 20_000  # cells of attributes that impossible combinations connect with others
_ROUNDING = 1e-9  # of the sum of counts that add up to one record
_MOST_TOTALS = 1.1  # that one table's total may be above another's
_SAME_SHARE = 1e-6  # of all records: less is rounding
_SAME_TOTAL = 1e-3  # of the number of records: less is rounding of published counts
_MOST_NAME, _MOST_SOURCE = 300, 500  # characters
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_MOST_NAMED = 3
_LEAST_SHARE = 1e-12  # of a cell that an older table says is empty
_MOST_ROUNDS, _FITTED = 300, 1e-9
_ROUNDS_OF_VARIANCES = 50


@dataclass(frozen=True)
class PublicTable:
    """A published table: its counts, and where they are from.

    Args:
        counts: By some attributes, or by levels of them.
        name: Of the file, or as people call it.
        date: Of what it describes: 2026, 2026-01 or 2026-01-31; "" if nobody says.
        source: Who published it; "" if nobody says.
        errors: Standard errors of its counts given their sum, or the noisy tables of coarser levels
            beside it, where it was published with noise; None: it is exact.
        is_shares: Whether it was published as shares or percentages, which say how the records are
            divided, and not how many there are.
        pilot_sha256: Of the pilot's figures that it is made of; "" for any other table.

    Raises:
        WorkloadError: If name or source is too long, or the date is none.

    Example:
        >>> counts = ExpectedCounts(("sex",), (("f", "m"),), (51.2, 48.8))
        >>> PublicTable(counts, "census", "2021", "the office", is_shares=True).citation
        'census (2021; the office; shares)'
    """

    counts: ExpectedCounts
    name: str = ""
    date: str = ""
    source: str = ""
    errors: ExpectedCounts | None = None
    is_shares: bool = False
    pilot_sha256: str = ""

    def __post_init__(self) -> None:
        for noun in ("name", "source"):  # each is one line of a file
            text = getattr(self, noun)
            if isinstance(text, str):
                object.__setattr__(self, noun, " ".join(text.split()))
        check_text(self.name, "The name of a public table", _MOST_NAME, WorkloadError)
        check_text(self.source, "The source of a public table", _MOST_SOURCE, WorkloadError)
        match = _DATE.fullmatch(self.date) if isinstance(self.date, str) else None
        try:
            if match is not None:
                calendar_date(*(int(part or 1) for part in match.groups()))
        except ValueError:
            match = None
        if match is None and self.date != "":
            raise WorkloadError(
                "The date of a public table must be written like 2026, 2026-01 or 2026-01-31, got "
                f"{shown(self.date)!r}."
            )
        if not isinstance(self.is_shares, bool):
            raise WorkloadError(
                "Whether a public table holds shares must be true or false, got "
                f"{shown(self.is_shares)}."
            )

    @property
    def title(self) -> str:
        """The name, or what it is by; with its date."""
        by = title_of(self.counts.attributes) if self.counts.attributes else "the total"
        name = self.name or f"the counts by {by}"
        return f"{name} ({self.date})" if self.date else name

    @property
    def citation(self) -> str:
        """The name with date, source, and whether it holds shares, for a list of sources."""
        facts = [self.date, self.source, "shares" if self.is_shares else ""]
        told = "; ".join(filter(None, facts))
        name = replace(self, date="").title
        return f"{name} ({told})" if told else name

    def fitted(self, domain: Domain, renamed: Mapping[str, str] | None = None) -> "PublicTable":
        """The table in the order of a codebook with its levels.

        renamed: old attribute name -> new one, for attributes that only changed their name; levels
        go with them. Raises `WorkloadError` that says why the table does not fit.
        """
        names = dict(renamed or {})
        for name in self.counts.attributes:  # a level is called attribute@level
            base, at, level = name.rpartition("@")
            if at and base in names:
                names[name] = f"{names[base]}@{level}"
        known = domain.with_levels
        errors = None if self.errors is None else self.errors.fitted(known, names)
        return replace(self, counts=self.counts.fitted(known, names), errors=errors)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` undoes it."""
        content: dict[str, Any] = {"counts": self.counts.to_json()}
        if self.errors is not None:
            content["errors"] = self.errors.to_json()
        if self.is_shares:
            content["is_shares"] = True
        return {"name": self.name, "date": self.date, "source": self.source, **content}

    @classmethod
    def from_json(cls, content: Any) -> "PublicTable":
        """The table that JSON values hold; raises `WorkloadError` if they are not usable."""
        with refusing(WorkloadError, "A public table cannot be read"):
            known = {"name", "date", "source", "counts", "errors", "is_shares"}
            if unknown := set(content) - known:
                raise WorkloadError(f"A public table has no field {shown(min(unknown))!r}.")
            errors = content.get("errors")
            return cls(
                ExpectedCounts.from_json(content["counts"]),
                content["name"],
                content["date"],
                content["source"],
                None if errors is None else ExpectedCounts.from_json(errors),
                content.get("is_shares", False),
            )


@dataclass(frozen=True, eq=False)
class Connected:
    """Columns of the records that public tables connect, and what these say of them together.

    columns  indices of attributes of the records, ascending
    sizes    of these
    tables   (cells, shares) of each table, the one to follow last: for each cell of the columns
             together, row-major, which cell of the table it is in, int64[n]; and its shares
    possible which cells a record can be in by the codebook, bool[n]; None: all
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    tables: tuple[tuple[np.ndarray, np.ndarray], ...]
    possible: np.ndarray | None = None

    def fitted(self, start: np.ndarray) -> np.ndarray:
        """The shares nearest to these that all tables have, float64[n], by proportional fitting.

        start: float64[n], above 0. Tables that contradict each other are followed in turn. Raises
        `WorkloadError` if they leave no record that the codebook allows.
        """
        shares = start if self.possible is None else start * self.possible
        shares = shares / np.sum(shares)
        # A zero of an older table must not keep the newest one from being followed.
        older = [(cells, np.maximum(wanted, _LEAST_SHARE)) for cells, wanted in self.tables[:-1]]
        tables = [*older, *self.tables[-1:]]
        for _ in range(_MOST_ROUNDS):
            before = shares
            for cells, wanted in tables:
                there = np.bincount(cells, shares, len(wanted))
                shares = shares * (wanted / np.where(there > 0, there, 1.0))[cells]
            if len(self.tables) < 2 or np.max(np.abs(shares - before)) < _FITTED:
                break
        if not np.sum(shares) > 0:
            raise WorkloadError(
                "The public tables together count only records that the codebook states to be "
                "impossible; correct them, or the codebook, or leave one out."
            )
        return shares / np.sum(shares)

    def holds(self, shape: Sequence[int], cells: np.ndarray) -> np.ndarray | None:
        """The shares of these cells, if a public table says them; None if it does not.

        cells: which of them each cell of the columns together is in, int64[n]
        """
        for of_table, wanted in reversed(self.tables):
            first = np.full(len(wanted), -1)
            first[of_table] = cells
            if np.array_equal(first[of_table], cells):  # each of the table's cells is in one
                return np.bincount(first, wanted, math.prod(shape))
        return None


@dataclass(frozen=True, eq=False)
class PublicTables:
    """Public tables over a codebook, and the number of records.

    tables    oldest first: of two that contradict each other the later one is followed
    expected  how many records there will be; None: as many as the newest table counts

    Raises `WorkloadError` for a table that does not fit the codebook, for totals that differ by
    more than 10 %, and if nothing says how many records there are.
    """

    domain: Domain
    tables: tuple[PublicTable, ...] = ()
    expected: float | None = None

    def __post_init__(self) -> None:
        known = self.domain.with_levels
        fitted = [table.fitted(known) for table in self.tables]
        # Those without a date come last, in the order in which they are named.
        fitted.sort(key=lambda table: table.date or "9999")
        object.__setattr__(self, "tables", tuple(fitted))
        if self.expected is None and all(table.is_shares for table in fitted):
            shares = " of counts: shares alone do not say how many there are" if fitted else ""
            raise WorkloadError(
                f"A forecast needs the number of records, or a public table{shares}; give one of "
                "them."
            )
        if self.expected is not None:
            checked_records(self.expected)
        for table in fitted:
            columns = [int(known.columns[known.position(name)]) for name in table.counts.attributes]
            if len(set(columns)) < len(columns):
                raise WorkloadError(
                    f"The public table {table.title} has an attribute at two levels; keep the "
                    "finer one."
                )
            ratio = 1.0 if table.is_shares else table.counts.total / self.n_records
            if not 1 / _MOST_TOTALS <= ratio <= _MOST_TOTALS:
                raise WorkloadError(
                    f"The public table {table.title} counts "
                    f"{rounded(table.counts.total, 6)} in all, and {rounded(self.n_records, 6)} "
                    "are expected: more than 10 % apart. Leave it out, or expect another number."
                )

    @property
    def n_records(self) -> float:
        """How many records there will be."""
        if self.expected is not None:
            return self.expected
        return next(t.counts.total for t in reversed(self.tables) if not t.is_shares)

    def drawn(self, seed: bytes) -> "PublicTables":
        """These tables as they may be without their noise; the same if none has errors.

        Counts are drawn from Gamma distributions with their means and standard errors, which are
        given the total: the numbers that they are drawn by add up to nothing. The total is drawn
        from its own error, if it is among the tables. Of an attribute at several levels they are
        given the finest coarser table before: groups are drawn first, and divided then.
        """
        if all(table.errors is None for table in self.tables):
            return self
        numbers, factor = SeededNumbers(seed), 1.0
        for table in self.tables:
            if table.errors is not None and not table.counts.attributes:
                total = float(_drawn(table, np.zeros(1, dtype=np.int64), numbers)[0])
                factor = total / table.counts.total
        tables: list[PublicTable] = []
        for table in self.tables:
            if table.errors is not None:
                group, wanted = self._coarser(table, tables)
                if wanted is None:
                    wanted = np.array([factor * table.counts.total])
                counts = _drawn(table, group, numbers)
                counts *= (wanted / np.bincount(group, counts))[group]
                table = replace(table, counts=replace(table.counts, counts=tuple(counts.tolist())))
            tables.append(table)
        return replace(self, tables=tuple(tables))

    def _coarser(
        self, table: PublicTable, before: Sequence[PublicTable]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Which group of a coarser noisy table before it each count of a table is in: int64[n].

        And the counts of these groups, float64[n_groups]; None without such a table: all are in one
        group. Of several it is the finest: that with most groups.
        """
        group, wanted = np.zeros(len(table.counts.counts), dtype=np.int64), None
        names, known = table.counts.attributes, self.domain.with_levels
        for other in before:
            coarser, counts = other.counts.attributes, np.array(other.counts.counts)
            if other.errors is None or (len(names), len(coarser)) != (1, 1):
                continue
            within = values_within(known, names[0], coarser[0])
            if within is not None and len(counts) > (1 if wanted is None else len(wanted)):
                group, wanted = within, counts
        return group, wanted

    @cached_property
    def connected(self) -> tuple[Connected, ...]:
        """What public tables say of the columns that they are about; others are in none."""
        known = self.domain.with_levels
        indices = [
            tuple(known.position(name) for name in table.counts.attributes) for table in self.tables
        ]
        groups: list[set[int]] = []
        for of_table in indices:
            own = {int(known.columns[index]) for index in of_table}
            apart = [group for group in groups if not group & own]
            groups = [*apart, own.union(*(group for group in groups if group & own))]
        # Columns of impossible combinations belong together too, as long as that is no great work.
        for condition in known.structural_zeros.conditions:
            own = {int(known.columns[index]) for index in condition}
            apart = [group for group in groups if not group & own]
            own = own.union(*(group for group in groups if group & own))
            if math.prod(int(known.sizes[column]) for column in own) <= _MOST_IMPOSSIBLE:
                groups = [*apart, own]
        return tuple(self._connected(tuple(sorted(group)), indices) for group in groups if group)

    def _connected(self, columns: tuple[int, ...], indices: list[tuple[int, ...]]) -> Connected:
        known = self.domain.with_levels
        sizes = tuple(int(known.sizes[column]) for column in columns)
        if math.prod(sizes) > MAX_TOGETHER:
            names = joined([known.names[column] for column in columns])
            raise WorkloadError(
                f"The public tables connect {names}, which have {math.prod(sizes):,} cells "
                f"together; at most {MAX_TOGETHER:,} can be fitted. Leave a table out."
            )
        tables = []
        for table, of_table in zip(self.tables, indices, strict=True):
            if of_table and int(known.columns[of_table[0]]) in columns:
                cells = cells_of(known, of_table, columns, sizes)
                margin = table.counts.margin.ravel()
                tables.append((cells, margin / np.sum(margin)))
        possible = known.structural_zeros.possible(columns)
        possible = None if possible is None else possible.ravel()
        return Connected(columns, sizes, tuple(tables), possible)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """A sentence for every two tables that say different things of the same attributes.

        And for every table that counts another number of records than are expected, and for every
        one that counts records which the codebook calls impossible.
        """
        return tuple(self._contradictions())

    def _contradictions(self) -> Iterator[str]:
        known = self.domain.with_levels
        for number, newer in enumerate(self.tables):
            for older in self.tables[:number]:
                shared = _shared(known, older.counts.attributes, newer.counts.attributes)
                if not shared:
                    continue
                left, right = (_shares_by(known, table.counts, shared) for table in (older, newer))
                difference = np.abs(left - right)
                if np.max(difference) <= _SAME_SHARE:
                    continue
                place = np.unravel_index(int(np.argmax(difference)), difference.shape)
                cell = joined(
                    [groups.labels[int(index)] for groups, index in zip(shared, place, strict=True)]
                )
                yield (
                    f"{older.title} and {newer.title} contradict each other by "
                    f"{title_of(groups.name for groups in shared)}: of {cell} there are "
                    f"{describe_share(float(left[place]))} and "
                    f"{describe_share(float(right[place]))}. The latter is followed."
                )
        counted = [table for table in self.tables if not table.is_shares]
        if counted:
            apart = [abs(table.counts.total / self.n_records - 1) for table in counted]
            farthest = counted[int(np.argmax(apart))]
            if max(apart) > _SAME_TOTAL:
                yield (
                    f"{farthest.title} counts {rounded(farthest.counts.total, 6)} in all, and "
                    f"{rounded(self.n_records, 6)} are expected: {describe_share(max(apart))} "
                    "apart. Its shares are followed."
                )
        for table in self.tables:
            indices = [known.position(name) for name in table.counts.attributes]
            order = sorted(range(len(indices)), key=indices.__getitem__)
            possible = known.structural_zeros.possible([indices[axis] for axis in order])
            if possible is None:
                continue
            shares = np.transpose(table.counts.margin, order) / table.counts.total
            counted = np.where(possible, 0.0, shares)
            if np.max(counted) > _SAME_SHARE:
                place = np.unravel_index(int(np.argmax(counted)), counted.shape)
                cell = joined(
                    [
                        known.attributes[indices[axis]].labels()[int(index)]
                        for axis, index in zip(order, place, strict=True)
                    ]
                )
                yield (
                    f"{table.title} counts {describe_share(float(counted[place]))} in {cell}, "
                    "which is impossible by the codebook. The codebook is followed."
                )

    @property
    def text(self) -> str:
        """What a forecast rests on, for a sentence."""
        number = f"{rounded(self.n_records, 6)} records"
        if not self.tables:
            return f"{number}, of which nothing else is known"
        titles = [table.citation for table in self.tables]
        if len(titles) > _MOST_NAMED:
            titles = [*titles[:_MOST_NAMED], f"{len(titles) - _MOST_NAMED:,} more"]
        return f"{number}, and {plural(len(self.tables), 'public table')}: {joined(titles)}"


def without_margin(
    domain: Domain, tables: Iterable[PublicTable], attributes: Iterable[str]
) -> tuple[str, ...]:
    """Those attributes of the records of which no public table says how they are divided.

    attributes: of the tables that are asked for, or levels of them. What is missing for a good
    forecast: how skewed these are is drawn, which makes its ranges wide.
    """
    known = domain.with_levels
    public = {
        int(known.columns[known.position(name)])
        for table in tables
        for name in table.counts.attributes
    }
    columns = {int(known.columns[known.position(name)]) for name in attributes} - public
    return tuple(known.names[column] for column in sorted(columns))


def cells_of(
    known: Domain, attributes: Sequence[int], columns: Sequence[int], sizes: Sequence[int]
) -> np.ndarray:
    """For each cell of the columns together, row-major, its cell in a table: int64[∏ sizes].

    attributes: of the table, levels of these columns or the columns themselves
    """
    cells = np.zeros(tuple(sizes), dtype=np.int64)
    for index in attributes:
        attribute, axis = known.attributes[index], list(columns).index(int(known.columns[index]))
        own = np.array(attribute.index_of_values or range(attribute.size))
        shape = [-1 if place == axis else 1 for place in range(len(sizes))]
        cells = cells * attribute.size + own.reshape(shape)
    return cells.ravel()


def values_within(known: Domain, finer: str, coarser: str) -> np.ndarray | None:
    """Of each value of one level of an attribute the value of a coarser one: int64[n_values].

    None for levels of different attributes, and where a value lies in several.
    """
    columns = {int(known.columns[known.position(name)]) for name in (finer, coarser)}
    if finer == coarser or len(columns) > 1:
        return None
    levels = known[finer], known[coarser]
    own, other = (np.array(one.index_of_values or range(one.size)) for one in levels)
    within = np.zeros(known[finer].size, dtype=np.int64)
    within[own] = other
    return within if np.array_equal(within[own], other) else None


def _drawn(table: PublicTable, group: np.ndarray, numbers: SeededNumbers) -> np.ndarray:
    """The counts of a noisy table as they may be, given the sums of groups: float64[n], above 0.

    group: int64[n], which group each count is in, from 0
    """
    from scipy.special import gammaincinv, ndtr  # slow to import

    assert table.errors is not None
    mean, variances = np.array(table.counts.counts), np.array(table.errors.counts) ** 2
    least = _LEAST_SHARE * table.counts.total
    variances = np.maximum(variances, least**2)
    # What each cell is off by, as columns of independent normals that are added up.
    alone = independent_variances(variances, group)
    deviations, spread = np.sqrt(alone), alone
    normals = deviations * numbers.normals(len(mean))
    members = np.bincount(group)[group]
    several = members > 1
    if np.any(several):
        kept = np.where(several, alone / _sums(alone, group), 0.0)
        normals, spread = normals - kept * _sums(normals, group), alone * (1 - kept)
        # What was learned of a value was learned from its neighbours too, so that errors are alike
        # along the order of the values: half of their variance is that of a smooth curve.
        order = np.argsort(group, kind="stable")
        place = np.empty(len(group))
        place[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
        x = np.where(several, 2 * place / np.maximum(members - 1, 1) - 1, 0.0)
        curves = np.stack([1.2 * x, 1.5 * x * x - 0.5, np.sin(np.pi * x)])
        curves *= deviations / np.sqrt(np.sum(curves**2, axis=0))
        curves -= kept * np.stack([_sums(curve, group) for curve in curves])
        curves = np.where(several, curves, 0.0)
        of_groups = numbers.normals(3 * (int(group.max()) + 1)).reshape(-1, 3)
        normals = normals + np.sum(of_groups[group].T * curves, axis=0)
        spread = spread + np.sum(curves**2, axis=0)
    normals /= np.sqrt(spread)
    shape = np.maximum(mean**2 / variances, _LEAST_SHARE)
    uniforms = np.clip(ndtr(normals.astype(float)), 1e-7, 1 - 1e-7)
    return np.maximum(gammaincinv(shape, uniforms) * mean / shape, least)


def independent_variances(variances: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Variances of independent numbers that have these once the sums of groups are known.

    Normals of the variances v, less v/Σv of their sum, have v (1 − v/Σv). A number that is alone in
    its group keeps its own.

    variances: float64[n]; group: int64[n], from 0
    """
    alone, several = variances, np.bincount(group)[group] > 1
    for _ in range(_ROUNDS_OF_VARIANCES):
        left = np.where(several, 1 - alone / _sums(alone, group), 1.0)
        alone = variances / np.maximum(left, _LEAST_SHARE)
    return alone


def _sums(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Of each value the sum of its group: float64[n]."""
    return np.bincount(group, values)[group]


class _Groups(NamedTuple):
    """The finest groups of a column's values that two tables both tell apart.

    name    of the attribute, or of the level whose groups they are
    labels  of the groups
    column  of the records
    group   of each value of the column, int64[n_values]
    """

    name: str
    labels: list[str]
    column: int
    group: np.ndarray


def _shared(known: Domain, left: Sequence[str], right: Sequence[str]) -> list[_Groups]:
    """The groups of every column that both tables are about; none where they share nothing."""
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components  # slow to import

    by_column = {int(known.columns[known.position(name)]): known[name] for name in left}
    shared = []
    for name in right:
        column = int(known.columns[known.position(name)])
        if column not in by_column:
            continue
        pair = by_column[column], known[name]
        ours, theirs = (np.array(one.index_of_values or range(one.size)) for one in pair)
        # Groups of the one that a group of the other connects are one group of both.
        links = coo_array(
            (np.ones(len(ours)), (ours, theirs + pair[0].size)),
            shape=(pair[0].size + pair[1].size,) * 2,
        )
        n_groups, groups = connected_components(links, directed=False)
        if n_groups == 1:
            continue
        group = groups[ours]
        named = next((one for one in pair if one.size == n_groups), None)
        if named is None:
            labels = [f"a group of {known.names[column]}"] * n_groups
            shared.append(_Groups(known.names[column], labels, column, group))
            continue
        own = np.array(named.index_of_values or range(named.size))
        shared.append(_Groups(named.name, named.labels(), column, own))
    return shared


def _shares_by(known: Domain, counts: ExpectedCounts, shared: Sequence[_Groups]) -> np.ndarray:
    """The shares of a table by groups of its columns, one axis each."""
    margin, axes = counts.margin / counts.total, []
    for groups in shared:
        axis = next(
            axis
            for axis, name in enumerate(counts.attributes)
            if int(known.columns[known.position(name)]) == groups.column
        )
        attribute = known[counts.attributes[axis]]
        own = np.array(attribute.index_of_values or range(attribute.size))
        into = np.zeros((attribute.size, len(groups.labels)))
        into[own, groups.group] = 1
        margin = np.moveaxis(np.moveaxis(margin, axis, -1) @ into, -1, axis)
        axes.append(axis)
    margin = margin.sum(axis=tuple(set(range(margin.ndim)) - set(axes)))
    kept = sorted(axes)
    return np.transpose(margin, [kept.index(axis) for axis in axes])
