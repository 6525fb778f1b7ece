"""Plan: what a script sees of it, and saving it."""

import hashlib
import resource
import runpy
import signal
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.part_plan import COLUMNS, Certificate
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy import conversions as privacy
from tests.support.generalised import any_plan

# The way in that experts use; printed like this in the issue and kept stable.
SCRIPT = """
import rpexplore as rp
domain   = rp.Domain.load("codebook.json")
workload = rp.Workload.all_up_to(domain, 3)
plan     = rp.plan(workload, loss=rp.SumOfVariances(weighting="cells"), \
budget=rp.Budget(privacy_cost=1))
print(plan.tables)
print(plan.privacy_cost, plan.loss_value, plan.certificate.gap)
"""


@pytest.fixture
def plan():
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 16})
    workload = rp.Workload.of(
        domain, [(), ("age", "sex"), "region"], weights=[1, 2, 3], targets=[None, 5, None]
    )
    return plan_tables(workload, loss=rp.MaxVariance(), budget=rp.Budget(rho="0.5"))


def test_the_public_script_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 16}).save("codebook.json")
    Path("script.py").write_text(SCRIPT, "utf-8")
    runpy.run_path("script.py")
    cost, loss, gap = map(float, capsys.readouterr().out.splitlines()[-1].split())
    assert 1 - 1e-9 <= cost <= 1
    assert loss > 0
    assert gap < 1e-9


def test_every_way_in_that_is_promised():
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2})
    for workload in (
        rp.Workload.all_of_order(domain, 2),
        rp.Workload.all_with_at_most(domain, cells=100),
        rp.Workload.of(domain, [("age", "sex")]),
    ):
        for budget in ({"rho": 0.5}, {"epsilon": 1, "delta": 1e-9}, {"mu": 1}, {"privacy_cost": 1}):
            for loss in (rp.SumOfVariances(weighting="sqrt"), rp.MaxVariance()):
                assert plan_tables(workload, loss=loss, budget=rp.Budget(**budget)).loss_value > 0


def test_tables(plan):
    tables = plan.accuracy()
    assert list(tables.columns) == COLUMNS
    assert tables["attributes"].tolist() == [(), ("region",), ("age", "sex")]
    assert tables["item"].tolist() == ["(total)", "region", "age × sex"]
    assert set(tables["part"]) == {"tables"}
    assert tables[["level", "areas"]].isna().all(axis=None)
    assert tables["cells"].tolist() == [1, 16, 200]
    assert tables["cells"].dtype.kind == "i"
    assert tables["weight"].tolist() == [1, 3, 2]
    np.testing.assert_array_equal(tables["target"], [np.nan, np.nan, 5])
    assert tables["required"].tolist() == [False] * 3
    assert tables["met"].tolist() == [None, None, bool(plan.standard_errors[2] <= 5)]
    np.testing.assert_allclose(tables["margin_95"], 1.959964 * plan.standard_errors, rtol=1e-6)
    np.testing.assert_allclose(tables["standard_error"] ** 2, plan.mean_variances, rtol=1e-15)
    for name in ("largest_standard_error", "smallest_standard_error"):
        np.testing.assert_array_equal(tables[name], tables["standard_error"])
    np.testing.assert_array_equal(tables["shadow_price"], plan.certificate.shadow_prices)


def test_tables_with_more_cells_than_64_bits():
    domain = rp.Domain.from_sizes({f"a{i}": 10**6 for i in range(4)})
    plan = plan_tables(
        rp.Workload.of(domain, [domain.names]), loss=rp.MaxVariance(), budget=rp.Budget(rho=1)
    )
    assert plan.accuracy()["cells"].tolist() == [1e24]


def test_guarantee_is_exact_and_rounded_against_us(plan):
    assert plan.rho == plan.exact_privacy_cost / 2
    assert Fraction(1, 2) * (1 - Fraction(1, 10**9)) <= plan.rho <= Fraction(1, 2)
    assert plan.record_rho == plan.rho
    assert plan.privacy_cost == pytest.approx(1, rel=1e-9)
    # 5.2215 by ρ alone; of continuous noise with μ = 1 it is 4.8866.
    assert 4.8865 < plan.epsilon("1e-6") < privacy.epsilon_from_rho(plan.rho, "1e-6")


