"""Work in threads: results in order, failures in their place, nothing left going."""

import os
import subprocess
import sys
import threading
import time
from itertools import count

import pytest

from rpexplore.common.processes import in_order, workers


def test_results_are_in_the_order_of_the_items():
    def slow_at_first(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0)
        return item * item

    assert list(in_order(slow_at_first, range(50))) == [item * item for item in range(50)]
    assert list(in_order(slow_at_first, [])) == []


def test_few_items_are_taken_ahead():
    taken = []

    def items():
        for item in count():
            taken.append(item)
            yield item

    results = in_order(lambda item: item, items())
    for _ in range(10):
        next(results)
    assert len(taken) <= 10 + 2 * workers()
    results.close()


def test_a_failure_is_raised_in_its_place():
    def fails(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return item

    results = in_order(fails, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_when_nobody_takes_results_nothing_goes_on():
    begun, lock = [], threading.Lock()

    def note(item: int) -> int:
        with lock:
            begun.append(item)
        time.sleep(0.01)
        return item

    results = in_order(note, range(1000))
    next(results)
    results.close()
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) == after < 20


def test_linear_algebra_that_is_loaded_later_has_one_thread_too():
    code = """
from threadpoolctl import threadpool_info
from rpexplore.common.processes import one_thread

def threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

import numpy
with one_thread():
    n_before = len(threads())
with one_thread(with_scipy=True):
    assert len(threads()) > n_before and set(threads()) == {1}, threads()
with one_thread():
    assert set(threads()) == {1}, threads()
assert set(threads()) == {2}, threads()

# Another thread's block ends within one of here, and takes its limit with it.
import threading
is_open, may_end = threading.Event(), threading.Event()

def other():
    with one_thread():
        is_open.set()
        may_end.wait()

beside = threading.Thread(target=other)
beside.start()
is_open.wait()
with one_thread():
    may_end.set()
    beside.join()
    with one_thread():
        assert set(threads()) == {1}, threads()
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
