"""Made-up records in which three attributes depend on each other as no pair of them shows.

Four kinds of structure that is ordinary in offices and breaks the assumptions of model-based
estimates (docs/mathematics.md §13): derived variables, a minority with reversed patterns, values as
skewed as Zipf's law, and areas within areas of which most hold few records.
"""

from collections.abc import Callable, Mapping

import numpy as np

import rpexplore as rp

Records = tuple[rp.Domain, np.ndarray]
"""The codebook, and the index of each value: int64[n_records, d]."""


def derived_variables(n_records: int = 50_000, seed: int = 1) -> Records:
    """w = (u + v) mod 6 in all records, and z = (x + y) mod 4 in 60 % of them."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(3, n_records, p=[0.5, 0.3, 0.2])
    u, v = (_by_class(rng, groups, 6) for _ in range(2))
    x, y, z = (_by_class(rng, groups, 4) for _ in range(3))
    planted = rng.random(n_records) < 0.6
    z = np.where(planted, (x + y) % 4, z)
    columns = {"u": u, "v": v, "w": (u + v) % 6, "x": x, "y": y, "z": z}
    columns |= {f"a{size}": _by_class(rng, groups, size) for size in (2, 3, 8, 12)}
    return _records(columns, {"w": 6})


def reversed_minority(n_records: int = 50_000, seed: int = 2) -> Records:
    """Of 2 to 5 % of the records, the order of one attribute by another is the other way round."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    for number, share in enumerate((0.02, 0.03, 0.05)):
        minority = rng.random(n_records) < share
        age = rng.binomial(9, 0.45, n_records)
        # Income rises with age among the majority, and falls among the minority.
        along = np.where(minority, 9 - age, age)
        income = np.clip(np.rint(along * 0.7 + rng.normal(0, 1.0, n_records)), 0, 7)
        columns |= {
            f"minority{number}": minority.astype(np.int64),
            f"age{number}": age,
            f"income{number}": income.astype(np.int64),
        }
    columns["region"] = rng.choice(5, n_records, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    return _records(columns, {f"income{number}": 8 for number in range(3)})


def zipf_skew(n_records: int = 50_000, seed: int = 3) -> Records:
    """Values with shares ∝ 1/rank^1.3 in an order of each class's own."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(8, n_records, p=_zipf(8, 1.0))
    columns = {}
    for number, size in enumerate((4, 6, 8, 10, 12, 16, 20, 30)):
        values = np.empty(n_records, dtype=np.int64)
        for of_class in range(8):
            order = np.argsort(np.arange(size) + rng.normal(0, size / 4, size))
            members = classes == of_class
            values[members] = order[rng.choice(size, members.sum(), p=_zipf(size, 1.3))]
        columns[f"a{number}"] = values
    return _records(columns, {f"a{n}": s for n, s in enumerate((4, 6, 8, 10, 12, 16, 20, 30))})


def nested_areas(n_records: int = 50_000, seed: int = 4) -> Records:
    """8 regions, 40 counties and 120 towns in them, as attributes; towns as skewed as Zipf's law.

    What a town's people do follows from the town, so that most cells of towns are empty.
    """
    rng = np.random.default_rng(seed)
    county_of = np.sort(rng.integers(0, 40, 120))
    region_of = np.sort(rng.integers(0, 8, 40))
    towns = rng.permutation(120)[rng.choice(120, n_records, p=_zipf(120, 1.0))]
    counties = county_of[towns]
    columns = {"town": towns, "county": counties, "region": region_of[counties]}
    sizes = {"town": 120, "county": 40, "region": 8}
    for name, size in (("industry", 12), ("tenure", 4), ("birthplace", 10), ("age", 8)):
        shares = rng.dirichlet(np.full(size, 0.3), 120)
        ends = shares.cumsum(axis=1)[towns]
        columns[name] = np.minimum((rng.random(n_records)[:, None] > ends).sum(axis=1), size - 1)
        sizes[name] = size
    return _records(columns, sizes)


JOINT_RECORDS: Mapping[str, Callable[[], Records]] = {
    "derived variables": derived_variables,
    "reversed minority": reversed_minority,
    "Zipf skew": zipf_skew,
    "nested areas": nested_areas,
}


def _zipf(size: int, power: float) -> np.ndarray:
    shares = 1 / np.arange(1, size + 1) ** power
    return shares / shares.sum()


def _by_class(rng: np.random.Generator, classes: np.ndarray, size: int) -> np.ndarray:
    """Values that depend on the class of each record, and on nothing else."""
    ends = rng.dirichlet(np.ones(size), int(classes.max()) + 1).cumsum(axis=1)[classes]
    return np.minimum((rng.random(len(classes))[:, None] > ends).sum(axis=1), size - 1)


def _records(columns: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> Records:
    """sizes: of attributes whose last values may have no record"""
    domain = rp.Domain.from_sizes(
        {name: sizes.get(name, int(values.max()) + 1) for name, values in columns.items()}
    )
    return domain, np.column_stack(list(columns.values())).astype(np.int64)
