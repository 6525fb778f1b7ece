"""Survey design: the sampling error that a survey's counts have before any noise is added.

The share of a cell with c of n records has, from a sample alone, the coefficient of variation

    CV² = d (1 − f) (1 − c/n) / c        (Cochran 1977, ch. 3; Kish 1965, ch. 8)

with d the design effect and f the sampling fraction. The total error adds that of the noise,
CV² = σ²/c² + d (1 − f) (1 − c/n) / c: noise and sampling are independent.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys, list_of, refusing
from rpexplore.common.numbers import shown
from rpexplore.common.text import describe_share, joined, rounded
from rpexplore.domain.expected_counts import title_of
from rpexplore.errors import WorkloadError

_LEAST_EFFECT, _MOST_EFFECT = 0.01, 1000.0
_MOST_WEIGHT_CV = 30.0
_MOST_NAMED = 3  # tables with a design effect of their own, in a sentence

Effects = tuple[tuple[tuple[str, ...], float], ...]


@dataclass(frozen=True)
class SurveyDesign:
    """How much a survey's own counts vary from sample to sample; public, never from the records.

    Args:
        design_effect: The variance of an estimate over that of a simple random sample of as many
            records: 1 is such a sample.
        of_tables: ((attribute names), design effect) of tables that have one of their own.
        sampling_fraction: Share of the population that is in the sample, 0 to 1; 0 is a sample
            that is small beside its population.

    Raises:
        WorkloadError: If a number is none of these, or a table is named twice.

    Example:
        >>> SurveyDesign.from_weights(0.6, sampling_fraction=0.01).text
        'design effect 1.36, sampling fraction 1 %'
    """

    design_effect: float = 1.0
    of_tables: Effects = ()
    sampling_fraction: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "design_effect", _effect(self.design_effect))
        own = tuple((tuple(names), _effect(effect)) for names, effect in self.of_tables)
        object.__setattr__(self, "of_tables", own)
        tables = [frozenset(names) for names, _ in own]
        for number, table in enumerate(tables):
            if table in tables[:number]:
                raise WorkloadError(
                    f"The table {title_of(own[number][0])} has two design effects; keep one."
                )
        fraction = _number(self.sampling_fraction)
        if fraction is None or not 0 <= fraction <= 1:
            raise WorkloadError(
                "The sampling fraction must be from 0 to 1 (0.01 is 1 %), got "
                f"{shown(self.sampling_fraction)}."
            )
        object.__setattr__(self, "sampling_fraction", fraction)

    @classmethod
    def from_weights(cls, weight_cv: float, *, sampling_fraction: float = 0.0) -> "SurveyDesign":
        """The design effect 1 + CV² of unequal weights (Kish 1965, ch. 11).

        weight_cv: the public coefficient of variation of the weight column: 0.6 is 60 %
        """
        cv = _number(weight_cv)
        if cv is None or not 0 <= cv <= _MOST_WEIGHT_CV:
            raise WorkloadError(
                "The coefficient of variation of the weights must be from 0 to "
                f"{_MOST_WEIGHT_CV:g} (0.6 is 60 %), got {shown(weight_cv)}."
            )
        return cls(round(1 + cv**2, 12), sampling_fraction=sampling_fraction)

    # ---- formulas

    def factors(self, tables: Iterable[Iterable[str]]) -> np.ndarray:
        """d (1 − f) of each table, named by its attributes: float64[n_tables]."""
        own = {frozenset(names): effect for names, effect in self.of_tables}
        effects = [own.get(frozenset(names), self.design_effect) for names in tables]
        return np.array(effects, dtype=float) * (1 - self.sampling_fraction)

    def among(self, tables: Iterable[Iterable[str]]) -> "SurveyDesign":
        """The design without effects of other tables than these."""
        if not self.of_tables:
            return self
        known = {frozenset(names) for names in tables}
        own = [(names, effect) for names, effect in self.of_tables if frozenset(names) in known]
        return replace(self, of_tables=tuple(own))

    def refuse_unknown(self, tables: Iterable[Iterable[str]]) -> None:
        """Raise `WorkloadError` for a design effect of a table that is none of these."""
        known = self.among(tables).of_tables
        for names, effect in self.of_tables:
            if (names, effect) not in known:
                raise WorkloadError(
                    f"The design effect of {title_of(names)} is of no table of the plan; leave it "
                    "out, or name a table that is in the plan."
                )

    @property
    def text(self) -> str:
        """The design, for a sentence."""
        parts = [f"design effect {rounded(self.design_effect, 4)}"]
        parts += [
            f"{rounded(effect, 4)} of {title_of(names)}"
            for names, effect in self.of_tables[:_MOST_NAMED]
        ]
        if len(self.of_tables) > _MOST_NAMED:
            parts.append(f"{len(self.of_tables) - _MOST_NAMED:,} more")
        text = joined(parts)
        if self.sampling_fraction:
            text += f", sampling fraction {describe_share(self.sampling_fraction, 4)}"
        return text

    def renamed(
        self, names: Mapping[str, str], known: Collection[str]
    ) -> "tuple[SurveyDesign, list[str]]":
        """The design after a change of the codebook, and a sentence for every effect it loses.

        names: old attribute name -> new one; known: those that there are now
        """
        kept, lost = [], []
        for table, effect in self.of_tables:
            now = tuple(names.get(name, name) for name in table)
            if all(name in known for name in now):
                kept.append((now, effect))
            else:
                lost.append(
                    f"The design effect of {title_of(table)} was dropped: the codebook has not all "
                    "of these attributes any more."
                )
        return replace(self, of_tables=tuple(kept)), lost

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` undoes it."""
        return {
            "design_effect": self.design_effect,
            "of_tables": [[list(names), effect] for names, effect in self.of_tables],
            "sampling_fraction": self.sampling_fraction,
        }

    @classmethod
    def from_json(cls, content: Any) -> "SurveyDesign":
        """The design that JSON values hold; raises `WorkloadError` for any other."""
        with refusing(WorkloadError, "The design of the survey cannot be read"):
            check_keys(content, ("design_effect", "of_tables", "sampling_fraction"), "the design")
            rows = list_of(content, "of_tables")
            if not all(
                isinstance(row, list) and len(row) == 2 and isinstance(row[0], list)
                and all(isinstance(name, str) for name in row[0])
                for row in rows
            ):  # fmt: skip
                raise WorkloadError("of_tables must be pairs of a list of names and a number.")
            return cls(
                content["design_effect"],
                tuple((tuple(names), effect) for names, effect in rows),
                content["sampling_fraction"],
            )


