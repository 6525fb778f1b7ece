"""The folder of processed tables: smooth, nonnegative or whole, with the unbiased answers beside.

    tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer): its labels,
                            value (processed), of smooth tables its model-based error, the
                            unbiased value with its standard error and interval, and what was
                            done, in words
    tables.parquet          instead of these, small tables where there are more than 100
                            (`packed_tables`), unless a file for each is wanted: value,
                            of smooth tables model_error, unbiased_value, standard_error
    tables.json             beside it, what the rows of all tables count
    shrinkage.*             of smooth tables: how much of each residual was kept, and whether its
                            table gains by smoothing, as Parquet and CSV
    shrinkage_by_group.*    of smooth tables: how far groups are from their unbiased counts
    manifest.json           what was done, the gap, sources, size and SHA-256 of every file
    README.md               how to read all this

What was done is also in the metadata of every Parquet file. Written as a `new_folder`; the manifest
comes last.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, overload

import numpy as np
import pyarrow as pa

from rpexplore.common.numbers import normal_quantile, shown_few, shown_value
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.text import FORMULAS_ESCAPED, data_size, joined
from rpexplore.data.engines.connections import Connection
from rpexplore.domain.domain import AttributeIndices, Domain, subsets
from rpexplore.domain.readings import READINGS, SMOOTH_COVERAGE
from rpexplore.domain.result_schema import (
    INTERVAL_ROLES,
    MODEL_ERROR,
    PROCESSED_VALUE,
    Schema,
)
from rpexplore.domain.values import describe_combinations
from rpexplore.errors import ReleaseError
from rpexplore.estimation.nonnegative import GAP, Nonnegative, impossible_cells, with_zeros
from rpexplore.estimation.nonnegative import nonnegative as nearest_nonnegative
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.estimation.table_map import ArrayStore, ContributionArrays, TableMap, largest
from rpexplore.estimation.whole_numbers import (
    MOST_OF_THREE,
    MOST_SEARCHED,
    Margin,
    nearest_margins,
    nearest_whole,
    parts_of,
    with_columns,
    with_margins,
)
from rpexplore.estimation.whole_numbers import rounded as whole_numbers
from rpexplore.planning.areas.area_sums import AreaName
from rpexplore.planning.mechanism.reconstruction import answers, marginal
from rpexplore.releases.atomic_folder import check_new, check_room
from rpexplore.releases.feasibility import computer_memory
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import CONFIDENCE, file_entry, now, save_manifest
from rpexplore.releases.packed_tables import (
    MOST_CELLS,
    PACKED,
    Figures,
    packed_tables,
    write_packed,
)
from rpexplore.releases.table_cells import TABLES
from rpexplore.releases.table_release import LabelsOfBases, TableRelease
from rpexplore.results.estimates.area_counts import AreaCounts, area_guesses, whole_area_counts
from rpexplore.results.estimates.level_counts import CountsAtLevels, counts_at_levels
from rpexplore.results.estimates.shrinkage import GroupDistances, smooth, write_shrinkage
from rpexplore.results.known_release import KnownTable
from rpexplore.results.known_totals import KnownTotals, known_text, with_known_totals
from rpexplore.results.level_groups import codebook_facts
from rpexplore.results.measurement_source import facts_of_sources, guarantee, sources_of
from rpexplore.results.processed_tables import (
    KIND,
    KNOWN_TOTALS,
    LAYOUT,
    METHODS,
    Method,
    ProcessedTables,
    figures_in_one_file,
    label_of,
    new_tables_folder,
    said_of,
    with_unbiased,
    write_layout,
    write_readme,
    write_tables,
)
from rpexplore.results.publication import SmoothingGain
from rpexplore.results.unbiased import (
    Estimates,
    positions_of_counts,
    refuse_open_values,
)
from rpexplore.workload.table_text import QueryMatrix

_BYTES_PER_CELL = 330  # about, as CSV and Parquet together
_BYTES_PER_PACKED_CELL = 25  # about
_MEMORY_PER_CELL = 50  # bytes, while nonnegative tables are searched for; measured
_MOST_BASE = 1000
_MOST_AGREEING = 3  # attributes of tables whose whole numbers have all totals, if they can
# Cells of all tables of three attributes whose whole numbers with all totals are searched for: one
# table of 1,000 takes a second and more. Beyond, none is.
_MOST_SEARCHED_IN_ALL = 200_000
_SEARCHED = 0.7  # share of the work that is done when the tables are nonnegative, or smooth


@overload
def postprocess(
    source: PartReader,
    output: str | Path,
    *,
    method: Method | None = None,
    rounded: bool | int = False,
    gap: float | None = None,
    known_totals: KnownTotals | None = None,
    escape_formulas: bool = False,
    file_per_table: bool = False,
    in_areas: Literal[False] = False,
    on_progress: Progress = no_progress,
) -> ProcessedTables: ...


@overload
def postprocess(
    source: PartReader,
    output: str | Path,
    *,
    in_areas: Literal[True],
    method: Method,
    rounded: bool | int = True,
    known_totals: Mapping[AreaName, int] | None = None,
    cluster: Connection | None = None,
    on_progress: Progress = no_progress,
) -> AreaCounts: ...


def postprocess(
    source: PartReader,
    output: str | Path,
    *,
    method: Method | None = None,
    rounded: bool | int | None = None,
    gap: float | None = None,
    known_totals: Any = None,
    escape_formulas: bool = False,
    file_per_table: bool = False,
    in_areas: bool = False,
    cluster: Connection | None = None,
    on_progress: Progress = no_progress,
) -> ProcessedTables | AreaCounts:
    """Make tables nonnegative or whole; costs no privacy, as only what was released is looked at.

    Whatever is done, cells that impossible combinations leave without a record are 0.

    Args:
        source: A release with tables, its tables, or combined ones.
        output: The folder to write, which must not exist yet.
        method: "nonnegative": no cell is below 0; all tables still agree, and the total is kept.
            "smooth": each measurement counts only as far as it is more than noise
            (`smooth.smooth`): best guesses, with a model-based error beside each. No cell is below
            0 either, all tables agree, and the total is kept, but is at least 1.
        rounded: Whether cells are whole numbers; a number, such as 5: multiples of it, which is
            for reading and protects nobody. Of an attribute with another aggregation, the
            counts of its single values are, before they are summed.
        gap: Of nonnegative tables, which share of the distance to the noisy ones may be avoidable;
            `nonnegative.GAP` if left out.
        known_totals: Publicly known counts that all tables meet, as of `with_known_totals`: the
            attributes of each marginal -> its counts; in areas each area -> its total. They are not
            protected. The unbiased answers of tables without areas, beside the values, meet them,
            too, and have the errors that this leaves.
        escape_formulas: Whether an apostrophe stands in CSV files before texts that a spreadsheet
            would take for formulas.
        file_per_table: Whether each table has files of its own, however many there are.
        in_areas: Whether it is the tables in areas that are made so, which are whole in any case:
            "nonnegative" as of `whole_area_counts`, "smooth" as of `area_guesses`.
        cluster: Spark, for smooth tables in areas; see `area_guesses`.

    Returns:
        The tables that were written.

    Raises:
        ReleaseError: If there is nothing to do, the gap is out of range or goes with no method,
            nothing can be written, or nonnegative tables would need more memory than there is; for
            known totals that cannot be met, or are to be rounded to multiples; for tables in areas
            also what these functions raise, and any option that they do not have.
    """
    if in_areas:
        refused = {"gap": gap is not None, "escape_formulas": escape_formulas}
        refused |= {"file_per_table": file_per_table, "rounded=False": rounded is False}
        if method is None:
            raise ReleaseError(
                "Tables in areas are made nonnegative or smooth, and whole; give method="
                '"nonnegative" or method="smooth".'
            )
        if method == "smooth":
            refused["rounded"] = rounded not in (None, True, False)
        else:
            refused["cluster"] = cluster is not None
        for option in (option for option, is_given in refused.items() if is_given):
            raise ReleaseError(f"{option} does not go with {method} tables in areas; leave it out.")
        areas: Any = source.area_tables()
        if method == "smooth":
            return area_guesses(
                areas, output, totals=known_totals, cluster=cluster, on_progress=on_progress
            )
        base = 1 if rounded in (None, True) else rounded
        return whole_area_counts(
            areas, output, totals=known_totals, base=base, on_progress=on_progress
        )
    if cluster is not None:
        raise ReleaseError(
            "A cluster makes tables in areas smooth; leave it out, or give in_areas."
        )
    if rounded is None:
        rounded = False
    released: TableRelease | Estimates = source.unbiased_tables()
    if known_totals is not None:
        _check(method, rounded, gap, has_totals=True)
        released = with_known_totals(released, known_totals)
    known = released.known_tables
    _check(method, rounded, gap, has_totals=bool(released.known_totals))
    if known and rounded > 1:
        raise ReleaseError(
            f"Publicly known totals are met exactly, and would not be multiples of {rounded}; ask "
            "for whole numbers, or leave the known totals out."
        )
    output = Path(output)
    check_new(output)
    workload = released.workload
    packed = packed_tables(workload, file_per_table=file_per_table)
    n_packed_cells = float(np.sum(workload.cells[packed]))
    n_bytes = _BYTES_PER_CELL * (released.n_cells - n_packed_cells)
    check_room(n_bytes + _BYTES_PER_PACKED_CELL * n_packed_cells, output)
    if method == "nonnegative":
        _check_memory(released.n_cells)
    on_progress("Reading what was measured", 0.0)
    on_searched = part_of_progress(on_progress, 0.0, _SEARCHED)
    counts: ProcessedCounts | CountsAtLevels | _AsMeasured
    smooth_tables: SmoothTables | None = None
    domain, positions = released.domain, positions_of_counts(released)
    tables = [released.table_names[position] for position in positions]
    at_levels = False
    if released.known_totals and method is None and not rounded:
        counts, projection, sources = _AsMeasured(released), None, sources_of(released)
    else:
        estimates = Estimates.of(released, at_levels=True)
        sources = estimates.sources
        if estimates.trees:
            at_levels, given = True, released.known_totals or _known_tables(estimates)
            counts = projection = _counts_at_levels(
                estimates, method, rounded, gap, given, on_searched
            )
        else:
            projection, smooth_tables = _estimated(estimates, method, gap, on_searched)
            counts = _processed_counts(estimates, projection or smooth_tables, rounded)
            if rounded:
                counts.choose_margins(map(domain.positions, tables))
    label = label_of(method, rounded, known)
    in_one_file = frozenset(packed.tolist())
    matrices = [released.queries[position] for position in positions]
    position_of = {place: position for position, place in enumerate(positions)}
    steps: dict[str, Any] = {"method": method, "rounded": rounded}
    if known:
        steps[KNOWN_TOTALS] = [list(names) for names in known]
    gains: dict[AttributeIndices, SmoothingGain] = {}
    groups = GroupDistances(domain)

    def processed_of(position: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The processed answers of a table, one axis an attribute, and their model errors."""
        attributes = domain.positions(tables[position])
        values = counts.whole(attributes) * int(rounded) if rounded else counts.of(attributes)
        errors = None
        if smooth_tables is not None:
            errors = _model_errors(smooth_tables, attributes, matrices[position])
        return answers(values, matrices[position]), errors

    def note_smoothing(position: int, numbers: Sequence[np.ndarray], errors: np.ndarray) -> None:
        """numbers: as for `GroupDistances.add`"""
        attributes = domain.positions(tables[position])
        gain = SmoothingGain.of(numbers[2], errors)
        if gain is not None:
            gains[_of_several_values(domain, attributes)] = gain
        groups.add(position, attributes, matrices[position], numbers)

    def cells(position: int) -> pa.Table:
        values, errors = processed_of(position)
        columns = {PROCESSED_VALUE: values.ravel()}
        unbiased = released.items[positions[position]].read()
        if errors is not None:
            columns[MODEL_ERROR] = errors
            figures = Schema.of(unbiased)
            noisy = [np.asarray(unbiased[figures.name(role)]) for role in INTERVAL_ROLES]
            note_smoothing(position, [columns[PROCESSED_VALUE], *noisy], errors)
        is_known = released.is_known(tables[position])
        return with_unbiased(columns, unbiased, label, steps, is_known=is_known)

    def figures_of(place: int) -> Figures:
        """Those of a table of the workload, for the file of small tables."""
        position = position_of[place]
        values, errors = processed_of(position)
        (unbiased, own_errors), impossible = released.figures_of(place)
        if errors is None:
            return (values, unbiased, own_errors), impossible
        noisy, own = unbiased.ravel(), np.broadcast_to(own_errors, values.shape).ravel()
        margins = normal_quantile(CONFIDENCE) * own
        note_smoothing(
            position, [values.ravel(), noisy, own, noisy - margins, noisy + margins], errors
        )
        of_cells = errors if len(errors) == 1 else errors.reshape(values.shape)
        return (values, of_cells, unbiased, own_errors), impossible

    on_written = part_of_progress(on_progress, _SEARCHED if method else 0.0, 1.0)
    stated = domain.impossible
    processing = {
        "guarantee": guarantee(sources),
        "projection": projection,
        "impossible": describe_combinations(stated) if stated else "",
        "method": method,
        "readings": READINGS,
        "is_smooth": smooth_tables is not None,
        "smooth_coverage": SMOOTH_COVERAGE,
        "contradicted": "" if smooth_tables is None else _contradicted(domain, smooth_tables),
        "raised": 0.0 if smooth_tables is None else smooth_tables.raised,
        "rounded_cells": rounded,
        "at_levels": at_levels,
        "base": int(rounded),
        "known": known_text(known) if known else "",
        "formulas": f" {FORMULAS_ESCAPED}" if escape_formulas else "",
        "n_packed": len(packed),
        "has_others": len(packed) < len(positions),
        "largest_packed": MOST_CELLS,
    }
    with new_tables_folder(output) as folder:
        files: list[dict[str, Any]] = []
        if len(packed):
            packed_positions = np.array([position_of[place] for place in packed.tolist()])
            written = write_packed(
                folder / PACKED,
                workload,
                packed,
                LabelsOfBases(workload).of,
                figures_of,
                figures=figures_in_one_file(method),
                numbers=packed_positions,
                metadata=said_of(label, steps),
            )
            for n_cells in written:
                on_written("Writing the tables", n_cells / released.n_cells)
            write_layout(folder, workload, positions)
            files += [file_entry(folder, name) for name in (PACKED, LAYOUT)]
        others = [position for position, place in enumerate(positions) if place not in in_one_file]
        files += write_tables(
            folder, tables, cells, on_written, escape_formulas=escape_formulas, positions=others
        )
        if not others:
            (folder / TABLES).rmdir()
        if smooth_tables is not None:
            files += write_shrinkage(
                folder,
                domain,
                smooth_tables.kept,
                gains,
                groups,
                escape_formulas=escape_formulas,
            )
        wanted = {domain.positions(names) for names in tables}
        apart = [
            " × ".join(domain.names[index] for index in table)
            for table in sorted(counts.disagreeing & wanted)
        ]
        processing |= {"n_apart": len(apart), "apart": shown_few(apart)}
        files.append(write_readme(folder, "processed.md.j2", sources, label, **processing))
        facts = {
            "created": now(),
            "label": label,
            "method": method,
            "rounded": rounded,
            "gap": None if projection is None else projection.gap,
            "rounds": None if projection is None else projection.rounds,
            **{name: names for name, names in steps.items() if name == KNOWN_TOTALS},
            **codebook_facts(domain, sorted({name for names in tables for name in names})),
            "guarantee": guarantee(sources),
            **facts_of_sources(sources),
        }
        manifest = save_manifest(folder, KIND, facts, files)
    on_progress("Finished", 1.0)
    return ProcessedTables(output, MappingProxyType(manifest))


