"""Benchmarks beside another commit: the best of all turns counts, in each row's own direction."""

import pytest

from tests.benchmarks.beside import SHORT, WORSE, take, worsened
from tests.benchmarks.run import CASES


def test_the_better_figure_of_each_row_is_kept():
    best = {}
    take(best, [("count, s", 2.0, "<=", 3), ("  values a second", 10.0, ">=", 5)])
    take(best, [("count, s", 2.5, "<=", 3), ("  values a second", 12.0, ">=", 5)])
    assert best == {"count, s": (2.0, "<="), "count, s: values a second": (12.0, ">=")}


@pytest.mark.parametrize(("sign", "times"), [("<=", 1.5), ("<", 1.5), (">=", 1 / 1.5)])
def test_worse_is_larger_or_smaller_as_the_limit_says(sign, times):
    assert worsened(3.0, 2.0, sign) == pytest.approx(times)


def test_a_figure_of_zero_that_stays_is_not_worse():
    assert worsened(0.0, 0.0, "<=") == 1
    assert worsened(1.0, 0.0, "<=") > WORSE


def test_all_short_cases_are_there():
    assert set(SHORT) <= set(CASES)
