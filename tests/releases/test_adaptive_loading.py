"""Adaptive release folders that somebody made: read as what was written, or refused in a word."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.release import release
from tests.releases.adaptive_run import PLAN, WORKLOAD, write_records
from tests.support.sealed import reseal


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("done")
    write_records(folder / "records.csv")
    release(PLAN, folder / "records.csv", folder / "release")
    return folder / "release"


@pytest.fixture
def copy(done, tmp_path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "copy"))


def edited(folder: Path, name: str, change: Callable[[pd.DataFrame], pd.DataFrame]):
    """The release with other rows in a file, and a manifest that says so."""
    stored = pq.read_table(folder / name)
    before = stored.to_pandas()
    frame = change(before.copy())
    schema = stored.schema if frame.dtypes.equals(before.dtypes) else None
    pq.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False), folder / name)
    reseal(folder, name)
    return AdaptiveRelease.load(folder)


def setting(column: str, row: int, value: int):
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[frame.index[row], column] = value
        return frame

    return change


def renamed(column: str, numbers: dict[int, int]):
    return lambda frame: frame.assign(**{column: frame[column].replace(numbers)})


LAST = len(PLAN.rounds)


@pytest.mark.parametrize(
    "change",
    [
        setting("round", 0, 0),
        setting("round", -1, LAST + 1),
        setting("round", -1, 2**31 - 1),
        setting("candidate", 0, len(PLAN.candidates)),
        setting("candidate", 0, -1),
        setting("candidate", 1, (1 << 31) - 1),
        renamed("drawn", {1: 2}),
        renamed("drawn", {1: -5}),
        setting("drawn", 1, 2),
        setting("cell", 1, 0),
        setting("cell", 0, 2**62),
        setting("measured", 0, 2**63 - 1),
        lambda frame: frame.iloc[1:],
        lambda frame: frame.iloc[:-1],
        lambda frame: frame.iloc[::-1],
        lambda frame: pd.concat([frame, frame[frame["round"] == 1].assign(drawn=2)]),
        lambda frame: pd.concat([frame, frame[frame["round"] == 1]]),
        lambda frame: frame.assign(measured=frame["measured"].astype(float)).drop(columns="cell"),
        lambda frame: frame.drop(columns="drawn"),
    ],
)
def test_rounds_that_no_run_draws_are_refused(change, copy):
    made = edited(copy, "rounds/rounds.parquet", change)
    for read in (lambda: made.outcomes, lambda: made.selections, lambda: made.measured):
        with pytest.raises(ReleaseError, match=r"'rounds\.parquet' .* use the original folder"):
            read()


def test_rounds_that_were_lost_are_left_out(copy, done):
    whole = AdaptiveRelease.load(done).outcomes
    made = edited(copy, "rounds/rounds.parquet", lambda frame: frame[frame["round"] != 2])
    assert [each.number for each in made.outcomes] == [
        each.number for each in whole if each.number != 1
    ]
    assert all(map(np.array_equal, made.outcomes[1].measured, whole[2].measured))
    none = edited(copy, "rounds/rounds.parquet", lambda frame: frame.iloc[:0])
    assert len(none.outcomes) == len(none.selections) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop(columns="error_bound_95"),
        lambda frame: frame.drop(columns="error_bound_95").assign(error_bound_95="many"),
        lambda frame: frame.assign(error_bound_95=-1.0),
        lambda frame: frame.drop(columns="measured"),
        lambda frame: frame.iloc[1:],
    ],
)
def test_bounds_that_no_run_states_are_refused(change, copy):
    made = edited(copy, "rounds/bounds.parquet", change)
    with pytest.raises(ReleaseError, match=r"'bounds\.parquet' .* use the original folder"):
        made.bounds  # noqa: B018


def test_a_release_of_no_records_without_a_bound_is_written_and_read(tmp_path, monkeypatch):
    nothing = "rpexplore.releases.error_bounds.informative"
    monkeypatch.setattr(nothing, lambda bounds, *_: np.full(len(bounds), np.nan))
    plan = adaptive_plan(WORKLOAD, budget=rp.Budget(rho="1e-9"), expected_records=5_000)
    data = tmp_path / "records.csv"
    write_records(data, 0)
    release(plan, data, tmp_path / "release", may_be_empty=True)
    made = AdaptiveRelease.load(tmp_path / "release")
    assert made.bounds["error_bound_95"].isna().all()
    assert len(made.selections) == sum(step.n_tables for step in plan.rounds)
    assert all(np.all(np.isfinite(made.table(*names)["value"])) for names in made.table_names)
