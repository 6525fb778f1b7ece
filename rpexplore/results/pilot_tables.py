"""One-way tables of a release as public tables, with their errors: what a pilot is made for.

Noisy counts of a pilot are estimates, negative ones among them. As public tables they are the
posterior means of docs/mathematics.md §13.1, with the standard deviations that are left: what a
forecast draws its populations by.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import (
    PublicTable,
    PublicTables,
    independent_variances,
    values_within,
)
from rpexplore.errors import ReleaseError
from rpexplore.estimation.one_way import evidence_of_shapes, one_way
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.mechanism.levels import LevelTree
from rpexplore.planning.plan import Plan, load_plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.finished_release import Release
from rpexplore.releases.measurement_file import PLAN
from rpexplore.releases.pilot import figures_sha256, pilot_folder
from rpexplore.results.unbiased import Estimates

# Of the prior of §13.1, others than for smooth tables (docs/mathematics.md §21). Smaller ones are
# learned from large counts, and put small counts nearer to 0 than those of records are.
_SHAPES = (0.4, 0.6, 1.0, 1.6, 3.0, 8.0)
_LEAST_ERROR = 1e-9  # in records; of a count that is certain


def pilot_tables(folder: str | Path) -> tuple[PublicTable, ...]:
    """The one-way tables of a release, as public tables with errors.

    Args:
        folder: Of a release of tables: a pilot's, or a whole one.

    Returns:
        A table of the total, and one for each attribute with several values; counts are above 0 and
        sum to the released total in whole records. Errors are standard errors in records, those
        of attributes given the total. An attribute at several levels has a table for each, coarser
        ones first; their counts agree, and errors are given the finest coarser one before. Those of
        a pilot name its figures by SHA-256.

    Raises:
        ReleaseError: If there is no release of tables, or a file of it was changed.
    """
    folder = Path(folder)
    release = Release.load(folder)
    estimates = Estimates.of(release, at_levels=True)
    domain, name = estimates.domain, folder.resolve().name
    one_way_only = {
        subset: np.asarray(values)
        for subset, values in estimates.contributions.items()
        if len(subset) <= 1
    }
    variances = {subset: float(estimates.variances[subset]) for subset in one_way_only}
    numbers = [number for tree in estimates.trees for number in tree.numbers]
    of_blocks = np.array([estimates.blocks[number].size for number in numbers], dtype=np.int64)
    sizes = np.append(domain.sizes, of_blocks)
    measured = MeasuredResiduals(one_way_only, variances, sizes, estimates.strategies)
    sha256 = figures_sha256(release)
    tables = public_tables(measured, domain, name, estimates.trees)
    return tuple(replace(table, pilot_sha256=sha256) for table in tables)


def public_tables(
    measured: MeasuredResiduals, domain: Domain, name: str, trees: Sequence[LevelTree] = ()
) -> tuple[PublicTable, ...]:
    """`pilot_tables` of what a release of this name has measured for its one-way tables.

    trees: of attributes that it has at several levels, whose blocks are among what is measured
    """
    total = float(round(measured.total))
    of_total = PublicTable(
        ExpectedCounts.of_total(total),
        f"{name} in all",
        errors=ExpectedCounts.of_total(math.sqrt(measured.variances[()])),
    )
    ratio = total / measured.total
    in_trees = {number for tree in trees for number in tree.numbers}
    plain = [own for own in measured.of_order(1) if own[0] not in in_trees]
    of_attributes: list[PublicTable] = []

    def add(attribute: int, counts: np.ndarray, variances: np.ndarray) -> None:
        errors = np.sqrt(np.maximum(variances, _LEAST_ERROR**2))
        title = f"{name} by {domain.names[attribute]}"
        counted = _counts(domain, attribute, counts * ratio)
        of_attributes.append(PublicTable(counted, title, errors=_counts(domain, attribute, errors)))

    if plain:
        found = one_way(_part_of(measured, plain, measured.total), _SHAPES)
        for attribute in found.tables:
            add(attribute, found.tables[attribute], found.variances[attribute])
    for tree in trees:
        for attribute, counts, variances in _tables_of_levels(measured, domain, tree):
            add(attribute, counts, variances)
    return (of_total, *of_attributes)


def _part_of(
    measured: MeasuredResiduals, subsets: Sequence[tuple[int, ...]], total: float
) -> MeasuredResiduals:
    """Some of what was measured of one attribute, or block, each, of so many records."""
    contributions = {(): np.asarray(total)} | {own: measured.contributions[own] for own in subsets}
    variances = {own: measured.variances[own] for own in contributions}
    return MeasuredResiduals(contributions, variances, measured.sizes, measured.strategies)


def _tables_of_levels(
    measured: MeasuredResiduals, domain: Domain, tree: LevelTree
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The tables of an attribute at several levels: index, counts, and variances of these.

    Counts of the groups of each level are posterior means given those of the level before, block by
    block; so they add up. Variances are given the finest coarser table before.
    """
    above, levels, alone = np.array([measured.total]), list[np.ndarray](), dict[int, np.ndarray]()
    evidence = np.zeros(len(_SHAPES))
    for parents, blocks in zip(tree.parents, tree.blocks, strict=True):
        counts, parts = above[parents], dict[int, MeasuredResiduals]()
        for number, groups in blocks:
            total = float(above[parents[groups[0]]])
            parts[number] = _part_of(measured, [(number,)], total)
            # Few groups tell little of a shape: those of all blocks so far tell it together.
            evidence = evidence + evidence_of_shapes(parts[number], number, _SHAPES)
        shape = _SHAPES[int(np.argmax(evidence))]
        for number, groups in blocks:
            found = one_way(parts[number], (shape,))
            own = found.tables[number]
            counts[groups] = own * (float(above[parents[groups[0]]]) / own.sum())
            in_one = np.zeros(len(groups), dtype=np.int64)
            alone[number] = independent_variances(found.variances[number], in_one)
        levels.append(counts)
        above = counts
    made: list[tuple[str, np.ndarray, np.ndarray]] = []
    for attribute, (level, index) in sorted(
        tree.of_tables.items(), key=lambda one: int(one[1][1].max())
    ):
        name, own = domain.names[attribute], np.bincount(index, levels[level])
        variances = _variances(np.array([measured.total]), tree, levels, alone, attribute)
        given, most = variances, 1
        for other, counts, of_counts in made:
            within = values_within(domain, name, other)
            if within is not None and len(counts) > most:
                most = len(counts)
                # The rest is the part that each value has in the error of the one it lies in.
                given = variances - (own / counts[within]) ** 2 * of_counts[within]
        made.append((name, own, variances))
        yield attribute, own, given


