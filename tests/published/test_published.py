"""Every published figure of pure marginals, to its printed digits."""

import pytest

from tests.published.figures import FIGURES, rows

CASES = [
    pytest.param(figure, row, id=f"{file} {row['dataset']} {row['k']}")
    for file, figure in FIGURES.items()
    for row in rows(file)
]


def test_all_rows_are_here():
    assert len(CASES) == 24


@pytest.mark.parametrize(("figure", "row"), CASES)
def test_figure(figure, row):
    value, plan = figure(row)
    printed = row["published"]
    decimals = len(printed.partition(".")[2])
    assert f"{value:.{decimals}f}" == printed
    assert plan.certificate.gap <= 1e-6
    assert plan.exact_privacy_cost <= 1
    if row["ceiling"]:
        assert value <= float(row["ceiling"]) * 1.001
