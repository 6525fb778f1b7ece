"""Tokens: the names, values and signs that the text of a condition is made of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from rpexplore.common.exact_numbers import shown
from rpexplore.errors import WorkloadError
from rpexplore.queries.value_comparisons import Value

MAX_LENGTH = 20_000  # characters of one condition

NAME, VALUE, SIGN = "name", "value", "sign"
_WORDS = ("and", "or", "not", "in")
_TOKEN = re.compile(
    r"(?P<word>[^\W\d]\w*)|`(?P<name>(?:[^`]|``)*)`"
    r"|\"(?P<double>(?:[^\"]|\"\")*)\"|'(?P<single>(?:[^']|'')*)'"
    r"|[“„](?P<high>[^“”„]*)[“”]|‘(?P<low>[^‘’]*)’"
    r"|(?P<number>[-+−]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<sign>==|!=|<>|<=|>=|&&|\|\||[=<>≤≥≠&|~!¬()\[\],])"
)
_MEANT = {
    "=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">=", "&": "and", "&&": "and",
    "|": "or", "||": "or", "!": "not", "~": "not", "¬": "not", "[": "(", "]": ")",
}  # fmt: skip
_QUOTATION_MARKS = "`\"'“„‘"


@dataclass(frozen=True)
class Token:
    """A name, a value or a sign of the text.

    start    place of its first character, from 0
    written  as it stands in the text
    meaning  the name without backquotes, the value, or the sign: "==", "and", "("
    """

    kind: str
    start: int
    written: str
    meaning: Value

    def is_sign(self, *signs: str) -> bool:
        return self.kind == SIGN and self.meaning in signs


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text; `WorkloadError` for what is none, and for a text that is too long."""
    if len(text) > MAX_LENGTH:
        raise WorkloadError(
            f"A condition must have at most {MAX_LENGTH:,} characters, got {len(text):,}; split "
            "it, or give the coefficients of the cells in a file."
        )
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        match = _TOKEN.match(text, start)
        if match is None:
            raise refused(*_unreadable(text, start))
        yield _token(match)
        start = match.end()


def text_of_name(name: str) -> str:
    """The name of an attribute as conditions have it: in backquotes if need be."""
    match = _TOKEN.fullmatch(name)
    plain = match is not None and match["word"] is not None and name.lower() not in _WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def refused(token: Token, why: str) -> WorkloadError:
    """The error that names the place of the token and says why it cannot be used."""
    reason = why if why.endswith((".", "?")) else f"{why}."
    return WorkloadError(
        f"At character {token.start + 1:,} of the condition, {shown(token.written)!r}: "
        f"{reason[0].lower()}{reason[1:]}"
    )


def _token(match: re.Match[str]) -> Token:
    kind, meaning = match.lastgroup, match[str(match.lastgroup)]
    start, written = match.start(), match[0]
    match kind:
        case "word" if meaning.lower() in _WORDS:
            return Token(SIGN, start, written, meaning.lower())
        case "word":
            return Token(NAME, start, written, meaning)
        case "name":
            return Token(NAME, start, written, meaning.replace("``", "`"))
        case "sign":
            return Token(SIGN, start, written, _MEANT.get(meaning, meaning))
        case "number":
            return Token(VALUE, start, written, _number(Token(VALUE, start, written, written)))
    mark = written[0]  # of all quotation marks only " and ' can be inside, and are doubled there
    return Token(VALUE, start, written, meaning.replace(mark * 2, mark))


def _number(token: Token) -> Decimal:
    digits = token.written.replace("−", "-").lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdecimal():
        raise refused(
            token,
            "a number must not begin with 0; write thousands without a separator, and a code that "
            f'begins with 0 as a text in quotation marks: "{shown(digits)}"',
        )
    try:
        return Decimal(token.written.replace("−", "-"))
    except InvalidOperation:
        raise refused(
            token, "the number must be one that can be computed with; write a usual one"
        ) from None


def _unreadable(text: str, start: int) -> tuple[Token, str]:
    """The place that holds no token, and what to do about it."""
    mark = text[start]
    token = Token(SIGN, start, text[start : start + 20], "")
    if mark in _QUOTATION_MARKS:
        return token, f"the quotation mark {mark} must be closed"
    if mark == ":":
        return token, (
            "a colon can only stand behind the name of a query, which stands in double quotation "
            "marks if it holds signs"
        )
    return token, (
        f"{mark!r} must not stand here; a name with such a sign in it stands in `backquotes`, a "
        "text in quotation marks"
    )
