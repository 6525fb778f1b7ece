"""Conditions: which cells a text such as `18 <= age < 65 & sex != "female"` counts.

    condition   comparisons joined by & | ! or and, or, not, with brackets around parts; ! binds
                more closely than &, and & more closely than |
    comparison  age >= 18, 18 <= age < 65, region = "north", region in ("north", "south"),
                region not in ("west")
    attribute   its name, in `backquotes` where that is more than one plain word
    value       a number, or a text in quotation marks, doubled inside: "19"" wheel"
    all cells   nothing at all, or the word total

The text is read by the grammar above and by nothing else: no part of it is ever run.
"""

import math

import numpy as np

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.queries.condition_tokens import NAME, SIGN, Token, refused, text_of_name, tokens_of
from rpexplore.queries.query_list import checked_n_cells
from rpexplore.queries.value_comparisons import MIRRORED, values_among, values_where

MAX_DEPTH = 50  # brackets and negations within each other

TOTAL = "total"
_CLOSES = {"(": ")", "[": "]"}


def cells_of_condition(domain: Domain, text: str) -> np.ndarray:
    """Whether the condition holds for each cell, bool[n_cells], the last attribute fastest.

    Raises `WorkloadError` naming the place in the text that cannot be used.
    """
    n_cells = checked_n_cells(domain)
    tokens = list(tokens_of(text))
    if not tokens:
        return np.ones(n_cells, dtype=bool)
    return _Reader(domain, tokens).whole()


def attributes_of_condition(domain: Domain, text: str) -> tuple[str, ...]:
    """The attributes that the condition names, in domain order.

    Raises `WorkloadError` naming the place of one that the domain does not have.
    """
    named = [token for token in tokens_of(text) if token.kind == NAME]
    found = {_attribute_place(domain, token) for token in named if not _is_total(domain, token)}
    return tuple(domain.names[place] for place in sorted(found))


class _Reader:
    """Reads the tokens of a condition, from the first to the last, as arrays bool[n_cells]."""

    def __init__(self, domain: Domain, tokens: list[Token]) -> None:
        self._domain, self._tokens = domain, tokens
        self._place = self._depth = 0

    def whole(self) -> np.ndarray:
        holds = self._any_of()
        if self._next is not None:
            raise _misplaced(self._next, "there must be & or | between parts of a condition")
        return holds

    @property
    def _next(self) -> Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _takes(self, *signs: str) -> Token | None:
        """The next token if it is one of these signs, which is read then."""
        token = self._next
        if token is None or not token.is_sign(*signs):
            return None
        self._place += 1
        return token

    def _any_of(self) -> np.ndarray:
        holds = self._all_of()
        while self._takes("or"):
            holds = holds | self._all_of()
        return holds

    def _all_of(self) -> np.ndarray:
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
            holds = self._any_of()
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
        holds = None
        while (operator := self._operator()) is not None:
            if operator in ("in", "not in"):
                right, one = left, self._is_in(left, negated=operator == "not in")
            else:
                right = self._operand()
                one = self._compared(left, operator, right)
            holds = one if holds is None else holds & one
            left = right
        if holds is not None:
            return holds
        if _is_total(self._domain, left):
            return np.ones(math.prod(self._domain.sizes.tolist()), dtype=bool)
        if left.kind == NAME:
            _attribute_place(self._domain, left)
            raise refused(left, "an attribute must be compared with a value, as in age >= 18")
        raise refused(left, "a value must be compared with an attribute, as in age >= 18")

    def _operand(self) -> Token:
        token = self._next
        if token is None:
            last = self._tokens[-1]
            raise refused(last, "the condition must not end here; write what comes behind it")
        if token.is_sign(*MIRRORED):
            raise refused(
                token,
                "there must be an attribute or a value before it; write the attribute again, as in "
                "age >= 18 & age < 65",
            )
        if token.kind == SIGN:
            raise refused(token, "there must be an attribute or a value here")
        self._place += 1
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
        place = _attribute_place(self._domain, left)
        if right.kind == NAME:
            self._refuse_name(right)
        try:
            where = values_where(self._domain.attributes[place], operator, right.meaning)
        except WorkloadError as error:
            raise refused(right, str(error)) from None
        return self._along(place, where)

    def _is_in(self, left: Token, *, negated: bool) -> np.ndarray:
        if left.kind != NAME:
            raise refused(left, "there must be an attribute before in, as in age in (18, 19)")
        place = _attribute_place(self._domain, left)
        opened, values = self._takes("("), [self._operand()]
        while opened and self._takes(","):
            values.append(self._operand())
        if opened:
            self._close(opened, "a comma")
        among = np.zeros(self._domain.attributes[place].size, dtype=bool)
        for token in values:
            if token.kind == NAME:
                self._refuse_name(token)
            try:
                among |= values_among(self._domain.attributes[place], [token.meaning])
            except WorkloadError as error:
                raise refused(token, str(error)) from None
        return self._along(place, ~among if negated else among)

    def _refuse_name(self, token: Token) -> None:
        """Refuse a name that stands where a value must be."""
        if token.meaning in self._domain:
            raise refused(
                token,
                "an attribute must be compared with a value, got another attribute; compare each "
                "with a value of its own",
            )
        raise refused(
            token,
            f"there must be a value here, and {shown(token.meaning)!r} is none; write a text in "
            f'quotation marks: "{shown(token.meaning)}"',
        )

    def _along(self, place: int, where: np.ndarray) -> np.ndarray:
        """What holds for the values of one attribute, for each cell."""
        sizes = self._domain.sizes.tolist()
        return np.tile(np.repeat(where, math.prod(sizes[place + 1 :])), math.prod(sizes[:place]))


def _misplaced(token: Token, expected: str) -> WorkloadError:
    """The refusal of a token where something else is expected."""
    if token.is_sign(","):
        return refused(
            token,
            "a comma can only stand in a list behind in; write numbers without separators of "
            "thousands, and decimals with a point",
        )
    if token.is_sign(")"):
        return refused(token, "this bracket was not opened; remove it")
    return refused(token, expected)


def _is_total(domain: Domain, token: Token) -> bool:
    """Whether it is the word for all cells, and no attribute's name."""
    return token.written.lower() == TOTAL and token.written not in domain


def _attribute_place(domain: Domain, token: Token) -> int:
    try:
        return domain.position(str(token.meaning))
    except DomainError as error:
        longer = [text for name in domain.names if name != (text := text_of_name(name))]
        meant = next((text for text in longer if str(token.meaning) in text), None)
        if meant is None:
            advice = " A value that is a text stands in quotation marks"
            raise refused(token, f"{error}{advice}: '{token.meaning}'.") from None
        raise refused(
            token, f"a name that is more than one word must stand in backquotes: {meant}"
        ) from None
