"""Scenarios side by side, against the plans themselves."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import scenario_comparison, shared_tables
from rpexplore.analysis import scenario_comparison as comparison
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.measures import VARIANCE
from rpexplore.analysis.published_lines import forecast_of_scenario
from rpexplore.analysis.shared_tables import Contender, common_word
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.analysis.bases import MARGINALS, SCENARIO

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
PLAIN = Scenario(DOMAIN, WorkloadRequest(order=2), name="plain", record_noun="people")


def contender(scenario, plan=None):
    """A scenario with its plan and the forecast of its tables."""
    plan, public = plan or scenario.table_plan(), scenario.public_tables
    drawn = public and DrawnCounts.of(plan.workload, public)
    return Contender(scenario, plan, drawn and forecast_of_scenario(plan, drawn, scenario))


def differing(result):
    return set(result.index[result["differs"]])


def test_what_differs_is_marked_and_nothing_else():
    changed = PLAIN.replaced(name="more", budget=rp.Budget(rho=1), loss=rp.MaxVariance())
    assert differing(comparison.inputs([PLAIN, changed])) == {"Objective", "Privacy budget"}
    assert differing(comparison.inputs([PLAIN, PLAIN.replaced(name="same")])) == set()


@pytest.mark.parametrize(
    ("scenario", "rows"),
    [
        (PLAIN.replaced(request=WorkloadRequest(order=1)), {"Tables", "Number of tables"}),
        (PLAIN.with_settings([TableSetting(("age",), weight=3)]), {"Weight"}),
        (PLAIN.with_settings([TableSetting(("age",), target=5)]), {"Targets"}),
        (PLAIN.replaced(budget=rp.Budget(rho="0.1", max_records_per_person=2)), {"Privacy unit"}),
        (PLAIN.replaced(loss=rp.SumOfVariances("cells")), {"Objective"}),
        (PLAIN.replaced(record_noun="households"), {"Counts of"}),
        (PLAIN.replaced(budget=rp.Budget(rho="0.10000000001")), {"Privacy budget"}),
    ],
)
def test_every_input_is_compared(scenario, rows):
    frame = comparison.inputs([PLAIN, scenario.replaced(name="other")])
    assert differing(frame) == rows


def test_a_row_has_the_words_of_every_scenario_in_order():
    sentence = comparison.inputs([PLAIN, PLAIN.replaced(name="b", budget=rp.Budget(rho=1))])
    assert sentence.loc["Privacy budget", [0, 1]].tolist() == ["ρ = 0.1", "ρ = 1"]


def test_outcomes_are_those_of_the_plans():
    other = PLAIN.replaced(name="four times", budget=rp.Budget(rho="0.4"))
    result = comparison.outcomes([PLAIN, other], [PLAIN.table_plan(), other.table_plan()])
    margin = 1.959964 * np.median(PLAIN.table_plan().standard_errors)
    margins = result.loc["Median table, 95 % margin of error"]
    assert margins[0] == f"±{margin:.3g} people"
    assert "Largest ÷ smallest σ of a cell" not in differing(result)  # the budget scales all alike
    assert result.loc["Privacy, ρ", [0, 1]].tolist() == ["0.1", "0.4"]


def test_tables_are_matched_by_their_attributes():
    reordered = rp.Domain.from_sizes({"region": 5, "age": 10})
    other = Scenario(reordered, WorkloadRequest(order=2), budget=rp.Budget(rho="0.4"))
    left, right = PLAIN.table_plan(), other.table_plan()
    frame = shared_tables.table_differences(contender(PLAIN), contender(other))
    assert set(frame["table"]) == {"(total)", "age", "region", "age × region"}
    for row in frame.to_dict("records"):
        table = () if row["table"] == "(total)" else tuple(row["table"].split(" × "))
        assert row["left"] == pytest.approx(np.sqrt(left.largest_variance(table)))
        assert row["right"] == pytest.approx(np.sqrt(right.largest_variance(table)))
        assert row["change"] == pytest.approx(row["right"] / row["left"] - 1)
    moved = np.abs(np.log(frame["right"] / frame["left"]))
    assert np.all(np.diff(moved) <= 1e-12)


def test_differences_in_words():
    left = contender(PLAIN)
    same = shared_tables.table_differences(left, left)
    assert "7 tables in common, and all are equally accurate" in shared_tables.describe_differences(
        same, "a", "b"
    )
    right = contender(PLAIN.replaced(budget=rp.Budget(rho="0.4")))
    frame = shared_tables.table_differences(left, right)
    sentence = shared_tables.describe_differences(frame, "a", "b")
    assert "0 tables have a larger standard error and 7 a smaller one" in sentence
    assert "(median −50 %)" in sentence
    other = Scenario(rp.Domain.from_sizes({"x": 3}), WorkloadRequest("listed", listed=(("x",),)))
    none = shared_tables.table_differences(left, contender(other))
    assert shared_tables.describe_differences(none, "a", "b").endswith("no table in common.")


def test_a_scenario_in_a_line():
    assert comparison.summary(PLAIN) == (
        "7 tables; minimise the average error, equal weight per table; "
        "ρ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.1"
    )


def test_what_the_words_do_not_tell_apart_is_marked_all_the_same():
    weighted = [
        PLAIN.with_settings([TableSetting((name,), weight=3)]).replaced(name=name)
        for name in ("age", "sex")
    ]
    result = comparison.inputs(weighted)
    assert result.loc["Weight", [0, 1]].nunique() == 1
    assert differing(result) == {"Weight"}
    with_targets = [
        PLAIN.with_settings([TableSetting((name,), target=3)]).replaced(name=name)
        for name in ("age", "sex")
    ]
    assert differing(comparison.inputs(with_targets)) == {"Targets"}
    other = rp.Domain.from_sizes({"age": 5, "sex": 2, "region": 10})
    assert differing(comparison.inputs([PLAIN, PLAIN.replaced(domain=other)])) == {"Attributes"}


def test_scenarios_are_told_apart_whatever_their_names():
    names = ["differs", "input", "outcome", "words", "0"]
    scenarios = [PLAIN.replaced(name=name) for name in names]
    result = comparison.inputs(scenarios)
    assert result.shape[1] == len(names) + 1  # differs
    assert differing(result) == set()


def test_the_noun_is_common_or_neutral():
    assert common_word(["people", "people"]) == "people"
    assert common_word(["people", "households"]) == "records"


def test_targets_differ_by_what_was_typed_and_by_required():
    def with_target(target):
        return PLAIN.with_settings([TableSetting(("age",), target=target)])

    side = comparison.inputs([with_target("20"), with_target("20 required"), with_target("±20")])
    assert differing(side) == {"Targets"}
    sentence = side.loc["Targets", [0, 1]].tolist()
    assert sentence[:2] == ["1 table, σ = 20", "1 table, σ = 20, 1 required"]
    assert differing(comparison.inputs([with_target("20"), with_target(20.0)])) == set()


# ---- tables whose cells are not equally accurate


def test_scenarios_that_ask_otherwise_differ_in_that(unequal_plan):
    result = comparison.inputs([MARGINALS, SCENARIO])
    row = result.loc["Aggregation", [0, 1]].tolist()
    assert row == ["single values", "age: cumulative; region: hierarchy; income: ranges"]
    assert set(result.index[result["differs"]]) == {"Aggregation"}
    assert "Aggregation" not in comparison.inputs([MARGINALS, MARGINALS]).index
    sentence = comparison.outcomes([MARGINALS, SCENARIO], [MARGINALS.table_plan(), unequal_plan])
    assert sentence.index[:2].tolist() == [
        "Median table (root mean square), 95 % margin of error",
        "Least accurate cell, 95 % margin of error",
    ]


def test_only_tables_asked_alike_are_compared(unequal_plan):
    unequal = contender(SCENARIO, unequal_plan)
    frame = shared_tables.table_differences(contender(MARGINALS), unequal)
    assert sorted(frame["table"]) == ["(total)", "sex"]
    more = SCENARIO.replaced(budget=rp.Budget(rho="0.8", max_records_per_person=2))
    frame = shared_tables.table_differences(unequal, contender(more))
    assert len(frame) == len(unequal_plan.workload)
    np.testing.assert_allclose(frame["change"], -0.5, rtol=1e-6)
    np.testing.assert_allclose(frame["right_largest"] / frame["left_largest"], 0.5, rtol=1e-6)
    sentence = shared_tables.describe_differences(frame, "a", "b")
    assert "smaller one (median −50 %)" in sentence
    assert "a larger root mean square error" in sentence


# ---- over the tables that all have

KNOWN = PLAIN.replaced(expected=ExpectedCounts.of_total(1000))


def test_outcomes_are_those_of_the_shared_tables():
    ones = KNOWN.replaced(name="ones", request=WorkloadRequest(order=1), loss=rp.MaxVariance())
    both = [contender(KNOWN.with_settings([TableSetting(("age",), target=1)])), contender(ones)]
    frame = shared_tables.outcomes(both).set_index("scenario")
    for name, one in zip(("plain", "ones"), both, strict=True):
        errors = one.plan.standard_errors[:4]  # the total, age, sex and region in both
        people = one.forecast.tables(np.arange(4))["people_median"]
        assert frame.loc[name, "people_median"] == pytest.approx(people.mean(), abs=0.05)
        assert frame.loc[name, "people_low"] < people.mean() < frame.loc[name, "people_high"]
        assert frame.loc[name, "median_margin"] == pytest.approx(1.959964 * np.median(errors))
        assert frame.loc[name, "largest_margin"] == pytest.approx(1.959964 * errors.max())
    assert frame[["targets", "missed", "own"]].to_numpy().tolist() == [[1, 1, 3], [0, 0, 0]]
    assert frame["budget"].tolist() == ["ρ = 0.1", "ρ = 0.1"]
    other = KNOWN.replaced(name="other", budget=rp.Budget(mu="0.5"))  # ρ = μ²/2
    mixed = shared_tables.outcomes([both[0], contender(other)])
    assert mixed["budget"].tolist() == ["ρ = 0.1", "ρ = 0.125"]
    own = shared_tables.list_own_tables(both)
    assert own["table"].tolist() == ["age × sex", "age × region", "sex × region"]
    assert shared_tables.describe_outcomes(both)[-1] == (
        "Targets: “plain” misses 1 of 1; “ones” has none."
    )


def test_who_is_better_where_in_words():
    small, large = KNOWN.replaced(budget=rp.Budget(rho="0.0002")), KNOWN.replaced(name="large")
    first, second = shared_tables.describe_outcomes([contender(small), contender(large)])
    assert first.startswith("Most people are in good cells under “large”: ")
    assert first.endswith(" in “plain”.")
    assert second == "“large” is the most accurate at every number of attributes (median)."
    cells = PLAIN.replaced(name="cells", loss=rp.SumOfVariances("cells"))
    (where,) = shared_tables.describe_outcomes([contender(PLAIN), contender(cells)])
    assert where == (
        "The most accurate (median): “plain” for the total and tables of 1 attribute; “cells” for "
        "tables of 2 attributes."
    )
    (alike,) = shared_tables.describe_outcomes(
        [contender(PLAIN), contender(PLAIN.replaced(name="same"))]
    )
    assert alike == "The median accuracy is the same in all of them."
    other = Scenario(rp.Domain.from_sizes({"x": 3}), WorkloadRequest("listed", listed=(("x",),)))
    none = [contender(PLAIN), contender(other)]
    assert shared_tables.outcomes(none).empty
    assert shared_tables.describe_outcomes(none) == ["These scenarios have no table in common."]


def test_differences_in_other_measures_with_shares_and_targets():
    left = contender(KNOWN.with_settings([TableSetting(("age",), target="±1")]))
    right = contender(KNOWN.replaced(budget=rp.Budget(rho="0.4")))
    frame = shared_tables.table_differences(left, right, VARIANCE).set_index("table")
    assert frame["change"].tolist() == pytest.approx([-0.75] * 7)
    assert frame.loc["age", "left"] == pytest.approx(left.plan.largest_variance(("age",)))
    assert frame.loc["age", "left_target"].startswith("short by ")
    assert "right_target" not in frame
    assert frame.loc["(total)", "left_people"] == "100 %"


def test_areas_stand_side_by_side():
    tree = rp.AreaTree.from_columns({"county": [*"NNS"], "town": [*"121"]})
    study = AreaStudy.of("home.json", rp.AreaCodebook("home", tree, DOMAIN))
    same = PLAIN.replaced(areas=study)
    # A weight, which no text tells, no tables of counties, and four times the budget.
    other = PLAIN.replaced(
        areas=study.with_weights(
            {("town", ("age",)): 3} | {("county", table): None for table in study.rows}
        ),
        budget=rp.Budget(rho="0.4"),
    )
    inputs = scenario_comparison.area_inputs([same, other])
    assert inputs.loc["Areas", [0, 1]].tolist() == ["6 on 3 levels, home.json"] * 2
    assert inputs.loc["Tables", [0, 1]].tolist() == [
        "8 tables on every level",
        "all 8, county 0, town 8",
    ]
    assert differing(inputs) == {"Tables", "Tables in all areas", "Privacy budget"}
    assert comparison.summary(same).startswith(
        f"{len(PLAIN.workload)} tables and tables in 6 areas; "
    )
    plans = [
        plan_areas(scenario.areas.workload, loss=scenario.areas.loss, budget=scenario.budget)
        for scenario in (same, other)
    ]
    other = other.replaced(expected=rp.ExpectedCounts.of_total(900))
    outcomes = [
        scenario_comparison.AreaOutcome.of(plan, scenario)
        for plan, scenario in zip(plans, (same, other), strict=True)
    ]
    texts = scenario_comparison.area_outcomes([same, other], outcomes)
    losses = [rounded(plan.loss_value, 4) for plan in plans]
    assert texts.loc["Objective, the less the better", [0, 1]].tolist() == losses
    assert texts.loc["Privacy, ρ", [0, 1]].tolist() == ["0.1", "0.4"]
    assert texts.loc["county, least accurate area", 1] == "not asked for"
    tables = plans[1].accuracy().query("level == 'town'")
    margin = rounded(1.959964 * tables["largest_standard_error"].max(), 3)
    assert texts.loc["town, least accurate area", 1] == f"±{margin} people"
    made = rp.AreaForecast(plans[1], expected=900).by_level().set_index("level")
    people = texts.loc["town, people in good cells"]
    assert people[0] == "not known"
    assert people[1].startswith(describe_share(made["people_median"]["town"]))
