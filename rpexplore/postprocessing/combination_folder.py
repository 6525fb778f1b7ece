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
import os
import platform
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.concurrency import Progress, in_order, no_progress
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import rounded
from rpexplore.domain.codebook import attributes_from_schema, schema_from_attributes
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import MeasurementSource
from rpexplore.postprocessing.stored_arrays import read_arrays, write_arrays
from rpexplore.releases.atomic_folder import check_new, check_room, new_folder
from rpexplore.releases.manifest import CONFIDENCE, file_entry
from rpexplore.releases.table_cells import write_cells
from rpexplore.releases.table_folder import BYTES_PER_CELL, Release, table_path

KIND = ("rpexplore-combined", 1)

_CONTRIBUTIONS = "contributions.parquet"
_MANIFEST = "manifest.json"

_README = """# Noisy tables, {label}

{guarantee}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the noisy count. Unbiased; not rounded; may be negative. Tables agree with each other:
  cells add up to the totals of smaller tables.
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `lower_95`, `upper_95`: an interval that contains the true count 95 % of the time (about that
  where the standard error is below 2, because noise on counts comes in whole steps).

What was measured more than once was averaged, with weights by accuracy (one over the variance). So
a cell is at least as accurate here as in any of the sources, and its value differs from theirs:
publish one of them, or say which is which. Attributes are asked by each value, however the
sources' tables ask them; ranges, groups and other sums are answered in Python by
`rpexplore.postprocessing.combination_folder.load_combined(folder).answer(where=...)`, with exact
standard errors.

## Sources

{sources}

All of them have to be of the same records; no file can show that.{stated}

`estimates.json` and `contributions.parquet` hold what the tables were computed from, so that more
can be combined with it. `manifest.json` lists sources, versions and the SHA-256 of every file.
"""

_STATED_VARIANCE = """ The variance of a noisy marginal is what whoever
combined them stated, and the standard errors are right if it is."""


def write_combined(
    estimates: Estimates,
    output: str | Path,
    *,
    on_progress: Progress = no_progress,
) -> None:
    """Write the folder `output`, which must not exist yet; complete or not at all.

    Raises `ReleaseError` for what cannot be written.
    """
    output = Path(output)
    check_new(output)
    sizes = estimates.domain.sizes.tolist()
    cells = sum(prod(sizes[attribute] for attribute in table) for table in estimates.tables)
    check_room(BYTES_PER_CELL * float(cells), output)
    try:
        with new_folder(output) as folder:
            on_progress("Writing what the tables come from", 0.0)
            _write_estimates(estimates, folder)
            files = [file_entry(folder, name) for name in ("estimates.json", _CONTRIBUTIONS)]
            (folder / "tables").mkdir()
            count = len(estimates.tables)
            write = partial(_write_table, estimates, folder)
            with closing(in_order(write, range(count))) as written:
                for position, entries in enumerate(written):
                    files += entries
                    if position % 16 == 0:
                        on_progress("Writing the tables", position / count)
            (folder / "README.md").write_text(_readme(estimates), encoding="utf-8", newline="\n")
            files.append(file_entry(folder, "README.md"))
            _write_manifest(estimates, folder, files)
    except OSError as error:
        raise ReleaseError(
            f"The tables could not be written to {str(output)!r} ({error.strerror or error}) and "
            "nothing of them was left; make room, or choose another folder."
        ) from None
    on_progress("Finished", 1.0)


