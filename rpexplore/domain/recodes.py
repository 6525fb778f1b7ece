"""Recodes: values of records that are counted as another value, such as 6 and 7..20 as "6+".

A recode becomes spellings of the values, before anything is planned: so it is part of every plan,
and whoever counts records needs to know nothing of it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few, shown_value
from rpexplore.common.text import csv_rows
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import MISSING, Values
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import NOT_STATED
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain

_RANGE = re.compile(r"\s*([+-]?[0-9]+)\s*\.\.\s*([+-]?[0-9]+)\s*")
_MOST_TEXTS = 100_000  # that ranges of an attribute stand for
_MOST_OF_NUMBERS = 1_000  # of numbers and dates, where each is a case for an engine


def recoded(values: Values, recode: Mapping[str, str]) -> Values:
    """The values, which records may also write as the keys of `recode`.

    Args:
        recode: Text in records, or a range of whole numbers ("7..20", both included) -> the value
            that it is counted as; of numbers and dates also one of them ("85+" -> "85").

    Raises:
        DomainError: For amounts, a key that is a value of a list or is there twice, and a text that
            no value has.

    Example:
        >>> recoded(Categories(("5", "6+")), {"6": "6+", "7..9": "6+"}).spellings
        ((), ('6', '7', '8', '9'))
    """
    if not recode:
        return values
    if isinstance(values, Amounts):
        raise DomainError(
            "amounts are summed as they are, and not recoded; give it bins, or change the records."
        )
    if not isinstance(values, Categories):
        pairs = [(text, target) for key, target in recode.items() for text in texts_of_key(key)]
        if len(pairs) > _MOST_OF_NUMBERS:
            raise DomainError(
                f"its recodes stand for more than {_MOST_OF_NUMBERS:,} values, of which each is "
                "looked for; give it other bins, or shorter ranges."
            )
        return replace(values, recode=(*values.recode, *pairs))
    own = dict(enumerate(values.spellings or [()] * values.size))
    added: dict[int, dict[str, None]] = {index: {} for index in own}
    places = {value: index for index, value in enumerate(values.values)}
    known = {text for listed in values.spellings for text in listed} | places.keys()
    n_texts = 0
    for key, target in recode.items():
        if target not in places:
            raise DomainError(
                f"it recodes {shown(key)!r} to {shown(target)!r}, which is none of its values; add "
                f"that, or name one of {shown_few(list(values.values))}."
            )
        for text in texts_of_key(key):
            n_texts += 1
            if text in places and places[text] != places[target]:
                raise DomainError(
                    f"it recodes {shown(text)!r} to {shown(target)!r} and lists {shown(text)!r} as "
                    "a value as well; take it out of the list, or leave the recode out."
                )
            if text in known and text not in places:
                raise DomainError(
                    f"it says twice what {shown(text)!r} is counted as; keep one of them."
                )
            if text not in places:
                added[places[target]][text] = None
                known.add(text)
            if n_texts > _MOST_TEXTS:
                raise DomainError(
                    f"its recodes stand for more than {_MOST_TEXTS:,} values; give it bins, or "
                    "shorter ranges."
                )
    return replace(values, spellings=tuple((*own[index], *added[index]) for index in own))


def texts_of_key(key: str) -> Iterator[str]:
    """The texts that a key stands for: itself, or the whole numbers of a range."""
    parts = _RANGE.fullmatch(key)
    if parts is None:
        yield key
        return
    low, high = map(int, parts.groups())
    if low > high:
        raise DomainError(
            f"the range {shown(key)!r} must go from the smaller to the larger number."
        )
    yield from map(str, range(low, high + 1))


def recode_of_field(stated: Any) -> dict[str, str]:
    """The property recode of a field as texts; raises `DomainError` for what is none."""
    if not isinstance(stated, dict):
        raise DomainError(
            '"recode" must be an object such as {"6": "6+", "7..20": "6+"}, got '
            f"{shown_value(stated)}."
        )
    for key, target in stated.items():
        if isinstance(target, bool) or not isinstance(target, str | int):
            raise DomainError(
                f"it must recode {shown(key)!r} to a value of its list, got {shown_value(target)}."
            )
    return {key: str(target) for key, target in stated.items()}


def recode_of_file(text: str, filename: str) -> dict[str, str]:
    """The recode in a CSV file with the columns old and new, in any order; others are passed over.

    Raises `DomainError` for a file without them, and for a value that becomes two others.
    """
    rows = csv_rows(text, filename, DomainError, None)
    _, heads = next(rows, (1, []))
    names = [head.strip().lower().removeprefix("\ufeff") for head in heads]
    if names.count("old") != 1 or names.count("new") != 1:
        raise DomainError(
            f"{filename} must have one column old and one column new, got "
            f"{', '.join(heads) or 'none'}; name them so."
        )
    old, new = names.index("old"), names.index("new")
    recode: dict[str, str] = {}
    for line, row in rows:
        if len(row) != len(heads):
            raise DomainError(
                f"{filename}, line {line:,}, has {len(row):,} values where {len(heads):,} columns "
                "are named."
            )
        key, target = row[old].strip(), row[new].strip()
        if not key or not target:
            raise DomainError(f"{filename}, line {line:,}, must have an old and a new value.")
        if recode.setdefault(key, target) != target:
            raise DomainError(
                f"{filename}, line {line:,}, recodes {shown(key)!r} to {shown(target)!r}, and an "
                f"earlier line to {shown(recode[key])!r}; a value can be counted as one other."
            )
    return {key: target for key, target in recode.items() if key != target}


def with_recode(domain: "Domain", name: str, recode: Mapping[str, str]) -> "Domain":
    """The domain with a recode of the attribute of this name."""
    attribute = domain[name]
    with refusing(DomainError, f"Attribute {name!r}"):
        values = recoded(attribute.values, recode)
    changed = replace(attribute, values=values)
    return domain.with_attributes(changed if one is attribute else one for one in domain)


def with_not_stated(domain: "Domain", names: Collection[str]) -> "Domain":
    """The domain in which these attributes have one more value, for records without any.

    Of a list that is the value `NOT_STATED` in the group of missing ones, which records are counted
    as by `--missing-values` of a release; of numbers and dates the cell of an empty value.
    """
    changed = []
    for attribute in domain:
        values, groups = attribute.values, attribute.groups
        if attribute.name not in names or attribute.of:
            changed.append(attribute)
        elif isinstance(values, Categories):
            if NOT_STATED in (*values.values, *values.labels):
                changed.append(attribute)
                continue
            spellings = values.spellings and (*values.spellings, ())
            labels = (*values.labels, NOT_STATED)
            more = replace(
                values, values=(*values.values, NOT_STATED), labels=labels, spellings=spellings
            )
            groups = (*(groups or ((),) * values.size), (MISSING,))
            levels = tuple(
                replace(level, groups=(*level.groups, NOT_STATED)) for level in attribute.levels
            )
            changed.append(replace(attribute, values=more, groups=groups, levels=levels))
        elif "" in values.missing_codes:
            changed.append(attribute)
        else:
            with_cell = replace(values, missing=(*values.missing, ("", NOT_STATED)))
            if groups and NOT_STATED not in values.missing_labels:
                groups = (*groups, (MISSING,))
            changed.append(replace(attribute, values=with_cell, groups=groups))
    return domain.with_attributes(changed)
