"""How accurate tables are in areas: area by area, of all together, and against targets."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import Headline
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.sufficient_budgets import ROOM_FOR_OTHERS, SufficientBudget
from rpexplore.analysis.sufficient_budgets import sufficient_budget as budget_for_rho
from rpexplore.common.text import describe_share, joined, plural, rounded
from rpexplore.domain.area_tree import AreaRange, AreaTree, area_title
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.tree_passes import stated_errors
from rpexplore.planning.part_plan import Z_95, worst_first
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import Table, title

# ---- How accurate a table is in each area: which areas are least accurate, and what goes with it.


# Areas are put together by the number of their parts, or of the parts of the area they lie in.
_CLASSES = ((0, "not divided"), (1, "1"), (2, "2 to 5"), (6, "6 to 20"), (21, "more than 20"))
_PARTS, _FAMILY = "parts", "family"
SIZES = {_PARTS: "By the number of parts of an area", _FAMILY: "By the size of its family"}
MOST_NODES = 2000  # areas drawn at once
_ALIKE = 1e-3  # relative difference of errors below which areas count as equally accurate


def level_accuracy(plan: AreaPlan) -> pd.DataFrame:
    """One row a level with tables: level, areas, tables, standard_error, margin_95 and largest.

    areas are those with tables. standard_error is the root mean square over the tables of all of
    them, largest_standard_error that of the least accurate table in the least accurate area, in
    largest_table; margin_95 and largest_margin are 95 % margins of error. Sums of amounts and
    weighted counts, which have other units, are left out beside counts.
    """
    tree, asked, rows = plan.workload.tree, plan.workload.kinds >= 0, []
    tables, comparable = plan.workload.tables, plan.workload.tables.comparable
    for level, of_level in plan.accuracy().groupby("level", sort=False):
        is_told = comparable[[tables.position(names) for names in of_level["attributes"]]]
        if np.any(is_told):
            of_level = of_level.loc[is_told]
        worst = of_level.loc[of_level["largest_standard_error"].idxmax()]
        variances, times = of_level["standard_error"].to_numpy() ** 2, of_level["areas"].to_numpy()
        typical = math.sqrt(variances @ times / np.sum(times))
        areas = tree.level_slice(tree.levels.index(worst["level"]))
        rows.append(
            {
                "level": level,
                "areas": int(np.count_nonzero(asked[areas])),
                "tables": of_level["attributes"].nunique(),
                "standard_error": typical,
                "margin_95": typical * Z_95,
                "largest_standard_error": float(worst["largest_standard_error"]),
                "largest_margin": float(worst["largest_standard_error"]) * Z_95,
                "largest_table": worst["item"],
            }
        )
    return pd.DataFrame(rows)


def describe_shares(beside: pd.DataFrame) -> str:
    """The result of `levels.beside_shares_by_level` in a sentence."""
    texts = []
    for title_of, ratio in zip(beside["title"], beside["ratio"], strict=True):
        less = 1 - ratio
        saved = f"{describe_share(less)} less than" if less > _ALIKE else "the same as"
        texts.append(f"{saved} with {'the ' if title_of.startswith('best') else ''}{title_of}")
    return f"The objective is {' and '.join(texts)} of the same budget."


def describe_levels(sizes: pd.DataFrame) -> str:
    """The result of `levels.level_sizes` in a sentence."""
    texts = [
        f"{areas:,} on {level}" for level, areas in zip(sizes["level"], sizes["areas"], strict=True)
    ]
    early = [
        f"{undivided:,} of {level}"
        for level, undivided in zip(sizes["level"][:-1], sizes["undivided"][:-1], strict=True)
        if undivided
    ]
    end = f" Leaves above the lowest level: {joined(early)}." if early else ""
    return f"Areas by level: {joined(texts)}.{end}"


@dataclass(frozen=True, eq=False)
class AreaErrors:
    """Standard error of a cell of one table in every area.

    errors  float64[n_areas]; NaN where the table is not asked for
    """

    tree: AreaTree
    table: Table
    errors: np.ndarray

    @classmethod
    def of(cls, plan: AreaPlan, table: Table) -> "AreaErrors":
        """Of a plan; a table that is asked for somewhere."""
        workload, groups = plan.workload, plan.groups
        row = workload.tables.position(table)
        variances = plan.closure.variance_matrix[row] @ plan.residual_variances
        asked = [kind for kind, rows in enumerate(workload.rows) if row in rows]
        of_groups = np.where(np.isin(groups.kinds, asked), variances, np.nan)
        errors = stated_errors(of_groups) * workload.tables.units[row]
        return cls(workload.tree, table, errors[groups.of_area])

    @property
    def title(self) -> str:
        """The title of the table."""
        return title(self.table)

    @cached_property
    def levels(self) -> list[str]:
        """The levels on which the table is asked for somewhere."""
        slices = map(self.tree.level_slice, range(len(self.tree.levels)))
        return [
            level
            for level, areas in zip(self.tree.levels, slices, strict=True)
            if not np.all(np.isnan(self.errors[areas]))
        ]

    @cached_property
    def most_different_level(self) -> str:
        """The level whose areas differ most in accuracy, the largest error over the smallest."""

        def ratio(level: str) -> float:
            errors = self.errors[self._areas(level)]
            return float(np.max(errors) / np.min(errors))

        return max(self.levels, key=ratio)

    @cached_property
    def family(self) -> np.ndarray:
        """Of how many parts the area that each lies in consists, int[n_areas]; 1 for the top."""
        return np.append(1, self.tree.n_parts[self.tree.parents[1:]])

    # ---- which are least accurate, and why

    def least_accurate(self, level: str, most: int) -> pd.DataFrame:
        """The least accurate areas of a level, so many at most, the least accurate first.

        area, code, parts, family, standard_error, margin_95, times_median (of the level)
        """
        areas = self._areas(level)
        errors = self.errors[areas]
        order = np.argsort(-errors, kind="stable")[:most]
        chosen, median = areas[order], float(np.median(errors))
        return pd.DataFrame(
            {
                "area": [area_title(self.tree, area) for area in chosen.tolist()],
                "code": [" > ".join(self.tree.path(area)) for area in chosen.tolist()],
                "parts": self.tree.n_parts[chosen],
                "family": self.family[chosen],
                "standard_error": errors[order],
                "margin_95": errors[order] * Z_95,
                "times_median": errors[order] / median if median > 0 else 1.0,
            }
        )

    def by_size(self, level: str, kind: str) -> pd.DataFrame:
        """Areas of a level together by their size: size, areas, smallest, median, largest σ.

        kind: "parts", how many an area has, or "family", how many there are where it lies
        """
        errors, of_class = self._errors_and_classes(level, kind)
        rows = []
        for number, (_, text) in enumerate(_CLASSES):
            of_size = errors[of_class == number]
            if len(of_size):
                ends = float(np.min(of_size)), float(np.median(of_size)), float(np.max(of_size))
                rows.append((text, len(of_size), *ends))
        columns = ["size", "areas", "smallest", "median", "largest"]
        return pd.DataFrame(rows, columns=pd.Index(columns))

    def kind_that_tells_more(self, level: str) -> str:
        """By which kind of size errors differ more: "parts" or "family"."""
        return max((_PARTS, _FAMILY), key=lambda kind: self._explained(level, kind))

    def describe(self, level: str) -> str:
        """How different the areas of a level are, and what goes with it."""
        areas = self._areas(level)
        errors = self.errors[areas]
        low, high = float(np.min(errors)), float(np.max(errors))
        if high <= low * (1 + _ALIKE):
            return (
                f"On the level {level} {self.title} is equally accurate in all areas: standard "
                f"error {error_text(high, low)}."
            )
        least = areas[int(np.argmax(errors))]
        text = (
            f"On the level {level} the standard error of {self.title} is between "
            f"{error_text(low, low)} and {error_text(high, low)}, in the median "
            f"{error_text(float(np.median(errors)), low)}; the largest is that of "
            f"{area_title(self.tree, int(least))}, which {self._describe_size(int(least))}."
        )
        kind = self.kind_that_tells_more(level)
        share, sizes = self._explained(level, kind), self.by_size(level, kind)
        if len(sizes) < 2 or share < 0.05:
            return text
        first, last = sizes.iloc[0], sizes.iloc[-1]
        medians = [error_text(size["median"], low) for size in (first, last)]
        subject = (
            "how many parts an area has"
            if kind == _PARTS
            else "how many areas lie beside each other in the same one"
        )
        return (
            f"{text} {describe_share(share)} of the differences go with {subject}: the median is "
            f"{medians[0]} for {first['size']} and {medians[1]} for {last['size']}."
        )

    def _describe_size(self, area: int) -> str:
        parts = int(self.tree.n_parts[area])
        own = f"has {plural(parts, 'part')}" if parts else "is not divided"
        return own if area == 0 else f"{own} and is one of {int(self.family[area]):,} in its family"

    def _explained(self, level: str, kind: str) -> float:
        """The share of the variance of errors that is between the classes of sizes."""
        errors, of_class = self._errors_and_classes(level, kind)
        total = float(np.var(errors))
        if total == 0:
            return 0.0
        sizes = np.bincount(of_class)
        means = np.bincount(of_class, errors) / np.maximum(sizes, 1)
        return float(sizes @ (means - np.mean(errors)) ** 2) / len(errors) / total

    def _errors_and_classes(self, level: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The errors of the areas of a level, and the class of the size of each."""
        areas = self._areas(level)
        counts = (self.tree.n_parts if kind == _PARTS else self.family)[areas]
        lows = [low for low, _ in _CLASSES]
        return self.errors[areas], np.searchsorted(lows, counts, side="right") - 1

    def _areas(self, level: str) -> np.ndarray:
        """The areas of a level that are asked for the table."""
        of_level = self.tree.level_slice(self.tree.levels.index(level))
        return of_level.start + np.flatnonzero(~np.isnan(self.errors[of_level]))

    # ---- walking down

    @cached_property
    def undivided_within(self) -> np.ndarray:
        """How many areas without parts each area holds, itself included, int64[n_areas]."""
        counts = (self.tree.n_parts == 0).astype(np.int64)
        AreaRange.within(self.tree, 0, 0, 1, len(self.tree.levels) - 1).add_parts(counts)
        return counts

    def with_parts(self, top: int, most: int = MOST_NODES) -> tuple[pd.DataFrame, str]:
        """An area and its parts, so many areas at most; and what is not among them.

        number, parent (a number; −1 for the area itself), area, code, level, parts, family,
        undivided (areas without parts within it), standard_error (NaN: not asked for)
        """
        tree, room, left_out = self.tree, most - 1, ""
        first = int(tree.first_parts[top])
        parts = np.arange(first, first + int(tree.n_parts[top]))
        if len(parts) > room:
            errors = np.nan_to_num(self.errors[parts], nan=-1.0)
            left_out = f"Of {len(parts):,} parts the {room:,} least accurate are drawn."
            parts = np.sort(parts[np.argsort(-errors, kind="stable")[:room]])
        elif np.any(tree.n_parts[parts]):
            left_out = "Look into a part to see the areas within it."
        areas = np.append(top, parts)
        listed = areas.tolist()
        frame = pd.DataFrame(
            {
                "number": areas,
                "parent": [-1, *(top for _ in parts)],
                "area": [area_title(tree, area) for area in listed],
                "code": [" > ".join(tree.path(area)) for area in listed],
                "level": [tree.levels[level] for level in tree.level_of[areas].tolist()],
                "parts": tree.n_parts[areas],
                "family": self.family[areas],
                "undivided": self.undivided_within[areas],
                "standard_error": self.errors[areas],
            }
        )
        return frame, left_out


