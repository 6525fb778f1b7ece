"""Codebooks and records in the formats of others.

Cases of `tests.benchmarks.run`.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat

from rpexplore.common import statistics_files
from rpexplore.data.files.columns import CodebookFile, recognise_path
from rpexplore.data.files.source import FileSource
from rpexplore.scenarios.examples import EXAMPLES
from tests.benchmarks.measure import Row, best_of_three, once, processes_seconds

N_VARIABLES, N_LABELS, N_RECORDS = 1_000, 12, 10_000
N_MANY = 1_000_000


def spss_codebook() -> list[Row]:
    """From the choice of a file to a scenario with its codebook, as on the page."""
    names = [f"question_{number}" for number in range(N_VARIABLES)]
    rng = np.random.default_rng(0)
    records = pd.DataFrame(rng.integers(0, N_LABELS, (N_RECORDS, N_VARIABLES)), columns=names)
    labels = {float(value): f"Answer number {value}" for value in range(N_LABELS)}
    scenario = EXAMPLES[0].scenario

    def accept(path: Path) -> int:
        file = recognise_path(path)
        assert isinstance(file, CodebookFile)
        assert not file.remarks
        domain = scenario.replaced(domain=file.domain).domain
        return sum(attribute.labels() == [*labels.values()] for attribute in domain)

    def fresh() -> Path:
        statistics_files._of_path.cache_clear()
        return path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.sav"
        pyreadstat.write_sav(
            records.astype(float), path, variable_value_labels=dict.fromkeys(names, labels)
        )
        # Of the process that reads the file as well.
        seconds, n_labelled = best_of_three(accept, fresh, processes_seconds)
    return [
        (f"SPSS file of {N_VARIABLES:,} variables to codebook, s (CPU)", seconds, "<=", 1),
        ("  variables with all their labels", n_labelled, ">=", N_VARIABLES),
    ]


def spss_records() -> list[Row]:
    rng = np.random.default_rng(0)
    records = pd.DataFrame(
        {f"v{column}": rng.integers(0, 10, N_MANY).astype(float) for column in range(20)}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.sav"
        pyreadstat.write_sav(records, path, row_compress=True)
        source = FileSource(path)

        def read() -> int:
            names = [f"v{column}" for column in range(5)]
            return sum(batch.num_rows for batch, _ in source.batches(names))

        seconds, n_read = once(read)
    assert n_read == N_MANY
    return [(f"SPSS file of {N_MANY:,} records, 5 of 20 columns read, s", seconds, "<=", 10)]


CASES = (spss_codebook, spss_records)
