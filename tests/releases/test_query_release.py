"""A release of queries: exact without noise, right with it, booked in time, and silent."""

import csv
import json
import os
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore
from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Counts
from rpexplore.domain.result_schema import IMPOSSIBLE_NOTE
from rpexplore.errors import LedgerError, PlanError, ReleaseError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import release, resume
from rpexplore.workload.query_definitions import stated_from_text
from rpexplore.workload.query_list import QueryList
from tests.planning.test_counts_plan import query_lists
from tests.releases.table_plan import (
    CSV,
    NAMES,
    QUERIES,
    SECRET,
    entries,
    no_noise,
    runs,
    tampered,
)
from tests.releases.table_plan import QUERY_PLAN as PLAN
from tests.support.query_lists import query_list, query_plan
from tests.support.strategies import workloads

NOISE = "rpexplore.releases.query_release.discrete_gaussian"
DOMAIN = QUERIES.domain
TRUTH = [3, 3, 1]


# --- values


def test_the_number_of_records_is_exact_where_it_is_public(tmp_path):
    """Also half of it; what depends on it has the noise of the rest alone."""
    queries = QueryList(
        Domain.from_sizes({"sex": 2}),
        [[1, 1], [0.5, 0.5], [0, 1], [3, 2]],
        ("all", "half", "women", "both"),
        (1, 1, 1, 1),
    )
    planned = query_plan(queries, budget=Budget(rho="0.001", neighbours="replace"))
    records = pd.DataFrame({"sex": [0, 1] * 150 + [1]})
    release(planned, records, tmp_path / "out", name="records", ledger=tmp_path / "ledger.sqlite")
    done = QueryRelease.load(tmp_path / "out")
    answers, errors = done.answers["answer"], done.answers["standard_error"]
    assert answers[:2].tolist() == [301, 150.5]
    assert errors[:2].tolist() == [0, 0]
    assert answers[3] == pytest.approx(903 - answers[2], abs=1e-6)
    assert errors[3] == pytest.approx(errors[2])
    assert errors[2] > 5
    assert np.linalg.norm(done.noise_rows, axis=1) == pytest.approx(errors)


