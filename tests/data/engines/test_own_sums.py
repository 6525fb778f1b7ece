"""Amounts by groups of cells, as own counts are counted: the same in every engine."""

import numpy as np
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.workload.condition_atoms import ConditionAtoms
from tests.data.engines.conftest import two_stores

INCOME = rp.Amounts(-10, 100, missing=(("", "not stated"),))
DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"))),
        rp.Attribute("income", INCOME),
        rp.Attribute("w", rp.Amounts(0, 4, are_weights=True)),
        rp.Attribute("age", rp.Integers(0, 9)),
    )
)


@two_stores
@pytest.mark.parametrize("held", [(1,), (1, 2)])
def test_amounts_are_summed_by_groups_of_cells(store, held):
    generator = np.random.default_rng(1)
    n = 500
    income = [None if amount > 100 else int(amount) for amount in generator.integers(-20, 110, n)]
    records = pa.table(
        {
            "sex": generator.choice(["f", "m"], n).tolist(),
            "income": pa.array(income, pa.int64()),
            "w": generator.integers(0, 6, n),
            "age": generator.integers(0, 10, n),
        }
    )
    conditions = ConditionAtoms(DOMAIN)
    for text in ("age >= 6 | sex == 'f' & age in (1, 4)", "age < 3"):
        conditions.add(text)
    atoms, holds = conditions.made(["one", "other"])
    tables = [(0,), (1,), (2,), (3,), (*held, 4)]
    counts = store(records).count(DOMAIN, tables, atoms=atoms)
    expected = FrameSource(records, name="frame").count(DOMAIN, tables, atoms=atoms)
    for table in tables:
        np.testing.assert_array_equal(counts.counts(table), expected.counts(table))
    # By hand: the sum of the amounts of those under three, in records times the range.
    ages = records["age"].to_numpy()
    steps = sum(
        (min(max(y, -10), 100) + 10) * (4 if 2 in held else 1)
        for y, age in zip(income, ages.tolist(), strict=True)
        if y is not None and age < 3
    )
    found = counts.counts((*held, 4))[1] @ holds[1]
    assert found.sum() == steps
