"""Releases around exact totals of tables with levels, amounts and aggregations."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import DomainError, ReleaseError
from tests.planning.test_exact_totals_by_residual import INCOME, LEVELS

RECORDS = pd.DataFrame(
    np.random.default_rng(4).integers(0, (8, 2, 2, 101), (500, 4)),
    columns=["age", "sex", "owner", "income"],
)
SEX, OWNER = (rp.Attribute(name, rp.Integers(0, 1)) for name in ("sex", "owner"))
SUMS = rp.Workload.of(
    rp.Domain((SEX, OWNER, rp.Attribute("income", INCOME))),
    [("sex", "income"), ("owner",), ("sex", "owner"), ("owner", "income")],
)
CUMULATIVE = rp.Workload.all_up_to(
    rp.Domain((rp.Attribute("age", rp.Integers(0, 7)), OWNER)), 2
).with_bases({"age": rp.Prefix()})
OWNERS = RECORDS.groupby("owner").size().to_numpy()


def released(workload: rp.Workload, exact: list, tmp_path) -> rp.Release:
    RECORDS.to_csv(tmp_path / "records.csv", index=False)
    budget = rp.Budget(rho="0.1", exact=exact)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    return rp.release(plan, tmp_path / "records.csv", tmp_path / "out")


def values(tables, *names: str) -> np.ndarray:
    return tables.table(*names)["value"].to_numpy()


def test_levels_may_be_stated_beside_the_attributes_of_a_table(tmp_path):
    done = released(LEVELS, ["age@two"], tmp_path)
    assert done.table("sex", "owner", "age", level={"age": "four"}).equals(
        done.table("sex", "owner", "age@four")
    )
    with pytest.raises(DomainError, match=r"stated for income, which is not among .*age"):
        done.table("age", level={"income": "two"})
    with pytest.raises(DomainError, match="'age' has no level 'three'; it has 'four', 'two'"):
        done.table("age", level={"age": "three"})
    with pytest.raises(ReleaseError, match=r"level 'four' is one of age, .* level={'age': 'four'}"):
        done.table("sex", "owner", "age", level="four")


def test_finer_tables_add_up_to_an_exact_total_at_a_level(tmp_path):
    tables = released(LEVELS, ["age@two"], tmp_path).part("tables")
    halves = np.bincount(RECORDS["age"] // 4)
    assert values(tables, "age@two").tolist() == halves.tolist()
    assert values(tables, "age").reshape(2, 4).sum(axis=1) == pytest.approx(halves, abs=1e-8)
    by_four = values(tables, "sex", "owner", "age@four").reshape(2, 2, 2, 2).sum(axis=(0, 1, 3))
    assert by_four == pytest.approx(halves, abs=1e-8)
    assert tables.table("age")["standard_error"].min() > 1
    assert not tables.table("age@two")["standard_error"].any()


def test_sums_of_amounts_have_noise_and_the_counts_beside_them_none(tmp_path):
    release = released(SUMS, ["owner"], tmp_path)
    rows = release.part("tables").table("owner", "income")
    of_records = rows[rows["income"] == "records"]
    assert of_records["value"].to_numpy() == pytest.approx(OWNERS, abs=1e-8)
    assert not of_records["standard_error"].any()
    assert rows[rows["income"] == "sum (EUR)"]["standard_error"].min() > 100
    for method in ("nonnegative", "smooth"):
        whole = rp.postprocess(release, tmp_path / method, method=method, rounded=True)
        assert values(whole, "owner").tolist() == OWNERS.tolist()


def test_cumulative_tables_end_in_the_exact_total(tmp_path):
    tables = released(CUMULATIVE, ["owner"], tmp_path).part("tables")
    assert values(tables, "owner").tolist() == OWNERS.tolist()
    by_age = tables.table("age", "owner")
    assert by_age["value"].to_numpy().reshape(8, 2)[-1] == pytest.approx(OWNERS, abs=1e-8)
    assert by_age["standard_error"].to_numpy().reshape(8, 2)[-1] == pytest.approx(0)
