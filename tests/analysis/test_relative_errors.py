"""Relative errors and publishable cells, against the outer product over all cells."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import expected_cells
from rpexplore.analysis import expected_cells as relative
from rpexplore.analysis.measures import Accuracy
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import title, titles
from tests.analysis import bases
from tests.analysis.dense_counts import answers_by_brute_force, cells_by_brute_force, margin
from tests.analysis.schemes import accuracy_of, of_schemes, with_errors
from tests.support.strategies import workloads

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 29, 10)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("Female", "Male"))),
        rp.Attribute("region", rp.Categories(("N", "S", "W"))),
    )
)


def of_tables(accuracy, cells, coefficient):
    return relative.of_tables(accuracy, cells, coefficient)


@st.composite
def situations(draw):
    """A accuracy, expected counts of some of its attributes, and a wanted coefficient."""
    workload = draw(workloads(max_tables=8))
    domain = workload.domain
    names = [name for name in domain.names if draw(st.booleans())]
    size = math.prod(domain[name].size for name in names)
    seed = draw(st.integers(0, 2**32 - 1))
    pick = np.random.default_rng(seed)
    # Zeros too. No two sums are alike, so that no cell lies exactly on the limit.
    counts = pick.uniform(0, 100, size) * (pick.uniform(size=size) < 0.8)
    counts[0] = pick.uniform(1, 100)
    errors = pick.uniform(0.1, 20, len(workload))
    accuracy = with_errors(workload, errors)
    return accuracy, margin(domain, names, counts.tolist()), draw(st.floats(0.01, 3))


@settings(deadline=None, max_examples=50)
@given(situations())
def test_tables_against_all_cells(situation):
    accuracy, expected, coefficient = situation
    workload = accuracy.workload
    cells = relative.ExpectedCells.of(expected, workload)
    frame = of_tables(accuracy, cells, coefficient).set_index("table")
    for position, table in enumerate(workload.tables):
        counts = cells_by_brute_force(expected, workload, position)
        error = accuracy.standard_errors[position]
        accurate = [count > 0 and error / count <= coefficient for count in counts]
        row = frame.loc[title(table)]
        assert row["publishable"] == sum(accurate)
        assert row["share"] == pytest.approx(np.mean(accurate))
        assert row["median_count"] == pytest.approx(np.median(counts), rel=1e-9, abs=1e-9)
        if np.median(counts) > 1e-9:
            assert row["median_relative_error"] == pytest.approx(error / np.median(counts))
        listed = relative.of_cells(accuracy, cells, position, coefficient)
        np.testing.assert_allclose(listed["expected"], counts, rtol=1e-9, atol=1e-9)
        assert (listed["accurate"] == "yes").tolist() == accurate


@settings(deadline=None, max_examples=50)
@given(situations())
def test_orders_and_curves_against_tables(situation):
    accuracy, expected, coefficient = situation
    workload = accuracy.workload
    cells = relative.ExpectedCells.of(expected, workload)
    tables = of_tables(accuracy, cells, coefficient)
    frame = relative.by_order(accuracy, cells, coefficient)
    assert frame["attributes"].tolist()[-1] == "all tables"
    last = frame.to_dict("records")[-1]
    assert last["publishable"] == pytest.approx(tables["publishable"].sum())
    assert last["cells"] == tables["cells"].sum()
    assert last["whole"] == (tables["publishable"] == tables["cells"]).sum()
    assert last["none"] == (tables["publishable"] == 0).sum()
    for row, order in zip(frame.to_dict("records"), np.unique(workload.orders), strict=False):
        of_order = tables.loc[tables["order"] == order]
        assert row["publishable"] == pytest.approx(of_order["publishable"].sum())
        assert row["share"] == pytest.approx(row["publishable"] / row["cells"])
    curve = relative.curves(accuracy, cells)
    wanted = float(relative.CURVE[17])
    at = curve.loc[curve["coefficient"] == wanted]
    for row in at.to_dict("records"):
        listed = of_tables(accuracy, cells, wanted)
        of_order = listed.loc[listed["order"] == row["group"]]
        share = of_order["publishable"].sum() / of_order["cells"].sum()
        assert row["share"] == pytest.approx(share)


def test_a_total_is_spread_evenly():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(1800), accuracy.workload)
    frame = of_tables(accuracy, cells, 0.1).set_index("table")
    assert frame["median_count"].to_dict() == {
        "(total)": 1800,
        "age": 600,
        "sex": 900,
        "region": 600,
        "age × sex": 300,
        "age × region": 200,
        "sex × region": 300,
    }
    assert set(frame["share"]) <= {0.0, 1.0}


def test_the_most_publishable_tables_come_first():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(300), accuracy.workload)
    frame = of_tables(accuracy, cells, 0.05)
    assert frame["share"].is_monotonic_decreasing
    same = frame.loc[frame["share"] == 0, "median_relative_error"]
    assert same.is_monotonic_increasing
    assert len(same) > 2


def test_the_cells_of_a_table_have_their_labels():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    cells = relative.ExpectedCells.of(margin(DOMAIN, ["sex"], [0, 300]), accuracy.workload)
    index = accuracy.workload.position(("age", "sex"))
    frame = relative.of_cells(accuracy, cells, index, 0.1)
    assert frame["age"].tolist() == [x for x in ("0 to 9", "10 to 19", "20 to 29") for _ in "fm"]
    assert frame["sex"].tolist() == ["Female", "Male"] * 3
    assert frame["expected"].tolist() == [0, 100] * 3
    assert frame["accurate"].tolist() == ["no", "yes"] * 3
    assert np.isinf(frame["relative_error"][0])
    sentence = relative.describe_cells(frame, 0.1)
    assert sentence.endswith("coefficient of variation of at most 10 %: 3 of 6 cells.")


def test_attributes_called_like_the_columns():
    domain = rp.Domain.from_sizes({"expected": 2, "accurate": 3})
    accuracy = accuracy_of(rp.Workload.all_up_to(domain, 2))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(600), accuracy.workload)
    frame = relative.of_cells(accuracy, cells, 3, 0.1)
    assert frame["expected (attribute)"].tolist() == ["0", "0", "0", "1", "1", "1"]
    assert frame["expected"].tolist() == [100] * 6
    assert len(frame.columns) == 6


def test_counts_that_no_longer_fit_are_refused():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4}), 1)
    with pytest.raises(WorkloadError, match="no attribute 'sex'"):
        relative.ExpectedCells.of(margin(DOMAIN, ["sex"], [1, 2]), workload)


def test_a_table_of_too_many_cells_is_not_listed():
    domain = rp.Domain.from_sizes({"a": 10**6, "b": 10**3})
    accuracy = accuracy_of(rp.Workload.all_up_to(domain, 2))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(1e9), accuracy.workload)
    with pytest.raises(WorkloadError, match="about 1 billion cells; at most 100,000"):
        relative.of_cells(accuracy, cells, 3, 0.1)
    assert of_tables(accuracy, cells, 1000.0)["publishable"].sum() == 1 + 10**6 + 10**3 + (10**9)


def test_more_of_the_budget_publishes_more_cells():
    workload = rp.Workload.all_up_to(DOMAIN, 2)
    expected = margin(DOMAIN, ["age", "region"], [1, 2, 4, 8, 16, 32, 64, 128, 256])
    cells = relative.ExpectedCells.of(expected, workload)
    published = [
        relative.by_order(accuracy_of(workload, rho=rho), cells, 0.2)["share"].tolist()[-1]
        for rho in ("0.01", "0.1", "1")
    ]
    assert published == sorted(published)
    assert published[0] < published[-1]


def test_by_plan():
    schemes = of_schemes(rp.Workload.all_up_to(DOMAIN, 2))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(500), schemes[0].workload)
    frame = relative.by_plan(schemes, cells, 0.1)
    assert frame["plan"].tolist() == [accuracy.name for accuracy in schemes]
    for row, accuracy in zip(frame.to_dict("records"), schemes, strict=True):
        assert row["share"] == relative.by_order(accuracy, cells, 0.1)["share"].tolist()[-1]


def test_curves_are_those_of_the_shares_for_many_groups():
    workload = rp.Workload.all_up_to(DOMAIN, 3)
    accuracy = accuracy_of(workload)
    cells = relative.ExpectedCells.of(margin(DOMAIN, ["sex", "region"], range(6)), workload)
    frame = relative.curves(accuracy, cells)
    for index, coefficient in enumerate(relative.CURVE.tolist()):
        rows = relative.by_order(accuracy, cells, coefficient).to_dict("records")[:-1]
        result = frame["share"].to_numpy().reshape(len(rows), -1)[:, index]
        assert result.tolist() == pytest.approx([row["share"] for row in rows])


def test_nearly_all_cells_are_not_all():
    row = {"cells": 1e18, "share": 1.0, "tables": 2, "whole": 1, "none": 0}
    sentence = relative.describe_by_order(pd.DataFrame([row]), 0.2)
    assert "over 99.99 % of the about 10^18 cells" in sentence
    sentence = relative.describe_by_order(pd.DataFrame([row | {"whole": 2}]), 0.2)
    assert " 100 % of the" in sentence


@pytest.mark.parametrize(("total", "text"), [(1e9, "cell is publishable"), (1, "is not publish")])
def test_words_for_the_only_cell(total, text):
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 0))
    cells = relative.ExpectedCells.of(ExpectedCounts.of_total(total), accuracy.workload)
    sentence = relative.describe_by_order(relative.by_order(accuracy, cells, 0.2), 0.2)
    assert sentence.startswith("At a coefficient of variation of 20 %, the one ")
    assert text in sentence


def test_words():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    cells = relative.ExpectedCells.of(
        margin(DOMAIN, ["region"], [10, 1000, 100_000]), accuracy.workload
    )

    def sentence(coefficient):
        frame = relative.by_order(accuracy, cells, coefficient)
        return relative.describe_by_order(frame, coefficient)

    assert sentence(10.0).endswith("some of 0, none of 0.")
    assert "0 % of the 30 cells are publishable: all cells of 0 of" in sentence(1e-9)
    some = sentence(0.1)
    assert some.startswith("At a coefficient of variation of 10 %, ")
    assert "all cells of 4 of 7 tables, some of 3, none of 0." in some


# ---- tables whose cells are not equally accurate


@pytest.fixture(scope="module")
def based():
    """(plan of tables in many bases, expected counts by age and sex)."""
    plan = bases.scenario().table_plan()
    counts = np.arange(14.0) * 3
    return plan, margin(bases.DOMAIN, ("age", "sex"), counts.tolist())


def test_unequal_cells_are_judged_one_by_one(based):
    plan, expected = based
    accuracy, workload = Accuracy.of_plan("this", plan), plan.workload
    cells = relative.ExpectedCells.of(expected, workload)
    assert len(cells.unequal) == len(workload) - 2  # all but the total and sex
    frame = of_tables(accuracy, cells, 0.5).set_index("table")
    names = titles(workload, np.arange(len(workload)))
    for position in range(len(workload)):
        answers = answers_by_brute_force(expected, workload, position)
        errors = np.sqrt(bases.dense_cell_variances(plan, position))
        with np.errstate(divide="ignore"):
            ratios = errors / answers
        row = frame.loc[names[position]]
        assert row["share"] == pytest.approx(np.mean(ratios <= 0.5))
        assert row["median_count"] == pytest.approx(np.median(answers))
        if position in cells.unequal and np.isfinite(ratios).all():
            assert row["median_relative_error"] == pytest.approx(np.median(ratios), rel=1e-6)
        listed = relative.of_cells(accuracy, cells, position, 0.5)
        np.testing.assert_allclose(listed["expected"], answers, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(listed["standard_error"], errors, rtol=1e-6)
        assert (listed["accurate"] == "yes").tolist() == (ratios <= 0.5).tolist()
    total = relative.by_order(accuracy, cells, 0.5).iloc[-1]
    assert total["publishable"] == pytest.approx(frame["publishable"].sum())
    curve = relative.curves(accuracy, cells)
    assert np.all(np.diff(curve.loc[curve["series"] == "1 attribute", "share"]) >= 0)
    # Each cell has its own error, at whichever one looks.
    seen = relative.by_order(accuracy.at_cell("largest"), cells, 0.5)
    assert (
        seen["publishable"].tolist()
        == relative.by_order(accuracy, cells, 0.5)["publishable"].tolist()
    )


def test_cells_of_a_table_are_labelled_by_their_queries(based):
    plan, expected = based
    cells = relative.ExpectedCells.of(expected, plan.workload)
    index = plan.workload.position(("age", "sex"))
    frame = relative.of_cells(Accuracy.of_plan("this", plan), cells, index, 0.2)
    assert frame["age"].tolist()[:3] == ["≤ 0", "≤ 0", "≤ 1"]
    assert frame["sex"].tolist()[:3] == ["F", "M", "F"]


def test_too_many_unequal_cells_are_left_out_and_named(based, monkeypatch):
    plan, expected = based
    monkeypatch.setattr(expected_cells, "MOST_GONE_THROUGH", 60)
    cells = relative.ExpectedCells.of(expected, plan.workload)
    left = [plan.workload.tables[index] for index in cells.left_out]
    assert ("age", "income") in left
    assert ("age",) not in left
    accuracy = Accuracy.of_plan("this", plan)
    frame = of_tables(accuracy, cells, 0.2)
    assert len(frame) == len(plan.workload) - len(left)
    assert not frame.isna().any().any()
    row = relative.by_order(accuracy, cells, 0.2).iloc[-1]
    assert row["tables"] == len(frame)
    assert row["cells"] == frame["cells"].sum()
    assert not relative.curves(accuracy, cells).isna().any().any()
    sentence = cells.left_out_text
    assert sentence.startswith(f"{len(left)} tables, such as ")
    assert "60 in all" in sentence
    monkeypatch.setattr(expected_cells, "MOST_GONE_THROUGH", 10**6)
    assert relative.ExpectedCells.of(expected, plan.workload).left_out_text == ""
