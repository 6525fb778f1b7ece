"""How far from what the machine itself needs: the noise, the counting, the writing of tables.

Cases of `tests.benchmarks.run`. Each ratio is the processor time of our call over that of its floor
in the same process, so that a slower or busier machine changes it little: the same random bytes
from the operating system; the same bytes written to a file; `bincount` of codes that are ready, for
every table of the highest order.
"""

import os
import tempfile
import time
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.data.files.source import source_of
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.table_cells import CsvWriter, csv_decimals, label_columns, table_of_cells
from tests.benchmarks.measure import Row, process_seconds
from tests.benchmarks.releases import mock_records

_DRAWS = 2_000_000
_RECORDS, _SIZE = 1_000_000, 10


def noise_over_entropy() -> list[Row]:
    variance, asked = Fraction(10**6) + Fraction(1, 3), list[int]()

    def counted(n_bytes: int) -> bytes:
        asked.append(n_bytes)
        return os.urandom(n_bytes)

    discrete_gaussian(_DRAWS, variance, random_bytes=counted)
    ours = process_seconds(lambda: discrete_gaussian(_DRAWS, variance), time.thread_time)
    floor = process_seconds(lambda: [os.urandom(n) for n in asked], time.thread_time)
    return [
        ("noise of scale 1,000 over its random bytes alone, times", ours / floor, "<=", 3),
        ("  random bytes a draw", sum(asked) / _DRAWS, "<=", 10),
    ]


def counting_over_bincount() -> list[Row]:
    domain = rp.Domain.from_sizes({f"a{i}": _SIZE for i in range(15)})
    triples = list(combinations(range(15), 3))
    with tempfile.TemporaryDirectory() as folder:
        data = mock_records(Path(folder) / "records.parquet", domain, _RECORDS)
        ours = process_seconds(lambda: source_of(data).count(domain, triples))
    columns = np.random.default_rng(0).integers(0, _SIZE, (15, _RECORDS))

    def every_table() -> None:
        for a, b, c in triples:
            np.bincount((columns[a] * _SIZE + columns[b]) * _SIZE + columns[c], minlength=_SIZE**3)

    floor = process_seconds(every_table)
    return [
        (f"counting {len(triples)} tables of a file over bincount, times", ours / floor, "<=", 0.5)
    ]


def csv_over_bytes() -> list[Row]:
    domain = rp.Domain.from_sizes({"a": 100, "b": 85, "c": 42})
    values = np.random.default_rng(0).normal(500, 300, domain.sizes)
    labels = [label_columns(attribute) for attribute in domain.attributes]
    rows = table_of_cells(labels, values, np.broadcast_to(2659.1, values.shape))
    decimals = csv_decimals(51.6, 2_000)
    with tempfile.TemporaryFile() as file:

        def write() -> None:
            file.seek(0)
            CsvWriter(file, rows.column_names, decimals, escape_formulas=False).write(rows)

        def write_bytes() -> None:
            file.seek(0)
            file.write(text)
            file.flush()

        ours = process_seconds(write)
        file.flush()
        file.seek(0)
        text = file.read()
        floor = process_seconds(write_bytes)
    return [
        ("CSV of a table over writing its bytes, times", ours / floor, "<=", 40),
        ("  bytes a cell", len(text) / values.size, "<=", 60),
    ]


CASES = (noise_over_entropy, counting_over_bincount, csv_over_bytes)
