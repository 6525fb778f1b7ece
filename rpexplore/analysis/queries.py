"""Query plans: each query against its target, the budget each cell uses, and plainer methods.

A record is in one cell, and what it costs is the privacy cost of its own cell: the plan's profile
times the largest. Where that is below the largest, more may be measured about the cell while no
record's cost rises above what the plan costs anyway (the refined privacy ordering of FFU).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import Headline
from rpexplore.analysis.populations import Populations
from rpexplore.analysis.ranges import Range
from rpexplore.analysis.targets_met import describe_now, describe_outcome, describe_targets_met
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import describe_share, joined, plural, rounded
from rpexplore.domain.expected_counts import checked_cv_limit
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.readings import coefficients_of_variation
from rpexplore.errors import PlanError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import QueryOptimum
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.planning.solvers.queries import cost_bound, decoding, fitness_for_use
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.query_list import MAX_CELLS, QueryList
from rpexplore.workload.targets import MET_FACTOR, STANDARD_ERROR

_MOST_CONDITIONS = 1000  # that are made for queries given by coefficients; each takes a moment
_MOST_EXPECTED = 500_000  # cells that are counted in each population: 100 MB
_CELLS_AT_ONCE = 1_024  # that are compared with what is measured
_KNOWN = 1e-7  # what the answers leave open of a cell's count, relative: less is rounding

OPTIMUM = "optimal plan"
_TITLES = {
    OPTIMUM: "this plan",
    "input perturbation": "noise in every cell",
    "hierarchy": "a hierarchy of subtotals",
    "sum of variances": "the smallest sum of variances",
}


# ---- outcomes


def targets_met(plan: QueryPlan, stated: StatedQueries) -> tuple[int, str]:
    """How many targets are met, and the common factor between what is wanted and what is given.

    The plan has the smallest such factor that its budget allows, so one number says how far off
    the list is as a whole.
    """
    ratios = plan.standard_errors / plan.targets
    met = int(np.count_nonzero(plan.standard_errors <= plan.targets * MET_FACTOR))
    text = describe_targets_met(met, len(stated))
    furthest = int(np.argmax(ratios))
    factor, target = float(ratios[furthest]), stated.targets[furthest]
    if met < len(stated):
        now = describe_now(target, float(plan.standard_errors[furthest]))
        text += (
            f" Furthest off is {stated.queries.names[furthest]}: {now} for a target of "
            f"{target.description}. Meeting all takes {rounded(factor**2, 3, 'up')} times the "
            f"budget, or targets {rounded(factor, 3, 'up')} times as wide."
        )
    elif factor < 0.995:
        spare = rounded(1 / factor, 3, "down")
        text += f" With this budget every target could be {spare} times as narrow."
    return met, text


def of_queries(plan: QueryPlan, stated: StatedQueries) -> pd.DataFrame:
    """One row a query, in the order of the list.

    query, condition ("" where there is none), wanted (the target as typed), standard_error,
    margin_95, outcome ("met: ±38", "short by 12"), ratio (of the standard error to the wanted
    one) and share (of the smallest budget for all targets).
    """
    conditions = stated.conditions
    if len(stated) <= _MOST_CONDITIONS:
        conditions = stated.all_conditions
    frame = plan.accuracy()
    errors = frame["standard_error"]
    return pd.DataFrame(
        {
            "query": frame["item"],
            "condition": [condition or "" for condition in conditions],
            "wanted": [target.text for target in stated.targets],
            "standard_error": errors,
            "margin_95": frame["margin_95"],
            "outcome": list(map(describe_outcome, stated.targets, errors)),
            "ratio": errors / frame["target"],
            "share": frame["shadow_price"],
        }
    )


def with_targets_as_typed(answers: pd.DataFrame, stated: StatedQueries | None) -> pd.DataFrame:
    """Released own counts with `wanted` in place of `target`: "±20 at 95 %", or "σ = 10.2".

    A release keeps standard errors alone: a count is matched by its name and that number.

    stated: a list whose targets are known as they were typed; None: there is none
    """
    known = {} if stated is None else dict(zip(stated.queries.names, stated.targets, strict=True))
    wanted = []
    for name, error in zip(answers["name"], answers["target"], strict=True):
        target = known.get(name)
        wanted.append(f"σ = {rounded(error, 3)}")
        if target is not None and target.standard_error == error and target.unit != STANDARD_ERROR:
            wanted[-1] = target.text
    place = answers.columns.tolist().index("target")
    table = answers.drop(columns="target")
    table.insert(place, "wanted", wanted)
    return table


def query_headline(plan: QueryPlan) -> Headline:
    """The accuracy of a plan in a few numbers."""
    errors = plan.standard_errors
    furthest = int(np.argmax(errors))
    return Headline(
        median_error=float(np.median(errors)),
        largest_error=float(errors[furthest]),
        least_accurate_table=plan.queries.names[furthest],
        cells_differ=False,
        is_one=len(errors) == 1,
        is_of_counts=True,
    )


def drawn_answers(queries: QueryList, public: PublicTables) -> np.ndarray | None:
    """What each query counts in each population, float64[n_populations, n_queries].

    None for too many cells, where attributes are not those that the public tables know, and where
    amounts are added up, of which they know nothing.
    """
    domain, known = queries.domain, public.domain.with_levels
    if domain.amounts:
        return None
    fits = all(name in known and known[name] == domain[name] for name in domain.names)
    if not fits or domain.n_cells > _MOST_EXPECTED:
        return None
    table = tuple(known.position(name) for name in domain.names)
    cells = None if queries.atoms is None else queries.atoms.of_cells()
    matrix, answers = queries.coefficients, []
    populations = Populations.of(public, [table])
    for number, population in enumerate(populations.drawn()):
        n_records = populations.n_records[number]
        certain = population.public_shares(table)
        shares = population.shares(table).ravel() if certain is None else certain
        if cells is not None:
            shares = np.bincount(cells, shares, queries.n_cells)
        means = matrix @ shares
        spreads = np.sqrt(np.maximum(matrix**2 @ shares - means**2, 0) / n_records)
        if certain is None:
            means = means + spreads * SeededNumbers(b"answers %d" % number).normals(len(means))
        answers.append(n_records * means)
    return np.array(answers)


@dataclass(frozen=True)
class CountUsefulness:
    """How many queries of a plan are accurate enough to publish, by what is public.

    publishable: of the queries, over populations
    """

    publishable: Range
    queries: int
    cv_limit: float
    rests_on: str

    @classmethod
    def of(cls, plan: QueryPlan, public: PublicTables, cv_limit: float) -> "CountUsefulness | str":
        """Of a plan; or why it is not known, in a sentence."""
        answers = drawn_answers(plan.queries, public)
        if plan.domain.amounts:
            return "Not known, as the own counts add up amounts, which expected counts do not tell."
        if answers is None:
            return "Not known, as the expected counts do not fit the own counts."
        return cls.of_answers(plan, answers, public, cv_limit)

    @classmethod
    def of_answers(
        cls, plan: QueryPlan, answers: np.ndarray, public: PublicTables, cv_limit: float
    ) -> "CountUsefulness":
        """The same by what `drawn_answers` has."""
        ratios = coefficients_of_variation(plan.standard_errors, np.abs(answers))
        n_publishable = np.count_nonzero(ratios <= checked_cv_limit(cv_limit), axis=1)
        return cls(Range.of(n_publishable), len(plan.queries), cv_limit, public.text)

    @property
    def count_text(self) -> str:
        """ "2 (1 to 3)"."""
        return self.publishable.text(lambda count: f"{count:,.0f}")

    def describe(self) -> str:
        """How many are publishable, in a sentence."""
        verb = "is" if self.count_text == "1" else "are"
        return (
            f"{self.count_text} of {plural(self.queries, 'own count')} {verb} publishable, with a "
            f"coefficient of variation of at most {100 * self.cv_limit:g} %."
        )

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "rests_on": self.rests_on,
            "cv_limit": self.cv_limit,
            "query_count": self.queries,
            "publishable_count": self.publishable._asdict(),
        }


def with_usefulness(frame: pd.DataFrame, answers: np.ndarray | None) -> pd.DataFrame:
    """`of_queries`, the missed targets marked and first, the furthest off (by per cents) on top.

    With further columns, where it is known what each query may count: expected and coefficient (of
    variation), as text with their ranges. answers: of `drawn_answers`
    """
    missed = frame["ratio"].to_numpy() > MET_FACTOR
    marks = np.where(missed, "missed: ", "")
    frame = frame.assign(outcome=marks + frame["outcome"].to_numpy(dtype=object))
    if answers is not None:
        counts = [Range.of(of_query) for of_query in np.abs(answers).T]
        ratios = coefficients_of_variation(
            frame["standard_error"].to_numpy()[:, None], np.array(counts)[:, ::-1]
        )
        frame = frame.assign(
            expected=[Range.of(of_query).text(_count) for of_query in answers.T],
            coefficient=[Range(*of_query).text(_coefficient) for of_query in ratios.tolist()],
        )
    order = np.argsort(np.where(missed, -np.round(frame["ratio"], 2), 0.0), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def _count(value: float) -> str:
    return rounded(value, 3)


def _coefficient(value: float) -> str:
    return f"{rounded(100 * value, 2)} %" if np.isfinite(value) else "none"


# ---- the privacy profile


def profile_of_cells(plan: QueryPlan) -> pd.DataFrame:
    """One row a cell, in the order of the cells: cell, share (of the budget in use) and spare."""
    shares, spare = plan.profile, plan.spare
    return pd.DataFrame({"cell": plan.queries.cell_labels, "share": shares, "spare": spare})


def describe_profile(plan: QueryPlan, record_noun: str) -> str:
    """Whose protection is better than promised, and what that is good for."""
    profile = plan.profile
    spare = np.flatnonzero(plan.spare)
    noun = "cell" if plan.queries.atoms is None else "group of cells"
    if plan.budget.replaces:
        return (
            "What a record costs depends on what it is replaced by: the figures are for the "
            "dearest replacement, and leave nothing for further counts."
        )
    if not len(spare):
        return (
            f"The records of every {noun} use the whole budget: there is nothing left over for "
            "further counts at no cost."
        )
    least = int(spare[np.argmin(profile[spare])])
    text = (
        f"Records in {len(spare):,} of {plan.queries.cells_text} use less of the budget than "
        f"others and are better protected than promised; least in "
        f"{plan.queries.cell_labels[least]}, with {describe_share(float(profile[least]))}."
    )
    if len(spare) == 1:
        return text
    error = float(1 / np.sqrt(np.min(_spare_cost(plan)[spare])))  # the least cost left decides
    return (
        f"{text} All of these {noun.partition(' ')[0]}s together could be counted at no further "
        f"cost with a standard error of {rounded(error, 3)} {record_noun}."
    )


def describe_free(plan: QueryPlan) -> str:
    """Which counts are free, and what that means, in a sentence."""
    count = len(plan.free_counts)
    named = plan.free_counts[0] if count == 1 else f"{count:,} own counts"
    verb = "takes" if count == 1 else "take"
    return (
        f"{named} {verb} only what the others leave of the budget: no record costs more for "
        f"{'it' if count == 1 else 'them'}, and the others are no less accurate."
    )


def spare_cells(plan: QueryPlan) -> pd.DataFrame:
    """One row a cell with unused budget: what counting it as well would give, at no cost.

    cell, profile (share of the budget in use), spare_cost (privacy cost of one record left),
    standard_error (of the extra count), present_standard_error (of the cell's count by the plan's
    answers, NaN where it does not follow from them) and combined_standard_error (of both). All
    these cells can be counted together: a record is in one of them only.
    """
    cells = np.flatnonzero(plan.spare)
    spare = _spare_cost(plan)[cells]
    matrix = plan.strategy.integers.astype(float)
    labels, present = plan.queries.cell_labels, np.full(len(cells), np.nan)
    with one_thread():
        # Of a piece of the cells at a time, which may be many.
        for start in range(0, len(cells), _CELLS_AT_ONCE):
            some = cells[start : start + _CELLS_AT_ONCE]
            own = np.zeros((len(some), plan.queries.n_cells))
            own[np.arange(len(some)), some] = 1
            decoded = plan.strategy.decoded(own)
            left_open = np.abs(decoded @ matrix - own).max(axis=1, initial=0.0) > _KNOWN
            variances = np.sum(decoded**2, axis=1) * float(plan.gamma_squared)
            present[start : start + len(some)] = np.where(left_open, np.nan, variances)
    left_open = np.isnan(present)
    precision = spare + np.where(left_open, 0.0, 1 / present)
    return pd.DataFrame(
        {
            "cell": [labels[cell] for cell in cells],
            "profile": plan.profile[cells],
            "spare_cost": spare,
            "standard_error": 1 / np.sqrt(spare),
            "present_standard_error": np.sqrt(present),
            "combined_standard_error": 1 / np.sqrt(precision),
        }
    )


def _spare_cost(plan: QueryPlan) -> np.ndarray:
    """Privacy cost that a record of each cell leaves of the plan's, float64[n_cells]."""
    cost = float(plan.exact_privacy_cost / plan.budget.records_factor)
    return (1 - plan.profile) * cost


