"""A made-up state of 6.6 million people whose tables are shaped like those of PL 94-171.

Voting age, Hispanic origin and 63 combinations of races, in eight levels of areas. The numbers of
areas are those of a state of that size; all else is made up. Races live apart, as they do: the
shares of an area vary about those of what it lies in, on every level.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

import rpexplore as rp

LEVELS = {
    "region": 8, "county": 62, "tract group": 330, "tract": 1_700, "group": 4_800,
    "cluster": 24_000, "block": 163_700,
}  # fmt: skip
PEOPLE = 6_600_000
DOMAIN = rp.Domain.from_sizes({"voting_age": 2, "hispanic": 2, "race": 63})

# How closely the shares of an area follow those of its parent: Dirichlet with these sums.
FOLLOWING = (60, 40, 60, 100, 150, 60, 25)
SIZES = 0.6  # of blocks: Gamma with this shape
_SINGLE_RACES = (0.62, 0.124, 0.011, 0.06, 0.002, 0.084)
_HISPANIC = (0.13, 0.03, 0.25, 0.02, 0.1, 0.92)
_SHARES_OF_SEVERAL = {2: 0.092, 3: 0.0065, 4: 0.0004, 5: 0.00008, 6: 0.00002}


def state(share: int = 1) -> rp.AreaTree:
    """Every area has a part at least; share: 10 for a tenth of it."""
    sizes = [1, *(max(count // share, 1) for count in LEVELS.values())]
    generator, parents = np.random.default_rng(94_171), [np.array([-1])]
    for start, (above, count) in zip(np.cumsum([0, *sizes]), pairwise(sizes), strict=False):
        shares = generator.gamma(2.0, 1, above)
        counts = 1 + generator.multinomial(count - above, shares / shares.sum())
        parents.append(start + np.repeat(np.arange(above), counts))
    parents = np.concatenate(parents).astype(np.int32)
    within = np.arange(len(parents)) - np.searchsorted(parents, parents)
    codes = pa.array([f"{number:04}" for number in range(int(np.max(within)) + 1)])
    starts = np.cumsum([0, *sizes])
    return rp.AreaTree(("state", *LEVELS), starts, parents, codes.take(pa.array(within)))


def national_shares() -> np.ndarray:
    """Of voting age × Hispanic × race, float64[252]."""
    masks = sorted(range(1, 64), key=lambda mask: (mask.bit_count(), mask))
    race, hispanic = np.empty(63), np.empty(63)
    for code, mask in enumerate(masks):
        own = [index for index in range(6) if mask >> index & 1]
        race[code] = np.prod([_SINGLE_RACES[index] for index in own])
        hispanic[code] = np.mean([_HISPANIC[index] for index in own])
    for order, whole in ((1, None), *_SHARES_OF_SEVERAL.items()):
        some = np.array([mask.bit_count() == order for mask in masks])
        if whole is not None:
            race[some] *= whole / race[some].sum()
    race /= race.sum()
    by_origin = np.stack([race * (1 - hispanic), race * hispanic])
    adults = np.array([0.8, 0.68])[:, None]
    return np.stack([by_origin * (1 - adults), by_origin * adults]).ravel()


def shares_in_areas(tree: rp.AreaTree, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """The shares that the people of each area are drawn with, float64[n, 252] level by level."""
    shares = national_shares()[None]
    yield shares
    for level, following in enumerate(FOLLOWING, start=1):
        parents = tree.parents[tree.level_slice(level)] - tree.starts[level - 1]
        shares = generator.gamma(following * shares[parents])
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        yield shares


def counts_in_areas(tree: rp.AreaTree, people: int, seed: int = 0) -> np.ndarray:
    """How many people are in each cell of each area, int32[n_areas, 252]."""
    generator = np.random.default_rng(seed)
    *_, shares = shares_in_areas(tree, generator)
    sizes = generator.gamma(SIZES, 1, len(shares))
    blocks = generator.multinomial(people, sizes / sizes.sum())
    counts = np.zeros((tree.n_areas, shares.shape[1]), dtype=np.int32)
    shares = shares / shares.sum(axis=1, keepdims=True)
    counts[tree.level_slice(len(LEVELS))] = generator.multinomial(blocks, shares)
    for level in reversed(range(len(LEVELS))):
        below = tree.level_slice(level + 1)
        np.add.at(counts, tree.parents[below], counts[below])
    return counts
