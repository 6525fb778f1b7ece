"""How the time of each verb grows: at n, 10 n and 100 n tables, records, cells and areas.

Cases of `tests.benchmarks.run`. Each row is an exponent: 1 where ten times as much takes ten times
as long. From processor times t₁, t₂, t₃ it is log₁₀((t₃ − t₁)/(t₂ − t₁) − 1), which for
t = a + b nᵏ is k, so that what a verb takes at any size does not count. Each verb runs in processes
of their own, which have run it at the smallest size before: the start of a program would take
longer than much of what is measured, and varies by more.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from rpexplore.cli.main import main
from tests.benchmarks.measure import REPEATS, Row, ended_seconds, environment

ROOT = Path(__file__).resolve().parents[2]
MOST = 1.1
_LEAST = 0.05  # s; what grows by less from n to 10 n is told from nothing no more
_LONG = 5.0  # s; runs of a verb, after which it is run no more


def growth_in_tables() -> list[Row]:
    """All tables of up to three of 20, 43 and 93 attributes of three values: 1,351 to 134,137."""

    def make(folder: Path, n_attributes: int) -> None:
        names = [f"a{number:02}" for number in range(n_attributes)]
        _write_codebook(folder, dict.fromkeys(names, 3))
        _write_records(folder, dict.fromkeys(names, 3), 2_000)

    return _rows(
        "tables",
        (20, 43, 93),
        make,
        {
            "plan": ["codebook.csv", "--out", "plan.json", "--up-to", "3", "--rho", "1"],
            "plan, largest error": [
                *("codebook.csv", "--out", "other.json", "--up-to", "3", "--rho", "1"),
                *("--loss", "max"),
            ],
            "rewrite": ["plan.json", "--out", "again.json"],
            "show": ["plan.json"],
            "verify": ["plan.json"],
            "compare": ["plan.json"],
            "report": ["plan.json", "--out", "report.html", "--expected-count", "2000"],
            "forecast": ["plan.json", "--expected-count", "2000"],
            "release": _RELEASE,
            "release, again": [*_RELEASE[:-1], "second"],
            "answer": ["out", "a00=1", "a01=1", "a02=1"],
            "combine": ["out", "second", "--out", "both"],
        },
    )


def growth_in_fewer_tables() -> list[Row]:
    """The verbs that model or draw: of up to three of 9, 20 and 43 attributes, 130 to 13,288."""

    def make(folder: Path, n_attributes: int) -> None:
        names = [f"a{number:02}" for number in range(n_attributes)]
        _write_codebook(folder, dict.fromkeys(names, 3))
        _write_records(folder, dict.fromkeys(names, 3), 2_000)
        _run(folder, "plan", "codebook.csv", "--out", "plan.json", "--up-to", "3", "--rho", "1")
        _run(folder, "release", *_RELEASE)

    return _rows(
        "tables",
        (9, 20, 43),
        make,
        {
            "suggest": ["plan.json", "--expected-count", "2000"],
            "simulate": ["plan.json", "--expected-count", "2000"],
            "plan, adaptive": _ADAPTIVE,
            "release, adaptive": ["adaptive.json", "records.parquet", "--out", "rounds"],
            "publish": ["out", "--out", "export"],
            "postprocess, whole": ["out", "--round", "--out", "whole"],
            "postprocess, nonnegative": ["out", "--nonnegative", "--out", "nonnegative"],
            "postprocess, smooth": ["out", "--smooth", "--out", "smooth"],
            "synthesize": ["out", "--out", "synthetic"],
        },
    )


_RELEASE = ["plan.json", "records.parquet", "--out", "out"]
_ADAPTIVE = [
    *("codebook.csv", "--out", "adaptive.json", "--up-to", "3", "--rho", "1"),
    *("--adaptive", "--expected-count", "2000"),
]


def growth_in_sheets() -> list[Row]:
    """All tables of up to two of 3, 11 and 36 attributes of ten values: 7 to 667, a sheet each."""

    def make(folder: Path, n_attributes: int) -> None:
        names = [f"a{number:02}" for number in range(n_attributes)]
        _write_codebook(folder, dict.fromkeys(names, 10))
        _write_records(folder, dict.fromkeys(names, 10), 2_000)
        _run(folder, "plan", "codebook.csv", "--out", "plan.json", "--up-to", "2", "--rho", "1")
        _run(folder, "release", *_RELEASE)

    return _rows("tables", (3, 11, 36), make, {"workbook": ["out", "--out", "tables.xlsx"]})


def growth_in_records() -> list[Row]:
    """84 tables of three of nine attributes, of 10⁵, 10⁶ and 10⁷ records."""
    sizes = {f"a{number}": 5 + number for number in range(9)}

    def make(folder: Path, n_records: int) -> None:
        _write_codebook(folder, sizes)
        _write_records(folder, sizes, n_records)
        _run(folder, "plan", "codebook.csv", "--out", "plan.json", "--up-to", "3", "--rho", "1")

    return _rows("records", (10**5, 10**6, 10**7), make, {"release": _RELEASE})


def growth_in_cells() -> list[Row]:
    """One table of 3·10⁴, 3·10⁵ and 3·10⁶ cells: with fewer, the start hides how a verb grows."""

    def make(folder: Path, n_values: int) -> None:
        sizes = {"a": 10, "b": 100, "c": n_values}
        _write_codebook(folder, sizes)
        _write_records(folder, sizes, 10_000)
        tables = ["--table", "a,b,c"]
        _run(folder, "plan", "codebook.csv", "--out", "plan.json", *tables, "--rho", "1")

    return _rows(
        "cells",
        (30, 300, 3000),
        make,
        {
            "release": _RELEASE,
            "release, again": [*_RELEASE[:-1], "second"],
            "answer": ["out", "a=1", "b=1", "c=1"],
            "postprocess": ["out", "--round", "--out", "whole"],
            "postprocess, nonnegative": ["out", "--nonnegative", "--out", "nonnegative"],
            "combine": ["out", "second", "--out", "both"],
            "publish": ["out", "--out", "export"],
        },
    )


def growth_in_areas() -> list[Row]:
    """Four tables in 10⁴, 10⁵ and 10⁶ areas on three levels, 20,000 to two million people."""
    sizes = {"age": 5, "sex": 2}

    def make(folder: Path, n_areas: int) -> None:
        _write_codebook(folder, sizes)
        codes = [f"{number // 1000:04}-{number % 1000:03}" for number in range(n_areas)]
        lines = "\n".join(f"{code[:4]},{code}" for code in codes)
        (folder / "areas.csv").write_text(f"district,block\n{lines}\n", "utf-8")
        rng = np.random.default_rng(0)
        where = np.sort(rng.integers(0, n_areas, 2 * n_areas))
        columns = {name: rng.integers(0, size, len(where)) for name, size in sizes.items()}
        places = pa.array(codes).take(pa.array(where))
        districts = pa.array([code[:4] for code in codes]).take(pa.array(where))
        records = pa.table({**columns, "district": districts, "block": places})
        parquet.write_table(records, folder / "records.parquet")

    return _rows(
        "areas",
        (10**4, 10**5, 10**6),
        make,
        {
            "schema": ["codebook.csv", "--areas", "areas.csv"],
            "plan": [
                *("codebook.csv", "--areas", "areas.csv", "--out", "plan.json"),
                *("--up-to", "2", "--detail", "same", "--rho", "1"),
            ],
            "show": ["plan.json"],
            "verify": ["plan.json"],
            "compare": ["plan.json"],
            "forecast": ["plan.json", "--expected-count", "100000"],
            "report": ["plan.json", "--out", "report.html"],
            "release": _RELEASE,
            "release, again": [*_RELEASE[:-1], "second"],
            "answer": ["out", "age=1", "--area", "0001"],
            "combine": ["out", "second", "--out", "both"],
            "publish": ["out", "--out", "export"],
            "postprocess": ["out", "--nonnegative", "--round", "--out", "whole"],
        },
    )


def _rows(
    what: str,
    sizes: Sequence[int],
    make: Callable[[Path, int], None],
    verbs: Mapping[str, Sequence[str]],
) -> list[Row]:
    """The exponents of verbs, and the seconds of each at the largest size."""
    seconds: dict[str, list[float]] = {name: [] for name in verbs}
    with ExitStack() as folders:
        smallest: Path | None = None
        for size in sizes:
            folder = Path(folders.enter_context(tempfile.TemporaryDirectory()))
            make(folder, size)
            smallest = smallest or folder
            for verb, options in verbs.items():
                arguments = verb.partition(",")[0], *options
                seconds[verb].append(_run(folder, *arguments, after=smallest))
    rows: list[Row] = []
    for verb, (first, second, third) in seconds.items():
        grown = max(second - first, _LEAST)
        exponent = math.log10(max((third - first) / grown - 1, 0.1))
        rows.append(
            (f"{verb}: exponent of its time in {what} ({third:.2g} s)", exponent, "<=", MOST)
        )
    return rows


def _run(folder: Path, *arguments: str, after: Path | None = None) -> float:
    """Least processor time of a verb in a folder, in a process that has run it in another before.

    after: that folder; None to run it once, and without measuring more than that
    """
    command = [sys.executable, "-m", "tests.benchmarks.growth"]
    command += ["" if after is None else str(after), str(folder), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.PIPE, text=True
    )
    return float(done.stdout.splitlines()[-1])


def _measured(after: str, folder: str, arguments: Sequence[str]) -> float:
    """Least processor time of some runs of a verb, or of one that is long."""
    if not after:
        return _seconds(folder, arguments)
    _seconds(after, arguments)
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < _LONG:
        seconds.append(_seconds(folder, arguments))
    return min(seconds)


def _seconds(folder: str, arguments: Sequence[str]) -> float:
    """Processor time of a verb in a folder, without what it has left there before."""
    os.chdir(folder)
    if "--out" in arguments:
        output = Path(arguments[arguments.index("--out") + 1])
        shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)
    sys.argv = ["rpexplore", *arguments]
    before = time.process_time() + ended_seconds()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return time.process_time() + ended_seconds() - before


def _write_codebook(folder: Path, sizes: Mapping[str, int]) -> None:
    rows = [f"{name},{value}," for name, size in sizes.items() for value in range(size)]
    text = "\n".join(["attribute,value,label", *rows])
    (folder / "codebook.csv").write_text(text, "utf-8")


def _write_records(folder: Path, sizes: Mapping[str, int], n_records: int) -> None:
    rng = np.random.default_rng(0)
    columns = {
        name: (rng.random(n_records) ** 2 * size).astype(np.int16) for name, size in sizes.items()
    }
    parquet.write_table(pa.table(columns), folder / "records.parquet")


CASES = (
    growth_in_tables,
    growth_in_fewer_tables,
    growth_in_sheets,
    growth_in_records,
    growth_in_cells,
    growth_in_areas,
)

if __name__ == "__main__":
    print(_measured(sys.argv[1], sys.argv[2], sys.argv[3:]))
