"""Plans of several parts: one run, one booking, one folder; the noise of one draw in each."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.errors import DataError, DomainError, LedgerError, ReleaseError
from rpexplore.planning.pilot import with_pilot
from rpexplore.releases import adaptive_rounds, area_measurement, measurement, release_steps
from rpexplore.releases.area_release import AreaRelease
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import dry_run, release, resume
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.releases.table_release import TableRelease
from tests.releases.parts_plan import KINDS, TREE, plan_of, records
from tests.releases.table_plan import entries, runs
from tests.support.sealed import edit_manifest
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys
from tests.support.stopped_runs import killed, killed_at_line, lines_of

THREE = KINDS[:3]
NOISE = {
    "tables": "rpexplore.releases.measurement.discrete_gaussian",
    "areas": "rpexplore.releases.area_measurement.discrete_gaussian",
    "counts": "rpexplore.releases.query_release.discrete_gaussian",
    "rounds": "rpexplore.releases.adaptive_rounds.discrete_gaussian",
}
IN_PIECES = {
    "rpexplore.releases.measurement.PART_CELLS": 4,
    "rpexplore.releases.area_parts.PART_CELLS": 1,
    "rpexplore.releases.area_parts.PART_NUMBERS": 4,
}


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    records().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a release of all parts, for tests that read or copy it."""
    folder = tmp_path_factory.mktemp("finished")
    return rp.release(
        plan_of(), records(), folder / "out", name="x", ledger=folder / "ledger"
    ).folder


@pytest.fixture
def in_pieces(monkeypatch):
    for name, value in IN_PIECES.items():
        monkeypatch.setattr(name, value)


def spied(monkeypatch, draw) -> None:
    """Let all noise be drawn by a function, which is told of which part."""
    for kind, name in NOISE.items():
        monkeypatch.setattr(name, lambda size, gamma, kind=kind: draw(kind, size, gamma))


def without_noise(monkeypatch) -> None:
    spied(monkeypatch, lambda kind, size, gamma: np.zeros(size, dtype=np.int64))


def keep_what_was_drawn(monkeypatch) -> None:
    """A finished release then still has the folder of its run."""
    monkeypatch.setattr("rpexplore.releases.booked_run.shutil.rmtree", lambda *_, **__: None)


def drawn_in(folder: Path) -> np.ndarray:
    return np.fromfile(folder / "run" / "measured.int64", "<i8")


def published(done: rp.Release) -> np.ndarray:
    """All that was measured, as the folder has it, part after part (without rounds)."""
    tables = pq.read_table(done.folder / "residuals.parquet")["measured"].to_numpy()
    of_areas = sorted((done.folder / "areas" / "residuals").iterdir())
    areas = [pq.read_table(file)["measured"].to_numpy() for file in of_areas]
    return np.concatenate([tables, *areas, done.part("counts").measurements])


# --- one run, one booking


def test_all_parts_are_booked_once_with_their_sum_before_any_noise(data, output, monkeypatch):
    plan, seen = plan_of(), []

    def draw(kind, size, gamma):
        seen.append((kind, [(run.state, run.record_rho) for run in runs(data)]))
        assert not output.exists()
        return np.zeros(size, dtype=np.int64)

    spied(monkeypatch, draw)
    done = release(plan, data, output)
    assert plan.rho == sum(part.rho for part in plan.parts) <= 1
    # The first plan of rounds is measured as tables are.
    assert list(dict.fromkeys(kind for kind, _ in seen)) == list(KINDS)
    assert all(states == [("started", plan.rho)] for _, states in seen)
    (run,) = runs(data)
    assert (run.state, run.record_rho, run.plan_sha256) == ("finished", plan.rho, plan.sha256)
    assert Fraction(done.manifest["rho"]) == plan.rho
    assert entries(output.parent) == ["release"]
    assert {"areas", "counts", "rounds", "tables"} <= set(entries(output))


def test_the_limit_of_the_ledger_counts_the_sum(data, output, monkeypatch):
    plan = plan_of()
    with pytest.raises(LedgerError, match="limit"):
        release(plan, data, output, limit_rho=max(part.rho for part in plan.parts))
    below = plan.rho - Fraction(1, 10**9)
    with pytest.raises(LedgerError, match="limit"):
        dry_run(plan, data, output, limit_rho=below)
    assert runs(data) == ()
    release(plan, data, output, limit_rho=plan.rho)
    assert Ledger.beside(data).account(data).spent_record_rho == plan.rho


