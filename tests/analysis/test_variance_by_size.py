"""Cell variances against cell counts: points, bins and words."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import distributions as cell_variances
from rpexplore.analysis.measures import SCHEMES
from tests.analysis.schemes import of_schemes, with_errors
from tests.published import figures

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})


@pytest.fixture(scope="module")
def small():
    return of_schemes(rp.Workload.all_up_to(DOMAIN, 2))


@pytest.fixture(scope="module")
def adult():
    return of_schemes(figures.workload("Adult", "<=3"))


def test_every_table_of_every_plan_is_a_point(small):
    frame = cell_variances.points(small)
    assert len(frame) == 4 * 7
    for accuracy in small:
        rows = frame.loc[frame["plan"] == accuracy.name].set_index("table")
        assert rows.loc["age × sex", "cells"] == 60
        position = accuracy.workload.position(("age", "sex"))
        error = accuracy.standard_errors[position]
        assert rows.loc["age × sex", "variance"] == error**2
        assert rows.loc["age × sex", "standard_error"] == error
        assert rows["attributes"].tolist() == ["total"] + ["1 attribute"] * 3 + ["2 attributes"] * 3


def test_points_of_some_tables(small):
    frame = cell_variances.points(small[:1], np.array([0, 5]))
    assert frame["table"].tolist() == ["(total)", "age × region"]
    assert frame["group"].tolist() == [0, 2]


def test_every_table_is_in_one_bin(adult):
    frame = cell_variances.bins(adult)
    workload = adult[0].workload
    assert frame["plan"].unique().tolist() == list(SCHEMES)
    for accuracy in adult:
        rows = frame.loc[frame["plan"] == accuracy.name]
        for order in range(4):
            of_order, held = workload.orders == order, rows.loc[rows["group"] == order]
            assert held["tables"].sum() == np.sum(of_order)
            # Geometric means of the bins, weighted, are those of all tables.
            for column, values in (
                ("cells", workload.cells[of_order]),
                ("standard_error", accuracy.standard_errors[of_order]),
            ):
                logs = np.average(np.log(held[column]), weights=held["tables"])
                assert logs == pytest.approx(np.log(values).mean(), rel=1e-9)
        assert rows["standard_error"].tolist() == pytest.approx(np.sqrt(rows["variance"]).tolist())


def test_bins_are_narrow(adult):
    """No table is further from its bin's mean than a fortieth of the range."""
    frame, workload = cell_variances.bins(adult), adult[0].workload
    logs = [2 * np.log(accuracy.standard_errors) for accuracy in adult]
    across = np.ptp(np.log(workload.cells)) / 40 * (1 + 1e-9)
    upwards = (max(map(np.max, logs)) - min(map(np.min, logs))) / 40 * (1 + 1e-9)
    for accuracy, log_variances in zip(adult, logs, strict=True):
        rows = frame.loc[frame["plan"] == accuracy.name]
        left = np.abs(np.log(workload.cells)[:, None] - np.log(rows["cells"].to_numpy()))
        right = np.abs(log_variances[:, None] - np.log(rows["variance"].to_numpy()))
        groups = workload.orders[:, None] == rows["group"].to_numpy()
        assert np.all(np.any((left <= across) & (right <= upwards) & groups, axis=1))


def test_bins_shift_with_the_budget():
    workload = figures.workload("CPS", "<=3")
    small, large = (cell_variances.bins(of_schemes(workload, rho)) for rho in ("0.1", "0.4"))
    assert small["tables"].tolist() == large["tables"].tolist()
    assert small["variance"].tolist() == pytest.approx((4 * large["variance"]).tolist())


def test_bins_do_not_grow_with_the_tables():
    domain = rp.Domain.from_sizes({f"a{i}": 2 + i for i in range(40)})
    schemes = of_schemes(rp.Workload.all_up_to(domain, 3))
    assert len(schemes[0].workload) == 10_701
    assert len(cell_variances.bins(schemes)) < 2000


def test_one_table_is_one_bin():
    frame = cell_variances.bins(of_schemes(rp.Workload.all_up_to(DOMAIN, 0)))
    assert frame["tables"].tolist() == [1] * 4
    assert frame["cells"].tolist() == [1] * 4


def test_words(small):
    sentence = cell_variances.describe(small, "people")
    assert "; small tables are less accurate." in sentence.partition("“Equal weight per cell”")[2]
    assert sentence.endswith("people for every table, whatever its size.")
    workload = small[0].workload
    errors = np.sqrt(workload.cells)
    large = with_errors(workload, errors)
    assert "σ ranges from 1 to 14.5 people; large tables are less accurate." in (
        cell_variances.describe([large], "people")
    )
    mixed = with_errors(workload, [1, 1, 1, 2, 2, 1, 1])
    assert "with little trend by size" in cell_variances.describe([mixed], "people")


def test_size_is_told_from_the_number_of_attributes(small):
    workload = small[0].workload

    def sentence(errors):
        return cell_variances.describe([with_errors(workload, errors)], "people")

    # Tables: total, age (30), sex (2), region (7), age × sex, age × region, sex × region.
    steps = sentence([1, 2, 2, 2, 4, 4.1, 4])
    assert (
        "σ ranges from 1 to 4.1 people, with little trend by size among tables of as many" in steps
    )
    against = sentence([1, 4, 5, 4.5, 7, 6, 8])
    assert "small tables are less accurate among tables of as many attributes" in against
    along = sentence([1, 4, 2, 3, 5, 6, 4])
    assert "σ ranges from 1 to 6 people; large tables are less accurate." in along


def test_of_tables_of_one_size_each_order_is_a_size():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 3, "c": 3}), 2)
    errors = np.array([1, 2, 2, 2, 4, 4, 4.0])
    sentence = cell_variances.describe([with_errors(workload, errors)], "people")
    assert "σ ranges from 1 to 4 people; large tables are less accurate." in sentence
