"""Attacks on sums of the ledger: runs whose ρ is for other neighbours are never added up as one."""

import os
import shutil
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import LedgerError
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.spent import Neighbours, noted_unit

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 3})


def planned(domain: rp.Domain = DOMAIN, **of_budget) -> Plan:
    tables = rp.Workload.all_up_to(domain, 2)
    budget = rp.Budget(rho="1/2", **of_budget)
    return Plan.of(plan_tables(tables, loss=rp.SumOfVariances(), budget=budget))


ADDED, REPLACED = planned(), planned(neighbours="replace")
SEX = {"name": "sex", "constraints": {"enum": ["f", "m"]}}
OF_A, OF_B = planned(exact=["a"]), planned(exact=["b"])


def account(data: Path) -> Account:
    return Ledger.of(data).account(data)


def records(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("a,b\n0,0\n1,2\n")
    return folder / name


@pytest.mark.parametrize(
    ("first", "second", "factors", "neighbours"),
    [
        (ADDED, REPLACED, (4, 1), Neighbours("replace")),
        (REPLACED, ADDED, (1, 4), Neighbours("replace")),
        (OF_A, REPLACED, (1, 4), Neighbours.by(OF_A)),
        (ADDED, OF_A, (16, 1), Neighbours.by(OF_A)),
        (OF_B, OF_A, (1, 1), Neighbours.common([Neighbours.by(one) for one in (OF_A, OF_B)])),
    ],
)
def test_what_came_together_is_summed_for_what_all_runs_protect(
    first, second, factors, neighbours, tmp_path
):
    """Two files, each released alone, in a folder that is looked at whole."""
    for name, plan in (("one.csv", first), ("two.csv", second)):
        rp.release(plan, records(tmp_path / "data", name), tmp_path / f"out {name}")
    whole = account(tmp_path / "data")
    assert replace(whole.neighbours, counted=()) == neighbours
    expected = first.record_rho * factors[0] + second.record_rho * factors[1]
    assert whole.spent_record_rho == whole.spent.record_rho == expected
    for plan in (ADDED, REPLACED, OF_A, OF_B):
        with pytest.raises(LedgerError, match="no run can follow"):
            rp.dry_run(plan, tmp_path / "data", tmp_path / "out")
    with pytest.raises(LedgerError, match="not below what is spent"):
        Ledger.of(tmp_path / "data").set_limit(tmp_path / "data", expected * Fraction(99, 100))


def test_a_lost_ledger_is_given_up_with_the_neighbours_of_its_runs(tmp_path):
    """ρ for replaced records says nothing of added ones: it must not go on as if it did."""
    data, named = records(tmp_path / "data", "one.csv"), tmp_path / "away" / "ledger.sqlite"
    named.parent.mkdir()
    rp.release(REPLACED, data, tmp_path / "out", ledger=named)
    shutil.rmtree(named.parent)
    Ledger.beside(data).forget(data, named)
    assert account(data).neighbours == Neighbours("replace")
    with pytest.raises(LedgerError, match="Plan with --neighbours replace"):
        rp.dry_run(ADDED, data, tmp_path / "again")
    rp.release(REPLACED, data, tmp_path / "again")
    assert account(data).spent_record_rho == 2 * REPLACED.record_rho
    (data.parent / FILENAME).rename(tmp_path / "kept")  # remembered as before
    assert Ledger(tmp_path / "kept").account(data).neighbours == Neighbours("replace")


def within(condition: str) -> Plan:
    return planned(neighbours="replace").within(condition)


OF_THREE = (within("a = 0"), within("b = 0"), REPLACED)


@pytest.mark.parametrize("first", OF_THREE)
def test_a_replaced_record_may_leave_what_another_run_counts(first, tmp_path):
    """How many records have a = 0 is public, and told; a record that is replaced may change that.

    The ledger said ρ = 1.5 for one replaced record, and gave the number away without noise.
    """
    data = records(tmp_path / "data", "one.csv")
    rp.release(first, data, tmp_path / "out")
    for other in OF_THREE:
        if other is not first:
            with pytest.raises(LedgerError, match="not added up") as refusal:
                rp.dry_run(other, data, tmp_path / "again")
            assert "Plan with the same condition (--where), or none" in str(refusal.value)
    rp.release(first, data, tmp_path / "again")
    found = account(data)
    assert found.spent_record_rho == 2 * first.record_rho
    if first.universe is not None:
        assert f"within or outside of {first.universe.text}" in found.neighbours.change


def test_universes_that_came_together_are_all_kept(tmp_path):
    for name, plan in zip(("one.csv", "two.csv"), OF_THREE[:2], strict=True):
        rp.release(plan, records(tmp_path / "data", name), tmp_path / f"out {name}")
    whole = account(tmp_path / "data")
    files = ("one.csv", "two.csv")
    within_both = Neighbours.common([Neighbours.by(one) for one in OF_THREE[:2]]).within
    assert [name.partition(" (")[0] for name in within_both] == ["a = 0", "b = 0"]
    assert whole.neighbours == Neighbours("replace", (), within_both, files)
    assert whole.spent_record_rho == OF_THREE[0].record_rho + OF_THREE[1].record_rho
    for plan in (*OF_THREE, ADDED):
        with pytest.raises(LedgerError, match="no run can follow"):
            rp.dry_run(plan, tmp_path / "data", tmp_path / "out")


def test_universes_do_not_tell_added_records_apart(tmp_path):
    data = records(tmp_path / "data", "one.csv")
    for number, plan in enumerate((ADDED, ADDED.within("a = 0"), ADDED.within("b = 0"))):
        rp.release(plan, data, tmp_path / f"{number}")
    assert account(data).neighbours == Neighbours()


def test_numbers_of_areas_are_those_of_one_list_of_areas(tmp_path):
    """Two lists can call other groups of towns regions; both numbers are told without noise."""
    data = tmp_path / "people.csv"
    data.write_text("town,a\n1,0\n2,1\n3,1\n4,0\n")
    plans = []
    for regions in ("1122", "1222"):
        tree = rp.AreaTree.from_columns({"region": list(regions), "town": list("1234")})
        tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1)
        asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
        budget = rp.Budget(rho="1/2", neighbours="replace", exact=["area@region"])
        plans.append(rp.plan(asked, loss=rp.SumOfVariances(), budget=budget))
    rp.release(plans[0], data, tmp_path / "out")
    with pytest.raises(LedgerError, match="not added up"):
        rp.dry_run(plans[1], data, tmp_path / "again")
    rp.release(plans[0], data, tmp_path / "again")
    assert account(data).spent_record_rho == 2 * plans[0].record_rho


