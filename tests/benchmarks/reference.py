"""This package beside the reference implementation: `make bench-reference REFERENCE=folder`.

The reference is ResidualPlannerPlus (github.com/cmla-psu/ResidualPlannerPlus), whose authors
published the algorithms. Its licence is not this package's: nothing of it is here, and it runs in
processes of its own, in the folder of a clone.

Every task runs three times on each side, by turns, each run in a process of its own with one thread
for linear algebra. Times are the shortest processor times: of planning from the sizes of the
attributes to noise scales, or of reconstruction from the measurements to the answers of all tables;
the same on a small task runs before, so that imports are outside. Peaks are those of whole
processes. Exit code 1 if an objective is worse than the reference's.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from tests.benchmarks.measure import REPEATS, peak_gigabytes
from tests.published import figures

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("reference_driver.py")
MOST_SECONDS = 900  # of one process, on the clock; what takes longer is not run
ORDER = 3
AGREEMENT = 1e-3  # relative difference of objectives
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
LINE = "{:<44} {:>11} {:>8} {:>6} {:>12} {:>7}  {}"


@dataclass(frozen=True)
class Task:
    """All tables of up to ORDER attributes, at privacy cost 1.

    kind: "sum" or "largest", to plan for the sum of all cells' variances or the largest of them;
    "reconstruction" from measurements with the plan of the sum. bases: "I" or "P" by attribute,
    for single values or cumulative counts.
    """

    title: str
    kind: str
    sizes: tuple[int, ...]
    bases: str


@dataclass(frozen=True)
class Measured:
    """One run. objective: root mean square error, or largest variance. cells: in all tables."""

    seconds: float
    gigabytes: float
    objective: float
    cells: int


class NotRun(Exception):
    """A side has no result; the message says why, in one line."""


Side = Callable[[Task], Measured]


def of_size_ten(kind: str, counts: tuple[int, ...], basis: str = "I") -> list[Task]:
    title = {"sum": "sum of variances", "largest": "largest variance"}.get(kind, kind)
    if basis == "P":
        title = f"cumulative, {title}"
    return [Task(f"{n} attributes, {title}", kind, (10,) * n, basis * n) for n in counts]


def tasks(*, every: bool) -> list[Task]:
    """every: also those that take the reference many minutes, or many gigabytes."""
    adult = tuple(figures.domain("Adult").sizes.tolist())
    return [
        *of_size_ten("sum", (5, 10, 20, 30, 100)),
        *of_size_ten("largest", (5, 10, 20, 30) if every else (5, 10, 20)),
        *of_size_ten("sum", (5, 10, 20, 30), "P"),
        *of_size_ten("largest", (5, 10, 20) if every else (5, 10), "P"),
        Task("Adult, sum of variances", "sum", adult, "I" * 14),
        Task("Adult, 5 cumulative, sum of variances", "sum", adult, "P" * 5 + "I" * 9),
        *of_size_ten("reconstruction", (10, 50, 100) if every else (10, 50)),
    ]


def run(task: Task) -> Measured:
    """A task on this package's side, in this process."""
    start = time.process_time()
    domain = rp.Domain.from_sizes({f"a{i}": size for i, size in enumerate(task.sizes)})
    bases = dict(zip(domain.names, task.bases, strict=True))
    workload = rp.Workload.all_up_to(domain, ORDER)
    if "P" in task.bases:
        cumulative = [name for name, basis in bases.items() if basis == "P"]
        workload = workload.with_bases(dict.fromkeys(cumulative, rp.Prefix()))
    loss = rp.MaxVariance() if task.kind == "largest" else rp.SumOfVariances("cells")
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1))
    seconds, cells = time.process_time() - start, int(np.sum(workload.cells))
    if task.kind == "reconstruction":
        # Only here: what reads records is no part of the peak of planning.
        from tests.benchmarks.releases import all_answers, measure_mock_records

        with tempfile.TemporaryDirectory() as folder:
            measure_mock_records(plan, Path(folder))
            start = time.process_time()
            cells = all_answers(plan, Path(folder))
            seconds = time.process_time() - start
    objective = plan.loss_value if task.kind == "largest" else math.sqrt(plan.loss_value / cells)
    return Measured(seconds, peak_gigabytes(), objective, cells)


