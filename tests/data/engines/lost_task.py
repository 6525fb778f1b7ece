"""Releases areas from Spark while what measures them is killed: a program that keeps all draws.

python -m tests.data.engines.lost_task FOLDER worker|executor
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import rpexplore as rp
from rpexplore.releases import area_parts, area_release
from tests.data.engines.area_runs import SMALL, Watched
from tests.data.engines.servers import in_spark, running_spark
from tests.releases.area_plans import PLANS, RECORDS
from tests.releases.test_area_release import measurements


def end_worker(n_tries: int) -> None:
    """End the Python that has drawn, the first time that it has."""
    if n_tries == 0:
        os._exit(1)


class EndExecutor:
    """Ends the executor, with all that it holds, once."""

    def __init__(self, folder: Path) -> None:
        self._mark = folder / "killed"

    def __call__(self, n_tries: int) -> None:
        if self._mark.exists():
            return
        self._mark.touch()
        # The daemon of Python's workers is a child of the executor.
        status = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(status[1]), signal.SIGKILL)


def main(folder: Path, how: str) -> None:
    plan, tasks_from = PLANS["the same"], area_release.tasks_from
    for name, value in SMALL.items():
        setattr(area_parts, name, value)

    def watched(parts, first):
        shares, work = tasks_from(parts, first)
        end = end_worker if how == "worker" else EndExecutor(folder)
        return shares, Watched(work, folder, draw=None, on_drawn=end)

    area_release.tasks_from = watched
    executors = {"n_executors": 2} if how == "executor" else {"n_tries": 4}
    with running_spark(folder, 2, **executors) as spark:
        source = in_spark(spark, pa.Table.from_pylist(RECORDS), folder)
        rp.release(plan, source, folder / "out", ledger=folder / "book")
        (run,) = rp.Ledger(folder / "book").account(source).entries
    assert run.state == "finished"

    parts = area_parts.AreaParts(plan)
    ends = np.cumsum([part.n_measured for part in parts.parts])
    released, n_lost = np.split(measurements(folder / "out"), ends[:-1])[1:], 0
    for share, numbers in enumerate(released):
        tries = [np.load(path) for path in folder.glob(f"share {share} try *.npy")]
        # All tries have a noise of their own; of one of them is all that was released.
        assert len({each.tobytes() for each in tries}) == len(tries)
        assert sum(np.array_equal(each, numbers) for each in tries) == 1
        n_lost += len(tries) - 1
    assert n_lost >= (len(released) if how == "worker" else 1), n_lost


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
