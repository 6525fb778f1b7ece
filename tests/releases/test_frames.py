"""Releases of records in memory: charged under their name, in the ledger that is named."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError, LedgerError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import dry_run, release

DOMAIN = rp.Domain(
    (rp.Attribute("sex", rp.Categories(("f", "m"))), rp.Attribute("age", rp.Integers(0, 8, 3)))
)
ROWS = {
    "sex": ["f", "f", "m", "m"],
    "age": [0, 2, 3, 8],
    "who": [1, 1, 2, 2],
    "notes": list("wxyz"),
}
FRAMES = {"pandas": pd.DataFrame, "arrow": pa.table, "polars": pl.DataFrame}


def plan(**budget) -> TablePlan:
    workload = rp.Workload.of(DOMAIN, [("sex", "age")])
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1, **budget))


@pytest.fixture
def where(tmp_path) -> dict:
    return {"name": "survey 2026", "ledger": tmp_path / "ledger.sqlite"}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_released_and_charged_under_its_name(kind, where, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "rpexplore.releases.measurement.discrete_gaussian",
        lambda n, variance: np.zeros(n, dtype=np.int64),
    )
    done = release(plan(), FRAMES[kind](ROWS), tmp_path / "out", **where)
    assert done.counts("sex")["value"].round(6).tolist() == [2, 2]
    (account,) = Ledger(where["ledger"]).accounts()
    assert account.dataset == "survey 2026"
    assert account.spent_record_rho == done.plan.rho
    # The same records, however they are read: one account, and its limit.
    other_frame = FRAMES["arrow" if kind == "pandas" else "pandas"](ROWS)
    with pytest.raises(LedgerError, match="budget limit"):
        release(plan(), other_frame, tmp_path / "again", limit_rho="3/2", **where)


def test_other_records_of_the_same_name_are_charged_to_the_same_account(where, tmp_path):
    planned, frame = plan(), pd.DataFrame(ROWS)
    for records, folder in ((frame, "all"), (frame.tail(2), "some")):
        release(planned, records, tmp_path / folder, **where)
    (account,) = Ledger(where["ledger"]).accounts()
    assert len(account.entries) == 2
    assert account.spent_record_rho == 2 * planned.rho


def test_a_frame_needs_a_name_and_a_ledger(where, tmp_path):
    frame = pd.DataFrame(ROWS)
    with pytest.raises(DataError, match="must have a name"):
        release(plan(), frame, tmp_path / "out", ledger=where["ledger"])
    for run in (release, dry_run):
        with pytest.raises(
            LedgerError, match="lie in no folder that could hold their ledger; name"
        ):
            run(plan(), frame, tmp_path / "out", name="survey 2026")
    assert not where["ledger"].exists()


def test_records_that_changed_since_the_dry_run_are_refused(where, tmp_path):
    frame = pd.DataFrame(ROWS)
    seen = dry_run(plan(), frame, tmp_path / "out", **where).fingerprint
    frame["notes"] = "changed"  # not looked at
    release(plan(), frame, tmp_path / "out", expected_fingerprint=seen, **where)
    frame.loc[0, "sex"] = "m"
    with pytest.raises(DataError, match="'survey 2026' have changed since they were checked"):
        release(plan(), frame, tmp_path / "more", expected_fingerprint=seen, **where)


def test_persons_of_a_frame_are_bounded(where, tmp_path):
    rule = PersonRule("who", 1)
    with pytest.raises(DataError, match="A person"):
        release(
            plan(max_records_per_person=1), pl.DataFrame(ROWS), tmp_path / "out",
            person_rule=rule, **where,
        )  # fmt: skip
