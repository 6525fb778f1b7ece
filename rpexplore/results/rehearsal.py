"""How near smooth and adaptive tables would come to the truth, tried on made-up records."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import describe_count, describe_share, plural
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices, Domain, subsets
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation.nonnegative import nonnegative
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.standard_errors import normal_noise
from rpexplore.estimation.table_map import ContributionArrays, MeasuredResiduals
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.mixed_weights import FEWEST_OF_THREE, loses_less_at_worst
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.adaptive_rounds import (
    MeasuredSoFar,
    downward_closed,
    measure_rounds,
    read_outcomes,
    tables_of,
)
from rpexplore.releases.measurement import check_countable, exact_residual, measure_residual
from rpexplore.releases.rehearsal import whole_counts
from rpexplore.results.duration import search_seconds
from rpexplore.results.unbiased import refuse_open_values
from rpexplore.workload.workload import Workload

# ---- How near smooth tables would come to the truth by a plan, beside nonnegative and unbiased
# ones.
#
# Made-up records are measured as a release measures records: the same residuals, with noise of the
# same variance. No record is read, no ledger written, and nothing of it is to be published.
#
# The noise follows from the residual: the same normal numbers in every plan, times its σ (common
# random numbers). So plans differ by what they are, not by chance.


MOST_RECORDS, MOST_CELLS = 2_000_000, 20_000_000
# Of the nonnegative tables: seconds that they may take, and a gap that is enough for a rehearsal.
_MOST_SECONDS, _GAP = 30.0, 0.01


def rehearse_smooth_tables(
    plan: Plan | PartPlan, expected: ExpectedCounts, *, on_progress: Progress = no_progress
) -> SmoothRehearsal:
    """The errors of unbiased, nonnegative and smooth tables of a plan, on made-up records.

    The records are the same every time, and so is the noise but for its size: the same plan has
    the same figures.

    Args:
        expected: Public counts, of which the made-up records have the total and the margin.

    Raises:
        PlanError: If the plan has no tables.
        WorkloadError: If the expected counts do not fit the plan's codebook.
        ReleaseError: If there are too many records or cells to be rehearsed.
    """
    if not isinstance(expected, ExpectedCounts):
        raise WorkloadError(
            "What is expected must be ExpectedCounts, such as ExpectedCounts.of_total(50000), got "
            f"{type(expected).__name__}."
        )
    tables = TablePlan.part_of(plan)
    return _rehearsed(tables, expected, _tables(tables), on_progress)


def describe_smooth_change(
    before: TablePlan,
    after: TablePlan,
    expected: ExpectedCounts,
    record_noun: str,
    *,
    on_progress: Progress = no_progress,
) -> str:
    """How much nearer the smooth tables of one plan come than those of another, in a sentence.

    Of the tables of the first, all of which the second has. Raises as `rehearse_smooth_tables`.
    """
    tables, frames, n_records = _tables(before), [], 0
    present = "smooth tables" if tables == _tables(after) else "the present smooth tables"
    for plan, start in ((before, 0.0), (after, 0.5)):
        of_plan = part_of_progress(on_progress, start, start + 0.5)
        rehearsal = _rehearsed(plan, expected, tables, of_plan, with_nonnegative=False)
        n_records = rehearsal.n_records
        frames.append(rehearsal.frame.set_index("order")["smooth"])
    parts = []
    for order, shares in sorted(pd.concat(frames, axis=1).iterrows(), reverse=True):
        share, later = map(describe_share, shares.tolist())
        parts.append(f"from {share} to {later} in tables of {plural(int(str(order)), 'attribute')}")
    return (
        f"Simulated on made-up {record_noun} ({n_records:,}): the errors of {present} go "
        f"{', '.join(parts)} (of all cells, {WITHOUT_SIGNS}, as a share of the {record_noun})."
    )


def _rehearsed(
    plan: TablePlan,
    expected: ExpectedCounts,
    tables: Sequence[AttributeIndices],
    on_progress: Progress,
    *,
    with_nonnegative: bool = True,
) -> SmoothRehearsal:
    """tables: those whose errors are looked at."""
    closure, sizes = plan.closure, plan.workload.domain.sizes
    if closure.trees:
        raise ReleaseError(
            "Tables with an attribute at several levels cannot be simulated, as smooth tables are "
            "made of tables at one level of each attribute; simulate a plan of one of its levels."
        )
    refuse_open_values(plan.workload.domain, plan.workload.open_attributes)
    cells = float(np.sum(plan.workload.counted_cells))
    if expected.total > MOST_RECORDS or cells > MOST_CELLS:
        raise ReleaseError(
            f"At most {MOST_RECORDS:,} records and {MOST_CELLS:,} cells of all tables can be "
            f"simulated, got {describe_count(int(expected.total))} and "
            f"{describe_count(int(cells))}; simulate fewer tables, or that number of records, of "
            "which errors are larger shares."
        )
    on_progress("Making up records", 0.0)
    used = [index for index in plan.workload.used if index not in plan.workload.amounts]
    domain, tables_of_plan = plan.workload.domain, _tables(plan)
    columns = domain.columns
    codes, n_records = made_up_records(domain.of_records, expected, np.unique(columns[used]))
    # Levels have the codes of their groups, and are measured from those of single values.
    codes = dict(codes) | {
        index: np.array(domain.attributes[index].index_of_values).astype(
            np.min_scalar_type(int(sizes[index]) - 1)
        )[codes[int(columns[index])]]
        for index in used
        if columns[index] != index
    }
    of_columns = [tuple(sorted(columns[list(table)].tolist())) for table in tables_of_plan]
    counts = counts_of(
        [(codes, n_records, 1.0)],
        sorted({*tables_of_plan, *of_columns}),
        sizes.tolist(),
        on_progress=part_of_progress(on_progress, 0.0, 0.05),
    )
    check_countable(plan, counts)
    # Sums of amounts are not made up, nor what they alone have.
    counted = {subset for table in tables_of_plan for subset in subsets(table)}
    residuals = [each for each in range(len(closure)) if closure.attributes(each) in counted]
    measuring = part_of_progress(on_progress, 0.05, 0.3)
    unbiased = dict(noisy_contributions(plan, counts, measuring, residuals))
    variances = {
        subset: float(variance)
        for residual, variance in enumerate(plan.sigma_squared.floats)
        if (subset := closure.attributes(residual)) in unbiased
    }
    zeros = plan.domain.structural_zeros
    measured = MeasuredResiduals(unbiased, variances, sizes, closure.strategies, zeros)
    readings: dict[str, ContributionArrays | None] = {"unbiased": unbiased, "nonnegative": None}
    shapes = [measured.shape(table) for table in measured.map.tables]
    if with_nonnegative and search_seconds(shapes) <= _MOST_SECONDS:
        readings["nonnegative"] = nonnegative(
            unbiased,
            sizes,
            closure.strategies,
            zeros=zeros,
            gap=_GAP,
            on_progress=part_of_progress(on_progress, 0.3, 0.6),
        ).contributions
    fit = smooth_residuals(measured, on_progress=part_of_progress(on_progress, 0.6, 0.95))
    readings["smooth"] = fit.contributions
    on_progress("Comparing with the made-up records", 0.95)
    frame = _errors(measured, counts, tables, readings)
    on_progress("Finished", 1.0)
    return SmoothRehearsal(plan.sha256, frame, n_records, expected)


def _tables(plan: TablePlan) -> list[AttributeIndices]:
    """The attributes of each table of counts that have several values, each set once."""
    if np.all(plan.workload.has_amounts):
        raise ReleaseError(
            f"All tables are {plan.workload.sums_noun}, of which nothing is made up; simulate a "
            "plan that has tables of counts."
        )
    several = {index for index, size in enumerate(plan.closure.sizes.tolist()) if size > 1}
    workload = plan.workload
    counted = np.flatnonzero(~workload.has_amounts).tolist()
    tables = map(workload.attribute_indices, counted)
    distinct = dict.fromkeys(tuple(i for i in table if i in several) for table in tables)
    return sorted(distinct, key=lambda table: (len(table), table))


def noisy_contributions(
    plan: TablePlan,
    counts: Counts,
    on_progress: Progress,
    residuals: Sequence[int],
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    """The contribution of some residuals, each with normal noise of the plan's variance."""
    closure = plan.closure
    names, variances = plan.workload.domain.names, plan.sigma_squared.floats
    for done, residual in enumerate(residuals):
        on_progress("Measuring made-up records", done / len(residuals))
        subset = closure.attributes(residual)
        exact = exact_residual(plan, residual, counts)
        values = contribution(exact, subset, closure.strategies)
        seed = repr([names[index] for index in subset]).encode()
        noise = normal_noise(
            SeededNumbers(hashlib.sha256(seed).digest()),
            subset,
            values.shape,
            float(variances[residual]),
            closure.strategies,
        )
        yield subset, values + noise


