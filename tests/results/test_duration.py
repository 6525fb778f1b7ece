"""How long post-processing takes: roughly, and in words that say no more."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.results import duration
from rpexplore.results.duration import (
    Speed,
    measured_speed,
    nonnegative_seconds,
    rough_duration,
    smooth_seconds,
    writing_seconds,
)
from rpexplore.results.estimates.shrinkage import smooth
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.unbiased import Estimates
from tests.support.processor_time import slowness


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Ten attributes of four values and one of a single value, all tables up to two."""
    folder = tmp_path_factory.mktemp("released")
    domain = rp.Domain.from_sizes({f"a{i}": 4 for i in range(10)} | {"one": 1})
    rows = {name: [i % domain[name].size for i in range(40)] for name in domain.names}
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    workload = rp.Workload.all_up_to(domain, 2)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    return release(plan, folder / "records.csv", folder / "out").part("tables")


def test_the_estimate_goes_by_the_tables_that_are_in_no_other(released):
    # 45 tables of two attributes with four values, four subsets and 16 cells each; 100 rounds.
    speed = Speed(per_subset=0.001, per_cell=0.0001)
    searching = 100 * 45 * 4 * (0.001 + 16 * 0.0001)
    writing = writing_seconds(released)
    assert nonnegative_seconds(released, speed) == pytest.approx(writing + searching)


@pytest.fixture
def on_processor_time(monkeypatch) -> Iterator[None]:
    """This machine's speed, tried out by a clock that stands while others have the processor."""
    monkeypatch.setattr(duration, "time", SimpleNamespace(perf_counter=time.process_time))
    measured_speed.cache_clear()
    yield
    measured_speed.cache_clear()


@pytest.mark.nightly
@pytest.mark.usefixtures("on_processor_time")
def test_the_estimate_is_of_the_order_of_what_it_takes(released, tmp_path):
    told = nonnegative_seconds(released)
    start = time.process_time()
    postprocess(released, tmp_path / "out", method="nonnegative")
    took = time.process_time() - start
    assert took / 10 < told * slowness()
    assert told < 10 * took + 5


def test_the_estimate_for_smooth_tables_is_of_the_order_of_what_they_take(released):
    told = (smooth_seconds(released) - writing_seconds(released)) / 2  # for the errors as long
    estimates = Estimates.of(released)
    assert smooth_seconds(estimates) == smooth_seconds(released)
    start = time.process_time()
    smooth(estimates)
    took = time.process_time() - start
    assert took / 10 < told * slowness()
    assert told < 10 * took


def test_this_machine_is_tried_out_once():
    speed = measured_speed()
    assert speed.per_subset > 0
    assert speed.per_cell >= 0
    assert measured_speed() is speed


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a few seconds"),
        (31, "about half a minute"),
        (59.7, "about a minute"),
        (1700, "about half an hour"),
        (10**6, "many hours"),
    ],
)
def test_words_promise_no_more_than_is_known(seconds, words):
    assert rough_duration(seconds) == words