def test_totals_are_those_of_one_codebook(tmp_path):
    """Other bins of ages have the same name; how many people are in each was told without noise."""
    data = tmp_path / "people.csv"
    data.write_text("age,sex\n" + "".join(f"{age % 8},f\n" for age in range(20)))

    def of_bins(edges: list[int], label: str = "") -> Plan:
        field = {"name": "age", "title": label, "type": "integer", "bins": edges}
        return planned(rp.Domain.from_schema({"fields": [field, SEX]}), exact=["age"])

    rp.release(of_bins([0, 4, 8]), data, tmp_path / "out")
    with pytest.raises(LedgerError, match=r"not added up.*of the same codebook"):
        rp.dry_run(of_bins([0, 3, 8]), data, tmp_path / "again")
    rp.release(of_bins([0, 4, 8], "Age in years"), data, tmp_path / "again")


def in_a_database(folder: Path) -> tuple[DatabaseSource, DatabaseSource]:
    with sqlite3.connect(folder / "records.sqlite") as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS a, 0 AS b UNION ALL SELECT 1, 2")
        connection.execute("CREATE VIEW v AS SELECT * FROM t WHERE a = 0")
    connection.close()
    database = Connection("db", f"sqlite://{folder / 'records.sqlite'}")
    return DatabaseSource(database, "v"), DatabaseSource(database, "t")


def in_a_folder(folder: Path) -> tuple[Path, Path]:
    part = records(folder / "data", "one.csv")
    (folder / "data" / "two.csv").write_text("a,b\n1,1\n")
    return part, folder / "data"


