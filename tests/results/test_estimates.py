"""Estimates: the same figures as a release has of itself, and what cannot be asked or held."""

import hashlib
from dataclasses import astuple, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.unbiased import Estimates
from tests.support.generalised import any_plan
from tests.support.oracles import subsets

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("age", rp.Integers(0, 8, 3)),
        rp.Attribute("one", rp.Categories(("k",))),
        rp.Attribute("size", rp.Bins((0, 1, 2, 5))),
    )
)
WORKLOAD = rp.Workload.of(DOMAIN, [["sex", "age", "one"], ["age", "size"], ["one"]])
CSV = "sex,age,one,size\nf,0,k,0.5\nf,2,k,1.5\nm,3,k,3\nf,8,k,4\nm,5,k,0\n"


def plan_of(kind: str) -> TablePlan:
    if kind == "with bases":
        with_basis = WORKLOAD.with_bases({"age": rp.Prefix()}, tables=[["age", "size"]])
        return any_plan(with_basis.with_bases({"size": rp.Ranges()}), 3)
    return plan_tables(
        WORKLOAD,
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="1/3", max_records_per_person=2),
    )


@pytest.fixture(scope="module", params=["single values", "with bases"])
def done(request, tmp_path_factory) -> TableRelease:
    folder = tmp_path_factory.mktemp("release")
    (folder / "records.csv").write_text(CSV)
    done = release(plan_of(request.param), folder / "records.csv", folder / "first")
    return done.part("tables")


@pytest.fixture(scope="module")
def estimates(done) -> Estimates:
    return Estimates.of(done)


def test_every_table_is_as_the_release_rebuilds_it(done, estimates):
    for table in {subset for own in estimates.tables for subset in subsets(own)}:
        names = [DOMAIN.names[attribute_index] for attribute_index in table]
        pd.testing.assert_frame_equal(estimates.table(names), done.counts(names), rtol=1e-12)
        assert estimates.marginal(names).shape == tuple(DOMAIN.sizes[list(table)])


def test_answers_are_those_of_the_release(done, estimates):
    rng = np.random.default_rng(3)
    for names in (["sex", "age", "one"], ["age", "size"], ["size"], []):
        query = {name: rng.normal(size=DOMAIN[name].size) for name in names[:2]}
        expected = astuple(done.answer(names, where=query))
        assert astuple(estimates.answer(*names, where=query)) == pytest.approx(expected, rel=1e-10)
    summed, total = estimates.answer("age", "size"), estimates.answer()
    assert summed.value == pytest.approx(total.value, abs=1e-8)
    assert summed.standard_error == pytest.approx(total.standard_error)


def test_covariances_are_those_of_the_plan(done, estimates):
    names = ["sex", "age"]
    cells = [{"sex": i, "age": j} for i in range(2) for j in range(3)]
    for one in cells:
        for two in cells:
            units = [
                {name: np.eye(DOMAIN[name].size)[index] for name, index in cell.items()}
                for cell in (one, two)
            ]
            expected = done.plan.covariance(names, one, two)
            assert estimates.covariance(names, *units) == pytest.approx(expected, rel=1e-12)


def test_variances_are_exactly_the_plan_s(done, estimates):
    closure = done.plan.closure
    assert len(estimates.variances) == len(closure)
    for residual in range(len(closure)):
        subset = closure.attributes(residual)
        assert estimates.variances[subset] == done.plan.sigma_squared.fraction(residual)


def test_where_it_came_from_is_known(done, estimates):
    (source,) = estimates.sources
    assert source.name == "first"
    assert source.plan_sha256 == done.plan.sha256
    assert source.rho == done.plan.rho
    assert source.unit == done.plan.budget.unit
    manifest = (done.folder / "manifest.json").read_bytes()
    assert source.sha256 == hashlib.sha256(manifest).hexdigest()
    assert source.run == done.manifest["run"]
    assert estimates.label == "unbiased; from 1 release"
    assert estimates.spent.rho == done.plan.rho
    assert done.plan.budget.unit in estimates.guarantee
    assert "3 tables, unbiased" in repr(estimates)


