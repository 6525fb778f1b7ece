"""Area study: what a plan for areas is made from, but its budget; as JSON too."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from types import MappingProxyType
from typing import Any

import numpy as np

from rpexplore.common.json_fields import (
    FieldError,
    check_keys,
    columns,
    indices,
    indices_by_first_use,
    lists,
    sha256_of,
    text_of,
)
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.area_tree import MAX_AREAS
from rpexplore.domain.area_tree_file import AreaTreeReference, ReadTreeFile
from rpexplore.domain.domain import Attribute, Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_plan_file import loss_of_areas
from rpexplore.planning.areas.area_workload import (
    AreaWorkload,
    LevelTables,
    redistricting_tables,
    same_tables,
    shrinking_detail,
    totals,
)
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.serialization import tables_from_json, tables_to_json
from rpexplore.workload.preset_roles import guessed_matches
from rpexplore.workload.presets import REDISTRICTING
from rpexplore.workload.table_text import Table, title
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

MOST_TOTALS = 1_000_000  # characters of the file of known totals, which a project keeps
MOST_TABLES = 200  # of the other attributes, to choose from
_USUAL_ORDER = 3  # of the tables to begin with
AreaTarget = float | Target | None
"""A target of a table on a level: a standard error, one that is required as a `Target`, or none."""
Setting = tuple[float | None, AreaTarget]  # the weight and the target of a table
_REDISTRICTING = ("race", "hispanic", "voting_age")


@dataclass(frozen=True, eq=False)
class AreaStudy:
    """Areas, the tables of each level, and the objective. Areas are read when they are needed.

    filename   of the codebook
    attribute  what the attribute of areas is called there
    domain     the other attributes
    areas      shared by all that is made from this
    tables     those of each level, from the top; levels without tables are left out
    uniform    whether all areas of a level get the same noise
    expected   public counts of all areas together, if there are any; no plan depends on them
    totals     the text of a CSV file with publicly known totals of areas, "" without; nor on these
    """

    filename: str
    attribute: str
    domain: Domain
    areas: AreaTreeReference
    tables: LevelTables
    loss: Loss = field(default_factory=SumOfVariances)
    uniform: bool = False
    expected: ExpectedCounts | None = None
    totals: str = ""

    def __post_init__(self) -> None:
        if len(self.totals) > MOST_TOTALS:
            raise WorkloadError(
                f"The file of known totals has {len(self.totals):,} characters, and a project "
                f"keeps {MOST_TOTALS:,}; leave out other columns than codes and totals, or the "
                "lowest level."
            )

    @classmethod
    def of(cls, filename: str, book: AreaCodebook) -> "AreaStudy":
        """To begin with: the same tables on every level, all of up to three attributes."""
        tables = same_tables(book.tree, usual_tables(book.domain))
        return cls(filename, book.name, book.domain, AreaTreeReference.of(book.tree), tables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AreaStudy) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash((self.filename, self.areas.sha256))

    @cached_property
    def _compared(self) -> tuple[Any, ...]:
        areas = (self.areas.sha256, self.areas.levels, self.areas.sizes)
        asked = (self.settings, self.loss, self.uniform, self.expected, self.totals)
        return self.filename, self.attribute, self.domain, areas, asked

    @property
    def settings(self) -> dict[str, dict[Table, Setting]]:
        """Weight and target of each table, by level."""
        return {level: self._settings(level) for level in self.levels}

    @property
    def levels(self) -> tuple[str, ...]:
        """What the levels are called, from the top."""
        return self.areas.levels

    @property
    def n_tables(self) -> int:
        """How many tables there are in all areas together."""
        sizes = zip(self.levels, self.areas.sizes, strict=True)
        return sum(size * len(self.tables.get(level, ())) for level, size in sizes)

    @property
    def book(self) -> AreaCodebook:
        """The areas, and the other attributes."""
        return AreaCodebook(self.attribute, self.areas.tree, self.domain)

    @property
    def workload(self) -> AreaWorkload:
        """The tables of all areas; not kept, as there may be many studies of millions of areas."""
        return AreaWorkload.of_levels(self.areas.tree, self.tables)

    @cached_property
    def rows(self) -> list[Table]:
        """The tables to choose from: the usual ones, and those that are asked for besides."""
        asked = {table for tables in self.tables.values() for table in tables.tables}
        usual = usual_tables(self.domain, order=len(self.domain)).tables
        return Workload.of(self.domain, {*usual, *asked}).tables

    @property
    def misses_targets(self) -> str:
        """The first table without a target that the objective needs, and its level; "" if none."""
        for level, tables in self.tables.items() if self.loss.compares_with_targets else ():
            missing = np.flatnonzero(np.isnan(tables.targets))
            if len(missing):
                return f"{title(tables.tables[missing[0]])} on the level {level}"
        return ""

    @property
    def requires_none(self) -> bool:
        """Whether the objective meets required targets, and there are none."""
        required = any(bool(np.any(tables.required)) for tables in self.tables.values())
        return self.loss.meets_required_targets and not required

    @property
    def planned(self) -> "AreaStudy":
        """The same without expected counts and known totals, on which no plan depends."""
        known = self.expected is not None or self.totals
        return replace(self, expected=None, totals="") if known else self

    # ---- changes

    def weighted_by(self, weights: Attribute, unweighted: Iterable[Table] = ()) -> "AreaStudy":
        """With its tables weighted by this attribute, which joins the others where it is new.

        unweighted: tables that stay as they are, on all levels that have them

        Raises:
            WorkloadError: If the others have it with other values.
        """
        own = self.domain[weights.name].values if weights.name in self.domain.names else None
        if own is not None and own != weights.values:
            own_text, text = (
                values.description if isinstance(values, Amounts) else "no weights"
                for values in (own, weights.values)
            )
            raise WorkloadError(
                f"Tables are weighted by {weights.name!r} ({text}), which the codebook of areas "
                f"has with other values ({own_text}); give both codebooks the same, or make a "
                "plan of each."
            )

        def weighted(tables: Workload) -> Workload:
            if own is None:
                domain = Domain((*tables.domain, weights), tables.domain.impossible)
                tables = replace(tables, domain=domain, bases=(*tables.bases, ()))
            stay = [table for table in unweighted if set(table) <= set(tables.domain.names)]
            stay = [one for one in stay if tables.find(tables.domain.positions(one)) is not None]
            return tables.weighted_by(weights.name, unweighted=stay)

        asked = {level: weighted(tables) for level, tables in self.tables.items()}
        return replace(self, domain=next(iter(asked.values())).domain, tables=asked)

    def with_preset(self, preset: str) -> "AreaStudy":
        """With the tables of one of `PRESETS`; raises `WorkloadError` if it does not fit."""
        return replace(self, tables=PRESETS[preset](self.book))

    def with_workload(self, workload: AreaWorkload) -> "AreaStudy":
        """With the tables of each level of a workload, and what levels its attributes have.

        workload: for the same areas; all areas of a level have the same tables
        """
        of_levels = map(workload.tree.level_slice, range(len(self.levels)))
        kinds = [int(workload.kinds[own.start]) for own in of_levels]
        tables = {
            level: workload.workloads[kind]
            for level, kind in zip(self.levels, kinds, strict=True)
            if kind >= 0
        }
        return replace(self, domain=workload.domain.of_records, tables=tables)

    def with_weights(self, weights: Mapping[tuple[str, Table], float | None]) -> "AreaStudy":
        """With other weights of tables, by level and table; None or 0: not asked for there.

        Raises:
            WorkloadError: If nothing would be left.
        """
        changed = {
            level: own | {table: (weight, own.get(table, (None, None))[1])
            for (other, table), weight in weights.items() if other == level}
            for level in self.levels for own in [self._settings(level)]
        }  # fmt: skip
        return self._with_settings(changed)

    def with_table(
        self, levels: Iterable[str], attributes: Iterable[str], *, alone: bool = False
    ) -> "AreaStudy":
        """With a table of weight 1 on these levels; alone: without any other table.

        Raises:
            WorkloadError: If no level is named.
        """
        table = self.domain.in_order(attributes)
        kept: Mapping[str, Mapping[Table, Setting]] = {} if alone else self.settings
        asked = dict.fromkeys(levels, (1.0, None))
        if not asked:
            raise WorkloadError("Choose the levels that the table is for.")
        return self._with_settings(
            {
                level: {**kept.get(level, {}), **({table: asked[level]} if level in asked else {})}
                for level in self.levels
            }
        )

    def with_targets(self, targets: Mapping[tuple[str, Table], AreaTarget]) -> "AreaStudy":
        """With other targets of a cell, by level and table.

        Raises:
            WorkloadError: For a table that is not asked for on the level.
        """
        changed = self.settings
        for (level, table), target in targets.items():
            if table not in changed[level]:
                raise WorkloadError(
                    f"The table {title(table)} is not asked for on the level {level}; give it a "
                    "weight there first."
                )
            changed[level][table] = changed[level][table][0], target
        return self._with_settings(changed)

    def with_target_where_missing(self, target: AreaTarget) -> "AreaStudy":
        """With this target for every table that has none."""
        missing = {
            (level, table): target
            for level in self.tables
            for table, (_, known) in self._settings(level).items()
            if known is None
        }
        return self.with_targets(missing)

    def _with_settings(self, settings: Mapping[str, Mapping[Table, Setting]]) -> "AreaStudy":
        """Itself if nothing differs: what was planned for it then stays."""
        asked = {
            level: {table: pair for table, pair in of_level.items() if pair[0]}
            for level, of_level in settings.items()
        }
        if asked == self.settings:
            return self
        tables = {
            level: Workload.of(
                self.domain,
                list(of_level),
                weights=[weight or 0.0 for weight, _ in of_level.values()],
                targets=[target for _, target in of_level.values()],
            )
            for level, of_level in asked.items()
            if of_level
        }
        if not tables:
            raise WorkloadError("Some table must be asked for on some level; give one a weight.")
        return replace(self, tables=tables)

    def _settings(self, level: str) -> dict[Table, Setting]:
        """Weight and target of each table of a level."""
        if level not in self.tables:
            return {}
        tables = self.tables[level]
        pairs = zip(tables.weights.tolist(), area_targets(tables), strict=True)
        return dict(zip(tables.tables, pairs, strict=True))


def area_targets(tables: Workload) -> list[AreaTarget]:
    """The targets of tables."""
    return [
        None if target != target else Target(target, required=True) if required else target
        for target, required in zip(tables.targets.tolist(), tables.required.tolist(), strict=True)
    ]


def usual_tables(domain: Domain, order: int = _USUAL_ORDER) -> Workload:
    """All tables of up to so many attributes, or of fewer where these would be too many."""
    order = min(order, len(domain))
    while order > 1 and sum(comb(len(domain), k) for k in range(order + 1)) > MOST_TABLES:
        order -= 1
    return Workload.all_up_to(domain, order)


def redistricting_from_domain(domain: Domain, *, with_quarters: bool) -> Workload:
    """The tables of Public Law 94-171, of the attributes that look as if they were meant.

    Raises:
        WorkloadError: If none looks like one that is needed.
    """
    wanted = [*_REDISTRICTING, *(["quarters"] if with_quarters else [])]
    roles = [role for role in REDISTRICTING.roles if role.key in wanted]
    matches = guessed_matches(roles, domain, most_cells=float("inf"))
    missing = [role.title for role in roles if role.key not in matches]
    if missing:
        raise WorkloadError(
            f"No attribute of the codebook looks like {missing[0]}; name the tables one by one, or "
            "rename the attribute."
        )
    return redistricting_tables(domain, **{key: matches[key].attribute for key in wanted})


def _redistricting(book: AreaCodebook, *, with_quarters: bool) -> dict[str, Workload]:
    tables = redistricting_from_domain(book.domain, with_quarters=with_quarters)
    return same_tables(book.tree, tables)


# By what they are called on screen.
PRESETS: Mapping[str, Callable[[AreaCodebook], dict[str, Workload]]] = MappingProxyType(
    {
        "The same tables on every level": lambda book: same_tables(
            book.tree, usual_tables(book.domain)
        ),
        "Less detail on lower levels": lambda book: shrinking_detail(
            book.tree, usual_tables(book.domain)
        ),
        "Totals only": lambda book: totals(book.tree, usual_tables(book.domain)),
        "Redistricting data (P.L. 94-171)": lambda book: _redistricting(book, with_quarters=False),
        "Redistricting data with group quarters": lambda book: _redistricting(
            book, with_quarters=True
        ),
    }
)

# ---- The areas of a scenario as JSON: what is asked for them, and which tree they are, by its
# SHA-256.
#
# The tree is in a file of its own, which all that is about it share.


_KEYS = (
    "codebook", "attribute", "domain", "sha256", "levels", "workloads", "loss", "uniform_levels",
)  # fmt: skip
_EXPECTED, _TOTALS = "expected", "totals"  # left out where there are none
_LEVEL_KEYS = ("name", "areas", "workload")


def study_to_json(study: AreaStudy) -> dict[str, Any]:
    """Plain values for a file; `study_from_json` undoes it exactly."""
    workloads: list[list[dict[str, Any]]] = []
    numbers: list[int | None] = []
    for level in study.levels:
        rows = tables_to_json(study.tables[level]) if level in study.tables else []
        if rows and rows not in workloads:
            workloads.append(rows)
        numbers.append(workloads.index(rows) if rows else None)
    levels = zip(study.levels, study.areas.sizes, numbers, strict=True)
    content = {
        "codebook": study.filename,
        "attribute": study.attribute,
        "domain": study.domain.to_schema(),
        "sha256": study.areas.sha256,
        "levels": [dict(zip(_LEVEL_KEYS, level, strict=True)) for level in levels],
        "workloads": [{"tables": rows} for rows in workloads],
        "loss": study.loss.to_json(),
        "uniform_levels": study.uniform,
    }
    if study.totals:
        content[_TOTALS] = study.totals
    return content if study.expected is None else content | {_EXPECTED: study.expected.to_json()}


def study_from_json(content: Any, read: ReadTreeFile) -> AreaStudy:
    """The study of a file's content; raises what `refusing` takes. The areas are not read yet."""
    expected = content.get(_EXPECTED) if isinstance(content, dict) else None
    has_totals = isinstance(content, dict) and _TOTALS in content
    known = [*([] if expected is None else [_EXPECTED]), *([_TOTALS] if has_totals else [])]
    check_keys(content, (*_KEYS, *known), "the areas")
    if type(content["uniform_levels"]) is not bool:
        raise FieldError("uniform_levels must be true or false.")
    levels = columns(content, "levels", _LEVEL_KEYS)
    names = tuple(text_of({"name": name}, "name") for name in levels["name"])
    sizes = indices(levels["areas"], MAX_AREAS + 1, "number of areas of a level")
    domain = Domain.from_schema(content["domain"])
    rows = columns(content, "workloads", ("tables",))["tables"]
    known = domain.with_levels
    workloads = [tables_from_json(tables, known) for tables in lists(rows, "workload")]
    if not any(tables.uses_levels for tables in workloads):
        workloads = [tables_from_json(tables, domain) for tables in lists(rows, "workload")]
    used = [number for number in levels["workload"] if number is not None]
    indices_by_first_use(used, len(workloads), "workload")
    if not used or len(set(names)) < len(names):
        raise FieldError("each level must have a name of its own, and some level tables.")
    return AreaStudy(
        filename=text_of(content, "codebook"),
        attribute=text_of(content, "attribute"),
        domain=domain,
        areas=AreaTreeReference(sha256_of(content, "sha256"), names, tuple(sizes.tolist()), read),
        tables={
            name: workloads[number]
            for name, number in zip(names, levels["workload"], strict=True)
            if number is not None
        },
        loss=loss_of_areas(content["loss"]),
        uniform=content["uniform_levels"],
        expected=None if expected is None else ExpectedCounts.from_json(expected).fitted(domain),
        totals=text_of(content, _TOTALS) if has_totals else "",
    )
