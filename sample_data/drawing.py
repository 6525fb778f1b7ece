"""What all generators share: drawing from made-up figures, and writing files.

The files must come out the same, byte for byte, on every machine. For that the only random source
is `random.Random.random()`, whose sequence Python guarantees, and the only arithmetic on it is
+ - * / and comparison (exp, log and pow may differ in the last bit from one C library to another).
"""

import csv
import gzip
import io
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise, product
from pathlib import Path
from random import Random

from country import Curve

Row = tuple[str | int, ...]


def on_curve(curve: Curve, x: float) -> float:
    """The value at x, linear between the curve's points and constant outside them."""
    if x <= curve[0][0]:
        return curve[0][1]
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x < x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return curve[-1][1]


def picked(weights: Mapping[str, float], u: float) -> str:
    """The option at rank u in [0, 1), in proportion to the weights (inverse distribution)."""
    edges = list(accumulate(weights.values()))
    return list(weights)[min(bisect_right(edges, u * edges[-1]), len(edges) - 1)]


def shuffled(rows: Sequence[Row], random: Random) -> list[Row]:
    """The rows in an order that does not show how they were drawn."""
    keys = [random.random() for _ in rows]
    return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]


def listed_field(name: str, title: str, values: Mapping[str, str] | Sequence[str],
                 groups: Iterable[Sequence[str]] | None = None) -> dict:  # fmt: skip
    """The Table Schema field of an attribute with listed values, which may have labels."""
    field = {"name": name, "title": title, "type": "string",
             "constraints": {"enum": list(values)}}  # fmt: skip
    if isinstance(values, Mapping):
        field["categories"] = [{"value": v, "label": label} for v, label in values.items()]
    if groups is not None:
        field["groups"] = [list(path) for path in groups]
    return field


def counted_rows(rows: Iterable[Row], fields: Sequence[dict], names: Sequence[str]) -> list[Row]:
    """One row a combination of the values of these attributes, with its count, row-major."""
    columns = [[field["name"] for field in fields].index(name) for name in names]
    counts = Counter(tuple(str(row[column]) for column in columns) for row in rows)
    values = [_values(fields[column]) for column in columns]
    return [(*cell, counts[cell]) for cell in product(*values)]


def _values(field: dict) -> list[str]:
    limits = field["constraints"]
    if "enum" in limits:
        return limits["enum"]
    return [str(value) for value in range(limits["minimum"], limits["maximum"] + 1)]


def write_schema(path: Path, fields: Iterable[dict], impossible: Iterable[dict] = ()) -> None:
    """Write a Table Schema, with the combinations of values that nobody can have."""
    lists = {"fields": fields, "impossible": impossible}
    parts = [
        f'"{name}": [\n' + ",\n".join(f"  {json.dumps(one)}" for one in listed) + "\n]"
        for name, listed in lists.items()
        if listed
    ]
    _write(path, f"{{{', '.join(parts)}}}\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a CSV file, compressed if it is named so."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    _write(path, text.getvalue())


def write_counted(
    path: Path, values: Mapping[str, Sequence[str]], counts: Sequence[int]
) -> None:  # fmt: skip
    """Write a Parquet file of one row a person, from how many have each combination of values.

    counts: row-major. Rows are in the order of the values, so that millions take a megabyte. The
    rows are the same everywhere; the bytes depend on the version of the library.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = np.repeat(np.arange(len(counts)), counts)
    places = np.unravel_index(cells, [len(of_column) for of_column in values.values()])
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), pa.array(of_column))
        for (name, of_column), at in zip(values.items(), places, strict=True)
    }
    pq.write_table(
        pa.table(columns), path, compression="zstd", compression_level=19, row_group_size=len(cells)
    )


def _write(path: Path, text: str) -> None:
    content = text.encode()  # bytes: line ends are the same everywhere
    # No time of writing; what is compressed is the same everywhere, the compression may not be.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
