"""Deterministic tests of the sampler: decisions, injected bytes, refusals.

The distribution is tested in tests/statistical/test_discrete_gaussian.py.
"""

import decimal
import inspect
import math
import os
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from rpexplore import sampling
from rpexplore.errors import ReleaseError
from rpexplore.sampling import LARGEST_GAMMA, discrete_gaussian

SCALES = [
    Fraction(1, 10**400),
    Fraction(1, 20),
    Fraction(1),
    Fraction(103, 10),
    Fraction(123456789012, 10**12) * 97**2,
    Fraction(10**6) + Fraction(1, 3),
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


def accepted_by_definition(block: bytes, gamma_squared: Fraction) -> list[int]:
    """CKS Algorithms 2 and 3 on one candidate at a time, with 60-digit arithmetic."""
    rows = len(block) // 16
    words = [int.from_bytes(block[8 * i : 8 * i + 8], "little") for i in range(2 * rows)]
    g = mpmath.mpf(gamma_squared.numerator) / gamma_squared.denominator
    t = int(mpmath.floor(mpmath.sqrt(g))) + 1
    accepted = []
    for first, second in zip(words[:rows], words[rows:], strict=True):
        if first >= 2**64 // t * t:
            continue
        sign, v_digits, digits = second & 1, second >> 1 & (2**31 - 1), second >> 32
        u, v = first % t, 0
        while v_digits < mpmath.exp(-(v + 1)) * 2**31:
            v += 1
        y = u + t * v
        if sign and y == 0:
            continue
        probability = mpmath.exp(-mpmath.mpf(u) / t) * mpmath.exp(-((y - g / t) ** 2) / (2 * g))
        if digits < probability * 2**32:
            accepted.append(-y if sign else y)
    return accepted


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_candidates_are_decided_as_the_algorithm_says(gamma_squared):
    stream = Stream.repeatable("candidates")
    accepted = sampling._accepted_candidates(500, sampling._proposal(gamma_squared), stream)
    assert 100 < len(accepted) < 300  # acceptance is between 0.30 and 0.48
    assert accepted.tolist() == accepted_by_definition(stream.content[:8000], gamma_squared)


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_the_exact_path_decides_as_the_fast_path_does(gamma_squared, monkeypatch):
    proposal = sampling._proposal(gamma_squared)
    fast = sampling._accepted_candidates(300, proposal, Stream.repeatable("paths"))
    never_decide(monkeypatch)
    stream = Stream.repeatable("paths")
    exact = sampling._accepted_candidates(300, proposal, stream)
    assert exact.tolist() == fast.tolist()
    assert stream.position == 16 * 300  # the same digits sufficed


def never_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fast path answer nonsense and certify none of it."""

    def uncertain_geometric(digits):
        return np.full(len(digits), 77), np.zeros(len(digits), dtype=bool)

    def uncertain_acceptance(digits, u, y, proposal):
        return digits % 2 == 0, np.zeros(len(digits), dtype=bool)

    monkeypatch.setattr(sampling, "_fast_geometric", uncertain_geometric)
    monkeypatch.setattr(sampling, "_fast_acceptance", uncertain_acceptance)


def test_geometric_is_undecided_exactly_at_the_thresholds():
    for k in range(1, 21):
        floor = int(mpmath.floor(mpmath.exp(-k) * 2**31))
        v, is_decided = sampling._fast_geometric(np.array([floor - 1, floor, floor + 1]))
        assert is_decided.tolist() == [True, False, True]
        assert (v[0], v[2]) == (k, k - 1)
    # exp(-21) * 2^31 = 1.63, and all further thresholds are below 1
    v, is_decided = sampling._fast_geometric(np.array([0, 1, 2, 2**31 - 1]))
    assert is_decided.tolist() == [False, False, True, True]
    assert (v[2], v[3]) == (20, 0)


@pytest.mark.parametrize("k", [1, 2, 7, 20])
def test_further_digits_decide_the_geometric(k):
    floor = int(mpmath.floor(mpmath.exp(-k) * 2**31))
    for following, expected in ((b"\x00" * 8, k), (b"\xff" * 8, k - 1)):
        uniform = sampling._Uniform(floor, 31, Stream(following))
        assert sampling._exact_geometric(uniform) == expected
        assert uniform.bits == 31 + 64


def test_further_digits_decide_the_acceptance():
    # Scale 1 has t = 2; U = 1, V = 0 gives Y = 1 and the exponent 1/2 + (1 - 1/2)^2 / 2 = 5/8.
    digits = int(mpmath.floor(mpmath.exp(mpmath.mpf(-5) / 8) * 2**32))
    first = (1).to_bytes(8, "little")
    for change, following, expected in (
        (-1, b"", [1]),
        (0, b"\x00" * 8, [1]),
        (0, b"\xff" * 8, []),
        (+1, b"", []),
    ):
        # sign 0 and geometric digits 2^31 - 1, which mean V = 0
        second = ((digits + change) << 32 | 2**32 - 2).to_bytes(8, "little")
        stream = Stream(first + second + following)
        accepted = sampling._accepted_candidates(1, sampling._proposal(Fraction(1)), stream)
        assert accepted.tolist() == expected
        assert stream.position == len(stream.content)


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_every_decided_acceptance_is_right(gamma_squared):
    # Digits on both sides of the probability, as near as they come, for Y over the whole range.
    proposal = sampling._proposal(gamma_squared)
    g, t = gamma_squared, proposal.t
    numbers = random.Random("acceptance")
    for _ in range(300):
        u = numbers.randrange(t)
        y = u + t * numbers.choice([0, 0, 0, 1, 1, 2, 3, 5, 8, 21, 377])
        exponent = Fraction(u, t) + (y - g / t) ** 2 / (2 * g)
        probability = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        scaled = probability * 2**32
        floor = int(mpmath.floor(scaled))
        digits = np.array([d for d in range(floor - 2, floor + 3) if 0 <= d < 2**32])
        count = len(digits)
        is_below, is_decided = sampling._fast_acceptance(
            digits, np.full(count, u), np.full(count, y), proposal
        )
        for d, below, decided in zip(digits.tolist(), is_below, is_decided, strict=True):
            if decided:
                assert below == (d + 1 <= scaled) == (d < scaled)
            else:  # the number d + 0.ddd may lie on either side, or just within the margin
                assert d - 2**-7 <= scaled <= d + 1 + 2**-7


def test_float_probabilities_are_as_near_as_the_margin_claims():
    numbers = random.Random("margin")
    for gamma_squared in SCALES:
        proposal = sampling._proposal(gamma_squared)
        for _ in range(100):
            u = numbers.randrange(proposal.t)
            y = u + proposal.t * numbers.choice([0, 1, 2, 3, 4, 9, 40])
            exponent = sampling._exact_exponent(u, y, proposal)
            exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
            distance = np.float64(y) - proposal.centre
            approximate = np.exp(-(u / proposal.t + distance * distance * proposal.steepness))
            assert abs(exact - mpmath.mpf(float(approximate))) < 2.0**-49 + 2.0**-52


@pytest.mark.parametrize("bits", [0, 31, 32, 96, 500, 2111])
def test_exp_bracket_holds_and_is_tight(bits):
    exponents = [Fraction(0), Fraction(1, 10**30), Fraction(1), Fraction(355, 113), Fraction(20)]
    exponents += [Fraction(10**40 + 1, 10**38), Fraction(1400), Fraction(10**500)]
    with mpmath.workdps(1500):
        for x in exponents:
            low, high = sampling._scaled_exp_bracket(x, bits)
            exact = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
            assert low <= exact <= high
            assert high - low <= 2


def test_results_do_not_depend_on_the_callers_numeric_settings():
    def draws():
        with_exact_path = sampling._scaled_exp_bracket(Fraction(5, 8), 200)
        proposal = sampling._proposal(Fraction(1, 10**400))
        return with_exact_path, sampling._accepted_candidates(
            200, proposal, Stream.repeatable("settings")
        ).tolist()

    expected = draws()
    narrow = decimal.Context(prec=3, rounding=decimal.ROUND_UP)
    with decimal.localcontext(narrow), np.errstate(all="raise"):
        assert draws() == expected


def test_samples_are_the_first_accepted_candidates_of_successive_batches(monkeypatch):
    monkeypatch.setattr(sampling, "_rows_to_propose", lambda wanted, acceptance: 16)
    gamma_squared = Fraction(103, 10)
    stream = Stream.repeatable("batches")
    samples = discrete_gaussian(50, gamma_squared, random_bytes=stream)
    expected = []
    for start in range(0, stream.position, 256):
        assert len(expected) < 50  # no batch was drawn in vain
        expected += accepted_by_definition(stream.content[start : start + 256], gamma_squared)
    assert stream.position >= 5 * 256
    assert samples.tolist() == expected[:50]


@pytest.mark.parametrize("gamma_squared", SCALES, ids=float)
def test_batches_are_bounded_and_nearly_always_sufficient(gamma_squared):
    acceptance = sampling._proposal(gamma_squared).acceptance
    assert 0.30 < acceptance < 0.49
    assert sampling._rows_to_propose(10**9, acceptance) == 2**16
    stream = Stream.repeatable("sufficient", 2**22)
    for _ in range(100):
        discrete_gaussian(20, gamma_squared, random_bytes=stream)
    assert stream.calls < 110


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
    assert stream.calls <= 2


def test_large_scales_do_not_overflow():
    gamma_squared = Fraction(LARGEST_GAMMA**2) - Fraction(1, 10**30)
    samples = discrete_gaussian(20_000, gamma_squared)
    assert np.abs(samples).max() < 10 * LARGEST_GAMMA
    assert np.abs(samples).max() > 2 * LARGEST_GAMMA
    # About the smallest uniform number that is not refused, 2^-542, and so the largest V.
    uniform = sampling._Uniform(0, 31, Stream(b"\x00" * 8 * 7 + b"\x02" + b"\x00" * 7))
    assert sampling._exact_geometric(uniform) == 375  # floor(542 log 2)
    assert sampling._proposal(gamma_squared).t * (377 + 1) < 2**55


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


@pytest.mark.parametrize("gamma_squared", [Fraction(1, 2), Fraction(5)])
@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_a_constant_source_is_refused_instead_of_looping(byte, gamma_squared):
    with pytest.raises(ReleaseError, match=r"digits did not decide|in a row were rejected"):
        discrete_gaussian(1, gamma_squared, random_bytes=lambda count: byte * count)
