"""A whole release: exact without noise, right with it, booked in time, and silent."""

import ast
import contextlib
import importlib
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import traceback
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore
from rpexplore import (
    Attribute,
    Budget,
    Categories,
    Domain,
    Hierarchy,
    Integers,
    Prefix,
    Ranges,
    RpexploreError,
    SumOfVariances,
    Workload,
)
from rpexplore.common.exact_numbers import exact_text
from rpexplore.data.counts import Counts
from rpexplore.data.files.source import FileSource
from rpexplore.errors import (
    BudgetError,
    DataError,
    DomainError,
    LedgerError,
    PlanError,
    ReleaseError,
    WorkloadError,
)
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import plan
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.release import release, resume
from rpexplore.releases.table_folder import Release
from tests.support.exact_counts import counts_of
from tests.support.generalised import any_plan, basis_matrix, workloads_with_bases
from tests.support.oracles import kron
from tests.support.strategies import workloads

DEVIATIONS = 6.8  # a normal variable is farther out with probability 1e-11

DOMAIN = Domain(
    (
        Attribute("sex", Categories(("f", "m"), ("female", "male"))),
        Attribute("age", Integers(0, 8, 3)),
        Attribute("one", Categories(("k",))),
    )
)
WORKLOAD = Workload.all_up_to(DOMAIN, 2)
PLAN = plan(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1/2"))
CSV = "sex,age,one,notes\nf,0,k,x\nf,2,k,x\nm,3,k,x\nf,8,k,x\nm,5,k,x\n"
SECRET = "s3cr3t-value"


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    path.write_text(CSV)
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    """Where a release may go: the folder around it is empty."""
    (tmp_path / "outputs").mkdir()
    return tmp_path / "outputs" / "release"


def no_noise(size, gamma_squared):
    return np.zeros(size, dtype=np.int64)


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)


@pytest.fixture
def forbidden_noise(monkeypatch):
    def draw(*args, **options):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", draw)


def runs(data: Path, ledger: Path | None = None):
    book = Ledger(ledger) if ledger else Ledger.beside(data)
    return book.account(data).runs


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- values