def load_combined(folder: str | Path) -> Estimates:
    """Open a folder that `write_combined` has made.

    Raises `ReleaseError` if it is not one or a file was changed.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    kind = manifest.get("format"), manifest.get("format_version")
    if kind != KIND:
        raise ReleaseError(
            f"{str(folder)!r} does not hold combined tables that can be read here (format "
            f"{kind[0]!r}, version {kind[1]!r}; it must be {KIND[0]!r}, version {KIND[1]})."
        )
    try:
        entries = {entry["path"]: entry for entry in manifest["files"]}
        for path in {"estimates.json", _CONTRIBUTIONS, *entries}:
            _refuse_changed(folder, path, entries[path])
        sources = tuple(MeasurementSource.from_json(source) for source in manifest["sources"])
        return _read_estimates(folder, sources)
    except ReleaseError:
        raise
    except (RpexploreError, OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ReleaseError(
            f"{str(folder)!r} does not hold combined tables as they are written; use the original "
            "folder."
        ) from None


def load_unbiased(folder: str | Path) -> Release | Estimates:
    """What a folder holds, a release or combined tables; `ReleaseError` if neither."""
    folder = Path(folder)
    if _manifest(folder).get("format") == KIND[0]:
        return load_combined(folder)
    return Release.load(folder)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise ReleaseError(
            f"{str(folder)!r} is not a finished release: it has no readable {_MANIFEST}."
        )
    return manifest


def _refuse_changed(folder: Path, path: str, entry: Mapping[str, Any]) -> None:
    """Raise `ReleaseError` unless the file is as the manifest has it."""
    try:
        actual = file_entry(folder, path)
    except OSError:
        actual = None
    if actual != {key: entry[key] for key in ("path", "bytes", "sha256")}:
        raise ReleaseError(
            f"The file {path!r} of {str(folder)!r} is missing or was changed since; restore it, or "
            "use the original folder."
        )


def _write_table(estimates: Estimates, folder: Path, position: int) -> list[dict[str, Any]]:
    """Write one table, and return what the manifest says of its files."""
    names = [estimates.domain.names[attribute] for attribute in estimates.tables[position]]
    path = table_path(position, names)
    write_cells(folder / path, iter([estimates.cells(names)]))
    endings = (".parquet", ".csv")
    return [file_entry(folder, f"{path}{ending}", attributes=names) for ending in endings]


def _write_estimates(estimates: Estimates, folder: Path) -> None:
    names = estimates.domain.names
    content = {
        "domain": schema_from_attributes(estimates.domain.attributes),
        "tables": [[names[attribute] for attribute in table] for table in estimates.tables],
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
    (folder / "estimates.json").write_text(f"{text}\n", encoding="utf-8", newline="\n")
    write_arrays(folder / _CONTRIBUTIONS, "contribution", estimates.contributions.values())


def _read_estimates(folder: Path, sources: tuple[MeasurementSource, ...]) -> Estimates:
    content = json.loads((folder / "estimates.json").read_text(encoding="utf-8"))
    domain = Domain(tuple(attributes_from_schema(content["domain"])))
    residuals = content["residuals"]
    subsets = [domain.positions(residual["attributes"]) for residual in residuals]
    shapes = [tuple(domain.sizes[list(subset)].tolist()) for subset in subsets]
    arrays = read_arrays(folder / _CONTRIBUTIONS, "contribution", shapes, np.float64)
    sigma_squared = [Fraction(residual["sigma_squared"]) for residual in residuals]
    return Estimates(
        domain,
        tuple(domain.positions(table) for table in content["tables"]),
        dict(zip(subsets, arrays, strict=True)),
        dict(zip(subsets, sigma_squared, strict=True)),
        {
            domain.position(strategy["attribute"]): Strategy(
                np.array(strategy["matrix"]), strategy["bits"]
            )
            for strategy in content["strategies"]
        },
        sources,
    )


def _readme(estimates: Estimates) -> str:
    """The text of README.md."""
    marginals = any(not source.is_release for source in estimates.sources)
    return _README.format(
        label=estimates.label,
        guarantee=estimates.guarantee,
        sources="\n".join(f"- {_source_line(source)}" for source in estimates.sources),
        stated=_STATED_VARIANCE if marginals else "",
    )


def _source_line(source: MeasurementSource) -> str:
    """ "`first`: release by the plan 0a1b…, ρ = 0.5 for one record"."""
    kind = f"release by the plan {source.plan_sha256}" if source.is_release else "noisy marginal"
    if source.rho is None:
        return f"`{source.name}`: {kind}, ρ not stated"
    return f"`{source.name}`: {kind}, ρ = {rounded(source.rho, 6, 'up')} for {source.unit}"


def _write_manifest(estimates: Estimates, folder: Path, files: list[dict[str, Any]]) -> None:
    spent = estimates.spent
    manifest = {
        "format": KIND[0],
        "format_version": KIND[1],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "label": estimates.label,
        "rho": exact_text(spent.rho),
        "rho_is_known": spent.is_known,
        "privacy_unit": spent.unit,
        "guarantee": estimates.guarantee,
        "interval_confidence": CONFIDENCE,
        "sources": [source.to_json() for source in estimates.sources],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rpexplore", "numpy", "pyarrow")},
        },
        "files": files,
    }
    with (folder / _MANIFEST).open("w", encoding="utf-8", newline="\n") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