def in_a_process(command: list[str], folder: Path) -> Side:
    """A side that runs `command`: the task is its input as JSON, the last line what it measured."""
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "RPEXPLORE_NO_CACHE": "1"}

    def side(task: Task) -> Measured:
        message = json.dumps(asdict(task) | {"order": ORDER})
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                input=message,
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise NotRun(f"it took more than {MOST_SECONDS} s") from None
        if done.returncode != 0:
            errors = done.stderr.splitlines() or [f"exit code {done.returncode}"]
            raise NotRun(errors[-1])
        return Measured(**json.loads(done.stdout.splitlines()[-1]))

    return side


def this_package() -> Side:
    return in_a_process([sys.executable, "-m", "tests.benchmarks.reference", "--measure"], ROOT)


def reference(folder: str, python: str) -> Side:
    """The reference in the folder of a clone. Raises NotRun if it cannot run there."""
    if not (folder and Path(folder, "resplan", "ResPlan.py").is_file()):
        raise NotRun(
            f"REFERENCE must be the folder of a clone of ResidualPlannerPlus, got {folder!r}, "
            "where there is no resplan/ResPlan.py; clone it, then: "
            "make bench-reference REFERENCE=/path/to/ResidualPlannerPlus"
        )
    executable = shutil.which(python)
    if executable is None:
        raise NotRun(f"REFERENCE_PYTHON must be a Python interpreter, got {python!r}")
    driver = DRIVER.read_text(encoding="utf-8")
    side = in_a_process([str(Path(executable).absolute()), "-c", driver], Path(folder))
    try:
        side(Task("a trial", "sum", (2,), "I"))
    except NotRun as why:
        raise NotRun(
            f"The reference does not run with {python}: {why}; install what its requirements.txt "
            "lists, or name another interpreter with REFERENCE_PYTHON=/path/to/python"
        ) from None
    return side


def compare(task: Task, theirs: Side, ours: Side, rounds: int = REPEATS) -> tuple[str, bool]:
    """A line of the table, and whether the objective is as good as the reference's."""
    their_runs: list[Measured] = []
    our_runs: list[Measured] = []
    not_run = ""
    for _ in range(rounds):
        if not not_run:
            try:
                their_runs.append(theirs(task))
            except NotRun as why:
                not_run = str(why)
        our_runs.append(ours(task))
    our = best(our_runs)
    if not_run:
        words = f"the reference was not run: {not_run}"
        return LINE.format(task.title, "", f"{our.seconds:.4f}", "", "", peak(our), words), True
    their = best(their_runs)
    if our.cells != their.cells:
        raise ValueError(f"{task.title}: {our.cells} cells, but {their.cells} of the reference")
    excess = our.objective / their.objective - 1
    words = f"{our.objective:.6g}, "
    if abs(excess) <= AGREEMENT:
        words += "agrees"
    else:
        words += f"{abs(excess):.1%} {'smaller' if excess < 0 else 'LARGER'}"
    seconds = f"{their.seconds:.4f}", f"{our.seconds:.4f}", f"{their.seconds / our.seconds:.3g}"
    return LINE.format(task.title, *seconds, peak(their), peak(our), words), excess <= AGREEMENT


def best(runs: list[Measured]) -> Measured:
    """The fastest run, with the largest peak of all."""
    fastest = min(runs, key=lambda measured: measured.seconds)
    return replace(fastest, gigabytes=max(measured.gigabytes for measured in runs))


def peak(measured: Measured) -> str:
    return f"{measured.gigabytes:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="This package beside the reference.")
    parser.add_argument("folder", nargs="?", default="", help="a clone of ResidualPlannerPlus")
    parser.add_argument("--python", default="", help="the interpreter for it, if not this one")
    parser.add_argument("--all", action="store_true", help="also tasks of many minutes")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        asked = json.load(sys.stdin)
        task = Task(asked["title"], asked["kind"], tuple(asked["sizes"]), asked["bases"])
        run(replace(task, sizes=(3, 3, 3), bases=task.bases[:1] * 3))  # imports at first use
        print(json.dumps(asdict(run(task))))
        return 0
    try:
        theirs = reference(given.folder, given.python or sys.executable)
    except NotRun as why:
        print(why, file=sys.stderr)
        return 2
    heading = ("task", "reference s", "ours s", "times", "reference GB", "ours GB", "objective")
    print(LINE.format(*heading), flush=True)
    as_good = True
    for task in tasks(every=given.all):
        line, holds = compare(task, theirs, this_package())
        print(line, flush=True)
        as_good &= holds
    return 0 if as_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
