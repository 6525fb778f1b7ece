"""Target: how accurate a table should be, in one of several units.

A standard error ("20"), a margin of error ("±50 at 95 %"), or a coefficient of variation, which is
a share of the count that a cell is expected to have ("5 % of 1000"). Numbers stay as typed.
"""

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np

from rpexplore.common.numbers import normal_quantile, shown, whole_number
from rpexplore.errors import WorkloadError

Number: TypeAlias = int | float | str | Decimal

STANDARD_ERROR, MARGIN, CV = "standard_error", "margin", "cv"
UNITS = {
    STANDARD_ERROR: "standard error σ",
    MARGIN: "margin of error ±",
    CV: "% of an expected count",
}
NOTATIONS = "20 (standard error), ±50 at 95 % (margin of error) or 5 % of 1000 (of a count)"

# Up to so many times the target a standard error meets it: the rounding of noise scales, far below
# what anybody would notice.
MET_FACTOR = 1 + 1e-9

_USUAL_CONFIDENCE = Decimal(95)
_MOST_SIGNS = 200  # of a text: the time to read one grows with the square of its length
_MOST_EXPONENT = 300  # what floats hold, and as a Fraction 1e-999999999 would fill the memory

# Digits, maybe in groups of three; a comma elsewhere is a decimal one.
_GROUPED = "|".join(rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in (",", r"\s", "['’]"))
_DECIMAL_COMMA = r"[0-9]+,[0-9]+"
_NUMBER = rf"[-−]?(?:(?:{_GROUPED}|[0-9]+)(?:\.[0-9]*)?|{_DECIMAL_COMMA}|\.[0-9]+)(?:e[-+]?[0-9]+)?"
_IN_GROUPS = re.compile(rf"[-−]?(?:{_GROUPED})(?![0-9,])")
_BETWEEN_DIGITS = re.compile(r"[,'’\s]")
_PERCENT = r"\s*(?:%|per ?cent)"
_FORMS = {
    STANDARD_ERROR: rf"(?:(?:σ|sigma|se|s\.e\.|standard error)\s*=?\s*)?(?P<value>{_NUMBER})",
    MARGIN: (
        rf"(?:±|\+\s*/?\s*[-−])\s*(?P<value>{_NUMBER})"
        rf"(?:\s*(?:at|@|\()\s*(?P<confidence>{_NUMBER}){_PERCENT}\s*\)?)?"
    ),
    CV: rf"(?:cv\s*=?\s*)?(?P<value>{_NUMBER}){_PERCENT}\s*(?:of|at|@)\s*(?P<count>{_NUMBER})",
}
_PATTERNS = {unit: re.compile(form, re.IGNORECASE) for unit, form in _FORMS.items()}
_REQUIRED = re.compile(
    r"(?P<before>(?:required\b\s*:?|!)\s*)?(?P<body>.*?)(?P<behind>\s*(?:\brequired|!))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, init=False)
class Target:
    """A wanted accuracy of the cells of a table.

    value       a positive number in the unit
    unit        STANDARD_ERROR; MARGIN: half the width of an interval; or CV: in % of a count
    confidence  of a margin in %, 95 unless given; None for other units
    count       the expected count of a cell that a share is of; None for other units
    required    whether a plan has to meet it, or as well as the other targets allow ("in
                proportion")

    Numbers may be int, float (read as the decimal it prints as), str or Decimal.

    Raises `WorkloadError` for numbers that are not positive, a confidence that is not between 0 and
    100 %, and for a confidence or a count that is missing or belongs to another unit.

    Example:
        >>> Target(20).standard_error
        20.0
    """

    value: Decimal
    unit: str
    confidence: Decimal | None
    count: Decimal | None
    required: bool
    standard_error: float = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        value: Number,
        unit: str = STANDARD_ERROR,
        confidence: Number | None = None,
        count: Number | None = None,
        required: bool = False,
    ) -> None:
        if unit not in UNITS:
            raise WorkloadError(
                f"The target's unit must be one of {', '.join(UNITS)}, got {shown(unit)}."
            )
        if not isinstance(required, bool):
            raise WorkloadError(
                f"Whether the target is required must be true or false, got {shown(required)}."
            )
        for noun, given, whose in (("confidence", confidence, MARGIN), ("count", count, CV)):
            if given is not None and unit != whose:
                raise WorkloadError(
                    f"The target's {noun} must be left out where its unit is {unit}; it belongs to "
                    f"{whose}."
                )
        if unit == CV and count is None:
            raise WorkloadError(
                "The target in % needs the count that it is a share of; write it like 5 % of 1000."
            )
        share = _USUAL_CONFIDENCE if confidence is None else _decimal(confidence, "confidence")
        fields = {
            "value": _positive(value, "target"),
            "unit": unit,
            "confidence": share if unit == MARGIN else None,
            "count": None if count is None else _positive(count, "target's expected count"),
            "required": required,
        }
        for name, content in fields.items():
            object.__setattr__(self, name, content)
        exact = Fraction(self.value)
        if self.count is not None:
            exact *= Fraction(self.count) / 100
        try:
            error = float(exact) / self._quantile
        except OverflowError:
            error = math.inf
        if not 0 < error < math.inf:
            raise WorkloadError(
                f"The target must be a positive number that can be computed with, "
                f"got {self.description}."
            )
        object.__setattr__(self, "standard_error", error)

    @property
    def _quantile(self) -> float:
        """Standard errors in a margin; 1 in other units."""
        if self.confidence is None:
            return 1.0
        confidence = float(self.confidence / 100)
        quantile = normal_quantile(confidence) if 0 < confidence < 1 else 0.0
        if quantile == 0:
            raise WorkloadError(
                "The target's confidence must lie between 0 and 100 %, got "
                f"{plain(self.confidence)} %; 95 % is usual."
            )
        return quantile

    def in_unit(self, standard_error: float) -> float:
        """What a standard error is in the unit of this target."""
        if self.count is not None:
            return 100 * (standard_error / float(self.count))
        return standard_error * self._quantile

    @property
    def description(self) -> str:
        """ "σ = 20", "±50 at 95 %", "5 % of a count of 1,000"."""
        if self.confidence is not None:
            return f"±{self.number} at {plain(self.confidence)} %"
        if self.count is not None:
            return f"{self.number} % of a count of {plain(self.count, ',')}"
        return f"σ = {self.number}"

    @property
    def number(self) -> str:
        """The wanted number by itself, for people: "1,000"."""
        return plain(self.value, ",")

    @property
    def text(self) -> str:
        """As it is typed, without whether it is required: "20", "±50 at 95 %", "5 % of 1000"."""
        if self.confidence is not None:
            return f"±{plain(self.value)} at {plain(self.confidence)} %"
        if self.count is not None:
            return f"{plain(self.value)} % of {plain(self.count)}"
        return plain(self.value)

    def __str__(self) -> str:
        """As it is typed; `Target.parse` undoes it."""
        return f"{self.text} required" if self.required else self.text

    @classmethod
    def parse(cls, text: str) -> Self:
        """The target that a text says; `WorkloadError` for anything else, with examples.

        A standard error: "20", "σ 20", "se 20". A margin of error: "±50", "+-50" or "+/- 50", which
        is one at 95 %, or "±50 at 99 %". A share of a count: "5 % of 1000". Thousands may be
        separated: "1,000", "1 000"; another comma is a decimal one: "2,5", "0,125". With "required"
        or "!" before or behind, the target is required.

        Example:
            >>> round(Target.parse("5 % of 1000").standard_error, 6)
            50.0
        """
        if len(text) > _MOST_SIGNS:
            raise WorkloadError(
                f"The target must have at most {_MOST_SIGNS} characters, got {len(text):,}; write "
                f"it like {NOTATIONS}."
            )
        parts = _REQUIRED.fullmatch(text.strip())
        assert parts is not None  # any text matches
        required = bool(parts["before"] or parts["behind"])
        for unit, pattern in _PATTERNS.items():
            match = pattern.fullmatch(parts["body"].strip())
            if match is not None:
                numbers = {
                    name: _decimal_text(number)
                    for name, number in match.groupdict().items()
                    if number is not None
                }
                return cls(unit=unit, required=required, **numbers)
        raise WorkloadError(
            f"The target must be written like {NOTATIONS}, got {shown(text)!r}; a share says "
            "of which count."
        )

    # ---- files

    def to_json(self) -> float | str:
        """A number for a plain standard error that a JSON number holds, else the text."""
        if self.unit == STANDARD_ERROR and not self.required:
            number = int(self.value) if self.value.as_tuple().exponent == 0 else float(self.value)
            if str(_decimal(number, "target")) == str(self.value):
                return number
        return str(self)


