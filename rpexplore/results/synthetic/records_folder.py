"""The folder of synthetic records, and what makes it.

    synthetic_records.*     the records, one row each, as CSV and Parquet: a number, and of each
                            attribute its value as it is stored and, where it has one, its label
    comparison.*            their tables beside the released ones, one row a table, worst first
    worst_cells.*           the cells that differ most from the released ones, worst first
    manifest.json           how they were made, sources, and size and SHA-256 of every file
    README.md               the label: what these records are, and what they are not

Written as a `new_folder`; the manifest comes last.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.numbers import whole_number
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import FORMULAS_ESCAPED
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.result_schema import Column, apart_from
from rpexplore.errors import ReleaseError
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.releases.atomic_folder import check_new, check_room
from rpexplore.releases.finished_release import Release
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import file_entry, now, save_manifest
from rpexplore.releases.table_cells import for_csv, label_columns
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaResults
from rpexplore.results.measurement_source import MeasurementSource, facts_of_sources, guarantee
from rpexplore.results.processed_tables import new_tables_folder, write_readme
from rpexplore.results.synthetic.area_records import AreaRecords, synthesize_areas
from rpexplore.results.synthetic.comparison import (
    CELLS_COLUMNS,
    TABLES_COLUMNS,
    UNKNOWN,
    Comparison,
    SmoothCounts,
    compare,
)
from rpexplore.results.synthetic.exact_margins import (
    ExactMargin,
    in_order,
    with_exact_margins,
)
from rpexplore.results.synthetic.graphical_model import (
    graphical_model_records,
    require_graphical_model,
)
from rpexplore.results.synthetic.impossible import (
    Impossible,
    Never,
    condition_texts,
    conditions_of_records,
)
from rpexplore.results.synthetic.level_records import (
    records_of_cells,
    rounding_misfit,
    whole_counts,
)
from rpexplore.results.synthetic.population import population_records
from rpexplore.results.synthetic.records import (
    ADAPTIVE,
    CELLS,
    FILES,
    KEPT,
    KIND,
    LABEL,
    LEFT_OUT,
    MADE,
    NUMBER,
    RECORDS,
    TABLES,
    UNMET,
    WHOLE,
    WHOLE_LABEL,
    SyntheticRecords,
    checked_engine,
    describe_few,
    describe_kept,
    describe_left_out,
    describe_misfit,
    describe_tables,
    describe_unmet,
    describe_use,
)
from rpexplore.results.synthetic.targets import (
    MOST_RESIDUALS,
    refuse_many_values,
    smooth_counts,
    smooth_misfit,
    smooth_tables,
    smooth_targets,
)
from rpexplore.results.unbiased import Estimates

MOST_RECORDS = 10_000_000
_BYTES_PER_VALUE = 12  # about, as CSV and Parquet together
_ROWS_AT_ONCE = 1 << 17
# Shares of the work that are done by then.
_SMOOTH, _REHEARSED, _DRAWN, _COMPARED = 0.15, 0.3, 0.8, 0.95
_LISTED = 10  # tables in the README
_ENGINES = {"population": population_records, "graphical_model": graphical_model_records}


@overload
def synthesize(
    source: PartReader,
    output: str | Path,
    *,
    rows: int | None = None,
    never: Sequence[Never | str] = (),
    ignore_codebook: bool = False,
    engine: str = "population",
    escape_formulas: bool = False,
    in_areas: Literal[False] = False,
    on_progress: Progress = no_progress,
) -> SyntheticRecords: ...


@overload
def synthesize(
    source: AreaResults | TablesInAreas | Release,
    output: str | Path,
    *,
    in_areas: Literal[True],
    on_progress: Progress = no_progress,
) -> AreaRecords: ...


def synthesize(
    source: PartReader,
    output: str | Path,
    *,
    rows: int | None = None,
    never: Sequence[Never | str] = (),
    ignore_codebook: bool = False,
    engine: str = "population",
    escape_formulas: bool = False,
    in_areas: bool = False,
    on_progress: Progress = no_progress,
) -> SyntheticRecords | AreaRecords:
    """Make synthetic records from released tables; costs no privacy, as only these are looked at.

    The records follow from the release, the number of rows and what is impossible: made again, they
    are the same. Of tables with an attribute at several levels they are those of nonnegative whole
    counts, which no other option goes with.

    Args:
        source: A release with tables, its tables, or combined ones; in areas, best guesses, or a
            release with tables in areas, of which best guesses are made first.
        output: The folder to write, which must not exist yet.
        rows: How many records; as many as the smooth total says if left out.
        never: Combinations of values that no record may have, beside the impossible ones of the
            codebook: each as the selections of `answer`, {"age": "0..14", "marital_status":
            "Married"}, or as a text, "age=0..14 marital_status=Married".
        ignore_codebook: Whether records may have what the codebook states to be impossible.
        engine: What draws the records: "population", of any size, or "graphical_model", which is
            exact where few pairs of attributes are measured (extra `synthetic`).
        escape_formulas: Whether an apostrophe stands in CSV files before texts that a spreadsheet
            would take for formulas.
        in_areas: Whether one record is made for each person in every lowest area, so that counted
            again they have every whole count of the best guesses; no other option goes with it.

    Returns:
        The records that were written.

    Raises:
        ReleaseError: If no record is possible, no table has an attribute, or nothing can be
            written; in areas, for whole counts that are not best guesses, or have nobody.
        DomainError: If a combination names values that are not there.
    """
    if in_areas:
        others = (rows, tuple(never), ignore_codebook, engine, escape_formulas)
        if others != (None, (), False, "population", False):
            raise ReleaseError(
                "Records of areas are as many as the areas have people, and no option goes with "
                "them; leave rows, never, ignore_codebook, engine and escape_formulas out."
            )
        return synthesize_areas(source, output, on_progress=on_progress)
    output = Path(output)
    check_new(output)
    _check(rows, engine)
    on_progress("Reading what was measured", 0.0)
    measured = source.measured_tables()
    estimates = Estimates.of(measured, at_levels=True)
    # Of an adaptive release what was measured is unbiased, nearly.
    tables: TableRelease | Estimates = estimates if measured.is_biased else measured
    domain = estimates.domain
    attributes = tuple(sorted({index for table in estimates.tables for index in table}))
    if not attributes:
        raise ReleaseError(
            "The release has no table but the total, and records need attributes; make them of a "
            "release with tables."
        )
    if estimates.trees:
        _refuse_at_levels(rows, never, engine, ignore_codebook=ignore_codebook)
    conditions, left_out = conditions_of_records(
        domain, attributes, never, ignore_codebook=ignore_codebook
    )
    stated = {
        "attributes": [domain.names[index] for index in attributes],
        "never": [condition_texts(condition) for condition in conditions],
        **({LEFT_OUT: left_out} if left_out else {}),
        "guarantee": guarantee(estimates.sources, "records"),
    }
    if estimates.trees:
        counts = whole_counts(
            estimates, MOST_RECORDS, part_of_progress(on_progress, 0.0, _REHEARSED)
        )
        codes = records_of_cells(counts, attributes)
        codes = codes[SeededNumbers(_seed(estimates.sources)).permutation(len(codes))]
        check_room(_BYTES_PER_VALUE * len(codes) * len(attributes), output)
        on_progress("Comparing their tables with the released ones", _REHEARSED)
        comparison = compare(tables, lambda _: None, attributes, codes, len(codes), no_progress)
        made = {
            "label": WHOLE_LABEL,
            "engine": WHOLE,
            **stated,
            "excluded": [None] * len(conditions),
            "misfit": rounding_misfit(counts, counts.tables),
            "misfit_of_number": None,
            "misfit_of_noise": None,
        }
        return _written(
            output, estimates, attributes, codes, made, comparison, on_progress,
            escape_formulas=escape_formulas,
        )  # fmt: skip
    impossible = Impossible.of(domain, attributes, conditions)
    # What can be refused is refused before tables are made smooth, which takes longest.
    refuse_many_values(domain, attributes)
    if impossible.conditions:
        impossible.possible_record()
    if rows is not None:
        check_room(_BYTES_PER_VALUE * rows * len(attributes), output)
    smooth = smooth_tables(estimates, part_of_progress(on_progress, 0.0, _SMOOTH))
    # Here, where it is done once: threads that compare tables would each begin with it.
    smooth.rehearse_errors(part_of_progress(on_progress, _SMOOTH, _REHEARSED))
    targets, total = smooth_targets(estimates, smooth.contributions, attributes)
    n_records = max(round(total), 1) if rows is None else rows
    if rows is None:
        check_room(_BYTES_PER_VALUE * n_records * len(attributes), output)
    seed = _seed(estimates.sources)
    codes = _ENGINES[engine](
        targets,
        n_records,
        seed,
        impossible,
        part_of_progress(on_progress, _REHEARSED, _DRAWN),
    )
    margins = _exact_margins(estimates, attributes, n_records)
    codes = with_exact_margins(codes, margins, impossible, seed + b"exact")
    # Engines leave alike records side by side, and the first of them must be as good as any.
    codes = codes[SeededNumbers(seed + b"order").permutation(n_records)]
    if np.any(impossible.are_met(codes)):
        raise ReleaseError("A record is impossible, which must not happen; please report it.")
    comparison = compare(
        tables,
        lambda table: _smooth_table(estimates, smooth, table),
        attributes,
        codes,
        total,
        part_of_progress(on_progress, _DRAWN, _COMPARED),
    )
    fitted_to = targets.without(impossible)
    unmet = [
        (domain.names[attributes[i]], domain.attributes[attributes[i]].labels()[value], *shares)
        for i, value, *shares in fitted_to.groups_off(codes)
    ]
    names = [[domain.names[attributes[i]] for i in margin.attributes] for margin in margins]
    left = [int(np.abs(margin.missing(codes)).sum()) // 2 for margin in margins]
    made = {
        "label": LABEL,
        "engine": engine,
        **stated,
        **({UNMET: [list(group) for group in unmet]} if unmet else {}),
        **({ADAPTIVE: True} if estimates.is_adaptive else {}),
        **({KEPT: [list(pair) for pair in zip(names, left, strict=True)]} if margins else {}),
        "excluded": [targets.share_of(condition) for condition in impossible.conditions],
        "misfit": fitted_to.misfit(codes),
        "misfit_of_number": fitted_to.sampling_misfit(n_records),
        "misfit_of_noise": smooth_misfit(smooth, total),
    }
    return _written(
        output, estimates, attributes, codes, made, comparison, on_progress,
        escape_formulas=escape_formulas,
    )  # fmt: skip


def _written(
    output: Path,
    estimates: Estimates,
    attributes: AttributeIndices,
    codes: np.ndarray,
    made: Mapping[str, Any],
    comparison: Comparison,
    on_progress: Progress,
    *,
    escape_formulas: bool,
) -> SyntheticRecords:
    """The folder, with the records, how they were made, and their comparison."""
    on_progress("Writing the records", _COMPARED)
    with new_tables_folder(output) as folder:
        (folder / "tables").rmdir()
        _write_records(
            folder, estimates.domain, attributes, codes, made, escape_formulas=escape_formulas
        )
        _write_comparison(folder, comparison, escape_formulas=escape_formulas)
        files = [file_entry(folder, name) for name in FILES]
        files.append(
            _write_readme(folder, estimates, comparison, len(codes), made, escape_formulas)
        )
        spent = facts_of_sources(estimates.sources)
        facts = {"created": now(), "rows": len(codes), **made, **spent}
        manifest = save_manifest(folder, KIND, facts, files)
    on_progress("Finished", 1.0)
    return SyntheticRecords(output, MappingProxyType(manifest))


def _refuse_at_levels(
    rows: int | None, never: Sequence[Never | str], engine: str, *, ignore_codebook: bool
) -> None:
    """Raise `ReleaseError` for what records of whole counts cannot be."""
    if rows is not None or never or ignore_codebook or engine != "population":
        raise ReleaseError(
            "Where an attribute is in tables at several levels, records are those of the whole "
            "counts of these tables: as many as these say, and impossible by the codebook alone; "
            "leave out the number of records, further combinations, and the engine."
        )


def _exact_margins(
    estimates: Estimates, attributes: AttributeIndices, n_records: int
) -> list[ExactMargin]:
    """The exact totals that records can have, which are none for another number of records."""
    domain, margins = estimates.domain, []
    totals = [
        {domain.position(name) for name in names if name in domain}
        for names in (*estimates.spent.exact, *estimates.known_tables)
    ]
    # Of a total that another part of the release holds: what these tables have of it.
    within = {tuple(sorted(total & {*table})) for total in totals for table in estimates.tables}
    for table in sorted(within - {()}):
        if any(set(table) < set(other) for other in within):
            continue
        counts = np.rint(smooth_counts(estimates, estimates.contributions, table)).astype(np.int64)
        if counts.sum() == n_records:
            margins.append(ExactMargin(tuple(map(attributes.index, table)), counts))
    return in_order(margins)


def _smooth_table(
    estimates: Estimates, smooth: SmoothTables, table: AttributeIndices
) -> SmoothCounts | None:
    """A smooth table with its errors; None where only pairs were made smooth."""
    several = tuple(index for index in table if estimates.domain.sizes[index] > 1)
    if several not in smooth.contributions:
        return None
    counts = smooth_counts(estimates, smooth.contributions, table)
    return SmoothCounts(counts, smooth.standard_errors(table))


def _check(rows: int | None, engine: str) -> None:
    """Raise `ReleaseError` for what cannot be asked for."""
    if rows is not None and not 1 <= (whole_number(rows) or 0) <= MOST_RECORDS:
        raise ReleaseError(
            f"The number of records must be a whole number from 1 to {MOST_RECORDS:,}, got "
            f"{rows!r}."
        )
    if checked_engine(engine) == "graphical_model":
        require_graphical_model()


def _seed(sources: Sequence[MeasurementSource]) -> bytes:
    """What all numbers follow from: the same of the same sources, in whatever order."""
    text = " ".join(["rpexplore synthetic records", *sorted(source.sha256 for source in sources)])
    return hashlib.sha256(text.encode()).digest()


def _write_records(
    folder: Path,
    domain: Domain,
    attributes: AttributeIndices,
    codes: np.ndarray,
    made: Mapping[str, Any],
    *,
    escape_formulas: bool,
) -> None:
    """Write the records as CSV and Parquet, whose metadata say how they were made."""
    pieces = _pieces(domain, attributes, codes, made)
    first = next(pieces)
    csv_schema = for_csv(first.slice(0, 0), escape_formulas=escape_formulas).schema
    with (
        pyarrow.parquet.ParquetWriter(folder / f"{RECORDS}.parquet", first.schema) as to_parquet,
        pyarrow.csv.CSVWriter(folder / f"{RECORDS}.csv", csv_schema) as to_csv,
    ):
        for piece in chain([first], pieces):
            to_parquet.write_table(piece)
            to_csv.write_table(for_csv(piece, escape_formulas=escape_formulas))


def _pieces(
    domain: Domain, attributes: AttributeIndices, codes: np.ndarray, made: Mapping[str, Any]
) -> Iterator[pa.Table]:
    """The records as rows with a number, codes and labels."""
    columns = [label_columns(domain.attributes[index]) for index in attributes]
    number = Column(NUMBER, "value", "The number of the record.")
    of_values = [column for named in columns for column, _ in named]
    names = [NUMBER, *(column.name for column in apart_from(of_values, [number]))]
    metadata = {MADE: json.dumps(made, ensure_ascii=False).encode()}
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        chunk = codes[start : start + _ROWS_AT_ONCE].astype(np.int32)
        arrays: list[pa.Array] = [pa.array(np.arange(start + 1, start + len(chunk) + 1))]
        for i, named in enumerate(columns):
            indices = pa.array(chunk[:, i])
            arrays += [pa.DictionaryArray.from_arrays(indices, texts) for _, texts in named]
        yield pa.table(arrays, names=names).replace_schema_metadata(metadata)


def _write_comparison(folder: Path, comparison: Comparison, *, escape_formulas: bool) -> None:
    kinds = (
        (TABLES, comparison.tables, TABLES_COLUMNS),
        (CELLS, comparison.cells, CELLS_COLUMNS),
    )
    for name, frame, columns in kinds:
        schema = pa.schema(list(columns.items()))
        table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        pyarrow.parquet.write_table(table.replace_schema_metadata(), folder / f"{name}.parquet")
        pyarrow.csv.write_csv(
            for_csv(table, escape_formulas=escape_formulas), folder / f"{name}.csv"
        )


def _write_readme(
    folder: Path,
    estimates: Estimates,
    comparison: Comparison,
    n_records: int,
    made: Mapping[str, Any],
    escape_formulas: bool,
) -> dict[str, Any]:
    """Write the label page; what the manifest says of it."""
    tables = comparison.tables
    n_cells, n_outside = (
        int(tables[column].to_numpy().sum()) for column in ("cells", "cells_outside_interval")
    )
    return write_readme(
        folder,
        "synthetic.md.j2",
        estimates.sources,
        made["label"],
        guarantee=estimates.guarantee,
        **{
            "made": made,
            "is_whole": made["engine"] == WHOLE,
            "misfit": describe_misfit(made),
            "few": describe_few(made),
            "left_out": describe_left_out(made),
            "unmet": describe_unmet(made),
            "kept": describe_kept(made),
            "n_records": n_records,
            "is_of_pairs": len(estimates.contributions) > MOST_RESIDUALS,
            "worst": list(tables.head(_LISTED).itertuples(index=False)),
            "n_tables": len(tables),
            "use": describe_use(tables["nearer"].tolist(), is_adaptive=estimates.is_adaptive),
            "tables_to_use": describe_tables(is_adaptive=estimates.is_adaptive),
            "kind": "measured" if estimates.is_adaptive else "released",
            "has_unknown": UNKNOWN in tables["nearer"].tolist(),
            "outside": n_outside / n_cells,
            "formulas": f" {FORMULAS_ESCAPED}" if escape_formulas else "",
        },
    )
