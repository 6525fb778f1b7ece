"""A function of numbers in a cluster: each number is a task, what is made of it comes back.

Workers need numpy, pyarrow and what the function needs, as in `spark_worker`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Compute: TypeAlias = Callable[[int], Sequence[np.ndarray]]
"""What is made of a number, the same at each try. It is pickled."""

COLUMNS = "number bigint, place int, piece int, kind string, content binary"
_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("place", pa.int32()),
        ("piece", pa.int32()),
        ("kind", pa.string()),
        ("content", pa.binary()),
    ]
)
_NUMBERS = 1 << 18  # of an array in a row


def rows_of(batches: Iterable[pa.RecordBatch], compute: Compute) -> Iterator[pa.RecordBatch]:
    """The arrays that are made of each number, in pieces: a row a piece; no row for no array."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for place, array in enumerate(compute(number)):
                flat = array.reshape(-1)
                for piece, start in enumerate(range(0, max(len(flat), 1), _NUMBERS)):
                    content = flat[start : start + _NUMBERS].tobytes()
                    row = (number, place, piece, array.dtype.str, content)
                    cells = dict(zip(_SCHEMA.names, row, strict=True))
                    yield pa.RecordBatch.from_pylist([cells], _SCHEMA)


def arrays_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Each number, and the arrays of it, flat. rows: of a number in order, one after another."""
    for number, of_number in groupby(rows, lambda row: row["number"]):
        arrays = []
        for _, pieces in groupby(of_number, lambda row: row["place"]):
            arrays.append(
                np.concatenate([np.frombuffer(row["content"], row["kind"]) for row in pieces])
            )
        yield number, arrays
