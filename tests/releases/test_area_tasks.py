"""Parts measured in tasks of a cluster: as in one process, each once, whatever becomes of tasks."""

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.areas import AreaCoder
from rpexplore.data.blocks import maximal
from rpexplore.data.coding import Takers
from rpexplore.data.engines import spark_areas
from rpexplore.data.engines.packing import Layout
from rpexplore.data.engines.session import Request
from rpexplore.data.engines.spark_areas import SHARE, Tasks, taken
from rpexplore.data.frames import FrameSource
from rpexplore.errors import DataError
from rpexplore.releases import area_measurement, area_parts
from rpexplore.releases.area_measurement import measure_areas, tasks_from
from rpexplore.releases.area_parts import AreaParts
from tests.releases.area_plans import OTHERS, PLANS, TREE, asked, planned
from tests.releases.area_plans import RECORDS as PEOPLE

INCOME = rp.Attribute("income", rp.Amounts(-5, 90, missing=[("", "not stated")]))
WITH_SUMS = rp.Domain((*OTHERS.attributes, INCOME))
RECORDS = [
    record | {"income": None if number % 7 == 0 else (number * 37) % 110 - 10}
    for number, record in enumerate(PEOPLE)
]


@pytest.fixture(params=[*PLANS, "with sums"])
def parts(request, monkeypatch):
    monkeypatch.setattr(area_parts, "PART_NUMBERS", 12)
    monkeypatch.setattr(area_measurement, "discrete_gaussian", same_noise)
    if request.param == "with sums":
        tables = rp.Workload.of(WITH_SUMS, [("sex", "income"), ("age",)])
        return AreaParts(planned(asked(top=tables, region=tables, block=tables)), alone=True)
    return AreaParts(PLANS[request.param], alone=True)


def same_noise(size, gamma_squared):
    return np.arange(size) * int(gamma_squared * 1000) % 701 - 350


def tasks_of(parts: AreaParts) -> Tasks:
    shares, work = tasks_from(parts, 1)
    first = parts.parts[0]
    domain = parts.plan.domain
    coder = AreaCoder(first.areas, "people", TREE.levels[1:], len(domain))
    tables = tuple(maximal(first.tables))
    request = Request("people", domain, tables, Takers(), None, coder)
    layout = Layout((), tuple(request.attribute_indices))
    return Tasks(request, layout, shares, work, range(100, 101 + len(shares)))


def made(tasks: Tasks, records: list[dict], n_parts: int = 3) -> list[list[dict]]:
    """What is made of the counts and of each share, as tasks that others read for give it."""
    names = tasks.request.domain.names
    frame = pd.DataFrame(records, columns=[*TREE.levels[1:], *names])
    columns = {name: f"v{index}" for index, name in enumerate(names)}
    columns |= {name: area for area, name in tasks.request.area_columns.items()}
    frame = frame.rename(columns=columns)
    rows = [{SHARE: key, "chunk": 0, "counts": b""} for key in tasks.keys[1:]]
    for part in range(n_parts):
        some = frame[part::n_parts]
        pieces = (some[start : start + 7] for start in range(0, len(some), 7))
        read = tasks.rows_of_part(map(pa.RecordBatch.from_pandas, pieces))
        rows += [row for piece in read for row in piece.to_pylist()]
    batches = [
        pa.RecordBatch.from_pylist([row for row in rows if row[SHARE] == key], spark_areas._SCHEMA)
        for key in tasks.keys
    ]
    return [[row for piece in tasks.made([b]) for row in piece.to_pylist()] for b in batches]


def numbers(tasks: Tasks, rows: list[list[dict]]) -> list[np.ndarray]:
    """What is measured of each share."""
    of_tasks = taken((row for of_task in rows for row in of_task), tasks, lambda counts: None)
    return [np.concatenate(list(pieces)) for pieces in of_tasks]


@pytest.mark.by_day(3)
def test_tasks_measure_what_one_process_does_given_the_same_noise(parts):
    tasks = tasks_of(parts)
    assert len(tasks.shares) == len(parts.areas) - 1 > 0
    source = FrameSource(pd.DataFrame(RECORDS), name="people")
    whole = AreaParts(parts.plan)
    measured = numbers(tasks, made(tasks, RECORDS))
    for share, found in enumerate(measured):
        part = whole.parts[share + 1]
        counts = source.count(parts.plan.domain, part.tables, areas=part.areas)
        expected = np.concatenate(list(measure_areas(whole, share + 1, counts)))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.by_day(2)
def test_areas_without_anybody_are_measured_too(parts):
    tasks = tasks_of(parts)
    empty = numbers(tasks, made(tasks, []))
    assert [len(found) for found in empty] == [part.n_measured for part in parts.parts[1:]]


@pytest.mark.by_day(3)
def test_no_share_is_lost_or_taken_twice_or_of_other_records(parts):
    tasks = tasks_of(parts)
    rows = made(tasks, RECORDS)
    first, others = rows[0], rows[1:]
    random.Random(3).shuffle(others)
    for found, expected in zip(numbers(tasks, [*others, first]), numbers(tasks, rows), strict=True):
        np.testing.assert_array_equal(found, expected)
    lost = next(k for k, record in enumerate(RECORDS) if record["block"] is not None)
    elsewhere = made(tasks, RECORDS[:lost] + RECORDS[lost + 1 :])
    (share,) = [k for k, here in enumerate(rows) if k and here[0] != elsewhere[k][0]]
    wrong = [rows[:-1], [*rows, rows[1]], [*rows[:2], *rows[1:]]]
    wrong.append([*rows[:share], elsewhere[share], *rows[share + 1 :]])
    for rows_of_tasks in wrong:
        with pytest.raises(DataError, match="changed while they were counted"):
            numbers(tasks, rows_of_tasks)
