"""Plan files of changed content, laid out as docs and schema say, without the library's writer.

Content is that of the only part of a plan, with an object for each table and each residual, and
beside it what the plan has around its parts; `compact` makes of it what a file holds. Budget and
privacy cost are those of the part, and the plan's as well unless the part has none: a plan of one
part costs what its part costs. Tests of what is between parts change what `json.loads` gives.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from rpexplore.domain.codebook import attributes_from_schema

_SECTIONS = (
    "bases", "strategies", "classes", "tables", "cells", "noise_scales", "residuals",
    "queries", "strategy", "levels", "workloads", "rounds",
)  # fmt: skip


# What both a plan and its part have.
_OF_BOTH = ("budget", "privacy_cost")
# Under this key content keeps what the plan has of it.
_OF_PLAN = "of the plan"


def fields_of(text: str) -> dict[str, Any]:
    """The content of a plan file of one part, with tables and residuals as the file has them."""
    plan = json.loads(text)
    [part] = plan.pop("parts")
    seal = plan.pop("sha256")
    of_plan = {key: plan.pop(key) for key in _OF_BOTH}
    return {**plan, **part, _OF_PLAN: of_plan, "sha256": seal}


def content_of(text: str) -> dict[str, Any]:
    """The content of a plan file of one part; attributes are numbers in the domain."""
    content = fields_of(text)
    if "classes" not in content:  # of another kind than tables
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
    return nested(_without_repetitions(content))


def nested(fields: dict[str, Any]) -> dict[str, Any]:
    """What a file holds of `fields_of` one: the part within the plan."""
    if _OF_PLAN not in fields:
        return fields
    around = ("format", "format_version", "library_version", "sha256")
    of_both = {key: fields.get(key, value) for key, value in fields[_OF_PLAN].items()}
    part = {key: value for key, value in fields.items() if key not in (*around, _OF_PLAN)}
    plan = {key: fields[key] for key in around[:-1] if key in fields}
    plan |= {**of_both, "parts": [part]}
    return plan | {key: fields[key] for key in around[-1:] if key in fields}


def _without_repetitions(content: dict[str, Any]) -> dict[str, Any]:
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
    return compacted


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

    Keys and numbers stand as the content has them. content: as of a file, or `fields_of` one
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
    return _object(content, ("parts",)) + "\n"


def _object(content: dict[str, Any], sections: Sequence[str]) -> str:
    """One key a line; rows of lists, and of matrices, on lines of their own."""
    lines = [
        f'"{key}":{_rows(map(_row, value)) if key in sections and value else _dumps(value)}'
        if isinstance(value, list)
        else f'"{key}":{_dumps(value)}'
        for key, value in content.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


def _row(value: Any) -> str:
    if isinstance(value, dict) and "kind" in value and "domain" in value:
        return _object(value, _SECTIONS)
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
    rows = copy.deepcopy(content)
    part = rows["parts"][0]
    first = next(key for key in _SECTIONS if part.get(key))
    part[first][0] = dict(reversed(part[first][0].items()))
    parts = copy.deepcopy(content)
    parts["parts"][0] = dict(reversed(parts["parts"][0].items()))
    return {
        "indented": json.dumps(content, indent=4, ensure_ascii=False),
        "on one line": _dumps(content),
        "keys in another order": _lines(dict(reversed(content.items()))),
        "keys of a part in another order": _lines(parts),
        "keys of a row in another order": _lines(rows),
        "one space more": text.replace('"format_version":2', '"format_version": 2', 1),
        "a space at the end": text + " ",
        "no final newline": text.removesuffix("\n"),
        "two final newlines": text + "\n",
        "Windows line ends": text.replace("\n", "\r\n"),
        "byte order mark": "\ufeff" + text,
        "escaped letters": text.replace('"format"', '"f\\u006frmat"', 1),
    }
