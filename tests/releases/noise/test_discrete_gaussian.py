"""Deterministic tests of the sampler: decisions, injected bytes, refusals.

The distribution is tested in tests/statistical/test_discrete_gaussian.py.
"""

import decimal
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from rpexplore.common.numbers import scaled_exp_bracket
from rpexplore.releases.noise import discrete_gaussian as sampling
from tests.releases.noise.sampler_bytes import (
    SCALES,
    Stream,
    accepted_by_definition,
    candidates,
    content_of_open_slots,
    density,
    layout,
)


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_candidates_are_decided_as_the_algorithm_says(gamma_squared):
    stream = Stream.repeatable("candidates")
    accepted = sampling._accepted_candidates(2000, sampling._proposal(gamma_squared), stream)
    assert 1900 < len(accepted) < 2001
    assert accepted.tolist() == accepted_by_definition(2000, stream.content, gamma_squared)


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_open_slots_are_decided_as_the_algorithm_says(gamma_squared):
    content = content_of_open_slots(500, gamma_squared)
    stream = Stream(content)
    accepted = sampling._accepted_candidates(500, sampling._proposal(gamma_squared), stream)
    assert len(accepted) < 450
    assert accepted.tolist() == accepted_by_definition(500, content, gamma_squared)
    assert stream.position == (2 + layout(gamma_squared)[1] + 4) * 500


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_the_exact_path_decides_as_the_fast_path_does(gamma_squared, monkeypatch):
    proposal = sampling._proposal(gamma_squared)
    content = content_of_open_slots(300, gamma_squared)
    fast = sampling._accepted_candidates(300, proposal, Stream(content))
    never_decide(monkeypatch)
    stream = Stream(content)
    exact = sampling._accepted_candidates(300, proposal, stream)
    assert exact.tolist() == fast.tolist()
    assert stream.position == (2 + layout(gamma_squared)[1] + 4) * 300  # the same digits sufficed


