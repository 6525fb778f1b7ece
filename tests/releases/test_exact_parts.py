"""Releases of tables, areas and own counts around exact totals: all of them agree with these."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.cli.facts import account_text
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.ledger import Ledger

TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", "3"]})
DOMAIN = rp.Domain.from_sizes({"age": 4, "sex": 2})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)
BELOW = rp.Workload.of(DOMAIN, [("sex",)])
AREAS = rp.AreaWorkload.of_levels(TREE, {"all": TABLES, "region": BELOW, "town": BELOW})
COUNTS = rp.QueryList(
    DOMAIN,
    np.array([[0, 1] * 4, [0, 0, 0, 0, 0, 1, 0, 1], [0.5, 0, 0, 0, 0, 0, 0, 0], [1] * 8]),
    ("women", "old women", "half of the young men", "everybody"),
    np.full(4, 3),
)
RECORDS = pd.DataFrame(np.random.default_rng(2).integers(0, (3, 4, 2), (400, 3)),
                       columns=["town", "age", "sex"])  # fmt: skip
RECORDS["region"] = np.where(RECORDS["town"] < 2, "N", "S")
RECORDS["town"] += 1


def planned(exact: list) -> rp.Plan:
    return rp.plan(
        rp.Request(
            tables=TABLES, areas=AREAS, counts=COUNTS, budget=rp.Budget(rho="0.1", exact=exact)
        )
    )


@pytest.fixture
def data(tmp_path):
    RECORDS.astype(str).to_csv(tmp_path / "records.csv", index=False)
    return tmp_path / "records.csv"


def test_all_parts_hold_the_totals_as_they_are(data, tmp_path):
    plan = planned(["sex", "area@region"])
    assert rp.verify(plan).holds
    release = rp.release(plan, data, tmp_path / "out")
    by_sex = RECORDS.groupby("sex").size().to_numpy()
    tables, areas, counts = (release.part(kind) for kind in ("tables", "areas", "counts"))
    assert tables.table("sex")["value"].tolist() == by_sex.tolist()
    by_age = tables.table("age", "sex")["value"].to_numpy().reshape(4, 2)
    assert by_age.sum(axis=0) == pytest.approx(by_sex, abs=1e-9)
    assert not np.array_equal(np.rint(by_age), RECORDS.groupby(["age", "sex"]).size().unstack())
    assert areas.table("all", "sex")["value"].to_numpy() == pytest.approx(by_sex, abs=1e-9)
    in_regions = areas.table("region", "sex")["value"].to_numpy().reshape(2, 2).sum(axis=1)
    assert in_regions == pytest.approx(RECORDS.groupby("region").size().to_numpy(), abs=1e-8)
    told = {name: counts.answer(name) for name in ("women", "everybody")}
    assert [one.value for one in told.values()] == [by_sex[1], 400]
    assert not any(one.standard_error for one in told.values())
    assert counts.answer("old women").standard_error > 1
    account = Ledger.beside(data).account(data)
    assert "\nNote    the digits behind a name, as in (values" in account_text(account, "ledger")
    (entry,) = account.entries
    assert [total.split(" ")[0] for (total,) in entry.kind.exact] == ["area@region", "sex"]
    with pytest.raises(LedgerError, match="for changes that keep all"):
        rp.release(planned(["sex"]), data, tmp_path / "other")
    rounded = rp.postprocess(release, tmp_path / "whole", method="nonnegative", rounded=True)
    assert rounded.table("sex")["value"].tolist() == by_sex.tolist()


def test_a_total_may_be_in_one_part_alone():
    """Of age × sex, which areas do not have, they know what a table of the top has of it."""
    top = rp.AreaWorkload.of_levels(TREE, {"all": BELOW, "town": BELOW})
    asked = rp.Request(tables=TABLES, areas=top, budget=rp.Budget(rho=1, exact=["age"]))
    plan = rp.plan(asked)
    assert rp.verify(plan).holds
    assert not plan.part("areas").closure.in_areas.totals
    assert plan.part("tables").is_exact.any()
