"""Attacks on sums of the ledger: two runs tell other things without noise, and look alike.

Where records are replaced the number of those that are counted is public, and so are exact totals.
What decides which records these are is said in many places: the plan, the codebook, the options of
a run. Runs that differ in any of them are not added up.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import PersonRule
from rpexplore.domain.record_layout import Place, RecordLayout
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.spent import Neighbours, Reading
from tests.data.engines.servers import in_duckdb

SEX = {"name": "sex", "constraints": {"enum": ["f", "m", "not stated", "other"]}}
AGE = {"name": "age", "type": "integer", "bins": [0, 4, 8]}


def planned(*fields: dict[str, Any], **of_budget: Any) -> Plan:
    tables = rp.Workload.all_up_to(rp.Domain.from_schema({"fields": [*fields]}), 2)
    budget = rp.Budget(rho="1/2", **of_budget)
    return Plan.of(plan_tables(tables, loss=rp.SumOfVariances(), budget=budget))


REPLACED = {"neighbours": "replace"}


def refused_after(data: Any, first: tuple[Plan, dict], second: tuple[Plan, dict], folder: Path):
    """Release the first, and try the second; the first again is added up."""
    rp.release(first[0], data, folder / "first", **first[1])
    with pytest.raises(LedgerError, match="not added up") as refusal:
        rp.dry_run(second[0], data, folder / "second", **second[1])
    rp.dry_run(first[0], data, folder / "again", **first[1])
    return str(refusal.value)


@pytest.fixture
def people(tmp_path) -> Path:
    data = tmp_path / "people.csv"
    rows = "".join(f"{n % 8},{'fm'[n % 2]},{n // 3},{n},{n % 4}\n" for n in range(24))
    data.write_text("age,sex,who,when,code\n" + rows)
    return data


CODE = {"name": "code", "constraints": {"enum": ["0", "1", "2", "3"]}}
RECODED = CODE | {"constraints": {"enum": ["0", "1"]}, "recode": {"2": "1", "3": "1"}}


OF_NUMBERS = {"name": "code", "type": "integer", "bins": [0, 2, 4]}


@pytest.mark.parametrize("other", [RECODED, OF_NUMBERS])
@pytest.mark.parametrize("order", [1, -1])
def test_a_universe_is_of_one_codebook(other, order, people, tmp_path):
    """With a recode, 1 is 1 to 3: how many records have these was told, under the same text."""
    plans = [planned(one, AGE, **REPLACED).within("code = 1") for one in (CODE, other)][::order]
    text = refused_after(people, (plans[0], {}), (plans[1], {}), tmp_path)
    assert "of the same codebook" in text


def test_labels_and_attributes_that_no_condition_names_make_no_other_universe(people, tmp_path):
    labelled = CODE | {"title": "Code"}
    for number, fields in enumerate([(CODE, AGE), (labelled, AGE), (CODE, SEX)]):
        rp.release(planned(*fields, **REPLACED).within("code = 1"), people, tmp_path / f"{number}")
    assert len(Ledger.beside(people).account(people).entries) == 3


def labelled(*labels: str) -> dict[str, Any]:
    values = [{"value": str(code), "label": label} for code, label in enumerate(labels)]
    return {"name": "code", "categories": values}


NAMED = labelled("young", "old", "refused", "gone"), labelled("old", "young", "gone", "refused")


@pytest.mark.parametrize("condition", ['code = "young"', 'code in ("young", "refused")'])
def test_a_condition_that_names_labels_means_their_values(condition, people, tmp_path):
    """With the labels exchanged, how many are not young was told under the same text."""
    plans = [planned(one, AGE, **REPLACED).within(condition) for one in NAMED]
    assert "of the same codebook" in refused_after(people, (plans[0], {}), (plans[1], {}), tmp_path)


def test_a_condition_by_size_of_labels_means_their_values(people, tmp_path):
    people.write_text("code,age\n" + "".join(f"{'abcd'[n % 4]},{n % 8}\n" for n in range(24)))
    fields = [
        {"name": "code", "categories": [
            {"value": value, "label": label} for value, label in zip("abcd", labels, strict=True)
        ]}
        for labels in ("4321", "1234")
    ]  # fmt: skip
    plans = [planned(one, AGE, **REPLACED).within("code >= 3") for one in fields]
    refused_after(people, (plans[0], {}), (plans[1], {}), tmp_path)


@pytest.mark.parametrize("option", ["unknown_values", "missing_values"])
def test_a_label_that_takes_other_values_means_its_value(option, people, tmp_path):
    """The difference of the two tables was the number of missing answers, without noise."""
    runs = [(planned(one, AGE, exact=["code"]), {option: {"code": "refused"}}) for one in NAMED]
    assert "categories for missing and unknown" in refused_after(people, *runs, tmp_path)
    by_value = (runs[0][0], {option: {"code": "2"}})
    rp.dry_run(by_value[0], people, tmp_path / "same", **by_value[1])


@pytest.mark.parametrize("option", ["unknown_values", "missing_values"])
def test_what_takes_other_values_makes_other_exact_totals(option, tmp_path):
    """The difference of the two tables was the number of missing answers, without noise."""
    data = tmp_path / "people.csv"
    data.write_text("age,sex\n0,f\n1,m\n2," + ("x" if option == "unknown_values" else "") + "\n")
    plan, others = planned(SEX, AGE, exact=["sex"]), [{"sex": "not stated"}, {"sex": "other"}]
    first, second = [(plan, {option: taker}) for taker in others]
    assert "categories for missing and unknown" in refused_after(data, first, second, tmp_path)
    # Of an attribute in no exact total nothing is public.
    noisy = [Neighbours.by(planned(SEX, AGE, exact=["age"]), Reading("", one)) for one in others]
    assert noisy[0] == noisy[1]


def test_an_encoding_makes_other_exact_totals(tmp_path):
    """é in one encoding is é in another one, both of which the codebook may have."""
    name = {"name": "name", "constraints": {"enum": ["é", "\u0439", "b"]}}
    for of_budget, condition in (({"exact": ["name"]}, None), (REPLACED, 'name = "é"')):
        plan = planned(AGE, name, **of_budget)
        plan = plan if condition is None else plan.within(condition)
        folder = tmp_path / f"{condition is None}"
        folder.mkdir()
        data = folder / "people.csv"
        data.write_bytes(b"age,name\n0,\xe9\n1,b\n")
        rp.release(plan, FileSource(data, "windows-1252"), folder / "first")
        with pytest.raises(LedgerError, match="same encoding"):
            rp.dry_run(plan, FileSource(data, "iso8859-5"), folder / "second")


def test_positions_make_other_exact_totals(tmp_path):
    data = tmp_path / "people.txt"
    data.write_text("012\n102\n113\n")
    plan = planned({"name": "a", "constraints": {"enum": ["0", "1"]}}, AGE, exact=["a"])
    layouts = [
        RecordLayout(("a", "age"), (Place(start, start + 1), Place(2, 3)), 3) for start in (0, 1)
    ]
    rp.release(plan, FileSource(data, layout=layouts[0]), tmp_path / "first")
    with pytest.raises(LedgerError, match="positions"):
        rp.dry_run(plan, FileSource(data, layout=layouts[1]), tmp_path / "second")


def test_first_records_of_persons_are_counted_by_one_rule(people, tmp_path):
    """How many persons have two records, and how many three, was told as a difference."""
    plans = [planned(SEX, AGE, max_records_per_person=most, **REPLACED) for most in (2, 3)]
    kept = [PersonRule("who", most, "keep first", "when") for most in (2, 3)]
    runs = [*zip(plans, [{"person_rule": rule} for rule in kept], strict=True), (plans[0], {})]
    runs.append((plans[0], {"person_rule": replace(kept[0], column="code")}))
    text = refused_after(people, runs[0], runs[1], tmp_path)
    assert "rule for persons" in text
    assert "within or outside of the first 2 records of each value of who" in text
    for plan, options in runs[2:]:
        with pytest.raises(LedgerError, match="not added up"):
            rp.dry_run(plan, people, tmp_path / "more", **options)


def test_ties_of_first_records_are_broken_by_all_that_is_counted(tmp_path):
    """Beside another table, another record of a person was first: both exact totals were told."""
    rows = [(1, 5, "f", 1, 0), (1, 5, "m", 0, 1), (2, 5, "m", 1, 1), (3, 4, "f", 0, 0)]
    names = ["who", "when", "sex", "x", "y"]
    columns = [list(column) for column in zip(*rows, strict=True)]
    data = in_duckdb(pa.table(columns, names=names), tmp_path / "people.duckdb")
    plans = [
        planned(
            {"name": name, "constraints": {"enum": ["0", "1"]}},
            SEX,
            exact=["sex"],
            max_records_per_person=1,
        )
        for name in "xy"
    ]
    options = {
        "person_rule": PersonRule("who", 1, "keep first", "when"),
        "ledger": tmp_path / "ledger.sqlite",
    }
    text = refused_after(data, (plans[0], options), (plans[1], options), tmp_path)
    assert "tables of the same attributes" in text


def test_persons_who_are_refused_beyond_their_records_are_all_counted(people, tmp_path):
    """Every record is, by whichever rule: the number is the same."""
    plans = [planned(SEX, AGE, max_records_per_person=most, **REPLACED) for most in (3, 4, 24)]
    rules = [PersonRule("who", 3), PersonRule("who", 4), None]
    for number, (plan, rule) in enumerate(zip(plans, rules, strict=True)):
        rp.release(plan, people, tmp_path / f"{number}", person_rule=rule)
    assert Ledger.beside(people).account(people).neighbours == Neighbours("replace")


def test_a_run_that_was_booked_is_not_run_with_other_totals(people, tmp_path, monkeypatch):
    """Stopped between booking and noise, it was free to go on with another reading."""
    plan = planned(SEX, AGE, exact=["sex"])

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rpexplore.releases.release.write_measured", stopped)
        with pytest.raises(KeyboardInterrupt):
            rp.release(plan, people, tmp_path / "out", unknown_values={"sex": "other"})
    assert len(Ledger.beside(people).account(people).entries) == 1
    with pytest.raises(LedgerError, match="options for reading records as before"):
        rp.release(plan, people, tmp_path / "out", unknown_values={"sex": "not stated"})
    rp.release(plan, people, tmp_path / "out", unknown_values={"sex": "other"})


def test_runs_of_older_ledgers_are_of_a_kind_of_their_own():
    """They say less of what is public: they can be read, and no run is taken for one of them."""
    unit = "one record; neighbours replace records within "
    old = Neighbours.of(unit + '[["code = 1"], []]')
    assert old == Neighbours("replace", (), ("code = 1",))
    assert old != Neighbours.by(planned(CODE, **REPLACED).within("code = 1"))
    exact = planned(SEX, AGE, exact=["sex"])
    of_exact = Neighbours.of('one record; neighbours keep the exact totals [["sex"]]')
    assert of_exact.exact == (("sex",),)
    assert of_exact != Neighbours.by(exact)
    assert Neighbours.of(Neighbours.by(exact).unit) == Neighbours.by(exact)


def test_a_pilot_that_is_released_by_itself_says_whose_records_it_counts(people, tmp_path):
    """It called its counts unbiased without a word of the condition, as if of all records."""
    tables = rp.Workload.all_up_to(rp.Domain.from_schema({"fields": [CODE, AGE]}), 2)
    request = {"tables": tables, "budget": rp.Budget(rho="1/2"), "pilot": "10%"}
    plan = rp.plan(rp.Request(**request, universe="when >= 12"))
    pilot = rp.release(plan, people, tmp_path / "out", pilot_only=True)
    assert pilot.manifest["universe"] == "when >= 12"
    assert "Only records with when >= 12 are counted." in (pilot.folder / "README.md").read_text()
    whole = rp.release(rp.plan(rp.Request(**request)), people, tmp_path / "whole")
    with pytest.raises(ReleaseError, match="one universe"):
        rp.combine(pilot, whole)
    done = rp.release(plan, people, tmp_path / "out")
    assert done.plan == plan


def test_a_pilot_of_which_the_condition_would_mean_others_is_not_released(people, tmp_path):
    tables = rp.Workload.all_up_to(rp.Domain.from_schema({"fields": [AGE]}), 1)
    counts = rp.QueryList(
        rp.Domain.from_schema({"fields": [NAMED[0]]}), [[1, 1, 0, 0]], ("n",), [9]
    )
    plan = rp.plan(
        rp.Request(
            tables=tables,
            counts=counts,
            budget=rp.Budget(rho="1/2"),
            pilot="10%",
            universe='code = "young"',
        )
    )
    with pytest.raises(ReleaseError, match="leave --pilot-only out"):
        rp.release(plan, people, tmp_path / "out", pilot_only=True)
    assert not Ledger.beside(people).account(people).entries
