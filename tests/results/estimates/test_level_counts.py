"""Nonnegative and whole tables with an attribute at several levels, against dense matrices."""

from functools import cache

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.results.estimates import level_counts
from rpexplore.results.estimates.level_counts import counts_at_levels
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.unbiased import Estimates
from tests.planning.test_levels import AGES, RACES, SEXES, measured_matrix

TABLES = [("sex", "age@five"), ("age@adult", "race"), ("age@odd", "race@ab"), ("age", "sex"), ()]
GROUPS = {  # of each age, at every level
    "age": np.arange(20),
    "age@five": np.arange(20) // 5,
    "age@adult": (np.arange(20) >= 18).astype(int),
    "age@odd": (np.arange(20) >= 7).astype(int),
}


def planned(rho="0.1", **facts) -> TablePlan:
    domain = rp.Domain.from_schema({"fields": [AGES, SEXES, RACES], **facts})
    workload = rp.Workload.of(domain, TABLES)
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


@cache
def plan_of() -> TablePlan:
    return planned()


def records(n: int, seed: int = 3) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": np.minimum(random.geometric(0.2, n) - 1, 19),
            "sex": random.choice(["m", "f"], n),
            "race": random.choice(["a", "b", "c"], n, p=[0.9, 0.08, 0.02]),
        }
    )


def released(plan, frame, folder) -> rp.Release:
    return rp.release(plan, frame, folder / "out", name="x", ledger=folder / "ledger")


def test_next_to_no_noise_leaves_the_counts_of_records(tmp_path):
    """Also where no table has all attributes, so that most cells are not told."""
    frame = records(300)
    tables = released(planned(rho=10**9), frame, tmp_path).part("tables")
    counts = counts_at_levels(Estimates.of(tables, at_levels=True), gap=1e-4)
    for table in filter(None, counts.tables):
        codes = []
        for index in table:
            name = counts.domain.names[index]
            groups = GROUPS.get(name)
            column, _, level = name.partition("@")
            own = frame[column].map({"m": 0, "f": 1, "a": 0, "b": 1, "c": 2}.get)
            own = frame[column] if column == "age" else own
            codes.append(groups[own] if groups is not None else own // 2 if level else own)
        exact = np.zeros([int(counts.domain.sizes[index]) for index in table])
        np.add.at(exact, tuple(codes), 1)
        np.testing.assert_array_equal(counts.whole(table), exact)
        np.testing.assert_allclose(counts.of(table), exact, atol=2e-3)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("n_records", [40, 400])
def test_no_cells_that_are_nowhere_negative_are_nearer(n_records, tmp_path):
    plan = plan_of()
    tables = released(plan, records(n_records), tmp_path).part("tables")
    counts = counts_at_levels(Estimates.of(tables, at_levels=True), gap=1e-4)
    found = np.zeros((20, 2, 3))
    places = np.flatnonzero(counts.cells.possible)
    single = [plan.domain.position(name) for name in ("age", "sex")]
    own = counts.cells.values_of(0, places, (*single, plan.domain.position("race")))
    found[tuple(own)] = counts.values[places]

    closure = plan.closure
    rows, wanted = [], []
    measured = tables.measured(range(len(closure)))
    for residual, sigma_squared in enumerate(plan.sigma_squared.floats.tolist()):
        subset = closure.attributes(residual)
        error = np.sqrt(sigma_squared) * float(closure.integer_scale(residual))
        numbers = measured[residual].ravel() / error
        if not subset:
            total = float(measured[residual])
            continue
        rows.append(measured_matrix(plan, residual) / error)
        wanted.append(numbers)
    matrix, numbers = np.vstack(rows), np.concatenate(wanted)
    cells = cp.Variable(120, nonneg=True)
    distance = cp.sum_squares(matrix @ cells - numbers)
    cp.Problem(cp.Minimize(distance), [cp.sum(cells) == total]).solve(solver="CLARABEL")
    # What no cells can explain, of which there is no distance.
    least = np.linalg.lstsq(matrix, numbers, rcond=None)[0]
    noise = np.sum((matrix @ least - numbers) ** 2)
    own = np.sum((matrix @ found.ravel() - numbers) ** 2) - noise
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-12)
    assert distance.value - noise > 0.01  # there were cells below 0
    assert own <= (distance.value - noise) * (1 + 2e-4)
    for names in TABLES:
        kept = tuple(name.partition("@")[0] for name in names)
        expected = found
        for axis, name in enumerate(("age", "sex", "race")):
            if name not in kept:
                expected = expected.sum(axis=axis, keepdims=True)
                continue
            level = names[kept.index(name)]
            groups = {**GROUPS, "race@ab": np.array([0, 0, 1])}.get(level)
            if groups is not None:
                starts = np.flatnonzero(np.diff(groups, prepend=-1))
                expected = np.add.reduceat(expected, starts, axis=axis)
        order = [("age", "sex", "race").index(name) for name in kept]
        expected = expected.transpose(*order, *(i for i in range(3) if i not in order))
        indices = plan.domain.positions(names)
        stated = [plan.domain.names[index] for index in indices]
        expected = expected.reshape([n for n in expected.shape if n > 1] or ())
        expected = np.moveaxis(expected, [names.index(name) for name in stated], range(len(names)))
        np.testing.assert_allclose(counts.of(indices), expected, atol=1e-6)


