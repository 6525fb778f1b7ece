"""The schedule of an adaptive release: how much of the budget each round has, and for what.

Fixed beforehand, in exact rationals, from public numbers alone: ρ, how many candidates the workload
has, and how many records are expected.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from rpexplore.privacy.budget import Budget

# Of ρ, for the first plan: the less, the more of the tables is told from noise, by N √ρ.
LEAST_FIRST_SHARE, MOST_FIRST_SHARE = Fraction(2, 5), Fraction(4, 5)
_OF_ONE_RECORD, _OF_TENFOLD = 1.36, 0.2  # share where N √ρ is 1; how much less for ten times that
_SHARE_STEP = 20  # of these a share is a whole number, so that it can be read
ROUNDS = 4  # six came out a little farther from the truth, of many tables at ε = 1
GROWTH = Fraction(3, 2)  # of ρ from one round to the next, as later selections know more
SELECTION_SHARE = Fraction(1, 10)  # of a round's ρ
MOST_TABLES = 24  # in a round; more would be selected by the same estimate
LEAST_CANDIDATES = 10  # for each table that is selected in a round
LEAST_RESOLUTION = 50
"""Scores 2/ε apart are told apart in most selections: at most so many-th part of all records."""
_DOWN = Context(prec=12, rounding=ROUND_FLOOR)  # of parts of ρ, so that they can be read in a file


@dataclass(frozen=True)
class Round:
    """One round: how many tables it selects, and ρ for one record and one selected table.

    n_tables         how many different candidates are selected, each by a draw of its own
    selection_rho    of the exponential mechanism, for each draw
    measurement_rho  of the discrete Gaussian noise on the residual of each selected table
    """

    n_tables: int
    selection_rho: Fraction
    measurement_rho: Fraction

    @property
    def rho(self) -> Fraction:
        """The round's privacy cost for one record."""
        return self.n_tables * (self.selection_rho + self.measurement_rho)


@dataclass(frozen=True)
class Schedule:
    """first_rho: of the first plan, for one record; rounds: what follows it."""

    first_rho: Fraction
    rounds: tuple[Round, ...]

    @property
    def rho(self) -> Fraction:
        """The privacy cost of all rounds for one record."""
        return self.first_rho + sum((step.rho for step in self.rounds), Fraction())


def schedule(budget: Budget, n_candidates: int, expected_records: int) -> Schedule:
    """The schedule within a budget, which it uses up to 11 digits.

    A round selects as many tables as it can tell apart from others: its draws have
    2/ε ≤ records / 50, with ε = √(8 ρ) of a draw. Where not even one table can be told apart in
    the first round, there are fewer rounds, with more for each; the last one left selects one.
    """
    rho = budget.record_privacy_cost / 2
    first_rho = _rounded_down(rho * first_share(rho, expected_records))
    # 2/√(8 ρ) ≤ N/50 where ρ is at least this.
    least_rho = Fraction(LEAST_RESOLUTION**2, 2 * expected_records**2)
    most = min(max(n_candidates // LEAST_CANDIDATES, 1), MOST_TABLES)
    in_rounds = SELECTION_SHARE * (rho - first_rho) / least_rho  # how many tables can be told apart
    n_rounds = next((n for n in range(ROUNDS, 1, -1) if in_rounds * _shares(n)[0] >= 1), 1)
    rounds = tuple(
        _round((rho - first_rho) * share, min(max(int(in_rounds * share), 1), most))
        for share in _shares(n_rounds)
    )
    return Schedule(first_rho, rounds)


def _shares(n_rounds: int) -> list[Fraction]:
    """The share of each round in what rounds have together."""
    amounts = [GROWTH**number for number in range(n_rounds)]
    return [amount / sum(amounts) for amount in amounts]


def first_share(record_rho: Fraction, expected_records: int) -> Fraction:
    """The share of ρ that the first plan has, in steps of 1/20."""
    precision = expected_records * math.sqrt(record_rho)
    share = _OF_ONE_RECORD - _OF_TENFOLD * math.log10(precision)
    steps = Fraction(round(_SHARE_STEP * share), _SHARE_STEP)
    return min(max(steps, LEAST_FIRST_SHARE), MOST_FIRST_SHARE)


def _round(rho: Fraction, n_tables: int) -> Round:
    of_table = rho / n_tables
    selection = _rounded_down(of_table * SELECTION_SHARE)
    return Round(n_tables, selection, _rounded_down(of_table - selection))


def _rounded_down(value: Fraction) -> Fraction:
    """A positive number down to 12 significant digits."""
    return Fraction(_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))
