"""Benchmarks of this tree beside those of another commit: `make bench-beside COMMIT=…`.

A machine's speed drifts by more than 3 % within minutes, so that both sides run in turn, case by
case, each in a process of its own, and the best of all turns counts. A row that still looks worse
gets more turns, as a best figure only comes nearer to the true one. The commit is checked out into
a temporary folder and runs with this tree's Python. Exit code 1 if a row is more than 3 % worse.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import inf
from pathlib import Path

from tests.benchmarks.measure import Row
from tests.benchmarks.run import CASES, ROOT

WORSE = 1.03  # times the other side's figure, from which on a row is worse
TURNS, MOST_TURNS = 3, 9
SHORT = (
    *("verbs_on_a_small_codebook", "sum_of_variances", "max_variance", "adult_plans"),
    *("plan_file", "four_schemes", "report_on_many_tables", "targets_of_least_accurate_cells"),
    *("noise_over_entropy", "counting_over_bincount", "csv_over_bytes", "counting_by_records"),
    *("counting_of_quoted_csv", "spss_codebook", "measuring_of_many_small_tables"),
    *("reconstruction_of_many_small_tables", "csv_of_tables", "writing_of_small_tables"),
    *("combining_of_small_tables", "postprocessing_of_small_tables", "answers_of_releases"),
    *("workbook_of_small_tables", "parquet_of_many_cells"),
    *("nonnegative_sparse", "nonnegative_household"),
)
"""Cases of some seconds each, which one runs unless told others."""

Best = dict[str, tuple[float, str]]  # by row: the best figure, and its sign


def worsened(this: float, other: float, sign: str) -> float:
    """How many times worse this side's figure is, in the direction that the row's limit has."""
    above, below = (other, this) if sign == ">=" else (this, other)
    return above / below if below else inf if above else 1.0


def take(best: Best, rows: Sequence[Row]) -> None:
    """Keep the better of each figure and the one so far."""
    head = ""
    for what, measured, sign, _ in rows:
        head = head if what.startswith(" ") else what
        row = f"{head.partition(':')[0]}: {what.strip()}" if what.startswith(" ") else what
        before = best.get(row, (measured, sign))[0]
        best[row] = (max if sign == ">=" else min)(before, measured), sign


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with this commit, which goes with the block."""
    with tempfile.TemporaryDirectory() as folder:
        # Not a worktree, which git would go on listing if this was broken off.
        packed = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE, check=True
        )
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def rows_of(case: str, tree: Path) -> list[Row]:
    """The rows of a case, measured with the code of a tree; none if it has no such case."""
    # Programs that a case starts elsewhere import the tree's package as well.
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "tests.benchmarks.run", "--measure", case]
    done = subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode == 2:  # of argparse
        return []
    done.check_returncode()
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def compared(case: str, tree: Path, turns: int) -> dict[str, tuple[float, float, float]]:
    """By row: this side's figure, the other side's, and how many times worse this one is."""
    ours: Best = {}
    theirs: Best = {}
    figures: dict[str, tuple[float, float, float]] = {}
    for turn in range(max(turns, MOST_TURNS)):
        if turn >= turns and all(times <= WORSE for *_, times in figures.values()):
            break
        sides = [(ours, ROOT), (theirs, tree)]
        for best, where in sides if turn % 2 else sides[::-1]:
            take(best, rows_of(case, where))
        figures = {
            row: (ours[row][0], other, worsened(ours[row][0], other, sign))
            for row, (other, sign) in theirs.items()
            if row in ours
        }
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="what this tree is measured beside")
    parser.add_argument("cases", nargs="*", metavar="case", default=[*SHORT])
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    for unknown in set(given.cases) - set(CASES):
        parser.error(f"there is no case {unknown!r}; there are {', '.join(CASES)}")
    n_worse = 0
    print(f"{'what':<78} {'other':>9} {'this':>9} {'times worse':>11}", flush=True)
    with checked_out(given.commit) as tree:
        for case in given.cases:
            for row, (ours, theirs, times) in compared(case, tree, given.turns).items():
                n_worse += times > WORSE
                mark = "  WORSE" if times > WORSE else ""
                print(f"{row:<78} {theirs:>9.3g} {ours:>9.3g} {times:>11.3f}{mark}", flush=True)
    return 1 if n_worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
