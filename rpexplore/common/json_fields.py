"""Strict reading of JSON: objects with exactly the keys they must have, lists, rows and numbers.

What is not as it must be raises `FieldError`; the reader of a file says which file it is in, by
`refusing`. Plan files are written by `canonical_text`, manifests and projects by `sealed_text`.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from rpexplore.common.numbers import exact_fraction, shown, shown_value
from rpexplore.errors import RpexploreError

SEAL = "sha256"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class FieldError(RpexploreError):
    """A part of a JSON text is not what it must be."""


# ---- texts


def dumps(value: Any) -> str:
    """The canonical JSON of a value, without spaces."""
    return _ENCODER.encode(value)


def object_text(head: Mapping[str, Any], sections: Mapping[str, Sequence[str]]) -> str:
    """An object with one key a line, behind them lists with one row a line.

    sections: for each key the JSON texts of its rows
    """
    lines = [f"{dumps(key)}:{dumps(value)}" for key, value in head.items()]
    for key, rows in sections.items():
        listed = "\n" + ",\n".join(rows) + "\n" if rows else ""
        lines.append(f"{dumps(key)}:[{listed}]")
    return "{\n" + ",\n".join(lines) + "\n}"


def canonical_text(head: Mapping[str, Any], sections: Mapping[str, Sequence[str]]) -> str:
    """`object_text` with its seal, the SHA-256 of the text without the seal's line."""
    text = object_text(head, sections)
    seal = _sha256(f"{text}\n")
    return f'{text[:-2]},\n"{SEAL}":"{seal}"\n}}\n'


def sealed_text(content: Mapping[str, Any]) -> str:
    """An object in lines, with its seal as its last value.

    content: a seal in it is left out
    """
    text = _unsealed_text(content)
    return f'{text[:-2]},\n "{SEAL}": "{_sha256(text)}"\n}}\n'


def seal_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of what `sealed_text` writes of an object, without the seal."""
    return _sha256(_unsealed_text(content))


def _unsealed_text(content: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in content.items() if key != SEAL}
    return json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def loads(text: str) -> Any:
    """The value of a JSON text; raises `FieldError` for what is not JSON.

    A byte order mark is left out. NaN, infinite numbers, and a key that stands in an object twice,
    whose second value would hide the first, are no JSON.
    """
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_repeated_keys,
        )
    except ValueError as error:
        raise FieldError(f"it is not valid JSON ({error}).") from None
    except RecursionError:
        raise FieldError("it is not valid JSON (lists are nested too deeply).") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number JSON knows")


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(repeated)} stands twice in an object")
    return content


@contextmanager
def refusing(error: type[RpexploreError], beginning: str) -> Iterator[None]:
    """Turn whatever unusable content raises into one error: "beginning: what is wrong"."""
    try:
        yield
    except RpexploreError as refusal:
        raise error(f"{beginning}: {refusal}") from None
    except KeyError as missing:
        raise error(f"{beginning}: {missing} is missing.") from None
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise error(f"{beginning}: a part is of another kind or size than it must be.") from None


# ---- parts


def check_format(content: Any, name: str, version: int, noun: str) -> None:
    """Raise `FieldError` unless an object says that it has this format, in this version.

    noun: what files of this format hold, for errors
    """
    if not isinstance(content, dict) or content.get("format") != name:
        raise FieldError(f'"format" must be "{name}".')
    stated = content.get("format_version")
    if type(stated) is not int or stated != version:
        library = content.get("library_version")
        remedy = "" if library is None else f"; use the library version {shown(library)} or newer"
        raise FieldError(
            f"it has {noun} format version {shown_value(stated)}, and this library reads version "
            f"{version}{remedy}."
        )


def check_keys(content: Any, keys: Collection[str], noun: str) -> None:
    """Raise `FieldError` unless it is an object with exactly these keys.

    What nobody checks has no place in a file.
    """
    if not isinstance(content, dict) or content.keys() != set(keys):
        given = ", ".join(content) if isinstance(content, dict) else shown_value(content)
        raise FieldError(f"{noun} must hold exactly {', '.join(keys)}, got {given:.200}.")


def list_of(content: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key; raises `FieldError` for anything else."""
    _refuse_others([content[key]], {list}, f"{key} must be a list")
    return content[key]


def text_of(content: Mapping[str, Any], key: str) -> str:
    """The text under a key; raises `FieldError` for anything else."""
    _refuse_others([content[key]], {str}, f"{key} must be a text")
    return content[key]


def sha256_of(content: Mapping[str, Any], key: str) -> str:
    """The SHA-256 under a key; raises `FieldError` for anything else."""
    sha256 = text_of(content, key)
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise FieldError(f"the SHA-256 under {key} must be 64 hexadecimal digits.")
    return sha256


def columns(content: Mapping[str, Any], key: str, keys: Sequence[str]) -> dict[str, list[Any]]:
    """The rows under a key, turned into one list for each of their keys."""
    rows = list_of(content, key)
    for row in rows:
        check_keys(row, keys, f"each of the {key}")
    return {name: [row[name] for row in rows] for name in keys}


def lists(values: list[Any], noun: str) -> list[list[Any]]:
    """The values, all of them lists; raises `FieldError` for anything else."""
    _refuse_others(values, {list}, f"every {noun} must be a list")
    return values


def indices(values: list[Any], end: int, noun: str) -> np.ndarray:
    """Whole numbers from 0 to below `end` as int64[len(values)]; `FieldError` for anything else."""
    _refuse_others(values, {int}, f"every {noun} must be a whole number")
    if values and not 0 <= min(values) <= max(values) < end:
        wrong = next(value for value in values if not 0 <= value < end)
        raise FieldError(f"there is no {noun} {shown(wrong)}: it must be from 0 to {end - 1:,}.")
    return np.array(values, dtype=np.int64)


def indices_by_first_use(values: list[Any], end: int, noun: str) -> np.ndarray:
    """`indices` that are first 0, then 1 and so on, each of them at least once."""
    numbers = indices(values, end, noun)
    if not np.array_equal(np.unique(np.maximum.accumulate(numbers)), np.arange(end)):
        raise FieldError(f"every {noun} must be used, and listed in the order of first use.")
    return numbers


def floats(values: list[Any], noun: str) -> np.ndarray:
    """JSON numbers as float64[len(values)]; raises `FieldError` for anything else, also true."""
    _refuse_others(values, {int, float}, f"every {noun} must be a number")
    return np.array(values, dtype=float)


def _refuse_others(values: list[Any], kinds: set[type], rule: str) -> None:
    if not set(map(type, values)) <= kinds:
        wrong = next(value for value in values if type(value) not in kinds)
        raise FieldError(f"{rule}, got {shown_value(wrong)}.")


def not_negative(values: list[Any], noun: str) -> np.ndarray:
    """`floats` that are finite and at least 0."""
    numbers = floats(values, noun)
    if not np.all(np.isfinite(numbers) & (numbers >= 0)):
        raise FieldError(f"every {noun} must be a finite number of at least 0.")
    return numbers


def positive(values: list[Any], noun: str) -> np.ndarray:
    """`floats` that are finite and above 0."""
    numbers = not_negative(values, noun)
    if not np.all(numbers > 0):
        raise FieldError(f"every {noun} must be above 0.")
    return numbers


def positive_exact(content: Mapping[str, Any], key: str) -> Fraction:
    """The exact positive number that the text under a key is."""
    value = exact_fraction(text_of(content, key), key)
    if value <= 0:
        raise FieldError(f"{key} must be positive, got {shown(content[key])}.")
    return value
