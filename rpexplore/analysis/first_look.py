"""A first look: one table of an example, and which of its cells a budget makes good enough."""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from rpexplore.common.text import describe_share
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.examples import EXAMPLES, Example

LIMIT = 0.2  # of the coefficient of variation of cells that are good enough
_KEY, _TABLE = "hospital-stays", ("age_group", "diagnosis")


@dataclass(frozen=True, eq=False)
class FirstLook:
    """The table at a budget, under the example's plan for all its tables.

    down, across  what the rows and columns are called
    counts        public counts of the year before, float64[rows, columns]
    cv            standard error of the noise over count, float64[rows, columns]
    sentence      what a reader sees
    """

    down: tuple[str, ...]
    across: tuple[str, ...]
    counts: np.ndarray
    cv: np.ndarray
    sentence: str


@cache
def _example() -> Example:
    return next(example for example in EXAMPLES if example.key == _KEY)


@lru_cache(64)  # one for each step of a slider
def first_look(epsilon: float) -> FirstLook:
    """What an ε above 0 makes of the table, at the δ of the example."""
    scenario = _example().project().current
    of_example = scenario.budget
    budget = Budget(
        epsilon=epsilon,
        delta=of_example.stated_delta,
        max_records_per_person=of_example.max_records_per_person,
    )
    plan = scenario.replaced(budget=budget).table_plan()
    table = plan.workload.position(_TABLE)
    counts = _example().expected.counts_of([plan.domain[name] for name in _TABLE])
    with np.errstate(divide="ignore"):
        cv = plan.standard_errors[table] / counts
    is_good = cv <= LIMIT
    noun = _example().record_noun
    sentence = (
        f"At ε = {epsilon:g}, {describe_share(counts[is_good].sum() / counts.sum())} of the {noun} "
        f"are in cells that are good enough to publish: {is_good.sum():,} of these "
        f"{cv.size:,} cells. The {noun} are invented, here by age and diagnosis; the plan of this "
        f"example has {len(plan.workload):,} tables."
    )
    down, across = (plan.domain[name].labels() for name in _TABLE)
    return FirstLook(tuple(down), tuple(across), counts, cv, sentence)
