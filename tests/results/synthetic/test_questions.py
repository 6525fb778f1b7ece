"""Questions that a table holds are answered from it, others by a model, or refused."""

import shutil
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import DomainError, ReleaseError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic import questions as module
from rpexplore.results.synthetic.questions import ModelAnswer, Questions
from rpexplore.results.unbiased import Estimates
from tests.support.samples import FOLDER, coded

SIZES = (4, 3, 2, 5)
N = 20_000
DOMAIN = rp.Domain(
    (
        *(rp.Attribute(f"a{i}", rp.Integers(0, size - 1)) for i, size in enumerate(SIZES)),
        rp.Attribute("in no table", rp.Categories(("x", "y"))),
    ),
    [{"a0": "3", "a1": "0"}],
)


def pairwise() -> np.ndarray:
    """A distribution whose dependence is of pairs, but for a0=3 with a1=0, which is impossible."""
    rng = np.random.default_rng(4)
    logarithms = np.zeros(SIZES)
    for pair in combinations(range(len(SIZES)), 2):
        shape = [size if i in pair else 1 for i, size in enumerate(SIZES)]
        logarithms = logarithms + rng.normal(0, 0.8, shape)
    full = np.exp(logarithms)
    full[3, 0] = 0
    return full / full.sum()


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_POPULATION", 20_000)
        patch.setattr(module, "_QUESTIONS", 100)
        yield


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> TableRelease:
    """All two-way tables of a0 to a3, with little noise."""
    folder = tmp_path_factory.mktemp("questions")
    counts = np.rint(pairwise() * N).astype(int)
    rows = np.repeat(np.indices(SIZES).reshape(len(SIZES), -1).T, counts.ravel(), axis=0)
    records = pd.DataFrame(rows, columns=DOMAIN.names[:4]).assign(**{"in no table": "x"})
    records.to_csv(folder / "records.csv", index=False)
    tables = list(combinations(DOMAIN.names[:4], 2))
    workload = rp.Workload.of(DOMAIN, tables)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="20"))
    return release(plan, folder / "records.csv", folder / "out").part("tables")


@pytest.fixture(scope="module")
def questions(released) -> Questions:
    return Questions(released)


def test_what_a_table_holds_is_answered_from_it(questions, released):
    answer = questions.answer("a0=0..1 a3=2")
    assert answer == released.answer(where={"a0": [1, 1, 0, 0], "a3": [0, 0, 1, 0, 0]})
    assert answer.basis == "from the tables"
    assert not isinstance(answer, ModelAnswer)
    # All values of an attribute are no condition.
    assert questions.answer("a0=0..1 a1=0..2 a3=2") == answer
    assert questions._model is None  # nothing was fitted for it


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a0=0..1 a1=1 a2=0", np.s_[:2, 1, 0]),
        ("a0=1..2 a2=1 a3=1,4", np.s_[1:3, :, 1, [1, 4]]),
        ("a0=0 a1=1..2 a2=0 a3=2..", np.s_[0, 1:, 0, 2:]),
    ],
)
def test_a_model_answers_what_the_distribution_of_pairs_has(questions, text, cells):
    """Its counts are those of the only distribution with these pairs and no other dependence.

    The population is of as many records as the release, so that they differ by less than √count.
    """
    full = pairwise()
    true = N * full[cells].sum()
    answer = questions.answer(text)
    assert isinstance(answer, ModelAnswer)
    assert answer.basis == "by a model"
    assert abs(answer.value - true) < 3 * np.sqrt(true)
    assert abs(answer.value - true) < 3.5 * answer.standard_error
    assert questions.answer(text) == answer
    # Without the pairs the count is another one.
    even = np.ones(())
    for axis in range(len(SIZES)):
        rest = tuple(other for other in range(len(SIZES)) if other != axis)
        even = np.multiply.outer(even, full.sum(axis=rest))
    assert abs(N * even[cells].sum() - true) > 3 * np.sqrt(true)


def test_what_cannot_be_is_0(questions):
    answer = questions.answer("a0=3 a1=0 a2=1")
    assert (answer.value, answer.lower_95, answer.upper_95) == (0, 0, 0)
    assert questions.answer("a0=2..3 a1=0 a2=1").value > 0


def test_the_interval_holds_the_counts_that_are_near_by_their_own_errors():
    answer = ModelAnswer(50.0, 10.0)
    for bound in (answer.lower_95, answer.upper_95):
        own_error = 10 * (bound / 50) ** 0.5
        assert abs(bound - 50) == pytest.approx(1.959964 * own_error, rel=1e-4)
    assert ModelAnswer(0.0, 2.0).lower_95 == 0


def test_what_has_no_meaning_is_refused(questions, released, tmp_path):
    with pytest.raises(WorkloadError, match="'in no table' is in no table of the release"):
        questions.answer({"a0": "0", "in no table": "x"})
    with pytest.raises(WorkloadError, match="a 0 or 1 for each value"):
        questions.answer({"a0": "0", "a1": "1", "a2": [0.5, 1]})
    with pytest.raises(DomainError, match="question 'a0=0 a0=1' names 'a0' twice"):
        questions.answer("a0=0 a0=1")
    estimates = Estimates.of(released)
    ones = [subset for subset in estimates.contributions if len(subset) < 2]
    alone = replace(
        estimates,
        tables=tuple(ones[1:]),
        contributions={subset: estimates.contributions[subset] for subset in ones},
        variances={subset: estimates.variances[subset] for subset in ones},
    )
    with pytest.raises(ReleaseError, match="answer in its place: all tables are of one attribute"):
        Questions(alone).answer("a0=0 a1=1")
    postprocess(released, tmp_path / "whole", method=None, rounded=True)
    with pytest.raises(ReleaseError, match="unbiased tables are needed"):
        Questions(ProcessedTables.load(tmp_path / "whole"))


@pytest.mark.nightly
def test_intervals_hold_the_counts_of_random_questions(tmp_path, monkeypatch):
    """Questions over 3 to 5 attributes of the household sample, of which all pairs were released.

    Drawn by other rules than those that are rehearsed.
    """
    monkeypatch.setattr(module, "_POPULATION", 100_000)
    monkeypatch.setattr(module, "_QUESTIONS", 250)
    domain, codes = coded("household")
    workload = rp.Workload.all_up_to(domain, 2)
    budget = rp.Budget(epsilon="1", delta="1e-9")
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)

    records = shutil.copy(FOLDER / "household.csv", tmp_path)  # a ledger comes to lie beside them
    asked = Questions(release(plan, records, tmp_path / "out").part("tables"))
    rng, held = np.random.default_rng(7), []
    while len(held) < 300:
        chosen = np.sort(rng.choice(len(domain), rng.integers(3, 6), replace=False))
        where, met = {}, np.ones(len(codes), bool)
        for index in chosen:
            size = domain.attributes[index].size
            first, last = np.sort(rng.integers(0, size, 2))
            within = np.zeros(size)
            within[first : last + 1] = 1
            where[domain.names[index]] = within
            met &= within[codes[:, index]] > 0
        if met.sum() >= 50:
            answer = asked.answer(where)
            held.append(answer.lower_95 <= met.sum() <= answer.upper_95)
    assert np.mean(held) >= 0.9