def error_text(error: float, smallest: float) -> str:
    """A standard error with the decimals that show three digits of the smallest beside it."""
    if not 1e-6 <= smallest < 1e15:
        return rounded(error, 3)
    return f"{error:,.{max(2 - math.floor(math.log10(smallest)), 0)}f}"


def describe_parts(frame: pd.DataFrame, table: str) -> str:
    """How accurate a table is in the areas of a frame of `AreaErrors.with_parts`, in a sentence."""
    asked = frame.dropna(subset=["standard_error"]).sort_values("standard_error", kind="stable")
    if asked.empty:
        return f"{table} is not asked for in these areas."
    most, least = asked.iloc[0], asked.iloc[-1]
    low = most["standard_error"]
    return (
        f"{plural(len(frame), 'area')}; the standard error of {table} is between "
        f"{error_text(most['standard_error'], low)} ({most['area']}, level {most['level']}) and "
        f"{error_text(least['standard_error'], low)} ({least['area']}, level {least['level']})."
    )


def divided_parts(tree: AreaTree, area: int, most: int) -> list[int]:
    """The parts of an area that are divided themselves, so many at most."""
    first, count = int(tree.first_parts[area]), int(tree.n_parts[area])
    return (first + np.flatnonzero(tree.n_parts[first : first + count])[:most]).tolist()


