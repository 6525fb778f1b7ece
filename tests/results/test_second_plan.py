"""Weights of a second plan from a first release: by hand, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.estimation.table_map import TableMap
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.second_plan import weights_from_release
from rpexplore.results.unbiased import Estimates
from tests.results.test_smooth import closed

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 2, "one": 1, "c": 2})


def estimates(counts, tables) -> Estimates:
    """Released counts of some tables with next to no noise."""
    family = closed(*({i for i in table if i != 2} for table in tables))
    family = [tuple(subset) for subset in family]
    maps = TableMap(family, DOMAIN.sizes, {})
    contributions = {
        subset: maps.decomposed(subset, counts.sum(axis=tuple({0, 1, 2, 3} - {*subset})))
        for subset in family
    }
    source = MeasurementSource("first", "1a2b", rho=1, plan_sha256="f")
    return Estimates(DOMAIN, tables, contributions, dict.fromkeys(family, 1e-6), {}, (source,))


# (a, b) is [[400, 100], [100, 400]]: 150 from 250 in each cell. c is independent of both.
COUNTS = np.multiply.outer([[400, 100], [100, 400]], [[0.3, 0.7]])


def test_distances_are_those_from_the_product_of_margins():
    first = estimates(COUNTS, ((0, 1, 2), (0, 3), (0, 1, 3)))
    budget = rp.Budget(rho="0.9", max_records_per_person=3)
    weights = weights_from_release(first, DOMAIN, budget)
    assert (weights.rho, weights.records) == (pytest.approx(0.1), 1000)
    assert weights.pairs.releases == ("1a2b",)
    assert [pair[:2] for pair in weights.pairs.pairs] == [(0, 1), (0, 3), (1, 3)]
    distances = [distance for *_, distance in weights.pairs.pairs]
    assert distances == pytest.approx([0.6, 0, 0], abs=1e-3)


def test_pairs_of_levels_are_left_out():
    """A second plan knows the attributes of its codebook by their places there."""
    a, *others = rp.Domain.from_sizes({"a": 3, "b": 2}).attributes
    known = rp.Domain((replace(a, levels=(Level("half", ("x", "x", "y")),)), *others)).with_levels
    tables = ((0, 1), (1, 2))
    contributions = {
        subset: np.zeros([known.attributes[index].size for index in subset])
        for subset in ((), (0,), (1,), (2,), (0, 1), (1, 2))
    }
    contributions[()] = np.array(100.0)
    variances = dict.fromkeys(contributions, 1e-6)
    source = MeasurementSource("first", "1a2b", rho=1, plan_sha256="f")
    first = Estimates(known, tables, contributions, variances, {}, (source,))
    pairs = weights_from_release(first, known.of_records, rp.Budget(rho=1)).pairs
    assert [pair[:2] for pair in pairs.pairs] == [(0, 1)]


@pytest.mark.parametrize(
    ("tables", "domain", "message"),
    [
        (((0,), (1,)), DOMAIN, "shows no pair of attributes"),
        (((0, 1),), rp.Domain.from_sizes({"a": 2, "b": 2}), "have different attributes.*plan with"),
        (
            ((0, 1),),
            rp.Domain.from_sizes({"a": 2, "b": 3, "one": 1, "c": 2}),
            "have different values of 'b'",
        ),
    ],
)
def test_what_shows_nothing_of_the_plans_pairs_is_refused(tables, domain, message):
    with pytest.raises(WorkloadError, match=message):
        weights_from_release(estimates(COUNTS, tables), domain, rp.Budget(rho=1))
