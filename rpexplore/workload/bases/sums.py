"""Sums: what tables have of an attribute of amounts, its sum and the number of records."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis, Matrix, Operator
from rpexplore.workload.bases.runs import Identity


@dataclass(frozen=True)
class Sums(Basis):
    """The sum of amounts, the records that have one, and those of each missing value.

    Every attribute of amounts has this basis, and no other attribute has it. The limits are the
    attribute's own, as the rows depend on them: (minimum, maximum) / M on (low, high), with M the
    larger of the two in size, and (1, 1). So the first row is the sum in "largest amounts", whose
    errors compare with those of counts (docs/mathematics-strategies.md §5.6); results have it in
    the unit of the attribute.

    Example:
        >>> import rpexplore as rp
        >>> income = rp.Attribute("income", rp.Amounts(0, 200_000, unit="EUR"))
        >>> rp.Sums.default(income).row_label(income)(0)
        'sum (EUR)'
    """

    minimum: Decimal
    maximum: Decimal

    kind = "sums"
    title = "sums and counts"
    option_help = ""
    text_forms = ()
    min_values = 2
    follows_order = False
    counts_records = False
    of_amounts = True

    if TYPE_CHECKING:  # they are decimals from then on

        def __init__(
            self, minimum: Decimal | float | str, maximum: Decimal | float | str
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("minimum", "maximum"):
            try:
                value = Decimal(str(getattr(self, name)))
            except InvalidOperation:
                value = Decimal("nan")
            if not value.is_finite():
                raise WorkloadError(
                    f"The {name} of sums must be a number, got {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, value)
        if not self.minimum < self.maximum:
            raise WorkloadError(
                f"The maximum of sums must be above the minimum, got {self.minimum} … "
                f"{self.maximum}."
            )

    @property
    def depends_on_order(self) -> bool:
        return True  # on which values are missing ones

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        values = attribute.values
        assert isinstance(values, Amounts)
        if values.are_weights != self.of_weights:
            raise WorkloadError(
                f"The basis {self.kind} cannot be that of attribute {attribute.name!r}, which has "
                f"{values.noun}; leave the basis out."
            )
        if (values.minimum, values.maximum) != (self.minimum, self.maximum):
            raise WorkloadError(
                f"The sums of attribute {attribute.name!r} must be of {values.noun} from "
                f"{values.minimum} to {values.maximum}, got {self.minimum} to {self.maximum}; "
                "leave the basis out."
            )

    def operator(self, attribute: Attribute) -> Operator:
        rows = np.eye(attribute.size)
        largest = max(abs(self.minimum), abs(self.maximum))
        rows[0, :2] = float(self.minimum / largest), float(self.maximum / largest)
        rows[1, :2] = 1.0
        return Matrix(rows)

    def row_units(self, attribute: Attribute) -> np.ndarray:
        units = np.ones(attribute.size)
        units[0] = max(abs(self.minimum), abs(self.maximum))
        return units

    def row_label(self, attribute: Attribute) -> Callable[[int], str]:
        values = attribute.values
        assert isinstance(values, Amounts)
        labels = (values.sum_label, "records", *values.missing_labels)
        return labels.__getitem__

    def json_fields(self) -> dict[str, Any]:
        return {"minimum": str(self.minimum), "maximum": str(self.maximum)}

    @classmethod
    def from_parameter(cls, text: str) -> Self:
        raise WorkloadError(
            f"The basis {cls.kind} is that of every attribute of "
            f"{'weights' if cls.of_weights else 'amounts'}, and of no other; leave it out."
        )

    @classmethod
    def default(cls, attribute: Attribute) -> Self | None:
        values = attribute.values
        if not isinstance(values, Amounts) or values.are_weights != cls.of_weights:
            return None
        return cls(values.minimum, values.maximum)

    @classmethod
    def unavailable_reason(cls, attribute: Attribute) -> str:
        values = attribute.values
        if isinstance(values, Amounts) and values.are_weights != cls.of_weights:
            return f"for {'weights' if cls.of_weights else 'amounts that are no weights'}"
        return super().unavailable_reason(attribute)

    def describe(self, attribute: Attribute) -> str:
        return "sums, and the records that have an amount"

    def suffix(self, attribute: Attribute) -> str:
        return "sum"

    def example_rows(self, attribute: Attribute) -> list[int]:
        return [0, 1, 2]

    def by(self, name: str) -> str:
        return f"sums of {name}"


class WeightedCounts(Sums):
    """The sum of survey weights, alone: a weighted count.

    Every attribute of weights has this basis, and no other attribute has it. Its only row is the
    first one of `Sums`. Records without a weight count in no cell.

    Example:
        >>> import rpexplore as rp
        >>> weight = rp.Attribute("weight", rp.Amounts(0, 40, are_weights=True))
        >>> rp.WeightedCounts.default(weight).row_label(weight)(0)
        'weighted count'
    """

    kind = "weighted-counts"
    title = "weighted counts"
    of_weights = True
    determines_values = False

    def n_rows(self, attribute: Attribute) -> int:
        return 1

    def operator(self, attribute: Attribute) -> Operator:
        return Matrix(super().operator(attribute).of(np.eye(attribute.size), 0)[:1])

    def row_units(self, attribute: Attribute) -> np.ndarray:
        return super().row_units(attribute)[:1]

    def describe(self, attribute: Attribute) -> str:
        return "weighted counts"

    def suffix(self, attribute: Attribute) -> str:
        return "weighted count"

    def by(self, name: str) -> str:
        return f"weights {name}"


def default_basis(attribute: Attribute) -> Basis:
    """The basis that an attribute has where none is stated."""
    if not isinstance(values := attribute.values, Amounts):
        return Identity()
    return (WeightedCounts if values.are_weights else Sums)(values.minimum, values.maximum)
