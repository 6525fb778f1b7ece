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
        if (values.minimum, values.maximum) != (self.minimum, self.maximum):
            raise WorkloadError(
                f"The sums of attribute {attribute.name!r} must be of amounts from "
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
            "The basis sums is that of every attribute of amounts, and of no other; leave it out."
        )

    @classmethod
    def default(cls, attribute: Attribute) -> Self | None:
        values = attribute.values
        return cls(values.minimum, values.maximum) if isinstance(values, Amounts) else None

    def describe(self, attribute: Attribute) -> str:
        return "sums, and the records that have an amount"

    def suffix(self, attribute: Attribute) -> str:
        return "sum"

    def example_rows(self, attribute: Attribute) -> list[int]:
        return [0, 1, 2]

    def by(self, name: str) -> str:
        return f"sums of {name}"


def default_basis(attribute: Attribute) -> Basis:
    """The basis that an attribute has where none is stated."""
    from rpexplore.workload.bases.runs import Identity

    return Sums.default(attribute) or Identity()
