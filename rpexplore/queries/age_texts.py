"""Ages that the texts of categories name, such as "18 and over"."""

import math
import re

# Words and signs by an age, in the order in which they are replaced by < ≤ ≥ >.
_UNDER = "(?:under|below|less|fewer|lower|younger|[<‹＜])"
_OVER = "(?:over|above|more|greater|higher|older|beyond|exceeding|[>›＞])"
_JOINED = r"(?:\band\b|\bor\b|&)\W*"  # "18 and over", yet not "18 and under 65"
_BOUNDS = (
    (r"^(?:older|younger) (?!than|age)[a-z]+", ""),  # "older adults 65-74" bounds nothing
    (rf"\bnot?\s+{_OVER}|{_UNDER}(?: than)? or equal|[<‹＜]=|=[<‹＜]|[⩽≦]", "≤"),
    (rf"\bnot?\s+{_UNDER}|{_OVER}(?: than)? or equal|[>›＞]=|=[>›＞]|[⩾≧]", "≥"),
    (rf"up ?to|at most|maximum|{_JOINED}{_UNDER}(?!.*\d)", "≤"),
    (rf"\+|plus|from|at least|minimum|{_JOINED}{_OVER}(?!.*\d)", "≥"),
    (r"(?<![a-z])(?:up|upwards?|onwards?)(?![a-z])", "≥"),
    (_UNDER, "<"),
    (_OVER, ">"),
)


def ages_of(text: str) -> tuple[int, float]:
    """The first and the last age that a text names: (15, 24) of "15 to 24"; (0, −1) of none.

    A bound before its age leaves it out ("over 17"), one behind it does not ("18 and over").

    Example:
        >>> ages_of("Under 18 years"), ages_of("75+"), ages_of("15 to under 25")
        ((0, 17), (75, inf), (15, 24))
    """
    text = text.casefold().replace("_", " ").strip()
    for pattern, sign in _BOUNDS:
        text = re.sub(pattern, sign, text)
    numbers = [int(number) for number in re.findall(r"\d{1,3}", text)]
    # The last sign before each number and behind the last number, or "".
    signs = [re.sub("[^<≤≥>]", "", part)[-1:] for part in re.split(r"\d{1,3}", text)]
    match numbers:
        case [first, last] if first <= last:
            return first + (signs[0] == ">"), last - (signs[1] == "<")
        case [age]:
            before, behind = signs
            joined = {"<": "≤", ">": "≥"}.get(behind, "")
            sign = behind if behind in ("≤", "≥") else before or joined
            if not sign and text.endswith("-"):
                sign = "≤"
            first = {"≥": age, ">": age + 1, "": age}.get(sign, 0)
            last = {"≤": age, "<": age - 1, "": age}.get(sign, math.inf)
            return first, last
    return 0, -1
