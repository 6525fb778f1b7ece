"""Conditions: which cells a text such as `18 <= age < 65 & sex != "female"` counts, and back."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import and_
from typing import Any, Generic, Protocol, TypeVar
from unicodedata import normalize

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.text import describe_count
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import AT, Level
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.query_list import MOST_CELLS, checked_n_cells
from rpexplore.workload.table_text import in_quotes
from rpexplore.workload.value_comparisons import (
    EQUAL,
    MIRRORED,
    Value,
    bounds,
    groups_where,
    limit_text,
    value_names,
    values_where,
)

# ---- Tokens: the names, values and signs that the text of a condition is made of.


MAX_LENGTH = 20_000  # characters of one condition

NAME, VALUE, SIGN = "name", "value", "sign"
_LEVEL_PART = re.compile(r"`((?:[^`]|``)*)`|([^`@]+)")
_OPERATORS = ("and", "or", "not", "in")
_TOKEN = re.compile(
    r"""
      (?P<level> (?: [^\W\d]\w* | `(?:[^`]|``)*` ) @ (?: `(?:[^`]|``)*` | \w[\w-]* ) )
    | (?P<word> [^\W\d]\w* )
    | ` (?P<name> (?:[^`]|``)* ) `
    | " (?P<double> (?:[^"]|"")* ) "
    | ' (?P<single> (?:[^']|'')* ) '
    | [“„] (?P<high> [^“”„]* ) [“”]
    | ‘ (?P<low> [^‘’]* ) ’
    | (?P<number> [-+−]? (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) (?:[eE][-+]?[0-9]+)? )
    | (?P<sign> ==|!=|<>|<=|>=|&&|\|\||[=<>≤≥≠&|~!¬()\[\],] )
    """,
    re.VERBOSE,
)
# A group of a level, which needs no quotation marks behind one: 65-69, 85+.
_BAND = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[-–][0-9]+(?:\.[0-9]+)?|\+)(?![\w.+-])")
# As other options have it: 16..64, 65.., ..15.
_RANGE = re.compile(r"(?P<low>[-+−]?[0-9]*(?:\.[0-9]+)?)\.\.(?P<high>[-+−]?[0-9]*(?:\.[0-9]+)?)")
_SAME_SIGN = {
    "=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">=", "&": "and", "&&": "and",
    "|": "or", "||": "or", "!": "not", "~": "not", "¬": "not", "[": "(", "]": ")",
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    """A name, a value or a sign of the text.

    start    index of its first character, from 0
    written  as it stands in the text
    meaning  the name without backquotes, the value, or the sign: "==", "and", "("
    """

    kind: str
    start: int
    written: str
    meaning: Value


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text; `WorkloadError` for what is none, and for a text that is too long."""
    if len(text) > MAX_LENGTH:
        raise WorkloadError(
            f"A condition must have at most {MAX_LENGTH:,} characters, got {len(text):,}; split "
            "it, or give the coefficients of the cells in a file."
        )
    text = normalize("NFC", text)
    tokens, start = [], 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        if (range_ := _RANGE.match(text, start)) is not None:
            raise _range_refused(range_, tokens)
        if (band := _BAND.match(text, start)) is not None and _are_groups(tokens):
            tokens.append(Token(VALUE, start, band[0], band[0]))
            start = band.end()
            continue
        match = _TOKEN.match(text, start)
        if match is None:
            raise _unreadable(text, start)
        tokens.append(_token(match))
        start = match.end()
    return tokens


def _are_groups(before: Sequence[Token]) -> bool:
    """Whether values behind these tokens are groups of a level, which the last name then names."""
    return AT in next((str(one.meaning) for one in before[::-1] if one.kind == NAME), "")


def text_of_name(name: str) -> str:
    """The name of an attribute as conditions have it: in backquotes if need be."""
    match = _TOKEN.fullmatch(name)
    if match is not None and match["word"] is not None and name.lower() not in _OPERATORS:
        return name
    return "`" + name.replace("`", "``") + "`"