# ---- How accurate the tables of all areas are, taken together: least, median and largest errors.


def area_headline(plan: AreaPlan) -> Headline:
    """The median over all tables of all areas, and the least accurate one of these.

    Of tables in other bases, root mean squares over their cells and the least accurate cell. Sums
    of amounts and weighted counts, which have other units, are left out beside counts.
    """
    tables = plan.workload.tables
    pieces = [
        (errors, sizes)
        for _, table, errors, sizes, _ in _errors_by_level(plan)
        if tables.comparable[tables.position(table)]
    ]
    errors, sizes = (np.concatenate(each) for each in zip(*pieces, strict=True))
    if not plan.workload.tables.is_marginals:
        rows = worst_first(plan.accuracy())
        is_told = tables.comparable[[tables.position(names) for names in rows["attributes"]]]
        worst_row = rows[is_told].iloc[0]
        return Headline(
            median_error=weighted_median(errors, sizes),
            largest_error=float(worst_row["largest_standard_error"]),
            least_accurate_table=f"{worst_row['item']} on the level {worst_row['level']}",
            cells_differ=True,
            is_one=plan.n_items == 1,
        )
    worst, area, table = max(
        (float(errors.max()), int(groups[errors.argmax()]), table)
        for _, table, errors, _, groups in _errors_by_level(plan)
    )
    first = int(np.flatnonzero(plan.groups.of_area == area)[0])
    return Headline(
        median_error=weighted_median(errors, sizes),
        largest_error=worst,
        least_accurate_table=f"{title(table)} in {area_title(plan.workload.tree, first)}",
        cells_differ=False,
        is_one=plan.n_items == 1,
    )


