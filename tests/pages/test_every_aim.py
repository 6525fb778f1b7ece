"""All pages that show a plan, with every aim there is."""

import pytest

import rpexplore as rp
from rpexplore.scenarios.workload_request import TableSetting
from rpexplore.workload.targets import Target

AIMS = [
    rp.SumWithinTargets(),
    rp.MaxWithinTargets(),
    rp.SumWithBoundedMax(),
    rp.PNorm(3.0),
]


@pytest.fixture
def with_required(small):
    """A target for every table, one of them a must."""
    tables = small.workload.tables
    return small.with_settings(
        TableSetting(table, target=Target("30", required=table == tables[-1])) for table in tables
    )


@pytest.mark.parametrize("loss", AIMS, ids=lambda loss: type(loss).__name__)
def test_every_page_stands(app, with_required, loss):
    session = app("workload", with_required.replaced(loss=loss))
    for page in ("workload", "fairness", "tradeoffs", "scenarios", "release"):
        session.open(page)
        assert not session.exception, page
        assert not session.error, page


def test_trade_offs_of_an_aim_that_depends_on_the_budget(app, with_required):
    session = app("tradeoffs", with_required.replaced(loss=rp.SumWithinTargets()))
    for view in ("Targets", "Average vs worst case", "What if"):
        session.test.session_state["tradeoffs"] = view
        session.run()
        assert not session.exception, view
        assert not session.error, view
        assert "differs from budget to budget" in " ".join(session.texts("info"))
