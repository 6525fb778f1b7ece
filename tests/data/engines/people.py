"""Records of people, what is counted of them, and what must come out."""

import numpy as np
import pyarrow as pa

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data.source import Source
from rpexplore.workload.condition_atoms import ConditionAtoms

SEX = ("m", "f", "ünïcode, x")
DOMAIN = Domain(
    (
        Attribute("sex", Categories(SEX)),
        Attribute("age", Integers(0, 99, 7)),
        Attribute("pay", Bins((0, 0.5, 10, 100))),
        Attribute("place", Categories(tuple(f"p{number}" for number in range(30)))),
        Attribute("one", Integers(4, 4)),
    )
)
CONDITIONS = (
    "age >= 21 & sex == 'f' | place in ('p3', 'p4', 'p17', 'p29')",
    "pay < 10 & not (age < 49 & sex != 'm')",
    "place in ('p3', 'p5') | pay >= 0.5 & age < 70",
)
TABLES = [(0, 1, 2), (1, 3), (0, 1), (2, 3, 4), (4,), ()]


def people(n: int = 3001) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "note": pa.array([f"private {number}" for number in range(n)]),
            "sex": pa.array(rng.choice(SEX, n).tolist(), pa.string()),
            "age": pa.array(rng.integers(0, 100, n)),
            "pay": pa.array(rng.choice([0.0, 0.5, 10.0, 99.999, 100.0], n)),
            "place": pa.array([f"p{number}" for number in rng.integers(0, 30, n)], pa.string()),
            "one": pa.array([4] * n, pa.int64()),
            "who": pa.array([f"person {number}" for number in rng.integers(0, n // 2, n)]),
            "turn": pa.array(rng.permutation(n)),
        }
    )


def expected(records: pa.Table, indices: tuple[int, ...]) -> np.ndarray:
    """The marginal, record by record."""
    code = {
        "sex": SEX.index,
        "age": lambda age: age // 7,
        "pay": lambda pay: 0 if pay < 0.5 else 1 if pay < 10 else 2,
        "place": lambda index: int(index[1:]),
        "one": lambda one: 0,
    }
    counts = np.zeros([int(DOMAIN.sizes[index]) for index in indices], dtype=np.int64)
    for row in records.to_pylist():
        names = [DOMAIN.names[index] for index in indices]
        counts[tuple(code[name](row[name]) for name in names)] += 1
    return counts


def check(source: Source, records: pa.Table) -> None:
    check_tables(source, records)
    check_atoms(source, records)


def check_tables(source: Source, records: pa.Table) -> None:
    """One counting of all tables."""
    counts = source.count(DOMAIN, TABLES)
    assert sorted(counts.tables) == [(0, 1, 2), (1, 3), (2, 3, 4)]  # no set in another
    assert counts.n_records == len(records)
    for table in TABLES:
        assert np.array_equal(counts.counts(table), expected(records, table)), table


def check_atoms(source: Source, records: pa.Table) -> None:
    """Groups of cells are counted as the sums of their cells, the attributes beside them."""
    conditions = ConditionAtoms(DOMAIN)
    for text in CONDITIONS:
        conditions.add(text)
    atoms, _ = conditions.made(CONDITIONS)
    counts = source.count(DOMAIN, [(0,), (2,), (5,)], atoms=atoms)
    cells = expected(records, tuple(range(5))).ravel()
    sums = np.bincount(atoms.of_cells(), cells, minlength=len(atoms)).astype(int)
    assert counts.counts((5,)).tolist() == sums.tolist()
    assert np.array_equal(counts.counts((2,)), expected(records, (2,)))
    assert counts.n_records == len(records)
