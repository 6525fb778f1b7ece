"""A finished release: one folder, with what each part of its plan publishes. Noisy figures only.

    plan.json        the plan, canonical, with the files that it names (areas-….parquet, …)
    tables…          tables (`table_release`)
    areas/           tables in areas (`area_release`)
    counts/          own counts (`query_release`)
    rounds/          adaptive tables (`adaptive_release`)
    approvals/       who approved the plan, if anybody did
    manifest.json    guarantee, versions, and size and SHA-256 of every file
    README.md        how to read all this

Written as a `new_folder`; the manifest comes last. As long as it is not finished the folder also
has the measurements that everything is computed from (`measurement_file`).
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from rpexplore.common.json_fields import FieldError, text_of
from rpexplore.common.numbers import exact_text, shown_value
from rpexplore.common.text import capitalised, joined
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import AT, at_levels
from rpexplore.domain.values import index_by_value
from rpexplore.errors import (
    ApprovalError,
    DataError,
    DomainError,
    ReleaseError,
    RpexploreError,
    WorkloadError,
)
from rpexplore.planning.mechanism.reconstruction import Where
from rpexplore.planning.part_plan import TITLES, PartPlan
from rpexplore.planning.plan import LAST_OF_VERSION_1, Plan
from rpexplore.planning.stated_forecast import StatedForecast
from rpexplore.releases.approvals import (
    APPROVALS,
    facts_in_folder,
    facts_of_approvals,
    paths_of_approvals,
    read_approvals,
    readme_section,
)
from rpexplore.releases.atomic_folder import MANIFEST, refuse_unfinished
from rpexplore.releases.items import Answer, Item, PartReader
from rpexplore.releases.manifest import (
    README,
    CheckedFolder,
    TableFiles,
    check_facts,
    check_listed,
    checked_folder,
    file_entry,
    in_release,
    not_as_written,
    now,
    read_manifest,
    save_manifest,
    without_csv,
)
from rpexplore.releases.measurement_file import PLAN, MeasurementNote
from rpexplore.releases.readme import release_readme

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.areas.area_sums import AreaLists

FORMAT = ("rpexplore-release", 2)
WRITING = "Writing the release"  # what `on_progress` is told

# Kind -> the class that reads such a part; loaded when it is needed.
_READERS = {
    "tables": "rpexplore.releases.table_release.TableRelease",
    "areas": "rpexplore.releases.area_release.AreaRelease",
    "counts": "rpexplore.releases.query_release.QueryRelease",
    "rounds": "rpexplore.releases.adaptive_release.AdaptiveRelease",
}
_NOUN = "a release"
_TEXTS = (
    "run", "finished", "records_per_person", "privacy_unit", "guarantee", "noise", "postprocessing",
)  # fmt: skip
MISSING_VALUES = "missing_values"
"""The key of a manifest for what missing values were counted as; there if any were to be."""
COUNT_IMPOSSIBLE = "count_impossible"
"""The key of a manifest that says that records with impossible combinations were counted."""
POSITIONS = "positions"
"""The key of a manifest for the file that states where columns of records of fixed width are."""
ENCODING = "encoding"
"""The key of a manifest for the encoding that was named for the records; there if one was."""
NEIGHBOURS = "neighbours"
"""The key of a manifest that says that neighbours replace records; there if they do."""
EXACT = "exact_totals"
"""The key of a manifest with the totals that are released as they are; there if there are any."""
PERIOD = "period"
"""The key of a manifest for the attribute of which a person has one record for each value."""
UNIT_NOUN = "unit_noun"
"""The key of a manifest for the word for who is protected; there if it is no usual one."""
DISTINCT = "count_distinct"
"""The key of a manifest for the column whose distinct values were counted; there if they were."""
UNIVERSE = "universe"
"""The key of a manifest for which records were counted; there if not all were."""
_STATED = (*_TEXTS, "unknown_values", "plan_sha256", "rho", "max_records_per_person")
# What is raised by reading facts of a run that cannot be.
_IMPOSSIBLE = (
    ApprovalError, DataError, DomainError, FieldError, TypeError, AttributeError, KeyError,
)  # fmt: skip
_OLD_FORMATS = (
    "rpexplore-release", "rpexplore-query-release", "rpexplore-area-release",
    "rpexplore-adaptive-release",
)  # fmt: skip

PlanKind = TypeVar("PlanKind", bound=PartPlan)


@dataclass(frozen=True)
class WrittenPart:
    """What was written of a part: its section of the README, and the entries of its files."""

    readme: str
    files: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class PartRelease(PartReader, Generic[PlanKind]):
    """What a finished release publishes of one part of its plan. Holds noisy figures only.

    folder    of the part: that of the release, or one in it
    plan      the part
    manifest  of the release
    home      the release's own folder

    kind            of the part
    postprocessing  what was done to what was measured, for the manifest
    """

    folder: Path
    plan: PlanKind
    manifest: Mapping[str, Any]
    home: Path

    kind: ClassVar[str]
    postprocessing: ClassVar[str] = "none: unbiased linear reconstruction"

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The part of this kind of a release folder.

        Raises `ReleaseError` if the folder holds no release, has no such part, or was changed.
        """
        release = Release.load(folder)
        part: Any = release.part(cls.kind)
        if part is None:
            raise ReleaseError(
                f"The release {str(folder)!r} holds {release.held}, and no "
                f"{TITLES[cls.kind].lower()}; name another one."
            )
        return part

    @property
    def named(self) -> Path:
        return self.home

    @cached_property
    def checked(self) -> CheckedFolder:
        """The folder of the part, whose files are checked again when they are read."""
        within = "" if self.folder == self.home else self.folder.name
        return CheckedFolder(self.home, self.manifest, within)

    @classmethod
    @abstractmethod
    def files_of(cls, plan: PlanKind, listed: Collection[str]) -> TableFiles:
        """The files in the folder of the part; a release may be without all that are CSV.

        listed: those of the manifest, if a part may have its tables in one file or in several
        """


