"""A small tree of uneven depth, plans for it, and records in it."""

from functools import partial

import numpy as np

import rpexplore as rp
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from tests.support.made import Made

OTHERS = rp.Domain.from_sizes({"sex": 2, "age": 3, "one": 1})
ROWS = [
    ("N", "1", "a"), ("N", "1", "b"), ("N", "1", "c"), ("N", "2", None), ("S", "1", "a"),
    ("S", "2", "a"), ("S", "2", "b"), ("W", None, None),
]  # fmt: skip
TREE = rp.AreaTree.from_columns(
    {name: [row[k] for row in ROWS] for k, name in enumerate(("region", "town", "block"))},
    names={"town": [None if row[1] is None else f"Town {row[0]}{row[1]}" for row in ROWS]},
)
BOTH = rp.Workload.of(OTHERS, [("sex", "age"), ("sex",), ("one",)])
BASED = BOTH.with_bases({"age": rp.Prefix()})
SEXES, TOTAL = rp.Workload.of(OTHERS, [("sex",), ()]), rp.Workload.of(OTHERS, [()])


def asked(**levels):
    return rp.AreaWorkload.of_levels(
        TREE, {"all" if k == "top" else k: w for k, w in levels.items()}
    )


def planned(workload: rp.AreaWorkload) -> AreaPlan:
    return plan_areas(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))


WORKLOADS = {
    "the same": asked(top=BOTH, region=BOTH, town=BOTH, block=BOTH),
    "less further down": asked(top=BOTH, region=BOTH, town=SEXES, block=TOTAL),
    "none below": asked(top=SEXES, region=BOTH),
    "in bases": asked(top=BASED, region=BASED, town=SEXES, block=BASED),
    "some areas": asked(block=TOTAL).with_areas(np.array([2, 5]), BOTH),
}
PLANS = Made({name: partial(planned, workload) for name, workload in WORKLOADS.items()})
RECORDS = [
    dict(zip(TREE.levels[1:], ROWS[row], strict=True)) | {"sex": sex, "age": age, "one": 0}
    for row, sex, age in np.random.default_rng(1).integers(0, (8, 2, 3), (300, 3)).tolist()
]
