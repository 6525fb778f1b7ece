"""Conditions: which cells a text such as `18 <= age < 65 & sex != "female"` counts.

    condition   comparisons joined by & | ! or and, or, not, with brackets around parts; ! binds
                more closely than &, and & more closely than |
    comparison  age >= 18, 18 <= age < 65, region = "north", region in ("north", "south"),
                region not in ("west")
    attribute   its name, in `backquotes` where that is more than one plain word
    value       a number, or a text in quotation marks, doubled inside: "19"" wheel"
    all cells   the word total, or nothing at all where an attribute is called so

The text is read by the grammar above and by nothing else: no part of it is ever run.
"""

import math

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.queries.condition_tokens import NAME, SIGN, Token, refused, text_of_name, tokens_of
from rpexplore.queries.query_list import checked_n_cells
from rpexplore.queries.value_comparisons import EQUAL, MIRRORED, values_where

MAX_DEPTH = 50  # brackets and negations within each other

TOTAL = "total"
_CLOSES = {"(": ")", "[": "]"}


def cells_of_condition(domain: Domain, text: str) -> np.ndarray:
    """Whether the condition holds for each cell, bool[n_cells], the last attribute fastest.

    Raises `WorkloadError` naming the character from which on the text cannot be used.
    """
    n_cells = checked_n_cells(domain)
    tokens = tokens_of(text)
    return _Reader(domain, tokens).cells() if tokens else np.ones(n_cells, dtype=bool)


def attributes_of_condition(domain: Domain, text: str) -> tuple[str, ...]:
    """The attributes that the condition names, in domain order.

    Raises `WorkloadError` naming the character at which one stands that the domain does not have.
    """
    names = [token for token in tokens_of(text) if token.kind == NAME]
    indices = {_attribute_index(domain, token) for token in names if not _is_total(domain, token)}
    return tuple(domain.names[index] for index in sorted(indices))


class _Reader:
    """Reads the tokens of a condition, from the first to the last, as arrays bool[n_cells]."""

    def __init__(self, domain: Domain, tokens: list[Token]) -> None:
        self._domain, self._tokens = domain, tokens
        self._position = self._depth = 0

    def cells(self) -> np.ndarray:
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

    def _alternatives(self) -> np.ndarray:
        holds = self._conjunction()
        while self._takes("or"):
            holds = holds | self._conjunction()
        return holds

    def _conjunction(self) -> np.ndarray:
        holds = self._part()
        while self._takes("and"):
            holds = holds & self._part()
        return holds

    def _part(self) -> np.ndarray:
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

    def _comparisons(self) -> np.ndarray:
        """One or more comparisons in a row: 18 <= age < 65."""
        left = self._operand()
        comparisons = []
        while (operator := self._operator()) is not None:
            if operator in ("in", "not in"):
                among = self._among(left)
                comparisons.append(among if operator == "in" else ~among)
            else:
                right = self._operand()
                comparisons.append(self._compared(left, operator, right))
                left = right
        if comparisons:
            return np.all(comparisons, axis=0)
        if _is_total(self._domain, left):
            return np.ones(math.prod(self._domain.sizes.tolist()), dtype=bool)
        if left.kind == NAME:
            _attribute_index(self._domain, left)
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

    def _compared(self, left: Token, operator: str, right: Token) -> np.ndarray:
        if left.kind != NAME or (right.kind == NAME and left.meaning not in self._domain):
            left, operator, right = right, MIRRORED[operator], left
        if left.kind != NAME:
            raise refused(
                right,
                "one side of a comparison must be an attribute, got two values; the name of an "
                "attribute stands without quotation marks, or in `backquotes`",
            )
        index = _attribute_index(self._domain, left)
        return self._cells_of_values(index, self._values_where(index, operator, right))

    def _among(self, left: Token) -> np.ndarray:
        if left.kind != NAME:
            raise refused(left, "there must be an attribute before in, as in age in (18, 19)")
        index = _attribute_index(self._domain, left)
        opened, values = self._takes("("), [self._operand()]
        while opened and self._takes(","):
            values.append(self._operand())
        if opened:
            self._close(opened, "a comma")
        among = np.any([self._values_where(index, EQUAL, value) for value in values], axis=0)
        return self._cells_of_values(index, among)

    def _values_where(self, index: int, operator: str, value: Token) -> np.ndarray:
        """Whether each value of an attribute compares like this with a token, bool[size]."""
        if value.kind == NAME and value.meaning in self._domain:
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
            return values_where(self._domain.attributes[index], operator, value.meaning)
        except WorkloadError as error:
            raise refused(value, str(error)) from None

    def _cells_of_values(self, index: int, values: np.ndarray) -> np.ndarray:
        """Whether a condition on one attribute's values holds, for each cell."""
        sizes = self._domain.sizes.tolist()
        return np.tile(np.repeat(values, math.prod(sizes[index + 1 :])), math.prod(sizes[:index]))


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