def parts_beside(folder: Path, *kinds: str) -> str:
    """What a folder holds beside the part that something is made of, a sentence; "" for nothing.

    kinds: of that part, the first one that is there; of a release or of combined results
    """
    listed = [entry["path"] for entry in read_manifest(folder)["files"]]
    held = [kind for kind in TITLES if any(path.startswith(f"{kind}/") for path in listed)]
    part = next((kind for kind in kinds if kind in held), None)
    beside = [TITLES[kind].lower() for kind in held if kind != part]
    if part == "tables" and PLAN in listed:
        of_tables: Any = Plan.load(folder / PLAN).part("tables")
        if sums := of_tables.workload.sums_noun:
            beside.append(f"tables of {sums}")
    if not beside:
        return ""
    return (
        f"{str(folder)!r} also holds {joined(beside)}; they are not part of this, and stay there "
        "as they are."
    )


class SeveralParts(PartReader):
    """A folder of results with parts of several kinds: each by itself, and all as one list."""

    @cached_property
    @abstractmethod
    def parts(self) -> "Sequence[PartReader]":
        """What there is of each kind, in the order of parts of a plan."""

    @property
    def readers(self) -> "Sequence[PartReader]":
        return self.parts

    def part(self, kind: str) -> Any:
        """What the part of a kind publishes; None if there is none."""
        return next((part for part in self.parts if part.kind == kind), None)

    @property
    def remark(self) -> str:
        """What must be known of its figures at once, in sentences; "" for nothing."""
        return " ".join(filter(None, [part.remark for part in self.parts]))

    @property
    def held(self) -> str:
        """The parts that it has, for a sentence: "tables in areas and own counts"."""
        return joined([TITLES[part.kind].lower() for part in self.parts])

    # ---- all parts as one list of tables

    @property
    def figures(self) -> str:
        return capitalised(joined([part.figures.lower() for part in self.parts]))

    @property
    def label(self) -> str:
        figures: dict[str, list[str]] = {}
        for part in self.parts:
            figures.setdefault(part.label, []).append(part.figures.lower())
        if len(figures) == 1:
            return next(iter(figures))
        return "; ".join(f"{label} ({joined(names)})" for label, names in figures.items())

    @property
    def is_biased(self) -> bool:
        return any(part.is_biased for part in self.parts)

    @property
    def has_unbiased(self) -> bool:
        return self.is_biased and not all(part.is_biased for part in self.parts)

    @property
    def adding_up(self) -> str:
        return " ".join(dict.fromkeys(part.adding_up for part in self.parts))

    @property
    def area_levels(self) -> Sequence[str]:
        return [level for part in self.parts for level in part.area_levels]

    @cached_property
    def items(self) -> Sequence[Item]:
        """The tables of all parts; where there are several, names begin with the part's kind."""
        if len(self.parts) == 1:
            (part,) = self.parts
            return [replace(item, file=in_release(part.kind, item.file)) for item in part.items]
        return [item.of_part(part.kind) for part in self.parts for item in part.items]

    def unbiased_tables(self) -> Any:
        return (self.part("tables") or self.parts[0]).unbiased_tables()

    def area_tables(self) -> Any:
        part = self.part("areas")
        return super().area_tables() if part is None else part

    def measured_tables(self) -> Any:
        return (self.part("tables") or self.part("rounds") or self.parts[0]).measured_tables()

    @property
    def own_counts(self) -> Any:
        return self.part("counts")

    def bound_of(self, attributes: Collection[str], record_noun: str = "records") -> str:
        return " ".join(
            filter(None, [part.bound_of(attributes, record_noun) for part in self.parts])
        )

    def means_of(self, attributes: Collection[str]) -> "pd.DataFrame | None":
        found = (part.means_of(attributes) for part in self.parts)
        return next((means for means in found if means is not None), None)

    def clamping_of(self, attributes: Collection[str]) -> str:
        return " ".join(filter(None, [part.clamping_of(attributes) for part in self.parts]))

    def means(self, *attributes: Any) -> "pd.DataFrame":
        """The means of a table with amounts; see `TableRelease.means`."""
        return self._part_with("tables").means(*attributes)

    def table(
        self, *attributes: Any, level: str | Mapping[str, str] | None = None, within: Any = None
    ) -> "pd.DataFrame":
        """A table as it was released, one row a cell.

        Args:
            attributes: Names of its attributes; none for the total.
            level: Attribute name -> the level at which the table has it: `level={"age": "adult"}`
                is the attribute `age@adult`. As a text the level of areas, if it is a table in
                areas.
            within: An area to whose areas it is limited; see `AreaRelease.table`.

        Raises:
            ReleaseError: If there is no such table.
            DomainError: If an attribute has no such level.
        """
        names = [
            name for given in attributes for name in ([given] if isinstance(given, str) else given)
        ]
        if isinstance(level, Mapping):
            names, level = at_levels(names, level), None
        if level is not None:
            of_level = [name for name in names if f"{name}{AT}{level}" in self.domain]
            if of_level and level not in self.area_levels:
                raise ReleaseError(
                    f"The level {level!r} is one of {joined(of_level)}, and a level by itself is "
                    f"one of areas; name its attribute: level={{{of_level[0]!r}: {level!r}}}."
                )
            return self._part_with("areas").table(level, *names, within=within)
        if within is not None:
            raise ReleaseError(
                f"A table within {shown_value(within)} is one in areas; name the level of its "
                "areas, too."
            )
        return self._first(lambda part: part.table(names))

    def sums_of_areas(self, lists: "AreaLists", *attributes: str) -> "pd.DataFrame":
        """A table summed over lists of areas; see `AreaRelease.sums_of_areas`."""
        return self.area_tables().sums_of_areas(lists, *attributes)

    def counts(self, *attributes: Any) -> "pd.DataFrame":
        """Any marginal within a table, by single values; see `TableRelease.counts`."""
        return self._first(lambda part: part.counts(*attributes))

    def answer(self, *attributes: Any, where: "Where | None" = None) -> "Answer":
        """The noisy answer to a product query on a table, or one of the own counts by its name.

        See `TableRelease.answer`. Where no table has the attributes together, a model answers:
        `rpexplore.Questions`.
        """
        counts = self.part("counts")
        if where is None and counts is not None and len(attributes) == 1:
            (name,) = attributes
            if name in counts.queries.names and name not in self.domain.names:
                return counts.answer(name)
        return self._first(lambda part: part.answer(*attributes, where=where))

    @property
    def answers(self) -> "pd.DataFrame":
        """Own counts, one row each: name, answer, standard_error, margin_95, target, met."""
        return self._part_with("counts").answers

    def _first(self, ask: Callable[[Any], Any]) -> Any:
        """What the tables give, or else the adaptive ones; if neither, why the tables do not."""
        first, rounds = self._part_with("tables", "rounds"), self.part("rounds")
        try:
            return ask(first)
        except (DomainError, WorkloadError) as refused:
            if rounds is None or rounds is first:
                raise
            try:
                return ask(rounds)
            except RpexploreError as other:
                # Of attributes that only the adaptive tables have, these say what is wrong.
                theirs = isinstance(refused, DomainError) and not isinstance(other, DomainError)
                raise (other if theirs else refused) from None

    def _part_with(self, *kinds: str) -> Any:
        for kind in kinds:
            if (part := self.part(kind)) is not None:
                return part
        wanted = joined([TITLES[kind].lower() for kind in kinds], " or ")
        raise ReleaseError(
            f"{str(self.named)!r} holds {self.held}, and no {wanted}; name a release that has some."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Release(SeveralParts):
    """A finished release: its folder, plan and manifest, and what each part publishes.

    Example:
        `Release.load("out").table("age", "sex")`
    """

    folder: Path
    plan: Plan
    manifest: Mapping[str, Any]
    # Only just after the run, for the curator's screen: see `DryRun`.
    taken: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def stated_forecast(self) -> StatedForecast | None:
        return self.plan.forecast

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a release folder; raises `ReleaseError` if it is not one or a file was changed."""
        refuse_unfinished(Path(folder))
        return cls.load_complete(folder)

    @classmethod
    def load_complete(cls, folder: str | Path) -> Self:
        """As `load`, also of a folder that is complete and has not got its name yet."""
        folder = Path(folder)
        _refuse_version_1(folder)
        # Only releases of which it is true say that they were approved, or what they counted.
        of_plan = (UNIVERSE, NEIGHBOURS, PERIOD, EXACT, UNIT_NOUN, DISTINCT)
        optional = {APPROVALS, MISSING_VALUES, COUNT_IMPOSSIBLE, POSITIONS, ENCODING, *of_plan}
        stated = (*_STATED, *(optional & read_manifest(folder).keys()))
        manifest = checked_folder(folder, FORMAT, _NOUN, stated)
        listed = {entry["path"] for entry in manifest["files"]}
        if PLAN not in listed:
            raise not_as_written(folder, _NOUN, f"its {MANIFEST} lists no {PLAN}")
        plan = Plan.load(folder / PLAN)
        facts: dict[str, Any] = _facts_of(plan)
        try:
            for option in ("unknown_values", MISSING_VALUES):
                if option in manifest:
                    for attribute, value in manifest[option].items():
                        index_by_value(plan.domain[attribute])[value]  # raises if there is none
                    facts[option] = dict(manifest[option])
            if not facts.get(MISSING_VALUES, True):  # then nothing is said of them
                raise KeyError(MISSING_VALUES)
            for key in of_plan:
                if (key in manifest) != (key in facts):
                    raise KeyError(key)
            if COUNT_IMPOSSIBLE in manifest:
                if not plan.domain.impossible:
                    raise KeyError(COUNT_IMPOSSIBLE)
                facts[COUNT_IMPOSSIBLE] = True
            if POSITIONS in manifest:
                given = manifest[POSITIONS]
                facts[POSITIONS] = {key: text_of(given, key) for key in ("file", "sha256")}
            told = (*_TEXTS, *({ENCODING} & manifest.keys()))
            facts |= {key: text_of(manifest, key) for key in told}
            if APPROVALS in manifest:
                facts |= facts_in_folder(folder, manifest[APPROVALS], plan)
        except _IMPOSSIBLE:
            reason = f"its {MANIFEST} says of its run what cannot be"
            raise not_as_written(folder, _NOUN, reason) from None
        check_facts(folder, manifest, facts, _NOUN)
        n_approvals = len(manifest[APPROVALS]["given"]) if APPROVALS in manifest else 0
        others = [PLAN, *plan.companions, *paths_of_approvals(n_approvals)]
        files = {
            in_release(part.kind, path): attributes
            for part in plan.parts
            for path, attributes in _reader(part.kind).files_of(part, listed).items()
        }
        if listed.issubset({README, *others, *without_csv(files)}):
            files = {path: files[path] for path in without_csv(files)}
        check_listed(folder, manifest, {**files, **dict.fromkeys(others)}, _NOUN)
        return cls(folder, plan, manifest)

    @cached_property
    def parts(self) -> "tuple[PartRelease[Any], ...]":
        """What each part of the plan publishes, in its order."""
        return tuple(
            _reader(part.kind)(
                part_folder(self.folder, part.kind), part, self.manifest, self.folder
            )
            for part in self.plan.parts
        )

    @property
    def home(self) -> Path:
        """Its folder, as of its parts."""
        return self.folder

    @property
    def domain(self) -> Domain:
        return self.plan.domain

    def __repr__(self) -> str:
        return f"<Release of {self.plan.contents} in {str(self.folder)!r}>"


def part_folder(folder: Path, kind: str) -> Path:
    """The folder of a part of a release: tables lie in the release's own."""
    return folder if kind == "tables" else folder / kind


def write_manifest(
    folder: Path, plan: Plan, note: MeasurementNote, written: Mapping[str, WrittenPart]
) -> Mapping[str, Any]:
    """Write README and manifest of a folder that has all other files; returns the manifest.

    written: kind -> what was written of the part
    """
    approvals = read_approvals(folder, note.approvals)
    readme = release_readme(plan, note, [part.readme for part in written.values()])
    readme += readme_section(approvals, note.n_demanded)
    (folder / README).write_text(readme, encoding="utf-8")
    done = dict.fromkeys(_reader(part.kind).postprocessing for part in plan.parts)
    facts = {
        "run": note.run,
        "finished": now(),
        **_facts_of(plan),
        "privacy_unit": plan.budget.unit,
        "guarantee": plan.guarantee,
        "noise": "discrete Gaussian, exact, from the operating system's entropy",
        "postprocessing": "; ".join(done),
        "unknown_values": dict(note.unknown_values),
        **({MISSING_VALUES: dict(note.missing_values)} if note.missing_values else {}),
        **({COUNT_IMPOSSIBLE: True} if note.count_impossible else {}),
        **({POSITIONS: dict(note.positions)} if note.positions else {}),
        **({ENCODING: note.encoding} if note.encoding else {}),
        "records_per_person": note.person_rule,
        **facts_of_approvals(approvals, note.n_demanded),
    }
    files = [
        {**entry, "path": in_release(kind, entry["path"])}
        for kind, part in written.items()
        for entry in part.files
    ]
    paths = (*plan.companions, *paths_of_approvals(len(approvals)), PLAN, README)
    return save_manifest(folder, FORMAT, facts, [*files, *(file_entry(folder, p) for p in paths)])


def _facts_of(plan: Plan) -> dict[str, Any]:
    """What the manifest says of every release by a plan, and is compared with it."""
    return {
        "plan_sha256": plan.sha256,
        "rho": exact_text(plan.rho),
        "max_records_per_person": plan.budget.max_records_per_person,
        **({} if plan.universe is None else {UNIVERSE: plan.universe.text}),
        **({} if plan.budget.period is None else {PERIOD: plan.budget.period}),
        **({NEIGHBOURS: plan.budget.neighbours} if plan.budget.replaces else {}),
        **({} if plan.budget.unit_noun is None else {UNIT_NOUN: plan.budget.unit_noun}),
        **({} if plan.budget.distinct is None else {DISTINCT: plan.budget.distinct}),
        **({EXACT: [list(total) for total in plan.budget.exact]} if plan.budget.exact else {}),
    }


def _reader(kind: str) -> type[PartRelease[Any]]:
    module, name = _READERS[kind].rsplit(".", 1)
    return getattr(import_module(module), name)


def _refuse_version_1(folder: Path) -> None:
    manifest = read_manifest(folder)
    if manifest.get("format") in _OLD_FORMATS and manifest.get("format_version") == 1:
        raise ReleaseError(
            f"{str(folder)!r} is a release of format version 1, which rpexplore "
            f"{LAST_OF_VERSION_1} reads, and this library reads version {FORMAT[1]}; use that "
            "version for it."
        )
