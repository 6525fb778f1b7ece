"""Amounts: numbers that tables sum, such as incomes or survey weights, between public limits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cached_property
from math import gcd, prod
from typing import TYPE_CHECKING

from rpexplore.common.text import is_text
from rpexplore.domain.ordered_values import Numbers, number_of
from rpexplore.errors import DomainError

MAX_DECIMALS = 6
WEIGHT_DECIMALS = 3
"""To how many places weights are rounded where nothing is said."""
_MOST_SIGNS = 60  # of a limit
MAX_RANGE = 2**40
"""The limits may be so many of the smallest steps apart; sums are then exact in 64 bits."""


@dataclass(frozen=True)
class Amounts(Numbers):
    """Numbers from a minimum to a maximum, both public, of which tables have the sums.

    A record with the amount y is counted in two values, `low` and `high`, by the shares (maximum −
    y) and (y − minimum) of the range: all that holds of an attribute of two values holds of it, as
    what a record costs is largest at one of the two (docs/mathematics-strategies.md §5.6). Amounts
    beyond the limits count as the nearer limit. Records without an amount are in cells of their own
    behind these, and in no sum.

    minimum, maximum  numbers, or texts of decimals
    decimals          to how many places amounts are rounded, half to even
    unit              of the amounts: "EUR"
    missing           as of all numbers
    are_weights       whether they are survey weights, whose sums are weighted counts; at least 0,
                      and without a unit

    Example:
        >>> Amounts(0, 200_000, unit="EUR").range_in_steps
        200000
    """

    minimum: Decimal
    maximum: Decimal
    decimals: int = 0
    unit: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    are_weights: bool = False

    if TYPE_CHECKING:  # they are decimals from then on

        def __init__(
            self,
            minimum: Decimal | float | str,
            maximum: Decimal | float | str,
            decimals: int = 0,
            unit: str = "",
            missing: Sequence[tuple[str, str]] = (),
            are_weights: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.decimals) is not int or not 0 <= self.decimals <= MAX_DECIMALS:
            raise DomainError(
                f"The decimals of {self.noun} must be 0 to {MAX_DECIMALS}, got {self.decimals!r}."
            )
        if not is_text(self.unit):
            raise DomainError(f"The unit of amounts must be a text, got {self.unit!r}.")
        object.__setattr__(self, "unit", self.unit.strip())
        for name in ("minimum", "maximum"):
            object.__setattr__(self, name, self._limit(name))
        if self.maximum <= self.minimum:
            raise DomainError(
                f"The maximum of {self.noun} must be above the minimum, got {self.minimum} … "
                f"{self.maximum}."
            )
        if self.range_in_steps > MAX_RANGE or self.largest_in_steps > MAX_RANGE:
            raise DomainError(
                f"{self.noun.capitalize()} of {self.decimals} decimals must lie within "
                f"{MAX_RANGE:,} of their smallest steps, got {self.minimum} … {self.maximum}; use "
                "fewer decimals."
            )
        self._check_weights()
        self._check_missing()

    def _check_weights(self) -> None:
        if type(self.are_weights) is not bool:
            raise DomainError(
                f"Whether amounts are weights must be true or false, got {self.are_weights!r}."
            )
        if self.are_weights and self.minimum < 0:
            raise DomainError(
                f"The minimum of weights must be at least 0, got {self.minimum}; a record counts "
                "at least not at all."
            )
        if self.are_weights and self.unit:
            raise DomainError(
                f"Weights have no unit, as they count records, got {self.unit!r}; leave it out."
            )

    def _limit(self, name: str) -> Decimal:
        given = getattr(self, name)
        text = str(given).strip()
        # No digits of other scripts, marks between digits or endless texts, which Decimal takes.
        is_plain = len(text) <= _MOST_SIGNS and number_of(text) is not None
        number = Decimal(text) if is_plain else Decimal("nan")
        if isinstance(given, bool) or not number.is_finite() or abs(number) > MAX_RANGE:
            raise DomainError(
                f"The {name} of {self.noun} must be a number within ±{MAX_RANGE:,}, got {given!r}."
            )
        rounded = number.quantize(Decimal(1).scaleb(-self.decimals), ROUND_HALF_EVEN)
        if rounded != number:
            raise DomainError(
                f"The {name} of {self.noun} of {self.decimals} decimals must have no more of them, "
                f"got {given}."
            )
        return rounded + 0  # no −0

    @property
    def n_ordered(self) -> int:
        return 2

    @cached_property
    def lowest(self) -> int:
        """The minimum in the smallest steps, 10^−decimals."""
        return int(self.minimum.scaleb(self.decimals))

    @cached_property
    def highest(self) -> int:
        """The maximum in the smallest steps."""
        return int(self.maximum.scaleb(self.decimals))

    @property
    def range_in_steps(self) -> int:
        """What all counts of a table with amounts are multiplied by, to be whole numbers."""
        return self.highest - self.lowest

    def product_unit(self, weights: "Amounts") -> int:
        """The unit of products with weights, in products of their smallest steps: 1000, for cents
        times weights of 3 decimals.

        Products are rounded to a smallest step of the amounts, or less where the ranges have no
        such divisor in common: shares of both, 1/R and 1/V, stay whole numbers of the unit
        (docs/mathematics-strategies.md §5.6).
        """
        return gcd(self.range_in_steps, weights.range_in_steps, 10**weights.decimals)

    @property
    def largest_in_steps(self) -> int:
        """The largest size of an amount, in the smallest steps."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def largest(self) -> Decimal:
        """The largest size of an amount: what a record can add to a sum."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def noun(self) -> str:
        """What they are called: "amounts", or "weights"."""
        return "weights" if self.are_weights else "amounts"

    @property
    def sum_label(self) -> str:
        """What a sum is called in tables: "sum (EUR)", or "weighted count"."""
        if self.are_weights:
            return "weighted count"
        return f"sum ({self.unit})" if self.unit else "sum"

    @property
    def description(self) -> str:
        """The limits, and what may be missing: "amounts from 0 to 200,000 EUR; not stated".

        Of weights also their rounding: "weights from 0 to 40, rounded to 3 decimals".
        """
        unit = f" {self.unit}" if self.unit else ""
        limits = f"{self.noun} from {_plain(self.minimum)} to {_plain(self.maximum)}{unit}"
        if self.are_weights:
            places = "a whole number"
            if self.decimals:
                places = f"{self.decimals} decimal{'s' if self.decimals > 1 else ''}"
            limits += f", rounded to {places}"
        return "; ".join([limits, *self.missing_labels])

    @property
    def clamping(self) -> str:
        """What is done to amounts beyond the limits, for a sentence."""
        low, high = _plain(self.minimum), _plain(self.maximum)
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.noun} below {low}{unit} count as {low}, those above {high}{unit} as {high}"

    @property
    def clamping_sentence(self) -> str:
        return f"{self.clamping[0].upper()}{self.clamping[1:]}."

    def rounding_sentence(self, weights: "Amounts") -> str:
        """What is done to products with weights; "" where they are counted as they are."""
        if (most := self.most_rounded(weights)) is None:
            return ""
        unit = f" {self.unit}" if self.unit else ""
        return f"Each amount times its weight is rounded, by at most {most.normalize():f}{unit}."

    def most_rounded(self, weights: "Amounts") -> Decimal | None:
        """By how much products with weights are rounded at most; None where they are not."""
        unit = self.product_unit(weights)
        if unit == 1:
            return None
        return Decimal(unit).scaleb(-self.decimals - weights.decimals) / 2

    def holds(self, text: str) -> bool:
        return number_of(text.strip()) is not None

    def _numbers_label(self, first: int, last: int) -> str:
        return ("low", "high")[first] if first == last else "low or high"

    def _up_to_label(self, last: int) -> str:
        return self._numbers_label(0, last)


def sentences_of(amounts: Iterable[Amounts]) -> str:
    """What is done to amounts that a table or a list has: beyond their limits, and to products."""
    listed = list(amounts)
    of_weights = [values for values in listed if values.are_weights]
    sentences = [values.clamping_sentence for values in listed]
    sentences += [
        values.rounding_sentence(weights)
        for values in listed
        for weights in of_weights
        if not values.are_weights
    ]
    return " ".join(filter(None, sentences))


def _plain(limit: Decimal) -> str:
    """A limit without zeros behind its decimals: "200,000", "0.5"."""
    return f"{limit.normalize():,f}"


class Ranges(dict[int, int]):
    """The range in steps of each attribute of amounts, by its index.

    product_units  of amounts and weights, as ascending indices: of how many products of steps one
                   is counted, where both are (`Amounts.product_unit`); 1 of others
    """

    def __init__(
        self,
        ranges: Mapping[int, int] | None = None,
        product_units: Mapping[tuple[int, ...], int] | None = None,
    ) -> None:
        super().__init__(ranges or {})
        self.product_units = dict(product_units or {})

    def product_unit(self, held: tuple[int, ...]) -> int:
        return self.product_units.get(held, 1)

    def times(self, held: tuple[int, ...]) -> int:
        """How often a record counts in a table that holds these of the attributes, ascending."""
        return prod(self[index] for index in held) // self.product_unit(held)


def amounts_in(table: Sequence[int], ranges: Mapping[int, int]) -> tuple[int, ...]:
    """The attributes of amounts that a table holds: none, one, or one and weights."""
    return tuple(index for index in table if index in ranges)
