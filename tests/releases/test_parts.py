"""Releases that are counted and measured in parts, against those in one."""

import json
from pathlib import Path
from weakref import ref

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.errors import DataError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import measurement
from rpexplore.releases.measurement import measured_cells
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableSteps
from tests.releases.table_plan import draw_by, entries, runs
from tests.support.generalised import any_plan, workloads_with_bases
from tests.support.stopped_runs import killed

PART_CELLS = "rpexplore.releases.measurement.PART_CELLS"
SIZES = {"b": 4, "c": 5, "d": 2, "one": 1}
DOMAIN = rp.Domain(
    (
        rp.Attribute("a", rp.Categories(("0", "1", "2"))),
        *(rp.Attribute(name, rp.Integers(0, size - 1)) for name, size in SIZES.items()),
    )
)
PLAN = plan_tables(
    rp.Workload.all_up_to(DOMAIN, 3), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2")
)


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = np.random.default_rng(5).integers(0, DOMAIN.sizes, (40, 5))
    path.write_text("a,b,c,d,one\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def by_scale(size, gamma_squared):
    """Noise that is the same however residuals are put together."""
    return np.full(size, int(gamma_squared) % 1009)


@settings(max_examples=40, deadline=None)
@given(workloads_with_bases(), st.integers(1, 200), st.integers(0, 2**32))
def test_parts_hold_every_residual_once_in_order_and_few_cells(workload, most, seed):
    plan = any_plan(workload, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "PART_CELLS", most)
        parts = TableSteps(plan).parts
    closure = plan.closure
    assert [residual for part in parts for residual in part.items] == list(range(len(closure)))
    for part in parts:
        assert set(plan.attribute_indices) <= {i for table in part.tables for i in table}
        assert part.n_measured == measured_cells(closure, np.array(part.items)).sum()
        cells = closure.residual_cells[part.items.start : part.items.stop]
        assert cells.sum() <= most or len(cells) == 1
        tables = [set(table) for table in part.tables]
        assert all(any(set(closure.attributes(r)) <= t for t in tables) for r in part.items)


def test_parts_change_no_number_and_each_is_counted_once(data, output, monkeypatch):
    draw_by(monkeypatch, by_scale)
    release(PLAN, data, output)
    counted, cells, count = [], [], FileSource.count

    def counting(self, domain, tables, **options):
        counted.append(tables)
        assert all(each() is None for each in cells)
        counts = count(self, domain, tables, **options)
        cells.extend(map(ref, counts.tables.values()))
        return counts

    monkeypatch.setattr(FileSource, "count", counting)
    monkeypatch.setattr(PART_CELLS, 30)
    release(PLAN, data, output.with_name("parts"))
    assert len(counted) == len(TableSteps(PLAN).parts) > 5
    first, second = (output.with_name(name) for name in ("release", "parts"))
    files = {path.relative_to(first) for path in first.rglob("*.*")}
    assert len(files) == 2 * len(PLAN.workload) + 4
    for path in files - {Path("manifest.json")}:
        assert (first / path).read_bytes() == (second / path).read_bytes()


DRAW = "rpexplore.releases.measurement.discrete_gaussian"
ADD = "rpexplore.releases.measurement_file.Draft.add"


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("function", "nth"),
    [
        (DRAW, 9),
        (ADD, 4),
        ("rpexplore.data.counting.counts_of", 3),
        ("rpexplore.releases.measurement_file.Draft.note", 3),
        ("os.fsync", 8),
        ("os.fsync", 12),
    ],
)
def test_a_killed_run_keeps_complete_parts_and_draws_the_others_once(
    function, nth, data, output, monkeypatch
):
    PLAN.save(data.parent.parent / "plan.json")
    run = (data.parent.parent / "plan.json", data, output)
    killed(function, nth, *run, constants={PART_CELLS: 30})
    left = output.parent / ".release.unfinished"
    note, kept = left / "run" / "draft.json", 0
    if note.exists():
        kept = json.loads(note.read_text())["n_measured"]
    before = np.fromfile(left / "run" / "measured.int64", "<i8")[:kept]
    assert [run.state for run in runs(data)] == ["started"]
    monkeypatch.setattr(PART_CELLS, 30)
    n_drawn, draw = [], measurement.discrete_gaussian

    def counted(size, gamma_squared):
        n_drawn.append(size)
        return draw(size, gamma_squared)

    draw_by(monkeypatch, counted)
    release(PLAN, data, output)
    measured = pq.read_table(output / "residuals.parquet")["measured"].to_numpy()
    assert np.array_equal(measured[:kept], before)
    assert sum(n_drawn) == len(measured) - kept
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]


