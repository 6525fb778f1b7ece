"""Own counts that are sums: what is added up of the records that meet a condition.

A definition is a condition, or begins with what is added up:

    sum(income) where region = "north" & age >= 18        the amounts of these records
    records(income) where age >= 18                       those of them that have an amount
    sum(w) where age >= 18                                their weighted count
    sum(income * w) where age >= 18                       their weighted sum

A record with the amount y is (U − y)/(U − L) records at the one limit and (y − L)/(U − L) at the
other one (docs/mathematics-strategies.md §5.6), so that a sum is a count with the limits L and U as
coefficients.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError

SUM, RECORDS = "sum", "records"

_NAME = r"`(?:[^`]|``)*`|[^\s`*()]+"
_DEFINITION = re.compile(
    rf"\s* (?P<what>sum|records) \s* \( \s* (?P<first>{_NAME}) \s* (?:\* \s* (?P<second>{_NAME}) "
    r"\s*)? \) \s* (?: where\b (?P<condition>.*) | (?P<rest>.*) )",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Measure:
    """What is added up of records.

    what   SUM or RECORDS
    names  of the attributes of amounts or weights: one, or both
    """

    what: str
    names: tuple[str, ...]

    def definition(self, condition: str) -> str:
        """The text that states it of the records that meet a condition; "": of all."""
        names = " * ".join(f"`{name.replace('`', '``')}`" for name in self.names)
        names = names if any(re.search(r"[\s`*(),]", each) for each in self.names) else (
            " * ".join(self.names)
        )  # fmt: skip
        return f"{self.what}({names})" + (f" where {condition}" if condition else "")

    def coefficients(self, domain: Domain) -> Mapping[int, np.ndarray]:
        """What a record adds by its value of each of the attributes, float64[size], by index.

        Raises `WorkloadError` for attributes that have no amounts.
        """
        found: dict[int, np.ndarray] = {}
        for name in self.names:
            amounts = domain[name].values
            assert isinstance(amounts, Amounts)  # by `measure_of`
            ends = amounts.minimum, amounts.maximum
            numbers = np.zeros(domain[name].size)
            numbers[:2] = [float(end) for end in ends] if self.what == SUM else 1.0
            found[domain.position(name)] = numbers
        return found


def split_definition(text: str) -> tuple[Measure | None, str]:
    """What a definition adds up, None for a count of records, and its condition.

    Raises `WorkloadError` for what stands behind a sum without the word where.
    """
    match = _DEFINITION.fullmatch(text)
    if match is None:
        return None, text
    if match["rest"]:
        raise WorkloadError(
            f"Behind {match['what']}(…) there must be the word where and a condition, as in "
            f"sum(income) where age >= 18, got {shown(match['rest'])!r}."
        )
    names = tuple(_name(name) for name in (match["first"], match["second"]) if name)
    return Measure(match["what"].lower(), names), (match["condition"] or "").strip()


def joined_definition(conditions: Sequence[str], typed: str) -> str:
    """A typed definition of those records alone that meet further conditions, too."""
    measure, within = split_definition(typed)
    parts = [*conditions, *([f"({within})" if conditions else within] if within else [])]
    joined = " & ".join(parts)
    return joined if measure is None else measure.definition(joined)


def checked_measure(domain: Domain, measure: Measure) -> Measure:
    """The measure; `WorkloadError` unless its attributes are amounts, or amounts and weights."""
    kinds = []
    for name in measure.names:
        if name not in domain:
            raise WorkloadError(f"There is no attribute {name!r} to add up; name one of amounts.")
        values = domain[name].values
        if not isinstance(values, Amounts):
            raise WorkloadError(
                f"{measure.what}({name}) needs an attribute of amounts, and {name!r} is none; give "
                "it public limits in the codebook, or count records by a condition."
            )
        kinds.append(values.are_weights)
    if len(kinds) > 1 and (kinds[0] == kinds[1] or measure.what == RECORDS):
        raise WorkloadError(
            f"{measure.definition('')} must be the sum of amounts times weights; add up each of "
            "them by itself."
        )
    return measure


def _name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
