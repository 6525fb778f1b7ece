"""The folder of processed tables: nonnegative or whole, with the unbiased answers beside.

    tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell (an answer): its labels,
                            value (processed), the unbiased value with its standard error and
                            interval, and what was done, in words
    manifest.json           what was done, the gap, sources, size and SHA-256 of every file
    README.md               how to read all this

What was done is also in the metadata of every Parquet file. Written as a `new_folder`; the manifest
comes last.
"""

import json
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rpexplore.common.concurrency import Progress, in_order, no_progress
from rpexplore.common.formatting import describe_share
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import answers, asked_by, marginal
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.nonnegative import GAP, Nonnegative
from rpexplore.postprocessing.nonnegative import nonnegative as nearest_nonnegative
from rpexplore.postprocessing.processed_tables import KIND, ProcessedTables
from rpexplore.postprocessing.rounding import rounded as whole_numbers
from rpexplore.postprocessing.table_map import ContributionArrays, subsets
from rpexplore.releases.atomic_folder import check_new, check_room, new_folder
from rpexplore.releases.manifest import CONFIDENCE, file_entry
from rpexplore.releases.table_cells import ESTIMATES, write_cells
from rpexplore.releases.table_folder import Release, table_path
from rpexplore.workload.query_matrix import QueryMatrix

_BYTES_PER_CELL = 230  # about, as CSV and Parquet together
_SEARCHED = 0.7  # share of the work that is done when the tables are nonnegative

_README = """# Processed tables: {label}

**The column `value` is biased, and the intervals are not its own.** It was made of the noisy tables
of a release, without looking at any records:
{done}
{guarantee}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the processed count. No standard error of it is known.
- `unbiased_value`: the noisy count as it was released. Right on average; it may be negative.
- `standard_error`: of `unbiased_value`, for the privacy noise alone.
- `lower_95`, `upper_95`: an interval around `unbiased_value` that contains the true count 95 % of
  the time (about that where the standard error is below 2). `value` may lie outside.
- `value_is`: what `value` is, in words, so that a row that is copied out still says it.

Use `value` where a table is shown or has to be possible as a table of counts. Use `unbiased_value`
where cells are added up, compared or analysed further: the biases of many cells add up, too.

## Sources

{sources}

`manifest.json` lists what was done, the sources, versions and the SHA-256 of every file.
"""

_NONNEGATIVE = """
- No cell is negative, and all tables still agree: cells add up to the totals of smaller tables. The
  total is the noisy one. Of all tables like that these are the nearest to the noisy ones: of their
  squared distance at most {share} is avoidable. Cells near 0 are too large on average,
  large cells too small.
"""

_ROUNDED = """
- Cells are whole numbers; each moved by less than 1 (of an attribute that is asked in sums, each
  count of a single value did). All tables have the same total, and the totals for the first
  attributes of a table are those of the table of these attributes alone. Totals over other
  attributes can differ from table to table, by rounding. The rounding is not random: small cells
  may go to 0 together.
"""


