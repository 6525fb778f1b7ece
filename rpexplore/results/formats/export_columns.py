"""The columns of exported tables, under names that every format takes."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from unicodedata import combining, normalize

from rpexplore.domain.result_schema import (
    ADAPTIVE,
    CV,
    NOTE,
    NUMBERS,
    OWN_COUNTS,
    PLANNED_ANEW,
    PUBLISHABLE,
    QUALITY,
    RELEASED,
    SMOOTH,
    STATUS,
    UNIT,
    Role,
    Schema,
)
from rpexplore.results.shares import SHARE, SHARE_ERROR

# Codebooks may name an attribute in any way ("marital status", "région"); files for other programs
# may not. There a name has letters, digits and underscores of ASCII, begins with a letter, and is
# another one whatever the case. An attribute has the same name in every table.


_TAKEN = {
    one.name
    for one in (
        *RELEASED, *SMOOTH, *ADAPTIVE, *OWN_COUNTS[1:], UNIT, NOTE, CV, QUALITY, PUBLISHABLE,
        STATUS, SHARE, SHARE_ERROR,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of an exported table.

    name       in the export
    title      in the release, which may be any text
    role       what it is, see `result_schema`
    attribute  whose code or label it is; "" for others
    meaning    of the column, as a sentence
    texts      all that a column of codes or labels holds, in the order of the cells; else empty
    whole      the text of the row that is of all values of the attribute; "" for none
    parents    the group that each text lies directly within, of those that lie in one
    """

    name: str
    title: str
    role: Role
    attribute: str = ""
    meaning: str = ""
    texts: tuple[str, ...] = ()
    whole: str = ""
    parents: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_number(self) -> bool:
        return self.role in NUMBERS

    @property
    def is_required(self) -> bool:
        """Whether every row has a text: areas of some levels may have no names."""
        return bool(self.texts) and "" not in self.texts

    @property
    def names_cells(self) -> bool:
        """Whether it holds codes or labels."""
        return self.role in ("code", "label")


def attribute_names(attributes: Sequence[str]) -> dict[str, str]:
    """The name of each attribute in exports, so that its label has one as well: NAME_label."""
    taken = set(_TAKEN)
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
    schema: Schema, names: Mapping[str, str], titles: Mapping[str, str]
) -> list[Column]:
    """The columns of a table, without their texts.

    Args:
        schema: Of the table in the folder of results.
        names: Of each attribute in exports, see `attribute_names`.
        titles: What the codebook calls attributes at length, where it does.
    """
    columns = []
    for stored in schema.columns:
        name, meaning = stored.name, stored.meaning
        if stored.names_cells:
            name = names[stored.attribute] + ("_label" if stored.role == "label" else "")
            if (title := titles.get(stored.attribute)) is not None:
                says = "what a row counts" if stored.role == "code" else "what its codes are called"
                meaning = f"{title}: {says}."
        about = name, stored.name, stored.role, stored.attribute, meaning
        columns.append(Column(*about, whole=stored.whole, parents=stored.parents))
    return columns


# ---- What columns of figures are, and what columns of words say, in other languages.


_MEANINGS: Mapping[Role, str] = {
    "estimate": "estimate_meaning",
    "error": "error_meaning",
    "model_error": "model_error_meaning",
    "lower": "interval_meaning",
    "upper": "interval_meaning",
    "margin": "margin_meaning",
    "target": "target_meaning",
    "share": "share_meaning",
    "share_error": "share_error_meaning",
    "note": "note_meaning",
    "unit": "unit_meaning",
    "flag": "flag_meaning",
    "status": "status_meaning",
}
_ADAPTIVE: Mapping[Role, str] = {
    "value": "value_adaptive",
    "lower": "interval_adaptive",
    "upper": "interval_adaptive",
}


def key_of_meaning(column: Column, roles: Set[Role]) -> str:
    """The key of the text that says what a column is, in a table of columns with these roles."""
    if "model_error" in roles and "estimate" not in roles and column.role in _ADAPTIVE:
        return _ADAPTIVE[column.role]
    if column.meaning == PLANNED_ANEW[2].meaning:
        return "interval_planned_anew"
    if column.role == "value":
        if "estimate" in roles:
            return "value_processed"
        return "value_planned_anew" if column.meaning == PLANNED_ANEW[0].meaning else "value_noisy"
    return _MEANINGS[column.role]


# ---- Periods of time, as SDMX writes them.


_PERIODS = (  # how SDMX writes periods, and their frequencies
    (r"[0-9]{4}(-A1)?", "A"),
    (r"[0-9]{4}-S[12]", "S"),
    (r"[0-9]{4}-T[1-3]", "T"),
    (r"[0-9]{4}-Q[1-4]", "Q"),
    (r"[0-9]{4}-M?(0[1-9]|1[0-2])", "M"),
    (r"[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])", "W"),
    (r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", "D"),
)


def frequency_of(periods: Iterable[str]) -> str:
    """The frequency of periods as SDMX writes both; "" if some is none, or they differ in it."""
    found = {
        next((code for pattern, code in _PERIODS if re.fullmatch(pattern, period)), "")
        for period in periods
    }
    return found.pop() if len(found) == 1 else ""