# --- every part has its own numbers


@pytest.mark.usefixtures("in_pieces")
def test_without_noise_every_part_is_exact(data, output, monkeypatch):
    """Numbers of another part, or of another place in it, would be others."""
    without_noise(monkeypatch)
    keep_what_was_drawn(monkeypatch)
    frame, done = records(), release(plan_of(), data, output)
    ages = pd.cut(frame["age"], [-1, 2, 5, 8], labels=["0 to 2", "3 to 5", "6 to 8"])
    assert np.allclose(done.table()["value"], len(frame))
    by_both = frame.groupby(["sex", ages], observed=False).size()
    assert np.allclose(done.table("sex", "age")["value"], by_both)
    assert np.allclose(done.counts("age")["value"], ages.value_counts(sort=False))
    for level in TREE.levels[1:]:
        above = list(TREE.levels[1 : TREE.levels.index(level) + 1])
        exact = frame.groupby([*above, "sex"]).size()
        table = done.table("sex", level=level)
        assert np.allclose(table.set_index([*above, "sex"])["value"].reindex(exact.index), exact)
        assert np.isclose(table["value"].sum(), len(frame))
    women, has_job = frame["sex"] == "f", frame["job"] == "yes"
    exact = [(women & has_job).sum(), (women & ~has_job).sum(), 2 * women.sum() - len(frame)]
    assert np.allclose(done.answers["answer"], exact, atol=1e-6)
    fit = done.part("rounds").measured
    for subset, contribution in fit.contributions.items():
        names = [("sex", "age", "size", "home")[index] for index in subset]
        if len(names) == 1:
            column = ages if names == ["age"] else frame[names[0]]
            sizes = column.value_counts(sort=False).sort_index()
            assert np.allclose(contribution, sizes - sizes.mean())
    total = len(published(done))
    steps = PlanSteps.of(plan_of())
    assert steps.starts()[3] == total
    assert np.array_equal(drawn_in(output)[:total], published(done))


def test_each_part_has_the_noise_of_its_own_share(data, output, monkeypatch):
    alone, together = [], []
    spied(monkeypatch, lambda *call: alone.append(call) or np.zeros(call[1], dtype=np.int64))
    for kind in THREE:
        release(plan_of(THREE).part(kind), data, output.with_name(kind))
    spied(monkeypatch, lambda *call: together.append(call) or np.zeros(call[1], dtype=np.int64))
    release(plan_of(THREE), data, output)
    assert sorted(alone) == sorted(together)
    costs = [run.record_rho for run in runs(data)]
    assert sum(costs[:3]) == costs[3]


# --- killed at every step, also between parts


POINTS = {  # function, the how manyth call, whether all was drawn
    "while it checks": ("rpexplore.releases.release_steps.PartCounts.refuse_others", 2, False),
    "before it is booked": ("rpexplore.releases.ledger.ledger.Ledger.book", 1, False),
    "before any noise": ("rpexplore.releases.release.write_measured", 1, False),
    "in tables": (NOISE["tables"], 3, False),
    "in areas": (NOISE["areas"], 3, False),
    "in counts": (NOISE["counts"], 1, False),
    "while it notes": ("rpexplore.releases.release.write_note", 1, False),
    "while it writes tables": ("rpexplore.releases.table_release.TableWriter.table", 2, True),
    "while it writes areas": ("rpexplore.releases.area_release.write_table", 2, True),
    "while it writes counts": ("rpexplore.releases.query_release.QuerySteps.write", 1, True),
    "while it ends": ("rpexplore.releases.release_steps.write_manifest", 1, True),
}
PIECES = 8  # of the three parts, with the constants above
BETWEEN = [
    pytest.param(name, nth, marks=[] if (name, nth) in (("add", 6), ("note", 7)) else nightly)
    for nightly in [pytest.mark.nightly]
    for name in ("add", "note")
    for nth in range(1, PIECES + (name == "add"))
]


