"""Typical counts: those of one population, public ones as they are, flagged by the noise."""

from functools import cache

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.good_tables import matrix_of
from rpexplore.analysis.typical_counts import TypicalCounts, typical_counts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan

N_RECORDS, LIMIT = 9_000, 0.2
SEX = PublicTable(rp.ExpectedCounts(("sex",), (("0", "1"),), (6_000, 3_000)))
DOMAIN = rp.Domain.from_sizes({"age": 7, "sex": 2, "job": 150})


@cache
def plan() -> TablePlan:
    tables = rp.Workload.all_up_to(DOMAIN, 2)
    return plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.003"))


@cache
def drawn() -> DrawnCounts:
    return DrawnCounts.of(plan().workload, PublicTables(DOMAIN, (SEX,)))


def shown(*table: str, survey: SurveyDesign | None = None) -> TypicalCounts:
    return typical_counts(plan(), drawn(), plan().workload.position(table), LIMIT, survey)


def cells_of_table(*table: str) -> np.ndarray:
    """Drawn counts of a table that is gone through cell by cell: [n_populations, n_cells]."""
    place = plan().workload.position(table)
    (own,) = (of.counts[places == place] for of, places in drawn().groups if place in places)
    return own[0].astype(float)


def test_they_are_of_the_population_with_the_median_share_of_people_in_good_cells():
    table = shown("age", "sex")
    assert table.counts.shape == (7, 2)  # all of it
    error = plan().standard_errors[plan().workload.position(("age", "sex"))]
    counts = cells_of_table("age", "sex")
    shares = np.where(counts >= error / LIMIT, counts, 0).sum(1) / counts.sum(1)
    typical = np.flatnonzero(shares == np.sort(shares)[len(shares) // 2])
    assert any(np.allclose(np.round(counts[one]).reshape(7, 2), table.counts) for one in typical)
    assert np.all(table.low <= table.high)
    inside = (np.round(counts) >= table.low.ravel()) & (np.round(counts) <= table.high.ravel())
    assert np.all(inside.mean(axis=0) >= 0.9)
    assert not np.any(table.is_public)


def test_public_counts_are_certain_and_flags_are_those_of_the_noise():
    table = shown("sex")
    assert table.counts.ravel().tolist() == [6_000, 3_000]
    assert np.all(table.is_public)
    assert "These counts are public" in table.caption
    error = plan().standard_errors[plan().workload.position(("sex",))]
    letters = {0.05: "A", 0.1: "B", 0.2: "C", 0.33: "D", np.inf: "E"}
    assert table.flags.ravel().tolist() == [
        next(letter for limit, letter in letters.items() if error / count <= limit)
        for count in (6_000, 3_000)
    ]
    # CV² = σ²/c² + d (1 − f) (1 − c/n) / c
    design = SurveyDesign(400.0, sampling_fraction=0.5)
    sampled = shown("sex", survey=design)
    by_hand = [np.sqrt((error / c) ** 2 + 200 * (1 - c / N_RECORDS) / c) for c in (6_000, 3_000)]
    assert sampled.cvs.ravel() == pytest.approx(by_hand)
    assert sampled.is_doubtful.ravel().tolist() == [cv > LIMIT for cv in by_hand]


def test_a_large_table_is_shown_by_some_of_its_rows_and_agrees_with_the_forecast():
    table = shown("age", "job")  # 1,050 cells, of which the forecast draws people
    assert (table.n_rows, table.n_columns, table.counts.shape) == (150, 7, (7, 4))
    assert "7 of 150 rows, 4 of 7 columns" in table.caption
    cells = drawn().populations.cells_of(drawn().tables[plan().workload.position(("age", "job"))])
    place = plan().workload.position(("age", "job"))
    good = np.where(cells >= plan().standard_errors[place] / LIMIT, cells, 0).sum(1) / cells.sum(1)
    frame = rp.Forecast(plan(), drawn=drawn(), limit=LIMIT).tables(np.array([place]))
    assert np.median(good) == pytest.approx(frame["people_median"].item(), abs=0.05)


def test_the_matrix_holds_every_table_of_two_attributes_or_of_these_and_a_third():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes(dict.fromkeys("abcd", 2)), 3)

    def titles(third: str) -> list[list[str]]:
        matrix = matrix_of(workload, third)
        assert matrix is not None
        return [["".join(workload.tables[place]) for place in row] for row in matrix.places]

    assert titles("") == [
        ["a"], ["ab", "b"], ["ac", "bc", "c"], ["ad", "bd", "cd", "d"],
    ]  # fmt: skip
    assert titles("b") == [["ab"], ["abc", "bc"], ["abd", "bcd", "bd"]]
    few = rp.Workload.of(workload.domain, ["a", "b", "c", ("a", "d")])
    assert matrix_of(few) is None