def _counts_at_levels(
    estimates: Estimates,
    method: Method | None,
    rounded: bool | int,
    gap: float | None,
    given: Sequence[KnownTable],
    on_progress: Progress,
) -> CountsAtLevels:
    """Those of tables with an attribute at several levels; `ReleaseError` for what there is not."""
    if method != "nonnegative":
        name = estimates.domain.names[estimates.trees[0].column]
        if estimates.known_marginals:
            raise ReleaseError(
                f"The known totals are by groups of {name!r}, and of tables that meet these only "
                "nonnegative ones are made, of whole numbers if wanted; ask for nonnegative "
                "tables, or give totals by single values."
            )
        raise ReleaseError(
            f"The attribute {name!r} is in tables at several levels, of which only nonnegative "
            "tables are made, of whole numbers if wanted; ask for nonnegative ones, or plan with "
            "one level."
        )
    refuse_open_values(estimates.domain, estimates.open_attributes)
    gap, base = GAP if gap is None else gap, max(int(rounded), 1)
    counts = counts_at_levels(estimates, gap=gap, base=base, given=given, on_progress=on_progress)
    if rounded:
        counts.whole(())  # here, once: threads that write tables would each begin with it
    return counts


def _known_tables(estimates: Estimates) -> list[KnownTable]:
    """The publicly known counts of estimates that are told by groups."""
    names = estimates.domain.names
    return [
        KnownTable(table, np.rint(estimates.marginal([names[index] for index in table])))
        for table in estimates.known_marginals
    ]


