"""Values of released tables: exact without noise, right with it, where their labels say."""

import os
from dataclasses import astuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore
from rpexplore import (
    Budget,
    Domain,
    Hierarchy,
    Prefix,
    Ranges,
    SumOfVariances,
    Workload,
)
from rpexplore.errors import (
    DomainError,
    WorkloadError,
)
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from tests.releases.table_plan import CSV, DOMAIN, PLAN, WORKLOAD, no_noise, runs
from tests.support.exact_counts import counts_of
from tests.support.generalised import any_plan, basis_matrix, workloads_with_bases
from tests.support.oracles import kron
from tests.support.strategies import workloads

DEVIATIONS = 6.8  # a normal variable is farther out with probability 1e-11


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
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
        done = release(planned, folder / "records.csv", folder / "out", may_be_empty=True)
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
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))
    done = release(planned, data, output)
    assert np.allclose(done.counts(["age"])["value"], [2, 2, 1])
    assert np.allclose(done.counts([])["value"], [5])
    assert np.allclose(done.counts("sex")["value"], [3, 2])
    assert np.allclose(done.counts(["one", "sex"])["value"], [3, 2])
    assert done.counts(["age"])["standard_error"][0] == pytest.approx(
        planned.largest_variance(["age"]) ** 0.5
    )
    workload = Workload.of(DOMAIN, [("sex",), ("age",)])
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))
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
        done = release(planned, folder / "records.csv", folder / "out", may_be_empty=True)
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
            labels = rpexplore.workload.table_text.query_matrix(
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
    out = release(planned, folder / "records.csv", folder / "out", may_be_empty=True).folder
    done = TableRelease.load(out)
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
    planned = plan_tables(IN_BASES, loss=SumOfVariances(), budget=Budget(rho=1))
    done = release(planned, data, output)
    table = ["sex", "age"]
    right = {"sex": [1, 0], "age": [0, 1, 1]}
    answer = done.answer(table, where=right)
    assert done.answer("age", "sex", where=right) == done.answer(where=right) == answer
    margin = 1.959963984540054 * answer.standard_error
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
        with pytest.raises(WorkloadError, match=r"table \(sex × age\) does not have the attribute"):
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
    apart = plan_tables(
        Workload.of(DOMAIN, ["sex", "age"]).with_bases({"age": Ranges()}),
        loss=SumOfVariances(),
        budget=Budget(rho=1),
    )
    done = release(apart, data, output.with_name("apart"))
    with pytest.raises(WorkloadError, match="no table with these attributes together"):
        done.answer(table, where=right)


def test_ranges_and_totals_are_where_their_labels_say(data, output, without_noise):
    planned = plan_tables(IN_BASES, loss=SumOfVariances(), budget=Budget(rho=1))
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
    planned = plan_tables(
        WORKLOAD.with_bases({"age": Hierarchy((2,))}), loss=SumOfVariances(), budget=Budget(rho=1)
    )
    planned.save(tmp_path / "plan.json")
    done = release(TablePlan.load(tmp_path / "plan.json"), data, output)
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
    data.write_text(CSV + "x,0,k,\n,8,k,\n")
    done = release(PLAN, data, output, missing_values={"sex": "m"}, unknown_values={"sex": "m"})
    assert np.allclose(done.table([])["value"], 7)
    assert np.allclose(done.table("sex")["value"], [3, 4])
    assert np.allclose(done.table("age")["value"], [3, 2, 2])


def test_a_file_without_records_can_be_released(data, output):
    """It is a neighbour of a file with one record."""
    data.write_text("sex,age,one\n")
    done = release(PLAN, data, output, may_be_empty=True)
    assert len(done.table(["sex", "age"])) == 6


def test_errors_have_the_stated_size(tmp_path):
    """z = (value − truth)/standard_error over 800,000 cells has mean 0 and variance 1.

    The cells of a table are correlated; the deviations of Σ z and Σ z² follow from the plan's
    covariances (for normal errors Var Σ z² = 2 Σ ρ²). At 6.8 deviations a right release fails
    with probability 1e-11 a comparison; scales wrong by 1 % lie 12 deviations off.
    """
    sizes = {"a": 1000, "b": 800}
    workload = Workload.all_up_to(Domain.from_sizes(sizes), 2)
    planned = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho="0.01"))
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
            covariance = planned.covariance(table, zero, opposite)
            row.append((many, covariance / planned.largest_variance(table)))
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
    planned = plan_tables(WORKLOAD, loss=SumOfVariances(), budget=budget)
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

    defaults = dict(discrete_gaussian.__kwdefaults__)
    assert defaults == {"random_bytes": os.urandom}
    monkeypatch.setitem(discrete_gaussian.__kwdefaults__, "random_bytes", spy)
    monkeypatch.setattr("numpy.random.default_rng", broken)
    state = np.random.get_state()[1].tolist()
    done = release(PLAN, data, output)
    assert np.random.get_state()[1].tolist() == state
    cells = len(pq.read_table(done.folder / "residuals.parquet"))
    assert sum(drawn) >= 2 * cells


def test_values_follow_from_the_measured_integers_alone(data, output):
    """What is published is post-processing: recomputed from plan and residuals, to the bit."""
    done = release(PLAN, data, output)
    measured = pq.read_table(output / "residuals.parquet")
    assert [str(field.type) for field in measured.schema] == ["int32", "int64", "int64"]
    data.unlink()
    for table in WORKLOAD.tables:
        assert np.allclose(
            TableRelease.load(output).counts(table)["value"], done.table(table)["value"], atol=1e-9
        )
