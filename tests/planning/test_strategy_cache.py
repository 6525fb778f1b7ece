"""The strategy cache: found again in the process and on disk, and never in the way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rpexplore.planning.strategies import StrategyCache, user_cache

ARRAYS = {"matrix": np.arange(6.0).reshape(2, 3), "integers": np.array([1, -2], dtype=np.int64)}


def same(left, right):
    return (
        left is not None
        and left.keys() == right.keys()
        and all(left[k].dtype == right[k].dtype and np.array_equal(left[k], right[k]) for k in left)
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home" / "strategies"


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def test_what_is_put_is_got_in_this_process_and_the_next(folder):
    cache = StrategyCache(folder)
    assert cache.get("prefix 10") is None
    cache.put("prefix 10", ARRAYS)
    for each in (cache, StrategyCache(folder)):
        assert same(each.get("prefix 10"), ARRAYS)
        assert each.get("prefix 11") is None


@pytest.mark.nightly
def test_another_process_finds_it(folder):
    script = (
        "import sys, numpy as np; from pathlib import Path;"
        "from rpexplore.planning.strategies import StrategyCache;"
        "StrategyCache(Path(sys.argv[1])).put('key', {'a': np.eye(3)})"
    )
    cache = StrategyCache(folder)
    assert cache.get("key") is None
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)
    assert same(cache.get("key"), {"a": np.eye(3)})


def test_arrays_neither_change_with_their_source_nor_under_others(folder):
    cache, source = StrategyCache(folder), np.ones(3)
    cache.put("key", {"a": source})
    source[0] = 7
    for each in (cache, StrategyCache(folder)):
        got = each.get("key")
        assert got is not None
        with pytest.raises(ValueError, match="read-only"):
            got["a"][0] = 5
        got.clear()
        assert same(each.get("key"), {"a": np.ones(3)})


def test_a_new_put_takes_the_place_of_the_old(folder):
    cache = StrategyCache(folder)
    cache.put("key", ARRAYS)
    cache.put("key", {"a": np.eye(2)})
    for each in (cache, StrategyCache(folder)):
        assert same(each.get("key"), {"a": np.eye(2)})
    assert only_file(folder)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "pickle", "folder"])
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(folder, damage):
    StrategyCache(folder).put("key", ARRAYS)
    path = only_file(folder)
    content = path.read_bytes()
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":  # in the numbers of an array, which their checksum tells
            at = content.index(np.arange(6.0).tobytes()) + 20
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        case "text":
            path.write_text("not an archive")
        case "pickle":
            np.savez(path, key=np.frombuffer(b"key", np.uint8), a=np.array([{}], dtype=object))
        case "folder":
            path.unlink()
            path.mkdir()
    cache = StrategyCache(folder)
    assert cache.get("key") is None
    cache.put("key", ARRAYS)
    assert same(cache.get("key"), ARRAYS)
    if damage != "folder":
        assert same(StrategyCache(folder).get("key"), ARRAYS)


def test_the_file_of_another_key_is_ignored(folder):
    cache = StrategyCache(folder)
    cache.put("key", ARRAYS)
    path = only_file(folder)
    cache.put("other", {"a": np.eye(2)})
    (other,) = set(folder.iterdir()) - {path}
    other.replace(path)
    assert StrategyCache(folder).get("key") is None


def test_a_folder_that_cannot_be_made_or_written_is_no_error(folder, monkeypatch):
    folder.parent.mkdir()
    folder.write_text("a file is in the way")
    cache = StrategyCache(folder)
    cache.put("key", ARRAYS)
    assert same(cache.get("key"), ARRAYS)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    folder.unlink()
    monkeypatch.setattr("rpexplore.planning.strategies.write_whole", full)
    cache.put("key", ARRAYS)
    assert same(cache.get("key"), ARRAYS)
    assert StrategyCache(folder).get("key") is None


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_no_error(folder):
    folder.mkdir(parents=True, mode=0o500)
    cache = StrategyCache(folder)
    cache.put("key", ARRAYS)
    assert same(cache.get("key"), ARRAYS)


def test_the_folder_keeps_to_its_bound_and_loses_what_is_unused_for_longest(folder):
    cache = StrategyCache(folder, most_bytes=30_000)
    arrays = {"a": np.ones(1000)}  # some 8,500 bytes: three fit
    for key in ("1", "2", "3"):
        cache.put(key, arrays)
    for path in folder.iterdir():
        os.utime(path, (1000, 1000))
    assert StrategyCache(folder).get("1") is not None  # used again: now the youngest
    StrategyCache(folder, most_bytes=30_000).put("4", arrays)
    left = [key for key in "1234" if StrategyCache(folder).get(key) is not None]
    assert "1" in left
    assert "4" in left
    assert len(left) == 3
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 30_000


def test_the_process_keeps_to_the_bound_too():
    cache = StrategyCache(None, most_bytes=20_000)
    for key in ("1", "2", "1", "3"):
        if cache.get(key) is None:
            cache.put(key, {"a": np.ones(1000)})
    assert [cache.get(key) is not None for key in "123"] == [True, False, True]
    cache.put("too large", {"a": np.ones(10_000)})
    assert cache.get("too large") is None


def test_a_file_above_the_bound_is_not_written(folder):
    StrategyCache(folder, most_bytes=1000).put("key", {"a": np.ones(1000)})
    assert not folder.exists()


def test_leftovers_of_interrupted_writes_count_and_go(folder):
    folder.mkdir(parents=True)
    part = folder / ".old.npz.part-1"
    part.write_bytes(bytes(50_000))
    os.utime(part, (1000, 1000))
    StrategyCache(folder, most_bytes=30_000).put("key", ARRAYS)
    assert not part.exists()
    assert same(StrategyCache(folder).get("key"), ARRAYS)


def test_threads_share_a_cache(folder):
    cache = StrategyCache(folder, most_bytes=100_000)

    def use(number):
        key = str(number % 5)
        cache.put(key, {"a": np.full(100, number % 5)})
        kept = cache.get(key)
        return kept is not None and set(kept["a"]) == {number % 5}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
    for number in range(5):
        assert same(StrategyCache(folder).get(str(number)), {"a": np.full(100, number)})


def test_the_folder_is_the_users_and_can_be_turned_off(monkeypatch, tmp_path):
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("RPEXPLORE_NO_CACHE", raising=False)
    assert user_cache.__wrapped__().folder == tmp_path / "strategies"
    monkeypatch.setenv("RPEXPLORE_NO_CACHE", "1")
    cache = user_cache.__wrapped__()
    cache.put("key", ARRAYS)
    assert same(cache.get("key"), ARRAYS)
    assert not list(tmp_path.iterdir())


def test_no_array_may_take_the_name_of_the_key(folder):
    with pytest.raises(ValueError, match="key"):
        StrategyCache(folder).put("x", {"key": np.ones(1)})