def never_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fast path answer nonsense and certify none of it."""

    def uncertain(digits, heights, x, proposal):
        return digits % 2 == 0, np.ones(len(digits), dtype=bool)

    monkeypatch.setattr(sampling, "_fast_acceptance", uncertain)


@pytest.mark.parametrize("gamma_squared", [Fraction(1, 20), Fraction(4), Fraction(103, 10)])
def test_every_word_is_an_integer_of_the_right_probability(gamma_squared):
    assert_all_words_add_up(gamma_squared, 1)


@pytest.mark.parametrize(("gamma_squared", "width"), [(Fraction(4097), 2), (Fraction(90_000), 8)])
def test_every_word_and_offset_is_an_integer_of_the_right_probability(gamma_squared, width):
    assert_all_words_add_up(gamma_squared, width)


def assert_all_words_add_up(gamma_squared, width):
    """All slots with all offsets: over its words, each integer is kept c f(x) times in all."""
    assert layout(gamma_squared)[0] == width
    proposal = sampling._proposal(gamma_squared)
    tables = proposal.envelope
    words = np.repeat(np.arange(2**16), width).tolist()
    offsets = np.tile(np.arange(width), 2**16).tolist()
    stream = Stream(candidates(words, offsets, gamma_squared))
    slots, x = sampling._candidates(len(words), proposal, stream)
    assert stream.position == len(stream.content)
    assert slots.tolist() == words
    reach = tables.n_blocks * width
    assert set(x.tolist()) == set(range(-reach, reach))
    wanted = tables.slots_at_zero * np.exp(
        -(np.arange(-reach, reach) ** 2) / 2 / float(gamma_squared)
    )
    heights = np.concatenate([np.full(tables.n_sure, -1), tables.heights])[slots]
    shares = np.where(heights < 0, 1, np.clip(wanted[x + reach] - heights, 0, 1))
    np.testing.assert_allclose(np.bincount(x + reach, shares), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("power", range(46))
def test_no_more_bytes_are_read_than_an_offset_needs(power):
    gamma_squared = Fraction(4) ** power
    width, size = layout(gamma_squared)
    words = [0, 0]  # sure slots of the first block
    stream = Stream(candidates(words, [width - 1, 0], gamma_squared))
    _, x = sampling._candidates(2, sampling._proposal(gamma_squared), stream)
    assert stream.position == len(stream.content) == 2 * (2 + size)
    assert x.tolist() == [width - 1, 0]


def open_slot(tables, height: int, block: int) -> int:
    is_it = (tables.heights == height) & (tables.blocks[tables.n_sure :] == block)
    return tables.n_sure + int(np.flatnonzero(is_it)[0])


def test_further_digits_decide_the_acceptance():
    # At scale 1 blocks are single integers; block -3 is the integer -3.
    tables = sampling._proposal(Fraction(1)).envelope
    share = tables.slots_at_zero * mpmath.exp(mpmath.mpf(-9) / 2)
    height = int(mpmath.floor(share))
    slot = open_slot(tables, height, -3).to_bytes(2, "little")
    floor = int(mpmath.floor((share - height) * 2**32))
    for change, following, expected in (
        (-1, b"", [-3]),
        (0, b"\x00" * 8, [-3]),
        (0, b"\xff" * 8, []),
        (+1, b"", []),
    ):
        stream = Stream(slot + (floor + change).to_bytes(4, "little") + following)
        accepted = sampling._accepted_candidates(1, sampling._proposal(Fraction(1)), stream)
        assert accepted.tolist() == expected
        assert stream.position == len(stream.content)


def open_candidates(gamma_squared: Fraction, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Heights and integers, with all columns alike, so that their ends are among them."""
    proposal = sampling._proposal(gamma_squared)
    tables, width = proposal.envelope, layout(gamma_squared)[0]
    numbers = random.Random("open candidates")
    is_used = tables.heights <= tables.slots_at_zero
    open_blocks = tables.blocks[tables.n_sure :]
    heights, x = [], []
    for _ in range(count):
        block = numbers.randrange(-tables.n_blocks, tables.n_blocks)
        offset = numbers.choice([0, width - 1, numbers.randrange(width)])
        heights.append(numbers.choice(tables.heights[is_used & (open_blocks == block)].tolist()))
        x.append(block * width + offset)
    return np.array(heights), np.array(x)


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_every_decided_acceptance_is_right(gamma_squared):
    # Digits on both sides of the probability, as near as the margin, 2^-24 or 256 units, allows.
    proposal = sampling._proposal(gamma_squared)
    steps = np.array([-(2**20), -300, -258, -257, -254, -200, -2, -1, 0, 1])
    steps = np.concatenate([steps, 1 - steps])
    n_decided = n_undecided = 0
    for height, x in zip(*open_candidates(gamma_squared, 300), strict=True):
        share = proposal.envelope.slots_at_zero * density(int(x), gamma_squared) - int(height)
        scaled = share * 2**32
        digits = min(2**32 - 1, max(0, int(mpmath.floor(scaled)))) + steps
        digits = digits[(digits >= 0) & (digits < 2**32)]
        alike = np.full(len(digits), height), np.full(len(digits), x)
        is_below, is_undecided = sampling._fast_acceptance(digits, *alike, proposal)
        for d, below, undecided in zip(digits.tolist(), is_below, is_undecided, strict=True):
            if undecided:
                assert abs(d - scaled) < 257
            else:  # whatever digits follow
                assert below == (d + 1 <= scaled) == (d < scaled)
                assert abs(d - scaled) > 255
        n_decided += (~is_undecided).sum()
        n_undecided += is_undecided.sum()
    assert n_decided > 300
    assert n_undecided > 5


def test_float_probabilities_are_as_near_as_the_margin_claims():
    for gamma_squared in SCALES:
        proposal = sampling._proposal(gamma_squared)
        c = proposal.envelope.slots_at_zero
        for _, x in zip(*open_candidates(gamma_squared, 100), strict=True):
            exact = c * density(int(x), gamma_squared)
            approximate = c * np.exp(-np.float64(x) * np.float64(x) * proposal.steepness)
            assert abs(exact - mpmath.mpf(float(approximate))) < c * 2.0**-50