def refused(token: Token, reason: str) -> WorkloadError:
    """The error that says where the token stands and why it cannot be used."""
    end = "" if reason.endswith((".", "?")) else "."
    return WorkloadError(
        f"At character {token.start + 1:,} of the condition, {shown(token.written)!r}: "
        f"{reason[0].lower()}{reason[1:]}{end}"
    )


def _token(match: re.Match[str]) -> Token:
    kind = str(match.lastgroup)
    content, start, written = match[kind], match.start(), match[0]
    match kind:
        case "word" if content.lower() in _OPERATORS:
            return Token(SIGN, start, written, content.lower())
        case "word":
            return Token(NAME, start, written, content)
        case "level":
            parts = [part or quoted for quoted, part in _LEVEL_PART.findall(written)]
            return Token(NAME, start, written, AT.join(part.replace("``", "`") for part in parts))
        case "name":
            return Token(NAME, start, written, content.replace("``", "`"))
        case "sign":
            return Token(SIGN, start, written, _SAME_SIGN.get(content, content))
        case "number":
            return Token(VALUE, start, written, _number(start, written))
    mark = written[0]  # of all quotation marks only " and ' can be inside, and are doubled there
    return Token(VALUE, start, written, content.replace(mark * 2, mark))


def _number(start: int, written: str) -> Decimal:
    token = Token(VALUE, start, written, written)
    digits = written.lstrip("+-−")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdecimal():
        raise refused(
            token,
            "a number must not begin with 0; write thousands without a separator, and a code that "
            f'begins with 0 as a text in quotation marks: "{shown(digits)}"',
        )
    try:
        return Decimal(written.replace("−", "-"))
    except InvalidOperation:
        raise refused(
            token, "the number must be one that can be computed with; write a usual one"
        ) from None


def _range_refused(match: re.Match[str], before: Sequence[Token]) -> WorkloadError:
    """The refusal of 16..64, and what is written in its place; before: the tokens so far."""
    name = next((text_of_name(str(one.meaning)) for one in before[::-1] if one.kind == NAME), "age")
    limits = (">=", match["low"]), ("<=", match["high"])
    said = " & ".join(f"{name} {sign} {limit}" for sign, limit in limits if limit)
    token = Token(VALUE, match.start(), match[0], match[0])
    reason = "a range stands in no condition; compare with its ends"
    return refused(token, f"{reason}: {said}" if said else f"{reason}, as in 16 <= age <= 64")


def _unreadable(text: str, start: int) -> WorkloadError:
    """The refusal of a text that has no token at this character."""
    mark = text[start]
    reason = (
        f"{mark!r} must not stand here; a name with such a sign in it stands in `backquotes`, a "
        "text in quotation marks"
    )
    if mark in "`\"'“„‘":
        reason = f"the quotation mark {mark} must be closed"
    elif mark == "@":
        reason = (
            "@ must stand between an attribute and one of its levels, without blanks: "
            'age@five-year = "65-69"'
        )
    elif mark == ":":
        reason = (
            "a colon can only stand behind the name of a count, which stands in double quotation "
            "marks if it holds signs"
        )
    return refused(Token(SIGN, start, text[start : start + 20], ""), reason)


# ---- Conditions: which cells a text such as `18 <= age < 65 & sex != "female"` counts.
#
# condition   comparisons joined by & | ! or and, or, not, with brackets around parts; ! binds
#                 more closely than &, and & more closely than |
#     comparison  age >= 18, 18 <= age < 65, region = "north", region in ("north", "south"),
#                 region not in ("west")
#     attribute   its name, in `backquotes` where that is more than one plain word; with a level
#                 behind it, age@five-year, whose groups are its values: age@five-year = 65-69
#     value       a number, or a text in quotation marks, doubled inside: "19"" wheel"
#     all cells   the word total, or nothing at all where an attribute is called so
#
# The text is read by the grammar above and by nothing else: no part of it is ever run.


MAX_DEPTH = 50  # brackets and negations within each other