@settings(max_examples=25, deadline=None)
@given(workloads(), st.integers(0, 2**32), st.integers(0, 40))
def test_without_noise_every_table_is_exact(tmp_path_factory, workload, seed, n_records):
    folder = tmp_path_factory.mktemp("release")
    sizes = workload.domain.sizes
    rng = np.random.default_rng(seed)
    codes = {i: rng.integers(0, n, n_records) for i, n in enumerate(sizes)}
    truth = counts_of(codes, n_records, sizes)
    frame = pd.DataFrame({name: codes[i] for i, name in enumerate(workload.domain.names)})
    frame.to_csv(folder / "records.csv", index=False)
    planned = plan(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
        done = release(planned, folder / "records.csv", folder / "out")
    for position, table in enumerate(workload.tables):
        counts = truth.counts(workload.domain.positions(table))
        for cells in (done.table(table), done.counts(table)):
            assert len(cells) == counts.size
            assert np.max(np.abs(cells["value"] - counts.ravel())) < 1e-9
            assert np.allclose(cells["standard_error"], planned.standard_errors[position])
            # Row-major: the last attribute runs fastest, labels are those of the codebook.
            for axis, index in enumerate(workload.domain.positions(table)):
                codes = np.indices(counts.shape)[axis].ravel()
                labels = workload.domain.attributes[index].labels()
                assert cells.iloc[:, axis].tolist() == [labels[code] for code in codes]


def test_values_are_where_their_labels_say(data, output, without_noise):
    cells = release(PLAN, data, output).table(["sex", "age"])
    assert cells.columns.tolist()[:3] == ["sex", "sex label", "age"]
    named = {(row.iloc[1], row.iloc[2]): round(row["value"], 9) for _, row in cells.iterrows()}
    assert named == {
        ("female", "0 to 2"): 2,
        ("female", "3 to 5"): 0,
        ("female", "6 to 8"): 1,
        ("male", "0 to 2"): 0,
        ("male", "3 to 5"): 2,
        ("male", "6 to 8"): 0,
    }
    assert set(zip(cells["sex"], cells["sex label"], strict=True)) == {
        ("f", "female"),
        ("m", "male"),
    }


def test_tables_agree_with_each_other_and_with_the_residuals(data, output):
    done = release(PLAN, data, output)
    for large in WORKLOAD.tables:
        cells = done.table(large)
        rebuilt = done.counts(large)
        assert cells.columns.tolist() == rebuilt.columns.tolist()
        assert np.allclose(cells["value"], rebuilt["value"], rtol=0, atol=1e-9)
        assert np.allclose(cells["standard_error"], rebuilt["standard_error"])
        for small in WORKLOAD.tables:
            if set(small) < set(large):
                summed = (
                    cells.groupby(list(small), observed=False, sort=False)["value"].sum()
                    if small
                    else pd.Series([cells["value"].sum()])
                )
                assert np.allclose(summed, done.table(small)["value"], rtol=0, atol=1e-9)


def test_marginals_inside_a_table_can_be_rebuilt(data, output, without_noise):
    workload = Workload.of(DOMAIN, [("sex", "age")])
    planned = plan(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    done = release(planned, data, output)
    assert np.allclose(done.counts(["age"])["value"], [2, 2, 1])
    assert np.allclose(done.counts([])["value"], [5])
    assert np.allclose(done.counts("sex")["value"], [3, 2])
    assert np.allclose(done.counts(["one", "sex"])["value"], [3, 2])
    assert done.counts(["age"])["standard_error"][0] == pytest.approx(
        planned.variance(["age"]) ** 0.5
    )
    workload = Workload.of(DOMAIN, [("sex",), ("age",)])
    planned = plan(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    apart = release(planned, data, output.with_name("apart"))
    with pytest.raises(WorkloadError, match="no table with these attributes together"):
        apart.counts(["sex", "age"])
    with pytest.raises(DomainError):
        apart.counts(["nobody"])
    pd.testing.assert_frame_equal(done.table("age"), done.counts("age"))  # no file of its own


# --- attributes in other bases than single values


@settings(max_examples=25, deadline=None)
@given(workloads_with_bases(max_attributes=3), st.integers(0, 2**32), st.integers(0, 40))
def test_without_noise_every_answer_is_exact(tmp_path_factory, workload, seed, n_records):
    """Each table is W applied to the true counts, row by row as the labels say."""
    folder, domain = tmp_path_factory.mktemp("release"), workload.domain
    rng = np.random.default_rng(seed)
    codes = {i: rng.integers(0, n, n_records) for i, n in enumerate(domain.sizes)}
    truth = counts_of(codes, n_records, domain.sizes)
    frame = pd.DataFrame({name: codes[i] for i, name in enumerate(domain.names)})
    frame.to_csv(folder / "records.csv", index=False)
    planned = any_plan(workload, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
        done = release(planned, folder / "records.csv", folder / "out")
    for position, table in enumerate(workload.tables):
        indices = workload.attribute_indices(position)
        counts = truth.counts(indices)
        bases = [workload.basis_of(position, index) for index in indices]
        matrices = [
            basis_matrix(basis, domain.attributes[index])
            for basis, index in zip(bases, indices, strict=True)
        ]
        expected = kron(matrices) @ counts.ravel()
        cells = done.table(table)
        error = np.abs(cells["value"] - expected)
        assert np.max(error) <= 1e-9 * max(np.max(np.abs(expected)), 1)
        assert np.allclose(cells["standard_error"], planned.cell_standard_errors(table).ravel())
        for axis, (index, basis) in enumerate(zip(indices, bases, strict=True)):
            rows = np.indices([len(matrix) for matrix in matrices])[axis].ravel()
            labels = rpexplore.workload.query_matrix.query_matrix(
                basis, domain.attributes[index]
            ).labels()
            assert cells.iloc[:, axis].tolist() == [labels[row] for row in rows]
        rebuilt = done.counts(table)
        assert np.max(np.abs(rebuilt["value"] - counts.ravel())) < 1e-9 * max(counts.sum(), 1)
        variances = planned.marginal_noise(indices).variances.ravel()
        assert np.allclose(rebuilt["standard_error"] ** 2, variances)


@settings(max_examples=15, deadline=None)
@given(workloads_with_bases(max_attributes=3), st.integers(0, 2**32))
def test_released_tables_agree_and_any_query_can_be_answered(tmp_path_factory, workload, seed):
    """With noise: rows follow from the rebuilt marginal, and `answer` from both."""
    folder, domain = tmp_path_factory.mktemp("release"), workload.domain
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({a.name: rng.integers(0, a.size, 30) for a in domain})
    frame.to_csv(folder / "records.csv", index=False)
    planned = any_plan(workload, seed)
    done = Release.load(release(planned, folder / "records.csv", folder / "out").folder)
    for position, table in enumerate(workload.tables):
        indices = workload.attribute_indices(position)
        matrices = [
            basis_matrix(workload.basis_of(position, index), domain.attributes[index])
            for index in indices
        ]
        released, values = done.table(table), done.counts(table)["value"].to_numpy()
        scale = max(float(np.max(np.abs(kron(matrices)) @ np.abs(values))), 1.0)
        assert np.max(np.abs(kron(matrices) @ values - released["value"])) < 1e-9 * scale
        # A row of the table by itself, …
        rows = [int(rng.integers(len(matrix))) for matrix in matrices]
        row = np.ravel_multi_index(rows, [len(m) for m in matrices]) if rows else 0
        query = {name: m[r] for name, m, r in zip(table, matrices, rows, strict=True)}
        value, error = astuple(done.answer(table, where=query))
        assert value == pytest.approx(released["value"][row], abs=1e-9 * scale)
        assert error == pytest.approx(released["standard_error"][row], rel=1e-6)
        # … and sums of them, with the covariances between them.
        weights = [rng.normal(size=len(matrix)) for matrix in matrices]
        query = {name: w @ m for name, w, m in zip(table, weights, matrices, strict=True)}
        value, error = astuple(done.answer(table, where=query))
        summed = kron([w[None] for w in weights])[0]
        tolerance = 1e-9 * np.sum(np.abs(summed)) * scale
        assert value == pytest.approx(summed @ released["value"], abs=tolerance)
        assert error == pytest.approx(planned.query_variance(table, where=query) ** 0.5, rel=1e-12)
        # Tables within it answer the same.
        for index in range(len(table)):
            smaller = tuple(name for name in table if name != table[index])
            everyone = {**query, table[index]: np.ones(domain[table[index]].size)}
            one = done.answer(table, where=everyone)
            subtotal = done.answer(smaller, where={name: query[name] for name in smaller})
            assert one.value == pytest.approx(subtotal.value, abs=tolerance)
            assert one.standard_error == pytest.approx(subtotal.standard_error, rel=1e-6)


IN_BASES = WORKLOAD.with_bases({"age": Ranges()}).with_bases({"age": Prefix()}, tables=["age"])


def test_questions_to_a_release_that_are_refused(data, output):
    planned = plan(IN_BASES, loss=SumOfVariances(), budget=Budget(rho=1))
    done = release(planned, data, output)
    table = ["sex", "age"]
    right = {"sex": [1, 0], "age": [0, 1, 1]}
    answer = done.answer(table, where=right)
    assert done.answer("age", "sex", where=right) == done.answer(where=right) == answer
    margin = 1.959964 * answer.standard_error
    assert answer.lower_95 == pytest.approx(answer.value - margin)
    assert answer.upper_95 == pytest.approx(answer.value + margin)
    assert done.answer().value == pytest.approx(done.table()["value"][0])
    # The texts of the command line.
    labels = DOMAIN["age"].labels()
    texts = {"sex": DOMAIN["sex"].labels()[0], "age": f"{labels[1]}..{labels[2]}"}
    assert done.answer("sex", "age", where=texts) == answer
    # What is left out is summed over.
    everyone = {**right, "age": [1, 1, 1]}
    assert done.answer(table, where={"sex": [1, 0]}) == done.answer(table, where=everyone)
    assert done.answer(table).value == pytest.approx(done.answer().value)
    for query in ({**right, "one": [1]}, {"one": [1]}):
        with pytest.raises(WorkloadError, match=r"table \(sex, age\) does not have the attribute"):
            done.answer(table, where=query)
    for vector in ([1, 0], [[1, 0, 0]], [1, 0, float("nan")], ["x", 0, 0], 1, [1, 0, 0, 0]):
        with pytest.raises(WorkloadError, match="'age' must be 3 finite numbers"):
            done.answer(table, where={**right, "age": vector})
    with pytest.raises(DomainError, match="'age' must be named by"):
        done.answer(where={"age": "no such value"})
    for attributes in ((), ("nobody",), ("sex",)):
        with pytest.raises(DomainError, match="no attribute 'nobody'"):
            done.answer(*attributes, where={"nobody": [1]})
    # A single value adds nothing, so that it is as if a table had it.
    assert done.answer("sex", "age", "one", where={**right, "one": [1]}) == answer
    apart = plan(
        Workload.of(DOMAIN, ["sex", "age"]).with_bases({"age": Ranges()}),
        loss=SumOfVariances(),
        budget=Budget(rho=1),
    )
    done = release(apart, data, output.with_name("apart"))
    with pytest.raises(WorkloadError, match="no table with these attributes together"):
        done.answer(table, where=right)


def test_ranges_and_totals_are_where_their_labels_say(data, output, without_noise):
    planned = plan(IN_BASES, loss=SumOfVariances(), budget=Budget(rho=1))
    done = release(planned, data, output)
    cells = done.table(["sex", "age"])
    assert cells.columns.tolist()[:3] == ["sex", "sex label", "age"]
    named = {(row.iloc[0], row.iloc[2]): round(row["value"], 9) for _, row in cells.iterrows()}
    assert named == {
        **{("f", "0 to 2"): 2, ("f", "0 to 5"): 2, ("f", "0 to 8"): 3},
        **{("f", "3 to 5"): 0, ("f", "3 to 8"): 1, ("f", "6 to 8"): 1},
        **{("m", "0 to 2"): 0, ("m", "0 to 5"): 2, ("m", "0 to 8"): 2},
        **{("m", "3 to 5"): 2, ("m", "3 to 8"): 2, ("m", "6 to 8"): 0},
    }
    assert np.allclose(done.table("age")["value"], [2, 4, 5])
    assert done.answer(where={"sex": [0, 1], "age": [0, 1, 1]}).value == pytest.approx(2)


def test_a_plan_of_tables_in_bases_is_released_from_its_file(data, output, tmp_path):
    planned = plan(
        WORKLOAD.with_bases({"age": Hierarchy((2,))}), loss=SumOfVariances(), budget=Budget(rho=1)
    )
    planned.save(tmp_path / "plan.json")
    done = release(Plan.load(tmp_path / "plan.json"), data, output)
    (run,) = runs(data)
    assert run.record_rho == planned.record_rho
    errors = planned.cell_standard_errors(["sex", "age"]).ravel()
    assert np.allclose(done.table(["sex", "age"])["standard_error"], errors)


def test_csv_and_parquet_give_the_same_release(data, output, without_noise):
    pd.read_csv(data).to_parquet(data.with_suffix(".parquet"))
    first = release(PLAN, data, output)
    second = release(PLAN, data.with_suffix(".parquet"), output.with_name("second"))
    for table in WORKLOAD.tables:
        assert first.table(table).equals(second.table(table))
    residuals = [pq.read_table(done.folder / "residuals.parquet") for done in (first, second)]
    assert residuals[0].equals(residuals[1])


def test_other_keeps_everybody(data, output, without_noise):
    data.write_text(CSV + "x,0,k,\n,99,k,\n")
    done = release(PLAN, data, output, unknown_values={"sex": "m", "age": "6 to 8"})
    assert np.allclose(done.table([])["value"], 7)
    assert np.allclose(done.table("sex")["value"], [3, 4])
    assert np.allclose(done.table("age")["value"], [3, 2, 2])


def test_a_file_without_records_can_be_released(data, output):
    """It is a neighbour of a file with one record."""
    data.write_text("sex,age,one\n")
    done = release(PLAN, data, output)
    assert len(done.table(["sex", "age"])) == 6


def test_errors_have_the_stated_size(tmp_path):
    """z = (value − truth)/standard_error over 800,000 cells has mean 0 and variance 1.

    The cells of a table are correlated; the deviations of Σ z and Σ z² follow from the plan's
    covariances (for normal errors Var Σ z² = 2 Σ ρ²). At 6.8 deviations a right release fails
    with probability 1e-11 a comparison; scales wrong by 1 % lie 12 deviations off.
    """
    sizes = {"a": 1000, "b": 800}
    workload = Workload.all_up_to(Domain.from_sizes(sizes), 2)
    planned = plan(workload, loss=SumOfVariances(), budget=Budget(rho="0.01"))
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.integers(0, n, 50_000) for name, n in sizes.items()})
    frame.to_parquet(tmp_path / "records.parquet")
    done = release(planned, tmp_path / "records.parquet", tmp_path / "out")
    for table in workload.tables[1:]:
        cells = done.table(table)
        shape = [sizes[name] for name in table]
        truth = np.zeros(shape)
        np.add.at(truth, tuple(frame[name] for name in table), 1)
        z = ((cells["value"] - truth.ravel()) / cells["standard_error"]).to_numpy()
        zero = dict.fromkeys(table, 0)
        row = []  # (how many cells, correlation with cell 0…0)
        for differs in np.ndindex(*[2] * len(table)):
            opposite = dict(zip(table, differs, strict=True))
            many = np.prod([n - 1 if step else 1 for n, step in zip(shape, differs, strict=True)])
            row.append((many, planned.covariance(table, zero, opposite) / planned.variance(table)))
        sum_deviation = np.sqrt(z.size * sum(many * rho for many, rho in row))
        square_deviation = np.sqrt(2 * z.size * sum(many * rho**2 for many, rho in row))
        assert abs(z.sum()) < DEVIATIONS * sum_deviation

        def deviations(scale, z=z, square_deviation=square_deviation):
            return (np.sum((z * scale) ** 2) - z.size) / square_deviation

        assert abs(deviations(1)) < DEVIATIONS
        if len(table) == 2:
            assert deviations(1.01) > DEVIATIONS
            assert deviations(0.99) < -DEVIATIONS
        inside = (cells["lower_95"] <= truth.ravel()) & (truth.ravel() <= cells["upper_95"])
        assert np.allclose((cells["lower_95"] + cells["upper_95"]) / 2, cells["value"])
        assert abs(inside.mean() - 0.95) < 5 * DEVIATIONS * np.sqrt(0.05 * 0.95 / z.size)


def test_two_releases_differ(data, output):
    budget = Budget(rho="1e-6")
    planned = plan(WORKLOAD, loss=SumOfVariances(), budget=budget)
    done = [release(planned, data, output.with_name(name)) for name in ("one", "two")]
    assert not done[0].table(["sex", "age"]).equals(done[1].table(["sex", "age"]))


def test_noise_comes_from_nowhere_but_the_operating_system(data, output, monkeypatch):
    """numpy's generators are never touched, and every byte is os.urandom's."""
    drawn = []
    urandom = os.urandom

    def spy(size):
        drawn.append(size)
        return urandom(size)

    def broken(*args, **options):
        raise AssertionError("a seeded generator was used")

    defaults = dict(rpexplore.releases.discrete_gaussian.discrete_gaussian.__kwdefaults__)
    assert defaults == {"random_bytes": os.urandom}
    monkeypatch.setitem(
        rpexplore.releases.discrete_gaussian.discrete_gaussian.__kwdefaults__, "random_bytes", spy
    )
    monkeypatch.setattr("numpy.random.default_rng", broken)
    state = np.random.get_state()[1].tolist()
    done = release(PLAN, data, output)
    assert np.random.get_state()[1].tolist() == state
    cells = len(pq.read_table(done.folder / "residuals.parquet"))
    assert sum(drawn) >= 2 * cells


# --- refusals come before anything is booked or written


def tampered(change) -> Plan:
    content = json.loads(PLAN.text)
    change(content)
    return Plan.parse(json.dumps(content), canonical=False)


def less_noise(content):
    content["residuals"][0]["sigma_squared"] = "0.5"


def other_variance(content):
    for name in ("variance", "worst_variance", "best_variance"):
        content["tables"][1][name] *= 1 - 1e-6


def lower_cost(content):
    content["privacy_cost"] = "0.9999"


def higher_cost(content):
    content["privacy_cost"] = "1.0001"


def huge_scale(content):
    content["residuals"][0]["sigma_squared"] = "1" + "0" * 400


def tiny_scale(content):
    content["residuals"][0]["sigma_squared"] = "0." + "0" * 400 + "1"


def no_bound(content):
    content["certificate"]["lower_bound"] = 0


@pytest.mark.parametrize(
    "change",
    [less_noise, other_variance, lower_cost, higher_cost, huge_scale, tiny_scale, no_bound],
)
def test_a_tampered_plan_is_refused(change, data, output, forbidden_noise):
    with pytest.raises(PlanError):
        release(tampered(change), data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


BAD_CSV = {
    "value": CSV.replace("m,5", f"{SECRET},5"),
    "null": CSV.replace("m,5", ",5"),
    "number": CSV.replace("m,5", "m,987654"),
    "ragged": CSV + f"{SECRET}\n",
    "no column": CSV.replace("sex", SECRET),
    "column twice": CSV.replace("notes", "age"),
    "no header": CSV.partition("\n")[2],
    "nothing": "",
    "other encoding": CSV.replace("m,5", f"{SECRET},5").encode("utf-16"),
}


@pytest.mark.parametrize("what", BAD_CSV)
def test_bad_records_are_refused(what, data, output, forbidden_noise, caplog):
    caplog.set_level(logging.DEBUG)
    text = BAD_CSV[what]
    data.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        release(PLAN, data, output)
    printed = "".join(traceback.format_exception(caught.value))
    for private in (SECRET, "987654", "notes"):
        assert private not in str(caught.value)
        assert private not in printed
    if what in ("value", "no column"):
        assert SECRET in caught.value.on_screen()
    assert not [record for record in caplog.records if record.name.startswith("rpexplore")]
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("name", ["none.csv", "folder.csv", "records.txt", "broken.parquet"])
def test_bad_files_are_refused(name, data, output, forbidden_noise):
    path = data.with_name(name)
    if name == "folder.csv":
        path.mkdir()
    elif name != "none.csv":
        path.write_text(CSV)
    before = entries(data.parent)
    with pytest.raises(DataError):
        release(PLAN, path, output)
    assert entries(data.parent) == before
    assert entries(output.parent) == []


@pytest.mark.parametrize("other", [{"nobody": "f"}, {"sex": "female-ish"}, {"age": "7"}])
def test_an_unknown_other_is_refused(other, data, output, forbidden_noise):
    with pytest.raises((DataError, DomainError)):
        release(PLAN, data, output, unknown_values=other)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("what", ["release", "empty folder", "file", "dangling link"])
def test_an_existing_output_is_refused(what, data, output, forbidden_noise):
    if what == "release":
        output.mkdir()
        (output / "manifest.json").write_text("precious")
    elif what == "empty folder":
        output.mkdir()
    elif what == "file":
        output.write_text("precious")
    else:
        output.symlink_to(output.with_name("nowhere"))
    with pytest.raises(ReleaseError, match="already something"):
        release(PLAN, data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == ["release"]
    if what in ("release", "file"):
        assert "precious" in (output / "manifest.json" if what == "release" else output).read_text()


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, "file/below", "nul\0"])
def test_an_output_that_cannot_be_made_is_refused(name, data, output, forbidden_noise):
    (output.parent / "file").write_text("precious")
    with pytest.raises(ReleaseError):
        release(PLAN, data, output.parent / name)
    assert runs(data) == ()
    assert entries(output.parent) == ["file"]


def test_what_cannot_be_measured_is_refused(data, output, forbidden_noise, monkeypatch):
    domain = Domain.from_sizes({"a": 10_000, "b": 10_000})
    huge = plan(Workload.of(domain, [("a", "b")]), loss=SumOfVariances(), budget=Budget(rho=1))
    hopeless = plan(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1e-30"))
    for unusable in (huge, hopeless):
        with pytest.raises(ReleaseError):
            release(unusable, data, output)
    crowd = Counts({}, 2**61)
    monkeypatch.setattr(FileSource, "count", lambda *args, **options: crowd)
    with pytest.raises(ReleaseError, match="too many records") as caught:
        release(PLAN, data, output)
    assert str(2**61) not in str(caught.value)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("how", ["rubbish", "a folder", "folder missing", "rubbish amount"])
def test_an_unusable_ledger_is_refused(how, data, output, forbidden_noise, tmp_path):
    path = tmp_path / "ledger.sqlite"
    if how == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    elif how == "a folder":
        path.mkdir()
    elif how == "folder missing":
        path = tmp_path / "none" / "ledger.sqlite"
    else:
        Ledger(path).book(data, PLAN, "out")
        amount = exact_text(PLAN.record_rho)
        _rows(
            Ledger(path), f"UPDATE events SET content = replace(content, '\"{amount}\"', 'rubbish')"
        )
    with pytest.raises(LedgerError):
        release(PLAN, data, output, ledger=path)
    assert entries(output.parent) == []


def test_a_ledger_in_a_folder_that_may_not_be_written_to_is_refused(data, output, monkeypatch):
    """Emulated, since root may write anywhere."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        "rpexplore.releases.ledger_file.sqlite3.connect",
        lambda path, **options: connect(f"file:{path}?mode=ro", **{**options, "uri": True}),
    )
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", None)
    with pytest.raises(LedgerError, match="can be written to"):
        release(PLAN, data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


# --- limits


def test_a_limit_is_noted_kept_and_held(data, output, without_noise):
    release(PLAN, data, output, limit_rho="1.2")
    assert Ledger.beside(data).account(data).limit_record_rho == Fraction(6, 5)
    for limit in ("1.3", "1.1", "1.2000000000000000000001"):
        with pytest.raises(LedgerError, match="another budget limit"):
            release(PLAN, data, output.with_name("two"), limit_rho=limit)
    release(PLAN, data, output.with_name("two"))
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, output.with_name("three"), limit_rho="1.2")
    assert entries(output.parent) == ["release", "two"]
    assert [run.state for run in runs(data)] == ["finished"] * 2


def test_beyond_the_limit_no_noise_is_drawn(data, output, forbidden_noise):
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, output, limit_rho="0.49")
    assert runs(data) == ()
    assert entries(output.parent) == []


@pytest.mark.parametrize("limit", [0, -1, "0.000", "nan", "much", True])
def test_a_limit_that_is_none_is_refused(limit, data, output, forbidden_noise):
    with pytest.raises((LedgerError, BudgetError)):
        release(PLAN, data, output, limit_rho=limit)
    assert entries(data.parent) == ["records.csv"] or runs(data) == ()
    assert entries(output.parent) == []


@pytest.mark.parametrize("why", ["bad records", "beyond the limit"])
def test_a_refused_run_notes_no_limit(why, data, output, forbidden_noise):
    """A typing error in the limit must not stay: only a run that is booked says what it is."""
    if why == "bad records":
        data.write_text(BAD_CSV["value"])
    with pytest.raises((DataError, LedgerError)):
        release(PLAN, data, output, limit_rho="0.1" if why == "beyond the limit" else "5")
    assert Ledger.beside(data).account(data).limit_record_rho is None


def test_a_person_with_m_records_costs_a_record_m_squared_less(data, output, without_noise):
    person = plan(
        WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="9/2", max_records_per_person=3)
    )
    release(person, data, output, limit_rho="9")
    account = Ledger.beside(data).account(data)
    assert account.limit_record_rho == 1
    assert account.spent_record_rho == person.record_rho
    assert Fraction(1, 2) * (1 - Fraction(1, 10**9)) < account.spent_record_rho <= Fraction(1, 2)
    # The same total, told in records.
    release(PLAN, data, output.with_name("two"), limit_rho="1")
    with pytest.raises(LedgerError, match="one person with at most 3 records"):
        release(person, data, output.with_name("three"))


def test_what_is_booked_covers_what_is_measured(data, output, without_noise):
    """ρ = Σ p_A / (2σ²_A), summed here in exact rationals from the plan file."""
    release(PLAN, data, output)
    sizes = {"sex": 2, "age": 3}
    exact = Fraction(0)
    for residual in json.loads((output / "plan.json").read_text())["residuals"]:
        p = Fraction(1)
        for name in residual["attributes"]:
            p *= Fraction(sizes[name] - 1, sizes[name])
        exact += p / Fraction(residual["sigma_squared"]) / 2
    (run,) = runs(data)
    assert exact <= run.record_rho <= exact * (1 + Fraction(1, 10**20))
    assert run.record_rho <= Fraction(1, 2)
    assert run.plan_sha256 == PLAN.sha256
    assert Path(run.output).name == output.name


# --- the order of things, and interruptions


def test_a_run_is_on_disk_before_the_first_noise(data, output, monkeypatch):
    seen = []

    def spy(size, gamma_squared):
        seen.append([run.state for run in runs(data)])
        assert not output.exists()
        return no_noise(size, gamma_squared)

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
    release(PLAN, data, output)
    assert len(seen) == len(PLAN.closure)
    assert all(states == ["started"] for states in seen)
    assert [run.state for run in runs(data)] == ["finished"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize(
    "where",
    ["rpexplore.releases.measurement.measure_residual", "rpexplore.releases.release.write_note"],
)
def test_an_interrupted_run_stays_charged_and_can_be_run_again_for_nothing(
    error, where, data, output, monkeypatch
):
    calls = []

    def interrupt(*args, **options):
        calls.append(args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(where, interrupt)
        with pytest.raises(error):
            release(PLAN, data, output)
    assert calls
    assert [run.state for run in runs(data)] == ["started"]
    assert runs(data)[0].record_rho == PLAN.record_rho
    assert entries(output.parent) == [".release.unfinished"]
    release(PLAN, data, output)
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]


def test_a_full_disk_is_told_in_one_sentence(data, output, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rpexplore.releases.release.write_measured", full)
    with pytest.raises(ReleaseError, match="No space left on device"):
        release(PLAN, data, output)
    assert [run.state for run in runs(data)] == ["started"]
    assert entries(output.parent) == [".release.unfinished"]


def test_what_fails_before_the_booking_is_not_said_to_be_charged(data, output, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rpexplore.releases.charged_run.write_booking", full)
    with pytest.raises(RpexploreError) as caught:
        release(PLAN, data, output)
    assert runs(data) == ()
    assert entries(output.parent) == []
    assert "stays charged" not in str(caught.value)


KILLED = """
import os, signal, sys
import rpexplore.releases.measurement as module
from rpexplore.planning.plan import Plan
from rpexplore.releases.release import release
calls = []
measure_residual = module.measure_residual
def deadly(*args):
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return measure_residual(*args)
module.measure_residual = deadly
release(Plan.load(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


def test_a_killed_run_stays_charged_and_leaves_nothing_that_looks_finished(data, output, tmp_path):
    PLAN.save(tmp_path / "plan.json")
    arguments = [str(tmp_path / "plan.json"), str(data), str(output)]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [run.state for run in runs(data)] == ["started"]
    (left,) = output.parent.iterdir()
    assert left.name == ".release.unfinished"
    assert left.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ReleaseError, match="not a finished release"):
        Release.load(left)
    release(PLAN, data, output)
    assert entries(output.parent) == ["release"]


def test_an_output_that_appears_on_the_way_is_not_overwritten(data, output, monkeypatch):
    def meanwhile(size, gamma_squared):
        output.mkdir(exist_ok=True)
        (output / "precious").touch()
        return no_noise(size, gamma_squared)

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", meanwhile)
    with pytest.raises(ReleaseError, match="already something"):
        release(PLAN, data, output)
    assert entries(output) == ["precious"]
    assert [run.state for run in runs(data)] == ["started"]
    # What is paid for is not lost: it is finished when the way is free.
    output.rename(output.with_name("away"))
    resume(output)
    assert entries(output.parent) == ["away", "release"]
    assert [run.state for run in runs(data)] == ["finished"]


def race(monkeypatch, *calls) -> list[Release | RpexploreError]:
    """Runs the calls at once, each held where its records have been read; what each gave."""
    module = importlib.import_module("rpexplore.releases.measurement")
    everybody, check = threading.Barrier(len(calls)), module.check_countable

    def wait(*args):
        with contextlib.suppress(threading.BrokenBarrierError):  # one was refused before
            everybody.wait(1)
        check(*args)

    monkeypatch.setattr(module, "check_countable", wait)
    outcomes = []

    def attempt(call):
        try:
            outcomes.append(call())
        except RpexploreError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_two_runs_racing_for_the_last_of_the_limit_one_wins(data, output, monkeypatch):
    Ledger.beside(data).set_limit(data, Fraction(3, 4))
    drawn = []

    def spy(size, gamma_squared):
        drawn.append(size)
        return no_noise(size, gamma_squared)

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", spy)
    outcomes = race(
        monkeypatch,
        lambda: release(PLAN, data, output),
        lambda: release(PLAN, data, output.with_name("two")),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["LedgerError", "Release"]
    assert len(drawn) == len(PLAN.closure)  # the loser drew none
    assert len(runs(data)) == 1
    assert len(entries(output.parent)) == 1


def test_of_two_first_caps_one_is_noted_and_the_other_refused(data, output, monkeypatch):
    account, everybody = Ledger.account, threading.Barrier(2)

    def slow_account(self, path):
        booked = account(self, path)
        with contextlib.suppress(threading.BrokenBarrierError):
            everybody.wait(0.5)
        return booked

    monkeypatch.setattr(Ledger, "account", slow_account)
    outcomes = race(
        monkeypatch,
        lambda: release(PLAN, data, output, limit_rho=1),
        lambda: release(PLAN, data, output.with_name("two"), limit_rho=2),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["LedgerError", "Release"]


def test_of_two_runs_to_one_output_one_is_refused_before_it_pays(data, output, monkeypatch):
    outcomes = race(monkeypatch, *[lambda: release(PLAN, data, output)] * 2)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Release", "ReleaseError"]
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]
    Release.load(output)


def test_the_mapping_of_other_values_is_part_of_the_release(data, output):
    done = release(PLAN, data, output, unknown_values={"sex": "m"})
    assert done.manifest["unknown_values"] == {"sex": "m"}
    assert "counted as: sex: m" in (output / "README.md").read_text()


def test_a_disk_without_room_is_refused_before_the_run_is_booked(data, output, monkeypatch):
    usage = shutil.disk_usage(data.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=100))
    with pytest.raises(ReleaseError, match="kB free"):
        release(PLAN, data, output)
    assert runs(data) == ()


# --- silence


def test_nothing_private_is_logged_printed_or_stored(tmp_path, output, caplog, capfd):
    """41,357 records, of which 41,353 fall in one cell; noise makes equality a rare chance."""
    caplog.set_level(logging.DEBUG)
    data = tmp_path / "folder-of-secrets" / "records-of-secrets.csv"
    data.parent.mkdir()
    data.write_text(f"sex,age,one,{SECRET}\n" + "f,0,k,zz\n" * 41_353 + "m,8,k,zz\n" * 4)
    planned = plan(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1e-9"))  # σ of 10^5
    shown = []
    release(
        planned, data, output, on_progress=lambda doing, share: shown.append(f"{doing} {share}")
    )
    captured = capfd.readouterr()
    texts = [captured.out, captured.err, *shown, *(r.getMessage() for r in caplog.records)]
    private = [SECRET, "41353", "41357", "secrets", str(data.stat().st_size)]
    private.append(str(int(data.stat().st_mtime)))
    for path in output.rglob("*"):
        if path.suffix in (".json", ".md"):
            texts.append(path.read_text())
        elif path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in [SECRET, "secrets"])
    for word in private:
        # Hashes are hexadecimal and could hold five digits by chance.
        assert not any(word in text for text in texts if "sha256" not in text)
    manifest = json.loads((output / "manifest.json").read_text())
    for word in private:
        assert word not in json.dumps({**manifest, "files": [], "plan_sha256": ""})
    for path in output.rglob("*.parquet"):
        keys = set((pq.ParquetFile(path).metadata.metadata or {}).keys())
        assert keys <= {b"ARROW:schema"}  # no pandas metadata, nothing of where it came from
    dump = "\n".join(
        str(row)
        for table in ("events", "last")
        for row in _rows(Ledger.beside(data), f"SELECT * FROM {table}")
    )
    for word in (SECRET, "41353", "41357"):
        assert word not in dump


def _rows(ledger: Ledger, query: str) -> list[tuple]:
    connection = sqlite3.connect(ledger.path)
    with connection:
        rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def test_values_follow_from_the_measured_integers_alone(data, output):
    """What is published is post-processing: recomputed from plan and residuals, to the bit."""
    done = release(PLAN, data, output)
    measured = pq.read_table(output / "residuals.parquet")
    assert [str(field.type) for field in measured.schema] == ["int32", "int64", "int64"]
    data.unlink()
    for table in WORKLOAD.tables:
        assert np.allclose(
            Release.load(output).counts(table)["value"], done.table(table)["value"], atol=1e-9
        )


def test_progress_is_told_in_order_and_ends_with_one(data, output):
    reports = []
    release(PLAN, data, output, on_progress=lambda doing, share: reports.append((doing, share)))
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    assert reports[0] == ("Checking the plan", 0.0)
    assert reports[-1] == ("Finished", 1.0)
    phases = [doing for doing, _ in reports]
    assert phases.index("Booking the run in the ledger") < phases.index("Measuring with noise")


def test_only_the_sampler_names_a_source_of_randomness():
    """Beyond the imports that test_layering checks: no keyword passes another source either."""
    package = Path(rpexplore.__file__).parent
    for path in package.rglob("*.py"):
        if path.name == "discrete_gaussian.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword):
                assert node.arg not in {"random_bytes", "seed", "random_state"}, path.name
