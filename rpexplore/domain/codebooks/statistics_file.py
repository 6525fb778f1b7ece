"""The dictionary of a file of SPSS, Stata or SAS as variables; none of its records is read."""

import math
from pathlib import Path
from typing import Any

from rpexplore.common.statistics_files import PACKAGES, DictionaryVariable, dictionary
from rpexplore.domain.codebooks.variables import Variable
from rpexplore.errors import DomainError


def variables_of_statistics_file(content: bytes | Path, form: str, name: str) -> list[Variable]:
    """The variables in the dictionary of the file.

    Args:
        content: What it holds, or where it is.
        form: As of `statistics_format`.
        name: What errors call it.

    Raises:
        DomainError: For a file that cannot be read, or without pyreadstat.
    """
    package = PACKAGES[form]
    return [_variable(said, package) for said in dictionary(content, form, name, DomainError)]


def _variable(said: DictionaryVariable, package: str) -> Variable:
    values: dict[str, str] = {}
    missing: dict[str, str] = {}
    for value in _in_order(said):
        listed = missing if _is_missing(value, said) else values
        text = value_text(value, is_text=said.kind == "text", package=package)
        if text.strip():  # blanks are what files say for nothing at all
            listed[text] = said.labels.get(value, "")
    kind = f"{said.kind}, one with a label" if len(values) == 1 else said.kind
    return Variable(said.name, said.label, kind, values, missing)


def value_text(value: Any, *, is_text: bool, package: str) -> str:
    """A value as a codebook has it, and as records are compared with it."""
    if is_text:
        return value
    if isinstance(value, str):  # an extended missing value
        return f".{value}" if package == "Stata" else f".{value.upper()}"
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) <= 2**53)
    return str(int(value)) if is_whole else repr(value)


def _in_order(said: DictionaryVariable) -> list[Any]:
    """All values that have a label or are missing by themselves: numbers by size, then texts."""
    single = [first for first, last in said.missing if first == last]
    listed = dict.fromkeys((*said.labels, *single))
    if said.kind == "text":
        return list(listed)
    numbers = sorted(value for value in listed if _is_number(value))
    return [*numbers, *sorted(value for value in listed if isinstance(value, str))]


def _is_number(value: Any) -> bool:
    return not isinstance(value, str) and math.isfinite(value)


def _is_missing(value: Any, said: DictionaryVariable) -> bool:
    if isinstance(value, str) and said.kind != "text":
        return True
    return any(first <= value <= last for first, last in said.missing)
