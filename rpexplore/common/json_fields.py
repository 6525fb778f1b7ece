"""Parts of JSON files: objects with exactly the keys they must have, rows and numbers."""

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from rpexplore.errors import PlanError


def check_keys(content: Any, keys: Collection[str], noun: str) -> None:
    """Raise `PlanError` unless it holds exactly these keys.

    What nobody checks has no place in a plan.
    """
    if not isinstance(content, dict) or content.keys() != set(keys):
        found = ", ".join(content) if isinstance(content, dict) else repr(content)
        raise PlanError(f"{noun} must hold exactly {', '.join(keys)}, got {found:.200}.")


def columns(content: dict[str, Any], key: str, keys: Sequence[str]) -> dict[str, list[Any]]:
    """The rows under a key, turned into one list for each of their keys."""
    rows = content[key]
    if not isinstance(rows, list):
        raise PlanError(f"{key} must be a list.")
    wanted = set(keys)
    for row in rows:
        if not isinstance(row, dict) or row.keys() != wanted:
            check_keys(row, keys, f"each of the {key}")
    columns = {name: [row[name] for row in rows] for name in keys}
    if not all(type(names) is list for names in columns.get("attributes", [])):
        raise PlanError(f"the attributes of each of the {key} must be a list of names.")
    return columns


def floats(values: list[Any], noun: str) -> np.ndarray:
    """JSON numbers as float64[len(values)]; raises `PlanError` for anything else, also true."""
    if not {type(value) for value in values} <= {int, float}:
        wrong = next(value for value in values if type(value) not in (int, float))
        raise PlanError(f"every {noun} must be a number, got {wrong!r}.")
    return np.array(values, dtype=float)


def not_negative(values: list[Any], noun: str) -> np.ndarray:
    """`floats` that are finite and at least 0."""
    numbers = floats(values, noun)
    if not np.all(np.isfinite(numbers) & (numbers >= 0)):
        raise PlanError(f"every {noun} must be a finite number of at least 0.")
    return numbers


def dumps(value: Any) -> str:
    """The canonical JSON of a value, without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