def _errors(
    measured: MeasuredResiduals,
    counts: Counts,
    tables: Sequence[AttributeIndices],
    readings: dict[str, ContributionArrays | None],
) -> pd.DataFrame:
    """The frame of a rehearsal."""
    rows = []
    for table in tables:
        truth = counts.counts(table)
        row = {"order": len(table), "tables": 1} | dict.fromkeys(readings, np.nan)
        for name, contributions in readings.items():
            if contributions is not None:
                errors = measured.map.table(table, contributions) - truth
                row[name] = float(np.sum(np.abs(errors))) / max(counts.n_records, 1)
        rows.append(row)
    rows = [row for row in rows if row["order"]] or rows
    how = {"tables": "sum"} | dict.fromkeys(readings, "mean")
    return pd.DataFrame(rows).groupby("order", as_index=False).agg(how)


# ---- How near an adaptive release would come to the truth, beside smooth tables of a fixed plan.
#
# Made-up records go through what a run does with records: the same measurements, selections and
# noise, exact, from the operating system. So no two rehearsals are alike, as no two releases are.
# No record is read, no ledger written, and nothing of it is to be published.


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRehearsal:
    """The errors of one made-up release of each kind.

    frame      one row a number of attributes in each of `POPULATIONS` (the first alone if no
               table has three attributes): population, order, tables, adaptive and fixed: the
               errors of all cells of a table, added up without their signs, over the number of
               records, mean over tables
    n_records  that were made up
    """

    frame: pd.DataFrame
    n_records: int

    def describe(self, record_noun: str) -> str:
        """The errors of the largest tables, and which plan loses less, in sentences."""
        order = int(self.frame["order"].to_numpy().max())
        largest = self.frame[self.frame["order"] == order]
        of_both = " and ".join(
            f"{describe_share(adaptive)} beside {describe_share(fixed)} where {population}"
            for population, adaptive, fixed in zip(
                largest["population"], largest["adaptive"], largest["fixed"], strict=True
            )
        )
        verdict = (
            "By the larger loss of the two the adaptive plan is better."
            if loses_less_at_worst(largest["adaptive"].tolist(), largest["fixed"].tolist())
            else "By the larger loss of the two the adaptive plan is not clearly better, and the "
            "fixed one also has unbiased tables with exact intervals."
        )
        return (
            f"Simulated once on made-up {record_noun} ({self.n_records:,}): a table of "
            f"{plural(order, 'attribute')} is off, released adaptively "
            f"beside a smooth table of a fixed plan with the same budget, by {of_both} (errors of "
            f"all its cells, {WITHOUT_SIGNS}, as a share of the {record_noun}). {verdict} Another "
            "simulation differs by chance; made-up records are simpler than real ones, whose "
            "errors may well be larger."
        )


