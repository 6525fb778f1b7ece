"""Releases of panels: one record a person and period is enforced; what the ledger books."""

import json

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError, LedgerError, ReleaseError
from rpexplore.planning.request import Rounds
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.measurement_source import MeasurementSource, refuse_unlike

QUARTERS = ("Q1", "Q2", "Q3", "Q4")
RULE = PersonRule("id", most=2)


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> rp.Plan:
    path = tmp_path_factory.mktemp("panel") / "codebook.csv"
    lines = [*(f"quarter,{name}" for name in QUARTERS), "sex,f", "sex,m"]
    path.write_text("\n".join(["attribute,value", *lines]) + "\n")
    workload = rp.Workload.of(rp.Domain.load(path), [("quarter", "sex"), ("sex",)])
    budget = rp.Budget(rho="0.5", max_records_per_person=2, period="quarter")
    return rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)


def records(tmp_path, *rows: str):
    path = tmp_path / "records.csv"
    usual = [f"p{i},{QUARTERS[(i + k) % 4]},{'fm'[i % 2]}" for i in range(50) for k in (0, 1)]
    path.write_text("\n".join(["id,quarter,sex", *usual, *rows]) + "\n")
    return path


def test_a_panel_is_released_and_its_ledger_is_on_the_safe_side(plan, tmp_path):
    data = records(tmp_path)
    # A limit is for what the ledger counts, as other runs may count two records of a quarter.
    with pytest.raises(LedgerError, match=r"with any 2 records .* in the panel it costs ρ = 0.5"):
        rp.release(plan, data, tmp_path / "out", person_rule=RULE, limit_rho="0.5")
    limit = 4 * plan.record_rho
    rp.release(plan, data, tmp_path / "out", person_rule=RULE, limit_rho=limit)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["period"], manifest["max_records_per_person"]) == ("quarter", 2)
    spent = Ledger.beside(data).account(data).spent_record_rho
    # What one record costs, so that m² times it covers a person with any records.
    assert spent == plan.record_rho
    assert plan.rho < 4 * spent
    assert rp.Release.load(tmp_path / "out").plan.budget.period == "quarter"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("p0,Q1,m", r"one record in each 'quarter', .*\(--records-per-person\)"),
        ("p0,Q3,m", r"more records than the 2 .* records, or plan .* \(--max-periods\)\.$"),
    ],
)
def test_more_records_of_a_person_are_refused_before_anything_is_spent(plan, tmp_path, row, told):
    data = records(tmp_path, *([row] if "Q3" in row else ["p99,Q1,f", "p99,Q1,m"]))
    with pytest.raises(DataError, match=told):
        rp.release(plan, data, tmp_path / "out", person_rule=RULE)
    assert Ledger.beside(data).account(data).spent_record_rho == 0
    assert not (tmp_path / "out").exists()


def test_both_limits_are_enforced_beside_own_counts_and_areas(plan, tmp_path):
    tables = plan.part("tables").workload
    women = rp.QueryList(tables.domain, [[1, 0] * 4, [0, 1] * 4], ("women", "men"), (5, 4))
    tree = rp.AreaTree.from_columns({"region": ["N", "S"]})
    sexes = rp.Workload.of(tables.domain, [("sex",)])
    areas = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
    budget = rp.Budget(rho="0.5", max_records_per_person=2, period="quarter")
    both = rp.plan(rp.Request(tables=tables, areas=areas, counts=women, budget=budget))
    frame = pd.read_csv(records(tmp_path)).assign(region="N")
    where = {"name": "records", "ledger": tmp_path / "ledger.sqlite", "person_rule": RULE}
    rp.release(both, frame, tmp_path / "out", **where)
    assert len(rp.Release.load(tmp_path / "out").part("counts").answers) == 2
    twice = pd.concat([frame, frame.iloc[:1].assign(id="p99"), frame.iloc[:1].assign(id="p99")])
    with pytest.raises(DataError, match="one record in each 'quarter'"):
        rp.release(both, twice, tmp_path / "again", **(where | {"name": "others"}))


def test_records_of_a_panel_are_not_left_out(plan, tmp_path):
    first = PersonRule("id", most=2, excess="keep first")
    with pytest.raises(ReleaseError, match="refused, and not left out"):
        rp.release(plan, records(tmp_path), tmp_path / "out", person_rule=first)


def test_panels_are_combined_with_their_like_only():
    sources = [
        MeasurementSource(name, name * 9, rp.Budget(rho=1).rho, 2, "1", run=name, period=period)
        for name, period in (("one", "quarter"), ("two", ""))
    ]
    with pytest.raises(ReleaseError, match="only with those of the same panel"):
        refuse_unlike(sources)
    assert MeasurementSource.from_json(sources[0].to_json()) == sources[0]


def test_the_ledger_states_what_a_record_of_a_panel_costs_by_rho_alone(plan, tmp_path):
    # The noise of a panel is known for a person: over m² it would claim too much for a record.
    data = records(tmp_path)
    rp.release(plan, data, tmp_path / "out", person_rule=RULE)
    (entry,) = Ledger.beside(data).account(data).entries
    assert entry.claim is None
    assert entry.record_rho * 4 > plan.rho


def test_adaptive_tables_of_a_panel_are_released_and_its_limits_enforced(plan, tmp_path):
    tables = rp.Workload.of(plan.domain, [("quarter", "sex")])
    budget = rp.Budget(rho="0.5", max_records_per_person=2, period="quarter")
    adaptive = rp.plan(rp.Request(rounds=Rounds(tables, 100), budget=budget))
    assert rp.verify(rp.Plan.parse(adaptive.text)).holds
    data = records(tmp_path)
    release = rp.release(adaptive, data, tmp_path / "out", person_rule=RULE)
    assert len(release.part("rounds").table("quarter", "sex")) == 8
    spent = Ledger.beside(data).account(data).spent_record_rho
    assert adaptive.rho / 4 < spent == adaptive.record_rho < adaptive.rho
    twice = records(tmp_path, "p99,Q1,f", "p99,Q1,m")
    with pytest.raises(DataError, match="one record in each 'quarter'"):
        rp.release(adaptive, twice, tmp_path / "again", person_rule=RULE)