def _variances(
    total: np.ndarray,
    tree: LevelTree,
    levels: Sequence[np.ndarray],
    alone: Mapping[int, np.ndarray],
    attribute: int,
) -> np.ndarray:
    """Variances of the counts of an attribute at one of its levels, given the total: float64[n].

    levels: counts of the groups of each level; alone: of each block, as of independent counts
    """
    last, index = tree.of_tables[attribute]
    shape = int(index.max()) + 1, len(index)
    weights = sparse.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape)
    variances = np.zeros(shape[0])
    for level in range(last, -1, -1):
        for number, groups in tree.blocks[level]:
            inside, own = sparse.csr_array(weights[:, groups]), alone[number]
            # Independent counts of which the sum is known: diag(own) − own ownᵀ / Σ own.
            variances += inside.power(2) @ own - (inside @ own) ** 2 / np.sum(own)
        parents, above = tree.parents[level], levels[level - 1] if level else total
        shares = levels[level] / above[parents]
        places = np.arange(len(parents)), parents
        weights = weights @ sparse.csr_array((shares, places), (len(parents), len(above)))
    return variances


def pilot_known(plan: TablePlan, folder: str | Path) -> PublicTables:
    """What the pilot of a plan, released in a folder, tells of the records: `pilot_tables`."""
    return PublicTables(plan.domain.of_records, pilot_tables(folder))


def planned_run(path: str | Path) -> tuple[Plan, Path]:
    """The plan of a run, and the release whose figures there are of it so far.

    Args:
        path: The folder of a run whose pilot is released, of this release, or of a whole one.

    Raises:
        ReleaseError: If there is none, or the whole plan is not beside its pilot.
    """
    path = Path(path)
    if not path.exists() and pilot_folder(path).is_dir():
        path = pilot_folder(path)
    plan = Release.load(path).plan
    tables = plan.part("tables")
    if tables is None or not tables.pilot_of:
        return plan, path
    output = path.with_name(path.name.removesuffix("-pilot"))
    for folder in (output, unfinished_folder(output)):
        if folder != path and (folder / PLAN).is_file():
            whole = load_plan(folder / PLAN)
            if whole.booked_sha256 == tables.pilot_of:
                return whole, path
    raise ReleaseError(
        f"The plan that {str(path)!r} is the pilot of is not beside it; name the plan, with this "
        f"folder as a public table: rpexplore forecast PLAN --public {path}."
    )


def _counts(domain: Domain, attribute: int, values: np.ndarray) -> ExpectedCounts:
    own = domain.attributes[attribute]
    return ExpectedCounts(
        (own.name,), (tuple(own.stored_values(own.size)),), tuple(values.tolist())
    )
