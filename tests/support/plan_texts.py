"""Plan files of changed content, laid out as docs and schema say, without the library's writer."""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_SECTIONS = ("bases", "strategies", "tables", "cells", "residuals", "queries", "strategy")


def laid_out(content: dict[str, Any]) -> str:
    """The canonical layout: one key a line; rows of lists, and of matrices, on lines of their own.

    Keys and numbers stand as the content has them.
    """
    lines = [
        f'"{key}":{_rows(map(_row, value)) if key in _SECTIONS and value else _compact(value)}'
        if isinstance(value, list)
        else f'"{key}":{_compact(value)}'
        for key, value in content.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(value: Any) -> str:
    text = _compact(value)
    matrix = value.get("matrix") if isinstance(value, dict) else None
    if not isinstance(matrix, list) or not matrix:
        return text
    return text.replace(_compact(matrix), _rows(map(_compact, matrix)))


def _rows(texts: Iterator[str]) -> str:
    return "[\n" + ",\n".join(texts) + "\n]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def changed(text: str, path: Sequence[Any], value: Any) -> dict[str, Any]:
    """The content of a text with the value at a path of keys and indices replaced.

    value: what stands there then; ... for nothing, or a function of what stands there now
    """
    content = json.loads(text)
    *above, last = path
    parent = content
    for key in above:
        parent = parent[key]
    if value is ...:
        del parent[last]
    else:
        parent[last] = value(parent[last]) if isinstance(value, Callable) else value
    return content


def other_layouts(text: str) -> dict[str, str]:
    """Texts with the same content that are not byte for byte the same, by what is other."""
    content = json.loads(text)
    tables = copy.deepcopy(content)
    first = next(key for key in _SECTIONS if content.get(key))
    tables[first][0] = dict(reversed(tables[first][0].items()))
    return {
        "indented": json.dumps(content, indent=4, ensure_ascii=False),
        "on one line": _compact(content),
        "keys in another order": laid_out(dict(reversed(content.items()))),
        "keys of a row in another order": laid_out(tables),
        "one space more": text.replace('"format_version":1', '"format_version": 1', 1),
        "a space at the end": text + " ",
        "no final newline": text.removesuffix("\n"),
        "two final newlines": text + "\n",
        "Windows line ends": text.replace("\n", "\r\n"),
        "byte order mark": "\ufeff" + text,
        "escaped letters": text.replace('"format"', '"f\\u006frmat"', 1),
    }
