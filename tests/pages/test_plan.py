"""The Plan page."""

from fractions import Fraction

import pytest

import rpexplore as rp
from pages.components.shared.session import escaped
from rpexplore.common.formatting import capitalised
from rpexplore.planning.loss_serialization import loss_choices
from rpexplore.planning.losses import base as losses
from rpexplore.scenarios.workload_request import TableSetting


def plain(texts):
    return " ".join(texts).replace("\\", "")


def told_of_targets(session):
    """The sentence about targets, with its escapes."""
    mark = "**Targets.** "
    (found,) = [text for text in session.texts("markdown") if mark in text]
    return found.partition(mark)[2]


def test_the_plan_is_there_at_once(app):
    session = app("plan")
    metrics = session.metrics()
    assert metrics["A cell of the median table"] == "±26 people"
    assert metrics["A cell of the worst table"] == "±30 people"
    # epsilon(rho = 0.1, delta = 1e-6) = 2.14194, rounded up
    assert metrics["Privacy"] == "ε = 2.15"
    assert "better by more than one part in a billion" in plain(session.texts("markdown"))
    assert "ρ-zCDP with ρ = 0.1 for one record" in plain(session.texts("markdown"))
    assert session.dataframe[-1].value["table"].tolist()[0] == "age × occupation"
    assert len(session.dataframe[-1].value) == 67


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        ("max", rp.MaxVariance()),
        ("sum", rp.SumOfVariances()),
    ],
)
def test_objective(app, small, objective, loss):
    session = app("plan", small)
    session.radio(key="objective").set_value(objective).run()
    assert session.scenario.loss == loss
    assert not session.error


def test_weighting(app, small):
    session = app("plan", small)
    session.selectbox(key="weighting").set_value("cells").run()
    assert session.scenario.loss == rp.SumOfVariances("cells")


def test_the_largest_error_is_smaller_when_asked_for(app, small):
    session = app("plan", small)
    before = session.planned.standard_errors.max()
    session.radio(key="objective").set_value("max").run()
    assert session.planned.standard_errors.max() < before


def test_aiming_at_targets_without_targets_says_where_to_set_them(app, small):
    session = app("plan", small)
    session.radio(key="objective").set_value("max relative to target").run()
    assert "has no target" in plain(session.texts("error"))
    assert "or here for all at once" in plain(session.texts("error"))
    assert not session.metrics()
    session.press("Set this target")
    assert "Type a target" in plain(session.texts("error"))
    session.number_input(key="target for all").set_value(0.0)
    session.press("Set this target")
    assert "must be a positive number" in plain(session.texts("error"))
    session.number_input(key="target for all").set_value(20.0)
    session.press("Set this target")
    assert session.scenario.workload.targets.tolist() == [20.0] * 7
    assert session.metrics()
    session.radio(key="objective").set_value("sum").run()
    assert not session.error


def test_targets_met_are_counted(app, small):
    scenario = small.with_settings([TableSetting(("age",), 1.0, 1e4), TableSetting((), 1.0, 0.01)])
    session = app("plan", scenario)
    assert told_of_targets(session) == escaped(
        "1 of 2 targets is met. Furthest off is (total): σ = 4.74 for a target of 0.01."
    )
    rows = session.dataframe[-1].value.set_index("table")
    met, short, none = rows.loc[["age", "(total)", "sex"], "outcome"]
    assert met.startswith("met: σ = ")
    assert (short, none) == ("short by 4.7", "")
    session.text_input(key="typed budget").set_value("100000").run()
    assert told_of_targets(session) == "Both targets are met\\."


def test_targets_and_musts_are_told_as_typed(app, small):
    settings = [
        TableSetting(("age",), target="±0.1"),
        TableSetting((), target="1 % of 9999 required"),
    ]
    session = app("plan", small.with_settings(settings))
    told = told_of_targets(session).replace("\\", "")
    assert told.startswith("1 of 2 targets is met; required: 1 of 1. Furthest off is age: ±")
    assert told.endswith(" for a target of ±0.1 at 95 %.")
    rows = session.dataframe[-1].value.set_index("table")
    assert rows.loc["age", ["wanted", "required"]].tolist() == ["±0.1 at 95 %", "in proportion"]
    assert rows.loc["(total)", ["wanted", "required"]].tolist() == ["1 % of 9999", "required"]


def test_a_single_target_is_told_in_grammar(app, small):
    session = app("plan", small.with_settings([TableSetting(("age",), target=1.0)]))
    assert told_of_targets(session).startswith("The one target is not met")
    assert any("budget that meets the target with" in text for text in session.texts("markdown"))
    session.button(key="use smallest budget").click().run()
    assert told_of_targets(session).startswith("The one target is met")


def test_objectives_and_weightings_are_called_what_they_are_elsewhere(app, small):
    session = app("plan", small)
    titles = [capitalised(loss.objective) for loss in loss_choices().values()]
    assert session.radio(key="objective").options == titles
    weightings = [losses.describe_weighting(weighting) for weighting in losses.WEIGHTINGS]
    assert session.selectbox(key="weighting").options == weightings


# ---- the budget


def test_budget_is_typed_exactly(app, small):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("1/3").run()
    assert session.scenario.budget.rho == Fraction(1, 3)
    assert session.text_input(key="typed budget").value == "1/3"


