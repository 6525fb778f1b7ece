"""Publicly known totals of tables: exact constraints on what was measured, after the release.

A known marginal determines the residual of each of its subsets, which takes the place of what was
measured of it, without noise. Residuals of other sets are measured independently of these, so that
nothing else changes: of all unbiased linear estimates that meet the totals this is the one of least
variance (docs/mathematics.md §9.3). The totals come from elsewhere; nothing here
reads records, and nothing protects them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rpexplore.common.files import utf8_text
from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few
from rpexplore.common.text import csv_rows, joined, rounded
from rpexplore.domain.count_rows import TOTALS, CountColumns, describe_cell
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import ArrayStore, largest
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.releases.large_tables import MAX_TABLE_CELLS
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.known_groups import groups_among, known_marginals, with_groups
from rpexplore.results.known_release import (
    Element,
    KnownRelease,
    KnownTable,
    elements_of,
    elements_of_closure,
    elements_of_trees,
    known_contributions,
)
from rpexplore.results.unbiased import Estimates, positions_of_counts

KnownTotals = Mapping[Any, ArrayLike]
"""Attributes (a name, or several) -> the count of each combination of their values, one axis an
attribute; () for the number of all records."""

_MOST_COUNT = 10**15 - 1  # beyond, sums of floats are not exact
# In standard errors: of a million cells one is farther off by chance once in 500 releases.
_FAR = 6.0
_ROUNDING = 1e-9  # of all records


def known_totals_from_csv(
    source: TableRelease | Estimates, path: str | Path, content: bytes
) -> dict[tuple[str, ...], np.ndarray]:
    """Publicly known counts of a CSV file: attributes -> counts, as `with_known_totals` takes them.

    One row a count: a column for each attribute, empty where a row is of all its values, and a
    column total, count, population or the like. So one file holds several marginals. A value is
    written as it stands in the data or as its label; a combination that the codebook states to be
    impossible may be left out.

    Raises `ReleaseError` naming the line that cannot be used, and what is missing.
    """
    name = Path(path).name
    domain = source.domain.with_levels
    rows = csv_rows(utf8_text(content, name, ReleaseError), name, ReleaseError, delimiter=None)
    _, header = next(rows, (1, []))
    counts: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    with refusing(ReleaseError, name):
        columns = CountColumns.of(
            domain,
            header,
            TOTALS,
            ReleaseError,
            owner="tables",
            remedy="rename it, or take it out after summing over it; totals of areas go with "
            "--in-areas or --best-guesses",
        )
        for line, cell, text in columns.cells(rows, may_be_empty=True):
            marginal, values = tuple(cell), tuple(cell.values())
            if not re.fullmatch("[0-9]{1,15}", text.strip()):
                raise ReleaseError(
                    f"Line {line}: The {header[columns.count].strip()} {shown(text.strip())!r} "
                    "must be a whole number such as 1250, without separators."
                )
            of_marginal = counts.setdefault(marginal, {})
            if values in of_marginal:
                raise ReleaseError(
                    f"Line {line}: {describe_cell(domain, marginal, values)} is there twice; keep "
                    "one row for it."
                )
            of_marginal[values] = int(text)
    if not counts:
        raise ReleaseError(f"{name} has no rows; give a row for each known count.")
    return {
        tuple(domain.names[index] for index in marginal): _filled(domain, marginal, found, name)
        for marginal, found in counts.items()
    }


def _filled(
    domain: Domain,
    marginal: AttributeIndices,
    found: Mapping[tuple[int, ...], int],
    name: str,
) -> np.ndarray:
    """The counts as an array; `ReleaseError` for too many, or a possible combination without."""
    shape = [domain.attributes[index].size for index in marginal]
    if prod(shape) > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"{name} has totals by {_names_text(domain, marginal)}, which have {prod(shape):,} "
            f"combinations, more than {MAX_TABLE_CELLS:,}; give totals by fewer attributes."
        )
    counts = np.full(shape, np.nan)
    for cell, count in found.items():
        counts[cell] = count
    possible = domain.structural_zeros.possible(marginal)
    if possible is not None:
        counts[~possible & np.isnan(counts)] = 0
    missing = np.argwhere(np.isnan(counts)).tolist()
    if missing:
        raise ReleaseError(
            f"{name} has no total of {describe_cell(domain, marginal, missing[0])}"
            f"{f' and {len(missing) - 1:,} more' if len(missing) > 1 else ''}; give each "
            f"combination of {_names_text(domain, marginal)} a row, with 0 where there is nobody."
        )
    return counts


def with_known_totals(
    source: TableRelease | Estimates, totals: KnownTotals
) -> Estimates | KnownRelease:
    """All that was measured for tables, with publicly known totals in place of their noisy counts.

    Costs no privacy. The result is unbiased if the totals are of the same records. Their standard
    errors are 0, and those of all other counts are as small as the totals allow.

    Args:
        source: A release of tables, or combined ones.
        totals: Attributes -> the counts of a marginal, whole numbers from 0 on; one axis an
            attribute in the order given, its values in the order of the codebook. An attribute may
            be at a level of the codebook, also at a finer or coarser one than tables have.

    Returns:
        Of a release whose tables have an attribute at several levels, or other sums than single
        values, a `KnownRelease` with tables of the same rows; else `Estimates`.

    Raises:
        ReleaseError: For counts that are none, totals of attributes that no table has together, are
            measured by other groups, contradict each other or what is exact in the release, or
            have records where none are possible.
    """
    domain = source.domain.with_levels
    tables = [_checked(domain, names, counts) for names, counts in totals.items()]
    if not tables:
        raise ReleaseError(
            "There are no known totals; give those of a marginal, or leave them out."
        )
    attributes = [table.attributes for table in tables]
    if isinstance(source, TableRelease) and (
        _has_aggregations(source)
        or (source.plan.closure.trees and not _has_groups(source, domain, attributes))
    ):
        return _known_release(source, domain, [*source.known_totals, *tables])
    has_known = isinstance(source, Estimates) and source.known
    measured = Estimates.of(source, at_levels=not has_known)
    estimates = with_groups(measured, attributes)
    used = sorted({index for table in estimates.tables for index in table})
    _refuse_contradictions(domain, tables, _exact_tables(measured))
    told = _told(
        domain,
        elements_of(domain, used) | elements_of_trees(estimates.trees, estimates.blocks),
        estimates.strategies,
        tables,
        lambda subset: subset in estimates.contributions,
    )
    contributions = ArrayStore(estimates.contributions)
    for subset in told.keys() - estimates.known:
        contributions[subset] = told[subset]
    known = estimates.known | told.keys()
    marginals = known_marginals(estimates, tables) if estimates.trees else ()
    return replace(estimates, contributions=contributions, known=known, known_marginals=marginals)


def _has_groups(release: TableRelease, domain: Domain, known: Sequence[AttributeIndices]) -> bool:
    """Whether known totals are by groups of what tables of counts have."""
    counted = map(release.workload.attribute_indices, positions_of_counts(release))
    used = set(chain.from_iterable(counted))
    return bool(groups_among(domain, used, release.plan.closure.strategies, known))


def _has_aggregations(release: TableRelease) -> bool:
    """Whether tables of counts have other rows than single values."""
    return any(
        matrix is not None
        for position in positions_of_counts(release)
        for matrix in release.queries[position]
    )


def _known_release(
    release: TableRelease, domain: Domain, tables: Sequence[KnownTable]
) -> KnownRelease:
    closure = release.plan.closure
    amounts = set(domain.amounts)

    def is_measured(subset: AttributeIndices) -> bool:
        return not amounts.intersection(subset) and closure.find(subset) is not None

    _refuse_contradictions(domain, tables, ())
    elements = elements_of_closure(domain, closure)
    told = _told(domain, elements, closure.strategies, tables, is_measured)
    rows = {subset: row for subset in told if (row := closure.find(subset)) is not None}
    exact = {subset: row for subset, row in rows.items() if closure.is_public[row]}
    measured = release.measured(list(exact.values()))
    for subset, row in exact.items():
        off = np.abs(contribution(measured[row], subset, closure.strategies) - told[subset])
        if off.max() > _ROUNDING * max(float(told[()]), 1.0):
            raise ReleaseError(
                "The known totals contradict what is exact in the release, in the counts by "
                f"{domain.describe(closure.columns_of(row))}; correct them, or leave some out."
            )
    facts = (release.folder, release.plan, release.manifest, release.home)
    return KnownRelease(*facts, told, tables)


def _told(
    domain: Domain,
    elements: Mapping[int, Sequence[Element]],
    strategies: Mapping[int, Strategy],
    tables: Sequence[KnownTable],
    is_measured: Callable[[AttributeIndices], bool],
) -> dict[AttributeIndices, np.ndarray]:
    """What the totals say of the residuals that were measured; `ReleaseError` for two opinions."""
    told: dict[AttributeIndices, np.ndarray] = {}
    by: dict[AttributeIndices, KnownTable] = {}
    for table in tables:
        names = _names_text(domain, table.attributes)
        n_several = sum(domain.sizes[index] > 1 for index in table.attributes)
        found = known_contributions(domain, elements, strategies, table)
        if not any(len(subset) == n_several and is_measured(subset) for subset in found):
            raise ReleaseError(
                f"The known totals are of {names}, and no table of counts has these together; give "
                "totals of attributes that a table has."
            )
        for subset, values in filter(lambda one: is_measured(one[0]), found.items()):
            known = told.setdefault(subset, values)
            first = by.setdefault(subset, table)
            if np.abs(known - values).max() > _ROUNDING * max(float(table.counts.sum()), 1.0):
                raise ReleaseError(
                    f"The known totals of {_names_text(domain, first.attributes)} and of {names} "
                    "contradict each other in what they add up to; correct them, or leave some out."
                )
    return told


def far_from_measured(measured: TableRelease | Estimates, known: Estimates | KnownRelease) -> str:
    """What says that known totals are not of the records that were counted; "" if nothing does.

    The known count that is farthest from the noisy one in standard errors, if noise hardly explains
    that.
    """
    farthest, said = _FAR, ""
    if isinstance(known, Estimates) and known.trees:
        measured = with_groups(Estimates.of(measured, at_levels=True), known.known_marginals)
    for names in known.known_tables:
        if not measured.has(names):  # finer than tables have it
            continue
        (before,), (after,) = (one.marginals(names) for one in (measured, known))
        noisy, counts = before.values, after.values
        errors = np.sqrt(np.broadcast_to(before.noise.variances, noisy.shape))
        off = np.divide(np.abs(counts - noisy), errors, out=np.zeros(noisy.shape), where=errors > 0)
        cell = np.unravel_index(int(np.argmax(off)), off.shape)
        if off[cell] > farthest:
            farthest = float(off[cell])
            where = describe_cell(measured.domain, measured.domain.positions(names), cell)
            said = (
                f"The known total of {where} is {counts[cell]:,.0f}, and the noisy count "
                f"{noisy[cell]:,.0f}: {rounded(farthest)} standard errors apart, which noise does "
                "not explain. Check that both count the same records; if they do not, all figures "
                "are off."
            )
    return said


def _checked(domain: Domain, names: Any, counts: Any) -> KnownTable:
    """Counts in the domain's order; `ReleaseError` for what are none."""
    given = ([names] if names else []) if isinstance(names, str) else list(names)
    for name in given:
        if not isinstance(name, str) or name not in domain:
            raise ReleaseError(
                f"{shown(repr(name))} is no attribute of the tables; known totals are by some of "
                f"{shown_few(domain.names)}."
            )
    if len(set(given)) < len(given):
        raise ReleaseError(f"Known totals name {given[0]!r} twice; name each attribute once.")
    text = " × ".join(given) or "all records"
    try:
        array = np.array(counts, dtype=float)
    except (TypeError, ValueError):
        raise ReleaseError(f"The known totals of {text} must be whole numbers.") from None
    order = sorted(range(len(given)), key=lambda axis: domain.position(given[axis]))
    attributes = tuple(domain.position(given[axis]) for axis in order)
    shape = tuple(domain.attributes[domain.position(name)].size for name in given)
    if array.shape != shape:
        raise ReleaseError(
            f"The known totals of {text} must have the shape {shape}, a count for each "
            f"combination of values, got {array.shape}."
        )
    array = array.transpose(order)
    is_wrong = ~((array >= 0) & (array <= _MOST_COUNT) & (array == np.rint(array)))
    if is_wrong.any():
        cell = np.unravel_index(int(np.argmax(is_wrong)), array.shape)
        raise ReleaseError(
            f"The known total of {describe_cell(domain, attributes, cell)} is {array[cell]:g}; "
            "known totals are whole numbers from 0 on."
        )
    possible = domain.structural_zeros.possible(attributes)
    if possible is not None and np.any(array[~possible]):
        cell = np.unravel_index(int(np.argmax(~possible & (array > 0))), array.shape)
        raise ReleaseError(
            f"The known total of {describe_cell(domain, attributes, cell)} is {array[cell]:,.0f}, "
            "and the codebook states that no record has this combination; correct one of them."
        )
    return KnownTable(attributes, array)