@dataclass(frozen=True)
class Sampling:
    """The sampling error that the counts of a survey have beside their noise.

    n_records: of the survey, as is publicly expected; where that is not known (∞) the error is at
        most too large
    """

    design: SurveyDesign
    n_records: float = np.inf

    def total_errors(
        self, errors: np.ndarray, counts: np.ndarray, attributes: Iterable[str]
    ) -> np.ndarray:
        """Standard errors of noise and sampling together, shaped as those of the noise.

        counts: noisy ones; those below 0 have the noise alone. attributes: of the table
        """
        own = np.maximum(counts, 0.0)
        sampled = sampling_variances(own, self.n_records, self.design.factors([attributes]))
        return np.sqrt(errors**2 + sampled)

    @property
    def text(self) -> str:
        """What is counted, as a sentence."""
        return f"CVs are of the total error: noise and sampling ({self.design.text})."


def sampling_variances(counts: np.ndarray, n_records: float, factors: np.ndarray) -> np.ndarray:
    """The sampling variance of counts, d (1 − f) c (1 − c/n), shaped as all together."""
    return factors * counts * np.maximum(1 - counts / n_records, 0.0)


def least_good_counts(
    standard_errors: np.ndarray, limit: float, n_records: float, factors: np.ndarray
) -> np.ndarray:
    """The smallest counts whose total CV is at most `limit`, shaped as both arrays together.

    standard_errors: of the noise; factors: d (1 − f), 0 for the noise alone

    σ² + D c (1 − c/n) ≤ κ² c² is (κ² + D/n) c² − D c − σ² ≥ 0, with one root above 0.
    """
    a = limit**2 + factors / n_records
    return (factors + np.sqrt(factors**2 + 4 * a * standard_errors**2)) / (2 * a)


def counts_without_sampling(
    counts: np.ndarray, limit: float, n_records: float, factors: np.ndarray
) -> np.ndarray:
    """Counts whose CV limit leaves as much room for noise if nothing else errs.

    A cell is good if σ is at most `limit` times this: √(c² − D c (1 − c/n)/κ²), 0 where the
    sampling error alone is too much. The inverse of `least_good_counts`.
    """
    room = counts**2 - sampling_variances(counts, n_records, factors) / limit**2
    return np.sqrt(np.maximum(room, 0.0))


def added_by_noise(
    standard_errors: np.ndarray, counts: np.ndarray, n_records: float, factors: np.ndarray
) -> np.ndarray:
    """How much larger the total error is than that of sampling: √(1 + σ²/sampling) − 1.

    0.03 is 3 %; ∞ where nothing is sampled.
    """
    sampling = sampling_variances(counts, n_records, factors)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(1 + np.where(sampling > 0, standard_errors**2 / sampling, np.inf)) - 1


def describe_added(low: float, median: float, high: float) -> str:
    """ "Noise adds 3 % to the sampling error (1 % to 5 %)." of shares that may be infinite."""

    def share(value: float) -> str:
        return f"{rounded(100 * value, 2)} %" if np.isfinite(value) else "without bound"

    between = f" ({share(low)} to {share(high)})" if share(low) != share(high) else ""
    return f"Noise adds {share(median)} to the sampling error{between}"


def _effect(value: Any) -> float:
    effect = _number(value)
    if effect is None or not _LEAST_EFFECT <= effect <= _MOST_EFFECT:
        raise WorkloadError(
            f"A design effect must be from {_LEAST_EFFECT:g} to {_MOST_EFFECT:,g} (1 is a simple "
            f"random sample), got {shown(value)}."
        )
    return effect


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None  # NaN is not below it
