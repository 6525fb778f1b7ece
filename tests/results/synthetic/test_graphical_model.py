"""The engine of exact inference beside that of the population: both are of one distribution."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from rpexplore.errors import MissingExtraError
from rpexplore.results.synthetic.graphical_model import graphical_model_records
from rpexplore.results.synthetic.impossible import Impossible
from rpexplore.results.synthetic.population import population_records
from rpexplore.results.synthetic.targets import PairTargets

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
needs_mbi = pytest.mark.skipif(
    find_spec("mbi") is None and os.environ.get("RPEXPLORE_REQUIRE_ENGINES") != "1",
    reason="the extra `synthetic` is not installed",
)
SHAPE = (3, 4, 2, 5, 3, 2, 4, 3)
# A small tree with a loop of three, and all eight attributes in it.
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (1, 5), (5, 6), (6, 7)]


def made(n, never=()):
    full = np.random.default_rng(1).gamma(0.5, size=SHAPE)
    full /= full.sum()
    for condition in never:
        cells = np.ix_(*(condition.get(i, np.ones(n, bool)) for i, n in enumerate(SHAPE)))
        full[cells] = 0
    full /= full.sum()

    def marginal(*kept):
        return full.sum(axis=tuple(axis for axis in range(len(SHAPE)) if axis not in kept))

    targets = PairTargets(
        tuple(marginal(i) for i in range(len(SHAPE))), {pair: marginal(*pair) for pair in PAIRS}
    )
    impossible = Impossible(SHAPE, tuple(never))
    return [
        (targets, engine(targets, n, b"seed", impossible))
        for engine in (population_records, graphical_model_records)
    ]


def table(codes, pair):
    shape = [SHAPE[i] for i in pair]
    cells = np.ravel_multi_index(tuple(codes[:, i].astype(int) for i in pair), shape)
    return np.bincount(cells, minlength=np.prod(shape)).reshape(shape) / len(codes)


@needs_mbi
@pytest.mark.skipif(not NIGHTLY, reason="the compiler takes a minute")
@pytest.mark.parametrize("is_constrained", [False, True])
def test_the_two_engines_agree_within_sampling_error(is_constrained):
    """In all 28 pairs of eight attributes, those of which nothing was measured as well."""
    never = [{0: np.array([1, 0, 0], bool), 3: np.array([0, 0, 0, 1, 1], bool)}] * is_constrained
    n = 50_000
    (targets, chains), (_, exact) = made(n, never)
    for pair in [(i, j) for j in range(len(SHAPE)) for i in range(j)]:
        expected = table(exact, pair)
        # Of two independent samples each cell differs by a standard deviation of √(2p/n).
        bound = 1.5 * np.sqrt(2 * 2 / np.pi * expected / n).sum()
        assert np.abs(table(chains, pair) - expected).sum() < bound
        if pair in PAIRS:
            assert np.abs(expected - targets.pairs[pair]).sum() < bound / 2
    if never:
        (condition,) = never
        assert not np.any(condition[0][exact[:, 0]] & condition[3][exact[:, 3]])


@pytest.mark.skipif(find_spec("mbi") is not None, reason="mbi is installed")
def test_what_is_missing_is_said():
    targets = PairTargets((np.array([0.5, 0.5]),), {})
    with pytest.raises(MissingExtraError, match=r"rpexplore\[synthetic\]"):
        graphical_model_records(targets, 5, b"", Impossible((2,), ()))