def _exact_tables(estimates: Estimates) -> list[KnownTable]:
    """What is exact already: true counts of the release, or totals that were known before."""
    return [
        KnownTable(subset, np.rint(estimates.marginal(names)))
        for subset in largest(estimates.public)
        for names in [[estimates.domain.names[index] for index in subset]]
    ]


def _refuse_contradictions(
    domain: Domain, tables: Sequence[KnownTable], exact: Sequence[KnownTable]
) -> None:
    """Raise `ReleaseError` where two tables add up to different counts; names what is farthest."""
    largest, said = 0.0, ""

    def pairs() -> Iterator[tuple[KnownTable, KnownTable, str]]:
        for left, right in combinations(tables, 2):
            yield left, right, f"in those of {_names_text(domain, right.attributes)}"
        for left in tables:
            for right in exact:
                yield left, right, "in the release, where it is exact"

    for left, right, other in pairs():
        shared = tuple(index for index in left.attributes if index in right.attributes)
        of_left, of_right = left.summed(shared), right.summed(shared)
        off = np.abs(of_left - of_right)
        if off.size and off.max() > largest:
            largest = float(off.max())
            cell = np.unravel_index(int(np.argmax(off)), off.shape)
            said = (
                f"{describe_cell(domain, shared, cell)} is {of_left[cell]:,.0f} in the known "
                f"totals of {_names_text(domain, left.attributes)}, and {of_right[cell]:,.0f} "
                f"{other}"
            )
    if said:
        raise ReleaseError(
            f"The known totals contradict each other, at most by {largest:,.0f}: {said}. Correct "
            "them, or leave some out."
        )


def _names_text(domain: Domain, attributes: AttributeIndices) -> str:
    return " × ".join(domain.names[index] for index in attributes) or "all records"


def known_text(tables: Sequence[Sequence[str]]) -> str:
    """The totals, in words: "sex × age and region"."""
    return joined([" × ".join(names) or "all records" for names in tables])


def known_sentence(tables: Sequence[Sequence[str]]) -> str:
    """That the totals are met, as a sentence."""
    return f"The publicly known totals of {known_text(tables)} are met; they are not protected."