TOTAL = "total"
_CLOSES = {"(": ")", "[": "]"}
_MOST_SHOWN = 80  # characters of a group of values in a label


def cells_of_condition(domain: Domain, text: str) -> np.ndarray:
    """Whether the condition holds for each cell, bool[n_cells], the last attribute fastest.

    Raises `WorkloadError` naming the character from which on the text cannot be used.
    """
    n_cells, sizes = checked_n_cells(domain, MOST_CELLS), domain.sizes.tolist()

    def cells(index: int, values: np.ndarray) -> np.ndarray:
        return np.tile(np.repeat(values, math.prod(sizes[index + 1 :])), math.prod(sizes[:index]))

    return condition_holds(domain, text, cells, np.ones(n_cells, dtype=bool))


def condition_holds(
    domain: Domain, text: str, where: "Callable[[int, np.ndarray], Holds]", everywhere: "Holds"
) -> "Holds":
    """Where a condition holds, in whatever form: that of its comparisons, joined.

    Args:
        where: The form of a comparison: an attribute's index, and whether its values compare so,
            bool[size].
        everywhere: That of the word total, and of no condition.

    Raises `WorkloadError` naming the character from which on the text cannot be used.
    """
    tokens = tokens_of(text)
    return _Reader(domain, tokens, where, everywhere).holds() if tokens else everywhere


def attributes_of_condition(domain: Domain, text: str) -> tuple[str, ...]:
    """The attributes that the condition names, in domain order.

    Raises `WorkloadError` naming the character at which one stands that the domain does not have.
    """
    names = [token for token in tokens_of(text) if token.kind == NAME]
    indices = {
        _attribute_and_level(domain, token)[0] for token in names if not _is_total(domain, token)
    }
    return tuple(domain.names[index] for index in sorted(indices))


class Joinable(Protocol):
    """Where conditions hold; an array bool[n], for example."""

    def __and__(self, other: Any, /) -> Any: ...

    def __or__(self, other: Any, /) -> Any: ...

    def __invert__(self) -> Any: ...


Holds = TypeVar("Holds", bound=Joinable)


