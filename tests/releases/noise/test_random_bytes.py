"""The sampler and its source: batches, bytes that are no noise, arguments that are refused."""

import inspect
import math
import os
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.noise import discrete_gaussian as sampling
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian
from tests.releases.noise.sampler_bytes import SCALES, Stream, accepted_by_definition, layout


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


@pytest.mark.parametrize("gamma_squared", [Fraction(2**104), Fraction(10**400)])
def test_refuses_a_scale_that_is_too_large(gamma_squared):
    with pytest.raises(ReleaseError, match=r"below 2\*\*52 .* got gamma_squared of at least 2\*\*"):
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
    uniform = sampling.Uniform(0 if byte == b"\x00" else 2**32 - 1, 32, lambda count: byte * count)
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
