"""The examples: they open finished, plan at once, and their figures are worth looking at."""

import numpy as np
import pytest

from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.published_lines import forecast_of_scenario
from rpexplore.common.installation import sample_data_folder
from rpexplore.common.text import describe_share
from rpexplore.domain.domain import Domain
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.scenarios.examples import EXAMPLES, Example, example_for
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from tests.support.processor_time import at_most

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)


def forecast(scenario: Scenario) -> Forecast:
    drawn = DrawnCounts.of(scenario.workload, scenario.public_tables)
    return forecast_of_scenario(scenario.table_plan(), drawn, scenario)


@each_example
def test_opens_finished(example: Example):
    project = example.project()
    assert len(project.scenarios) == 2
    assert Project.parse(project.text()) == project
    for scenario in project.scenarios:
        assert scenario.domain == example.domain
        assert scenario.expected == example.expected
        assert scenario.note
        assert not scenario.misses_target
    weights = [scenario.workload.weights for scenario in project.scenarios]
    assert any(np.any(one != 1) for one in weights)
    assert example.records.is_file()


@each_example
def test_is_planned_within_a_second(example: Example):
    project = example.project()
    for scenario in project.scenarios:
        scenario.table_plan()  # loads the solvers
    with at_most(2):
        for scenario in example.project().scenarios:
            scenario.table_plan()


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(each, marks=[pytest.mark.nightly] * (each.key != "hospital-stays"))
        for each in EXAMPLES
    ],
    ids=lambda each: each.key,
)
def test_people_in_good_cells_are_those_of_the_readme(example: Example):
    people = [forecast(scenario).people for scenario in example.project().scenarios]
    text = (sample_data_folder() / "README.md").read_text(encoding="utf-8")
    for scenario, share in zip(example.project().scenarios, people, strict=True):
        plan = scenario.table_plan()
        rho, epsilon = float(plan.rho), plan.epsilon("1e-6")
        row = f"{scenario.name} | {len(scenario.workload)} | {rho:.3g} | {epsilon:.3g}"
        assert f"| {row} | {share.text(describe_share)} |" in text


def test_the_smaller_labour_force_budget_just_meets_the_law():
    required, everything = next(
        one.project().scenarios for one in EXAMPLES if one.key == "labour-force"
    )
    least = float(minimum_budget(required.workload, required_only=True).budget.rho)
    assert least <= required.budget.rho < 1.002 * least
    assert np.all(required.workload.required)
    assert everything.workload.required.sum() == len(required.workload)
    for scenario in (required, everything):
        workload, variances = scenario.workload, scenario.table_plan().table_variances
        errors = np.sqrt(variances.largest[workload.required])
        assert np.all(errors <= workload.targets[workload.required] * (1 + 1e-9))


def test_records_are_those_of_the_codebook_that_is_most_alike():
    for example in EXAMPLES:
        assert example_for(example.domain, example.domain.names) is example
        # Region and sex are in three codebooks.
        shared = [name for name in ("region", "sex") if name in example.domain]
        assert example_for(example.domain, shared) is example
    assert example_for(Domain.from_sizes({"shoe": 3}), ["shoe"]) is None