@pytest.mark.parametrize("laid", [in_a_database, in_a_folder])
@pytest.mark.parametrize("first_is_part", [True, False])
@pytest.mark.parametrize("plan", [REPLACED, OF_A, ADDED])
def test_a_replaced_record_may_leave_a_part_that_another_run_counts(
    laid, first_is_part, plan, tmp_path
):
    """How many records a view, or a file of a folder, holds is public, and told.

    The ledger added up the runs of both, as ρ for one record, replaced.
    """
    first, second = laid(tmp_path)[:: 1 if first_is_part else -1]
    rp.release(plan, first, tmp_path / "out")
    if plan is not ADDED:
        for other in (plan, ADDED):
            with pytest.raises(LedgerError, match=r"not added up.*Release '.*' as before"):
                rp.dry_run(other, second, tmp_path / "again")
        assert len(account(second).neighbours.counted) == 1
        assert "within or outside of" in account(second).neighbours.change
        second = first
    rp.release(plan, second, tmp_path / "again")
    assert account(first).neighbours == Neighbours.by(plan)
    assert account(first).spent_record_rho == 2 * plan.record_rho


def test_a_moved_file_is_no_other_part(tmp_path):
    data = records(tmp_path / "data", "one.csv")
    rp.release(REPLACED, data, tmp_path / "out")
    again = data.rename(data.with_name("two.csv"))
    rp.release(REPLACED, again, tmp_path / "again")
    assert account(again).neighbours == Neighbours("replace")


def test_what_a_lost_ledger_counted_is_known(tmp_path):
    """Given up for the whole, it goes on to bind: its runs were of a file in it."""
    data, named = records(tmp_path / "data", "one.csv"), tmp_path / "away" / "ledger.sqlite"
    named.parent.mkdir()
    rp.release(REPLACED, data, tmp_path / "out", ledger=named)
    shutil.rmtree(named.parent)
    Ledger.beside(data).forget(data.parent, named)
    with pytest.raises(LedgerError, match=r"not added up.*Release 'one\.csv' as before"):
        rp.dry_run(REPLACED, data.parent, tmp_path / "again")


@pytest.mark.parametrize("exact", [(), (("a",), ("area@x of areas 1",))])
@pytest.mark.parametrize("counted", [(), ("one.csv", "]] ")])
@pytest.mark.parametrize("condition", ['a = "; neighbours replace records within"', "a = 0"])
def test_what_neighbours_stay_within_is_read_as_it_was_written(condition, counted, exact):
    kept = Neighbours("replace", exact, (condition, "b"), counted)
    assert Neighbours.of(kept.unit) == kept
    for text in ("", "[]", "[[], []]", '[["a"]]', '[["a"], 1]', "[[1], []]", '[["a"], [[1]]]'):
        assert Neighbours.of(f"one record; neighbours replace records within {text}").within == ()
    for text in (
        "[[], [], []]",
        '[[], [], "a"]',
        "[[], [], [1]]",
        '[["a"], [], [], []]',
        "[1, [], []]",
    ):
        assert Neighbours.of(f"one record; neighbours replace records within {text}").counted == ()


NAMES = (
    '; neighbours replace records within [["a"], []]',
    "q; neighbours keep the exact totals x",
    '; neighbours keep the exact totals [["a"]]',
    "q; neighbours replace records",
    "one record; neighbours keep the exact totals ",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_an_attribute_is_taken_for_what_neighbours_do(name, tmp_path):
    """The unit of a panel names an attribute, and a crafted codebook may call it anything."""
    domain = rp.Domain.from_sizes({"a": 2, name: 3})
    data = tmp_path / "records.csv"
    data.write_text(f'a,"{name.replace(chr(34), chr(34) * 2)}"\n0,0\n1,2\n')
    plan = planned(domain, period=name, max_records_per_person=2)
    rp.release(plan, data, tmp_path / "out")
    assert account(data).neighbours == Neighbours()
    for noun in (None, "household"):
        exact = planned(domain, exact=[name], unit_noun=noun)
        replaced = planned(domain, neighbours="replace", unit_noun=noun)
        kept = Neighbours.of(noted_unit(exact))
        assert kept == Neighbours.by(exact) != Neighbours.by(replaced)
        assert Neighbours.of(noted_unit(replaced)) == Neighbours("replace")


def test_a_ledger_is_written_to_by_nobody_else_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        rp.release(ADDED, records(tmp_path / "data", "one.csv"), tmp_path / "out")
    finally:
        os.umask(before)
    assert (tmp_path / "data" / FILENAME).stat().st_mode & 0o002 == 0