class _Reader(Generic[Holds]):
    """Reads the tokens of a condition, from the first to the last, as `condition_holds` tells."""

    def __init__(
        self,
        domain: Domain,
        tokens: list[Token],
        where: Callable[[int, np.ndarray], Holds],
        everywhere: Holds,
    ) -> None:
        self._domain, self._tokens = domain, tokens
        self._where, self._everywhere = where, everywhere
        self._position = self._depth = 0

    def holds(self) -> Holds:
        holds = self._alternatives()
        if self._next is not None:
            raise _misplaced(self._next, "there must be & or | between parts of a condition")
        return holds

    @property
    def _next(self) -> Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _takes(self, *signs: str) -> Token | None:
        """The next token if it is one of these signs, which is read then."""
        token = self._next
        if token is None or token.kind != SIGN or token.meaning not in signs:
            return None
        self._position += 1
        return token

    def _alternatives(self) -> Holds:
        holds = self._conjunction()
        while self._takes("or"):
            holds = holds | self._conjunction()
        return holds

    def _conjunction(self) -> Holds:
        holds = self._part()
        while self._takes("and"):
            holds = holds & self._part()
        return holds

    def _part(self) -> Holds:
        token = self._takes("not", "(")
        if token is None:
            return self._comparisons()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise refused(
                token, f"there must be at most {MAX_DEPTH} brackets and negations within each other"
            )
        if token.meaning == "not":
            holds = ~self._part()
        else:
            holds = self._alternatives()
            self._close(token, "& or |")
        self._depth -= 1
        return holds

    def _close(self, opened: Token, between: str) -> None:
        token = self._takes(")")
        if token is None and self._next is not None:
            raise _misplaced(self._next, f"there must be {between} or a closing bracket here")
        if token is None or token.written != _CLOSES[opened.written]:
            raise refused(opened, f"this bracket must be closed by {_CLOSES[opened.written]}")

    def _comparisons(self) -> Holds:
        """One or more comparisons in a row: 18 <= age < 65."""
        left = self._operand()
        comparisons: list[Holds] = []
        while (operator := self._operator()) is not None:
            if operator in ("in", "not in"):
                among = self._among(left)
                comparisons.append(among if operator == "in" else ~among)
            else:
                right = self._operand()
                comparisons.append(self._compared(left, operator, right))
                left = right
        if comparisons:
            return reduce(and_, comparisons)
        if _is_total(self._domain, left):
            return self._everywhere
        if left.kind == NAME:
            _attribute_and_level(self._domain, left)
            raise refused(left, "an attribute must be compared with a value, as in age >= 18")
        raise refused(left, "a value must be compared with an attribute, as in age >= 18")

    def _operand(self) -> Token:
        token = self._next
        if token is None:
            last = self._tokens[-1]
            raise refused(last, "the condition must not end here; write what comes behind it")
        if token.kind == SIGN:
            reason = "there must be an attribute or a value here"
            if token.meaning in MIRRORED:
                reason = (
                    "there must be an attribute or a value before it; write the attribute again, "
                    "as in age >= 18 & age < 65"
                )
            raise refused(token, reason)
        self._position += 1
        return token

    def _operator(self) -> str | None:
        if token := self._takes(*MIRRORED, "in"):
            return str(token.meaning)
        if token := self._takes("not"):
            if self._takes("in"):
                return "not in"
            raise refused(token, "there must be & or | (and, or) before a negation")
        return None

    def _compared(self, left: Token, operator: str, right: Token) -> Holds:
        if left.kind != NAME or (right.kind == NAME and not _names_one(self._domain, left)):
            left, operator, right = right, MIRRORED[operator], left
        if left.kind != NAME:
            raise refused(
                right,
                "one side of a comparison must be an attribute, got two values; the name of an "
                "attribute stands without quotation marks, or in `backquotes`",
            )
        index, level = self._compared_with(left)
        return self._where(index, self._values_where(index, level, operator, right))

    def _compared_with(self, token: Token) -> tuple[int, Level | None]:
        """The index of an attribute that is compared with a value, and its level if it has one."""
        index, level = _attribute_and_level(self._domain, token)
        if index in self._domain.amounts:
            name = self._domain.names[index]
            raise refused(
                token,
                f"{name!r} has amounts, which are added up, as in sum({name}) where age >= 18, and "
                "not compared; give it bins to compare it",
            )
        return index, level

    def _among(self, left: Token) -> Holds:
        if left.kind != NAME:
            raise refused(left, "there must be an attribute before in, as in age in (18, 19)")
        index, level = self._compared_with(left)
        opened, values = self._takes("("), [self._operand()]
        while opened and self._takes(","):
            values.append(self._operand())
        if opened:
            self._close(opened, "a comma")
        among = np.any([self._values_where(index, level, EQUAL, one) for one in values], axis=0)
        return self._where(index, among)

    def _values_where(
        self, index: int, level: Level | None, operator: str, value: Token
    ) -> np.ndarray:
        """Whether each value of an attribute compares like this with a token, bool[size]."""
        if value.kind == NAME and _names_one(self._domain, value):
            raise refused(
                value,
                "an attribute must be compared with a value, got another attribute; compare each "
                "with a value of its own",
            )
        if value.kind == NAME:
            raise refused(
                value,
                f"there must be a value here, and {shown(value.meaning)!r} is none; write a text "
                f'in quotation marks: "{shown(value.meaning)}"',
            )
        try:
            attribute = self._domain.attributes[index]
            if level is not None:
                return groups_where(attribute, level, operator, value.meaning)
            return values_where(attribute, operator, value.meaning)
        except WorkloadError as error:
            raise refused(value, str(error)) from None


def _misplaced(token: Token, expected: str) -> WorkloadError:
    if token.kind == SIGN and token.meaning == ",":
        expected = (
            "a comma can only stand in a list behind in; write numbers without separators of "
            "thousands, and decimals with a point"
        )
    elif token.kind == SIGN and token.meaning == ")":
        expected = "this bracket was not opened; remove it"
    return refused(token, expected)