def rehearse_adaptive(
    plan: AdaptivePlan,
    fixed: TablePlan,
    expected: ExpectedCounts,
    *,
    on_progress: Progress = no_progress,
) -> AdaptiveRehearsal:
    """The errors of an adaptive release, and of smooth tables of a fixed plan, on made-up records.

    In both `POPULATIONS`, as an adaptive plan gains where pairs of attributes do not tell all.

    Args:
        fixed: A plan that measures all tables of the adaptive one, for the same budget.
        expected: Public counts, of which the made-up records have the total and the margin.

    Raises:
        WorkloadError: If the expected counts do not fit the plan's codebook.
        ReleaseError: If there are too many records or cells to be rehearsed.
    """
    cells = float(np.sum(plan.workload.cells))
    if expected.total > MOST_RECORDS or cells > MOST_CELLS:
        raise ReleaseError(
            f"At most {MOST_RECORDS:,} records and {MOST_CELLS:,} cells of all tables can be "
            "simulated; simulate fewer tables, or that number of records."
        )
    on_progress("Making up records", 0.0)
    tables = tables_of(plan)
    populations = POPULATIONS if max(map(len, tables)) >= FEWEST_OF_THREE else POPULATIONS[:1]
    rows, n_records = [], 0
    for number, population in enumerate(populations):
        on_population = part_of_progress(
            on_progress, number / len(populations), (number + 1) / len(populations)
        )
        codes, n_records = population_records(population, plan.workload, expected)
        counts = counts_of(
            [(codes, n_records, 1.0)],
            tables,
            plan.domain.sizes.tolist(),
            on_progress=part_of_progress(on_population, 0.0, 0.05),
        )
        readings = {
            "adaptive": adaptive_fit(plan, counts, part_of_progress(on_population, 0.05, 0.8)),
            "fixed": _fixed_fit(fixed, counts, part_of_progress(on_population, 0.8, 1.0)),
        }
        rows += [
            {
                "population": population,
                "order": len(table),
                "tables": 1,
                **{name: _error(fit, table, counts) for name, fit in readings.items()},
            }
            for table in tables
            if table
        ]
    how = {"tables": "sum", "adaptive": "mean", "fixed": "mean"}
    on_progress("Finished", 1.0)
    by_population = pd.DataFrame(rows).groupby(["population", "order"], as_index=False, sort=False)
    return AdaptiveRehearsal(by_population.agg(how), n_records)


