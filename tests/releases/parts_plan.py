"""A plan of all four parts, which share some attributes, and the records that tests run it on."""

from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.workload.query_list import QueryList

SEX = rp.Attribute("sex", rp.Categories(("f", "m")))
AGE = rp.Attribute("age", rp.Integers(0, 8, 3))
JOB = rp.Attribute("job", rp.Categories(("yes", "no", "other")))
SIZE = rp.Attribute("size", rp.Integers(1, 3))
HOME = rp.Attribute("home", rp.Categories(("owned", "rented")))
ROWS = [("N", "1"), ("N", "2"), ("S", "1")]
TREE = rp.AreaTree.from_columns({"region": [row[0] for row in ROWS], "town": [r[1] for r in ROWS]})
KINDS = ("tables", "areas", "counts", "rounds")
SHARES = {
    kind: Fraction(share, 10)
    for kind, share in (("tables", 4), ("areas", 3), ("counts", 2), ("rounds", 1))
}

_TABLES = rp.Workload.all_up_to(rp.Domain((SEX, AGE)), 2)
_OF_AREAS = rp.Workload.of(rp.Domain((SEX,)), [("sex",), ()])
_COUNTS = QueryList(  # only here are jobs asked for
    rp.Domain((SEX, JOB)),
    np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1, 1, 1, -1, -1, -1]]),
    ("women with a job", "other women", "women − men"),
    np.array([1.0, 2, 30]),
)
_ROUNDS = rp.Workload.of(
    rp.Domain((SEX, AGE, SIZE, HOME)), [("sex", "age", "size"), ("age", "size", "home")]
)


@cache
def plan_of(kinds: tuple[str, ...] = KINDS, most: int | None = None) -> rp.Plan:
    """A plan of these parts for ρ = 1; most: how many records of a person it protects."""
    whole = sum(SHARES[kind] for kind in kinds)
    parts = {
        "tables": _TABLES,
        "areas": rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, _OF_AREAS)),
        "counts": _COUNTS,
        "rounds": rp.Rounds(_ROUNDS, 5_000),
    }
    request = rp.Request(
        **{kind: parts[kind] for kind in kinds},
        budget=rp.Budget(rho=1, max_records_per_person=most),
        shares={kind: SHARES[kind] / whole for kind in kinds},
    )
    return rp.plan(request)


def records(n_records: int = 60) -> pd.DataFrame:
    """Records with every column; those of a person are next to each other."""
    rng = np.random.default_rng(7)
    towns = [ROWS[row] for row in rng.integers(0, len(ROWS), n_records)]
    return pd.DataFrame(
        {
            "who": np.arange(n_records) // 3,
            "sex": rng.choice(["f", "m"], n_records),
            "age": rng.integers(0, 9, n_records),
            "job": rng.choice(["yes", "no", "other"], n_records),
            "size": rng.integers(1, 4, n_records),
            "home": rng.choice(["owned", "rented"], n_records),
            "region": [town[0] for town in towns],
            "town": [town[1] for town in towns],
        }
    )
