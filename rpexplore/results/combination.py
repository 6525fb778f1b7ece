"""Combining: several releases of the same records into one folder, each part with its like."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, permutations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rpexplore.common.json_fields import loads, text_of
from rpexplore.common.numbers import exact_text
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import FORMULAS_ESCAPED, joined, text_of_path
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.estimation.table_map import ArrayStore
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.part_plan import TITLES
from rpexplore.releases.atomic_folder import check_room
from rpexplore.releases.finished_release import Release, SeveralParts
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import (
    CheckedFolder,
    check_facts,
    check_listed,
    checked_folder,
    file_entry,
    in_release,
    manifest_sha256,
    not_as_written,
    now,
    read_manifest,
    save_manifest,
)
from rpexplore.releases.packed_tables import (
    MOST_CELLS,
    PACKED,
    bytes_of_tables,
    packed_tables,
    write_packed,
)
from rpexplore.releases.query_release import write_answers
from rpexplore.releases.table_cells import BYTES_PER_CELL, TABLES, files_of_tables
from rpexplore.releases.table_release import LabelsOfBases, TableRelease
from rpexplore.results.combined_areas import CombinedAreas
from rpexplore.results.combined_counts import CombinedCounts
from rpexplore.results.combined_sources import (
    MeasuredRelease,
    ReleaseId,
    joint_domain,
    refuse_other_records,
)
from rpexplore.results.combined_tables import combined_tables
from rpexplore.results.known_groups import SumsOfGroups, trees_of
from rpexplore.results.known_totals import known_text
from rpexplore.results.measurement_source import (
    SPENT,
    MeasurementSource,
    Spent,
    facts_as_worded,
    facts_of_sources,
    guarantee,
    refuse_unlike,
    spent,
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
from rpexplore.workload.universe import universe_of
from rpexplore.workload.workload import Workload

# ---- Combining


@dataclass(frozen=True, eq=False, repr=False)
class CombinedRelease(SeveralParts):
    """What several releases know together of each kind of part. Noisy figures only.

    parts    tables (`Estimates`), tables in areas, own counts: those that some release has
    sources  everything that was measured for any of them
    folder   where it was read from; None if it was not written yet
    """

    kind: ClassVar[str] = "combined"

    given_parts: tuple[PartReader, ...]
    sources: tuple[MeasurementSource, ...]
    folder: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> tuple[PartReader, ...]:
        return self.given_parts

    @cached_property
    def domain(self) -> Domain:
        """The attributes of all parts."""
        return joint_domain([part.domain for part in self.parts])

    @property
    def made_of(self) -> Sequence[MeasurementSource]:
        return self.sources

    @property
    def spent(self) -> Spent:
        """What was spent on everything that was measured, exact, and for whom."""
        return spent(self.sources)

    @property
    def guarantee(self) -> str:
        return guarantee(self.sources, "figures")

    @property
    def contents(self) -> str:
        return joined([part.contents for part in self.parts])

    @property
    def taken_over(self) -> Sequence[str]:
        """The parts that only one of several sources has, each as a sentence."""
        return [
            f"The {TITLES[part.kind].lower()} are those of {part.made_of[0].name!r} alone."
            for part in self.parts
            if len(self.sources) > 1 and len(part.made_of) == 1
        ]

    def __repr__(self) -> str:
        return f"<CombinedRelease of {self.contents}, {self.label}>"


def combine(
    *parts: PartReader,
    noisy: Iterable[NoisyMarginal] = (),
    ledger: str | Path | None = None,
) -> Estimates | CombinedRelease:
    """The most accurate unbiased figures of all releases together, each part with its like.

    Tables, tables in areas and own counts of several releases are each averaged by accuracy; what
    only one release has is taken over as it is. Spends nothing; what the releases spent adds up.
    Adaptive tables are left aside: what was measured in rounds was selected by its noise, so that
    no average with it is unbiased.

    Args:
        parts: Releases, their parts, and combined ones, all of the same records, each with noise
            of its own: nothing in them can show it, the caller answers for it.
        noisy: Noisy marginals of these records from elsewhere.
        ledger: Where the runs are booked; those that it knows by different records are refused.

    Returns:
        `Estimates` where there are tables only. Else one with a `part` of each kind.

    Raises:
        ReleaseError: If parts have different cells or areas, hold the same measurements, count
            out-of-codebook values differently, or measure an attribute by different strategies; or
            if the tables of two releases differ by more than their noise does.
        LedgerError: If the ledger cannot be read.
    """
    marginals = list(noisy)
    if not parts and not marginals:
        raise ReleaseError("There is nothing to combine; name a release.")
    readers: list[Any] = [reader for part in parts for reader in _combinable(part)]
    if ledger is not None:
        refuse_other_records(ledger, [each for reader in readers for each in _release_ids(reader)])
    estimates = [
        Estimates.of(reader, at_levels=True) for reader in readers if reader.kind == "tables"
    ]
    has_others = len(estimates) + len(marginals) > 1
    if any(one.known and (has_others or one.trees) for one in estimates):
        raise ReleaseError(
            "Tables that meet publicly known totals are not combined with others; combine the "
            "releases first, and give what is made of them the known totals."
        )
    measured = {
        kind: [
            release
            for reader in readers
            if reader.kind == kind
            for release in (reader.releases if reader.made_of else [MeasuredRelease.of(reader)])
        ]
        for kind in _MAKERS
    }
    sources = [
        [source for part in estimates for source in part.sources]
        + [marginal.source for marginal in marginals],
        *([release.source for release in releases] for releases in measured.values()),
    ]
    for of_kind in sources:
        refuse_unlike(of_kind)
    # Parts of one release spent its ρ together, once.
    together = list({source.sha256: source for of_kind in sources for source in of_kind}.values())
    if sum(map(bool, sources)) > 1:
        refuse_unlike(together)
    domains = [
        *((part.domain, part.sources) for part in estimates),
        *((one.plan.domain, [one.source]) for of_kind in measured.values() for one in of_kind),
    ]
    _refuse_other_readings(domains)
    _refuse_other_universes(domains)
    found: list[PartReader] = [combined_tables(estimates, marginals)] if sources[0] else []
    found += [_MAKERS[kind](tuple(releases)) for kind, releases in measured.items() if releases]
    if found[0].kind == "tables" and len(found) == 1:
        return Estimates.of(found[0], at_levels=True)
    return CombinedRelease(tuple(found), tuple(together))


_MAKERS: Mapping[str, Callable[..., PartReader]] = {
    "areas": CombinedAreas,
    "counts": CombinedCounts,
}


ASSUMED = (
    "All this holds if all of them are of the same records, each with noise of its own. No file "
    "can show that; only tables outside of areas that differ by more than their noise are refused."
)


def left_aside(results: PartReader) -> str:
    """What combining leaves out of a folder of results, and why, as a sentence; "" for nothing."""
    kinds, said = [reader.kind for reader in results.readers], []
    if noun := joined([one.sums_noun for one in results.readers if one.sums_noun]):
        said.append(
            f"The {noun} of {results.named.name!r} are left aside: tables of counts alone "
            "are combined."
        )
    if "rounds" in kinds and len(kinds) > 1:
        said.append(
            f"The adaptive tables of {results.named.name!r} are left aside: what is measured in "
            "rounds is selected by its noise, so that no average with it is unbiased."
        )
    return " ".join(said)


def _combinable(results: PartReader) -> list[PartReader]:
    """The parts that can be combined; raises `ReleaseError` where none can."""
    readers = [reader for reader in results.readers if reader.kind in ("tables", *_MAKERS)]
    return readers or [results.unbiased_tables()]


def _refuse_other_readings(
    releases: Sequence[tuple[Domain, Sequence[MeasurementSource]]],
) -> None:
    """Raise `ReleaseError` if a text of records was counted as one value and as another one.

    In one release by its codebook, by a recode say, and in the other by its codebook as well, or
    as a value that takes what is not in the codebook.
    """
    for (domain, sources), (other, others) in permutations(releases, 2):
        for name in set(domain.names) & set(other.names):
            own, theirs = domain[name].values, other[name].values
            if not (isinstance(own, Categories) and isinstance(theirs, Categories)):
                continue
            if own.values != theirs.values:
                continue  # refused where cells are combined
            takers = {one.unknown_values[name] for one in sources if name in one.unknown_values}
            for text, index in theirs.texts.items():
                place, value = own.reading(text), theirs.values[index]
                counted = takers if place is None else {own.values[place]}
                if counted - {value}:
                    raise ReleaseError(
                        f"What records write as {text!r} was counted as {min(counted)!r} of "
                        f"{name!r} in {sources[0].name!r} and as {value!r} in {others[0].name!r}; "
                        "combine only releases that count values alike."
                    )


def _refuse_other_universes(
    releases: Sequence[tuple[Domain, Sequence[MeasurementSource]]],
) -> None:
    """Raise `ReleaseError` if one condition names values that are others in another codebook.

    As labels may. Where one of them does not know a column that the other one knows, nothing tells.
    """
    for (domain, sources), (other, others) in combinations(releases, 2):
        text = next((one.universe for one in sources if one.is_release), "")
        if not text:
            continue
        both = [universe_of(text, known) for known in (domain, other)]
        names = [{name for name in both[0].columns if name in known} for known in (domain, other)]
        if names[0] == names[1] and both[0].meaning != both[1].meaning:
            raise ReleaseError(
                f"The condition {text} names other values in the codebook of {sources[0].name!r} "
                f"than in that of {others[0].name!r}; combine only releases of one universe."
            )


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


# ---- The folder of what is combined: like a release's, without a plan of its own.
#
# tables/NNNN_age_sex.*   each table as Parquet and CSV, one row a cell
# tables.parquet          instead of these, small tables where there are more than 100
#                         (`packed_tables`), as a release has them
#     estimates.json          domain, tables, and of each residual its attributes and exact σ²
#     contributions.parquet   the contribution of each residual (residual: its place in the list of
#                             estimates.json; cell: row-major; contribution: centred, float64)
# areas/tables/…          tables in areas, as in a release
# counts/answers.*        own counts, as in a release
# sources/NN/…            of areas and own counts, what each release measured (`combined_sources`)
# manifest.json           label, sources, guarantee, and size and SHA-256 of every file; if there is
#                         more than tables, the sources of each part, by their places from 1 on
# README.md               how to read all this
#
# Written as a `new_folder`; the manifest comes last.


KIND = ("rpexplore-combined", 2)

_NOUN = "combined results"
_FACTS = (
    "finished", "label", "privacy_unit", "guarantee", *SPENT,
)  # fmt: skip
PARTS = "parts"
_ESTIMATES, _CONTRIBUTIONS = "estimates.json", "contributions.parquet"
_KNOWN = "known_totals"


def write_combined(
    combined: Estimates | CombinedRelease,
    output: str | Path,
    *,
    escape_formulas: bool = False,
    file_per_table: bool = False,
    on_progress: Progress = no_progress,
) -> None:
    """Write the folder `output`, which must not exist yet; complete or not at all.

    escape_formulas: whether no text in CSV files begins as formulas of spreadsheets do
    file_per_table: whether each table has files of its own, however many there are

    Raises `ReleaseError` for what cannot be written.
    """
    output = Path(output)
    tables: Any
    areas: Any
    counts: Any
    tables, areas, counts = (combined.part(kind) for kind in ("tables", *_MAKERS))
    n_bytes = 0.0 if areas is None else BYTES_PER_CELL * areas.n_cells
    if tables is not None:
        n_bytes += float(np.sum(bytes_of_tables(tables.workload, file_per_table=file_per_table)))
    check_room(n_bytes, output)
    with new_tables_folder(output) as folder:
        files, n_packed = [], 0
        if tables is not None:
            packed = packed_tables(tables.workload, file_per_table=file_per_table)
            n_packed = len(packed)
            files += _write_part_of_tables(
                tables, packed, folder, on_progress, escape_formulas=escape_formulas
            )
        if areas is not None:
            areas.write(folder / "areas", on_progress)
            files += [
                file_entry(folder, in_release("areas", path), attributes=attributes)
                for path, attributes in areas.files().items()
            ]
        if counts is not None:
            (folder / "counts").mkdir()
            names = write_answers(
                folder / "counts", counts.cells(), csv=True, escape_formulas=escape_formulas
            )
            files += [file_entry(folder, in_release("counts", name)) for name in names]
        of_parts = _sources_of_parts(combined)
        for number, kinds in _measured_kinds(of_parts).items():
            home = f"sources/{number:02d}"
            part: Any = combined.part(kinds[0])
            release = part.releases[of_parts[kinds[0]].index(number)]
            paths = release.copy_to(folder / home, kinds)
            files += [file_entry(folder, f"{home}/{path}") for path in paths]
        readme = write_readme(
            folder,
            "combined.md.j2",
            combined.sources,
            combined.label,
            guarantee=combined.guarantee,
            formulas=f" {FORMULAS_ESCAPED}" if escape_formulas else "",
            kinds=list(of_parts),
            empty="" if areas is None else areas.tree.empty_text,
            taken_over=combined.taken_over,
            known="" if tables is None else known_text(tables.known_tables),
            assumed=ASSUMED,
            n_packed=n_packed,
            has_others=tables is not None and n_packed < len(tables.table_names),
            largest_packed=MOST_CELLS,
        )
        facts = {"finished": now(), **_facts_of(combined)}
        save_manifest(folder, KIND, facts, [*files, readme])
    on_progress("Finished", 1.0)


def _write_part_of_tables(
    tables: Estimates,
    packed: np.ndarray,
    folder: Path,
    on_progress: Progress,
    *,
    escape_formulas: bool,
) -> list[dict[str, Any]]:
    """Write tables, those that are packed into one file; what the manifest says of each file."""
    on_progress("Writing what the tables come from", 0.0)
    _write_estimates(tables, folder)
    files = [file_entry(folder, name) for name in (_ESTIMATES, _CONTRIBUTIONS)]
    if len(packed):
        labels_of, path = LabelsOfBases(tables.workload).of, folder / PACKED
        for n_cells in write_packed(path, tables.workload, packed, labels_of, tables.figures_of):
            on_progress("Writing the tables", n_cells / tables.n_cells)
        files.append(file_entry(folder, PACKED))
    others = np.setdiff1d(np.arange(len(tables.workload)), packed).tolist()
    files += write_tables(
        folder,
        tables.table_names,
        lambda position: tables.cells(tables.table_names[position]),
        on_progress,
        escape_formulas=escape_formulas,
        positions=others,
    )
    if not others:
        (folder / TABLES).rmdir()
    return files


def load_combined(folder: str | Path) -> Any:
    """Open a folder that `write_combined` has made: as what it was given.

    Raises `ReleaseError` if it is not one or a file was changed.
    """
    folder = Path(folder)
    facts = (*_FACTS, *({PARTS} & read_manifest(folder).keys()))
    manifest = checked_folder(folder, KIND, _NOUN, facts)
    try:
        listed = {entry["path"] for entry in manifest["files"]}
        sources = [MeasurementSource.from_json(source) for source in manifest["sources"]]
        every = list(range(1, len(sources) + 1))
        of_parts = {
            kind: [every[number - 1] for number in manifest[PARTS][kind] if number > 0]
            for kind in manifest.get(PARTS, ())
        } or {"tables": every}
        if any(len(set(numbers)) < len(numbers) for numbers in of_parts.values()):
            raise KeyError  # one that counts twice would claim more accuracy than there is
        parts: list[Any] = []
        files: dict[str, Any] = {}
        if "tables" in of_parts:
            if not {_ESTIMATES, _CONTRIBUTIONS} <= listed:
                raise KeyError
            own = tuple(sources[number - 1] for number in of_parts["tables"])
            tables = _read_estimates(
                CheckedFolder(folder, manifest), own, in_one_file=PACKED in listed
            )
            others = [i for i in range(len(tables.table_names)) if i not in tables.packed]
            files |= {_ESTIMATES: None, _CONTRIBUTIONS: None}
            files |= {PACKED: None} if tables.packed else {}
            files |= files_of_tables(tables.table_names, TABLES, others)
            parts.append(tables)
        releases = {}
        for number, kinds in _measured_kinds(of_parts).items():
            home = f"sources/{number:02d}"
            release = MeasuredRelease(CheckedFolder(folder, manifest, home), sources[number - 1])
            if release.plan.sha256 != release.source.plan_sha256:
                raise KeyError
            releases[number] = release
            files |= {f"{home}/{path}": None for path in release.files(kinds)}
        for kind in [kind for kind in _MAKERS if kind in of_parts]:
            of_kind = tuple(releases[number] for number in of_parts[kind])
            parts.append(_MAKERS[kind](of_kind, CheckedFolder(folder, manifest, kind)))
            files |= {in_release(kind, path): a for path, a in parts[-1].files().items()}
        combined = parts[0]
        if PARTS in manifest:
            combined = CombinedRelease(tuple(parts), tuple(sources), folder, manifest)
        facts = {**_facts_of(combined), **facts_as_worded(manifest)}
        facts["label"] = text_of(manifest, "label")
    except ReleaseError:
        raise
    except (
        RpexploreError,
        OSError,
        ArithmeticError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ):
        raise not_as_written(
            folder, _NOUN, "what they were computed from is not what it must be"
        ) from None
    check_facts(folder, manifest, facts, _NOUN)
    check_listed(folder, manifest, files, _NOUN)
    return combined


def _sources_of_parts(combined: Estimates | CombinedRelease) -> dict[str, list[int]]:
    """Kind of part -> the places of its sources among all, from 1 on."""
    places = {source.sha256: place for place, source in enumerate(combined.sources, start=1)}
    return {
        part.kind: [places[source.sha256] for source in part.made_of] for part in combined.readers
    }


def _measured_kinds(of_parts: Mapping[str, Sequence[int]]) -> dict[int, list[str]]:
    """Place of a source -> the parts that are computed from its measurements at any time."""
    found: dict[int, list[str]] = {}
    for kind in [kind for kind in _MAKERS if kind in of_parts]:
        for place in of_parts[kind]:
            found.setdefault(place, []).append(kind)
    return dict(sorted(found.items()))


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


def _facts_of(combined: Estimates | CombinedRelease) -> dict[str, Any]:
    """What a manifest says of what is combined."""
    of_parts = _sources_of_parts(combined)
    return {
        "label": combined.label,
        "privacy_unit": combined.spent.unit,
        "guarantee": combined.guarantee,
        **facts_of_sources(combined.sources),
        **({} if list(of_parts) == ["tables"] else {PARTS: of_parts}),
    }


def _write_estimates(estimates: Estimates, folder: Path) -> None:
    names, first = estimates.domain.names, len(estimates.domain)  # first: of blocks of levels
    content = {
        "domain": estimates.domain.to_schema(),
        "tables": estimates.table_names,
        **({_KNOWN: estimates.known_tables} if estimates.known else {}),
        "strategies": [
            {
                **({"block": attribute - first} if attribute >= first else {}),
                **({"attribute": names[attribute]} if attribute < first else {}),
                **(
                    {"values_of_groups": list(strategy.n_values)}
                    if isinstance(strategy, SumsOfGroups)
                    else {"bits": strategy.bits, "matrix": strategy.integers.tolist()}
                ),
                **(
                    {
                        "of_residuals": [
                            {
                                "attributes": [names[index] for index in subset if index < first],
                                "blocks": [index - first for index in subset if index >= first],
                                "matrix": own.integers.tolist(),
                            }
                            for subset, own in strategy.of_residuals.items()
                        ]
                    }
                    if strategy.of_residuals
                    else {}
                ),
                **({"leaves_values_open": True} if attribute in estimates.open_attributes else {}),
            }
            for attribute, strategy in sorted(estimates.strategies.items())
        ],
        "residuals": [
            {
                "attributes": [names[index] for index in subset if index < first],
                **({"blocks": own} if (own := [i - first for i in subset if i >= first]) else {}),
                "sigma_squared": exact_text(estimates.variances[subset]),
            }
            for subset in estimates.contributions
        ],
    }
    text = json.dumps(content, ensure_ascii=False)
    (folder / _ESTIMATES).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    write_arrays(folder / _CONTRIBUTIONS, "contribution", estimates.contributions.values())


def _read_estimates(
    folder: CheckedFolder, sources: tuple[MeasurementSource, ...], *, in_one_file: bool
) -> Estimates:
    content = loads((folder / _ESTIMATES).read_text(encoding="utf-8"))
    domain = Domain.from_schema(content["domain"])
    residuals = content["residuals"]
    known, tables = content.get(_KNOWN, []), content["tables"]
    if not all(name in domain for table in (*tables, *known) for name in table):
        domain = domain.with_levels
    # Totals may be by groups of what tables have.
    used = set(chain.from_iterable(tables))
    groups = sorted({name for table in known for name in table if name not in used})
    trees, blocks = trees_of(Workload.of(domain, [*tables, *([name] for name in groups)]))
    of_trees = list(blocks)
    subsets = [
        (
            *domain.positions(residual["attributes"]),
            *(of_trees[block] for block in residual.get("blocks", ())),
        )
        for residual in residuals
    ]
    sizes = dict(enumerate(domain.sizes.tolist())) | {i: blocks[i].size for i in of_trees}
    shapes = [tuple(sizes[index] for index in subset) for subset in subsets]
    arrays = read_arrays(folder / _CONTRIBUTIONS, "contribution", shapes, np.float64)
    sigma_squared = [Fraction(residual["sigma_squared"]) for residual in residuals]
    if min(map(float, sigma_squared), default=0.0) < 0:  # raises for what no float holds
        raise ValueError(sigma_squared)

    def strategy_of(content: dict[str, Any]) -> Strategy:
        bits = content["bits"]
        of_residuals = {
            (
                *domain.positions(own["attributes"]),
                *(of_trees[block] for block in own["blocks"]),
            ): Strategy(np.array(own["matrix"]), bits)
            for own in content.get("of_residuals", ())
        }
        return Strategy(np.array(content["matrix"]), bits, of_residuals=of_residuals)

    packed = frozenset[int]()
    if in_one_file:
        packed = frozenset(packed_tables(Workload.of(domain, content["tables"])).tolist())
    marginals = tuple(map(domain.positions, known))
    estimates = Estimates(
        domain,
        tuple(domain.positions(table) for table in content["tables"]),
        ArrayStore(zip(subsets, arrays, strict=True)),
        dict(zip(subsets, sigma_squared, strict=True)),
        {
            of_trees[strategy["block"]]
            if "block" in strategy
            else domain.position(strategy["attribute"]): (
                SumsOfGroups.of(strategy["values_of_groups"])
                if "values_of_groups" in strategy
                else strategy_of(strategy)
            )
            for strategy in content["strategies"]
        },
        sources,
        open_attributes=tuple(
            domain.position(strategy["attribute"])
            for strategy in content["strategies"]
            if strategy.get("leaves_values_open", False)
        ),
        packed=packed,
        trees=trees,
        blocks=blocks,
        known_marginals=marginals if trees else (),
    )
    subsets_known = chain.from_iterable(map(estimates.residuals_of, marginals))
    return replace(estimates, known=frozenset(subsets_known))
