"""The forecast that a plan file keeps, so that it can be laid beside what a release gives.

It is made before any record is read, from public figures alone (`analysis.forecast`). Nothing of a
release depends on it, and `verify` does not draw its populations again.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from rpexplore.common.json_fields import check_keys, list_of
from rpexplore.common.numbers import shown, whole_number
from rpexplore.common.text import check_text
from rpexplore.domain.expected_counts import checked_cv_limit
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import PlanError
from rpexplore.planning.plan_fields import above_0, keys, name, of_type, record, rows

MOST_TABLES = 2_000
"""Tables whose own figures are kept; of more only those by number of attributes are."""
_MOST_TEXT = 4_000

Figures: TypeAlias = tuple[float, float, float]  # 5th per cent, median, 95th per cent


@dataclass(frozen=True)
class GroupForecast:
    """Tables of as many attributes: how many there are, and what is forecast of them.

    people, cells: shares, low, median and high; meeting: how many tables meet the rule
    """

    attributes: int
    tables: int
    people: Figures
    cells: Figures
    meeting: Figures


@dataclass(frozen=True)
class StatedForecast:
    """What was forecast of the tables of a plan.

    rests_on   number of records, and public tables, as a sentence
    n_records  how many records were expected
    limit      the largest coefficient of variation of a good cell
    share      of a table's people who are to be in good cells
    survey     whose sampling error counts beside the noise, if it does
    all        of all tables, by the number of attributes −1
    groups     by number of attributes, ascending
    tables     for each table of the plan the share of people in good cells, None if it is not
               forecast; () where there are more than `MOST_TABLES`

    Raises `PlanError` for what cannot have been forecast.
    """

    rests_on: str
    n_records: float
    limit: float
    share: float
    survey: SurveyDesign | None
    all: GroupForecast
    groups: tuple[GroupForecast, ...]
    tables: tuple[Figures | None, ...] = ()

    def __post_init__(self) -> None:
        check_text(self.rests_on, "What a forecast rests on", _MOST_TEXT, PlanError)
        checked_cv_limit(self.limit)
        if not 0 < self.share <= 1 or not 1 <= self.n_records < 1e16:
            raise PlanError("A forecast is of at least 1 record, and of a share above 0, to 1.")
        for group in (self.all, *self.groups):
            _check(group.people, 1.0)
            _check(group.cells, 1.0)
            _check(group.meeting, group.tables)
        for figures in self.tables:
            _check((0, 0, 0) if figures is None else figures, 1.0)
        if len(self.tables) > MOST_TABLES:
            raise PlanError(f"A forecast keeps the figures of at most {MOST_TABLES:,} tables.")
        if self.all.tables != sum(group.tables for group in self.groups):
            raise PlanError("A forecast of all tables must be of those of its groups together.")

    def to_json(self) -> dict[str, Any]:
        """Plain values for a plan file; `from_json` undoes it."""
        return {
            "rests_on": self.rests_on,
            "n_records": self.n_records,
            "limit": self.limit,
            "share": self.share,
            "survey": None if self.survey is None else self.survey.to_json(),
            "all": _group_to_json(self.all),
            "groups": [_group_to_json(group) for group in self.groups],
            "tables": [None if figures is None else list(figures) for figures in self.tables],
        }

    @classmethod
    def from_json(cls, content: Any) -> "StatedForecast":
        """The forecast that JSON values hold."""
        check_keys(content, keys(FIELDS), "the forecast")
        survey = content["survey"]
        return cls(
            content["rests_on"],
            _number(content["n_records"]),
            _number(content["limit"]),
            _number(content["share"]),
            None if survey is None else SurveyDesign.from_json(survey),
            _group(content["all"]),
            tuple(map(_group, list_of(content, "groups"))),
            tuple(None if row is None else _figures(row) for row in list_of(content, "tables")),
        )


def _group(content: Any) -> GroupForecast:
    check_keys(content, _GROUP_KEYS, "a forecast of tables")
    attributes, tables = (whole_number(content[key]) for key in ("attributes", "tables"))
    if attributes is None or tables is None or tables < 1 or attributes < -1:
        raise PlanError(
            "A forecast of tables needs how many there are, and by how many attributes."
        )
    ranges = (_figures(content[key]) for key in ("people", "cells", "meeting"))
    return GroupForecast(attributes, tables, *ranges)


def _group_to_json(group: GroupForecast) -> Mapping[str, Any]:
    return {key: list(one) if isinstance(one, tuple) else one for key, one in asdict(group).items()}


def _figures(content: Any) -> Figures:
    if not isinstance(content, list) or len(content) != 3:
        raise PlanError(f"A forecast has three figures, got {shown(content)}.")
    low, median, high = map(_number, content)
    return low, median, high


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"A figure of a forecast must be a number, got {shown(value)}.")
    return value


def _check(figures: Figures, most: float) -> None:
    low, median, high = figures
    if not 0 <= low <= median <= high <= most:
        raise PlanError(
            f"The figures of a forecast must ascend from 0 to {most:g}, got {low:g}, {median:g} "
            f"and {high:g}."
        )


_GROUP_KEYS = ("attributes", "tables", "people", "cells", "meeting")
_FIGURES = rows(of_type("number", minimum=0), minItems=3, maxItems=3)


def _three(meaning: str) -> dict[str, Any]:
    return rows(
        of_type("number", minimum=0),
        f"{meaning}: 5th per cent, median and 95th per cent of populations that agree with what "
        "is public.",
        minItems=3,
        maxItems=3,
    )


def _group_fields(meaning: str) -> dict[str, Any]:
    return record(
        meaning,
        attributes=of_type("integer", "How many attributes the tables have; -1: any.", minimum=-1),
        tables=of_type("integer", "How many tables are forecast.", minimum=1),
        people=_three("Share of people in good cells, the mean over tables"),
        cells=_three("Share of the tables' cells that are good"),
        meeting=_three("How many tables meet the rule"),
    )


FIELDS = record(
    "What was forecast when the plan was made, from public figures alone; nothing that is released "
    "depends on it.",
    rests_on=name("What the forecast rests on: the number of records, and public tables."),
    n_records=of_type("number", "How many records were expected.", minimum=1),
    limit=above_0("The largest coefficient of variation of a good cell: 0.2 is 20 %."),
    share=above_0("The share of a table's people who are to be in good cells: the rule."),
    survey={
        "description": "The design of the survey whose sampling error counts beside the noise; "
        "null if none does.",
        "oneOf": [
            {"type": "null"},
            record(
                design_effect=above_0("Of all tables that have none of their own."),
                of_tables=rows(
                    rows({}, minItems=2, maxItems=2),
                    "Attributes and design effect of tables that have one of their own.",
                ),
                sampling_fraction=of_type("number", "Share in the sample.", minimum=0, maximum=1),
            ),
        ],
    },
    all=_group_fields("Of all tables that are forecast."),
    groups=rows(_group_fields("Of tables with as many attributes."), "By number of attributes."),
    tables=rows(
        {"oneOf": [{"type": "null"}, _FIGURES]},
        "Share of people in good cells of each table, in the order of the plan; null if it is not "
        f"forecast; empty where there are more than {MOST_TABLES:,}.",
    ),
)