def adaptive_fit(
    plan: AdaptivePlan, counts: Counts, on_progress: Progress = no_progress
) -> SmoothTables:
    """The tables that a run of an adaptive plan estimates, of counts that are nobody's.

    Noise and selections are those of a run, but nothing is booked: not for real records.
    """
    drawn: list[np.ndarray] = []
    first = _adaptive_measured(plan.first, counts)
    measure_rounds(
        plan,
        counts,
        first,
        np.zeros(0, dtype=np.int64),
        lambda pieces: drawn.extend(np.ravel(piece) for piece in pieces),
        part_of_progress(on_progress, 0.0, 0.8),
    )
    outcomes = read_outcomes(plan, np.concatenate(drawn))
    family = downward_closed(tables_of(plan))
    on_fit = part_of_progress(on_progress, 0.8, 1.0)
    return MeasuredSoFar.of(plan, first, outcomes).fit(family, on_fit)


def _fixed_fit(plan: TablePlan, counts: Counts, on_progress: Progress) -> SmoothTables:
    """The smooth tables of a release by a fixed plan, of such counts."""
    closure = plan.closure
    family = [closure.attributes(residual) for residual in range(len(closure))]
    contributions = {
        subset: contribution(measured, subset, closure.strategies)
        for subset, measured in zip(family, _adaptive_measured(plan, counts), strict=True)
    }
    variances = dict(zip(family, plan.sigma_squared.floats.tolist(), strict=True))
    sizes = plan.domain.sizes
    zeros = plan.domain.structural_zeros
    residuals = MeasuredResiduals(contributions, variances, sizes, closure.strategies, zeros)
    return smooth_residuals(residuals, on_progress=on_progress)