def test_whole_tables_agree_at_every_level_and_are_near(tmp_path):
    plan = plan_of()
    release = released(plan, records(300), tmp_path)
    near = postprocess(release, tmp_path / "near", method="nonnegative")
    whole = postprocess(release, tmp_path / "whole", method="nonnegative", rounded=True)
    by_age = whole.table("age", "sex").value.to_numpy().reshape(20, 2)
    in_order = whole.table("age", "sex")
    assert in_order.age.astype(int).tolist() == np.repeat(np.arange(20), 2).tolist()
    for names, size in (("age@five", 4), ("age@adult", 2), ("age@odd", 2)):
        table = whole.table(*next(own for own in TABLES if names in own))
        sums = table.groupby(names, observed=True, sort=False).value.sum().to_numpy()
        expected = np.zeros(size)
        np.add.at(expected, GROUPS[names], by_age.sum(axis=1))
        assert sums.tolist() == expected.tolist()
    for names in TABLES:
        values, own = (each.table(*names).value for each in (whole, near))
        assert (values >= 0).all()
        assert (values % 1 == 0).all()
        assert np.abs(values - own).max() < 2  # at most 0.84 in 24 releases
    text = (tmp_path / "whole" / "README.md").read_text("utf-8")
    assert "one level with another" in text
    assert "--smooth" not in text  # there are none to be had


def test_what_nobody_can_be_in_is_0_and_fives_are_multiples(tmp_path):
    plan = planned(impossible=[{"sex": "m", "age": "0..9"}])
    frame = records(300)
    frame.loc[frame.age < 10, "sex"] = "f"
    release = released(plan, frame, tmp_path)
    fives = postprocess(release, tmp_path / "fives", method="nonnegative", rounded=5)
    table = fives.table("age@five", "sex")
    none = table[(table.sex == "m") & table["age@five"].isin(["0 to 4", "5 to 9"])]
    assert len(none) == 2
    assert none.value.tolist() == [0, 0]
    assert (fives.table("age", "sex").value % 5 == 0).all()


def test_moves_of_records_make_tables_nearer():
    random = np.random.default_rng(2)
    cells = random.gamma(0.2, 1.0, (6, 5, 4))
    places = np.stack(np.unravel_index(np.arange(120), cells.shape))
    wanted = [cells.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    start = np.zeros(120, dtype=np.int64)
    start[0] = round(cells.sum())
    found = level_counts.with_nearer_tables(start, places, wanted)
    assert found.min() >= 0
    assert found.sum() == start.sum()
    for own, table in zip(places, wanted, strict=True):
        assert np.abs(np.bincount(own, found) - table).max() < 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "smooth"}, "at several levels, of which only nonnegative tables"),
        ({"rounded": True}, "of whole numbers if wanted; ask for nonnegative"),
        ({"method": "nonnegative", "gap": 1e-15}, "ask for a larger gap"),
    ],
)
def test_what_there_is_not_is_refused(asked, words, tmp_path, monkeypatch):
    monkeypatch.setattr(level_counts, "_MOST_ROUNDS", 40)
    release = released(plan_of(), records(40), tmp_path)
    with pytest.raises(ReleaseError, match=words):
        postprocess(release, tmp_path / "made", **asked)
    assert not (tmp_path / "made").exists()
