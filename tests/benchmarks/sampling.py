"""The noise: draws a second, beside OpenDP in the same run, and what a small call costs.

Cases of `tests.benchmarks.run`. Speeds on one core are draws per second of the drawing thread's
own time, the system's included, so that other programs on the computer take no part; two threads
are timed by the clock. Best of three.
"""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import opendp.prelude as dp

from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from tests.benchmarks.measure import Row, best_of_three, process_seconds

SCALES = (10, 100, 1_000, 10_000, 1_000_000)
_DRAWS, _OPENDP_DRAWS = 2_000_000, 20_000
_CALLS, _CELLS = 2_000, 100


def gamma_squared(scale: int) -> Fraction:
    return Fraction(scale) ** 2 + Fraction(1, 3)  # no square, like most in a release


def speed_of_noise() -> list[Row]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    zeros = [0] * _OPENDP_DRAWS
    rows: list[Row] = []
    for scale in SCALES:
        ours = process_seconds(
            lambda of=scale: discrete_gaussian(_DRAWS, gamma_squared(of)), time.thread_time
        )
        measurement = dp.m.make_gaussian(*space, scale=float(scale))
        theirs = process_seconds(lambda add_noise=measurement: add_noise(zeros), time.thread_time)
        rows += [
            (
                f"noise of scale {scale:,}, million draws/s on one core",
                _DRAWS / ours / 1e6,
                ">=",
                3,
            ),
            ("  OpenDP", _OPENDP_DRAWS / theirs / 1e6, ">=", 0),
        ]
    return rows


def noise_in_two_threads() -> list[Row]:
    with ThreadPoolExecutor(2) as pool:
        seconds, _ = best_of_three(
            lambda _: list(pool.map(discrete_gaussian, [_DRAWS] * 2, [gamma_squared(1_000)] * 2))
        )
    return [
        (
            "noise of scale 1,000, million draws/s in two threads",
            2 * _DRAWS / seconds / 1e6,
            ">=",
            6,
        )
    ]


def noise_of_small_tables() -> list[Row]:
    numbers = random.Random("small tables")
    scales = [Fraction(numbers.uniform(100, 10**8)) for _ in range(_CALLS)]
    seconds = process_seconds(
        lambda: [discrete_gaussian(_CELLS, scale) for scale in scales], time.thread_time
    )
    return [(f"noise of {_CELLS} cells, microseconds", 1e6 * seconds / _CALLS, "<=", 100)]


CASES = (speed_of_noise, noise_in_two_threads, noise_of_small_tables)
