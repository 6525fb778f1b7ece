"""Synthetic records with exact totals: these are met, by the fewest changes, and said."""

import json

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.results.synthetic import population
from rpexplore.results.synthetic.exact_margins import ExactMargin, in_order, with_exact_margins
from rpexplore.results.synthetic.impossible import Impossible
from rpexplore.results.synthetic.records_folder import synthesize

SIZES = (3, 2, 4, 2)
ANY = Impossible(SIZES, ())


def records(seed: int, n: int = 500) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, SIZES, size=(n, 4)).astype(np.int16)


def margin_of(codes: np.ndarray, *attributes: int) -> ExactMargin:
    counts = np.zeros([SIZES[index] for index in attributes], dtype=np.int64)
    np.add.at(counts, tuple(codes[:, index] for index in attributes), 1)
    return ExactMargin(attributes, counts)


@pytest.mark.parametrize(
    "totals",
    [[(0, 1)], [(0,), (1, 2)], [(0, 1), (1, 2), (2, 3)], [(0, 1, 2, 3)]],
    ids=["one", "apart", "a chain", "all"],
)
def test_totals_are_met_and_no_more_records_are_changed_than_must_be(totals):
    codes, true = records(1), records(2)
    margins = in_order([margin_of(true, *total) for total in totals])
    assert len(margins) == len(totals)
    fitted = with_exact_margins(codes, margins, ANY, b"seed")
    for margin in margins:
        assert not np.any(margin.missing(fitted))
    changed = int(np.count_nonzero(np.any(fitted != codes, axis=1)))
    least = [int(np.abs(margin.missing(codes)).sum()) // 2 for margin in margins]
    assert max(least) <= changed <= sum(least)
    untouched = set(range(4)) - {index for total in totals for index in total}
    assert all(np.array_equal(fitted[:, index], codes[:, index]) for index in untouched)
    assert np.array_equal(fitted, with_exact_margins(codes, margins, ANY, b"seed"))


def test_of_a_circle_one_total_is_left_out():
    true = records(2)
    circle = [margin_of(true, *total) for total in ((0, 1), (1, 2), (0, 2))]
    assert [margin.attributes for margin in in_order(circle)] == [(0, 1), (0, 2)]


def test_no_record_becomes_impossible_and_what_is_off_is_known():
    never = ({0: np.array([True, False, False]), 1: np.array([True, False])},)
    impossible, codes = Impossible(SIZES, never), records(1)
    codes = codes[~impossible.are_met(codes)]
    wanted = margin_of(codes, 0)
    codes[codes[:, 0] == 0, 0] = 1  # those with 1 = 0 among them cannot go back
    fitted = with_exact_margins(codes, [wanted], impossible, b"seed")
    assert not np.any(impossible.are_met(fitted))
    assert not np.any(wanted.missing(fitted))
    alone = margin_of(codes, 0, 1)
    alone.counts[0, 0], alone.counts[1, 0] = 5, alone.counts[1, 0] - 5
    fitted = with_exact_margins(codes, [alone], impossible, b"seed")
    assert np.abs(alone.missing(fitted)).sum() == 10


def test_records_of_a_release_have_its_exact_totals(tmp_path, monkeypatch):
    monkeypatch.setattr(population, "_ROUNDS_OF_PART", 5)
    monkeypatch.setattr(population, "_FEWEST", 500)
    domain = rp.Domain.from_sizes({"state": 3, "sex": 2, "age": 4, "work": 2})
    data = pd.DataFrame(records(3), columns=domain.names)
    data.to_csv(tmp_path / "people.csv", index=False)
    tables = rp.Workload.all_up_to(domain, 2)
    budget = rp.Budget(rho="0.1", exact=[("state", "sex"), "age"])
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget)
    release = rp.release(plan, tmp_path / "people.csv", tmp_path / "out")
    made = synthesize(release, tmp_path / "records")
    drawn = made.records()
    for names in (["state", "sex"], ["age"]):
        assert drawn.groupby(names).size().tolist() == data.groupby(names).size().tolist()
    assert "The records have the exact totals of state × sex and age." in made.facts
    assert "exact totals of state" in (tmp_path / "records" / "README.md").read_text()
    manifest = json.loads((tmp_path / "records" / "manifest.json").read_text())
    assert manifest["kept"] == [[["state", "sex"], 0], [["age"], 0]]
    compared = made.comparison.set_index("table")
    assert compared.loc["age", ["released_error", "ratio"]].tolist() == [0, 1]
    assert compared.loc["age", "cells_outside_interval"] == 0
    others = synthesize(release, tmp_path / "fewer", rows=100)
    assert others.comparison.set_index("table").loc["age", "ratio"] == np.inf
    assert "kept" not in others.manifest