def test_unused_slots_are_refused_without_further_digits():
    for gamma_squared in SCALES:
        proposal = sampling._proposal(gamma_squared)
        tables = proposal.envelope
        unused = np.flatnonzero(tables.heights > tables.slots_at_zero)[:-2] + tables.n_sure
        words = (unused if len(unused) else np.array([2**16 - 2])).tolist()
        offsets = [0] * len(words)  # with the first block: the integer 0, of the largest density
        digits = b"\x00\x00\x00\x01" * len(words)
        stream = Stream(candidates(words, offsets, gamma_squared) + digits)
        assert not len(sampling._accepted_candidates(len(words), proposal, stream))
        assert stream.position == len(stream.content)


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("part", [0, 1, 5, 63, 64, 511])
def test_a_tail_has_its_integers_in_parts_of_the_right_probability(
    gamma_squared, is_right, part, monkeypatch
):
    requested = []

    def is_below(uniform, y, scale):
        requested.append((y, scale))
        return True

    monkeypatch.setattr(sampling.Uniform, "is_below_exp_minus", is_below)
    proposal = sampling._proposal(gamma_squared)
    tables, (width, _) = proposal.envelope, layout(gamma_squared)
    part_width = width * tables.tail_width
    content = b"\x00" * 8 * (part // 64) + (3 << part % 64 & 2**64 - 1).to_bytes(8, "little")
    samples = []
    for offset in (0, part_width - 1, 2**64 - part_width):
        stream = Stream(content + offset.to_bytes(8, "little"))
        x, is_accepted = sampling._tail_candidate(is_right, proposal, stream)
        assert is_accepted
        assert stream.position == len(stream.content)
        samples.append(x if is_right else ~x)
    first = tables.n_blocks * width + part * part_width  # next to the columns or the part before
    assert samples == [first, first + part_width - 1, first]
    assert abs(x) < 2**61

    y, scale = requested[-1]
    assert y == Fraction(x * x) / (2 * gamma_squared)
    proposed = Fraction(1, 2**16 * 2**8 * 2 ** (part + 1) * part_width)
    assert proposed * scale == Fraction(tables.slots_at_zero, 2**16 * width)


@pytest.mark.parametrize(("word", "sign"), [(2**16 - 2, 1), (2**16 - 1, -1)])
def test_a_tail_slot_counts_in_one_of_256_cases(word, sign):
    gamma_squared = Fraction(103, 10)
    proposal = sampling._proposal(gamma_squared)
    tables = proposal.envelope
    distance = tables.n_blocks + 1 * tables.tail_width + 1  # part 1, offset 1
    x = distance if sign > 0 else -distance - 1
    share = 2**8 * 2**2 * tables.tail_width * tables.slots_at_zero * density(x, gamma_squared)
    assert 1e-9 < share < 1
    floor = int(mpmath.floor(share * 2**64))
    for digits, u, expected in (
        (2**24 - 1, floor - 1, [x]),
        (0, floor - 1, [x]),
        (0, floor + 1, []),
        (2**24, None, []),
        (2**32 - 1, None, []),
    ):
        content = word.to_bytes(2, "little") + digits.to_bytes(4, "little")
        if u is not None:
            for number in (2, 2**32 + 1, u):
                content += number.to_bytes(8, "little")
        stream = Stream(content)
        accepted = sampling._accepted_candidates(1, proposal, stream)
        assert accepted.tolist() == expected
        assert stream.position == len(stream.content)


def test_candidates_keep_their_order():
    gamma_squared = Fraction(103, 10)
    tables = sampling._proposal(gamma_squared).envelope
    kept, refused = open_slot(tables, 0, -16), 2**16 - 2
    sure = int(np.flatnonzero(tables.blocks[: tables.n_sure] == 5)[0])
    digits = [0, 2**32 - 1, 0]  # of the three that are not sure
    words = [sure, kept, refused, sure, kept]
    content = candidates(words, [], gamma_squared) + b"".join(
        d.to_bytes(4, "little") for d in digits
    )
    proposal = sampling._proposal(gamma_squared)
    assert sampling._accepted_candidates(5, proposal, Stream(content)).tolist() == [5, -16, 5, -16]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("bits", [0, 31, 32, 96, 500, 2111])
def test_exp_bracket_holds_and_is_tight(bits):
    exponents = [Fraction(0), Fraction(1, 10**30), Fraction(1), Fraction(355, 113), Fraction(20)]
    exponents += [Fraction(10**40 + 1, 10**38), Fraction(1400), Fraction(10**500)]
    with mpmath.workdps(1500):
        for y in exponents:
            density = mpmath.exp(-mpmath.mpf(y.numerator) / y.denominator)
            for scale in (2**bits, 3 * 2**bits, 400 * 2**bits - 1):
                low, high = scaled_exp_bracket(y, scale)
                assert low <= density * scale <= high
                assert high - low <= 2


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_results_do_not_depend_on_the_callers_numeric_settings(gamma_squared):
    def draws():
        with_exact_path = scaled_exp_bracket(Fraction(5, 8), 2**200)
        content = content_of_open_slots(200, gamma_squared)
        proposal = sampling._proposal(gamma_squared)
        return with_exact_path, sampling._accepted_candidates(
            200, proposal, Stream(content)
        ).tolist()

    expected = draws()
    narrow = decimal.Context(prec=3, rounding=decimal.ROUND_UP)
    with decimal.localcontext(narrow), np.errstate(all="raise"):
        assert draws() == expected