def check_that_it_goes_on(data, output, monkeypatch, is_drawn: bool) -> int:
    """Run a killed run again, or finish it; returns how many numbers were kept."""
    plan, left, kept = plan_of(THREE), output.with_name(".release.unfinished"), np.empty(0)
    if is_drawn:
        kept = drawn_in(left)
    elif (left / "run" / "draft.json").exists():
        note = json.loads((left / "run" / "draft.json").read_text())
        kept = drawn_in(left)[: note["n_measured"]]
    n_drawn, draws = [], {kind: _drawing(name) for kind, name in NOISE.items()}

    def draw(kind, size, gamma):
        n_drawn.append(size)
        return draws[kind](size, gamma)

    spied(monkeypatch, draw)
    done = resume(output) if is_drawn else release(plan, data, output)
    numbers = published(done)
    assert np.array_equal(numbers[: len(kept)], kept)
    assert sum(n_drawn) == len(numbers) - len(kept)
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", plan.rho)]
    assert entries(output.parent) == ["release"]
    assert rp.Release.load(output).manifest == done.manifest
    return len(kept)


def _drawing(name: str):
    module = {
        "measurement": measurement,
        "area_measurement": area_measurement,
        "adaptive_rounds": adaptive_rounds,
    }
    return module.get(name.split(".")[-2], measurement).discrete_gaussian


@pytest.mark.by_day(3)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.usefixtures("in_pieces")
def test_a_run_killed_in_a_part_is_charged_once_and_draws_nothing_twice(
    point, data, output, monkeypatch
):
    function, nth, is_drawn = POINTS[point]
    plan_of(THREE).save(data.parent.parent / "plan.json")
    killed(function, nth, data.parent.parent / "plan.json", data, output, constants=IN_PIECES)
    charged = [run.state for run in runs(data)]
    assert charged == ([] if point in ("while it checks", "before it is booked") else ["started"])
    kept = check_that_it_goes_on(data, output, monkeypatch, is_drawn)
    starts = PlanSteps.of(plan_of(THREE)).starts()
    if point in ("in tables", "in areas", "in counts"):  # what was complete before is kept
        assert starts[("in tables", "in areas", "in counts").index(point)] <= kept < starts[-1]


@pytest.mark.parametrize(("name", "nth"), BETWEEN)
@pytest.mark.usefixtures("in_pieces")
def test_a_run_killed_between_pieces_and_parts_keeps_them(name, nth, data, output, monkeypatch):
    plan = plan_of(THREE)
    ends = np.cumsum([p.n_measured for part in PlanSteps.of(plan).parts for p in part.parts])
    assert len(ends) == PIECES
    plan.save(data.parent.parent / "plan.json")
    function = f"rpexplore.releases.measurement_file.Draft.{name}"
    killed(function, nth, data.parent.parent / "plan.json", data, output, constants=IN_PIECES)
    kept = check_that_it_goes_on(data, output, monkeypatch, is_drawn=False)
    assert kept == [0, *ends][nth - 1]  # what is noted