def why_not_smooth(estimates: Estimates) -> str:
    """Why no smooth tables can be made of these; "" if they can."""
    if len(estimates.known) > 1 and estimates.domain.impossible:
        tables = TableMap(estimates.contributions, estimates.domain.sizes, estimates.strategies)
        if impossible_cells(tables, estimates.domain.structural_zeros):
            return (
                "Tables that meet known totals are not made smooth where the codebook has "
                "impossible combinations, as no model-based errors have been worked out for both "
                "together; take nonnegative tables, or leave the known totals out."
            )
    return ""


def _estimated(
    estimates: Estimates, method: Method | None, gap: float | None, on_progress: Progress
) -> tuple[Nonnegative | None, SmoothTables | None]:
    """The nonnegative contributions, or smooth tables with their errors."""
    if method == "nonnegative":
        refuse_open_values(estimates.domain, estimates.open_attributes)
        projection = nearest_nonnegative(
            estimates.contributions,
            estimates.domain.sizes,
            estimates.strategies,
            zeros=estimates.domain.structural_zeros,
            kept=estimates.public,
            gap=GAP if gap is None else gap,
            on_progress=on_progress,
        )
        return projection, None
    if method is None:
        return None, None
    if reason := why_not_smooth(estimates):
        raise ReleaseError(reason)
    smooth_tables = smooth(estimates, on_progress=part_of_progress(on_progress, 0.0, 0.5))
    # Here, where it is done once: threads that write tables would each begin with it.
    smooth_tables.rehearse_errors(part_of_progress(on_progress, 0.5, 1.0))
    return None, smooth_tables