def test_budget_slides(app, small):
    session = app("plan", small)
    session.select_slider(key="slid budget").set_value("2").run()
    assert session.scenario.budget == rp.Budget(rho=2)
    assert session.text_input(key="typed budget").value == "2"
    assert "more private" in session.select_slider(key="slid budget").label


def test_looking_at_another_unit_changes_nothing(app, small):
    session = app("plan", small)
    session.segmented_control(key="unit").set_value("epsilon").run()
    assert session.scenario == small
    assert session.text_input(key="typed budget").value == "2.141"
    assert session.text_input(key="delta").value == "1e-6"


def test_budget_as_epsilon_and_delta(app, small):
    session = app("plan", small)
    session.segmented_control(key="unit").set_value("epsilon").run()
    session.text_input(key="typed budget").set_value("1").run()
    session.text_input(key="delta").set_value("1e-9").run()
    assert session.scenario.budget == rp.Budget(epsilon=1, delta="1e-9")
    assert "at δ = 1e-6" in plain(session.texts("caption"))


def test_the_headline_shows_what_was_asked_for_first(app, small):
    session = app("plan", small.replaced(budget=rp.Budget(epsilon=1, delta="1e-5")))
    assert session.metrics()["Privacy"] == "ε = 1"
    words = plain(session.texts("caption"))
    assert "at δ = 1e-5 (as stated); ε = " in words
    assert not session.info


def test_budgets_that_promise_little_are_noted(app, small):
    session = app("plan", small.replaced(budget=rp.Budget(epsilon=20, delta="0.001")))
    assert "ε above 10 promises little" in session.info[0].value
    assert "δ should be far below one in the number of records" in session.info[1].value
    assert not session.error


def test_budget_as_mu(app, small):
    session = app("plan", small)
    session.segmented_control(key="unit").set_value("mu").run()
    session.text_input(key="typed budget").set_value("0.5").run()
    assert session.scenario.budget == rp.Budget(mu="0.5")


@pytest.mark.parametrize("value", ["0", "-1", "much", "", "1e500"])
def test_an_unusable_budget_leaves_the_old_one(app, small, value):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value(value).run()
    assert len(session.error) == 1
    assert session.scenario == small
    assert session.text_input(key="typed budget").value == "0.1"
    assert not session.run().error


def test_protecting_people_costs_accuracy(app, small):
    session = app("plan", small)
    before = session.planned.standard_errors
    session.radio(key="protected").set_value("A person").run()
    session.number_input(key="records per person").set_value(3).run()
    assert session.scenario.budget == rp.Budget(rho="0.1", max_records_per_person=3)
    after = session.planned.standard_errors
    assert after / before == pytest.approx([3.0] * 7, rel=1e-9)
    assert "one person with at most 3 records" in plain(session.texts("caption"))
    session.radio(key="protected").set_value("A record").run()
    assert session.scenario == small


# ---- chart


def test_the_caption_speaks_of_boxes_only_where_there_are_some(app, small):
    session = app("plan", small)
    assert "Boxes hold" in plain(session.texts("caption"))
    session.radio(key="objective").set_value("max").run()
    session.open("workload").number_input(key="order").set_value(0).run()
    assert "Boxes hold" not in plain(session.open("plan").texts("caption"))


# ---- tables and files


def test_tables_are_filtered(app, small):
    session = app("plan", small)
    session.multiselect(key="tables containing").set_value(["sex"]).run()
    assert len(session.dataframe[-1].value) == 3
    session.multiselect(key="tables containing").set_value(["age", "sex", "region"]).run()
    assert "No table" in session.info[0].value


def test_plan_and_tables_can_be_downloaded(app, small):
    labels = [button.label for button in app("plan", small).download_button]
    assert labels == [
        "Download standard_errors_by_order.csv",
        "Download plan.json",
        "Download tables.csv",
    ]


def test_the_plan_is_made_once(app, small):
    session = app("plan", small)
    planned = session.planned
    session.open("workload").open("release").open("plan")
    assert session.planned is planned


def test_many_tables_do_not_travel_with_the_chart(app, wide):
    session = app("plan", wide)
    assert not session.error
    (chart,) = session.get("plotly_chart")
    assert len(chart.proto.spec) < 50_000


def test_the_smallest_budget_meets_all_targets(app, small):
    settings = [TableSetting(("age", "sex"), target=4.0), TableSetting(("region",), target=3.0)]
    session = app("plan", small.with_settings(settings))
    assert any("0 of 2 targets are met" in text for text in session.texts("markdown"))
    session.button(key="use smallest budget").click().run()
    assert any("Both targets are met" in text for text in session.texts("markdown"))
    budget, planned = session.scenario.budget, session.planned
    errors = [float(planned.variance(table)) ** 0.5 for table in (("age", "sex"), ("region",))]
    assert errors[0] <= 4
    assert errors[1] <= 3
    # And no smaller one does, but for the digits that people type.
    less = rp.plan(
        planned.workload,
        loss=planned.loss,
        budget=rp.Budget(rho=budget.rho * Fraction(9998, 10000)),
    )
    assert less.variance(("age", "sex")) > 16 or less.variance(("region",)) > 9
    session.press("Undo")
    assert session.scenario.budget == small.budget


def test_a_target_out_of_reach_says_so(app, small):
    session = app("plan", small.with_settings([TableSetting(("age",), target=1e-60)]))
    assert not session.exception
    (told,) = (text for text in session.texts("info") if "choose a larger standard error" in text)
    assert plain([told]).startswith("The target 1e-60 of age would take")
