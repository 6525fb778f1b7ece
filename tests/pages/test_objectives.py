"""The objectives on the Plan page, their options, and the other pages with each kind of them."""

import pytest

import rpexplore as rp
from rpexplore.scenarios.workload_request import TableSetting
from rpexplore.workload.targets import Target


def plain(texts):
    return " ".join(texts).replace("\\", "")


@pytest.fixture
def with_required(small):
    """One required target, and a target for every other table."""
    tables = small.workload.tables
    wanted = [Target("30", required=table == tables[-1]) for table in tables]
    return small.with_settings(
        TableSetting(table, target=target) for table, target in zip(tables, wanted, strict=True)
    )


def test_every_objective_gives_a_plan(app, with_required):
    session = app("plan", with_required)
    for objective, loss in (
        ("max", rp.MaxVariance()),
        ("max relative to target", rp.MaxVariance("target")),
        ("required", rp.SumWithinTargets()),
        ("bounded", rp.SumWithBoundedMax()),
        ("p-norm", rp.PNorm()),
        ("sum", rp.SumOfVariances()),
    ):
        session.radio(key="objective").set_value(objective).run()
        assert session.scenario.loss == loss
        assert not session.error
        assert session.planned.loss == loss


def test_how_tables_count_is_kept_from_one_objective_to_the_next(app, with_required):
    session = app("plan", with_required)
    session.selectbox(key="weighting").set_value("cells").run()
    session.radio(key="objective").set_value("required").run()
    assert session.scenario.loss == rp.SumWithinTargets("cells")
    session.radio(key="objective").set_value("bounded").run()
    assert session.scenario.loss == rp.SumWithBoundedMax("cells")


def test_the_bound_of_the_largest_error(app, small):
    session = app("plan", small)
    session.radio(key="objective").set_value("bounded").run()
    session.number_input(key="sum_with_bounded_max slack").set_value(2.0).run()
    assert session.scenario.loss == rp.SumWithBoundedMax("equal", 0.02)
    near = session.planned.worst_standard_errors.max()
    session.number_input(key="sum_with_bounded_max slack").set_value(60.0).run()
    assert session.planned.worst_standard_errors.max() > near


def test_without_a_required_target_the_page_says_where_to_set_one(app, small):
    session = app("plan", small)
    session.radio(key="objective").set_value("required").run()
    assert "No target is required yet" in plain(session.texts("error"))
    assert session.radio(key="objective").value == "required"


@pytest.mark.parametrize("loss", [rp.SumWithinTargets(), rp.PNorm(3.0)], ids=lambda loss: loss.kind)
def test_every_page_is_drawn(app, with_required, loss):
    session = app("workload", with_required.replaced(loss=loss))
    for page in ("workload", "fairness", "tradeoffs", "scenarios", "release"):
        session.open(page)
        assert not session.exception, page
        assert not session.error, page


def test_trade_offs_of_an_objective_that_depends_on_the_budget(app, with_required):
    session = app("tradeoffs", with_required.replaced(loss=rp.SumWithinTargets()))
    for view in ("Targets", "Average vs worst case", "What if"):
        session.test.session_state["tradeoffs"] = view
        session.run()
        assert not session.exception, view
        assert not session.error, view
        assert "differs from budget to budget" in " ".join(session.texts("info"))
