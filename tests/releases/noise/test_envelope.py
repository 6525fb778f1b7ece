"""The stepped envelope: every table covers the density, and its slots add up to it exactly.

Every test compares the tables with mpmath at 60 digits, or with double precision where the slack
is far above its error.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpexplore.releases.noise import discrete_gaussian as module
from rpexplore.releases.noise.discrete_gaussian import (
    LARGEST_GAMMA,
    Envelope,
    block_bits,
    envelope,
    grid,
)

SMALLEST = -8
# Tables are the same for all wider blocks, whose exponents are 0 to 45.
INTERVALS = [(steps, SMALLEST) for steps in range(64)] + [
    (steps, exponent) for exponent in range(SMALLEST, 1) for steps in range(64, 128)
]

# Any gamma from below 1/1000 to 2^52, squares and others, and the ends of intervals.
gammas = st.builds(
    lambda mantissa, exponent: mantissa * Fraction(2) ** exponent,
    st.fractions(Fraction(1), Fraction(2), max_denominator=1000).filter(lambda m: m < 2),
    st.integers(-10, 51),
)
gammas_squared = gammas.map(lambda gamma: gamma**2) | gammas.flatmap(
    lambda gamma: st.sampled_from([1 - Fraction(1, 10**30), 1 + Fraction(1, 10**30)]).map(
        lambda factor: min(gamma**2 * factor, Fraction(LARGEST_GAMMA**2) - Fraction(1, 10**9))
    )
)


@pytest.fixture(autouse=True, scope="module")
def _sixty_digits():
    with mpmath.workdps(60):
        yield


def unit(exponent: int) -> Fraction:
    """Of the grid, in blocks."""
    return Fraction(2) ** (exponent - block_bits(exponent))


def columns(tables: Envelope) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each block, in ascending order, with its sure slots and all its slots."""
    n_sure, k = tables.n_sure, tables.n_blocks
    is_used = tables.heights <= tables.slots_at_zero
    sure = np.bincount(tables.blocks[:n_sure] + k, minlength=2 * k)
    others = np.bincount(tables.blocks[n_sure:][is_used] + k, minlength=2 * k)
    return np.arange(-k, k), sure, sure + others


