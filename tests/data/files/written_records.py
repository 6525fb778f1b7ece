"""Small files of records, their codes, and what is said where they are refused."""

import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.errors import DataError
from tests.data.coded_records import read_records

SECRET = "s3cr3t-value"


def domain_of(**values) -> Domain:
    return Domain(tuple(Attribute(name, of) for name, of in values.items()))


LETTERS = domain_of(c=Categories(("a", "b", "rest")))
NONE = (("none", "none"),)
DIGITS = domain_of(c=Integers(0, 9, 1, NONE))
NUMBERED = domain_of(c=Categories(("0", "1", "2", "rest")))


def written(folder: Path, text: str | bytes, name: str = "records.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def stored(folder: Path, **columns) -> Path:
    path = folder / "records.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def codes(path: Path, domain: Domain, indices=None, **options) -> list[list[int]]:
    indices = range(len(domain)) if indices is None else indices
    records = read_records(path, domain, indices, **options)
    assert sorted(records.codes) == list(indices)
    assert all(len(column) == records.n_records for column in records.codes.values())
    return [records.codes[index].tolist() for index in indices]


def refusal(path: Path, domain: Domain, *secrets: str, **options) -> DataError:
    """The `DataError`; fails if a message or a printed traceback holds one of the secrets."""
    with pytest.raises(DataError) as caught:
        read_records(path, domain, range(len(domain)), **options)
    error = caught.value
    printed = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    for secret in secrets:
        assert secret not in str(error)
        assert secret not in printed
    return error