# ---- baselines


def optimum_of(plan: QueryPlan) -> QueryOptimum:
    """The optimum that a plan was made from, without free counts."""
    if plan.budget.replaces:
        raise PlanError(
            "Own counts are compared with plainer mechanisms where neighbours add or remove a "
            "record; plan for such neighbours to compare."
        )
    strategy = plan.strategy.charged
    queries, prices = strategy.queries, plan.certificate.shadow_prices[plan.strategy.is_charged]
    return QueryOptimum(
        strategy=strategy,
        lower_bound=cost_bound(queries.coefficients, queries.targets, prices, plan.cell_weights),
        shadow_prices=prices,
        cell_weights=plan.cell_weights,
        objective=plan.objective,
        budget=None if plan.objective.is_homogeneous else plan.budget,
    )


def query_baselines(optimum: QueryOptimum, *, on_progress: Progress = no_progress) -> pd.DataFrame:
    """The cost of the same targets by plainer methods, one row a method, the optimal plan first.

    input perturbation   every cell that some query touches is counted, and the answers added up
    hierarchy            every node of a binary tree over these cells in their order (the last
                         attribute's values change fastest) is counted; answers by least squares
    sum of variances     the least sum of variances, each over its squared target

    All of them add independent noise of one size to what they measure, and are scaled until every
    query meets its target.

    Columns: baseline, measured (how many numbers), privacy_cost (of one record, at which all
    targets are met), largest_ratio and mean_ratio (of variance to squared target, at the optimal
    plan's cost) and saved (share of the baseline's privacy cost that the optimal plan does
    without). on_progress may raise.
    """
    queries = optimum.queries
    least_sum = fitness_for_use(
        queries.coefficients,
        queries.targets,
        1e-6,
        average=1.0,
        on_progress=lambda _, share: on_progress("Comparing with baselines", share),
    )
    rows = [(OPTIMUM, len(optimum.strategy.integers), optimum.needed_costs)]
    # Noise on each cell by itself: the variances add up.
    alone = np.sum(queries.coefficients**2, axis=1) / queries.targets**2
    rows.append(("input perturbation", int(np.count_nonzero(queries.counted_cells)), alone))
    matrices = [("sum of variances", least_sum.matrix)]
    if queries.n_cells <= MAX_CELLS:  # of many atoms, which are in no order, nobody would
        matrices.insert(0, ("hierarchy", _tree(queries)))
    for baseline, matrix in matrices:
        # Privacy cost at which each query meets its target, [n_queries].
        n_measured = len(matrix)
        largest = np.max(np.sum(matrix**2, axis=0))
        if len(matrix) > np.count_nonzero(queries.counted_cells):
            # A triangle with the same least-squares answers.
            triangle = np.linalg.qr(matrix[:, queries.counted_cells], mode="r")
            matrix = np.zeros((len(triangle), queries.n_cells))
            matrix[:, queries.counted_cells] = triangle
        decoded = decoding(matrix, queries.coefficients)
        costs = np.sum(decoded**2, axis=1) / queries.targets**2 * largest
        rows.append((baseline, n_measured, costs))
    baselines, measured, needed = zip(*rows, strict=True)
    costs = np.array([np.max(of_queries) for of_queries in needed])
    means = np.array([np.mean(of_queries) for of_queries in needed])
    return pd.DataFrame(
        {
            "baseline": baselines,
            "measured": measured,
            "privacy_cost": costs,
            "largest_ratio": costs / optimum.cost,
            "mean_ratio": means / optimum.cost,
            "saved": 1 - optimum.cost / costs,
        }
    )


