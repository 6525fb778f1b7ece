"""The objectives on the Plan page, their options, and the other pages with each kind of them."""

import pytest

import rpexplore as rp
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.workload.targets import Target
from tests.pages.conftest import VIEWS, choose_objective


@pytest.fixture
def with_required(small):
    """One required target, and a target for every other table."""
    tables = small.workload.tables
    wanted = [Target("30", required=table == tables[-1]) for table in tables]
    return small.with_settings(
        TableSetting(table, target=target) for table, target in zip(tables, wanted, strict=True)
    )


@pytest.mark.nightly
def test_every_objective_gives_a_plan_with_the_options_that_were_chosen(app, with_required):
    session = app("plan", with_required)
    for objective, loss in (
        ("max", rp.MaxVariance()),
        ("max relative to target", rp.MaxVariance("target")),
        ("required", rp.SumWithinTargets()),
        ("bounded", rp.SumWithBoundedMax()),
        ("p-norm", rp.PNorm()),
        ("sum", rp.SumOfVariances()),
    ):
        choose_objective(session, objective)
        assert session.scenario.loss == loss
        assert not session.error
        assert session.planned.loss == loss
    session.selectbox(key="weighting").set_value("cells").run()
    choose_objective(session, "required")
    assert session.scenario.loss == rp.SumWithinTargets("cells")
    choose_objective(session, "bounded")
    assert session.scenario.loss == rp.SumWithBoundedMax("cells")
    session.text_input(key="sum_with_bounded_max slack").set_value("2").run()
    assert session.scenario.loss == rp.SumWithBoundedMax("cells", 0.02)
    near = session.planned.largest_standard_errors.max()
    session.text_input(key="sum_with_bounded_max slack").set_value("60").run()
    assert session.planned.largest_standard_errors.max() > near


@pytest.mark.nightly
@pytest.mark.parametrize(
    "loss",
    [rp.SumWithinTargets(), rp.PNorm(3.0)],
    ids=lambda loss: loss.kind,
)
def test_every_page_is_drawn(app, with_required, loss):
    session = app("workload", with_required.replaced(loss=loss))
    for page in session.pages():
        assert not session.error, page


def test_trade_offs_of_an_objective_that_depends_on_the_budget(app, with_required):
    session = app("tradeoffs", with_required.replaced(loss=rp.SumWithinTargets()))
    for view in VIEWS["tradeoffs"][1:]:
        session.show("tradeoffs", view)
        assert not session.error, view
        assert "differs from budget to budget" in " ".join(session.texts("caption"))
