"""The options of forecasts: what is public, what is good enough, and a survey's own error."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rpexplore.cli.commands import Option, Ratio, RecordCount, flag, option
from rpexplore.cli.options import RecordNoun

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.domain.public_tables import PublicTable
    from rpexplore.domain.survey import SurveyDesign

PublicFiles = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "A public table: CSV with some attributes as columns, and count or share; lines before "
        "the header such as # date: 2021 say its name, date and source. Or the folder of a "
        "release, such as a pilot's, whose errors are taken into account. Of two that contradict "
        "each other the later one is followed. (repeatable)",
        "--public",
    ),
]
NamedPublic = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "A public table that the report names with its date and source. (repeatable)",
        "--public",
    ),
]
ForecastCount = Annotated[
    RecordCount | None,
    option("N", "How many records are expected in all; else as many as the public tables count."),
]
ForecastLimit = Annotated[
    Ratio | None,
    option(
        "X",
        "Largest coefficient of variation of a good cell (else that of the plan's rule, or 0.2).",
        "--limit",
    ),
]
ForecastShare = Annotated[
    Ratio | None,
    option(
        "X",
        "Share of a table's people who are to be in good cells (else the plan's rule, or 0.9).",
        "--share",
    ),
]
ByGroup = Annotated[
    list[str] | None,
    option(
        "ATTRIBUTE", "How good the cells of each value's people are. (repeatable)", "--by-group"
    ),
]
Rest = Annotated[
    Path | None,
    option(
        "FILE",
        "Write the plan of what is measured behind a pilot, made from its figures as its plan "
        "states (--then-most-people); release it into the folder of the run.",
        "--rest",
    ),
]
SuggestTables = Annotated[
    int,
    Option(
        min=1, metavar="N", help="How many tables, those with fewest people in good cells first."
    ),
]
Together = Annotated[
    bool,
    flag(
        "--together",
        "Suggest changes of several tables at once: one level, band or merging of an attribute, in "
        "all tables with it that miss. Those that make most tables good enough come first.",
    ),
]
Apply = Annotated[
    int | None,
    Option(
        min=1,
        metavar="N",
        help="Apply the proposal of this number, for the one table of --table, or of --together; "
        "the plan of all tables goes to --out.",
    ),
]
AppliedOut = Annotated[Path | None, option("FILE", "Where the plan of --apply goes.")]

ForecastOut = Annotated[
    Path | None,
    option(
        "FILE",
        "Write the plan with this forecast in it: a release by that plan shows it beside what came "
        "out.",
        "--out",
    ),
]
DesignEffect = Annotated[
    list[str] | None,
    option(
        "[TABLE=]D",
        "Total error, for a sample survey: the design effect, 1.8 or of one table age,sex=2.1. "
        "(repeatable)",
        "--design-effect",
    ),
]
WeightCv = Annotated[
    Ratio | None,
    option("X", "Total error: the public CV of the weights, for the design effect 1 + X²."),
]
SamplingFraction = Annotated[
    str | None,
    option("SHARE", "Total error: the share of the population that is in the sample, as 1%."),
]


def public_sources(paths: Iterable[Path] | None) -> "list[Path | PublicTable]":
    """The public tables that are named: files, and the one-way tables of folders of releases."""
    sources: list[Path | PublicTable] = []
    for path in paths or ():
        if not path.is_dir():
            sources.append(path)
            continue
        from rpexplore.results.pilot_tables import pilot_tables  # slow to import

        sources += pilot_tables(path)
    return sources


@dataclass(frozen=True, kw_only=True)
class Given:
    """What forecast and suggest rest on, and what is good enough for them."""

    public: PublicFiles = None
    expected_count: ForecastCount = None
    limit: ForecastLimit = None
    share: ForecastShare = None
    design_effect: DesignEffect = None
    weight_cv: WeightCv = None
    sampling_fraction: SamplingFraction = None
    record_noun: RecordNoun = "records"

    def survey(self, domain: "Domain") -> "SurveyDesign | None":
        """The design of the survey; None if none is stated."""
        from rpexplore.workload.survey_text import design_from_texts

        return design_from_texts(
            domain, self.design_effect or (), self.weight_cv, self.sampling_fraction
        )
