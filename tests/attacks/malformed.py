"""What people and programs write by mistake, or on purpose: the inputs of `test_malformed`.

Deterministic: the same inputs in every run.
"""

import copy
import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Values where another kind, size or form of value belongs.
ODD_VALUES: list[Any] = [
    None, True, [], {}, [[]], [None], "", " ", "\x00", "x" * 5000, "é", "é", "=1+1", -1, 0,
    1e155, 1e-155, 1e308, 10**400, -0.0, "1/0", "nan", "inf", "1e999999", "٣", {"a": {"a": []}},
]  # fmt: skip

# Texts of options, where a number, a name, a table or a path belongs.
ODD_TEXTS = [
    "", " ", "\t", "nan", "inf", "-inf", "-1", "0", "1e999999", "1e-999999", "1/0", "0x10", "1,5",
    "1_000", "٣", "=1", ",", ",,", "age,", "age,age", "age;sex", '"', '"age', "'", "\n", "a\nb",
    "\x1b[31m", "x" * 5000, "age=", "=", "age=1=2", "age:", "age@", "age@nothing", "..", "../..",
    "/", ".", "/dev/null", "é", "\u202e", "{}", "[]", "%s", "{0}", "total,age", "None", "true",
]  # fmt: skip


def zipped() -> bytes:
    """A workbook as spreadsheet programs save it, as far as its first bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return file.getvalue()


def blobs() -> list[bytes]:
    """Contents that are no file of the program."""
    packed = gzip.compress(b"age,sex,region\nyoung,F,R1\n" * 50, mtime=0)
    return [
        b"", b" ", b"\n\n\n", b"\x00" * 100, b"\xff\xfe" + "age,sex".encode("utf-16-le"),
        b"\xef\xbb\xbf", b"\xff" * 20, b"<!doctype html><p>Not found", b"PK\x03\x04", zipped(),
        packed, packed[:-9], b"PAR1", b"PAR1" + b"\x00" * 50 + b"PAR1", b"SQLite format 3\x00",
        b"\x93NUMPY\x01\x00", b"{", b"[]", b"{}", b"null", b"1", b'"x"', b"[" * 50_000,
        b'{"a":' * 20_000, b"NaN", b'{"format": "x"}', b"age,sex,region", b"age,sex,region\n",
        b"age,age,sex\nyoung,old,F\n", b'age,sex\n"young,F\n', b"age;sex\nyoung;F\n",
        b"age,sex,region\nyoung,F\n", b"age,sex,region\nyoung,F,R1,R2\n", b"age,sex\n\x00,F\n",
        "é,é\n1,2\n".encode(), b"age,sex,region\n\xe9,F,R1\n", b",,\n,,\n",
        b"age," + b"x" * 200_000 + b"\n1,2\n", b"%PDF-1.4", b"\x1f\x8b" + b"\x00" * 20,
    ]  # fmt: skip


def edited(content: Any, chooser: random.Random, n: int) -> Iterator[Any]:
    """JSON values that differ from `content` in one place: replaced, removed, added or doubled."""
    spots = list(_spots(content))
    for _ in range(n):
        changed = copy.deepcopy(content)
        path = chooser.choice(spots)
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        how = chooser.randrange(4)
        if how == 0 and isinstance(holder, dict):
            del holder[path[-1]]
        elif how == 1 and isinstance(holder, dict):
            holder["surplus"] = chooser.choice(ODD_VALUES)
        elif how == 2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))
        else:
            holder[path[-1]] = chooser.choice(ODD_VALUES)
        if changed != content:
            yield changed


def _spots(content: Any, path: tuple = ()) -> Iterator[tuple]:
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _spots(value, (*path, key))


def flipped(content: bytes, chooser: random.Random, n: int) -> Iterator[bytes]:
    """The content with one bit changed, cut off, or with bytes left out or put in."""
    for _ in range(n):
        changed = bytearray(content)
        spot = chooser.randrange(len(changed))
        how = chooser.randrange(8)
        if how == 0:
            del changed[spot:]
        elif how == 1:
            del changed[spot : spot + 1 + chooser.randrange(8)]
        elif how == 2:
            changed[spot:spot] = chooser.randbytes(3)
        else:
            changed[spot] ^= 1 << chooser.randrange(8)
        yield bytes(changed)


def edited_file(path: Path, chooser: random.Random, n: int) -> Iterator[bytes]:
    """A JSON file with one value changed, in the layout in which it was."""
    content = json.loads(path.read_text("utf-8"))
    for changed in edited(content, chooser, n):
        yield (json.dumps(changed, ensure_ascii=False, indent=1) + "\n").encode(errors="replace")
