"""Releases of own counts that add up amounts: exact, unbiased, within what is booked."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.releases.query_release import QuerySteps
from rpexplore.results.shares import mean_of_counts
from rpexplore.workload import query_definitions, query_list
from rpexplore.workload.query_definitions import stated_from_text
from tests.data.engines.servers import in_duckdb
from tests.statistical.linear_release import LinearRelease

SAMPLER = "rpexplore.releases.query_release.discrete_gaussian"
INCOME = rp.Amounts("-0.5", "99.5", decimals=1, unit="EUR", missing=(("", "not stated"),))
DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"))),
        rp.Attribute("income", INCOME),
        rp.Attribute("w", rp.Amounts(0, 4, are_weights=True)),
        rp.Attribute("age", rp.Integers(0, 4)),
    )
)
LINES = """old: sum(income) where age >= 3 by sex ± 60
with: records(income) where sex = "f" | age < 2 ± 5
weighted: sum(w) where age >= 3 ± 9
both: sum(income * w) where sex = "m" ± 400
everybody: total ± 4"""
GENERATOR = np.random.default_rng(4)
N = 400
RECORDS = pd.DataFrame(
    {
        "sex": GENERATOR.choice(["f", "m"], N),
        "income": np.where(GENERATOR.random(N) < 0.2, np.nan, GENERATOR.normal(50, 60, N).round(1)),
        "w": GENERATOR.integers(0, 7, N),
        "age": GENERATOR.integers(0, 5, N),
    }
)


def truth(records=RECORDS):
    """By pandas: amounts clamped, and rounded half to even."""
    income = records["income"].clip(-0.5, 99.5).round(1)
    weight, old = records["w"].clip(0, 4), records["age"] >= 3
    women = records["sex"] == "f"
    return [
        income[old & women].sum(),
        income[old & ~women].sum(),
        income[women | (records["age"] < 2)].notna().sum(),
        weight[old].sum(),
        (income * weight)[~women].sum(),
        len(records),
    ]


@pytest.fixture(params=[1024, 10], ids=["cells", "atoms"])
def plan(request, monkeypatch):
    for module in (query_definitions, query_list):
        monkeypatch.setattr(module, "MAX_CELLS", request.param)
    queries = stated_from_text(DOMAIN, LINES).queries
    assert (queries.atoms is None) == (request.param == 1024)
    return rp.plan(queries, budget=rp.Budget(rho=1))


def test_without_noise_every_source_gives_the_sums(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(SAMPLER, lambda size, _: np.zeros(size, dtype=np.int64))
    RECORDS.to_csv(tmp_path / "records.csv", index=False)
    table = pa.Table.from_pandas(RECORDS, preserve_index=False)
    stored = in_duckdb(table, tmp_path / "records.duckdb")
    sources = [RECORDS, tmp_path / "records.csv", stored]
    for number, source in enumerate(sources):
        release = rp.release(
            plan,
            source,
            tmp_path / f"out{number}",
            ledger=tmp_path / "ledger",
            name="x" if number == 0 else None,
        )
        np.testing.assert_allclose(release.part("counts").answers["answer"], truth(), rtol=1e-9)
    figures = release.part("counts").cells().schema.field("answer").metadata
    assert "Amounts below -0.5 EUR" in figures[b"meaning"].decode()
    units = ["EUR", "EUR", "records", "weighted records", "EUR", "records"]
    assert release.part("counts").answers["unit"].tolist() == units
    assert pd.read_csv(tmp_path / "out0" / "counts" / "answers.csv")["unit"].tolist() == units
    readme = (tmp_path / "out0" / "README.md").read_text()
    assert "amounts below -0.5 EUR count as -0.5" in readme.replace("\n  ", " ")
    assert release.answer("both").value == pytest.approx(truth()[4])


def test_errors_are_those_of_dense_matrices(plan):
    """W X⁺ Wᵀ with X = RᵀR/γ², over all cells, with coefficients by the definition of a sum."""
    counts = plan.part("counts")
    strategy, queries = counts.strategy, counts.queries
    every = strategy.integers
    if queries.atoms is not None:
        every = every[:, queries.atoms.of_cells()]
    # A record at each corner adds this to each sum.
    corners = [
        {"sex": sex, "income": income, "w": w, "age": age}
        for sex in "fm" for income in (-0.5, 99.5, np.nan) for w in (0, 4) for age in range(5)
    ]  # fmt: skip
    matrix = np.array([truth(pd.DataFrame([corner])) for corner in corners]).T
    np.testing.assert_allclose(queries.cell_coefficients, matrix, rtol=1e-12)
    information = every.T.astype(float) @ every / float(counts.gamma_squared)
    variances = np.diag(matrix @ np.linalg.pinv(information) @ matrix.T)
    np.testing.assert_allclose(counts.variances, variances, rtol=1e-9)
    # Between a bound for all Gaussian mechanisms and itself.
    assert counts.certificate.gap < 1e-3
    assert all(check.holds for check in rp.verify(plan).checks)


@pytest.mark.parametrize("income", [-0.5, 99.5, 40.3, 1e9, None])
def test_no_record_costs_more_than_is_booked(plan, income):
    counts = plan.part("counts")
    steps = QuerySteps(counts)
    record = FrameSource(
        pd.DataFrame({"sex": ["m"], "income": [income], "w": [3], "age": [4]}), name="one"
    )
    (part,) = steps.parts
    found = record.count(DOMAIN, part.tables, atoms=part.atoms)
    moved = counts.strategy.integers @ steps._cells(found)
    cost = sum(int(number) ** 2 for number in moved) / counts.measured_gamma_squared
    assert 0 < cost <= Fraction(counts.exact_privacy_cost)


def test_the_noise_has_the_stated_variances(plan, tmp_path):
    """From the map of the noise to the answers, which is exact."""
    number = iter(range(1000))

    def released():
        folder = tmp_path / f"{next(number)}"
        release = rp.release(plan, RECORDS, folder, name="x", ledger=tmp_path / "ledger")
        return release.part("counts").answers["answer"].to_numpy()

    linear = LinearRelease.of(released, SAMPLER)
    np.testing.assert_allclose(linear.without_noise, truth(), rtol=1e-9)
    counts = plan.part("counts")
    covariance = linear.matrix @ linear.matrix.T * float(counts.measured_gamma_squared)
    np.testing.assert_allclose(np.diag(covariance), counts.variances, rtol=1e-6)


def test_a_sum_over_a_count_is_a_mean(tmp_path):
    lines = """old: sum(income) where age >= 3 ± 60
