"""The counts of a marginal from rows: one a cell, with a column for each attribute."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError
from rpexplore.releases.measurement import MAX_TABLE_CELLS

if TYPE_CHECKING:
    import pandas as pd


def counts_of_frame(
    domain: Domain, frame: "pd.DataFrame", count: str, called: str
) -> tuple[tuple[int, ...], np.ndarray]:
    """(ascending places of the attributes, counts: float64, one axis an attribute).

    count: the column of the counts; all others must be attributes, and rows may stand in any order.
    called: what errors call the marginal. Raises `ReleaseError` for a column that is no attribute,
    a value that is not in the domain, a cell that is missing or there twice, and what is no number.
    """
    columns = list(frame.columns)
    if columns.count(count) != 1:
        raise ReleaseError(
            f"{called} must have one column {count!r} with the noisy counts, got "
            f"{', '.join(map(str, columns)) or 'no columns'}."
        )
    names = [column for column in columns if column != count]
    for name in names:
        if name not in domain:
            raise ReleaseError(
                f"{called} has a column {name!r}, which is no attribute of the domain; rename it, "
                "or take it out."
            )
    places = domain.positions(names)
    attributes = [domain.attributes[place] for place in places]
    shape = [attribute.size for attribute in attributes]
    if prod(shape) > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"{called} has {prod(shape):,} cells by the domain, and a table can have "
            f"{MAX_TABLE_CELLS:,}; leave it out."
        )
    flat = np.zeros(len(frame), dtype=np.int64)
    for attribute in attributes:
        flat = flat * attribute.size + _codes(attribute, frame[attribute.name].tolist(), called)
    times = np.bincount(flat, minlength=prod(shape))
    if np.any(wrong := times != 1):
        cell = int(np.argmax(wrong))
        raise ReleaseError(
            f"{called} must have one row for each of its {prod(shape):,} cells, and has "
            f"{times[cell] or 'none'} for {_describe_cell(attributes, shape, cell)}."
        )
    values = np.empty(prod(shape))
    values[flat] = _numbers(frame[count].tolist(), count, called)
    return places, values.reshape(shape)


def _codes(attribute: Attribute, column: Sequence[object], called: str) -> np.ndarray:
    """The places of a column's values among those of an attribute, int64[len(column)]."""
    texts = [str(value) for value in column]
    labels = attribute.labels()
    values = attribute.values
    by_value = list(values.values) if isinstance(values, Categories) else labels
    known = next(
        (
            places
            for places in (
                {text: i for i, text in enumerate(listed)} for listed in (by_value, labels)
            )
            if all(text in places for text in texts)
        ),
        None,
    )
    if known is None:
        either = {*by_value, *labels}
        wrong = next((text for text in texts if text not in either), None)
        raise ReleaseError(
            f"{called} writes some values of {attribute.name!r} as in the codebook and others by "
            "their labels; write all in one way."
            if wrong is None
            else f"{called} has the value {shown(wrong)!r} for {attribute.name!r}, which is not in "
            f"the domain; it knows {', '.join(by_value[:8])}{', …' if len(by_value) > 8 else ''}."
        )
    return np.array([known[text] for text in texts], dtype=np.int64)


def _numbers(column: Sequence[object], count: str, called: str) -> np.ndarray:
    """The counts, float64[len(column)]; whether they are finite is seen to where they are kept."""
    found = np.empty(len(column))
    for row, value in enumerate(column):
        try:
            found[row] = float(value)  # pyright: ignore[reportArgumentType] (that is the question)
        except (TypeError, ValueError):
            raise ReleaseError(
                f"{called} must have numbers in the column {count!r}, got {shown(value)!r} in row "
                f"{row + 1}."
            ) from None
    return found


def _describe_cell(attributes: Sequence[Attribute], shape: Sequence[int], cell: int) -> str:
    """A cell in words: "(sex = female, age = 0 to 2)", or "(total)"."""
    places = [int(place) for place in np.unravel_index(cell, shape)] if shape else []
    named = [
        f"{attribute.name} = {attribute.values.label(place)}"
        for attribute, place in zip(attributes, places, strict=True)
    ]
    return f"({', '.join(named) or 'total'})"
