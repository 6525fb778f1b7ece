"""Shares of people and cells with large counts: looked up in ascending counts, as if counted."""

import numpy as np
import pytest

from rpexplore.analysis.populations import CountsOfTables

RECORDS = np.array([10_000.0, 9_000.0, 11_000.0, 10_500.0])  # of each population
LIMITS = (0.0, 1.0, 3.5, 17.0, 1e9)  # of the tables, in turn


def drawn(m: int) -> np.ndarray:
    rng = np.random.default_rng(m)
    counts = rng.poisson(rng.gamma(0.5, 20, (len(LIMITS), 4, m)))
    counts[0, 2] = 0  # nobody
    return counts.astype(np.float32)


@pytest.mark.parametrize("m", [1, 5, 31, 32, 33, 100, 800])
def test_of_cells(m):
    counts, least, n_cells = drawn(m), np.array(LIMITS), np.full(len(LIMITS), float(m))
    good = counts >= least[:, None, None]
    in_good, everybody = (counts * good).sum(axis=2), counts.sum(axis=2)
    people = np.where(everybody > 0, in_good / np.maximum(everybody, 1), 0)
    ascending = np.sort(np.pad(counts, ((0, 0), (0, 0), (0, 9)), constant_values=-1), axis=2)
    for group in (
        CountsOfTables(np.arange(len(least)), counts, True),
        CountsOfTables(np.arange(len(least)), ascending, True, ascend=True),
    ):
        found_people, found_cells = group.good(least, RECORDS, n_cells)
        assert np.allclose(found_people, people, rtol=1e-6)
        assert np.array_equal(found_people == 1, (in_good == everybody) & (everybody > 0))
        assert np.array_equal(found_cells, good.mean(axis=2))


@pytest.mark.parametrize("m", [1, 5, 31, 32, 33, 100, 800])
def test_of_people(m):
    counts, least, n_cells = np.sort(drawn(m) + 1, axis=2), np.array(LIMITS), np.full(5, 3e4)
    good = counts >= least[:, None, None]
    of_cells = (good / counts).mean(axis=2) * RECORDS / n_cells[:, None]
    group = CountsOfTables(np.arange(len(least)), counts, False)
    found_people, found_cells = group.good(least, RECORDS, n_cells)
    assert np.array_equal(found_people, good.mean(axis=2))
    assert np.allclose(found_cells, np.minimum(of_cells, 1), rtol=1e-6)