def errors_by_level(plan: AreaPlan) -> pd.DataFrame:
    """One row a table and level, the levels from the top: standard errors over the level's areas.

    Of tables in other bases each area's is the root mean square over its cells.

    level, table, areas, cells (in one area), smallest, median, largest
    """
    tables = plan.workload.tables
    rows = [
        {
            "level": level,
            "table": title(table),
            "areas": int(sizes.sum()),
            "cells": int(tables.exact_cells[tables.position(table)]),
            "smallest": float(errors.min()),
            "median": weighted_median(errors, sizes),
            "largest": float(errors.max()),
        }
        for level, table, errors, sizes, _ in _errors_by_level(plan)
    ]
    return pd.DataFrame(rows)


def n_tables_below(plan: AreaPlan, error: float) -> int:
    """How many tables of areas have a standard error below this one.

    Of tables in other bases, how many may have such a cell: all on a level where one area has. Of
    counts, whose noise comes in whole steps of that size, not of sums of amounts.
    """
    tables = plan.workload.tables
    if not tables.is_marginals:
        rows = plan.accuracy()
        has_steps = ~tables.has_amounts[[tables.position(names) for names in rows["attributes"]]]
        is_below = has_steps & (rows["smallest_standard_error"] < error)
        return int(rows.loc[is_below, "areas"].sum())
    return sum(int(sizes[errors < error].sum()) for *_, errors, sizes, _ in _errors_by_level(plan))


