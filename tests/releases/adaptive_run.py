"""A small adaptive plan, and the records that tests run it on."""

from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.planning.adaptive import adaptive_plan

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"))),
        rp.Attribute("age", rp.Integers(0, 8, 3)),
        rp.Attribute("one", rp.Categories(("k",))),
        rp.Attribute("region", rp.Categories(("n", "s", "w", "o"))),
    )
)
WORKLOAD = rp.Workload.of(DOMAIN, [("sex", "age", "region"), ("age", "one"), ("region",)])
PLAN = adaptive_plan(WORKLOAD, budget=rp.Budget(rho="1/2"), expected_records=5_000)


def write_records(path: Path, n_records: int = 200) -> None:
    rng = np.random.default_rng(5)
    age = rng.integers(0, 9, n_records)
    region = (age + rng.integers(0, 3, n_records)) % 4
    rows = zip("fm" * (n_records // 2), age, "k" * n_records, region, strict=True)
    text = "".join(f"{sex},{age},{one},{'nswo'[region]}\n" for sex, age, one, region in rows)
    path.write_text("sex,age,one,region\n" + text)