def postprocess(
    source: Release | Estimates,
    output: str | Path,
    *,
    nonnegative: bool,
    rounded: bool,
    gap: float = GAP,
    on_progress: Progress = no_progress,
) -> ProcessedTables:
    """Write the folder `output`, which must not exist yet, and return its tables.

    nonnegative  no cell is below 0, all tables still agree, and the total is kept
                 (`nonnegative`, up to `gap`)
    rounded      cells are whole numbers (`rounding`); with attributes that
                 are asked in sums, the counts of their single values are, before they are summed

    Raises `ReleaseError` if neither is wanted, for a gap that cannot be, or for what cannot be
    written. Costs no privacy: only what was released is looked at.
    """
    if not (nonnegative or rounded):
        raise ReleaseError("Nothing to do to the tables: ask for nonnegative or whole numbers.")
    output = Path(output)
    check_new(output)
    tables = _Tables.of(source)
    check_room(_BYTES_PER_CELL * tables.cells, output)
    on_progress("Reading what was measured", 0.0)
    estimates = source if isinstance(source, Estimates) else Estimates.of(source)
    projection = None
    contributions = estimates.contributions
    if nonnegative:
        projection = nearest_nonnegative(
            contributions,
            estimates.domain.sizes,
            estimates.strategies,
            gap=gap,
            on_progress=lambda share, gap: on_progress(
                f"Making the tables nonnegative (gap {gap:.1g})", _SEARCHED * share
            ),
        )
        contributions = projection.contributions
    writer = _Writer(estimates, contributions, nonnegative, rounded)
    done = _SEARCHED if nonnegative else 0.0
    try:
        with new_folder(output) as folder:
            (folder / "tables").mkdir()
            files = []
            count = len(tables.attribute_indices)
            write = partial(writer.write_table, tables, folder)
            with closing(in_order(write, range(count))) as written:
                for position, entries in enumerate(written):
                    files += entries
                    if position % 16 == 0:
                        on_progress("Writing the tables", done + (1 - done) * position / count)
            text = _readme(estimates, writer.label, rounded, projection)
            (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
            files.append(file_entry(folder, "README.md"))
            manifest = _manifest(estimates, writer.label, nonnegative, rounded, projection, files)
            _write_manifest(folder, manifest)
    except OSError as error:
        raise ReleaseError(
            f"The tables could not be written to {str(output)!r} ({error.strerror or error}) and "
            "nothing of them was left; make room, or choose another folder."
        ) from None
    on_progress("Finished", 1.0)
    return ProcessedTables(output, MappingProxyType(manifest))


@dataclass(frozen=True, eq=False)
class _Tables:
    """The tables of a source, with the queries that are asked about each.

    attribute_indices  of each table
    query_matrices     of each table, of each axis; None: single values
    paths              where each lies in a folder, without ending
    cells              of all together
    unbiased           each as rows of labels, value, error and interval
    """

    attribute_indices: Sequence[AttributeIndices]
    query_matrices: Sequence[Sequence[QueryMatrix | None]]
    paths: Sequence[str]
    cells: float
    unbiased: Callable[[int], pa.Table]

    @classmethod
    def of(cls, source: Release | Estimates) -> "_Tables":
        if isinstance(source, Estimates):
            sizes = source.domain.sizes.astype(float)
            names = source.domain.names
            named = [[names[attribute] for attribute in table] for table in source.tables]
            return cls(
                source.tables,
                [[None] * len(table) for table in source.tables],
                [table_path(position, table) for position, table in enumerate(named)],
                float(sum(np.prod(sizes[list(table)]) for table in source.tables)),
                lambda position: source.cells(named[position]),
            )
        workload = source.plan.workload
        matrices = asked_by(workload)
        tables = [tuple(workload.attribute_indices(position)) for position in range(len(workload))]
        paths = [table_path(position, names) for position, names in enumerate(workload.tables)]
        return cls(
            tables,
            [
                [matrices[i] for i in workload.attribute_basis_index[position, : len(table)]]
                for position, table in enumerate(tables)
            ],
            paths,
            float(np.sum(workload.cells)),
            lambda position: pyarrow.parquet.read_table(
                source.folder / f"{paths[position]}.parquet"
            ),
        )


class _Writer:
    """Writes processed tables."""

    def __init__(
        self,
        estimates: Estimates,
        contributions: ContributionArrays,
        nonnegative: bool,
        rounded: bool,
    ) -> None:
        self._estimates, self._contributions = estimates, contributions
        self._nonnegative, self._rounded = nonnegative, rounded
        self.label = _label(nonnegative, rounded)

    def write_table(self, tables: _Tables, folder: Path, position: int) -> list[dict[str, Any]]:
        """Write a table, and return what the manifest says of its files."""
        table = tables.attribute_indices[position]
        values = answers(self._counts(table), tables.query_matrices[position])
        cells = _beside(tables.unbiased(position), values.ravel(), self.label)
        path = tables.paths[position]
        write_cells(folder / path, iter([cells]))
        names = [self._estimates.domain.names[attribute] for attribute in table]
        endings = (".parquet", ".csv")
        return [file_entry(folder, f"{path}{ending}", attributes=names) for ending in endings]

    def _counts(self, table: AttributeIndices) -> np.ndarray:
        """The processed counts of the single values, one axis an attribute."""
        if not self._rounded:
            return self._marginal(table)
        return whole_numbers([self._marginal(table[:i]) for i in range(len(table) + 1)])

    def _marginal(self, table: AttributeIndices) -> np.ndarray:
        sizes = self._estimates.domain.sizes
        several = [attribute for attribute in table if sizes[attribute] > 1]
        within = {subset: self._contributions[subset] for subset in subsets(tuple(several))}
        values = marginal(table, sizes, within, self._estimates.strategies)
        # Sums of nonnegative tables, computed from contributions, are below 0 by rounding at most.
        return np.maximum(values, 0.0) if self._nonnegative else values


def _beside(unbiased: pa.Table, values: np.ndarray, label: str) -> pa.Table:
    """The processed values before the unbiased answers, and what they are behind all."""
    # By position: an attribute may bear any name, and the last columns are the estimates.
    n_labels = unbiased.num_columns - len(ESTIMATES)
    names = [*unbiased.column_names[:n_labels]]
    taken = ["unbiased_value", "value_is"]
    names = [f"{name} (attribute)" if name in taken else name for name in names]
    columns = unbiased.columns
    what = pa.DictionaryArray.from_arrays(np.zeros(len(values), dtype=np.int32), pa.array([label]))
    made = pa.table(
        [*columns[:n_labels], pa.array(values), *columns[n_labels:], what],
        names=[*names, "value", "unbiased_value", *ESTIMATES[1:], "value_is"],
    )
    return made.replace_schema_metadata({"rpexplore": label})


def _label(nonnegative: bool, rounded: bool) -> str:
    """What was done to the tables, in words that go with them wherever they go."""
    done = ["nonnegative and consistent"] if nonnegative else []
    done += ["rounded to whole numbers"] if rounded else []
    return f"{', then '.join(done)}; biased; intervals are those of the unbiased answers"


def _readme(estimates: Estimates, label: str, rounded: bool, projection: Nonnegative | None) -> str:
    """The text of README.md; projection: what made the tables nonnegative, if anything did."""
    done = "" if projection is None else _NONNEGATIVE.format(share=describe_share(projection.gap))
    if rounded:
        done += _ROUNDED
    sources = [
        f"- `{source.name}`"
        + (f": release by the plan {source.plan_sha256}" if source.is_release else "")
        for source in estimates.sources
    ]
    return _README.format(
        label=label, done=done, guarantee=estimates.guarantee, sources="\n".join(sources)
    )


def _manifest(
    estimates: Estimates,
    label: str,
    nonnegative: bool,
    rounded: bool,
    projection: Nonnegative | None,
    files: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "format": KIND[0],
        "format_version": KIND[1],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "label": label,
        "nonnegative": nonnegative,
        "rounded": rounded,
        "gap": None if projection is None else projection.gap,
        "rounds": None if projection is None else projection.rounds,
        "guarantee": estimates.guarantee,
        "sources": [source.to_json() for source in estimates.sources],
        "interval_confidence": CONFIDENCE,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rpexplore", "numpy", "pyarrow")},
        },
        "files": list(files),
    }


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    with (folder / "manifest.json").open("w", encoding="utf-8", newline="\n") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
