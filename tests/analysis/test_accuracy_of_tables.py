"""What schemes are compared on, and which of them a plan is."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import fairness
from rpexplore.analysis import fairness as attributes
from rpexplore.analysis.measures import SCHEMES, Accuracy, scheme_of, unweighted
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.analysis.bases import BUDGET, MARGINALS, errors_at

TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2}), 2)
GROUP, SINGLE = GroupSetting((), weight=4.0, target=3.0), TableSetting(("age",), 2.0, 5.0)


@pytest.mark.parametrize(
    "request_", [WorkloadRequest(groups=(GROUP,)), WorkloadRequest(settings=(SINGLE,))]
)
def test_plain_tables_have_no_weight_however_it_was_given(request_):
    weighted = request_.workload(TABLES.domain)
    assert np.any(weighted.weights != 1)
    bare = unweighted(weighted)
    assert np.all(bare.weights == 1)
    assert np.isnan(bare.targets).all()
    assert bare.has_tables_of(weighted)
    for loss in SCHEMES.values():
        assert scheme_of(loss, weighted) == ""


def test_plain_tables_stay_the_same_object():
    assert unweighted(TABLES) is TABLES  # so that what was solved for them is found again


def test_the_scheme_of_a_plan():
    assert [scheme_of(loss, TABLES) for loss in SCHEMES.values()] == list(SCHEMES)
    assert scheme_of(rp.MaxVariance(relative_to="target"), TABLES) == ""


# ---- tables whose cells are not equally accurate


@pytest.mark.parametrize("cell", ["mean", "largest", "smallest"])
def test_a_forecast_is_seen_at_any_cell(unequal_plan, dense_errors, unequal_optimum, cell):
    for accuracy in (
        Accuracy.of_plan("this", unequal_plan),
        Accuracy.of_optimum("this", unequal_optimum, BUDGET),
    ):
        shown = accuracy.at_cell(cell)
        assert shown.cell == cell
        assert shown.cells_differ
        np.testing.assert_allclose(shown.standard_errors, errors_at(dense_errors, cell), rtol=1e-6)
        # and back again, from wherever one looks
        np.testing.assert_allclose(
            shown.at_cell("mean").standard_errors, accuracy.standard_errors, rtol=1e-12
        )
        assert fairness.measures_of(shown)["largest"] == pytest.approx(
            errors_at(dense_errors, cell).max(), rel=1e-6
        )
        frame = attributes.by_attribute(shown).set_index("attribute")
        age = [
            position
            for position, table in enumerate(unequal_plan.workload.tables)
            if "age" in table
        ]
        assert frame.loc["age", "largest"] == pytest.approx(
            errors_at(dense_errors, cell)[age].max(), rel=1e-6
        )


def test_words_say_which_cell_is_seen(unequal_plan):
    accuracy = Accuracy.of_plan("this", unequal_plan)
    assert "the root mean square" in accuracy.cell_text
    assert "its least accurate cell" in accuracy.at_cell("largest").cell_text
    assert "its most accurate cell" in accuracy.at_cell("smallest").cell_text
    alike = Accuracy.of_plan("this", MARGINALS.table_plan())
    assert not alike.cells_differ
    assert alike.cell_text == ""
    np.testing.assert_array_equal(alike.at_cell("largest").standard_errors, alike.standard_errors)


def test_every_cell_of_a_table(unequal_plan, dense_errors):
    accuracy = Accuracy.of_plan("this", unequal_plan)
    for table, errors in enumerate(dense_errors):
        result = accuracy.cell_standard_errors(table)
        np.testing.assert_allclose(result.ravel(), errors, rtol=1e-6)