def _processed_counts(
    estimates: Estimates, processed: Nonnegative | SmoothTables | None, rounded: bool | int
) -> "ProcessedCounts":
    contributions = _with_zeros(estimates) if processed is None else processed.contributions
    sizes = estimates.domain.sizes.tolist()
    return ProcessedCounts(
        estimates,
        contributions,
        is_nonnegative=processed is not None,
        base=max(int(rounded), 1),
        largest_order=max(map(len, estimates.tables), default=0),
        n_searched=sum(
            size
            for subset in contributions
            if len(subset) == 3
            and (size := prod(sizes[index] for index in subset)) <= MOST_OF_THREE
        ),
    )


def _contradicted(domain: Domain, smooth_tables: SmoothTables) -> str:
    """The tables whose own measurement contradicted the model, "a × b, c × d"; "" for none."""
    names = domain.names
    tables = smooth_tables.contradicted
    return joined([" × ".join(names[index] for index in table) for table in tables])


def _check_memory(n_cells: float) -> None:
    """Raise `ReleaseError` if nonnegative tables of so many cells do not fit into memory."""
    needed, there = _MEMORY_PER_CELL * n_cells, computer_memory()
    if needed > there:
        raise ReleaseError(
            f"Nonnegative tables of {n_cells:,.0f} cells need about {data_size(needed)} of memory, "
            f"and this computer has {data_size(there)}: all of them are searched for together, as "
            "they must agree. Release fewer or smaller tables, or work on a computer with more."
        )


