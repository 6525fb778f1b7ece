"""A loss nobody thought of: with its class and a line in the registry it is known everywhere."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.losses.losses import Loss, NumberOption
from rpexplore.planning.serialization import (
    help_of_options,
    loss_from_text,
    option_forms,
    options_of_loss,
)
from rpexplore.planning.solvers.solution import minimise_sum
from rpexplore.planning.solving import LOSSES
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from tests.pages.conftest import choose_objective


@dataclass(frozen=True)
class SmallTablesFirst(Loss):
    """Σ Var / cells^power."""

    power: float = 1.0

    kind: ClassVar[str] = "small_tables_first"
    option: ClassVar[str] = "small-first"
    number: ClassVar[NumberOption | None] = NumberOption("power", "Power of cells", 0.0, 9.0, 1.0)

    @property
    def objective(self):
        return "favour small tables"

    @property
    def description(self):
        return "the sum of variances over cells"

    def table_weights(self, workload):
        return workload.cells**-self.power

    def value(self, variances, workload):
        return float(self.table_weights(workload) @ variances)

    def minorant(self, dual_weights, workload):
        return float(np.min(self.table_weights(workload) / dual_weights)), 0.0


def solved(problem):
    solution = minimise_sum(problem.closure, problem.weights, problem.privacy_cost)
    return replace(solution, dual_weights=problem.weights)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(LOSSES, SmallTablesFirst, solved)


def test_its_plan_is_proven_and_read_back_from_its_file(small):
    plan = small.replaced(loss=SmallTablesFirst(2.0)).table_plan()
    assert plan.certificate.gap < 1e-9
    verification = rp.verify(plan)
    assert verification.holds
    assert "the sum of variances over cells is" in str(verification)
    again = TablePlan.parse(plan.text)
    assert again.loss == SmallTablesFirst(2.0)
    assert again.text == plan.text


def test_the_command_line_writes_and_reads_it():
    assert options_of_loss(SmallTablesFirst(2.0)) == [("loss", "small-first:2.0")]
    assert loss_from_text("small-first:2") == SmallTablesFirst(2.0)
    assert "small-first:NUMBER" in option_forms()
    assert (
        "small-first:1.0: favour small tables. The number: power of cells."
        in help_of_options()["loss"]
    )


def test_scenarios_keep_it(small):
    scenario = small.replaced(loss=SmallTablesFirst(2.0))
    assert Scenario.from_json(scenario.to_json()).loss == SmallTablesFirst(2.0)


def test_the_page_offers_it_and_its_number(app, small):
    session = app("plan", small)
    assert "Favour small tables" in session.selectbox(key="objective").options
    choose_objective(session, "small-first")
    assert session.scenario.loss == SmallTablesFirst()
    session.text_input(key="small_tables_first power").set_value("3").run()
    assert not session.error
    assert session.planned.loss == SmallTablesFirst(3.0)