def _adaptive_measured(plan: TablePlan, counts: Counts) -> list[np.ndarray]:
    return [measure_residual(plan, residual, counts) for residual in range(len(plan.closure))]


def _error(fit: SmoothTables, table: AttributeIndices, counts: Counts) -> float:
    distance = np.abs(fit.table(table) - counts.counts(table)).sum()
    return float(distance) / max(counts.n_records, 1)


# ---- Made-up records: the public counts that are known, and beyond these skew and dependence.
#
# Every record belongs to one of a few invented classes, and its attributes are independent given
# the class (a latent class model). Within a class the values of an attribute are unequally
# frequent, neighbouring values alike. How much so is an assumption, chosen such that smooth tables
# of made-up records are about as accurate as those of real ones (`SKEW`, `DEPENDENCE`).


SKEW, DEPENDENCE = 1.5, 2.0
"""Standard deviations of logarithms of shares: between the values of an attribute, and between
classes. Of those tried, 0 to 2 and 0 to 3, the nearest to Adult and the sample household survey."""

_CLASSES = 6

POPULATIONS = ("pairs tell all", "three attributes depend jointly")
"""Of made-up records: with little dependence, as of most real pairs, and with much and sums."""

_LITTLE_DEPENDENCE = 0.7  # of the household survey, weights by pairs lose as much as in truth

_MOST_REPAIRS = 20  # rounds over all impossible combinations; what one repairs another may break

_PLANTED = 0.5  # share of the records in which an attribute is the sum of two others


def population_records(
    population: str, workload: Workload, expected: ExpectedCounts
) -> tuple[Codes, int]:
    """Those of one of `POPULATIONS`, as `made_up_records` has them."""
    domain, used = workload.domain, workload.used
    if population == POPULATIONS[0]:
        return made_up_records(domain, expected, used, dependence=_LITTLE_DEPENDENCE)
    codes, n_records = made_up_records(domain, expected, used)
    return _with_sums(codes, workload), n_records


def made_up_records(
    domain: Domain,
    expected: ExpectedCounts,
    attributes: Iterable[int],
    *,
    dependence: float = DEPENDENCE,
) -> tuple[Codes, int]:
    """Category indices of these attributes, and the number of records, which is as expected.

    The same expected counts always give the same records. None has a combination that the codebook
    states to be impossible, except where the expected counts have it, or no value was found that
    it leaves open. Raises `WorkloadError` if they do not fit the domain.
    """
    expected = expected.fitted(domain)
    public = {domain.position(name): axis for axis, name in enumerate(expected.attributes)}
    conditions = domain.structural_zeros.conditions
    named = {index for condition in conditions for index in condition}
    # Each has its own numbers, and all that conditions name are drawn, so that plans of other
    # attributes are rehearsed on the same records.
    numbers = {
        index: _numbers(expected, domain.names[index], int(domain.sizes[index]))
        for index in sorted({*attributes, *public, *named})
    }
    shares = {
        index: _class_shares(own, int(domain.sizes[index]), dependence)
        for index, own in numbers.items()
    }
    counts = whole_counts(expected.margin)
    n_records = int(counts.sum())
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    values = [indices.ravel() for indices in np.indices(counts.shape)]
    # The probability of each class in each public cell, by Bayes' rule.
    of_classes = _numbers(expected)
    evidence = np.tile(_normals(of_classes, _CLASSES), (counts.size, 1))
    for index, axis in public.items():
        evidence += np.log(shares[index][:, values[axis]].T)
    classes = _drawn(_normalised(evidence)[cells], of_classes.uniforms(n_records))
    codes = {index: values[axis][cells].astype(np.uint32) for index, axis in public.items()}
    for index, own in numbers.items():
        if index not in public:
            codes[index] = _drawn_by_class(shares[index], classes, own.uniforms(n_records))
    for _ in range(_MOST_REPAIRS):
        n_changed = 0
        for condition in conditions:
            within = np.flatnonzero(_holds(condition, codes))
            # The last attribute yields: a child's employment, and not the age.
            open_values = [
                index for index in condition if index not in public and not condition[index].all()
            ]
            if not within.size or not open_values:
                continue
            last = max(open_values)
            left = np.where(condition[last], 0.0, shares[last])
            left /= left.sum(axis=1, keepdims=True)
            uniforms = numbers[last].uniforms(within.size)
            codes[last][within] = _drawn_by_class(left, classes[within], uniforms)
            n_changed += within.size
        if not n_changed:
            break
    return codes, n_records


