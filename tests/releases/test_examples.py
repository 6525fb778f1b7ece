"""The examples are released from their own records."""

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import DataError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.examples import EXAMPLES, Example

# Of each example, a table to look at: its attributes, in the order of the codebook.
TABLES = {
    "household": ("region", "tenure"),
    "redistricting": ("precinct", "race"),
    "labour-force": ("region", "status"),
    "hospital-stays": ("region", "diagnosis"),
}

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)


def options(example: Example, plan: TablePlan, excess: str = "keep first") -> dict:
    most = plan.budget.max_records_per_person
    if most is None:
        return {}
    order = example.order_column if excess == "keep first" else None
    return {"person_rule": rp.PersonRule(example.person_column, most, excess, order)}


@pytest.mark.by_day(2)
@each_example
def test_every_scenario_passes_a_dry_run(example: Example, tmp_path):
    for number, scenario in enumerate(example.project().scenarios):
        plan, output = scenario.table_plan(), tmp_path / f"out{number}"
        book = tmp_path / "ledger.sqlite"
        done = rp.dry_run(plan, example.records, output, ledger=book, **options(example, plan))
        assert done.findings


@pytest.mark.by_day(1)
@each_example
def test_the_first_scenario_is_released(example: Example, tmp_path):
    plan = example.project().current.table_plan()
    book = tmp_path / "ledger.sqlite"
    done = rp.release(
        plan, example.records, tmp_path / "out", ledger=book, **options(example, plan)
    )
    assert done.plan.sha256 == plan.sha256
    first, second = TABLES[example.key]
    table = done.table((first, second))
    # The true counts, by another reader.
    records = pd.read_csv(example.records, dtype=str)
    if example.person_column:
        most = plan.budget.max_records_per_person
        in_order = records.sort_values(example.order_column, kind="stable")
        records = in_order.groupby(example.person_column).head(most)
    counts = records.groupby([first, second]).size()
    is_single = table[first].isin(set(records[first]))  # and no group of values
    noisy = table[is_single].astype({first: str, second: str}).set_index([first, second])
    errors = (noisy["value"] - counts.reindex(noisy.index, fill_value=0)) / noisy["standard_error"]
    assert len(errors) == records[first].nunique() * records[second].nunique()
    assert errors.abs().max() < 7  # chance of more in some cell: 10⁻⁹


def test_patients_with_more_stays_are_refused_where_they_are_not_left_out(tmp_path):
    example = next(one for one in EXAMPLES if one.person_column)
    three, ten = (scenario.table_plan() for scenario in example.project().scenarios)
    book, out = tmp_path / "ledger.sqlite", tmp_path / "out"
    with pytest.raises(DataError, match="more records than the 3"):
        rp.dry_run(three, example.records, out, ledger=book, **options(example, three, "refuse"))
    assert rp.dry_run(ten, example.records, out, ledger=book, **options(example, ten, "refuse"))
