"""Plan files of changed content, laid out as docs and schema say, without the library's writer.

Content is what a plan of one part holds, its head and its part as one object; it has an object for
each table and each residual. `compact` makes of it what a file holds.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from rpexplore.domain.codebook import attributes_from_schema

_SECTIONS = (
    "bases", "strategies", "residual_strategies", "classes", "tables", "cells", "noise_scales",
    "residuals", "queries", "strategy", "levels", "workloads", "rounds", "rules",
)  # fmt: skip


_HEAD = ("format", "format_version", "library_version")
_IN_BOTH = ("budget", "privacy_cost")  # of a plan of one part, and of the part


def content_of(text: str) -> dict[str, Any]:
    """The content of a plan file; attributes of tables and residuals are numbers in the domain."""
    return unfolded(flat(json.loads(text)))


def flat(file: dict[str, Any]) -> dict[str, Any]:
    """What a file of one part holds, head and part as one object."""
    (part,) = file["parts"]
    assert all(part[key] == file[key] for key in _IN_BOTH if key in file)
    seal = {key: file[key] for key in file if key == "sha256"}
    return {**{key: file[key] for key in _HEAD if key in file}, **part, **seal}


def unfolded(content: dict[str, Any]) -> dict[str, Any]:
    """Flat content with an object for each table and each residual."""
    if "classes" not in content:  # own counts, say
        return content
    classes, scales = content.pop("classes"), content.pop("noise_scales")
    residuals = _residuals(content["domain"], [attributes for attributes, _ in content["tables"]])
    content["tables"] = [
        {"attributes": attributes, **copy.deepcopy(classes[number])}
        for attributes, number in content["tables"]
    ]
    content["residuals"] = [
        {"attributes": list(attributes), "sigma_squared": scales[number]}
        for attributes, number in zip(residuals, content["residuals"], strict=True)
    ]
    return content


def _residuals(schema: dict[str, Any], tables: list[list[int]]) -> list[tuple[int, ...]]:
    """All subsets of tables without attributes of a single value, in the order of files."""
    sizes = [attribute.size for attribute in attributes_from_schema(schema)]
    subsets = set()
    for table in tables:
        several = [attribute for attribute in table if sizes[attribute] > 1]
        for order in range(len(several) + 1):
            subsets.update(combinations(several, order))
    return sorted(subsets, key=lambda subset: (len(subset), subset))


def compact(content: dict[str, Any]) -> dict[str, Any]:
    """What a file holds of content; attributes of residuals are left out, as they follow."""
    compacted = {}
    for key, rows in content.items():
        if key == "tables" and isinstance(rows, list):
            classes = [{name: row[name] for name in row if name != "attributes"} for row in rows]
            compacted["classes"], numbers = _distinct(classes)
            compacted[key] = [
                [*([row["attributes"]] if "attributes" in row else []), number]
                for row, number in zip(rows, numbers, strict=True)
            ]
        elif key == "residuals" and isinstance(rows, list):
            scales = [row.get("sigma_squared") for row in rows]
            compacted["noise_scales"], compacted[key] = _distinct(scales)
        else:
            compacted[key] = rows
    return nested(compacted)


def nested(content: dict[str, Any]) -> dict[str, Any]:
    """What a file of one part holds, of its head and its part as one object."""
    if "parts" in content:
        return content
    head = {key: content[key] for key in (*_HEAD, *_IN_BOTH) if key in content}
    seal = {key: content[key] for key in content if key == "sha256"}
    part = {key: value for key, value in content.items() if key not in (*_HEAD, "sha256")}
    return {**head, "parts": [part], **seal}


def _distinct(values: list[Any]) -> tuple[list[Any], list[int]]:
    """The values that are written otherwise, by their first use, and the number of each value."""
    by_text = {_dumps(value): value for value in values}
    texts = list(by_text)
    return list(by_text.values()), [texts.index(_dumps(value)) for value in values]


def laid_out(content: dict[str, Any]) -> str:
    """The text of a file with this content, in canonical layout."""
    return laid_out_compact(compact(content))


def laid_out_compact(content: dict[str, Any]) -> str:
    """The canonical layout of what a file holds, with the seal that belongs to it.

    Keys and numbers stand as the content has them.
    """
    content = nested(content)
    rest = {key: value for key, value in content.items() if key != "sha256"}
    seal = hashlib.sha256(_lines(rest).encode()).hexdigest()
    return _lines(rest | {"sha256": seal} if "sha256" in content else rest)


def sealed_like(text: str, canonical: str) -> str:
    """A text with the seal of another one in place of its own."""
    return unsealed(text) + canonical.removeprefix(unsealed(canonical))


def unsealed(text: str) -> str:
    """The text before its seal."""
    return text[: text.rindex('"sha256":')]


def _lines(content: dict[str, Any]) -> str:
    """One key a line; rows of lists, and of matrices, on lines of their own."""
    return _object(content) + "\n"


def _object(content: dict[str, Any]) -> str:
    lines = []
    for key, value in content.items():
        text = _dumps(value)
        if isinstance(value, list) and value:
            if key == "parts" and all(isinstance(part, dict) for part in value):
                text = _rows(map(_object, value))
            elif key in _SECTIONS:
                text = _rows(map(_row, value))
        lines.append(f'"{key}":{text}')
    return "{\n" + ",\n".join(lines) + "\n}"


def _row(value: Any) -> str:
    text = _dumps(value)
    matrix = value.get("matrix") if isinstance(value, dict) else None
    if not isinstance(matrix, list) or not matrix:
        return text
    return text.replace(_dumps(matrix), _rows(map(_dumps, matrix)))


def _rows(texts: Iterator[str]) -> str:
    return "[\n" + ",\n".join(texts) + "\n]"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def changed(text: str, path: Sequence[Any], value: Any) -> dict[str, Any]:
    """`content_of` a text with the value at a path of keys and indices `replaced`."""
    return replaced(content_of(text), path, value)


def replaced(content: dict[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    """The content itself, with the value at a path of keys and indices replaced.

    value: what stands there then; ... for nothing, or a function of what stands there now
    """
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
    part = tables["parts"][0]
    first = next(key for key in _SECTIONS if part.get(key))
    part[first][0] = dict(reversed(part[first][0].items()))
    return {
        "indented": json.dumps(content, indent=4, ensure_ascii=False),
        "on one line": _dumps(content),
        "keys in another order": _lines(dict(reversed(content.items()))),
        "keys of a row in another order": _lines(tables),
        "one space more": text.replace('"format_version":2', '"format_version": 2', 1),
        "a space at the end": text + " ",
        "no final newline": text.removesuffix("\n"),
        "two final newlines": text + "\n",
        "Windows line ends": text.replace("\n", "\r\n"),
        "byte order mark": "\ufeff" + text,
        "escaped letters": text.replace('"format"', '"f\\u006frmat"', 1),
    }
