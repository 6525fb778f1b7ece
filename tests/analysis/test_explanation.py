"""The parts of a table's variance against dense matrices, and the sentences that explain them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.explanation import describe_former, explanation
from rpexplore.planning.mechanism.variances import CELLS
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.workload.targets import Target
from tests.analysis import bases
from tests.support.strategies import losses, workloads, workloads_with_bases

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "income": 4})


@pytest.fixture(scope="module")
def based():
    return bases.scenario().table_plan()


def with_noise(plan, sigma_squared):
    """What `dense_cell_variances` looks at of a plan, with other noise scales."""
    floats = SimpleNamespace(floats=sigma_squared)
    return SimpleNamespace(workload=plan.workload, closure=plan.closure, sigma_squared=floats)


@pytest.mark.parametrize("names", [("age", "region"), ("income",)])
def test_a_part_is_what_the_noise_of_its_residual_adds(based, names):
    table, scales = based.workload.position(names), based.sigma_squared.floats
    variances = bases.dense_cell_variances(based, table)
    chosen = {
        "mean": slice(None),
        "largest": np.argmax(variances),
        "smallest": np.argmin(variances),
    }
    results = {cell: explanation(based, table, cell) for cell in CELLS}
    within = results["mean"].residuals.tolist()
    others = [residual for residual in range(len(based.closure)) if residual not in within]
    for residual in [*within, *others[-2:]]:
        louder = scales * np.where(np.arange(len(scales)) == residual, 2.0, 1.0)
        added = bases.dense_cell_variances(with_noise(based, louder), table) - variances
        for cell, result in results.items():
            parts = dict(zip(result.residuals.tolist(), result.parts.tolist(), strict=True))
            assert np.mean(added[chosen[cell]]) == pytest.approx(
                parts.get(residual, 0.0), abs=1e-6 * result.variance
            )


@settings(deadline=None, max_examples=40)
@given(workloads_with_bases(workloads(max_tables=5)), losses(), st.data())
def test_parts_sum_to_the_variance_and_budget_shares_to_what_a_table_needs(workload, loss, data):
    plan = optimum(workload, loss=loss).at(rp.Budget(rho="0.2", max_records_per_person=2))
    table = data.draw(st.integers(0, len(workload) - 1))
    for cell in CELLS:
        result = explanation(plan, table, cell)
        variance = plan.table_variances.at(cell)[table]
        assert result.variance == pytest.approx(variance, rel=1e-11)
        assert result.standard_error == pytest.approx(np.sqrt(variance), rel=1e-11)
        assert np.all(np.diff(result.parts) <= 0)
        assert result.shares.sum() == pytest.approx(1)
        frame = result.frame()
        members = set(workload.attribute_indices(table))
        cost = 0.0
        for row, residual in zip(frame.to_dict("records"), result.residuals.tolist(), strict=True):
            attributes = plan.closure.attributes(residual)
            names = [workload.domain.names[index] for index in attributes]
            assert set(attributes) <= members
            assert row["measured"] == (" × ".join(names) or "total")
            assert row["tables"] == sum(set(names) <= set(named) for named in workload.tables)
            assert row["sigma"] ** 2 == pytest.approx(plan.sigma_squared.floats[residual])
            cost += float(plan.closure.privacy_cost_factor[residual]) / row["sigma"] ** 2
        spent = float(plan.exact_privacy_cost / plan.budget.records_factor)
        assert frame["budget_share"].sum() == pytest.approx(cost / spent, rel=1e-9)
        assert all(result.describe("people"))


def sentences(plan, *names, cell="mean", request=None):
    result = explanation(plan, plan.workload.position(names), cell)
    return result.describe("people", request)


def made(workload, loss, rho="0.1"):
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho=rho))


def test_sentences_on_an_interaction():
    plan = made(rp.Workload.all_up_to(DOMAIN, 3), rp.SumOfVariances())
    error, table = plan.standard_errors, plan.workload.position(("age", "sex"))
    assert error[table] == pytest.approx(5.4934, rel=1e-4)
    assert sentences(plan, "age", "sex") == [
        "A cell of age × sex has a standard error of 5.49 people (95 % margin of error ±10.8).",
        "Its variance is the sum of 4 parts, the noise on what is measured: 68 % from the "
        "interaction of age and sex, 31 % from the differences by age, 0.75 % from the differences "
        "by sex and 0.34 % from the total.",
        "The interaction of age and sex takes 4.9 % of the privacy budget, and serves this table "
        "and 2 others, such as age × sex × region.",
        # 15 tables
        "The table has 6.5 % of the weighted sum of variances (an equal share would be 6.7 %).",
        # 1 / √0.2
        "With the whole budget for itself, the table would have a standard error of 2.24; the "
        "other 14 tables make it 2.46 times as large.",
    ]
    assert sentences(plan)[:3] == [
        "The total has a standard error of 6.38 people (95 % margin of error ±12.5).",
        "It is the noise on the total alone.",
        "The total takes 12 % of the privacy budget, and serves this table and 14 others, such as "
        "age.",
    ]
    assert sentences(plan, "age")[2].startswith("The differences by age take 11 % of the privacy ")
    assert sentences(plan, "age", "sex", "region")[1:3] == [
        "Its variance is the sum of 8 parts, the noise on what is measured: 66 % from the "
        "interaction of age, sex and region, 29 % from the interaction of age and region, 3.1 % "
        "from the interaction of age and sex, 1.4 % from the differences by age and 1.1 % from 4 "
        "others.",
        "Only this table needs the interaction of age, sex and region, which takes 3.7 % of the "
        "privacy budget.",
    ]


def test_the_only_table_has_no_others():
    single = rp.Workload.of(DOMAIN, [("age",)])
    assert len(sentences(made(single, rp.SumOfVariances()), "age")) == 2


@pytest.mark.parametrize(
    ("loss", "beginning"),
    [
        (rp.SumOfVariances(), "Its variance counts 9 times that of the median table (weight 9); "),
        # 9 √20 over √20: of 15 tables, the eighth most cells are 20.
        (
            rp.SumOfVariances("sqrt"),
            "Its variance counts 9 times that of the median table (weight 9, square root of "
            "cells); ",
        ),
        (rp.MaxVariance(), "Its variance counts 9 times that of the median table (weight 9); "),
    ],
)
def test_what_the_weight_did(loss, beginning):
    weighted = rp.Workload.all_up_to(DOMAIN, 3).with_weights({("age", "sex"): 9.0})
    plan = made(weighted, loss)
    price = 100 * plan.certificate.shadow_prices[plan.workload.position(("age", "sex"))]
    (sentence,) = [each for each in sentences(plan, "age", "sex") if "an equal share" in each]
    assert sentence.startswith(f"{beginning}the table has {price:.2g} % of ")


def test_the_margin_before_the_last_change_is_told_where_it_differs():
    plan, former = (
        made(rp.Workload.all_up_to(DOMAIN, 2), rp.SumOfVariances(), rho) for rho in ("0.1", "0.025")
    )
    margin = 1.96 * plan.standard_errors[0]
    told = f"Margin of error ±{margin:.3g}; ±{2 * margin:.3g} before the last change."
    assert explanation(plan, 0).describe("people", former=former)[1] == told
    assert [describe_former(plan, other, 0) for other in (plan, None)] == ["", ""]


def test_a_table_that_does_not_bind():
    weighted = rp.Workload.all_up_to(DOMAIN, 3).with_weights({("age", "sex"): 9.0})
    plan = made(weighted, rp.MaxVariance())
    assert plan.certificate.shadow_prices[weighted.position(("sex",))] < 1e-6
    assert (
        "It does not bind: if it counted a little less, the largest weighted variance would hardly "
        "change."
    ) in sentences(plan, "sex")


def test_what_the_target_did():
    def outcome(target):
        tables = rp.Workload.all_up_to(DOMAIN, 2)
        targets = {table: Target.parse(target) for table in tables.tables}
        workload = tables.with_targets(targets | {("age",): Target.parse("40")})
        return " ".join(sentences(made(workload, rp.MaxVariance("target")), "age", "sex"))

    text = outcome("±20 at 95 %")
    # without a request targets are standard errors: 20 / 1.96 = 10.2
    assert "Its target, σ = 10.2" in text
    assert "is met, at σ = " in text
    assert "(by its target)" in text
    assert "Its target, σ = 1, is missed: short by " in outcome("1")
    tables = rp.Workload.all_up_to(DOMAIN, 2).with_targets({("age", "sex"): Target.parse("3 !")})
    text = " ".join(sentences(made(tables, rp.SumWithinTargets(), "0.5"), "age", "sex"))
    assert "The objective does not count the table, as its target is required." in text
    assert "Its required target, σ = 3, is just met: it decides how accurate the table is." in text
    # Three-way tables need its measurements, and more accurate ones.
    loose = rp.Workload.all_up_to(DOMAIN, 3).with_targets({("age", "sex"): Target.parse("30 !")})
    text = " ".join(sentences(made(loose, rp.SumWithinTargets(), "0.5"), "age", "sex"))
    assert "Its required target, σ = 30, is met, at σ = " in text


def test_cells_that_differ_are_named(based):
    title = "age (cumulative) × region (hierarchy)"
    start = {
        "mean": f"The cells of {title} have a root mean square error of ",
        # Regions are alike: which is named is a matter of rounding.
        "largest": f"The least accurate cell of {title}, “≤ 4, ",
        "smallest": f"The most accurate cell of {title}, “≤ 6, all”, has a standard error of ",
    }
    for cell, beginning in start.items():
        told = sentences(based, "age", "region", cell=cell)
        assert told[0].startswith(beginning)
        assert not any("whole budget for itself" in sentence for sentence in told)
    # All records, however old and wherever: the total.
    told = sentences(based, "age", "region", cell="smallest")
    assert told[1] == "It is the noise on the total alone."
    assert any("whole budget for itself" in sentence for sentence in sentences(based, "sex"))
