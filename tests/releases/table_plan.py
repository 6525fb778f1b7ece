"""The plans and the records that most tests of releases run, and what they look at."""

import hashlib
import re
import sqlite3
from pathlib import Path

import numpy as np

from rpexplore import (
    Attribute,
    Budget,
    Categories,
    Domain,
    Integers,
    SumOfVariances,
    Workload,
)
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.workload.query_list import QueryList
from tests.support.query_lists import query_plan

DOMAIN = Domain(
    (
        Attribute("sex", Categories(("f", "m"), ("female", "male"))),
        Attribute("age", Integers(0, 8, 3)),
        Attribute("one", Categories(("k",))),
    )
)
WORKLOAD = Workload.all_up_to(DOMAIN, 2)
PLAN = plan_tables(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1/2"))
NAMES = ("women", 'from 3, "old"', "women − men\nor so")
WOMEN, FROM_3, DIFFERENCE = [1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1], [1, 1, 1, -1, -1, -1]
QUERIES = QueryList(
    Domain(DOMAIN.attributes[:2]),
    np.array([WOMEN, FROM_3, DIFFERENCE]),
    NAMES,
    np.array([1.0, 2, 30]),
)
QUERY_PLAN = query_plan(QUERIES, budget=Budget(rho="1/2"))
PLANS = {"tables": PLAN, "queries": QUERY_PLAN}
CSV = "sex,age,one,notes\nf,0,k,x\nf,2,k,x\nm,3,k,x\nf,8,k,x\nm,5,k,x\n"
SECRET = "s3cr3t-value"


def tampered(plan: PartPlan | Plan, pattern: str, written: str) -> Plan:
    """The plan of a text that says otherwise wherever it has a pattern, with the seal of that."""
    text = re.sub(pattern, written, plan.text)
    assert text != plan.text
    unsealed, _, _ = text.rpartition(',\n"sha256"')
    seal = hashlib.sha256(f"{unsealed}\n}}\n".encode()).hexdigest()
    return Plan.parse(f'{unsealed},\n"sha256":"{seal}"\n}}\n')


def no_noise(size, gamma_squared):
    return np.zeros(size, dtype=np.int64)


def draw_by(monkeypatch, draw) -> None:
    """Let noise be drawn by a function instead, in releases of tables and of queries."""
    for module in ("measurement", "query_release"):
        monkeypatch.setattr(f"rpexplore.releases.{module}.discrete_gaussian", draw)


def runs(data: Path, ledger: Path | None = None):
    book = Ledger(ledger) if ledger else Ledger.beside(data)
    return book.account(data).entries


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ledger_rows(ledger: Ledger, query: str) -> list[tuple]:
    connection = sqlite3.connect(ledger.path)
    with connection:
        rows = connection.execute(query).fetchall()
    connection.close()
    return rows