def _decimal_text(number: str) -> str:
    number = number.replace("−", "-")
    return _BETWEEN_DIGITS.sub("" if _IN_GROUPS.match(number) else ".", number)


def target_of(value: "Target | Number | None") -> Target | None:
    """A target as it may be given: itself, a standard error, a text, or None."""
    if value is None or isinstance(value, Target):
        return value
    return Target.parse(value) if isinstance(value, str) else Target(value)


def plain(number: Decimal, separated: str = "") -> str:
    """A number as text; "3" for 3.0, as floats print. separated: "," between thousands."""
    return f"{number:{separated}}".lower().removesuffix(".0")


def _positive(value: Number, noun: str) -> Decimal:
    number = _decimal(value, noun)
    if not (0 < number < math.inf and abs(number.adjusted()) <= _MOST_EXPONENT):
        raise WorkloadError(
            f"The {noun} must be a positive number, got {shown(value)}; leave it out if it is not "
            "wanted."
        )
    return number


def _decimal(value: Any, noun: str) -> Decimal:
    """The decimal that a number prints as; NaN as 0, which is refused as not positive."""
    try:
        whole = whole_number(value)  # numpy's, too
        if whole is None and not isinstance(value, float | str | Decimal | np.floating):
            raise TypeError
        value = str(value) if isinstance(value, np.floating) else value
        # float.__repr__, because numpy's float64 is a float that prints as "np.float64(0.1)"
        text = float.__repr__(value) if isinstance(value, float) else value
        number = Decimal(text if whole is None else whole)
    except (TypeError, ValueError, InvalidOperation):
        raise WorkloadError(
            f"The {noun} must be a positive number, got {shown(value)}; write it like 20 or 2.5."
        ) from None
    if number.is_nan():
        return Decimal(0)
    # 1e3 is 1000; what floats print with an exponent keeps it.
    return Decimal(f"{number:f}") if 0 < number.adjusted() < 16 else number