def test_other_values_of_the_release_are_known(tmp_path):
    (tmp_path / "records.csv").write_text(CSV.replace("\nm,", "\nx,", 1))
    done = release(
        plan_of("single values"),
        tmp_path / "records.csv",
        tmp_path / "out",
        unknown_values={"sex": "f"},
    )
    done = done.part("tables")
    assert Estimates.of(done).sources[0].unknown_values == {"sex": "f"}


def test_nothing_in_it_can_be_changed(estimates):
    with pytest.raises(ValueError, match="read-only"):
        estimates.contributions[()][...] = 1
    with pytest.raises(TypeError):
        estimates.variances[()] = Fraction(1)


# ---- questions


@pytest.mark.parametrize("names", [["sex", "size"], ["sex", "age", "size"]])
def test_what_is_in_no_table_together_is_refused(names, estimates):
    for ask in (
        estimates.table,
        estimates.marginal,
        estimates.marginal_variances,
        estimates.answer,
        lambda table: estimates.covariance(table, {}, {}),
    ):
        with pytest.raises(WorkloadError, match=r"\(sex × .*size\) are in no table together"):
            ask(names)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"size": [1, 1, 1]}, "does not have the attribute 'size'"),
        ({"sex": [1, 1, 1]}, r"'sex' must be 2 finite numbers.*got the shape \(3,\)"),
        ({"sex": [1, float("nan")]}, "must be 2 finite numbers"),
        ({"sex": ["a", 1]}, "must be 2 finite numbers"),
        ({"sex": [[1, 1]]}, "must be 2 finite numbers"),
    ],
)
def test_queries_that_do_not_fit_are_refused(query, message, estimates):
    with pytest.raises(WorkloadError, match=message):
        estimates.answer("sex", "age", where=query)


# ---- what cannot be held


def without(mapping, key):
    return {each: value for each, value in mapping.items() if each != key}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: {"contributions": without(f.contributions, ())}, r"\(total\) is needed"),
        (lambda f: {"contributions": without(f.contributions, (1,))}, r"\(age\) is needed"),
        (lambda f: {"contributions": without(f.contributions, (0, 1))}, r"\(sex × age\) is needed"),
        (
            lambda f: {
                "contributions": without(f.contributions, (1,)),
                "variances": without(f.variances, (1,)),
            },
            r"\(age\) is needed",
        ),
        (lambda f: {"variances": without(f.variances, (1,))}, r"\(age\) must have a positive"),
        (lambda f: {"variances": {**f.variances, (1,): Fraction(0)}}, "positive variance, got 0"),
        (lambda f: {"tables": (*f.tables, (0, 3))}, r"\(sex × size\) is needed and not there"),
        (lambda f: {"tables": ()}, "need a table and a source"),
        (lambda f: {"sources": ()}, "need a table and a source"),
        (
            lambda f: {"contributions": {**f.contributions, (1,): np.zeros(4)}},
            r"\(age\) must have the shape \(3,\).*got \(4,\)",
        ),
        (
            lambda f: {
                "contributions": {**f.contributions, (2,): np.zeros(1)},
                "variances": {**f.variances, (2,): Fraction(1)},
            },
            r"\(one\) must have the shape",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(change, message, estimates):
    with pytest.raises(ReleaseError, match=message):
        replace(estimates, **change(estimates))


def test_measurements_that_are_not_the_plan_s_are_refused(tmp_path):
    (tmp_path / "records.csv").write_text(CSV)
    done = release(plan_of("single values"), tmp_path / "records.csv", tmp_path / "out")
    other_plan = plan_of("with bases")
    done = done.part("tables")
    with pytest.raises(ReleaseError, match=r"residuals\.parquet.*does not hold what its plan"):
        Estimates.of(replace(done, plan=other_plan))
