"""The options of the command line that are about areas, and what they are turned into."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rpexplore.cli.commands import Option, Ratio
from rpexplore.common.text import joined
from rpexplore.errors import DomainError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.domain.domain import Domain
    from rpexplore.planning.areas.area_workload import AreaWorkload
    from rpexplore.planning.losses.losses import Loss
    from rpexplore.workload.workload import Workload


# In the order of `level_tables.PRESETS`, and the tables of the redistricting data.
Detail = StrEnum(
    "Detail",
    {
        "SAME": "same",
        "SHRINKING": "shrinking",
        "TOTALS": "totals",
        "PL": "pl94-171",
        "PL_QUARTERS": "pl94-171-quarters",
    },
)

Areas = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="The areas, where the codebook names none: .csv or .parquet, with a column for each "
        "level; with whole codes, and --separator or --lengths; or with the columns code and "
        "parent.",
    ),
]
LevelNames = Annotated[
    str | None,
    Option(
        metavar="A,B",
        help="With --areas: the columns that are levels, or what the levels are called, the "
        "coarsest first.",
    ),
]
Separator = Annotated[
    str | None,
    Option(metavar="TEXT", help="With --areas: what stands between parts of whole codes."),
]
Lengths = Annotated[
    str | None,
    Option(metavar="N,M", help="With --areas: how many signs each part of whole codes has: 2,3,6."),
]
RecodeAreas = Annotated[
    list[str] | None,
    Option(
        metavar="LEVEL=FILE",
        help="With --areas: count codes of records on this level as those of other areas, by a CSV "
        "file with the columns old and new: old to new municipalities. The new ones must be in "
        "the areas. Repeat it for more.",
    ),
]
ChosenDetail = Annotated[
    Detail | None,
    Option(
        help="Tables on every level of areas: same, those that are asked for on every level; "
        "shrinking, of fewer attributes the lower the level, one at the lowest; totals, the number "
        "of records alone; pl94-171, those of the redistricting data (P.L. 94-171) on every level, "
        "or pl94-171-quarters, with group quarters (of a codebook with attributes such as race, "
        "hispanic and voting_age, for the latter also quarters)."
    ),
]
AnswerLevel = Annotated[
    str | None,
    Option(
        "--level",
        metavar="LEVEL",
        help="From tables in areas: the sum for every area of this level.",
    ),
]
AnswerWithin = Annotated[
    str | None,
    Option(
        "--within", metavar="CODE", help="With --level: only for the areas that lie in this one."
    ),
]
Level = Annotated[
    list[str] | None,
    Option(
        metavar="LEVEL=K",
        help="On this level, or in the areas of one of the --lists, the tables of at most K "
        "attributes, or none. Repeat it for more.",
    ),
]
Lists = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Lists of areas that get other tables than their levels: --level NAME=K. As .csv or "
        ".parquet with the column list, and a column for each level or one called code.",
    ),
]
LevelWeight = Annotated[
    list[str] | None,
    Option(
        metavar="LEVEL=W",
        help="How often the tables of this level, or of one of the --lists, count (else once). "
        "Repeat it for more.",
    ),
]
UniformLevels = Annotated[
    bool,
    Option(
        "--uniform-levels",
        help="All areas of a level get the same noise, which is less accurate.",
    ),
]
Compare = Annotated[
    bool,
    Option("--compare", help="Also show what shares of the budget by level would give."),
]
Tolerance = Annotated[
    Ratio | None,
    Option(
        metavar="X",
        help="How far, relative, the objective may be from the best (else 0.0001 for sum, 0.003 "
        "for others); larger = sooner done.",
    ),
]
# ---- releases, and sums of areas

ListsOfAreas = Annotated[
    Path | None,
    Option(
        "--areas",
        metavar="FILE",
        help="For areas: lists of areas, each added up, as .csv or .parquet with the column list, "
        "and a column for each level or one called code.",
    ),
]
OneArea = Annotated[
    str | None,
    Option(
        "--area",
        metavar="CODE",
        help="For areas: one area, by its own code where no other has it, or by its codes from the "
        "top: 'R03 > R0301'.",
    ),
]
SumsOut = Annotated[
    Path | None,
    Option("--csv", metavar="FILE", help="With --areas or --area: write all to a CSV file."),
]
ExpectedAreas = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="For areas: how many records areas are publicly known to hold, which together are the "
        "whole, as .csv or .parquet with the column total, and a column for each level or one "
        "called code.",
    ),
]
InAreas = Annotated[
    bool,
    Option("--in-areas", help="For areas: their tables, not those without areas, where both are."),
]
BestGuesses = Annotated[
    bool,
    Option(
        "--best-guesses",
        help="For areas: whole counts that are drawn towards the shares of the area around them "
        "as far as what was measured is noise, with model-based errors.",
    ),
]
Cluster = Annotated[
    str | None,
    Option(
        "--database",
        metavar="NAME",
        help="With --best-guesses: the name of a connection to Spark, as of release. Its workers, "
        "which must find RELEASE at the same path, estimate a subtree of areas each.",
    ),
]
KnownTotals = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Publicly known totals that are met, which are not protected. Of tables: a .csv with "
        "the column total and one for each attribute, empty where a row is of all values. Of "
        "areas: a .csv or .parquet with the column total, and a column for each level or code.",
    ),
]

# ---- What the options for areas are turned into: the areas, and the tables of each level.


_WITH_TABLES = ("totals", "pl94-171", "pl94-171-quarters")
_WAYS = ("up_to", "of_order", "at_most_cells", "table", "tables")


def areas_of_codebook(
    codebook: Path,
    level_names: str | None,
    separator: str | None,
    lengths: str | None,
    recode_areas: Sequence[str],
) -> "tuple[AreaTree, Domain]":
    """The areas of a codebook that names them, and the other attributes."""
    from rpexplore.domain.area_codebook import AreaCodebook

    if level_names or separator is not None or lengths or recode_areas:
        raise DomainError(
            "--level-names, --separator, --lengths and --recode-areas go with --areas FILE; a "
            "codebook with areas says them itself."
        )
    book = AreaCodebook.load(codebook)
    return book.tree, book.domain


def tree_from_options(
    areas: Path,
    level_names: str | None,
    separator: str | None,
    lengths: str | None,
    recode_areas: Sequence[str],
) -> "AreaTree":
    """The areas of a file."""
    from rpexplore.cli.inputs import text_of
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.domain.recodes import recode_of_file

    try:
        sizes = [int(text) for text in lengths.split(",")] if lengths else []
    except ValueError:
        raise DomainError(
            f"--lengths must be whole numbers, such as 2,3,6, got {lengths!r}."
        ) from None
    names = level_names.split(",") if level_names else []
    tree = AreaTree.from_file(areas, levels=names, separator=separator, lengths=sizes)
    files = _by_name(tree.levels[1:], recode_areas, "--recode-areas", "FILE", "old-new.csv")
    recodes = {
        level: recode_of_file(text_of(Path(file), None), Path(file).name)
        for level, file in files.items()
    }
    return tree.with_recodes(recodes)


def tables_from_options(domain: "Domain", detail: str, **asked: Any) -> "Workload":
    """The tables of the other attributes: those that are asked for, or of a detail that has some.

    asked: as of `inputs.workload_from_options`
    """
    from rpexplore.cli.inputs import workload_from_options
    from rpexplore.scenarios.area_study import redistricting_from_domain
    from rpexplore.workload.workload import Workload

    named = [key for key in _WAYS if asked[key] not in (None, [])]
    if detail not in _WITH_TABLES:
        return workload_from_options(domain, **asked)
    named += [key for key in ("weight", "target", "basis") if asked[key]]
    if named:
        raise WorkloadError(
            f"--detail {detail} has tables of its own; leave --{named[0]} out, or "
            "take another detail.".replace("_", "-")
        )
    if detail == "totals":
        return Workload.of(domain, [()])
    return redistricting_from_domain(domain, with_quarters=detail.endswith("quarters"))


def loss_from_options(loss: str | None, weighting: str | None, relative_to: str | None) -> "Loss":
    """The objective; `WorkloadError` for one that cannot be planned for in areas."""
    from rpexplore.planning.areas.area_loss import AREA_LOSSES
    from rpexplore.planning.serialization import loss_from_text

    options = [known.option for known in AREA_LOSSES]
    if loss is not None and loss not in options:
        raise WorkloadError(f"--loss must be {joined(options, ' or ')} for areas, got {loss!r}.")
    return loss_from_text(loss or "sum", weighting=weighting, relative_to=relative_to)


def tables_at_levels(
    domain: "Domain",
    tree: "AreaTree",
    at_levels: Mapping[str, Mapping[str, Any]],
    other_targets: Sequence[str],
) -> "dict[str, Workload]":
    """Tables that are asked for by naming a level, such as municipality,sex,age; by level.

    at_levels: as of `plan_inputs.split_by_level`; other_targets: of tables that have no other
    """
    from rpexplore.cli.inputs import with_other_target
    from rpexplore.workload.table_text import weight_from_text
    from rpexplore.workload.targets import Target
    from rpexplore.workload.workload import Workload

    of_levels = {}
    for level in tree.levels:
        if (asked := at_levels.get(level)) is None:
            continue
        tables = Workload.of(domain, asked["table"])
        weights = {table: weight_from_text(text) for table, text in asked["weight"].items()}
        targets = {table: Target.parse(text) for table, text in asked["target"].items()}
        tables = tables.with_weights(weights).with_targets(targets)
        of_levels[level] = with_other_target(tables, other_targets)
    return of_levels


def area_workload_from_options(
    tree: "AreaTree",
    tables: "Workload",
    preset: str,
    level: Sequence[str],
    level_weight: Sequence[str],
    lists: Path | None,
    at_levels: "Mapping[str, Workload]",
) -> "AreaWorkload":
    """The tables of each level and list of areas: those of a preset, changed by options.

    level, level_weight: such as town=1, town=none; in place of town also one of the lists in a file
    at_levels: tables of levels besides
    """
    from rpexplore.domain.named_areas import lists_of_areas
    from rpexplore.planning.areas.area_workload import PRESETS, AreaWorkload, same_tables

    areas = {} if lists is None else lists_of_areas(tree, lists)
    if shared := sorted(areas.keys() & {*tree.levels}):
        raise WorkloadError(f"A list of areas is called {shared[0]!r} like a level; rename it.")
    asked: dict[str, Workload | None] = {**PRESETS.get(preset, same_tables)(tree, tables)}
    _change_tables(asked, tables, (*tree.levels, *areas), level, level_weight)
    for name, more in at_levels.items():
        own = asked.get(name)
        asked[name] = more if own is None else own | more
    areas = {name: areas[name] for name in areas if name in asked}
    if lists is not None and not areas:
        raise WorkloadError(
            f"No list in {lists.name} has tables of its own; give them with --level NAME=K, or "
            "leave --lists out."
        )
    _refuse_shared(tree, areas)
    of_levels = {name: some for name in tree.levels if (some := asked.get(name)) is not None}
    workload = AreaWorkload.of_levels(tree, of_levels)
    for name, of_list in areas.items():
        workload = workload.with_areas(of_list, asked[name])
    return workload


def _change_tables(
    asked: "dict[str, Workload | None]",
    tables: "Workload",
    names: Sequence[str],
    level: Sequence[str],
    level_weight: Sequence[str],
) -> None:
    """Change the tables of levels, and of lists of areas, as options say."""
    from rpexplore.planning.areas.area_workload import up_to, with_weight
    from rpexplore.workload.table_text import weight_from_text

    for name, text in _by_name(names, level, "--level", "K", "1").items():
        if text == "none":
            asked[name] = None
        elif text.isdecimal():
            asked[name] = up_to(tables, int(text), name)
        else:
            raise WorkloadError(
                f"--level {name}={text} must be the most attributes of a table there, such as "
                f"{name}=1, or {name}=none."
            )
    for name, text in _by_name(names, level_weight, "--level-weight", "W", "2").items():
        of_name = asked.get(name)
        if of_name is None:
            raise WorkloadError(
                f"{name!r} has no tables that could have a weight; give it some with --level."
            )
        asked[name] = with_weight(of_name, weight_from_text(text))


def _refuse_shared(tree: "AreaTree", lists: Mapping[str, Sequence[int]]) -> None:
    """Raise if an area is in several lists, each of which has tables of its own."""
    list_of: dict[int, str] = {}
    for name, areas in lists.items():
        for area in areas:
            if list_of.setdefault(area, name) != name:
                codes = " > ".join(tree.path(area)) or tree.levels[0]
                raise WorkloadError(
                    f"The area {codes} is in the lists {list_of[area]!r} and {name!r}, which both "
                    "have tables; leave it out of one of them."
                )


def _by_name(
    names: Sequence[str], options: Sequence[str], option: str, letter: str, example: str
) -> dict[str, str]:
    """{name: text} of options such as town=1; names: of levels and lists of areas."""
    texts: dict[str, str] = {}
    for text in options:
        name, sign, value = text.rpartition("=")
        if not sign or name not in names:
            close = get_close_matches(name if sign else text, names, n=1)
            meant = f"there are {', '.join(names)}."
            if sign and close:
                meant = f"did you mean {close[0]!r}?"
            raise WorkloadError(
                f"{option} {text!r} must be LEVEL={letter}, such as {names[-1]}={example}; {meant}"
            )
        if name in texts:
            raise WorkloadError(f"{option} names {name!r} twice; name it once.")
        texts[name] = value
    return texts
