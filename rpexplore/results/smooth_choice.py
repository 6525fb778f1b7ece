"""Weights for smooth tables that lose least whether or not three attributes depend jointly.

Weights of the rule (docs/mathematics.md §6.10) trust that pairs tell nearly all; weights by cell
trust nothing. Mixtures of both are tried on made-up records of two kinds, and the one is taken
whose loss is largest by the least (minimax).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import describe_share
from rpexplore.data.counting import Codes, counts_of
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.estimation.smooth_tables import smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.privacy.budget import Budget
from rpexplore.results.rehearsal import MOST_RECORDS, made_up_records, noisy_contributions
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload

SHARES = (1.0, 0.75, 0.5, 0.25)
"""Of the rule's weights in a mixture, by the losses that each alone has; the rest by cell."""

NOT_REHEARSED = 0.5
"""Of the rule's weights where nothing is rehearsed: near the minimax of trials."""

WORLDS = ("pairs tell all", "three depend jointly")
_MOST_ATTRIBUTES = 8  # that are rehearsed, for time
_MOST_CELLS = 1_000_000  # of their tables
_ABOUT_AS_GOOD = 1.03  # times the least of the largest losses
_PLANTED = 0.5  # share of the records in which an attribute is the sum of two others
_FEWEST_OF_THREE = 3


@dataclass(frozen=True, eq=False)
class SmoothChoice:
    """Weights for smooth tables, and what the rehearsals of all candidates found.

    weights  the chosen ones
    share    of the rule's weights in them
    frame    one row a candidate: share, and of each of `WORLDS` the mean error of the largest
             tables, added up over cells without signs, over the number of records; None where
             nothing was rehearsed
    """

    weights: SmoothWeights
    share: float
    frame: pd.DataFrame | None

    def to_facts(self) -> dict[str, Any]:
        """The share, and the rows of the frame, as plain values."""
        rows = [] if self.frame is None else self.frame.to_dict("records")
        return {"share_of_rule": self.share, "errors": rows}

    def describe(self) -> str:
        """The choice, and its errors beside the others', in sentences."""
        mixture = f"{describe_share(self.share)} by the rule and the rest by cell"
        if self.frame is None:
            if self.share == 1:
                return ""
            return (
                f"Weights for smooth tables: {mixture}, which was near the best in trials; nothing "
                "was rehearsed for these tables."
            )
        row = self.frame["share"].tolist().index(self.share)
        parts = [
            f"{describe_share(float(self.frame[world].to_numpy()[row]))} where {world} (best "
            f"{describe_share(float(self.frame[world].to_numpy().min()))})"
            for world in WORLDS
        ]
        return (
            f"Weights for smooth tables: {mixture}. Rehearsed on made-up records, a table of the "
            f"largest is off by {' and '.join(parts)}; of mixtures within 3 % of the one that "
            "loses least at worst, it is the nearest to the rule."
        )


def choose_smooth_weights(
    workload: Workload,
    budget: Budget,
    expected: ExpectedCounts,
    *,
    on_progress: Progress = no_progress,
) -> SmoothChoice:
    """The mixture of the rule's weights and weights by cell that loses least at worst.

    Each candidate is planned, measured with the same noise but for its size, and smoothed, for at
    most eight of the attributes, on made-up records without and with attributes that are sums of
    two others. Its loss in a world is its error over the best candidate's. The same arguments
    always give the same choice; no record is read and nothing is spent.

    Args:
        workload: The tables; those of one and two attributes within them are added.
        budget: That of their plan.
        expected: Public counts, of which made-up records have the total and the margin.

    Raises:
        WorkloadError: If a table has amounts, or the expected counts do not fit the codebook.
    """
    rule = SmoothWeights(float(budget.record_privacy_cost) / 2, expected.total)
    workload = rule.weighted(workload)
    if int(workload.orders.max()) < _FEWEST_OF_THREE:
        return SmoothChoice(rule, 1.0, None)
    rehearsed = _rehearsed_part(workload)
    if rehearsed is None or not 1 <= expected.total <= MOST_RECORDS:
        mixed = _mixtures(rule, workload, budget, (NOT_REHEARSED,))
        return SmoothChoice(mixed[NOT_REHEARSED], NOT_REHEARSED, None)
    rows = {share: {"share": share} for share in SHARES}
    candidates = _mixtures(rule, rehearsed, budget, SHARES)
    for number, world in enumerate(WORLDS):
        codes, n_records = made_up_records(rehearsed.domain, expected, rehearsed.used)
        if number:
            codes = _with_sums(codes, rehearsed)
        for position, share in enumerate(SHARES):
            done = (number * len(SHARES) + position) / (len(WORLDS) * len(SHARES))
            on_progress("Rehearsing weights", done)
            rows[share][world] = _error(rehearsed, candidates[share], budget, codes, n_records)
    frame = pd.DataFrame(rows.values())
    losses = frame[list(WORLDS)] / frame[list(WORLDS)].min()
    at_worst = losses.max(axis=1).to_numpy()
    # Of those about as good the nearest to the rule: pairs of real records tell more.
    share = SHARES[int(np.argmax(at_worst <= _ABOUT_AS_GOOD * at_worst.min()))]
    weights = _mixtures(rule, workload, budget, (share,))[share]
    on_progress("Finished", 1.0)
    return SmoothChoice(weights, share, frame)


