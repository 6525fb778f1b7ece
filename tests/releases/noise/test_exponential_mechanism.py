"""Deterministic tests of selection: decisions on given bytes, the cost, refusals.

The distribution is tested in tests/statistical/test_exponential_mechanism.py.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.errors import ReleaseError
from rpexplore.releases.noise import exponential_mechanism as module
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho, select
from tests.releases.noise.sampler_bytes import Stream

SCORES = np.array([5, -3, 9, 9, 0, 7, -40], dtype=np.int64)
LARGEST = 2**63


def drawn_by_definition(scores, rate, content: bytes, position: int) -> tuple[int, int]:
    """(index, bytes read), one proposal at a time, with 60-digit arithmetic."""
    mask = 1
    while mask < len(scores):
        mask *= 2
    while True:
        word = int.from_bytes(content[position : position + 4], "little") % mask
        digits = int.from_bytes(content[position + 4 : position + 8], "little")
        position += 8
        if word < len(scores):
            with mpmath.workdps(60):
                y = rate * (max(scores) - scores[word])
                if mpmath.mpf(digits) / 2**32 < mpmath.exp(
                    -mpmath.mpf(y.numerator) / y.denominator
                ):
                    return word, position


@pytest.mark.by_day(7)
@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize(
    ("scores", "epsilon", "sensitivity"),
    [
        (SCORES, Fraction(1), 1),
        (SCORES, Fraction(7, 3), 4),
        (SCORES * 10**15, Fraction(1, 10**15), 2),
        (SCORES, Fraction(1, 10**400), 1),
        (SCORES, Fraction(10**400), 1),
        (np.array([3]), Fraction(1), 1),
        (np.array([-LARGEST, LARGEST - 1, LARGEST - 3, LARGEST - 2]), Fraction(2), 1),
    ],
)
def test_draws_are_decided_as_the_mechanism_says(
    scores, epsilon, sensitivity, is_fast, monkeypatch
):
    monkeypatch.setattr(module, "_MOST_ROWS", 1)  # no proposal is made in vain
    monkeypatch.setattr(module, "_FEWEST_ROWS", 1)
    if not is_fast:  # answers nonsense and certifies none of it

        def undecided(digits, densities):
            return digits % 2 == 0, np.ones(len(digits), dtype=bool)

        monkeypatch.setattr(module, "_fast_acceptance", undecided)
    for run in range(20):
        stream = Stream.repeatable(f"selection {run}")
        selected = select(scores, epsilon, sensitivity, len(scores), random_bytes=stream)
        left, position, expected = dict(enumerate(scores.tolist())), 0, []
        rate = epsilon / (2 * sensitivity)
        while left:
            index, position = drawn_by_definition(
                list(left.values()), rate, stream.content, position
            )
            expected.append(list(left)[index])
            del left[expected[-1]]
        assert selected == expected
        assert stream.position == position


def test_further_digits_decide_what_the_first_leave_open():
    # Two scores, 3 apart, at ε/(2Δ) = 1/2: the worse one is accepted with probability exp(-3/2).
    gaps = np.array([0, 3], dtype=np.uint64)
    densities = np.exp(gaps * -0.5)
    floor = int(mpmath.exp(mpmath.mpf(-3) / 2) * 2**32)
    for digits, following, expected in (
        (floor - 1, b"", [1]),
        (floor, b"\x00" * 8, [1]),
        (floor, b"\xff" * 8, []),
        (floor + 1, b"", []),
    ):
        stream = Stream(b"\x01\x00\x00\x00" + digits.to_bytes(4, "little") + following)
        accepted = module._accepted_proposals(1, gaps, densities, Fraction(1, 2), stream)
        assert accepted.tolist() == expected
        assert stream.position == len(stream.content)


@given(
    gaps=st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=9),
    rate=st.fractions(Fraction(1, 10**30), 10**6).filter(lambda rate: rate > 0),
)
def test_accepting_has_the_probability_that_is_asked_for(gaps, rate):
    """What the exact path compares, and that floats certify nothing else."""
    asked = []

    class Recorded(module.Uniform):
        def is_below_exp_minus(self, y):
            asked.append(y)
            return super().is_below_exp_minus(y)

    of_all = np.array(gaps, dtype=np.uint64)
    densities = np.exp(of_all * -float(rate))
    content = b"".join(i.to_bytes(4, "little") + b"\x12\x34\x56\x78" for i in range(len(gaps)))
    fast, is_open = module._fast_acceptance(np.full(len(gaps), 0x78563412), densities)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Uniform", Recorded)
        patch.setattr(
            module, "_fast_acceptance", lambda digits, p: (digits < 0, np.ones(len(p), dtype=bool))
        )
        accepted = module._accepted_proposals(len(gaps), of_all, densities, rate, Stream(content))
    assert asked == [rate * gap for gap in gaps]
    exact = np.isin(np.arange(len(gaps)), accepted)
    assert (exact == fast)[~is_open].all()


@given(rho=st.fractions(Fraction(1, 10**60), 10**12).filter(lambda rho: rho > 0))
def test_epsilon_is_the_largest_short_one_of_its_cost(rho):
    epsilon = epsilon_of_rho(rho)
    assert epsilon**2 / 8 <= rho
    assert epsilon * (1 + Fraction(1, 10**11)) > 0
    assert (epsilon * (1 + Fraction(1, 10**11))) ** 2 / 8 > rho
    assert 10**60 % epsilon.denominator == 0  # a decimal that can be written down


def test_epsilon_is_the_root_where_there_is_one():
    assert epsilon_of_rho(Fraction(1, 8)) == 1
    assert epsilon_of_rho(Fraction(9, 800)) == Fraction(3, 10)


def test_the_best_of_very_many_is_found_in_time():
    """As many proposals as candidates are expected: 200,000, of which one is ever accepted."""
    scores = np.zeros(200_000, dtype=np.int64)
    scores[123_456] = 10**9
    stream_calls = []

    def counted(count):
        stream_calls.append(count)
        return Stream.repeatable(f"many {len(stream_calls)}", count)(count)

    assert select(scores, Fraction(1, 10), 1, random_bytes=counted) == [123_456]
    assert max(stream_calls) <= 8 * 2**15


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_a_constant_source_is_refused(byte):
    with pytest.raises(ReleaseError, match="same 16 bytes twice"):
        select(SCORES, Fraction(1), 1, random_bytes=lambda count: byte * count)


def test_a_source_of_rejected_proposals_is_refused_instead_of_looping():
    numbers = np.random.default_rng(1)

    def source(count):  # 7 is the one word of three bits that is no index
        words = numbers.integers(0, 2**32, count // 4, dtype=np.uint32)
        return (words | np.uint32(7)).astype("<u4").tobytes()

    with pytest.raises(ReleaseError, match="proposals in a row were rejected"):
        select(SCORES, Fraction(1), 1, random_bytes=source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], Fraction(1), 1), "array of int64, got list"),
        ((SCORES / 2, Fraction(1), 1), "array of int64, got float64"),
        ((SCORES[:0], Fraction(1), 1), r"one number or more, got an array of shape \(0,\)"),
        ((SCORES, 0.5, 1), "epsilon of a selection must be a Fraction, .* got float"),
        ((SCORES, Fraction(0), 1), "epsilon of a selection must be above 0, got 0"),
        ((SCORES, Fraction(1), 0), "sensitivity .* must be an integer of 1 or more, got 0"),
        ((SCORES, Fraction(1), 1.5), "sensitivity .* got 1.5"),
        ((SCORES, Fraction(1), 1, 8), "tables to select must be an integer from 1 to 7, got 8"),
        ((SCORES, Fraction(1), 1, 0), "tables to select .* got 0"),
    ],
)
def test_refuses_what_would_not_be_exact(arguments, message):
    with pytest.raises(ReleaseError, match=message):
        select(*arguments)


def test_refuses_a_cost_that_is_not_positive_or_not_exact():
    with pytest.raises(ReleaseError, match="rho of a selection must be above 0"):
        epsilon_of_rho(Fraction(0))
    with pytest.raises(ReleaseError, match="rho of a selection must be a Fraction"):
        epsilon_of_rho(0.1)


def test_logarithms_of_probabilities_move_by_epsilon_at_most():
    """Bounded range, from which ε²/8 follows: over all moves of three scores by at most Δ."""
    epsilon, sensitivity = 1.5, 2
    moves = np.arange(-sensitivity, sensitivity + 1)
    scores, largest = np.array([4.0, 0.0, 7.0]), 0.0

    def log_shares(q):
        exponents = q * epsilon / (2 * sensitivity)
        return exponents - np.log(np.exp(exponents).sum())

    for change in np.stack(np.meshgrid(moves, moves, moves), axis=-1).reshape(-1, 3):
        ratios = log_shares(scores + change) - log_shares(scores)
        largest = max(largest, ratios.max() - ratios.min())
    assert math.isclose(largest, epsilon)
