"""Which tables are good enough, at a glance: a square or a bar for each, by its forecast."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.ranges import Range
from rpexplore.common.text import describe_share, rounded
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import titles
from rpexplore.workload.workload import Workload

MOST_ATTRIBUTES = 24  # of a matrix that is still to be read
MOST_ROWS = 24  # of a list
_ROUNDING = 1e-9  # of per cent: 100 · 0.29 is less than 29
_LEAST_FILLED = 0.3  # of the squares of a matrix; a list shows fewer tables better
GOOD, OPEN, HALF, POOR, PLAIN = "good", "open", "half", "poor", "plain"
_IN_WORDS = {
    GOOD: "meets the rule",
    OPEN: "meets the rule by the median, not surely",
    HALF: "does not meet the rule",
    POOR: "does not meet the rule",
}


@dataclass(frozen=True)
class Mark:
    """One table, or count, as a square or a bar.

    place  of the table in the workload; -1 for what cannot be opened
    title  "age × sex"
    text   for a square: "93"
    full   for a bar: "93 % (90 % to 95 %)"
    says   all of it, for those who do not see colours
    kind   GOOD, OPEN, HALF (of the people are in good cells) or POOR; PLAIN without a forecast
    share  length of the bar, 0 to 1
    """

    place: int
    title: str
    text: str
    full: str
    says: str
    kind: str
    share: float

    @property
    def rank(self) -> tuple[bool, float]:
        """Smaller is worse: fewer people in good cells; last those without a forecast."""
        return self.kind == PLAIN, -self.share if self.kind == PLAIN else self.share


@dataclass(frozen=True)
class Matrix:
    """The tables of two attributes, or of these and a third one, as squares.

    names   of the attributes, in both directions
    places  of the tables, one row an attribute: those with it and each attribute up to it; -1
            where there is none
    """

    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def tables(self) -> list[int]:
        """All of them."""
        return [place for row in self.places for place in row if place >= 0]


def matrix_of(workload: Workload, third: str = "") -> Matrix | None:
    """The matrix of all tables of up to two attributes, or of these and a third.

    None where there are too many attributes, or too few tables, to be read so.
    """
    domain = workload.domain
    fixed = () if not third else (domain.position(third),)
    used = [index for index in workload.used if index not in fixed]
    if not 2 <= len(used) <= MOST_ATTRIBUTES:
        return None
    places = []
    for row, down in enumerate(used):
        found = (workload.find(sorted({*fixed, down, over})) for over in used[: row + 1])
        places.append(tuple(-1 if place is None else place for place in found))
    made = Matrix(tuple(domain.names[index] for index in used), tuple(places))
    n_squares = len(used) * (len(used) - 1) / 2
    n_tables = np.count_nonzero(workload.orders[made.tables] == 2 + len(fixed))
    return made if n_tables >= _LEAST_FILLED * n_squares else None


def worst_first(plan: TablePlan, forecast: Forecast | None, order: int) -> tuple[list[int], int]:
    """The worst tables of a number of attributes, at most `MOST_ROWS`, and how many there are.

    By people in good cells; without a forecast, and where none can be made, by standard error. The
    total is among the tables of one attribute: it is no group of its own.
    """
    orders = plan.workload.orders
    tables = np.flatnonzero((orders == order) | ((orders == 0) & (order == 1)))
    if forecast is not None and len(worst := forecast.worst(tables, MOST_ROWS)):
        return worst.tolist(), len(tables)
    worst = tables[np.argsort(-plan.standard_errors[tables], kind="stable")]
    return worst[:MOST_ROWS].tolist(), len(tables)


def people_by_table(forecast: Forecast, tables: np.ndarray) -> pd.DataFrame:
    """People in good cells of these tables, with ranges as text: columns people, meets.

    index: as `tables`; empty texts where a table cannot be forecast
    """
    frame = forecast.tables(tables)
    ends = zip(*(frame[f"people_{end}"].tolist() for end in Range._fields), strict=True)
    people = [Range(*row).text(describe_share) for row in ends]
    found = pd.DataFrame({"people": people, "meets": frame["meets"]}, index=frame.index)
    return found.reindex(tables, fill_value="")


def marks(plan: TablePlan, forecast: Forecast | None, places: Iterable[int]) -> dict[int, Mark]:
    """A mark for each of these tables: the people in good cells, or without forecast its margin."""
    tables = np.array(list(places), dtype=int)
    names, margins = titles(plan.workload, tables), plan.standard_errors[tables] * Z_95
    largest = float(margins.max(initial=0.0))
    of_people: dict[int, tuple[list[float], str]] = {}
    if forecast is not None:
        held, ends, verdicts = forecast.people_by_table(tables)
        rows = zip(ends.T.tolist(), verdicts.tolist(), strict=True)
        of_people = dict(zip(held.tolist(), rows, strict=True))
    whom, found = "" if forecast is None else forecast.whom, {}
    for place, name, margin in zip(tables.tolist(), names, margins.tolist(), strict=True):
        if place not in of_people:
            text = f"±{rounded(margin, 3)}"
            unit = plan.workload.unit_of(place, whom)
            says = f"{name}: margin of error {text} {unit}".rstrip()
            found[place] = Mark(place, name, text, text, says, PLAIN, margin / largest)
            continue
        row, meets = of_people[place]
        people, kind = Range(*row), {"yes": GOOD, "open": OPEN}.get(meets)
        if kind is None:
            kind = HALF if people.median >= 0.5 else POOR
        full = people.text(describe_share)
        judged = "" if meets == "no rule" else f"; {_IN_WORDS[kind]}"
        says = f"{name}: {full} of {whom} in good cells{judged}"
        # Whole per cent that are reached: "90" beside a limit of 90 % that is missed would mislead.
        share = people.median
        number = f"{math.floor(100 * share + _ROUNDING)}"
        number = "<1" if number == "0" and share else number
        found[place] = Mark(place, name, number, full, says, kind, share)
    return found


def marks_of_items(frame: pd.DataFrame, levels: Sequence[str] = ()) -> list[Mark]:
    """Marks for own counts, or for areas by level: their margins of error, the largest first.

    frame: of `accuracy()` of a part; levels: one mark each, of the root mean square
    """
    if len(levels):
        of_levels, squares = frame["level"].to_numpy(), frame["standard_error"].to_numpy() ** 2
        errors = {level: float(np.sqrt(squares[of_levels == level].mean())) for level in levels}
    else:
        items = zip(frame["item"].tolist(), frame["standard_error"].tolist(), strict=True)
        errors = dict(sorted(items, key=lambda one: -one[1])[:MOST_ROWS])
    most = max(errors.values(), default=0.0) or 1.0
    found = []
    for name, error in errors.items():
        text = f"±{rounded(error * Z_95, 3)}"
        says = f"{name}: margin of error {text}"
        found.append(Mark(-1, str(name), text, text, says, PLAIN, error / most))
    return found