def weighted_median(values: np.ndarray, counts: np.ndarray) -> float:
    """The median of values of which each is there so many times."""
    order = np.argsort(values)
    ends, total = np.cumsum(counts[order]), int(np.sum(counts))
    middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
    return float(np.mean(values[order][middle]))


def _errors_by_level(
    plan: AreaPlan,
) -> Iterator[tuple[str, Table, np.ndarray, np.ndarray, np.ndarray]]:
    """Of each level and table: standard errors, numbers of areas that have them, their groups."""
    groups, tree = plan.groups, plan.workload.tree
    for number, level in enumerate(tree.levels):
        here = np.arange(*groups.starts[number : number + 2])
        asked = {
            table: None
            for kind in np.unique(groups.kinds[here]).tolist()
            if kind >= 0
            for table in plan.workload.rows[kind].tolist()
        }
        for table in sorted(asked):
            kinds = [kind for kind, rows in enumerate(plan.workload.rows) if table in rows]
            own = here[np.isin(groups.kinds[here], kinds)]
            variances = plan.closure.variance_matrix[table] @ plan.residual_variances[:, own]
            table_name = plan.workload.tables.tables[table]
            errors = stated_errors(variances) * plan.workload.tables.units[table]
            yield level, table_name, errors, groups.multiplicity[own], own


# ---- Targets of tables in areas: whether a plan meets them, and the budget at which all are met.


def sufficient_budget(plan: AreaPlan) -> Budget:
    """The smallest budget at which a plan for the largest shortfall meets all its targets.

    Variances are inversely proportional to the budget, and the loss is the largest of them over the
    square of its target. No budget is enough that is smaller by more than the plan's gap. It is in
    the unit of the plan's budget.
    """
    needed = float(plan.budget.rho) * plan.loss_value
    return budget_for_rho(needed, plan.budget, noise=plan.noise).budget


def budget_within_reach(
    refused: OutOfReachError, budget: Budget, workload: AreaWorkload
) -> tuple[SufficientBudget, str]:
    """The smallest budget for required targets that a budget is too small for, and a sentence.

    With a little more where tables have none, so that they get something; in the budget's unit.
    """
    factor, more = refused.needed, ""
    if not all(bool(np.all(asked.required)) for asked in workload.workloads):
        factor *= 1 + ROOM_FOR_OTHERS
        more = (
            f" That is {describe_share(ROOM_FOR_OTHERS)} more than they need, so that other tables "
            "get something."
        )
    enough = budget_for_rho(float(budget.rho) * factor, budget)
    return enough, f"All of them are met at {enough.text}: {enough.compared}.{more}"


def describe_required(plan: AreaPlan) -> str:
    """How many required targets a plan within them meets in all areas, in a sentence."""
    frame = plan.accuracy()
    frame = frame.loc[frame["required"]]
    count = plural(int(frame["areas"].sum()), "required target")
    ratio = np.max(frame["largest_standard_error"].to_numpy() / frame["target"].to_numpy())
    return (
        f"All of the {count} in all areas are met: the largest standard error is "
        f"{describe_share(ratio, 3)} of its target."
    )


def describe_targets(plan: AreaPlan) -> str:
    """How far a plan for the largest shortfall is from its targets, and what would meet them."""
    ratio = plan.loss_value**0.5
    met = (
        f"All targets are met: the largest standard error is {describe_share(ratio, 3)} of its "
        "target."
        if plan.loss_value <= 1
        else f"Targets are missed: the largest standard error is {rounded(ratio, 3, 'up')} times "
        "its target."
    )
    enough = stated_text(sufficient_budget(plan))
    return (
        f"{met} The smallest budget that meets all of them is {enough}, within "
        f"{describe_share(plan.gap)}."
    )
