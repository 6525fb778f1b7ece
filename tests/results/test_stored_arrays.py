"""Arrays in a Parquet file: back as they were, or refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rpexplore.errors import ReleaseError
from rpexplore.results import unbiased
from rpexplore.results.unbiased import read_arrays, write_arrays

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LISTS = st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), max_size=6).flatmap(
    lambda shapes: st.tuples(*(arrays(float, shape, elements=FINITE) for shape in shapes))
)


@given(LISTS, st.integers(1, 20))
def test_they_come_back_bit_for_bit(tmp_path_factory, listed, rows):
    path = tmp_path_factory.mktemp("arrays") / "file.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unbiased, "_ROWS_AT_ONCE", rows)
        write_arrays(path, "number", listed)
        shapes = [array.shape for array in listed]
        arrays_read = list(read_arrays(path, "number", shapes, np.float64))
    assert [array.shape for array in arrays_read] == [array.shape for array in listed]
    for back, array in zip(arrays_read, listed, strict=True):
        assert back.tobytes() == array.tobytes()


def rows(path, residual, cell, number) -> None:
    columns = {
        "residual": pa.array(residual, pa.int32()),
        "cell": pa.array(cell, pa.int64()),
        "number": pa.array(number, pa.int64()),
    }
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    "wrong",
    [
        ([0, 1], [0, 0], [1, 2]),  # one missing
        ([0, 1, 1, 1], [0, 0, 1, 1], [1, 2, 3, 3]),  # one twice
        ([0, 1, 1], [0, 0, 0], [1, 2, 3]),  # one twice, one missing
        ([0, 1, 1], [0, 1, 0], [1, 3, 2]),  # not in order
        ([0, 1, 2], [0, 0, 0], [1, 2, 3]),  # an array too many
        ([0, 1, -1], [0, 0, 0], [1, 2, 3]),
        ([0, 1, 1], [0, 0, 2], [1, 2, 3]),  # a cell too many
        ([0, 1, 1], [0, 0, -1], [1, 2, 3]),
        ([0, 1, 1], [0, 0, 1], [1, 2, None]),
    ],
)
def test_what_does_not_hold_every_number_once_in_order_is_refused(wrong, tmp_path):
    path = tmp_path / "file.parquet"
    rows(path, *wrong)
    with pytest.raises(ReleaseError, match=r"file\.parquet.*does not hold what its plan says"):
        list(read_arrays(path, "number", [(), (2,)], np.int64))


def test_what_is_no_such_file_is_refused(tmp_path):
    path = tmp_path / "file.parquet"
    with pytest.raises(ReleaseError, match="does not hold"):
        list(read_arrays(path, "number", [()], np.int64))
    path.write_text("no parquet")
    with pytest.raises(ReleaseError, match="does not hold"):
        list(read_arrays(path, "number", [()], np.int64))
    rows(path, [0], [0], [1])
    with pytest.raises(ReleaseError, match="does not hold"):
        list(read_arrays(path, "another", [()], np.int64))
