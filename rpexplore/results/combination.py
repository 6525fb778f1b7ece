"""Combining: several releases and noisy marginals of the same records into one set of tables.

The contributions of several sources to one residual are averaged with weights 1/σ²_k, which is
generalised least squares on everything at once (GReM-MLE, ReM §3.2; docs/mathematics.md §10). What
one source alone measured is kept.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.json_fields import text_of
from rpexplore.common.numbers import exact_text
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import FORMULAS_ESCAPED, text_of_path
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeIndices, Domain, difference_of_cells
from rpexplore.errors import LedgerError, ReleaseError, RpexploreError
from rpexplore.estimation.table_map import ArrayStore
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.releases.atomic_folder import check_room
from rpexplore.releases.finished_release import Release
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import (
    check_facts,
    check_listed,
    checked_folder,
    file_entry,
    manifest_sha256,
    not_as_written,
    now,
    read_manifest,
    save_manifest,
)
from rpexplore.releases.table_cells import BYTES_PER_CELL, files_of_tables
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.measurement_source import (
    SPENT,
    MeasurementSource,
    facts_as_worded,
    facts_of_sources,
    refuse_unlike,
)
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.processed_tables import KIND as PROCESSED
from rpexplore.results.processed_tables import (
    ProcessedTables,
    new_tables_folder,
    write_readme,
    write_tables,
)
from rpexplore.results.synthetic.records import KIND as SYNTHETIC
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.unbiased import Estimates, read_arrays, write_arrays

if TYPE_CHECKING:
    from rpexplore.releases.ledger.account import LedgerEntry
    from rpexplore.releases.ledger.ledger import Ledger

_MANY_CELLS = 16  # of two different tables are hardly ever all within a half of each other
_CHANCE = 1e-6  # that other counts are alike: less is no chance
_ALIKE = 0.01  # variances, relative: people round them


# ---- Whether releases are of the same records, as far as a ledger knows them.
#
# A finished run is known by the manifest that it wrote. One of which only the start is noted is
# known by its plan and the folder it was written to; if that was moved or renamed since, by its
# last name, and else it may be every such run of the plan.


@dataclass(frozen=True)
class ReleaseId:
    """What a release is known by: its plan, its manifest, and its folder or the last name of it."""

    plan_sha256: str
    manifest_sha256: str
    folder: str


def refuse_other_records(ledger: str | Path, releases: Sequence[ReleaseId]) -> None:
    """Raise `ReleaseError` if the ledger knows two of the releases, and by different records.

    What it does not know, or cannot tell apart, is passed over; but if it has only finished runs of
    a plan, one of them must have written the manifest. Raises `LedgerError` if there is no ledger
    that can be read.
    """
    from rpexplore.releases.ledger.ledger import Ledger  # which a planning server never loads

    booked = _booked(Ledger(ledger))
    known = [(each, records) for each in releases if (records := _records_of(each, booked, ledger))]
    for (left, left_records), (right, right_records) in combinations(known, 2):
        if left_records.isdisjoint(right_records):
            raise ReleaseError(
                f"By the ledger the releases {Path(left.folder).name!r} and "
                f"{Path(right.folder).name!r} are of different records, {min(left_records)!r} and "
                f"{min(right_records)!r}; only releases of the same records can be combined."
            )


def _records_of(
    release: ReleaseId, booked: "Sequence[tuple[str, LedgerEntry]]", ledger: str | Path
) -> set[str]:
    """The records that a release may be of; none if the ledger does not know it."""
    of_plan = [each for each in booked if each[1].plan_sha256 == release.plan_sha256]
    for wanted in (release.manifest_sha256, ""):
        entries = [each for each in of_plan if each[1].manifest_sha256 == wanted]
        if entries:
            break
    else:
        if not of_plan:
            return set()
        raise ReleaseError(
            f"The manifest of {Path(release.folder).name!r} is none that the ledger "
            f"{str(ledger)!r} holds for runs of its plan; use the original folder, or name the "
            "ledger of its run."
        )
    here = {records for records, entry in entries if entry.output == release.folder}
    name = Path(release.folder).name
    moved = {records for records, entry in entries if Path(entry.output).name == name}
    return here or moved or {records for records, _ in entries}


def _booked(ledger: "Ledger") -> "list[tuple[str, LedgerEntry]]":
    """Every run, behind its records: the dataset, and its state where it is known."""
    if ledger.path is not None and not ledger.path.is_file():
        raise LedgerError(f"There is no ledger at {ledger.name!r}; check the path.")
    booked = []
    for account in ledger.accounts():
        for entry in account.entries:
            records = account.dataset
            if entry.data_modified:
                records += f" as of {entry.data_modified} ({entry.data_bytes:,} bytes)"
            booked.append((records, entry))
    return booked


# ---- Combining


def combine(
    *parts: PartReader,
    noisy: Iterable[NoisyMarginal] = (),
    ledger: str | Path | None = None,
) -> Estimates:
    """The most accurate unbiased estimates of all tables of the parts.

    Spends nothing; what the parts spent adds up. All parts are in memory at once, 8 bytes a number.

    Args:
        parts: Releases with tables and combined ones, all of the same records: nothing in them can
            show it, the caller answers for it.
        noisy: Noisy marginals of these records from elsewhere.
        ledger: Where the runs are booked; those that it knows by different records are refused.

    Raises:
        ReleaseError: If parts have different domains, hold the same measurements, count
            out-of-codebook values differently, or measure an attribute by different strategies.
        LedgerError: If the ledger cannot be read.
    """
    marginals = list(noisy)
    if not parts and not marginals:
        raise ReleaseError("There is nothing to combine; name a release.")
    parts = tuple(part.unbiased_tables() for part in parts)
    if ledger is not None:
        refuse_other_records(ledger, [each for part in parts for each in _release_ids(part)])
    estimates = [Estimates.of(part) for part in parts]
    for marginal in marginals:
        _refuse_own_table(estimates, marginal)
    estimates += [marginal.estimates() for marginal in marginals]
    sources = tuple(source for part in estimates for source in part.sources)
    refuse_unlike(sources)
    first, *others = estimates
    for part in others:
        if difference := difference_of_cells(first.domain, part.domain):
            raise ReleaseError(
                f"{first.sources[0].name!r} and {part.sources[0].name!r} {difference}; combine "
                "only what was planned with the same codebook."
            )
    strategies = _common_strategies(estimates)
    # Σ 1/σ² of each residual, exact.
    precisions: defaultdict[AttributeIndices, Fraction] = defaultdict(Fraction)
    for part in estimates:
        for subset, variance in part.variances.items():
            precisions[subset] += 1 / variance
    return Estimates(
        _domain_of_all(estimates),
        tuple(table for part in estimates for table in part.tables),
        ArrayStore(
            (subset, _mean(subset, precision, estimates))
            for subset, precision in precisions.items()
        ),
        {subset: 1 / precision for subset, precision in precisions.items()},
        strategies,
        sources,
    )


def _domain_of_all(parts: Sequence[Estimates]) -> Domain:
    """The first part's domain, with what any part states to be impossible.

    Left out is what would not mean the same there, by other labels or groups.
    """
    domain = parts[0].domain
    stated = [
        combination
        for part in parts
        for combination in part.domain.impossible
        if all(_meaning(part.domain[name]) == _meaning(domain[name]) for name in combination.names)
    ]
    return replace(domain, impossible=tuple(stated))


def _meaning(attribute: Attribute) -> object:
    return attribute.values, attribute.groups


def _refuse_own_table(parts: Sequence[Estimates], marginal: NoisyMarginal) -> None:
    """Raise `ReleaseError` if a marginal is one that follows from a part: nothing new."""
    for part in parts:
        is_within = any(set(marginal.attribute_indices) <= set(table) for table in part.tables)
        same = part.domain.attributes == marginal.domain.attributes
        if same and is_within and _is_own_table(part, marginal):
            raise ReleaseError(
                f"The noisy marginal {marginal.name!r} is a table of one of the releases and "
                "would count twice; leave it out."
            )


def _is_own_table(part: Estimates, marginal: NoisyMarginal) -> bool:
    """Whether a part gives these counts, and that is no chance, or gives them as accurately."""
    names = [marginal.domain.names[index] for index in marginal.attribute_indices]
    own, size = part.marginal(names), marginal.values.size
    # Whole numbers may be a rounded table, but a few of them can also be alike by chance.
    tolerance = 0.51 if size >= _MANY_CELLS else 1e-6
    if np.any(np.abs(own - marginal.values) > tolerance + 1e-9 * np.abs(own)):
        return False
    variance = float(marginal.variance)
    chance = 0.0
    if np.array_equal(marginal.values, np.rint(marginal.values)):
        chance = min(1.0, 1 / math.sqrt(2 * math.pi * variance)) ** size
    as_accurate = np.isclose(part.marginal_variances(names), variance, rtol=_ALIKE)
    return chance < _CHANCE or bool(np.any(as_accurate))


def _mean(subset: AttributeIndices, precision: Fraction, parts: Sequence[Estimates]) -> np.ndarray:
    """The contribution of a residual: the parts' own, weighted by inverse variance."""
    having = [part for part in parts if subset in part.contributions]
    if len(having) == 1:
        return having[0].contributions[subset]
    weights = [float(1 / part.variances[subset] / precision) for part in having]
    weighted = zip(weights, having, strict=True)
    return np.sum([weight * part.contributions[subset] for weight, part in weighted], axis=0)