@settings(max_examples=25, deadline=None)
@given(query_lists(), st.integers(0, 2**32), st.integers(0, 40))
def test_without_noise_every_answer_is_exact(tmp_path_factory, queries, seed, n_records):
    """W x, x counted record by record, whatever the order of the columns in the file."""
    folder = tmp_path_factory.mktemp("release")
    rng, sizes = np.random.default_rng(seed), queries.domain.sizes.tolist()
    codes = [rng.integers(0, n, n_records) for n in sizes]
    columns = dict(reversed(list(zip(queries.domain.names, codes, strict=True))))
    pd.DataFrame(columns).to_csv(folder / "records.csv", index=False)
    cells = list(product(*map(range, sizes)))
    counts = np.zeros(len(cells))
    for record in zip(*[each.tolist() for each in codes], strict=True):
        counts[cells.index(record)] += 1
    expected = queries.coefficients @ counts
    planned = query_plan(queries, budget=Budget(rho=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NOISE, no_noise)
        release(planned, folder / "records.csv", folder / "out", may_be_empty=True)
    done = QueryRelease.load(folder / "out")
    answers = done.answers
    scale = np.max(np.abs(queries.coefficients), axis=1) * max(n_records, 1)
    assert np.max(np.abs(answers["answer"] - expected) / scale) < 1e-7
    assert done.measurements.dtype == np.int64
    exact = planned.strategy.integers.astype(object) @ counts.astype(int).astype(object)
    assert done.measurements.tolist() == exact.tolist()


def test_answers_stand_beside_their_names_and_accuracy(data, output, without_noise):
    done = release(PLAN, data, output)
    answers = done.answers
    assert answers.columns.tolist() == [
        "name", "answer", "standard_error", "margin_95", "target", "met",
    ]  # fmt: skip
    assert answers["name"].tolist() == list(NAMES)
    assert np.allclose(answers["answer"], TRUTH, atol=1e-9)
    assert answers["standard_error"].tolist() == PLAN.standard_errors.tolist()
    assert np.allclose(answers["margin_95"], 1.959964 * PLAN.standard_errors, rtol=1e-6)
    assert answers["target"].tolist() == [1, 2, 30]
    assert answers["met"].tolist() == PLAN.met.tolist() == [False, False, True]
    with (output / "counts" / "answers.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == answers.columns.tolist()
    for row, expected in zip(rows, answers.itertuples(index=False), strict=True):
        assert row[0] == expected.name
        assert [float(each) for each in row[1:5]] == list(expected)[1:5]
        assert row[5] == str(expected.met).lower()


def test_counts_that_no_record_can_be_in_are_marked(tmp_path):
    """Nobody has a = 0 and b = 1: a count of nothing else, beside one of it and more."""
    domain = Domain(Domain.from_sizes({"a": 2, "b": 2}).attributes, ({"a": "0", "b": "1"},))
    queries = QueryList(domain, [[0, 1, 0, 0], [0, 1, 0, 1]], ("none", "some"), [5, 5])
    pd.DataFrame({"a": [0, 1], "b": [0, 1]}).to_csv(tmp_path / "d.csv", index=False)
    done = release(query_plan(queries, budget=Budget(rho=1)), tmp_path / "d.csv", tmp_path / "out")
    assert done.part("counts").answers["note"].tolist() == [IMPOSSIBLE_NOTE, ""]
    assert "a=0 b=1" in (tmp_path / "out" / "README.md").read_text()


def test_answers_follow_from_the_measured_integers_and_the_plan_alone(data, output):
    done = release(PLAN, data, output)
    data.unlink()
    opened = QueryRelease.load(output)
    (part,) = json.loads((output / "plan.json").read_text())["parts"]
    integers = np.array(part["strategy"], dtype=float)
    expected = QUERIES.coefficients @ np.linalg.pinv(integers) @ opened.measurements
    assert np.allclose(expected, done.answers["answer"], rtol=0, atol=1e-6)
    assert opened.plan.text == PLAN.text


def test_one_record_more_changes_what_is_measured_by_its_column(tmp_path, without_noise):
    """The exact sensitivity: ρ that is booked is the largest squared change over 2γ²."""
    largest = 0
    values = list(product("fm", (0, 4, 8)))
    for cell, (sex, age) in enumerate(values):
        samples = []
        for more in ("", f"{sex},{age},k,x\n"):
            data = tmp_path / f"{cell}{bool(more)}.csv"
            data.write_text(CSV + more)
            done = release(PLAN, data, tmp_path / f"out{cell}{bool(more)}").part("counts")
            samples.append(done.measurements.tolist())
            (run,) = runs(data)
            assert run.record_rho == PLAN.record_rho
        change = [after - before for before, after in zip(*samples, strict=True)]
        assert change == PLAN.strategy.integers[:, cell].tolist()
        largest = max(largest, sum(each**2 for each in change))
    assert Fraction(largest) / PLAN.gamma_squared / 2 == PLAN.record_rho <= Fraction(1, 2)


def test_noise_is_drawn_once_at_the_scale_of_the_plan(data, output, monkeypatch):
    drawn = []

    def spy(size, gamma_squared):
        drawn.append((size, gamma_squared))
        return no_noise(size, gamma_squared)

    monkeypatch.setattr(NOISE, spy)
    release(PLAN, data, output)
    assert drawn == [(len(PLAN.strategy.integers), PLAN.gamma_squared)]


def test_two_releases_differ_and_noise_is_the_operating_systems(data, output, monkeypatch):
    urandom, drawn = os.urandom, []

    def spy(size):
        drawn.append(size)
        return urandom(size)

    monkeypatch.setitem(discrete_gaussian.__kwdefaults__, "random_bytes", spy)
    one, two = (release(PLAN, data, output.with_name(name)).part("counts") for name in "ab")
    assert one.measurements.tolist() != two.measurements.tolist()
    assert sum(drawn) >= 2 * 16 * len(PLAN.strategy.integers)


def test_only_the_attributes_that_are_asked_about_are_read(data, output, without_noise):
    women = query_list([[1, 0]], sizes=[2])
    renamed = QueryList(Domain((DOMAIN["sex"],)), women.coefficients, ("women",), women.targets)
    data.write_text(CSV.replace("age", SECRET))
    done = release(query_plan(renamed, budget=Budget(rho=1)), data, output)
    assert np.allclose(done.answers["answer"], 3)


def test_other_keeps_everybody(data, output, without_noise):
    data.write_text(CSV + "x,8,k,x\n")
    done = release(PLAN, data, output, unknown_values={"sex": "f"})
    assert np.allclose(done.answers["answer"], [4, 4, 2])
    assert done.manifest["unknown_values"] == {"sex": "f"}
    assert "counted as: sex: f" in (output / "README.md").read_text()


def test_a_file_without_records_can_be_released(data, output):
    data.write_text("sex,age\n")
    assert len(release(PLAN, data, output, may_be_empty=True).answers) == 3


# --- refusals come before anything is booked or written


TAMPERED = {
    "less noise": ('"gamma_squared":"[0-9]*"', '"gamma_squared":"1000"'),
    "other variance": ('"variance":4.266767[0-9]*', '"variance":4.266766'),
    "lower cost": ('\n"privacy_cost":"1"', '\n"privacy_cost":"0.9"'),
    "larger entries": (r"(\[|,)(-?[1-9]\d+)(?=[,\]])", r"\g<1>\g<2>0"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_plan_is_refused(what, data, output, forbidden_noise):
    plan = tampered(PLAN, *TAMPERED[what])
    with pytest.raises(PlanError, match="does not hold what it claims"):
        release(plan, data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


def test_too_many_records_are_refused(data, output, forbidden_noise, monkeypatch):
    largest = int(np.max(np.abs(PLAN.strategy.integers)))
    most = -(-(2**61) // largest)
    crowd = Counts({}, most)
    monkeypatch.setattr(FileSource, "count", lambda *args, **options: crowd)
    with pytest.raises(ReleaseError, match="too many records") as caught:
        release(PLAN, data, output)
    assert str(most) not in str(caught.value)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []
    # One fewer fits, as do all sums: nothing is larger than the entries times the records.
    assert largest * (most - 1) < 2**61


# --- the ledger, which tables and queries share


def test_tables_and_queries_of_one_data_file_share_its_cap(data, output, without_noise):
    table = Workload.all_up_to(DOMAIN, 1)
    tables = rpexplore.plan(table, loss=SumOfVariances(), budget=Budget(rho="1/4"))
    release(tables, data, output, limit_rho="4/5")
    release(PLAN, data, output.with_name("queries"))
    account = Ledger.beside(data).account(data)
    assert account.spent_record_rho == tables.record_rho + PLAN.record_rho
    assert [run.plan_sha256 for run in account.entries] == [tables.sha256, PLAN.sha256]
    assert [run.state for run in account.entries] == ["finished"] * 2
    for refused in (
        lambda: release(tables, data, output.with_name("more")),
        lambda: release(PLAN, data, output.with_name("more")),
    ):
        with pytest.raises(LedgerError, match="left of its budget limit"):
            refused()
    with pytest.raises(LedgerError, match="another budget limit"):
        release(PLAN, data, output.with_name("more"), limit_rho=1)
    assert entries(output.parent) == ["queries", "release"]


def test_persons_are_charged_as_records(data, output, without_noise):
    person = query_plan(QUERIES, budget=Budget(rho="9/2", max_records_per_person=3))
    release(person, data, output, limit_rho="9")
    account = Ledger.beside(data).account(data)
    assert account.limit_record_rho == 1
    assert account.spent_record_rho == person.rho / 9
    assert Fraction(1, 2) * (1 - Fraction(1, 10**9)) < account.spent_record_rho <= Fraction(1, 2)


def test_a_named_ledger_is_used(data, output, tmp_path):
    release(PLAN, data, output, ledger=tmp_path / "book.sqlite")
    assert runs(data) == ()
    assert len(Ledger(tmp_path / "book.sqlite").account(data).entries) == 1


# --- the order of things, and interruptions


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupted_while_it_writes_a_run_is_finished_without_drawing_again(
    error, data, output, monkeypatch
):
    def interrupt(*args, **options):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.query_release.QuerySteps.write", interrupt)
        with pytest.raises(error):
            release(PLAN, data, output)
    assert [run.state for run in runs(data)] == ["started"]
    measured = np.fromfile(output.with_name(".release.unfinished") / "run" / "measured.int64")
    monkeypatch.setattr(NOISE, interrupt)
    done = resume(output).part("counts")
    assert done.measurements.tobytes() == measured.tobytes()
    assert [run.state for run in runs(data)] == ["finished"]


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_a_progress_that_stops_the_run_before_the_booking_costs_nothing(share, data, output):
    def stop(doing, done):
        if done >= share and doing != "Reading the records":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(PLAN, data, output, on_progress=stop)
    assert runs(data) == ()
    assert entries(output.parent) == []


@settings(max_examples=5, deadline=None)
@given(workloads())
def test_all_counts_of_tables_agree_with_queries_for_them(tmp_path_factory, workload):
    """The same records, through a plan of tables and a list of queries, without noise."""
    domain = workload.domain
    if np.prod(domain.sizes) > 100:
        return
    folder = tmp_path_factory.mktemp("both")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({a.name: rng.integers(0, a.size, 20) for a in domain})
    frame.to_csv(folder / "records.csv", index=False)
    every = rpexplore.plan(
        Workload.of(domain, [domain.names]), loss=SumOfVariances(), budget=Budget(rho=1)
    )
    n_cells = int(np.prod(domain.sizes))
    queries = QueryList(domain, np.eye(n_cells), tuple(map(str, range(n_cells))), np.ones(n_cells))
    single = query_plan(queries, budget=Budget(rho=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NOISE, no_noise)
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
        table = release(every, folder / "records.csv", folder / "tables").table(domain.names)
        answers = release(single, folder / "records.csv", folder / "queries").answers
    assert np.allclose(table["value"], answers["answer"], atol=1e-6)


# --- groups of cells


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_counts_about_1e9_cells_are_exact_without_noise(ending, tmp_path, without_noise):
    domain = Domain.from_sizes({"a": 1000, "b": 1000, "c": 1000})
    text = "x: a < 500 & b >= 100 ± 30\ny: c == 7 | a < 500 & c in (1, 2, 3) ± 20\nall: total ± 9"
    planned = query_plan(stated_from_text(domain, text).queries, budget=Budget(rho=1))
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, 1000, 3000) for name in ("c", "a", "b")})
    frame.loc[::50, "c"] = 7
    if ending == "csv":
        frame.to_csv(tmp_path / "records.csv", index=False)
    else:
        frame.to_parquet(tmp_path / "records.parquet")
    release(planned, tmp_path / f"records.{ending}", tmp_path / "out")
    answers = QueryRelease.load(tmp_path / "out").answers.set_index("name")["answer"]
    young = frame["a"] < 500
    exact = [
        int((young & (frame["b"] >= 100)).sum()),
        int(((frame["c"] == 7) | young & frame["c"].between(1, 3)).sum()),
        3000,
    ]
    assert answers[["x", "y", "all"]].tolist() == pytest.approx(exact, abs=1e-6)


def test_groups_of_cells_are_released_beside_tables(tmp_path, without_noise, monkeypatch):
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
    domain = Domain.from_sizes({"a": 100, "b": 100})
    queries = stated_from_text(domain, "x: a < 50 & b >= 10 ± 30").queries
    whole = rpexplore.plan(
        rpexplore.Request(
            tables=Workload.all_up_to(domain, 1), counts=queries, budget=Budget(rho=2)
        )
    )
    frame = pd.DataFrame({"a": [1, 2, 60, 49], "b": [10, 9, 11, 99]})
    frame.to_csv(tmp_path / "records.csv", index=False)
    done = release(whole, tmp_path / "records.csv", tmp_path / "out")
    assert done.part("counts").answers["answer"].tolist() == pytest.approx([2])
