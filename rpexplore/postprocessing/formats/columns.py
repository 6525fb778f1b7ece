"""The columns of exported tables, under names that every format takes.

Codebooks may name an attribute in any way ("marital status", "région"); files for other programs
may not. There a name has letters, digits and underscores of ASCII, begins with a letter, and is
another one whatever the case. An attribute has the same name in every table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias
from unicodedata import combining, normalize

from rpexplore.errors import ReleaseError
from rpexplore.postprocessing.publication import (
    ADAPTIVE_ERROR_MEANING,
    ADAPTIVE_INTERVAL_MEANING,
    INTERVAL_MEANING,
    MODEL_ERROR_MEANING,
    STANDARD_ERROR_MEANING,
)
from rpexplore.releases.table_cells import ESTIMATES

Role: TypeAlias = Literal["code", "label", "number", "note"]
CODE: Role = "code"
LABEL: Role = "label"
NUMBER: Role = "number"
NOTE: Role = "note"

NUMBERS = (
    "value", "model_error", "unbiased_value", "standard_error", "lower_95", "upper_95",
)  # fmt: skip
VALUE_IS = "value_is"
MARK = " (attribute)"  # behind the name of an attribute that is called as another column
_MEANINGS = {
    "standard_error": STANDARD_ERROR_MEANING,
    "lower_95": INTERVAL_MEANING,
    "upper_95": INTERVAL_MEANING,
    "model_error": MODEL_ERROR_MEANING,
    "unbiased_value": "The unbiased noisy count. Not rounded; may be negative.",
    VALUE_IS: "What was done to the count in value.",
}
_RELEASED_MEANINGS = _MEANINGS | {"value": "The noisy count. Unbiased; may be negative."}
_PROCESSED_MEANINGS = _MEANINGS | {"value": "The count after post-processing."}
_ADAPTIVE_MEANINGS = _MEANINGS | {
    "value": "The estimated count: the best guess of a model. Biased.",
    "model_error": ADAPTIVE_ERROR_MEANING,
    "lower_95": ADAPTIVE_INTERVAL_MEANING,
    "upper_95": ADAPTIVE_INTERVAL_MEANING,
}


@dataclass(frozen=True)
class Column:
    """A column of an exported table.

    name       in the export
    title      in the release, which may be any text
    role       a code or a label of an attribute, a number, or what was done to the row's count
    attribute  whose code or label it is; "" for others
    meaning    of the column, as a sentence
    texts      all that a column of codes or labels holds, in the order of the cells; else empty
    """

    name: str
    title: str
    role: Role
    attribute: str = ""
    meaning: str = ""
    texts: tuple[str, ...] = ()


def attribute_names(attributes: Sequence[str]) -> dict[str, str]:
    """The name of each attribute in exports, so that its label has one as well: NAME_label."""
    taken = {*NUMBERS, VALUE_IS}
    names = {}
    for attribute in attributes:
        name = safe_name(attribute, taken, "attribute", endings=("", "_label"))
        names[attribute] = name
        taken |= {name.lower(), f"{name}_label".lower()}
    return names


def safe_name(
    text: str, taken: Iterable[str] = (), fallback: str = "name", endings: Sequence[str] = ("",)
) -> str:
    """A name for a text, which with none of these endings is among those taken (lower case)."""
    letters = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
    plain = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    if not re.match("[A-Za-z]", plain):
        plain = f"{fallback}_{plain}".strip("_")
    name, number = plain, 1
    while any(f"{name}{ending}".lower() in taken for ending in endings):
        number += 1
        name = f"{plain}_{number}"
    return name


def columns_of_table(
    heads: Sequence[str],
    attributes: Sequence[str],
    names: Mapping[str, str],
    titles: Mapping[str, str],
) -> list[Column]:
    """The columns of a table, without their texts.

    Args:
        heads: Of the columns in the file of the release.
        attributes: Of the table, in its order.
        names: Of each attribute in exports, see `attribute_names`.
        titles: What the codebook calls each attribute at length.
    """
    # By position: an attribute may bear any name.
    if heads[-1] != VALUE_IS:
        n_behind, meanings = len(ESTIMATES), _RELEASED_MEANINGS
    elif heads[-4] == "model_error":
        n_behind, meanings = 5, _ADAPTIVE_MEANINGS
    else:
        n_behind, meanings = 7 if heads[-6] == "model_error" else 6, _PROCESSED_MEANINGS
    texts, numbers = heads[:-n_behind], heads[-n_behind:]
    columns: list[Column] = []
    for attribute, has_label in zip(attributes, _have_labels(texts, attributes), strict=True):
        name, title = names[attribute], texts[len(columns)]
        columns.append(
            Column(name, title, CODE, attribute, f"{titles[attribute]}: what a row counts.")
        )
        if has_label:
            title = texts[len(columns)]
            meaning = f"{titles[attribute]}: what its codes are called."
            columns.append(Column(f"{name}_label", title, LABEL, attribute, meaning))
    for head in numbers:
        role = NOTE if head == VALUE_IS else NUMBER
        columns.append(Column(head, head, role, meaning=meanings[head]))
    return columns


def _have_labels(texts: Sequence[str], attributes: Sequence[str]) -> Sequence[bool]:
    """Which attributes have a column of labels behind that of their codes."""
    found = [_without_mark(text) for text in texts]
    for have_labels in product((False, True), repeat=len(attributes)):
        expected = []
        for attribute, has_label in zip(attributes, have_labels, strict=True):
            expected += [attribute, f"{attribute} label"] if has_label else [attribute]
        if [_without_mark(text) for text in expected] == found:
            return have_labels
    raise ReleaseError(
        f"A table of ({' × '.join(attributes)}) has other columns than its attributes "
        f"({', '.join(texts)}); use the original folder."
    )


def _without_mark(text: str) -> str:
    """A name without what tells an attribute apart from a column of the same name."""
    while text.endswith(MARK):
        text = text.removesuffix(MARK)
    return text
