"""A made-up table: what it would be without noise, and what it says of itself."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.rehearsal import MAX_CELLS, rehearse, whole_counts
from tests.releases.table_plan import DOMAIN, PLAN
from tests.support.generalised import basis_matrix

BY_SEX = ExpectedCounts(("sex",), (("m", "f"),), (30.0, 10.0))


@pytest.mark.usefixtures("without_noise")
def test_without_noise_a_table_is_the_expected_one():
    table = rehearse(PLAN, BY_SEX, ("age", "sex"), cv_limit=0.2)
    # 30 males and 10 females over three values of age, row-major by sex and age:
    # 10/3, 20/3 and 10 women are 3, 7 and 10; then 20, 30 and 40 persons.
    assert table.attributes == ("sex", "age")
    assert table.cells["value"].tolist() == pytest.approx([3, 4, 3, 10, 10, 10])
    assert table.expected.ravel().tolist() == pytest.approx([10 / 3] * 3 + [10] * 3)
    total = rehearse(PLAN, BY_SEX, (), cv_limit=0.2)
    assert total.cells["value"].tolist() == pytest.approx([40])


@pytest.mark.usefixtures("without_noise")
def test_answers_are_those_of_the_table_s_bases():
    workload = rp.Workload.of(DOMAIN, [("sex", "age")]).with_bases({"age": rp.Prefix()})
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    table = rehearse(plan, BY_SEX, ("sex", "age"), cv_limit=0.2)
    matrix = basis_matrix(rp.Prefix(), DOMAIN["age"])
    counts = np.array([[3, 4, 3], [10, 10, 10]]) @ matrix.T
    assert table.cells["value"].tolist() == pytest.approx(counts.ravel().tolist())
    errors = plan.cell_standard_errors(("sex", "age"))
    assert table.cells["standard_error"].tolist() == pytest.approx(errors.ravel().tolist())


def test_cells_are_suppressed_by_their_expected_count():
    error = float(PLAN.cell_standard_errors(("sex",))[0])
    expected = ExpectedCounts(("sex",), (("f", "m"),), (4.99 * error, 5.01 * error))
    table = rehearse(PLAN, expected, ("sex",), cv_limit=0.2)
    assert table.publishable.tolist() == [False, True]
    assert table.shown["value"].isna().tolist() == [True, False]
    assert table.shown["standard_error"].notna().all()
    assert table.cells["value"].notna().all()
    assert table.text.startswith("Made up: ")
    assert "1 of 2 cells is publishable, with a coefficient of variation of at most 20 %" in (
        table.text
    )


def test_whole_counts_keep_the_total_and_stay_within_1():
    counts = np.random.default_rng(0).uniform(0, 3, (7, 5, 4))
    whole = whole_counts(counts)
    assert whole.dtype == np.int64
    assert whole.sum() == round(counts.sum())
    assert np.max(np.abs(whole - counts)) < 1
    assert whole.min() >= 0


def test_what_cannot_be_made_up_is_refused():
    with pytest.raises(WorkloadError, match="not in the workload"):
        rehearse(PLAN, BY_SEX, ("sex", "age", "one"), cv_limit=0.2)
    with pytest.raises(WorkloadError, match="no attribute 'region'"):
        rehearse(PLAN, ExpectedCounts(("region",), (("x",),), (1.0,)), (), cv_limit=0.2)
    large = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": MAX_CELLS + 1}), 1)
    plan = plan_tables(large, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    with pytest.raises(ReleaseError, match="has 100,001 cells"):
        rehearse(plan, ExpectedCounts.of_total(10), ("a",), cv_limit=0.2)