def _is_total(domain: Domain, token: Token) -> bool:
    """Whether it is the word for all cells, and no attribute's name."""
    return token.written.lower() == TOTAL and token.written not in domain


def _names_one(domain: Domain, token: Token) -> bool:
    """Whether it names an attribute, alone or with one of its levels."""
    name = str(token.meaning)
    return name in domain or (AT in name and name.rpartition(AT)[0] in domain)


def _attribute_and_level(domain: Domain, token: Token) -> tuple[int, Level | None]:
    """The index of the attribute that a token names, and the level that stands behind it."""
    name, at, level = str(token.meaning).rpartition(AT)
    if not at or token.meaning in domain:
        return _attribute_index(domain, token), None
    index = _attribute_index(domain, replace(token, meaning=name.strip()))
    try:
        return index, domain.attributes[index].level(level)
    except DomainError as error:
        raise refused(token, str(error)) from None


def _attribute_index(domain: Domain, token: Token) -> int:
    name = str(token.meaning)
    try:
        return domain.position(name)
    except DomainError as error:
        several_words = [text for text in map(text_of_name, domain.names) if text.startswith("`")]
        meant = next((text for text in several_words if name in text), None)
        reason = f"{error} A value that is a text stands in quotation marks: '{name}'."
        if meant is not None:
            reason = f"a name that is more than one word must stand in backquotes: {meant}"
        raise refused(token, reason) from None


# ---- Condition texts: the condition that counts given cells, as a curator would write it.


def condition_of_cells(domain: Domain, counted: np.ndarray) -> str | None:
    """The condition that holds for just these cells; `cells_of_condition` undoes it.

    counted: bool[n_cells]; ValueError if it counts no cell

    None where the condition would be longer than one may be, or compare amounts.
    """
    counted = np.asarray(counted, dtype=bool)
    if not counted.any():
        raise ValueError("no condition is made for a count of no cell")
    attributes = [attribute for attribute in domain if attribute.size > 1]
    table = counted.reshape([attribute.size for attribute in attributes])
    for axis, attribute in enumerate(attributes):
        # No condition tells the amounts of an attribute apart.
        if isinstance(attribute.values, Amounts) and np.ptp(table, axis=axis).any():
            return None
    text = _condition(attributes, table) or (TOTAL if TOTAL not in domain else "")
    return text if len(text) <= MAX_LENGTH else None


def _condition(attributes: list[Attribute], table: np.ndarray) -> str:
    """The condition of a table bool[n_1, n_2, …]; "" where it holds everywhere."""
    if table.all():
        return ""
    first, rest = attributes[0], attributes[1:]
    # Values of the first attribute with the same cells behind them share one condition.
    values_by_cells: dict[bytes, list[int]] = {}
    for value, cells in enumerate(table):
        if cells.any():
            values_by_cells.setdefault(cells.tobytes(), []).append(value)
    parts = []
    for values in values_by_cells.values():
        one_of = condition_of_values(first, np.isin(np.arange(first.size), values))
        behind = _condition(rest, table[values[0]])
        if one_of and " | " in behind:
            behind = f"({behind})"
        parts.append(" & ".join(filter(None, (one_of, behind))))
    return " | ".join(parts)


