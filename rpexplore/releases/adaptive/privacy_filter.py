"""The privacy filter: costs chosen along the way add up to no more than was fixed beforehand.

Sums of exact rationals. With the total fixed, a run whose rounds and costs depend on what it has
released so far is zCDP at that total (`docs/mathematics.md` §17.2).
"""

from fractions import Fraction

from rpexplore.common.exact_numbers import exact_text, positive_rational, shown
from rpexplore.errors import ReleaseError


class PrivacyFilter:
    """What a run may still spend of its ρ; `spend` comes before the draw it pays for."""

    def __init__(self, total: Fraction) -> None:
        """Raises `ReleaseError` unless `total`, ρ of the whole run, is a positive Fraction."""
        self.total = positive_rational(total, "The privacy cost rho of a run", "downwards")
        self.spent = Fraction(0)

    @property
    def remaining(self) -> Fraction:
        return self.total - self.spent

    def spend(self, rho: Fraction) -> None:
        """Count ρ as spent, or refuse and count nothing.

        Raises:
            ReleaseError: ρ is not a positive Fraction, or more than remains. Nothing may be drawn.
        """
        rho = positive_rational(rho, "The privacy cost rho of a draw", "upwards")
        if rho > self.remaining:
            raise ReleaseError(
                f"A draw at rho = {shown(exact_text(rho))} would exceed the run's rho = "
                f"{shown(exact_text(self.total))}, of which {shown(exact_text(self.remaining))} "
                "remains; nothing was drawn. Lower the draw's cost, or end the run."
            )
        self.spent += rho