def _mixtures(
    rule: SmoothWeights, workload: Workload, budget: Budget, shares: tuple[float, ...]
) -> Mapping[float, SmoothWeights]:
    """By share θ: weights θ w/L + (1 − θ) c/L_c, L and L_c the least losses by w and by cells c."""
    losses = []
    for weights in (rule.weights(workload), np.asarray(workload.counted_cells, dtype=float)):
        of_kind = replace(workload, weights=weights)
        losses.append(plan_tables(of_kind, loss=SumOfVariances(), budget=budget).loss_value)
    ratio = losses[0] / losses[1]
    return {
        share: replace(rule, by_cell=float(f"{(1 - share) / share * ratio:.3g}"))
        for share in shares
    }


def _rehearsed_part(workload: Workload) -> Workload | None:
    """The tables of at most eight attributes, all in single values; None if there are none."""
    if any(
        not workload.basis_of(table, index).is_identity
        for table in range(len(workload))
        for index in workload.attribute_indices(table)
    ):
        return None
    largest = workload.orders >= _FEWEST_OF_THREE
    used = np.unique(workload.members[largest])
    used = used[used >= 0]
    by_size = used[np.argsort(workload.domain.sizes[used], kind="stable")]
    # From the smallest to the largest, evenly.
    count = min(_MOST_ATTRIBUTES, len(by_size))
    kept = set(by_size[np.linspace(0, len(by_size) - 1, count).astype(int)].tolist())
    tables = [
        table
        for position, table in enumerate(workload.tables)
        if kept.issuperset(workload.attribute_indices(position))
    ]
    if not tables or max(map(len, tables)) < _FEWEST_OF_THREE:
        return None
    part = Workload.of(workload.domain, tables)
    return part if float(np.sum(part.counted_cells)) <= _MOST_CELLS else None


def _with_sums(codes: Codes, workload: Workload) -> Codes:
    """In half of the records, of disjoint triples the third attribute is the sum of the others."""
    codes, taken = dict(codes), set()
    for position in np.flatnonzero(workload.orders >= _FEWEST_OF_THREE).tolist():
        first, second, third = workload.attribute_indices(position)[:_FEWEST_OF_THREE]
        if taken.isdisjoint((first, second, third)):
            taken.update((first, second, third))
            sums = (codes[first] + codes[second]) % int(workload.domain.sizes[third])
            # Every other record: made-up records stand in the order of public counts alone.
            planted = np.arange(len(sums)) % round(1 / _PLANTED) == 0
            codes[third] = np.where(planted, sums, codes[third]).astype(codes[third].dtype)
    return codes


def _error(
    workload: Workload, weights: SmoothWeights, budget: Budget, codes: Codes, n_records: int
) -> float:
    """The mean L1 error of the largest smooth tables, a share of the records."""
    weighted = replace(workload, weights=weights.weights(workload))
    plan = plan_tables(weighted, loss=SumOfVariances(), budget=budget)
    tables: list[AttributeIndices] = [
        tuple(workload.attribute_indices(position))
        for position in np.flatnonzero(workload.orders == workload.orders.max()).tolist()
    ]
    sizes = workload.domain.sizes
    all_tables = [tuple(workload.attribute_indices(place)) for place in range(len(workload))]
    counts = counts_of(
        [(codes, n_records, 1.0)], all_tables, sizes.tolist(), on_progress=no_progress
    )
    contributions = dict(noisy_contributions(plan, counts, no_progress))
    variances = {
        plan.closure.attributes(residual): float(variance)
        for residual, variance in enumerate(plan.sigma_squared.floats)
    }
    fit = smooth_residuals(MeasuredResiduals(contributions, variances, sizes, {}))
    errors = [np.abs(fit.table(table) - counts.counts(table)).sum() for table in tables]
    return float(np.mean(errors)) / max(n_records, 1)