stated: records(income) where age >= 3 ± 5
all: age >= 3 ± 5"""
    queries = stated_from_text(DOMAIN, lines).queries
    assert list(map(queries.adds_up_amounts, range(3))) == [True, False, False]
    plan = rp.plan(queries, budget=rp.Budget(rho=1))
    release = rp.release(plan, RECORDS, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    counts = release.part("counts")
    mean = mean_of_counts(counts, "old", "stated")
    answers = counts.answers["answer"].to_numpy()
    assert mean.value == pytest.approx(answers[0] / answers[1])
    strategy = plan.part("counts").strategy
    rows = queries.coefficients @ np.linalg.pinv(strategy.integers.astype(float))
    rest = (rows[0] - mean.value * rows[1]) * np.sqrt(float(plan.part("counts").gamma_squared))
    assert mean.standard_error == pytest.approx(np.linalg.norm(rest) / answers[1], rel=1e-8)
    assert mean.lower_95 < mean.value < mean.upper_95


def test_sums_of_millions_are_read_again(tmp_path):
    wealth = rp.Attribute("wealth", rp.Amounts(-1_000_000, 50_000_000))
    domain = rp.Domain((DOMAIN["sex"], wealth))
    queries = stated_from_text(domain, "all: sum(wealth) by sex ± 500000000").queries
    plan = rp.plan(queries, budget=rp.Budget(rho=1))
    plan.save(tmp_path / "plan.json")
    assert rp.Plan.load(tmp_path / "plan.json").part("counts").queries == queries
    with pytest.raises(rp.errors.PlanError, match="larger budget, or narrower limits or fewer dec"):
        rp.plan(queries, budget=rp.Budget(rho="1e-12"))