def test_print_reads_well(plan):
    text = str(plan)
    for part in (
        "3 tables",
        "3 attributes",
        "one record",
        "0.5-zCDP",
        "δ = 1e-6",
        "smallest possible within this budget",
    ):
        assert part in text
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("cost", [f"0.{digits}" for digits in ("1", "37", "5123", "99", "2718281")])
def test_what_is_printed_never_understates_the_loss_of_privacy(plan, cost):
    plan = plan_tables(plan.workload, loss=plan.loss, budget=rp.Budget(privacy_cost=cost))
    parts = str(plan).replace("-zCDP", " ").replace(",", " ").split()
    shown = parts[parts.index("Privacy") + 1]
    assert Fraction(shown) >= plan.rho
    positions = [at for at, word in enumerate(parts) if word == "ε"]
    assert Fraction(parts[positions[0] + 2]) >= Fraction(plan.epsilon("1e-6"))
    assert Fraction(parts[positions[1] + 2]) >= Fraction(plan.epsilon("1e-9"))


@pytest.mark.parametrize("cost", ["1e-15", "1e-12", "1e6", "1e20"])
def test_extreme_budgets_can_be_printed_and_verified(plan, cost):
    plan = plan_tables(plan.workload, loss=plan.loss, budget=rp.Budget(privacy_cost=cost))
    assert "zCDP" in str(plan)
    assert rp.verify(plan).holds


def test_arrays_are_read_only(plan):
    for held in (plan, TablePlan.parse(plan.text)):
        for array in (held.mean_variances, held.standard_errors, held.certificate.shadow_prices):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# ---- saving and loading


def test_a_small_gap_is_told_in_parts():
    told = [Certificate(1 + gap, 1.0, np.ones(1)).sentence() for gap in (1e-10, 7.7e-9, 2e-6, 3e-4)]
    ends = ["one part in a billion", "one part in a million", "one part in 100,000", "0.03 %"]
    assert [text.partition(" at most ")[2].partition(" above ")[0] for text in told] == ends