@pytest.fixture
def stopped(data, output, monkeypatch) -> Path:
    """The folder of a run that was killed in its fifth part."""
    PLAN.save(data.parent.parent / "plan.json")
    run = (data.parent.parent / "plan.json", data, output)
    killed(ADD, 5, *run, constants={PART_CELLS: 30})
    monkeypatch.setattr(PART_CELLS, 30)
    return output.parent / ".release.unfinished"


@pytest.mark.by_day(4)
@pytest.mark.parametrize("what", ["nothing", "records", "options", "numbers", "shorter", "parts"])
def test_only_what_was_drawn_of_the_same_records_is_kept(what, stopped, data, output, monkeypatch):
    n_measured = sum(part.n_measured for part in TableSteps(PLAN).parts)
    kept = json.loads((stopped / "run" / "draft.json").read_text())["n_measured"]
    assert 0 < kept < n_measured
    options, numbers = {}, stopped / "run" / "measured.int64"
    if what == "records":
        data.write_text(data.read_text() + "0,0,0,0,0\n")
    elif what == "options":
        options = {"unknown_values": {"a": "0"}}
    elif what == "numbers":
        numbers.write_bytes(bytes([numbers.read_bytes()[0] ^ 1]) + numbers.read_bytes()[1:])
    elif what == "shorter":
        numbers.write_bytes(numbers.read_bytes()[:8])
    elif what == "parts":
        monkeypatch.setattr(PART_CELLS, 10**6)
    n_drawn = []

    def counted(size, gamma_squared):
        n_drawn.append(size)
        return np.zeros(size, dtype=np.int64)

    draw_by(monkeypatch, counted)
    release(PLAN, data, output, **options)
    assert sum(n_drawn) == n_measured - (kept if what == "nothing" else 0)
    assert [run.state for run in runs(data)] == ["finished"]


def test_half_a_part_is_destroyed_before_noise_is_drawn_anew(stopped, data, output, monkeypatch):
    numbers = stopped / "run" / "measured.int64"
    kept = 8 * json.loads((stopped / "run" / "draft.json").read_text())["n_measured"]
    numbers.write_bytes(numbers.read_bytes()[:kept] + b"drafted!" * 20)
    seen = []

    def looking(size, gamma_squared):
        seen.append(numbers.read_bytes()[kept:])
        return np.zeros(size, dtype=np.int64)

    draw_by(monkeypatch, looking)
    release(PLAN, data, output)
    assert set(seen[0]) == {0}


def test_records_that_change_between_two_parts_are_refused_and_drawn_anew(
    data, output, monkeypatch
):
    monkeypatch.setattr(PART_CELLS, 30)
    changed = []

    def change(doing, share):
        if doing == "Measuring with noise" and share > 0.33 and not changed:
            changed.append(data.write_text(data.read_text() + "0,0,0,0,0\n"))

    with pytest.raises(DataError, match="have changed while they were counted"):
        release(PLAN, data, output, on_progress=change)
    assert [run.state for run in runs(data)] == ["started"]
    draw_by(monkeypatch, by_scale)
    release(PLAN, data, output)
    assert [run.state for run in runs(data)] == ["finished"]
    # All of it is of the records as they are now.
    draw_by(monkeypatch, by_scale)
    release(PLAN, data, output.with_name("again"))
    first, second = (output.with_name(name) / "residuals.parquet" for name in ("release", "again"))
    assert first.read_bytes() == second.read_bytes()


def test_parts_of_other_records_are_refused_though_the_source_looks_the_same(
    data, output, monkeypatch
):
    monkeypatch.setattr(PART_CELLS, 30)
    others, count, called = data.with_name("others.csv"), FileSource.count, []
    header, first, *rest = data.read_text().splitlines()
    others.write_text("\n".join([header, f"{(int(first[0]) + 1) % 3}{first[1:]}", *rest]))

    def counting(self, domain, tables, **options):
        called.append(tables)
        source = self if len(called) < 3 else FileSource(others)
        return count(source, domain, tables, **options)

    monkeypatch.setattr(FileSource, "count", counting)
    with pytest.raises(DataError, match="have changed while they were counted"):
        release(PLAN, data, output)
    assert len(called) == 3
