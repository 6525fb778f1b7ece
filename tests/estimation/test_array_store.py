"""Arrays in memory and in a temporary file: the same to whoever reads them."""

import numpy as np
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.estimation import table_map
from rpexplore.estimation.table_map import ArrayStore


def test_arrays_beyond_the_limit_come_back_bit_for_bit(monkeypatch):
    monkeypatch.setattr(table_map, "_MOST_IN_MEMORY", 100)  # 12 numbers of 8 bytes
    rng = np.random.default_rng(1)
    arrays = {
        (): np.array(3.5),
        (0,): rng.normal(size=4).astype(np.float32),
        (0, 1): rng.normal(size=(5, 4)).T,  # not contiguous
        (0, 1, 2): rng.normal(size=(2, 3, 4)),
        (2,): np.arange(3.0),  # for which there is room in memory again
    }
    store = ArrayStore(arrays)
    # Longer than before, shorter, and of the same size: none of them touches what lies beside it.
    for key, array in (((0, 1), np.ones((7, 7))), ((0, 1, 2), np.zeros(2)), ((0,), np.ones(4))):
        arrays[key] = store[key] = array
    del store[2,], arrays[2,]
    assert list(store) == list(arrays)
    assert (2,) not in store
    for key, array in arrays.items():
        assert store[key].dtype == array.dtype
        assert store.shape(key) == array.shape
        np.testing.assert_array_equal(store[key], array, strict=True)
        assert not store[key].flags.writeable


def test_a_full_disk_is_told_with_what_to_do(monkeypatch):
    class Full:
        def seek(self, offset: int) -> None: ...
        def close(self) -> None: ...
        def write(self, data: memoryview) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(table_map, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr(table_map.tempfile, "TemporaryFile", lambda **_: Full())
    monkeypatch.setenv("TMPDIR", "/somewhere")
    with pytest.raises(ReleaseError, match=r"No space left on device\); set .* TMPDIR"):
        ArrayStore({(): np.zeros(2)})