def test_saved_file_has_the_plans_hash(plan, tmp_path):
    path = tmp_path / "plan.json"
    plan.save(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == plan.sha256
    again = TablePlan.load(path)
    assert again.text == plan.text
    assert again.sha256 == plan.sha256
    plan.save(str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


@contextmanager
def files_of_at_most(size):
    """The operating system stops every write beyond `size` bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_what_was_there(plan, tmp_path):
    path = tmp_path / "plan.json"
    with files_of_at_most(500), pytest.raises(PlanError, match=r"cannot be written .*plan\.json"):
        plan.save(path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("an older plan")
    with files_of_at_most(500), pytest.raises(PlanError, match="cannot be written"):
        plan.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text() == "an older plan"


def test_an_interruption_leaves_nothing(plan, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    for name in ("replace", "rename"):
        monkeypatch.setattr(Path, name, interrupted)
        monkeypatch.setattr(f"os.{name}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plan.save(tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["missing/plan.json", "file/plan.json", "folder", "."])
def test_unusable_places_are_named(plan, tmp_path, target, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match=r"cannot be written .*choose"):
        plan.save(target)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(PlanError, match=r"no\.json.* cannot be read \(No such file"):
        TablePlan.load(tmp_path / "no.json")
    with pytest.raises(PlanError, match=r"got the folder .*; name a file"):
        TablePlan.load(tmp_path)
    (tmp_path / "plan.json").touch()
    with pytest.raises(PlanError, match=r"name that in it, '.*plan.json'"):
        TablePlan.load(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match=r"binary\.json is not a plan file"):
        TablePlan.load(tmp_path / "binary.json")


def test_privacy_cost_as_a_float_is_never_below_the_exact_one(plan):
    for cost in ("1", "1/3", "0.7", "0.123456789"):
        made = plan_tables(plan.workload, loss=plan.loss, budget=rp.Budget(privacy_cost=cost))
        assert Fraction(made.privacy_cost) >= made.exact_privacy_cost


def test_changing_the_tables_does_not_change_the_plan(plan):
    tables = plan.tables
    tables.loc[0, "weight"] = 9.0
    assert plan.accuracy()["weight"].tolist() == [1, 3, 2]


def test_margin_of_error_of_a_query(plan):
    minors = {"age": [1] * 18 + [0] * 82}
    variance = plan.query_variance("age", "sex", where=minors)
    margin = plan.margin_of_error("age", "sex", where=minors, confidence=0.9)
    assert margin == pytest.approx(1.6448536 * variance**0.5, rel=1e-7)
    # The texts of the command line, and their attributes without being named again.
    assert plan.query_variance(where={"age": "0..17"}) == pytest.approx(variance, rel=1e-12)
    with pytest.raises(rp.errors.DomainError, match="'age' must be named"):
        plan.query_variance(where={"age": "17..0"})
    assert plan.margin_of_error("region") == pytest.approx(1.959964 * plan.standard_errors[1])


@pytest.mark.parametrize(
    "wrong", [{"loss": "max"}, {"loss": rp.MaxVariance}, {"budget": 1}, {"tolerance": 0}]
)
def test_arguments_of_another_kind_are_named(plan, wrong):
    right = {"loss": rp.MaxVariance(), "budget": rp.Budget(rho=1)}
    with pytest.raises(PlanError, match=next(iter(wrong))):
        plan_tables(plan.workload, **(right | wrong))


def test_representation_is_short(plan):
    assert repr(plan) == "<TablePlan for 3 tables, ρ = 0.5>"
    assert repr(plan.alone) == "<Plan for 3 tables, ρ = 0.5>"


def test_what_is_printed_starts_with_the_stated_delta_and_tells_of_targets():
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2})
    workload = rp.Workload.of(domain, ["age", "sex"], targets=[1e-3, 1e3])
    budget = rp.Budget(epsilon=1, delta="1e-5")
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)
    assert ", ε = 1 at δ = 1e-5 and ε = " in str(plan)
    assert "Targets    1 of 2 met; furthest off: (age), " in str(plan)
    assert "with ε = 1 at δ = 1e-5, ε = " in rp.verify(plan).guarantee


# ---- attributes in other bases than single values


@pytest.fixture
def based():
    domain = rp.Domain.from_sizes({"age": 8, "sex": 2})
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"age": rp.Prefix()})
    return any_plan(workload, 3, loss=rp.MaxVariance())


def test_tables_whose_cells_differ_state_all_three_errors(based):
    tables = based.tables
    assert tables["cells"].tolist() == [1, 8, 2, 16]
    for position, table in enumerate(based.workload.tables):
        errors = based.cell_standard_errors(table)
        assert errors.shape == ((), (8,), (2,), (8, 2))[position]
        assert tables["standard_error"][position] == pytest.approx(np.mean(errors**2) ** 0.5)
        assert tables["largest_standard_error"][position] == pytest.approx(errors.max())
        assert tables["smallest_standard_error"][position] == pytest.approx(errors.min())
        assert based.largest_standard_errors[position] == tables["largest_standard_error"][position]
    assert tables["largest_standard_error"][1] > 1.01 * tables["standard_error"][1]
    assert tables["smallest_standard_error"][1] < 0.99 * tables["standard_error"][1]


def test_a_target_is_met_by_the_least_accurate_cell(based):
    largest, mean = based.largest_standard_errors[1], based.standard_errors[1]
    between = float((largest + mean) / 2)
    for target, met in ((between, 0), (float(largest) * 1.01, 1)):
        workload = based.workload.with_targets({"age": target})
        plan = any_plan(workload, 3, loss=rp.MaxVariance())
        assert f"Targets    {met} of 1 met" in str(plan)
    assert f"{largest:.4g} for a target of" in str(plan)


def test_margins_are_those_of_the_least_accurate_cell(based):
    worst = based.largest_standard_errors[1]
    assert based.margin_of_error("age") == pytest.approx(1.959964 * worst)
    up_to = [1, 1, 1, 0, 0, 0, 0, 0]
    error = based.cell_standard_errors("age")[2]
    assert based.margin_of_error("age", where={"age": up_to}) == pytest.approx(1.959964 * error)


def test_a_plan_of_asked_tables_comes_back_from_its_file(based, tmp_path):
    based.save(tmp_path / "plan.json")
    again = TablePlan.load(tmp_path / "plan.json")
    assert again.text == based.text
    assert rp.verify(again).holds
    for table in based.workload.tables:
        np.testing.assert_array_equal(
            again.cell_standard_errors(table), based.cell_standard_errors(table)
        )