def _check(
    method: Method | None, rounded: bool | int, gap: float | None, *, has_totals: bool = False
) -> None:
    """Raise `ReleaseError` for what cannot be asked for.

    has_totals: whether known totals are met, which is something to do
    """
    if method is None and not rounded and not has_totals:
        raise ReleaseError(
            "Nothing to do to the tables: ask for nonnegative or smooth tables, or whole numbers."
        )
    if not isinstance(rounded, int) or not 0 <= rounded <= _MOST_BASE:
        raise ReleaseError(
            f"Counts are rounded to multiples of a whole number from 2 to {_MOST_BASE:,}, got "
            f"{shown_value(rounded)}; give 5, say, or leave it out for whole numbers."
        )
    if method not in (None, *METHODS):
        raise ReleaseError(f"The method must be one of {', '.join(METHODS)}, got {method!r}.")
    if gap is not None and method != "nonnegative":
        raise ReleaseError("A gap goes with nonnegative tables alone; leave it out.")


def _with_zeros(estimates: Estimates) -> ContributionArrays:
    """The unbiased contributions with tables of 0 where no record is possible; unbiased as well."""
    tables = TableMap(estimates.contributions, estimates.domain.sizes, estimates.strategies)
    fixed = impossible_cells(tables, estimates.domain.structural_zeros)
    if not fixed:
        return estimates.contributions
    contributions = ArrayStore(estimates.contributions)
    kept = estimates.public | {()}
    contributions.update(with_zeros(tables, contributions, fixed, kept))
    return contributions