@pytest.mark.nightly
def test_all_four_parts_killed_at_any_line_keep_what_they_had_drawn(data, tmp_path, monkeypatch):
    plan, came = tmp_path / "plan.json", set()
    plan_of().save(plan)
    keep_what_was_drawn(monkeypatch)

    def fresh(name: str) -> tuple[Path, Path]:
        folder = tmp_path / name
        folder.mkdir()
        return Path(shutil.copy(data, folder)), folder / "release"

    n_lines = lines_of(plan, *fresh("whole"))
    for nth in range(1, n_lines * 9 // 10, n_lines // 60):
        path, output = fresh(str(nth))
        killed_at_line(nth, plan, path, output)
        run, kept = output.with_name(".release.unfinished") / "run", np.empty(0)
        if (run / "draft.json").exists():
            note = json.loads((run / "draft.json").read_text())
            kept = drawn_in(run.parent)[: note["n_measured"]]
        if (run / "drawn.json").exists():
            came.add("drawn")
            kept = drawn_in(run.parent)
            resume(output)
        elif not output.exists():
            came.add(f"kept {len(kept) > 0}")
            release(plan_of(), path, output)
        assert np.array_equal(drawn_in(output)[: len(kept)], kept)
        assert [(run.state, run.record_rho) for run in runs(path)] == [("finished", plan_of().rho)]
        assert rp.Release.load(output).plan.sha256 == plan_of().sha256
    assert came == {"kept False", "kept True", "drawn"}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("function", ["select", "measure"])
def test_a_run_killed_in_its_rounds_draws_no_part_again(function, data, output, monkeypatch):
    path = data.parent.parent / "plan.json"
    plan_of().save(path)
    killed(f"rpexplore.releases.adaptive_rounds.{function}", 2, path, data, output)
    left = output.with_name(".release.unfinished")
    note = json.loads((left / "run" / "draft.json").read_text())
    before = drawn_in(left)[: note["n_measured"]]
    assert len(before) > PlanSteps.of(plan_of()).starts()[-1]
    keep_what_was_drawn(monkeypatch)
    for kind in THREE:  # and tables' is that of the first plan of rounds
        monkeypatch.setattr(NOISE[kind], lambda *_: pytest.fail("drawn again"))
    release(plan_of(), data, output)
    assert np.array_equal(drawn_in(output)[: len(before)], before)
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", plan_of().rho)]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("what", ["changed", "shorter", "records"])
def test_parts_that_rounds_have_used_are_not_drawn_again(what, data, output):
    path = data.parent.parent / "plan.json"
    plan_of().save(path)
    killed("rpexplore.releases.adaptive_rounds.select", 2, path, data, output)
    file = output.with_name(".release.unfinished") / "run" / "measured.int64"
    content = file.read_bytes()
    if what == "records":
        records(90).to_csv(data, index=False)
    else:
        changed = bytes([content[0] ^ 1]) + content[1:]
        file.write_bytes(changed if what == "changed" else content[:8])
    with pytest.raises(ReleaseError, match="not drawn again"):
        release(plan_of(), data, output)
    assert len(runs(data)) == 1
    assert not output.exists()


# --- what was left, or written, is not as it was


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_of_any_part_is_refused_by_all(kind, finished, output):
    shutil.copytree(finished, output)
    folder = rp.Release.load(output).part(kind).folder
    files = sorted((*folder.glob("*.parquet"), *folder.glob("tables/**/*.parquet")))
    for file in (files[0], files[-1]):
        content = file.read_bytes()
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        for load in (rp.Release.load, TableRelease.load, AreaRelease.load):
            with pytest.raises(ReleaseError, match="was changed since"):
                load(output)
        file.write_bytes(content)
    (folder / "more.parquet").touch()
    with pytest.raises(ReleaseError, match="more than was written"):
        rp.Release.load(output)
    (folder / "more.parquet").unlink()
    inside = folder.name if kind != "tables" else "tables"
    lacking = f"{inside}/" if kind != "tables" else "residuals.parquet"
    edit_manifest(
        output,
        lambda m: m.update(files=[e for e in m["files"] if not e["path"].startswith(lacking)]),
    )
    with pytest.raises(ReleaseError):
        rp.Release.load(output)


def test_parts_are_told_by_name(data, output):
    done = release(plan_of(("tables", "counts")), data, output)
    assert done.part("areas") is None
    with pytest.raises(ReleaseError, match="holds tables and own counts, and no tables in areas"):
        AreaRelease.load(output)
    with pytest.raises(ReleaseError, match="and no tables in areas"):
        done.table("sex", level="region")
    with pytest.raises(ReleaseError, match="name the level of its areas"):
        done.table("sex", within="N")
    named = done.answer("other women")
    assert named == done.part("counts").answer("other women")
    assert named != done.answer("sex", where={"sex": "f"})


def test_adaptive_tables_are_told_from_unbiased_ones_and_found_beside_them(data, output):
    done = release(plan_of(("tables", "rounds")), data, output)
    assert done.has_unbiased
    assert not done.is_estimated
    assert "unbiased; as released (noisy tables); adaptive" in done.label
    assert done.label.endswith("(estimated tables)")
    titles = [item.title for item in done.items]
    assert len(set(titles)) == len(titles)
    assert "age × size × home (adaptive)" in titles
    asked = ("age", "size", "home")  # which only the adaptive ones hold
    assert done.table(*asked).equals(done.part("rounds").table(*asked))
    with pytest.raises(ReleaseError, match="no known standard error"):
        done.answer(*asked)
    with pytest.raises(DomainError, match="no attribute 'nothing'"):
        done.table("nothing")
    with pytest.raises(ReleaseError, match="no estimated table"):
        done.table("sex", "size")


# --- records and values


def test_a_value_that_only_one_part_reads_is_refused_before_the_booking(data, output):
    frame = records()
    frame.loc[3, "job"] = "unheard of"
    frame.to_csv(data, index=False)
    for run in (dry_run, release):
        with pytest.raises(DataError, match="job"):
            run(plan_of(), data, output)
        with pytest.raises(DomainError, match="nobody"):
            run(plan_of(), data, output, unknown_values={"job": "other", "nobody": "x"})
    assert runs(data) == ()
    assert dry_run(plan_of(), data, output, unknown_values={"job": "other"}).findings
    frame.drop(columns="job").to_csv(data, index=False)
    with pytest.raises(DataError, match="job"):
        dry_run(plan_of(), data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


def test_unknown_values_are_counted_in_the_parts_that_have_the_attribute(data, output, monkeypatch):
    without_noise(monkeypatch)
    frame = records()
    frame.loc[:4, "job"], frame.loc[:6, "sex"] = "unheard of", "x"
    frame.to_csv(data, index=False)
    given = {"job": "yes", "sex": "f"}
    done = release(plan_of(), data, output, unknown_values=given)
    women = frame["sex"] != "m"
    assert np.allclose(done.table("sex")["value"], [women.sum(), (~women).sum()])
    assert np.allclose(done.table("sex", level="all")["value"], [women.sum(), (~women).sum()])
    has_job = ~frame["job"].isin(["no", "other"])
    assert np.isclose(done.answers["answer"][0], (women & has_job).sum(), atol=1e-6)
    assert done.manifest["unknown_values"] == given
    assert "counted as: job: yes; sex: f" in (output / "README.md").read_text()


@pytest.mark.parametrize("nth", [2, 3, 4])
def test_other_records_of_a_later_part_are_refused_before_the_booking(
    nth, data, output, monkeypatch
):
    """Though the source looks the same: the number of women is another."""
    others, count, called = data.with_name("others.csv"), FileSource.count, []
    frame = records()
    frame["sex"] = frame["sex"].replace({"f": "m"})
    frame.to_csv(others, index=False)

    def counting(self, *arguments, **options):
        called.append(arguments)
        source = FileSource(others) if len(called) == nth else self
        return count(source, *arguments, **options)

    monkeypatch.setattr(FileSource, "count", counting)
    with pytest.raises(DataError, match="have changed while they were counted"):
        release(plan_of(), data, output)
    assert runs(data) == ()


@pytest.mark.usefixtures("in_pieces")
def test_records_that_change_while_parts_are_drawn_are_refused(data, output, monkeypatch):
    changed = []

    def change(doing, share):
        if doing == "Measuring with noise" and share > 0.5 and not changed:
            changed.append(records(90).to_csv(data, index=False))

    with pytest.raises(DataError, match="have changed while they were counted"):
        release(plan_of(THREE), data, output, on_progress=change)
    assert [run.state for run in runs(data)] == ["started"]
    without_noise(monkeypatch)
    done = release(plan_of(THREE), data, output)  # all of it of the records as they are now
    assert np.allclose(done.table()["value"], 90)
    assert np.allclose(done.table(level="all")["value"], 90)
    assert [run.record_rho for run in runs(data)] == [plan_of(THREE).rho]


def test_counts_beyond_what_one_part_may_take_are_counted_again(data, output, monkeypatch):
    """So no more is in memory at a time, and what is released is the same."""
    without_noise(monkeypatch)
    whole = release(plan_of(THREE), data, output.with_name("whole"))
    for name in ("rpexplore.releases.area_parts", "rpexplore.releases.measurement"):
        monkeypatch.setattr(f"{name}.PART_CELLS", 9)
    forgotten, forget = [], release_steps.PartCounts.forget

    def forgetting(self):
        forgotten.append(self)
        forget(self)
        assert self._kept is None

    monkeypatch.setattr(release_steps.PartCounts, "forget", forgetting)
    done = release(plan_of(THREE), data, output)
    assert forgotten
    assert sorted(published(done)) == sorted(published(whole))


def test_of_a_person_no_part_counts_more_records_than_are_protected(data, output, monkeypatch):
    without_noise(monkeypatch)
    plan = plan_of(most=2)
    rule = rp.PersonRule("who", most=2, excess="keep first")
    with pytest.raises(ReleaseError, match="make both the same"):
        release(plan, data, output, person_rule=rp.PersonRule("who", most=3, excess="keep first"))
    done = release(plan, data, output, person_rule=rule)
    kept = 2 * records()["who"].nunique()
    assert np.allclose(done.table()["value"], kept)
    assert np.allclose(done.table(level="all")["value"], kept)
    assert np.isclose(done.answers["answer"][:2].sum() * 2 - done.answers["answer"][2], kept)
    (run,) = runs(data)
    assert run.record_rho == plan.rho / 4 == sum(part.record_rho for part in plan.parts)
    assert done.manifest["max_records_per_person"] == 2


# --- options


def test_a_release_of_all_parts_may_be_without_csv_files(data, output, finished):
    done = release(plan_of(), data, output, parquet_only=True)
    assert not list(output.rglob("*.csv"))
    assert rp.Release.load(output).manifest == done.manifest
    assert "csv" not in (output / "README.md").read_text().lower()
    whole = shutil.copytree(finished, output.with_name("whole"))
    csv = {path.relative_to(whole) for path in whole.rglob("*.csv")}
    assert {path.parts[0] for path in csv} == {"tables", "counts", "rounds"}
    removed = next(path for path in csv if path.parts[0] == "counts")
    (whole / removed).unlink()
    edit_manifest(
        whole,
        lambda m: m.update(files=[e for e in m["files"] if e["path"] != str(removed)]),
    )
    with pytest.raises(ReleaseError, match="lists other files"):
        rp.Release.load(whole)


@requires_ssh_keygen
def test_one_approval_is_of_the_whole_plan(data, output, tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir()
    with_keys(keys, "alice@x")
    demand = rp.ApprovalDemand(1, f"alice@x {public(keys / 'alice')}\n")
    Ledger.beside(data).require_approvals(data, demand)
    approvals = [rp.approve(plan_of(), keys / "alice")]
    of_part = [rp.approve(plan_of().part("tables"), keys / "alice")]
    for given in ((), of_part):
        with pytest.raises(rp.errors.ApprovalError):
            release(plan_of(), data, output, approvals=given)
    with pytest.raises(rp.errors.ApprovalError):  # nor may a part be run by that of the whole
        release(plan_of().part("tables"), data, output, approvals=approvals)
    done = release(plan_of(), data, output, approvals=approvals)
    assert entries(output / "approvals") == ["1.json"]
    assert [one["name"] for one in done.manifest["approvals"]["given"]] == ["alice@x"]


@pytest.mark.parametrize("pilot", [False, True])
def test_the_noise_that_is_drawn_is_what_epsilon_is_proven_from(pilot, data, output, monkeypatch):
    """docs/guarantees.md: γ² and how many numbers of each, as they are drawn."""
    drawn: dict[str, dict[float, int]] = {kind: {} for kind in THREE}

    def draw(kind, size, gamma_squared):
        key = float(gamma_squared)
        drawn[kind][key] = drawn[kind].get(key, 0) + size
        return np.zeros(size, dtype=np.int64)

    spied(monkeypatch, draw)
    plan = plan_of(THREE)
    if pilot:
        plan = with_pilot(plan, "5%")
    release(plan, data, output)
    for kind in ("tables", "counts"):
        noise = plan.part(kind).noise
        assert noise.gamma_squared == pytest.approx(sorted(drawn[kind]), rel=2e-8)
        assert np.all(noise.gamma_squared <= sorted(drawn[kind]))
        assert noise.numbers == pytest.approx([n for _, n in sorted(drawn[kind].items())], rel=2e-8)
    # A record moves the 1 + 2 numbers of one area of each of three levels, a person with 2 records
    # those of 1 + 2 + 2 areas; none has less noise than is counted with.
    of_record, of_person = (plan_of(THREE, most).part("areas").noise for most in (None, 2))
    assert of_record.numbers.sum() == pytest.approx(9, rel=1e-6)
    assert of_person.numbers.sum() == pytest.approx(15, rel=1e-6)
    assert of_record.gamma_squared.min() == pytest.approx(min(drawn["areas"]), rel=2e-8)
    assert set(of_record.gamma_squared.round(5)) <= {round(gamma, 5) for gamma in drawn["areas"]}
