"""Measurement and answers of small trees, however they are cut: every number once, as planned."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rpexplore.data.frames import FrameSource
from rpexplore.releases import area_measurement, area_parts
from rpexplore.releases.area_measurement import MeasuredAnswers, measure_areas
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.measurement_file import Measured
from tests.releases.area_plans import OTHERS, PLANS, RECORDS, ROWS, TREE
from tests.support.area_trees import incidence

CUTS = {"whole": (10**6, 10**6), "parts": (12, 10**6), "passes": (12, 1)}
# Every plan in the finest way, and one plan in every way.
BY_DAY = [*((name, "passes") for name in PLANS), ("in bases", "whole"), ("in bases", "parts")]
BY_NIGHT = [(name, cut) for name in PLANS for cut in CUTS if (name, cut) not in BY_DAY]


@pytest.fixture(
    params=[*BY_DAY, *(pytest.param(each, marks=pytest.mark.nightly) for each in BY_NIGHT)],
    ids=" ".join,
)
def parts(request, monkeypatch):
    name, cut = request.param
    monkeypatch.setattr(area_parts, "PART_NUMBERS", CUTS[cut][0])
    monkeypatch.setattr(area_parts, "PART_CELLS", CUTS[cut][1])
    found = AreaParts(PLANS[name])
    assert found.parts
    return found


def measured(parts):
    """All that is measured, in the order of the parts."""
    source, pieces = FrameSource(pd.DataFrame(RECORDS), name="records"), []
    for number, part in enumerate(parts.parts):
        counts = source.count(OTHERS, part.tables, areas=part.areas)
        pieces += list(measure_areas(parts, number, counts))
        assert sum(map(len, pieces)) == parts.starts[len(parts.widths) * (number + 1)]
    return np.concatenate(pieces)


def exact_tables(attributes):
    """The exact table of each area, [n_areas, …]."""
    shape = [int(OTHERS.sizes[index]) for index in attributes]
    names, cells = [OTHERS.names[index] for index in attributes], np.zeros((len(ROWS), *shape), int)
    undivided = np.flatnonzero(TREE.n_parts == 0).tolist()
    for record in RECORDS:
        path = [code for name in TREE.levels[1:] if (code := record[name]) is not None]
        cells[(undivided.index(TREE.find(path)), *(record[name] for name in names))] += 1
    return np.tensordot(incidence(TREE).astype(int), cells, axes=1)


@pytest.mark.by_day(1)
def test_every_table_of_every_area_is_exact_without_noise(parts, monkeypatch, tmp_path):
    monkeypatch.setattr(area_measurement, "discrete_gaussian", lambda n, _: np.zeros(n, int))
    others = [7] * 11  # of a part of the plan before
    write(tmp_path, np.append(others, measured(parts)))
    plan, seen = parts.plan, Counter()
    answers = MeasuredAnswers(parts, Measured(tmp_path, len(others)))
    for part in range(len(parts.areas)):
        of_part = answers.of_part(part)
        for row, area in enumerate(of_part.areas.areas.tolist()):
            kind = plan.workload.kinds[area]
            for table in plan.workload.rows[kind].tolist() if kind >= 0 else []:
                attributes = plan.workload.tables.attribute_indices(table)
                (values,) = of_part.tables(table, np.array([row]))
                exact = exact_tables(attributes)[area]
                if not plan.workload.tables.is_marginals and 1 in attributes:  # age, cumulative
                    exact = np.cumsum(exact, axis=attributes.index(1))
                np.testing.assert_allclose(values, exact, atol=1e-8)
                seen[area, table] += 1
    assert len(seen) == plan.workload.n_tables
    assert set(seen.values()) == {1}


@pytest.mark.by_day(4)
def test_every_area_and_residual_gets_the_planned_noise_once(parts, monkeypatch):
    calls = []

    def tagged(size, gamma_squared):
        calls.append((size, gamma_squared))
        return np.full(size, len(calls))

    plan, closure = parts.plan, parts.plan.closure
    monkeypatch.setattr(area_measurement, "discrete_gaussian", lambda n, _: np.zeros(n, int))
    exact = measured(parts)
    monkeypatch.setattr(area_measurement, "discrete_gaussian", tagged)
    numbers = measured(parts) - exact
    assert Counter(numbers.tolist()) == {k + 1: size for k, (size, _) in enumerate(calls)}

    found = {}
    for part in range(len(parts.areas)):
        for profile, width in enumerate(parts.widths.tolist()):
            if (areas := parts.of_profile(part, profile)) is None:
                continue
            start, stop = parts.bounds(part, profile)
            rows = areas.areas[parts.measured_rows(profile, areas)].tolist()
            block = numbers[start:stop].reshape(len(rows), width)
            for columns in parts.columns[profile]:
                for residual in columns.residuals:
                    for area, row in zip(rows, block, strict=True):
                        assert (residual, area) not in found
                        found[residual, area] = set(row[parts.of_residuals[residual][1]].tolist())
    for residual in range(len(closure)):
        scale = np.prod(
            [
                2 ** closure.strategies[index].bits
                if index in closure.strategies
                else int(closure.sizes[index])
                for index in closure.attributes(residual)
            ]
        )
        for area, group in enumerate(plan.groups.of_area.tolist()):
            variance = plan.exact_variance(residual, group)
            assert (variance is None) == ((residual, area) not in found)
            if variance is not None:
                (call,) = found[residual, area]
                assert calls[call - 1][1] == variance * Fraction(int(scale)) ** 2


def write(folder: Path, numbers: np.ndarray) -> None:
    (folder / "run").mkdir(exist_ok=True)
    numbers.astype("<i8").tofile(folder / "run/measured.int64")