def condition_of_values(attribute: Attribute, where: np.ndarray) -> str:
    """The condition that an attribute has one of these values, bool[size]; "" for all of them."""
    if where.all():
        return ""
    if isinstance(attribute.values, Categories):
        name, texts = text_of_name(attribute.name), [*map(in_quotes, value_names(attribute))]
        left_out = bool(2 * np.count_nonzero(where) > len(where))
        names = [texts[index] for index in np.flatnonzero(where != left_out).tolist()]
        return _equal_to(name, names, left_out=left_out)
    n = attribute.n_ordered
    if isinstance(attribute.values, Amounts):  # which stand for all in between, by the two limits
        limits = (attribute.values.minimum, attribute.values.maximum)
        of_limits = [f"{attribute.name} at {limits[i]}" for i in np.flatnonzero(where[:n]).tolist()]
        missing = [attribute.values.label(n + i) for i in np.flatnonzero(where[n:]).tolist()]
        return " | ".join([*of_limits, *(f"{attribute.name} {text}" for text in missing)])
    edges = np.flatnonzero(np.diff(where[:n], prepend=False, append=False)).reshape(-1, 2)
    parts = [_run(attribute, first, after - 1) for first, after in edges.tolist()]
    missing = [value_names(attribute)[n + index] for index in np.flatnonzero(where[n:]).tolist()]
    if missing:  # they are in no range
        parts.append(_equal_to(text_of_name(attribute.name), [*map(in_quotes, missing)]))
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _equal_to(name: str, texts: list[str], *, left_out: bool = False) -> str:
    """The condition that a value is one of these, or none of them."""
    if len(texts) == 1:
        return f"{name} {'!=' if left_out else '=='} {texts[0]}"
    return f"{name} {'not in' if left_out else 'in'} ({', '.join(texts)})"


def _run(attribute: Attribute, first: int, last: int) -> str:
    """The condition of the values first … last of whole numbers or intervals."""
    lows, highs, closed = bounds(attribute)
    name = text_of_name(attribute.name)
    low, high = limit_text(attribute, lows[first]), limit_text(attribute, highs[last])
    up_to = "<=" if closed[last] else "<"
    if lows[first] == highs[last]:
        return f"{name} == {low}"
    if last == attribute.n_ordered - 1:
        return f"{name} >= {low}"
    return f"{name} {up_to} {high}" if first == 0 else f"{low} <= {name} {up_to} {high}"


# ---- What atoms are called, and the condition of some of them.


def labels_of_groups(atoms: Atoms) -> list[list[str]]:
    """The condition that holds for each group of values, by attribute; "" for all values."""
    return [
        [condition_of_values(attribute, groups == group) for group in range(int(groups.max()) + 1)]
        for attribute, groups in zip(atoms.domain, atoms.groups, strict=True)
    ]


def labels_of_atoms(atoms: Atoms) -> Iterator[str]:
    """What each atom is called: the condition of one combination of groups, and how many more."""
    labels = [
        [text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} …" for text in texts]
        for texts in labels_of_groups(atoms)
    ]
    for groups, n_more in zip(atoms.examples.tolist(), atoms.n_combinations - 1, strict=True):
        parts = (texts[group] for texts, group in zip(labels, groups, strict=True))
        text = " & ".join(filter(None, parts)) or TOTAL
        yield f"{text} and {describe_count(int(n_more))} more" if n_more else text


def condition_of_atoms(atoms: Atoms, counted: np.ndarray) -> str | None:
    """The condition that holds for just these atoms, bool[n_atoms], at least one of them.

    None where the condition would be longer than one may be, or compare amounts.
    """
    # Of what is left to read from each state on; None: nowhere.
    texts: list[str | None] = ["" if is_counted else None for is_counted in counted.tolist()]
    for attribute, groups, steps in reversed(
        list(zip(atoms.domain, atoms.groups, atoms.steps, strict=True))
    ):
        before: list[str | None] = []
        for row in steps.tolist():
            groups_of: dict[str, list[int]] = {}
            for group, state in enumerate(row):
                if (text := texts[state]) is not None:
                    groups_of.setdefault(text, []).append(group)
            parts = []
            for behind, some in groups_of.items():
                one_of = condition_of_values(attribute, np.isin(groups, some))
                if one_of and isinstance(attribute.values, Amounts):
                    return None
                if one_of and " | " in behind:
                    behind = f"({behind})"
                parts.append(" & ".join(filter(None, (one_of, behind))))
            text = " | ".join(parts)
            if len(text) > MAX_LENGTH:
                return None
            before.append(text if parts else None)
        texts = before
    text = texts[0] or (TOTAL if TOTAL not in atoms.domain else "")
    return text if len(text) <= MAX_LENGTH else None
