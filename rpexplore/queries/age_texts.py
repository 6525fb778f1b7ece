"""Ages that the texts of categories name, such as "18 and over".

What is not surely understood names none: a wrong age would count people in the wrong category.
"""

import math
import re

_NONE = (0, -1)

# Signs of comparison, by the one that they are replaced by.
_SIGNS = (
    ("[<‹＜]=|=[<‹＜]|[⩽≦]", "≤"),
    ("[>›＞]=|=[>›＞]|[⩾≧]", "≥"),
    ("[‹＜]", "<"),
    ("[›＞]", ">"),
)
# Words by an age, in the order in which they are replaced by < ≤ ≥ >.
_UNDER = "(?:under|below|before|less|fewer|lower|younger|<)"
_OVER = "(?:over|above|after|more|greater|higher|older|beyond|exceeding|>)"
_JOINED = r"(?:\band\b|\bor\b|&)\W*"  # "18 and over", yet not "18 and under 65"
_WORDS = (
    (r"^(?:older|younger) (?!than|age)[a-z]+", ""),  # "older adults 65-74" bounds nothing
    (r"\b(?:lt|u) ?(?=\d)", "<"),  # as in the codes Y_LT15 and U18
    (r"\ble ?(?=\d)", "≤"),
    (r"\bge ?(?=\d)", "≥"),
    (r"\bgt ?(?=\d)", ">"),
    (rf"\bnot?\s+{_OVER}|{_UNDER}(?: than)? or equal", "≤"),
    (rf"\bnot?\s+{_UNDER}|{_OVER}(?: than)? or equal", "≥"),
    (r"(?<=\d) up ?to (?=\d)", " to "),
    (rf"up ?to|at most|maximum|{_JOINED}{_UNDER}(?!.*\d)", "≤"),
    (r"from(?= (?:the )?(?:ages? )?(?:of )?\d)", "≥"),
    (rf"\+|plus|at least|minimum|{_JOINED}{_OVER}(?!.*\d)", "≥"),
    (r"(?<![a-z])(?:up|upwards?|onwards?)(?![a-z])", "≥"),
    (_UNDER, "<"),
    (_OVER, ">"),
)
_AGE = r"\d{1,3}"
_COMPARED = re.compile(rf"({_AGE}) ?([<≤≥>]) ?(?=[a-z])")  # 17 < age
_TURNED = str.maketrans("<≤≥>", ">≥≤<")
_INTERVAL = re.compile(rf"\[ ?({_AGE}) ?[,;] ?({_AGE}|\+?inf\w*|\+?∞)? ?([\])\[])")
_NO_AGES = re.compile(r"\d[.,]\d|\d{4}|[<≤≥>]$")  # or a sign that bounds nothing
# Words that turn an age into another, or leave open whether it is one of those that are meant.
_UNCLEAR = re.compile(
    r"\b(?:not?|non|except\w*|exclu\w*|without|minus|until|till|since|born|birth|months?|weeks?"
    r"|days?)\b"
)
_FILLERS = frozenset(
    [
        "age",
        "aged",
        "ages",
        "exactly",
        "group",
        "of",
        "old",
        "than",
        "y",
        "year",
        "years",
        "yr",
        "yrs",
    ]
)
_OF_LISTS = frozenset(["and", "but", "or", ",", ";", "/", "&"])
_OF_RANGES = frozenset(["t", "through", "thru", "to", *"-‐‑‒–—―−~"])
_BOUNDED = frozenset(["and", "but", "t", "through", "thru", "to", "&"])  # "18 and under 65"


def ages_of(text: str) -> tuple[int, float]:
    """The first and the last age that a text names: (15, 24) of "15 to 24"; (0, −1) of none.

    A bound before its age leaves it out ("over 17"), one behind it does not ("18 and over").

    Example:
        >>> ages_of("Under 18 years"), ages_of("75+"), ages_of("[15, 25)"), ages_of("until 18")
        ((0, 17), (75, inf), (15, 24), (0, -1))
    """
    text = re.sub(r"(?<=\d)_(?=\d)", "-", text.casefold())
    text = re.sub(r"[\s_]+", " ", text).strip()
    if interval := _INTERVAL.fullmatch(text):
        first, last, bracket = interval.groups()
        if last is None or not last.isdigit():
            return int(first), math.inf
        return _range(int(first), int(last) - (bracket != "]"))
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    text = _COMPARED.sub(lambda found: f"{found[2].translate(_TURNED)}{found[1]} ", text)
    if _NO_AGES.search(text):
        return _NONE
    for pattern, sign in _WORDS:
        text = re.sub(pattern, sign, text)
    if _UNCLEAR.search(text):
        return _NONE
    parts = re.split(_AGE, text)
    match [int(age) for age in re.findall(_AGE, text)]:
        case [first, last]:
            return _ages_between(first, last, *parts)
        case [age]:
            return _ages_from(age, *parts)
    return _NONE


def _range(first: int, last: int) -> tuple[int, float]:
    return (first, last) if first <= last else _NONE


def _ages_between(
    first: int, last: int, before: str, between: str, behind: str
) -> tuple[int, float]:
    """The ages of two numbers, with what stands before, between and behind them."""
    is_bounded = bool(_signs(before))
    if len(_signs(between)) > 1:  # the first sign is of the first age: "18 and over, under 65"
        between, is_bounded = re.sub("^[^<≤≥>]*[≥>]", "", between), True
    lower, upper = _signs(before)[-1:], _signs(between)
    words = set(re.findall(r"[^\W\d]+|[^\w\s().<≤≥>]", between)) - _FILLERS
    is_list = "or" in words or bool(words & _OF_LISTS and not upper and "between" not in before)
    # The first number may be a code, as in "1 Under 18" and "1 - under 18"; not so in "18-<65".
    is_joined = first == 0 or is_bounded or words & _BOUNDED or between[:-1] in _OF_RANGES
    if (
        lower not in ("", "≥", ">")
        or upper not in ("", "≤", "<")
        or _signs(behind) not in ("", "≤")
        or words - _OF_LISTS - _OF_RANGES
        or not (is_joined if upper else words)
        or (is_list and (upper or last != first + 1))  # "17 or 18" is a range, "90 and 95" is none
    ):
        return _NONE
    return _range(first + (lower == ">"), last - (upper == "<"))


def _ages_from(age: int, before: str, behind: str) -> tuple[int, float]:
    """The ages of one number, with what stands before and behind it."""
    signs = _signs(before + behind)
    if set(signs) & set("<≤") and set(signs) & set("≥>"):
        return _NONE
    if not signs:
        words = {*re.findall(r"[^\W\d]+|[^\w\s().:=]", before + behind)} - _FILLERS
        return _NONE if words else (age, age)
    bound = _signs(behind)[-1:]
    sign = bound if bound in ("≤", "≥") else _signs(before)[-1:]
    if not sign:  # "1 younger people", where the number may be a code
        return _NONE
    if sign in ("≥", ">"):
        return age + (sign == ">"), math.inf
    return 0, age - (sign == "<")


def _signs(text: str) -> str:
    return re.sub("[^<≤≥>]", "", text)
