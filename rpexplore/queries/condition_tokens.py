"""Tokens: the names, values and signs that the text of a condition is made of."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from unicodedata import normalize

from rpexplore.common.exact_numbers import shown
from rpexplore.errors import WorkloadError
from rpexplore.queries.value_comparisons import Value

MAX_LENGTH = 20_000  # characters of one condition

NAME, VALUE, SIGN = "name", "value", "sign"
_OPERATORS = ("and", "or", "not", "in")
_TOKEN = re.compile(
    r"""
      (?P<word> [^\W\d]\w* )
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
        match = _TOKEN.match(text, start)
        if match is None:
            raise _unreadable(text, start)
        tokens.append(_token(match))
        start = match.end()
    return tokens


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


def _unreadable(text: str, start: int) -> WorkloadError:
    """The refusal of a text that has no token at this character."""
    mark = text[start]
    reason = (
        f"{mark!r} must not stand here; a name with such a sign in it stands in `backquotes`, a "
        "text in quotation marks"
    )
    if mark in "`\"'“„‘":
        reason = f"the quotation mark {mark} must be closed"
    elif mark == ":":
        reason = (
            "a colon can only stand behind the name of a query, which stands in double quotation "
            "marks if it holds signs"
        )
    return refused(Token(SIGN, start, text[start : start + 20], ""), reason)