def _holds(condition: Mapping[int, np.ndarray], codes: Codes) -> np.ndarray:
    """Of which records all values are among those of the condition: bool[n_records]."""
    return np.logical_and.reduce([mask[codes[index]] for index, mask in condition.items()])


def _with_sums(codes: Codes, workload: Workload) -> Codes:
    """In half of the records, of disjoint triples the third attribute is the sum of the others."""
    codes, taken = dict(codes), set()
    for position in np.flatnonzero(workload.orders >= FEWEST_OF_THREE).tolist():
        first, second, third = workload.attribute_indices(position)[:FEWEST_OF_THREE]
        if taken.isdisjoint((first, second, third)):
            taken.update((first, second, third))
            sums = (codes[first] + codes[second]) % int(workload.domain.sizes[third])
            # Every other record: made-up records stand in the order of public counts alone.
            planted = np.arange(len(sums)) % round(1 / _PLANTED) == 0
            after = codes | {third: np.where(planted, sums, codes[third])}
            for condition in workload.domain.structural_zeros.conditions:
                if third in condition:
                    planted &= ~_holds(condition, after)
            codes[third] = np.where(planted, sums, codes[third]).astype(codes[third].dtype)
    return codes


def _numbers(expected: ExpectedCounts, *what: object) -> SeededNumbers:
    """Numbers that follow from the expected counts, other ones for each attribute."""
    text = repr((expected.to_json(), *what))
    return SeededNumbers(hashlib.sha256(text.encode()).digest())


def _class_shares(numbers: SeededNumbers, size: int, dependence: float) -> np.ndarray:
    """The share of each value in each class, float64[n_classes, size]."""
    skew = SKEW * _normals(numbers, size)
    apart = _normals(numbers, _CLASSES * size).reshape(_CLASSES, size) / 2
    walk = np.cumsum(_normals(numbers, _CLASSES * size).reshape(_CLASSES, size), axis=1)
    walk = (walk - walk.mean(axis=1, keepdims=True)) / np.sqrt(size)
    return _normalised(skew + dependence * (apart + walk))


def _normals(numbers: SeededNumbers, count: int) -> np.ndarray:
    """Standard normal numbers, float64[count]."""
    return ndtri(numbers.uniforms(count).astype(float) + 2.0**-25)  # never 0


def _normalised(logarithms: np.ndarray) -> np.ndarray:
    """Shares along the last axis, sum 1."""
    shares = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def _drawn(shares: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The category of each record, whose own shares are a row of `shares`."""
    return np.sum(np.cumsum(shares, axis=1)[:, :-1] <= uniforms[:, None], axis=1)


def _drawn_by_class(shares: np.ndarray, classes: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The value of each record, by the shares of its class: uint32[n_records]."""
    values = np.empty(len(classes), dtype=np.uint32)
    for number, of_class in enumerate(np.cumsum(shares, axis=1)[:, :-1]):
        members = classes == number
        values[members] = np.searchsorted(of_class, uniforms[members], side="right")
    return values