def distances(blocks: np.ndarray, exponent: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the nearest and the farthest point of each block from 0, in blocks, rounded outwards."""
    last = blocks if exponent < 0 else blocks + 1
    ends = np.abs([blocks, last])
    return ends.min(axis=0), ends.max(axis=0)


@given(gammas_squared)
@example(Fraction(1, 10**400))
@example(Fraction(LARGEST_GAMMA**2) - Fraction(1, 10**30))
def test_the_grid_holds_gamma(gamma_squared):
    steps, exponent = grid(gamma_squared)
    low, high = (n * Fraction(2) ** exponent for n in (steps, steps + 1))
    assert low**2 <= gamma_squared < high**2
    assert steps < 128
    assert exponent == SMALLEST or steps >= 64
    assert SMALLEST <= exponent < 46
    blocks = high / 2 ** block_bits(exponent)
    assert blocks <= 64
    assert blocks > 32 or block_bits(exponent) == 0


@pytest.mark.parametrize("power", range(-7, 46))
def test_the_grid_is_exact_beside_powers_of_two(power):
    square = Fraction(4) ** power
    steps, exponent = grid(square)
    assert steps * Fraction(2) ** exponent == Fraction(2) ** power
    assert grid(square * (1 + Fraction(1, 10**99))) == (steps, exponent)
    below, its_exponent = grid(square * (1 - Fraction(1, 10**99)))
    assert (below + 1) * Fraction(2) ** its_exponent == Fraction(2) ** power


def test_the_grid_takes_numbers_of_many_digits():
    assert grid(Fraction(7 * 10**3000 + 1, 10**3000)) == (84, -5)  # 84.66 / 32 = √7


def test_every_table_is_well_formed():
    for steps, exponent in INTERVALS:
        tables = envelope(steps, exponent)
        assert tables.blocks.shape == (2**16,)
        assert len(tables.heights) == 2**16 - tables.n_sure
        _, sure, all_slots = columns(tables)
        assert sure.sum() == tables.n_sure
        assert (all_slots >= 1).all()
        assert all_slots.sum() <= 2**16 - 2
        assert (tables.heights[-2:] > tables.slots_at_zero).all()  # the tails' are not in a column
        assert 0 < tables.slots_at_zero < 2**16
        assert tables.n_blocks <= 416
        assert not tables.blocks.flags.writeable
        assert not tables.heights.flags.writeable


def test_the_open_slots_of_a_column_follow_its_sure_ones():
    for steps, exponent in INTERVALS[::7]:
        tables = envelope(steps, exponent)
        open_blocks = tables.blocks[tables.n_sure :]
        is_used = tables.heights <= tables.slots_at_zero
        for block, sure, all_slots in zip(*columns(tables), strict=True):
            heights = tables.heights[is_used & (open_blocks == block)]
            assert heights.tolist() == list(range(sure, all_slots))


def test_every_column_covers_the_density_and_is_no_higher_than_it_must_be():
    for steps, exponent in INTERVALS:
        tables = envelope(steps, exponent)
        blocks, sure, all_slots = columns(tables)
        nearest, farthest = distances(blocks, exponent)
        low, high = (float(n * unit(exponent)) for n in (steps, steps + 1))
        largest = tables.slots_at_zero * np.exp(-(nearest**2) / (2 * high**2))
        least = tables.slots_at_zero * np.exp(-(farthest**2) / (2 * max(low, 1e-9) ** 2))
        # What double precision cannot tell apart is compared exactly in the next test.
        assert (all_slots > largest - 1e-7).all()
        assert (all_slots <= largest + 1 + 1e-7).all()
        assert (sure <= least + 1e-7).all()
        assert (sure > least - 1 - 1e-7).all()


@pytest.mark.parametrize(
    ("steps", "exponent"),
    [(0, -8), (1, -8), (63, -8), (64, -8), (127, -4), (80, -3), (64, -1), (64, 0), (127, 0)],
)
def test_every_column_covers_the_density_exactly(steps, exponent):
    tables = envelope(steps, exponent)
    c = tables.slots_at_zero
    low, high = ((n * unit(exponent)) ** 2 for n in (steps, steps + 1))
    for block, sure, all_slots in zip(*columns(tables), strict=True):
        near, far = distances(np.array([block]), exponent)
        assert all_slots > c * density(int(near[0]), high)
        if sure:
            assert sure <= c * (density(int(far[0]), low) if low else far[0] == 0)


def density(x: int, gamma_squared: Fraction) -> mpmath.mpf:
    exponent = Fraction(x * x) / (2 * gamma_squared)
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


@given(gammas_squared, st.data())
def test_the_slots_of_an_integer_add_up_to_its_density(gamma_squared, data):
    """The sum over slots of the share of U that is kept: c f(x), for every x in every column."""
    steps, exponent = grid(gamma_squared)
    tables, width = envelope(steps, exponent), 2 ** block_bits(exponent)
    reach = tables.n_blocks * width
    x = data.draw(
        st.integers(-reach, reach - 1)
        | st.sampled_from([-reach, -width - 1, -width, -1, 0, 1, width - 1, width, reach - 1])
    )
    x = max(-reach, min(reach - 1, x))
    wanted = tables.slots_at_zero * density(x, gamma_squared)
    is_its = tables.blocks == x // width
    kept = mpmath.mpf(int(is_its[: tables.n_sure].sum()))
    for height in tables.heights[is_its[tables.n_sure :]]:
        kept += max(0, min(1, wanted - int(height)))
    assert abs(kept - wanted) < mpmath.mpf(10) ** -40


def test_tails_are_kept_with_a_probability_of_at_most_one():
    for steps, exponent in INTERVALS:
        tables = envelope(steps, exponent)
        assert tables.tail_width in (1, 2, 4, 8, 16, 32)
        high = float((steps + 1) * unit(exponent))
        assert tables.tail_width >= high / 2
        assert tables.n_blocks >= 6.5 * high
        part = np.arange(512)
        distance = tables.n_blocks + part * tables.tail_width
        scale = math.log(2**8 * tables.tail_width * tables.slots_at_zero)
        assert (scale + (part + 1) * math.log(2) - distance**2 / (2 * high**2)).max() < -1e-9


def test_nearly_every_candidate_is_kept_and_few_are_open():
    for steps, exponent in INTERVALS:
        tables = envelope(steps, exponent)
        assert tables.n_sure > 0.94 * 2**16
        low, high = (float(n * unit(exponent)) for n in (max(steps, 1), steps + 1))
        for gamma in (low, high):  # in blocks, which the sum over integers is in when w = 1
            total = max(1.0, math.sqrt(2 * math.pi) * gamma)
            if exponent < 0:
                total = 1 + 2 * np.exp(-(np.arange(1, 900) ** 2) / (2 * gamma**2)).sum()
            exact = tables.slots_at_zero * total / 2**16
            assert 0.96 < exact < 1
            assert abs(tables.acceptance - exact) < 0.02


def test_wide_blocks_share_tables_and_tables_are_kept():
    assert envelope(100, 0) is envelope(100, 39)
    assert envelope(100, 0) is not envelope(100, -1)
    assert envelope(100, 0) is not envelope(101, 0)
    assert [block_bits(exponent) for exponent in (-8, -1, 0, 1, 39)] == [0, 0, 1, 2, 40]


def test_tables_do_not_depend_on_the_callers_numeric_settings():
    intervals = [(0, -8), (70, -8), (127, -1), (64, 0)]
    usual = [envelope(*interval) for interval in intervals]
    module._cached_envelope.cache_clear()
    with np.errstate(all="raise"):
        unusual = [envelope(*interval) for interval in intervals]
    for one, other in zip(usual, unusual, strict=True):
        assert one is not other
        assert np.array_equal(one.blocks, other.blocks)
        assert np.array_equal(one.heights, other.heights)