@dataclass(frozen=True, eq=False)
class ProcessedCounts:
    """The processed counts of the single values of tables, in whole numbers where these are wanted.

    base           the number whose multiples are counted in `whole`
    largest_order  of the tables that there are
    n_searched     cells of all tables of three attributes that are small enough for a search
    disagreeing    the tables whose whole numbers do not have all totals of the smaller tables
    """

    estimates: Estimates
    contributions: ContributionArrays
    is_nonnegative: bool
    base: int
    largest_order: int
    n_searched: int
    disagreeing: set[AttributeIndices] = field(default_factory=set)
    _whole: dict[AttributeIndices, np.ndarray] = field(default_factory=dict)

    def of(self, attributes: AttributeIndices) -> np.ndarray:
        """One axis an attribute."""
        domain = self.estimates.domain
        several = _of_several_values(domain, attributes)
        within = {subset: self.contributions[subset] for subset in subsets(several)}
        values = marginal(attributes, domain.sizes, within, self.estimates.strategies)
        # Sums of nonnegative tables, computed from contributions, are below 0 by rounding at most,
        # and what is 0 without a record nearly is.
        if self.is_nonnegative:
            values = np.maximum(values, 0.0)
        if several in self.estimates.public:
            values = np.rint(values)
        possible = domain.structural_zeros.possible(attributes)
        return values if possible is None else np.where(possible, values, 0.0)

    def choose_margins(self, tables: Iterable[AttributeIndices]) -> None:
        """Choose the whole numbers of one-way tables so that those of all these pairs are nearest.

        For so many cells that this takes seconds; else, and where impossible combinations leave
        none, each one-way table is rounded by itself.
        """
        domain = self.estimates.domain
        pairs = dict.fromkeys(table for table in tables if len(table) == 2)
        n_cells = sum(prod(domain.sizes[index] for index in pair) for pair in pairs)
        if not 0 < n_cells <= MOST_SEARCHED:
            return
        margins = {index: self.of((index,)) / self.base for pair in pairs for index in pair}
        values = {pair: self.of(pair) / self.base for pair in pairs}
        possible = {pair: domain.structural_zeros.possible(pair) for pair in pairs}
        found = nearest_margins(
            float(self.whole(())),
            margins,
            {
                pair: (table, np.ones(table.shape, bool) if mask is None else mask)
                for (pair, table), mask in zip(values.items(), possible.values(), strict=True)
            },
        )
        self._whole.update({(index,): whole for index, whole in (found or {}).items()})

    def whole(self, attributes: AttributeIndices) -> np.ndarray:
        """The same over `base` in whole numbers; a table has the totals of the smaller ones.

        Tables of two attributes always, but for impossible combinations that stand in the way;
        those of three where such whole numbers are found. Of others, up to 20,000 cells, those of
        the table of all attributes but the last are kept.
        """
        if attributes in self._whole:
            return self._whole[attributes]
        whole = self._made_whole(attributes)
        # Larger tables need those of fewer attributes again.
        if len(attributes) <= 1 or (
            len(attributes) < self.largest_order and whole.size <= MOST_SEARCHED
        ):
            self._whole[attributes] = whole
        return whole

    def _made_whole(self, attributes: AttributeIndices) -> np.ndarray:
        several = _of_several_values(self.estimates.domain, attributes)
        if self.base == 1 and several in self.estimates.known:
            return self.of(attributes)
        values = self.of(attributes) / self.base
        if not attributes:
            return np.rint(values)
        if len(attributes) == 1:
            return parts_of(self.whole(()), values)
        possible = self.estimates.domain.structural_zeros.possible(attributes)
        possible = np.ones(values.shape, bool) if possible is None else possible
        whole = self._near_smaller(attributes, values, possible)
        exact = self._exact_within(attributes) if self.base == 1 else []
        if all(np.array_equal(whole.sum(axis=summed), sums) for summed, sums in exact):
            return whole
        self.disagreeing.add(attributes)
        found = with_margins(values, exact, possible)
        if found is None:
            domain = self.estimates.domain
            raise ReleaseError(
                f"The table {' × '.join(domain.names[index] for index in attributes)} was not "
                "found in whole numbers that have all of its totals that are known exactly; ask "
                "for tables that are not rounded, or leave known totals out."
            )
        return found

    def _exact_within(self, attributes: AttributeIndices) -> list[Margin]:
        """The totals of a table that are known exactly, and within no other; most cells first."""
        several = _of_several_values(self.estimates.domain, attributes)
        exact = [one for one in self.estimates.public if one and {*one} <= {*several}]
        margins = [
            (tuple(axis for axis, index in enumerate(attributes) if index not in own), self.of(own))
            for own in largest(exact)
        ]
        return sorted(margins, key=lambda margin: -margin[1].size)

    def _near_smaller(
        self, attributes: AttributeIndices, values: np.ndarray, possible: np.ndarray
    ) -> np.ndarray:
        """Whole numbers with the totals of smaller tables, as far as these are found."""
        is_searched = values.size <= MOST_SEARCHED
        axes = range(len(attributes)) if len(attributes) <= _MOST_AGREEING else ()
        if len(attributes) > 2 and self.n_searched > _MOST_SEARCHED_IN_ALL:
            axes = ()
        totals = [
            ((axis,), self.whole(attributes[:axis] + attributes[axis + 1 :]))
            for axis in axes
            if is_searched or len(attributes) == 2
        ]
        if totals and (nearest := nearest_whole(values, totals, possible)) is not None:
            return nearest
        whole = None
        if len(attributes) == 2:
            whole = parts_of(totals[1][1], values)
            whole = with_columns(whole, values, totals[0][1], possible)
            if all(np.array_equal(whole.sum(axis=axis), sums) for axis, sums in totals):
                return whole
        elif is_searched:
            last, sums = len(attributes) - 1, self.whole(attributes[:-1])
            # The largest fractions go up, which is nearest, too, and needs no search.
            whole = parts_of(sums, values)
            lowest = min(0.0, np.floor(values.min()))
            is_right = np.array_equal(whole.sum(axis=last), sums) and whole.min() >= lowest
            if not (possible.all() and is_right):
                whole = nearest_whole(values, [((last,), sums)], possible)
        if whole is None:
            whole = whole_numbers(
                [self.of(attributes[:i]) / self.base for i in range(len(attributes) + 1)]
            )
        self.disagreeing.add(attributes)
        return whole


@dataclass(frozen=True)
class _AsMeasured:
    """The unbiased counts of tables that meet known totals, as of `ProcessedCounts`."""

    release: TableRelease | Estimates
    disagreeing: ClassVar[frozenset[AttributeIndices]] = frozenset()

    def of(self, attributes: AttributeIndices) -> np.ndarray:
        names = self.release.domain.names
        (marginal,) = self.release.marginals([names[index] for index in attributes])
        return marginal.values

    def whole(self, attributes: AttributeIndices) -> np.ndarray:
        return np.rint(self.of(attributes))


def _of_several_values(domain: Domain, attributes: AttributeIndices) -> AttributeIndices:
    """The attributes that have a residual."""
    return tuple(index for index in attributes if domain.sizes[index] > 1)


def _model_errors(
    smooth_tables: SmoothTables,
    table: AttributeIndices,
    matrices: Sequence[QueryMatrix | None],
) -> np.ndarray:
    """The model-based errors of a table's cells; one NaN where these are sums of single values."""
    if any(matrix is not None for matrix in matrices):
        return np.array([np.nan])
    return smooth_tables.standard_errors(table).ravel()