def _common_strategies(parts: Sequence[Estimates]) -> dict[int, Strategy]:
    """The strategy of each attribute in all parts that have it; `ReleaseError` if they differ."""
    strategies: dict[int, tuple[Strategy | None, Estimates]] = {}
    for part in parts:
        for index in sorted({index for subset in part.contributions for index in subset}):
            strategy = part.strategies.get(index)
            known, first = strategies.setdefault(index, (strategy, part))
            alike = strategy is known  # None: single values
            if strategy is not None and known is not None:
                alike = np.array_equal(strategy.matrix, known.matrix)
            if not alike:
                raise ReleaseError(
                    f"{part.domain.names[index]!r} was measured by different strategies for "
                    f"{first.sources[0].name!r} and {part.sources[0].name!r}, and such "
                    "measurements cannot be averaged; combine only releases that count single "
                    "values of this attribute, or were planned with the same strategy."
                )
    return {index: strategy for index, (strategy, _) in strategies.items() if strategy is not None}


def _release_ids(part: PartReader) -> list[ReleaseId]:
    """What the releases in a part are known by."""
    if not part.made_of:
        folder = text_of_path(part.named.resolve())
        return [ReleaseId(part.manifest["plan_sha256"], manifest_sha256(part.named), folder)]
    return [
        ReleaseId(source.plan_sha256, source.sha256, source.name)
        for source in part.made_of
        if source.is_release
    ]


# ---- The folder of combined tables: like a release's, without a plan.
#
# tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell
#     estimates.json          domain, tables, and of each residual its attributes and exact σ²
#     contributions.parquet   the contribution of each residual (residual: its place in the list of
#                             estimates.json; cell: row-major; contribution: centred, float64)
#     manifest.json           label, sources, guarantee, and size and SHA-256 of every file
#     README.md               how to read all this
#
# Written as a `new_folder`; the manifest comes last.


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
    """A release, combined or processed tables; `ReleaseError` for anything else."""
    folder = Path(folder)
    kind = read_manifest(folder).get("format")
    if kind == PROCESSED[0]:
        return ProcessedTables.load(folder)
    if kind == SYNTHETIC[0]:
        names = ", ".join(
            source["name"] for source in SyntheticRecords.load(folder).manifest["sources"]
        )
        raise ReleaseError(
            f"{str(folder)!r} holds synthetic records, and unbiased tables are needed; name the "
            f"release that they were made of ({names})."
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
    domain = Domain.from_schema(content["domain"]).with_levels
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
