"""The folder of combined tables: like a release's, without a plan.

    tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell
    estimates.json          domain, tables, and of each residual its attributes and exact σ²
    contributions.parquet   the contribution of each residual (residual: its place in the list of
                            estimates.json; cell: row-major; contribution: centred, float64)
    manifest.json           label, sources, guarantee, and size and SHA-256 of every file
    README.md               how to read all this

Written as a `new_folder`; the manifest comes last.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.common.csv_text import FORMULAS_ESCAPED
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.json_fields import text_of
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.estimation.array_store import ArrayStore
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import (
    SPENT,
    MeasurementSource,
    facts_as_worded,
    facts_of_sources,
)
from rpexplore.postprocessing.processed_tables import KIND as PROCESSED
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.postprocessing.stored_arrays import read_arrays, write_arrays
from rpexplore.postprocessing.synthetic.records import KIND as SYNTHETIC
from rpexplore.postprocessing.synthetic.records import SyntheticRecords
from rpexplore.postprocessing.table_writing import new_tables_folder, write_readme, write_tables
from rpexplore.releases.atomic_folder import check_room
from rpexplore.releases.finished_release import Release
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import (
    check_facts,
    check_listed,
    checked_folder,
    file_entry,
    not_as_written,
    now,
    read_manifest,
    save_manifest,
)
from rpexplore.releases.table_files import BYTES_PER_CELL, files_of_tables
from rpexplore.releases.table_release import TableRelease

KIND = ("rpexplore-combined", 2)

_NOUN = "combined tables"
_FACTS = (
    "finished", "label", "privacy_unit", "guarantee", *SPENT,
)  # fmt: skip
_ESTIMATES, _CONTRIBUTIONS = "estimates.json", "contributions.parquet"


def write_combined(
    estimates: Estimates,
    output: str | Path,
    *,
    escape_formulas: bool = False,
    on_progress: Progress = no_progress,
) -> None:
    """Write the folder `output`, which must not exist yet; complete or not at all.

    escape_formulas: whether no text in CSV files begins as formulas of spreadsheets do

    Raises `ReleaseError` for what cannot be written.
    """
    output = Path(output)
    check_room(BYTES_PER_CELL * estimates.n_cells, output)
    tables = estimates.table_names
    formulas = f" {FORMULAS_ESCAPED}" if escape_formulas else ""
    with new_tables_folder(output) as folder:
        on_progress("Writing what the tables come from", 0.0)
        _write_estimates(estimates, folder)
        files = [file_entry(folder, name) for name in (_ESTIMATES, _CONTRIBUTIONS)]
        files += write_tables(
            folder,
            tables,
            lambda position: estimates.cells(tables[position]),
            on_progress,
            escape_formulas=escape_formulas,
        )
        files.append(
            write_readme(folder, "combined.md.j2", estimates, estimates.label, formulas=formulas)
        )
        save_manifest(folder, KIND, {"finished": now(), **_facts_of(estimates)}, files)
    on_progress("Finished", 1.0)


def load_combined(folder: str | Path) -> Estimates:
    """Open a folder that `write_combined` has made.

    Raises `ReleaseError` if it is not one or a file was changed.
    """
    folder = Path(folder)
    manifest = checked_folder(folder, KIND, _NOUN, _FACTS)
    try:
        if not {_ESTIMATES, _CONTRIBUTIONS} <= {entry["path"] for entry in manifest["files"]}:
            raise KeyError
        sources = tuple(MeasurementSource.from_json(source) for source in manifest["sources"])
        estimates = _read_estimates(folder, sources)
        facts = {**_facts_of(estimates), **facts_as_worded(manifest)}
        facts["label"] = text_of(manifest, "label")
    except ReleaseError:
        raise
    except (
        RpexploreError,
        OSError,
        ArithmeticError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):
        raise not_as_written(folder, _NOUN, f"{_ESTIMATES} has not what it must have") from None
    files = {_ESTIMATES: None, _CONTRIBUTIONS: None, **files_of_tables(estimates.table_names)}
    check_facts(folder, manifest, facts, _NOUN)
    check_listed(folder, manifest, files, _NOUN)
    return estimates


def load_unbiased(folder: str | Path) -> TableRelease | Estimates:
    """What a folder holds, a release of tables or combined ones; `ReleaseError` if neither."""
    return _load(folder).unbiased_tables()


def load_measured(folder: str | Path) -> TableRelease | Estimates:
    """`load_unbiased`, or all that an adaptive release measured: for what is biased in any case."""
    tables = _load(folder).measured_tables()
    return Estimates.of(tables) if tables.is_biased else tables


def _load(folder: str | Path) -> PartReader:
    """A release or combined tables; `ReleaseError` for what was made of them, or anything else."""
    folder = Path(folder)
    kind = read_manifest(folder).get("format")
    if kind in (PROCESSED[0], SYNTHETIC[0]):
        is_processed = kind == PROCESSED[0]
        held = "processed tables" if is_processed else "synthetic records"
        loaded = (ProcessedTables if is_processed else SyntheticRecords).load(folder)
        names = ", ".join(source["name"] for source in loaded.manifest["sources"])
        raise ReleaseError(
            f"{str(folder)!r} holds {held}, and unbiased tables are needed; name the release that "
            f"they were made of ({names})."
        )
    return load_combined(folder) if kind == KIND[0] else Release.load(folder)


def _facts_of(estimates: Estimates) -> dict[str, Any]:
    """What a manifest says of combined tables."""
    return {
        "label": estimates.label,
        "privacy_unit": estimates.spent.unit,
        "guarantee": estimates.guarantee,
        **facts_of_sources(estimates.sources),
    }


def _write_estimates(estimates: Estimates, folder: Path) -> None:
    names = estimates.domain.names
    content = {
        "domain": estimates.domain.to_schema(),
        "tables": estimates.table_names,
        "strategies": [
            {
                "attribute": names[attribute],
                "bits": strategy.bits,
                "matrix": strategy.integers.tolist(),
            }
            for attribute, strategy in sorted(estimates.strategies.items())
        ],
        "residuals": [
            {
                "attributes": [names[attribute] for attribute in subset],
                "sigma_squared": exact_text(estimates.variances[subset]),
            }
            for subset in estimates.contributions
        ],
    }
    text = json.dumps(content, ensure_ascii=False)
    (folder / _ESTIMATES).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    write_arrays(folder / _CONTRIBUTIONS, "contribution", estimates.contributions.values())


def _read_estimates(folder: Path, sources: tuple[MeasurementSource, ...]) -> Estimates:
    content = json.loads((folder / _ESTIMATES).read_text(encoding="utf-8"))
    domain = Domain.from_schema(content["domain"])
    residuals = content["residuals"]
    subsets = [domain.positions(residual["attributes"]) for residual in residuals]
    shapes = [tuple(domain.sizes[list(subset)].tolist()) for subset in subsets]
    arrays = read_arrays(folder / _CONTRIBUTIONS, "contribution", shapes, np.float64)
    sigma_squared = [Fraction(residual["sigma_squared"]) for residual in residuals]
    return Estimates(
        domain,
        tuple(domain.positions(table) for table in content["tables"]),
        ArrayStore(zip(subsets, arrays, strict=True)),
        dict(zip(subsets, sigma_squared, strict=True)),
        {
            domain.position(strategy["attribute"]): Strategy(
                np.array(strategy["matrix"]), strategy["bits"]
            )
            for strategy in content["strategies"]
        },
        sources,
    )