def _tree(queries: QueryList) -> np.ndarray:
    """A row for each node of a binary tree over the touched cells, float64[n_nodes, n_cells]."""
    rows, nodes = [], [np.flatnonzero(queries.counted_cells)]
    while nodes:
        node = nodes.pop()
        rows.append(np.isin(np.arange(queries.n_cells), node))
        if len(node) > 1:
            half = (len(node) + 1) // 2
            nodes += [node[:half], node[half:]]
    return np.array(rows, dtype=float)


def budgets_needed(baselines: pd.DataFrame, reference_budget: Budget) -> pd.DataFrame:
    """The rows of `query_baselines`, the cheapest first, with title and rho.

    rho: the budget at which all targets are met, for the privacy unit of `reference_budget`
    """
    costs = baselines["privacy_cost"].to_numpy()
    needed = baselines.assign(
        title=[_TITLES[baseline] for baseline in baselines["baseline"]],
        rho=rho_of_unit(costs, reference_budget.max_records_per_person),
    )
    # Stable: a baseline that happens to be as good as the plan stays behind it.
    return needed.sort_values(by="rho", kind="stable", ignore_index=True)


def describe_budgets(needed: pd.DataFrame) -> str:
    """How much more budget each baseline takes, in a sentence."""
    rows = {row["baseline"]: row for row in needed.to_dict("records")}
    own = rho_text(rows.pop(OPTIMUM)["rho"], 3)
    baselines = joined([_times_text(row) for row in reversed(rows.values())])
    return f"To meet all targets this plan needs {own}; {baselines}."


def _times_text(row: dict) -> str:
    times = rounded(row["largest_ratio"], 3)
    return f"{row['title']} needs {'as much' if times == '1' else f'{times} times as much'}"
