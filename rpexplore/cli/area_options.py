"""The options of the command line that are about areas."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from rpexplore.cli.commands import Option

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
        help="From tables in areas: the query answered for every area of this level.",
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
    float | None,
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
KnownTotals = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="For areas: publicly known totals that are met, which are not protected, as .csv or "
        ".parquet with the column total, and a column for each level or one called code.",
    ),
]
