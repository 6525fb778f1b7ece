"""What earlier runs of the benchmarks measured on this machine, so that a slow-down is seen.

Kept in `benchmarks.csv` at the top of the project, which git ignores: figures of other machines
would say nothing here.
"""

import csv
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "benchmarks.csv"
RECENT = 5  # runs whose median a new figure is compared with
WORSE = 1.3  # times that median, from which on a row is marked
_FIELDS = ("time", "machine", "commit", "case", "row", "measured")


class History:
    """The figures of earlier runs, by case and row; new ones are added as they come."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        self._machine = f"{platform.node()} {platform.machine()} Python {platform.python_version()}"
        self._measured = dict[tuple[str, str], list[float]]()
        if file.is_file():
            with file.open(newline="", encoding="utf-8") as lines:
                for line in csv.DictReader(lines):
                    if line["machine"] == self._machine:
                        row = line["case"], line["row"]
                        self._measured.setdefault(row, []).append(float(line["measured"]))

    def before(self, case: str, row: str) -> float | None:
        """The median of the last runs, if there were any."""
        earlier = self._measured.get((case, row), [])[-RECENT:]
        return statistics.median(earlier) if earlier else None

    def add(self, case: str, row: str, measured: float) -> None:
        """Write a figure down at once: a run that is broken off keeps what it measured."""
        is_new = not self._file.is_file()
        with self._file.open("a", newline="", encoding="utf-8") as lines:
            writer = csv.writer(lines)
            if is_new:
                writer.writerow(_FIELDS)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            writer.writerow((now, self._machine, _commit(), case, row, measured))


def is_worse(measured: float, sign: str, before: float) -> bool:
    """Whether a figure is clearly worse than before, in the direction that its limit has."""
    if sign == ">=":
        return measured * WORSE < before
    return measured > WORSE * before


def _commit() -> str:
    """The commit that is measured; empty outside git."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=FILE.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()
