"""Targets on the Plan page: how many are met, the smallest budget, and binding targets."""

from fractions import Fraction

import pytest

import rpexplore as rp
from pages.components.shared.session import escaped
from rpexplore.analysis.binding_targets import budget_explanation
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.workload.targets import Target
from tests.pages.conftest import choose_objective, plain


@pytest.fixture
def demanding(small):
    """A required target that the current budget cannot meet, for plans that meet it first."""
    required = Target("0.5", "margin", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    return changed.replaced(loss=rp.SumWithinTargets())


def test_required_targets_out_of_reach_come_with_a_budget_that_is_enough(app, demanding):
    session = app("plan", demanding)
    assert "cannot all be met at this budget" in plain(session.texts("error"))
    shown = plain(session.texts("markdown"))
    assert "The required target of sex × region takes ρ =" in shown
    assert "With 10 % more" in shown
    session.button(key="use advised budget").click().run()
    assert not session.error
    planned = session.planned
    required = planned.workload.required
    assert (
        planned.largest_standard_errors[required] <= planned.workload.targets[required] * 1.000001
    ).all()
    assert session.button(key="use advised budget").disabled


@pytest.mark.nightly
def test_the_budget_for_all_targets(app, small):
    tables = small.workload.tables
    session = app("plan", small)
    assert "use advised budget" not in [button.key for button in session.button]
    changed = small.with_settings([TableSetting(tables[-1], target=3.0)])
    session = app("plan", changed)
    assert "Some tables have a target and others have none" in plain(session.texts("markdown"))
    wanted = [TableSetting(table, target=20.0) for table in tables]
    session = app("plan", small.with_settings(wanted))
    shown = plain(session.texts("markdown"))
    assert f"The {len(tables)} targets take ρ =" in shown
    session.button(key="use advised budget").click().run()
    assert not session.error


def test_behind_a_pilot_the_budget_for_targets_has_the_epsilon_that_rho_alone_proves(app, small):
    required = Target("3", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    budget = rp.Budget(epsilon=1, delta="1e-6")
    session = app("plan", changed.replaced(budget=budget, pilot=Fraction(1, 50), then="median"))
    minimum = rp.minimum_budget(changed.workload, required_only=True)
    enough = budget_explanation(minimum, budget, required_only=True, by_rho=True).enough
    assert enough.text in plain(session.texts("markdown"))


def test_where_the_objective_ignores_targets_the_panel_is_about_one_that_does_not(app, small):
    required = Target("3", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    session = app("plan", changed)
    assert "The current objective ignores targets" in plain(session.texts("markdown"))
    session.button(key="use advised budget").click().run()
    assert session.scenario.loss == rp.SumWithinTargets()
    assert "The one required target is met." in plain(session.texts("markdown"))


def test_required_targets_are_put_first_at_the_same_budget(app, small):
    error = app("plan", small).planned.largest_standard_errors[-1]
    required = Target(f"{0.95 * error:.3g}", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    session = app("plan", changed)
    assert "does not put required targets first" in targets_sentence(session)
    session.button(key="required first, targets").click().run()
    assert not session.exception
    assert session.scenario == changed.replaced(loss=rp.SumWithinTargets())
    assert "required first, targets" not in [button.key for button in session.button]
    (cost,) = (text for text in session.texts("markdown") if "Cost to the others" in text)
    assert "Compared with no target being required" in plain([cost])


def targets_sentence(session):
    """The sentence about targets, with its escapes."""
    mark = "**Targets.** "
    (text,) = [text for text in session.texts("markdown") if mark in text]
    return text.partition(mark)[2]


def test_without_targets_the_page_says_where_to_set_them(app, small):
    session = app("plan", small)
    choose_objective(session, "required")
    assert "No target is required yet" in plain(session.texts("error"))
    assert session.selectbox(key="objective").value == "required"
    choose_objective(session, "max relative to target")
    assert "has no target" in plain(session.texts("error"))
    assert "or here for all at once" in plain(session.texts("error"))
    assert not session.metrics()
    session.press("Set this target")
    assert "Type a target" in plain(session.texts("error"))
    session.text_input(key="target for all").set_value("0")
    session.press("Set this target")
    assert "must be a positive number" in plain(session.texts("error"))
    session.text_input(key="target for all").set_value("20")
    session.press("Set this target")
    assert session.scenario.workload.targets.tolist() == [20.0] * 7
    assert session.metrics()
    choose_objective(session, "sum")
    assert not session.error


def test_targets_met_are_counted(app, small):
    scenario = small.with_settings([TableSetting(("age",), 1.0, 1e4), TableSetting((), 1.0, 0.01)])
    session = app("plan", scenario)
    assert targets_sentence(session) == escaped(
        "1 of 2 targets is met. Furthest off is (total): σ = 4.74 for a target of σ = 0.01."
    )
    session.unfold("all tables")
    rows = session.dataframe[-1].value.set_index("item")
    met, short, none = rows.loc[["age", "(total)", "sex"], "outcome"]
    assert met.startswith("met: σ = ")
    assert (short, none) == ("short by 4.7", "")
    session.text_input(key="typed budget").set_value("100000").run()
    assert targets_sentence(session) == "Both targets are met\\."


def test_the_smallest_budget_meets_all_targets(app, small):
    settings = [TableSetting(("age", "sex"), target=4.0), TableSetting(("region",), target=3.0)]
    session = app("plan", small.with_settings(settings))
    assert any("0 of 2 targets are met" in text for text in session.texts("markdown"))
    session.button(key="use smallest budget").click().run()
    assert any("Both targets are met" in text for text in session.texts("markdown"))
    budget, planned = session.scenario.budget, session.planned
    errors = [planned.largest_variance(table) ** 0.5 for table in (("age", "sex"), ("region",))]
    assert errors[0] <= 4
    assert errors[1] <= 3
    # And no smaller one does, but for the digits that people type.
    less = plan_tables(
        planned.workload,
        loss=planned.loss,
        budget=rp.Budget(rho=budget.rho * Fraction(9998, 10000)),
    )
    assert less.largest_variance(("age", "sex")) > 16 or less.largest_variance(("region",)) > 9
    session.press("Undo")
    assert session.scenario.budget == small.budget


def test_a_target_out_of_reach_says_so(app, small):
    session = app("plan", small.with_settings([TableSetting(("age",), target=1e-60)]))
    assert not session.exception
    (message,) = (
        text for text in session.texts("info") if "choose a larger standard error" in text
    )
    assert plain([message]).startswith("The target 1e-60 of age would take")
