"""Deterministic tests of the sampler: decisions, injected bytes, refusals.

The distribution is tested in tests/statistical/test_discrete_gaussian.py.
"""

import decimal
import inspect
import math
import os
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases import discrete_gaussian as sampling
from rpexplore.releases.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian

SCALES = [
    Fraction(1, 10**400),
    Fraction(1, 20),
    Fraction(1),
    Fraction(103, 10),
    Fraction(123456789012, 10**12) * 97**2,
    Fraction(4097),
    Fraction(10**6) + Fraction(1, 3),
    Fraction(10**10, 7),
    Fraction(10**20),
    Fraction(LARGEST_GAMMA**2 * 10**30 - 1, 10**30),
]


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mpmath.workdps(60):
        yield


class Stream:
    """A finite source of bytes: repeatable pseudorandom ones, or given ones."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position, self.calls = content, 0, 0

    @classmethod
    def repeatable(cls, name: str, length: int = 2**20) -> "Stream":
        return cls(random.Random(name).randbytes(length))

    def __call__(self, count: int) -> bytes:
        block = self.content[self.position : self.position + count]
        self.position += len(block)
        self.calls += 1
        return block


def density(x: int, gamma_squared: Fraction) -> mpmath.mpf:
    exponent = Fraction(x * x) / (2 * gamma_squared)
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def layout(gamma_squared: Fraction) -> tuple[int, int]:
    """(w, bytes of an offset), from gamma alone: gamma / w is in [32, 64) where w is above 1."""
    width = 1
    while width**2 * 64**2 <= gamma_squared:
        width *= 2
    return width, next(n for n in (0, 1, 2, 4, 8) if 256**n >= width)


def candidates(words: list[int], offsets: list[int], gamma_squared: Fraction) -> bytes:
    """What the source must give for these slots and offsets."""
    _, size = layout(gamma_squared)
    given = [word.to_bytes(2, "little") for word in words]
    return b"".join(given + [offset.to_bytes(size, "little") for offset in offsets if size])


def accepted_by_definition(rows: int, content: bytes, gamma_squared: Fraction) -> list[int]:
    """One candidate at a time, with 60-digit arithmetic; without tails and further digits."""
    tables = sampling._proposal(gamma_squared).envelope
    width, size = layout(gamma_squared)
    words = [int.from_bytes(content[2 * i : 2 * i + 2], "little") for i in range(rows)]
    starts = range(2 * rows, (2 + size) * rows, size) if size else [0] * rows
    offsets = [int.from_bytes(content[start : start + size], "little") for start in starts]
    following = content[(2 + size) * rows :]
    accepted = []
    for word, offset in zip(words, offsets, strict=True):
        x = int(tables.blocks[word]) * width + offset % width
        if word < tables.n_sure:
            accepted.append(x)
            continue
        digits, following = int.from_bytes(following[:4], "little"), following[4:]
        height = int(tables.heights[word - tables.n_sure])
        if height + mpmath.mpf(digits) / 2**32 < tables.slots_at_zero * density(x, gamma_squared):
            accepted.append(x)
    return accepted


def content_of_open_slots(rows: int, gamma_squared: Fraction) -> bytes:
    """Random candidates none of which is sure, nor in a tail."""
    numbers = random.Random("open")
    n_sure = sampling._proposal(gamma_squared).envelope.n_sure
    words = [numbers.randrange(n_sure, 2**16 - 2) for _ in range(rows)]
    offsets = [numbers.randrange(256 ** layout(gamma_squared)[1]) for _ in range(rows)]
    return candidates(words, offsets, gamma_squared) + numbers.randbytes(2**16)


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

    monkeypatch.setattr(sampling._Uniform, "is_below_exp_minus", is_below)
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
    assert abs(x) < 2**55

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


@pytest.mark.parametrize("bits", [0, 31, 32, 96, 500, 2111])
def test_exp_bracket_holds_and_is_tight(bits):
    exponents = [Fraction(0), Fraction(1, 10**30), Fraction(1), Fraction(355, 113), Fraction(20)]
    exponents += [Fraction(10**40 + 1, 10**38), Fraction(1400), Fraction(10**500)]
    with mpmath.workdps(1500):
        for y in exponents:
            density = mpmath.exp(-mpmath.mpf(y.numerator) / y.denominator)
            for scale in (2**bits, 3 * 2**bits, 400 * 2**bits - 1):
                low, high = sampling.scaled_exp_bracket(y, scale)
                assert low <= density * scale <= high
                assert high - low <= 2


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_results_do_not_depend_on_the_callers_numeric_settings(gamma_squared):
    def draws():
        with_exact_path = sampling.scaled_exp_bracket(Fraction(5, 8), 2**200)
        content = content_of_open_slots(200, gamma_squared)
        proposal = sampling._proposal(gamma_squared)
        return with_exact_path, sampling._accepted_candidates(
            200, proposal, Stream(content)
        ).tolist()

    expected = draws()
    narrow = decimal.Context(prec=3, rounding=decimal.ROUND_UP)
    with decimal.localcontext(narrow), np.errstate(all="raise"):
        assert draws() == expected


def test_samples_are_the_first_accepted_candidates_of_successive_batches(monkeypatch):
    monkeypatch.setattr(sampling, "_rows_to_propose", lambda wanted, acceptance: 16)
    gamma_squared = Fraction(103, 10)
    stream = Stream.repeatable("batches")
    samples = discrete_gaussian(200, gamma_squared, random_bytes=stream)
    n_sure = sampling._proposal(gamma_squared).envelope.n_sure
    expected, start = [], 0
    while start < stream.position:
        assert len(expected) < 200  # no batch was drawn in vain
        batch = stream.content[start:]
        expected += accepted_by_definition(16, batch, gamma_squared)
        words = np.frombuffer(batch[:32], dtype="<u2")
        start += 32 + 4 * int((words >= n_sure).sum())
    assert start == stream.position > 12 * 32
    assert samples.tolist() == expected[:200]


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_batches_are_bounded_and_nearly_always_sufficient(gamma_squared):
    acceptance = sampling._proposal(gamma_squared).envelope.acceptance
    assert 0.96 < acceptance < 1
    assert sampling._rows_to_propose(10**9, acceptance) == 2**15
    assert sampling._rows_to_propose(1, acceptance) == 16
    requested = []

    def source(count):
        requested.append(count)
        return os.urandom(count)

    for _ in range(100):
        discrete_gaussian(300, gamma_squared, random_bytes=source)
    assert len(requested) < 2 * 110  # for slots with offsets, and for digits
    most_bytes = 2 + layout(gamma_squared)[1]
    assert max(requested) < 340 * most_bytes


def test_the_same_bytes_give_the_same_samples_and_others_do_not():
    def draw(name):
        return discrete_gaussian(200, Fraction(50), random_bytes=Stream.repeatable(name)).tolist()

    assert draw("one") == draw("one")
    assert draw("one") != draw("two")
    assert discrete_gaussian(200, Fraction(50)).tolist() != (
        discrete_gaussian(200, Fraction(50)).tolist()
    )


def test_entropy_comes_from_the_operating_system_and_there_is_no_seed():
    parameters = inspect.signature(discrete_gaussian).parameters
    assert list(parameters) == ["size", "gamma_squared", "random_bytes"]
    assert parameters["random_bytes"].default is os.urandom


@pytest.mark.parametrize("size", [0, 1, 2, 100, np.int64(3), 70_000])
def test_size_and_type_of_the_result(size):
    samples = discrete_gaussian(size, Fraction(7, 3))
    assert samples.shape == (size,)
    assert samples.dtype == np.int64
    assert samples.flags.writeable


def test_entropy_is_fetched_in_few_blocks_and_none_for_nothing():
    stream = Stream.repeatable("blocks")
    discrete_gaussian(0, Fraction(1), random_bytes=stream)
    assert stream.calls == 0
    discrete_gaussian(100, Fraction(1), random_bytes=stream)
    assert stream.calls <= 4


def test_large_scales_do_not_overflow():
    gamma_squared = Fraction(LARGEST_GAMMA**2) - Fraction(1, 10**30)
    samples = discrete_gaussian(20_000, gamma_squared)
    assert np.abs(samples).max() < 10 * LARGEST_GAMMA
    assert np.abs(samples).max() > 2 * LARGEST_GAMMA


def test_numpy_integers_inside_a_fraction_do_not_overflow():
    hidden = Fraction(np.int64(2**62), np.int64(2**20 - 1))
    stream, same = Stream.repeatable("numpy"), Stream.repeatable("numpy")
    samples = discrete_gaussian(100, hidden, random_bytes=stream)
    plain = Fraction(2**62, 2**20 - 1)
    assert samples.tolist() == discrete_gaussian(100, plain, random_bytes=same).tolist()


def test_scales_beyond_floating_point_are_fine():
    assert not discrete_gaussian(1000, Fraction(1, 10**5000)).any()
    many_digits = Fraction(7 * 10**3000 + 1, 10**3000)
    assert math.isclose(discrete_gaussian(20_000, many_digits).std(), math.sqrt(7), rel_tol=0.05)


@pytest.mark.parametrize("size", [-1, 2.5, "3", None])
def test_refuses_a_size_that_is_no_count(size):
    with pytest.raises(ReleaseError, match="integer of 0 or more, got"):
        discrete_gaussian(size, Fraction(1))


@pytest.mark.parametrize("gamma_squared", [0, Fraction(0), Fraction(-1, 3)])
def test_refuses_a_scale_that_is_not_positive(gamma_squared):
    with pytest.raises(ReleaseError, match="must be above 0, got"):
        discrete_gaussian(1, gamma_squared)


@pytest.mark.parametrize("gamma_squared", [1.0, np.float64(2), np.int64(2), "1", None])
def test_refuses_a_scale_that_is_not_exact(gamma_squared):
    with pytest.raises(ReleaseError, match="must be a Fraction"):
        discrete_gaussian(1, gamma_squared)


@pytest.mark.parametrize("gamma_squared", [Fraction(2**92), Fraction(10**400)])
def test_refuses_a_scale_that_is_too_large(gamma_squared):
    with pytest.raises(ReleaseError, match=r"below 2\*\*46 .* got gamma_squared of at least 2\*\*"):
        discrete_gaussian(1, gamma_squared)


def test_a_short_or_exhausted_source_is_refused():
    with pytest.raises(ReleaseError, match="gave 100 bytes where"):
        discrete_gaussian(100, Fraction(1), random_bytes=Stream(b"\x5a" * 100))
    with pytest.raises(ReleaseError, match="gave 0 bytes"):
        discrete_gaussian(1, Fraction(1), random_bytes=lambda count: b"")
    with pytest.raises(ReleaseError, match=r"gave .* bytes"):
        discrete_gaussian(1, Fraction(1), random_bytes=lambda count: bytes(count + 1))


def test_a_failing_source_is_not_hidden():
    def failing(count):
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        discrete_gaussian(1, Fraction(1), random_bytes=failing)


@pytest.mark.parametrize("gamma_squared", [Fraction(1, 2), Fraction(5), Fraction(10**20)])
@pytest.mark.parametrize("byte", [b"\x00", b"\x5a", b"\xff"])
@pytest.mark.parametrize("size", [1, 1000])
def test_a_constant_source_is_refused(byte, gamma_squared, size):
    with pytest.raises(ReleaseError, match="same 16 bytes twice"):
        discrete_gaussian(size, gamma_squared, random_bytes=lambda count: byte * count)


def test_a_source_that_repeats_its_block_is_refused():
    block = random.Random("stuck").randbytes(2**17)
    with pytest.raises(ReleaseError, match="same 16 bytes twice"):
        discrete_gaussian(100_000, Fraction(5), random_bytes=lambda count: block[:count])


def test_a_source_of_rejected_candidates_is_refused_instead_of_looping():
    tables = sampling._proposal(Fraction(5)).envelope
    unused = np.flatnonzero(tables.heights > tables.slots_at_zero) + tables.n_sure
    numbers = random.Random("unused")

    def source(count):
        words = numbers.choices(unused.tolist(), k=count // 2)
        return np.array(words, dtype="<u2").tobytes()

    with pytest.raises(ReleaseError, match="candidates in a row were rejected"):
        discrete_gaussian(1, Fraction(5), random_bytes=source)


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_digits_that_never_decide_are_refused_instead_of_looping(byte):
    # U = 0 against c f(x) - c = 0, where x = 0 and the height is c, and U = 1 against 1.
    uniform = sampling._Uniform(0 if byte == b"\x00" else 2**32 - 1, 32, lambda count: byte * count)
    with pytest.raises(ReleaseError, match="digits did not decide"):
        uniform.is_below_exp_minus(Fraction(0), 800, 800 if byte == b"\x00" else 799)


def test_a_tail_without_end_is_refused_instead_of_looping():
    proposal = sampling._proposal(Fraction(5))
    with pytest.raises(ReleaseError, match="512 binary digits in a row were 0"):
        sampling._tail_candidate(True, proposal, lambda count: b"\x00" * count)


def test_two_threads_draw_as_one_does():
    scales = [Fraction(n * n, 3) for n in range(5, 400, 3)]

    def draw(gamma_squared):
        stream = Stream.repeatable(str(gamma_squared), 4000)
        return discrete_gaussian(300, gamma_squared, random_bytes=stream).tolist()

    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(draw, scales))
    assert at_once == [draw(gamma_squared) for gamma_squared in scales]


def test_memory_is_that_of_the_samples():
    tracemalloc.start()
    try:
        samples = discrete_gaussian(1_000_000, Fraction(LARGEST_GAMMA**2 - 1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < samples.nbytes + 2_000_000
