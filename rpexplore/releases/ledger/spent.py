"""What runs spent together, and for whom: sums of ρ, claims of their noise, kinds of neighbours."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from rpexplore.common.json_fields import FieldError, loads
from rpexplore.common.numbers import Exact
from rpexplore.common.text import joined, plural, rounded
from rpexplore.data.source import PersonRule
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.planning.held_totals import OF_AREAS
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import ADD_REMOVE, REPLACE, Budget, exact_totals_text
from rpexplore.privacy.discrete_noise import GaussianClaim

FINEST, MOST_AMOUNT = 10**400, 10**100
"""Amounts that texts hold: `exact_fraction` reads 1e-400, and a ρ is below 5e99."""
_CLAIMED_AT = "1e-6"  # the δ near which such a claim is about the best

# Behind the privacy unit of runs whose neighbours replace records: units of older runs have none.
_REPLACED = "; neighbours replace records"
_KEEPING = "; neighbours keep the exact totals "  # behind it these, as JSON
_WITHIN = "; neighbours replace records within "  # behind it three lists of names, as JSON
_DIGITS_OF_NAME = 12  # of the SHA-256 of all that decides what is meant by it


def total_of(amounts: Iterable[Fraction]) -> Fraction:
    """The sum; exact, but rounded up to 400 decimals where it would be of longer numbers.

    No plan costs such amounts, but whoever books on a server may enter them, and sums of a few
    would have more digits than Python reads.
    """
    total = Fraction(0)
    for amount in amounts:
        total += amount
        if total.denominator > FINEST:
            total = Fraction(math.ceil(total * FINEST), FINEST)
    return total


@dataclass(frozen=True)
class Spent:
    """What some runs on the same records spent together, for one record.

    claim        of the noise of all of them; None where some run has none that is known
    n_runs, n_without
                 how many there are, and how many of them have no claim
    """

    record_rho: Fraction
    claim: GaussianClaim | None
    n_runs: int = 1
    n_without: int = 0

    @classmethod
    def by(cls, plan: Plan | PartPlan) -> "Spent":
        """What a run of a plan spends."""
        claim = None
        # In a panel a person costs less than m² times a record: what one costs is known by ρ.
        if plan.noise is not None and plan.budget.period is None:
            of_record = plan.noise.for_one_record(plan.budget.records_factor)
            claim = of_record.claim_at(_CLAIMED_AT)
            if claim is not None:  # as an entry has it
                claim = GaussianClaim.from_texts(claim.to_texts())
        return cls(plan.record_rho, claim, 1, int(claim is None))

    @classmethod
    def together(cls, runs: Iterable["Spent"]) -> "Spent":
        """The sum. Runs that have no claim leave ρ alone for all (docs/guarantees.md)."""
        runs = [run for run in runs if run.record_rho]
        claims = [run.claim for run in runs if run.claim is not None]
        is_known = 0 < len(claims) == len(runs)
        return cls(
            total_of(run.record_rho for run in runs),
            GaussianClaim.composed(claims) if is_known else None,
            sum(run.n_runs for run in runs),
            sum(run.n_without for run in runs),
        )

    def of_records(self, n_records: int) -> "Spent":
        """The same for a change of so many records."""
        claim = None if self.claim is None else self.claim.of_records(n_records)
        return replace(self, record_rho=self.record_rho * n_records**2, claim=claim)

    def epsilon(self, delta: Exact, n_records: int = 1) -> float:
        """The smallest proven ε for somebody with so many records, rounded up."""
        of_zcdp = conversions.epsilon_from_rho(self.record_rho * n_records**2, delta)
        if self.claim is None or not of_zcdp:
            return of_zcdp
        return self.claim.of_records(n_records).epsilon(delta, of_zcdp)

    def epsilon_text(self, budget: Budget) -> str:
        """ε for the privacy unit of a budget, at its δ or the usual one; "" for nothing."""
        rho = self.record_rho * budget.records_factor
        if not 0 < rho < conversions.MOST_RHO:
            return ""
        delta = budget.stated_delta or conversions.USUAL_DELTAS[0]
        epsilon = self.epsilon(delta, budget.max_records_per_person or 1)
        return conversions.epsilon_at_delta(epsilon, delta)

    def proof_for(self, budget: Budget) -> str:
        """`proof` of `epsilon_text`."""
        delta = budget.stated_delta or conversions.USUAL_DELTAS[0]
        return self.proof(delta, budget.max_records_per_person or 1)

    def proof(self, delta: Exact, n_records: int = 1) -> str:
        """Which of the two proofs `epsilon` is from, to go behind it."""
        of_zcdp = conversions.epsilon_from_rho(self.record_rho * n_records**2, delta)
        if self.claim is not None and self.epsilon(delta, n_records) < of_zcdp:
            mu = rounded(self.claim.of_records(n_records).mu, 4, "up")
            return f"by the noise itself, with μ = {mu}"
        if self.n_without and self.n_runs > 1:
            return (
                f"by the sum of ρ, as {self.n_without} of {self.n_runs} runs state no claim of "
                "their noise"
            )
        return "by ρ alone"


@dataclass(frozen=True)
class Neighbours:
    """How data sets differ that runs must hardly tell apart.

    kind     "add-remove" or "replace"
    exact    the totals that stay, as in a `Budget`, each name with what tells its values or areas
             from others of this name
    within   what runs have counted, where records are replaced and not all are counted: the
             universes of plans, and the first records of persons. A replaced record stays within
             each, or outside, as how many records are within is public
    counted  the names of what runs have counted other than the records of their account, which may
             be a view of that table, or a folder around the file: a replaced record stays likewise
    """

    kind: str = ADD_REMOVE
    exact: tuple[tuple[str, ...], ...] = ()
    within: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()

    @classmethod
    def common(cls, kinds: Sequence["Neighbours"]) -> "Neighbours":
        """What runs of all these kinds promise something about.

        A replaced record is one removed and one added, but not the other way round. A change that
        keeps more totals, or stays within more universes and files, keeps fewer, too.
        """
        if len(set(kinds)) == 1:
            return kinds[0]
        totals = tuple(sorted({total for one in kinds for total in one.exact}))
        within = tuple(sorted({condition for one in kinds for condition in one.within}))
        counted = tuple(sorted({name for one in kinds for name in one.counted}))
        replaces = totals or any(one.kind == REPLACE for one in kinds)
        return cls(REPLACE if replaces else ADD_REMOVE, totals, within, counted)

    def n_changes_of(self, kind: "Neighbours") -> int:
        """How many changes of another kind one of these is, at most.

        An exchange between two records that keeps totals replaces both.
        """
        if self == kind or kind.exact:
            return 1
        n_replaced = 2 if self.exact else 1
        return n_replaced if kind.kind == REPLACE else 2 * n_replaced

    def total_of(self, spent: Iterable[tuple["Neighbours", Fraction]]) -> Fraction:
        """What amounts of ρ, each for other neighbours, are together for one change of these."""
        return total_of(rho * self.n_changes_of(kind) ** 2 for kind, rho in spent if rho)

    @classmethod
    def by(cls, plan: Plan | PartPlan, reading: "Reading | None" = None) -> "Neighbours":
        """Those of a run of a plan.

        reading: how it reads and counts records; None: all of them, with no option
        """
        if not plan.budget.replaces:
            return cls()
        return cls(REPLACE, **_public(Plan.of(plan), reading or Reading()))

    @classmethod
    def of(cls, unit: str) -> "Neighbours":
        """Those of a unit that `noted_unit` or `unit` wrote.

        A text that these have not written, as a server may be given, is of the usual neighbours;
        and so is a unit with the name of an attribute that reads like what is behind units.
        """
        # Units with the name of an attribute in them, which may be any, do not end as JSON does.
        _, _, kept = unit.partition(_WITHIN)
        if lists := _lists_of_names(kept):
            return cls(REPLACE, *lists)
        _, _, totals = unit.partition(_KEEPING)
        if exact := _exact_totals(totals):
            return cls(REPLACE, exact)
        return cls(REPLACE if unit.endswith(_REPLACED) else ADD_REMOVE)

    @property
    def suffix(self) -> str:
        """What they add to a unit, as an event holds it; "" for the usual ones."""
        if self.within or self.counted:
            lists = [self.within, self.exact, *([self.counted] if self.counted else [])]
            return f"{_WITHIN}{json.dumps(lists, ensure_ascii=False)}"
        if self.exact:
            return f"{_KEEPING}{json.dumps(self.exact, ensure_ascii=False)}"
        return _REPLACED if self.kind == REPLACE else ""

    @property
    def unit(self) -> str:
        """The unit of one record, as an event holds it."""
        return f"one record{self.suffix}"

    @property
    def does(self) -> str:
        """What they do, behind "that"."""
        if self.exact:
            return f"keep the exact totals of {exact_totals_text(self.exact)}{self.where}"
        if self.kind == REPLACE:
            return f"replace a record{self.where}"
        return "add or remove a record"

    @property
    def change(self) -> str:
        """One change, in a list of what was spent: "for one record, replaced"."""
        if self.exact:
            totals = exact_totals_text(self.exact)
            return f"for one record, around the exact totals of {totals}{self.where}"
        return f"for one record, replaced{self.where}" if self.kind == REPLACE else "for one record"

    @property
    def where(self) -> str:
        """Where a replaced record stays, beside its account; "" for nothing."""
        places = [*self.within, *map(repr, self.counted)]
        return f" within or outside of {joined(places)}" if places else ""


ADDED_OR_REMOVED = Neighbours()


def noted_unit(plan: Plan | PartPlan, reading: "Reading | None" = None) -> str:
    """The privacy unit of a run as its event holds it, with the neighbours that are not usual."""
    return plan.budget.unit + Neighbours.by(plan, reading).suffix


def _exact_totals(text: str) -> tuple[tuple[str, ...], ...] | None:
    """The exact totals that `Neighbours.suffix` wrote as JSON; None for any other text."""
    try:
        totals = loads(text)
    except FieldError:
        return None
    names = totals if isinstance(totals, list) else [None]
    names = [name for total in names for name in (total if isinstance(total, list) else [None])]
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return tuple(map(tuple, totals))


def _lists_of_names(text: str) -> tuple[Any, ...] | None:
    """Exact totals, universes and what was counted, of the JSON that `Neighbours.suffix` wrote.

    None for another text.
    """
    try:
        within, exact, *rest = loads(text)
    except (FieldError, TypeError, ValueError):
        return None
    counted = rest[0] if rest else []
    names = [within, counted, *rest[1:]]
    is_written = all(isinstance(one, list) for one in names) and len(names) == 2
    if not (is_written and all(isinstance(one, str) for one in (*within, *counted))):
        return None
    totals = _exact_totals(json.dumps(exact)) if exact else ()
    if totals is None or not (within or counted):
        return None
    return totals, tuple(within), tuple(counted)


# ---- What is public of the records of a run, beside its noisy numbers.


@dataclass(frozen=True)
class Reading:
    """What of a run, beside its plan, decides which records are counted, and in which cells.

    way             how values are read, as `Source.reading` has it
    unknown_values  attribute -> the category, as it is stored, that takes what is not in the
                    codebook
    missing_values  attribute -> the one that takes what is missing
    person_rule     which records of a person are counted; None: all
    """

    way: str = ""
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    missing_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: PersonRule | None = None


def _public(plan: Plan, reading: Reading) -> dict[str, tuple[Any, ...]]:
    """What is told without noise where records are replaced: `exact` and `within`.

    It is the number of records that are counted, and the exact totals. Each has a name, and behind
    it a digest of all that decides which records are counted by it: the same condition on another
    codebook, or the same attribute in another encoding, has another.
    """
    within = []
    if (universe := plan.universe) is not None:
        # What no category takes is outside of a universe, whatever is said of such values.
        of_values = Domain(tuple(one.as_counted for one in universe.attributes)).to_schema()
        decides = [of_values, universe.meaning, reading.way]
        within.append(_named(universe.text, "values", decides))
    if (rule := reading.person_rule) is not None and rule.excess != "refuse":
        kept = f"the first {plural(rule.most, 'record')} of each value of {rule.column}"
        decides = [rule.column, rule.most, rule.order, reading.way]
        if plan.budget.exact and rule.order is not None:
            decides += _ties(plan, reading)
        within.append(_named(kept, "order", decides))
    exact = tuple(
        tuple(_exact_total(plan, name, reading) for name in total) for total in plan.budget.exact
    )
    return {"exact": exact, "within": tuple(within)}


def _ties(plan: Plan, reading: Reading) -> list[Any]:
    """By what a database tells apart records of a person that have one place in the order.

    It is all that is counted, as it is coded there (`engines.counting`). No number of records
    depends on that, but what exact totals count of a person does.
    """
    areas: Any = plan.part("areas")
    attributes = [
        part.domain.attributes[index] for part in plan.parts for index in part.attribute_indices
    ]
    tree = [] if areas is None else [areas.workload.tree.sha256]
    return [*(list(_read_as(one, reading)) for one in attributes), *tree]


def _exact_total(plan: Plan, name: str, reading: Reading) -> str:
    """An area level or an attribute of an exact total, with what tells it from others so called."""
    areas: Any = plan.part("areas")
    if areas is not None and name.startswith(OF_AREAS):
        return _named(name, "areas", [areas.workload.tree.sha256, reading.way])
    domain = next(part.domain for part in plan.parts if name in part.domain.names)
    column = domain[name].of or name
    of_values, takers = _read_as(domain[name], reading)
    if column != name:  # a level, which has the values of its column in groups
        of_values |= {column: Domain((domain[column],)).to_schema()}
    return _named(name, "values", [of_values, takers, reading.way])


def _read_as(attribute: Attribute, reading: Reading) -> tuple[dict[str, Any], list[str | None]]:
    """The values of an attribute, and which of them take missing and unknown ones."""
    takers = (reading.unknown_values, reading.missing_values)
    column = attribute.of or attribute.name
    return Domain((attribute.as_counted,)).to_schema(), [taking.get(column) for taking in takers]


def _named(name: str, what: str, decides: Any) -> str:
    """A name with the first digits of the SHA-256 of what decides what is meant by it."""
    content = json.dumps(decides, sort_keys=True)
    return f"{name} ({what} {hashlib.sha256(content.encode()).hexdigest()[:_DIGITS_OF_NAME]})"
