"""The universe of a plan from a text such as `rectype = "P" & age >= 16`.

The grammar is that of the conditions of own counts (`conditions`), with two differences. A column
need not be in the codebook, as what is counted need not have it. And a comparison is about the
values of records as they are, not about cells: a number outside the codebook can be in the
universe, and is refused then like any other. A word without quotation marks is a text.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from math import inf, nextafter
from operator import ge, gt, le, lt
from unicodedata import category

from rpexplore.common.numbers import shown
from rpexplore.common.text import check_direction
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import AT
from rpexplore.domain.ordered_values import Bins, Dates
from rpexplore.domain.universe import Comparison, Joined, Universe
from rpexplore.domain.values import index_by_value
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.conditions import (
    MAX_DEPTH,
    NAME,
    VALUE,
    Token,
    refused,
    text_of_name,
    tokens_of,
)
from rpexplore.workload.value_comparisons import numbers_of_categories

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LIMIT = sys.float_info.max
_ISO_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WHOLE = 2.0**53  # from here on not every whole number is a float


@dataclass(frozen=True)
class _Stated:
    """A comparison as it is written: a column with each of some values."""

    column: str
    operator: str
    values: tuple[Decimal | str, ...]
    token: Token


@dataclass(frozen=True)
class _StatedJoin:
    operator: str
    parts: tuple["_Stated | _StatedJoin", ...]


def universe_of(text: str, domain: Domain) -> Universe:
    """The universe that a text states; its columns mean what the codebook says, if they are there.

    Raises `WorkloadError` for a text that is no condition, and for a comparison that a column
    cannot have.

    Example:
        >>> universe = universe_of('rectype = "P" & age >= 16', Domain.from_sizes({"age": 100}))
        >>> universe.columns
        ('rectype', 'age')
    """
    stated = _Parser(text).condition()
    check_direction(text, "The condition", WorkloadError)
    for token in tokens_of(text):
        name = str(token.meaning)
        # A column of the records may be called so, and is in backquotes as a whole then.
        if token.kind == NAME and AT in name and token.written != text_of_name(name):
            raise refused(token, "records have no level here; compare the attribute's values")
        if any(category(sign) == "Cc" for sign in token.written):
            raise refused(
                token,
                "the condition stands in labels and reports, where a line end or another control "
                "character could hide the rest; state it without that value",
            )
    text = _in_one_line(text)
    comparisons = list(_comparisons(stated))
    columns = list(dict.fromkeys(one.column for one in comparisons))
    attributes: list[Attribute] = []
    codes: dict[int, frozenset[int]] = {}  # by the id of a comparison
    for column in columns:
        own = [one for one in comparisons if one.column == column]
        known = domain[column] if column in domain.of_records else None
        attribute, of_own = _attribute(column, own, known)
        attributes.append(attribute)
        codes |= {id(one): found for one, found in zip(own, of_own, strict=True)}

    def condition(part: _Stated | _StatedJoin) -> Comparison | Joined:
        if isinstance(part, _StatedJoin):
            return Joined(part.operator, tuple(map(condition, part.parts)))
        comparison = Comparison(columns.index(part.column), codes[id(part)])
        return Joined("not", (comparison,)) if part.operator == "!=" else comparison

    return Universe(text, tuple(attributes), condition(stated))


def _in_one_line(text: str) -> str:
    """The condition with one blank where there are some between its words; values stay as typed."""
    tokens, line = tokens_of(text), ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        is_apart = before is not None and before.start + len(before.written) < token.start
        line += f" {token.written}" if is_apart else token.written
    return line


def _comparisons(stated: _Stated | _StatedJoin) -> "list[_Stated]":
    if isinstance(stated, _Stated):
        return [stated]
    return [one for part in stated.parts for one in _comparisons(part)]


# ---- Reading the text.


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._place, self._depth = 0, 0
        self._end = Token("", len(text), "the end", "")

    def condition(self) -> _Stated | _StatedJoin:
        stated = self._joined("or")
        if self._next is not self._end:
            raise refused(self._next, 'a comparison must be joined to the next one by "&" or "|"')
        return stated

    @property
    def _next(self) -> Token:
        return self._tokens[self._place] if self._place < len(self._tokens) else self._end

    def _take(self) -> Token:
        token = self._next
        self._place += 1
        return token

    def _takes(self, sign: str) -> bool:
        is_next = self._next.kind not in (NAME, VALUE) and self._next.meaning == sign
        self._place += is_next
        return is_next

    def _joined(self, operator: str) -> _Stated | _StatedJoin:
        part = self._joined if operator == "or" else self._negated
        parts = [part("and")]
        while self._takes(operator):
            parts.append(part("and"))
        return parts[0] if len(parts) == 1 else _StatedJoin(operator, tuple(parts))

    def _negated(self, _: str = "") -> _Stated | _StatedJoin:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise refused(self._next, "brackets and negations are too deep within each other")
        if self._takes("not"):
            stated: _Stated | _StatedJoin = _StatedJoin("not", (self._negated(),))
        elif self._takes("("):
            stated = self._joined("or")
            if not self._takes(")"):
                raise refused(self._next, "a bracket must be closed here")
        else:
            stated = self._comparison()
        self._depth -= 1
        return stated

    def _comparison(self) -> _Stated | _StatedJoin:
        first = self._take()
        if first.kind == VALUE:  # 18 <= age < 65
            operator = _MIRRORED[self._sign()]
            column = self._take()
            if column.kind != NAME:
                raise refused(column, "a value must be compared with a column")
            parts = [_Stated(str(column.meaning), operator, (_value(first),), column)]
            if self._next.kind not in (NAME, VALUE) and self._next.meaning in _MIRRORED:
                sign = self._sign()
                parts.append(_Stated(str(column.meaning), sign, (self._value(),), column))
            return parts[0] if len(parts) == 1 else _StatedJoin("and", tuple(parts))
        if first.kind != NAME:
            raise refused(first, "a column must be named here, such as age in age >= 16")
        name = str(first.meaning)
        is_negated = self._takes("not")
        if self._takes("in"):
            if not self._takes("("):
                raise refused(self._next, 'values stand in brackets behind "in"')
            values = [self._value()]
            while self._takes(","):
                values.append(self._value())
            if not self._takes(")"):
                raise refused(self._next, "a bracket must be closed here")
            return _Stated(name, "!=" if is_negated else "==", tuple(values), first)
        if is_negated:
            raise refused(self._next, '"not" behind a column goes with "in"')
        return _Stated(name, self._sign(), (self._value(),), first)

    def _sign(self) -> str:
        token = self._take()
        if token.kind in (NAME, VALUE) or token.meaning not in _MIRRORED:
            raise refused(token, "a column must be compared here, by =, !=, <, <=, >, >= or in")
        return str(token.meaning)

    def _value(self) -> Decimal | str:
        token = self._take()
        if token.kind not in (NAME, VALUE):
            raise refused(token, "a value must stand here, a number or a text in quotation marks")
        return _value(token)


def _value(token: Token) -> Decimal | str:
    return token.meaning if isinstance(token.meaning, Decimal) else str(token.meaning)


# ---- The values of a column that tell apart what is compared.


def _attribute(
    name: str, stated: Sequence[_Stated], known: Attribute | None
) -> tuple[Attribute, list[frozenset[int]]]:
    """The column with its values, and which of them fulfil each comparison ("!=": which do not).

    known: the attribute of the codebook with this name
    """
    _refuse_missing(name, stated, known)
    values = [value for one in stated for value in one.values]
    are_ordered = any(one.operator not in ("==", "!=") for one in stated)
    are_numbers = all(isinstance(value, Decimal) for value in values)
    of_known = None if known is None else known.values
    # A moment on a day is on that day, whether it is compared by = or by <.
    are_days = all(isinstance(value, str) and _ISO_DAY.fullmatch(value) for value in values)
    are_compared_as_days = of_known is None and (are_days or (are_ordered and not are_numbers))
    if isinstance(of_known, Dates) or are_compared_as_days:
        missing = of_known.missing if isinstance(of_known, Dates) else ()
        form = of_known.format if isinstance(of_known, Dates) else ""
        days = {value: _day(value, name, stated[0].token) for value in values}
        last = date.max.toordinal()
        edges = {date.min.toordinal(), last, *days.values()}
        edges |= {days[value] + 1 for value in _needing_split(stated) if days[value] < last}
        starts = sorted(edges)[:-1]
        # The last day there is has no next one, at which it could be told from those before: it is
        # told as missing values are, behind them, unless the codebook declares it to be one.
        places = [*starts, *[inf] * len(missing)]
        if not isinstance(of_known, Dates) or last not in map(
            of_known.missing_day, of_known.missing_codes
        ):
            missing = (*missing, (date.max.isoformat(), "the last day"))
            places.append(last)
        listed = tuple(date.fromordinal(edge) for edge in (*starts, last))
        recode = of_known.recode if isinstance(of_known, Dates) else ()
        days_of = Dates(edges=listed, format=form, missing=missing, recode=recode)
        attribute = Attribute(name, days_of)
        return attribute, [_fulfilling(one, days, places) for one in stated]
    if isinstance(of_known, Categories) or not are_numbers:
        by_size = [one for one in stated if one.operator not in ("==", "!=")]
        for one in by_size:
            if not isinstance(of_known, Categories) or isinstance(one.values[0], str):
                raise refused(
                    one.token, f"texts of {shown(name)} are compared by = and in, numbers by size"
                )
        texts = {value: _text(value) for value in values}
        if known is None:
            try:
                attribute = Attribute(name, Categories(tuple(dict.fromkeys(texts.values()))))
            except DomainError as error:
                raise refused(stated[0].token, str(error)) from None
        elif isinstance(of_known, Categories):
            attribute = Attribute(name, of_known)
        else:
            raise refused(stated[0].token, f"{shown(name)} has numbers; compare it with a number")
        codes = index_by_value(attribute)
        for one in stated:
            for value in one.values:
                if one not in by_size and texts[value] not in codes:
                    raise refused(
                        one.token,
                        f"{shown(texts[value])} is no value of {shown(name)}; write one as in the "
                        "codebook",
                    )
        return attribute, [
            _by_size(attribute, one)
            if one in by_size
            else frozenset(codes[texts[v]] for v in one.values)
            for one in stated
        ]
    numbers = {value: float(value) for value in values}
    for one in stated:
        for value in one.values:
            if abs(numbers[value]) >= _LIMIT or Decimal(numbers[value]) != value:
                near = Decimal(repr(numbers[value]))
                if abs(numbers[value]) >= _LIMIT or near != value:
                    raise refused(one.token, "the number has more digits than records can have")
    for one in stated:
        if one.operator not in ("<", ">=") and any(abs(numbers[v]) >= _WHOLE for v in one.values):
            raise refused(
                one.token,
                "whole numbers of 2^53 and more can be compared by < and >= alone, as the next "
                "larger one is not told from them; write >= with the next one",
            )
    edges = {-_LIMIT, _LIMIT, *numbers.values()}
    edges |= {nextafter(numbers[value], inf) for value in _needing_split(stated)}
    starts = sorted(edges)
    missing, recode = (getattr(of_known, kept, ()) for kept in ("missing", "recode"))
    attribute = Attribute(name, Bins(tuple(starts), missing, recode))
    return attribute, [_fulfilling(one, numbers, starts[:-1]) for one in stated]


def _refuse_missing(name: str, stated: Sequence[_Stated], known: Attribute | None) -> None:
    """Raise `WorkloadError` where a missing value of numbers or days is compared as if it were one.

    It fulfils no comparison, so that != of its code would hold for it, too, and = for no record.
    """
    if known is None or isinstance(known.values, Categories):
        return
    labels = {_compared(code): label for code, label in getattr(known.values, "missing", ())}
    for one in stated:
        for value in one.values if one.operator not in ("<", ">") else ():
            if (label := labels.get(_compared(value))) is not None:
                raise refused(
                    one.token,
                    f"the codebook has {shown(_text(value))} as a missing value of {shown(name)} "
                    f"({shown(label)}), which fulfils no comparison; compare with what is none: "
                    f"{shown(name)} >= its least value leaves it out, a negation of that holds it",
                )


def _compared(value: Decimal | str) -> Decimal | str:
    """A number as such, whatever its digits; another text as it is."""
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


def _needing_split(stated: Sequence[_Stated]) -> "set[Decimal | str]":
    """Values that have to be told from the next larger one."""
    return {v for one in stated if one.operator not in ("<", ">=") for v in one.values}


def _by_size(attribute: Attribute, one: _Stated) -> frozenset[int]:
    """The categories, all of them numbers, that are below or above one."""
    fulfil = {"<": lt, "<=": le, ">": gt, ">=": ge}[one.operator]
    numbers = numbers_of_categories(attribute)
    return frozenset(code for code, number in enumerate(numbers) if fulfil(number, one.values[0]))


def _fulfilling(
    one: _Stated, numbers: "Mapping[Decimal | str, float]", starts: Sequence[float]
) -> frozenset[int]:
    """The intervals, by where they start, of which all numbers fulfil a comparison.

    starts: infinite for what fulfils none
    """
    limits = [numbers[value] for value in one.values]
    limit = limits[0]
    fulfil = {
        "==": lambda start: start in limits,
        "!=": lambda start: start in limits,
        "<": lambda start: start < limit,
        "<=": lambda start: start <= limit,
        ">": lambda start: start > limit,
        ">=": lambda start: start >= limit,
    }[one.operator]
    return frozenset(place for place, start in enumerate(starts) if start < inf and fulfil(start))


def _text(value: Decimal | str) -> str:
    return value if isinstance(value, str) else f"{value:f}"


def _day(value: Decimal | str, name: str, token: Token) -> int:
    try:
        day = date.fromisoformat(_text(value))
    except ValueError:
        raise refused(
            token,
            f"{shown(name)} must be compared with numbers, or with days such as "
            f'"2026-01-31", got {shown(_text(value))}',
        ) from None
    return day.toordinal()
