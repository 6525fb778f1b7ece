"""Weights for smooth tables on the command line."""

from typing import TYPE_CHECKING, Annotated

import typer

from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.cli.options import MinimumBudgetFor
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.privacy.budget import Budget
    from rpexplore.workload.smooth_weights import SmoothWeights

SmoothWeightsFlag = Annotated[
    bool,
    typer.Option(
        "--smooth-weights",
        help="Weights for a release whose tables are to be smoothed, by the "
        "budget and the expected counts (--expected-count or --expected). Tables of 1 and 2 "
        "attributes within the others are added; --weight goes on top.",
    ),
]


def smooth_for(
    is_wanted: bool,
    minimum_budget: "MinimumBudgetFor | None",
    budget: "Budget",
    expected: "tuple[ExpectedCounts, float] | None",
    loss: str | None,
    weighting: str | None,
) -> "SmoothWeights | None":
    """The weights, if they are wanted; other options that do not go with them are refused."""
    from rpexplore.scenarios.smooth_planning import smooth_weights_for

    if not is_wanted:
        return None
    if expected is None:
        raise WorkloadError(
            "--smooth-weights goes with --expected-count N or --expected FILE; give one of them."
        )
    if minimum_budget is not None:
        raise WorkloadError(
            "--smooth-weights depends on the budget, which --minimum-budget has yet to find; give "
            "a budget instead."
        )
    if loss not in (None, "sum") or weighting not in (None, "equal"):
        raise WorkloadError(
            "--smooth-weights is made for the average error with equal weight per table; leave "
            "--loss and --weighting out."
        )
    return smooth_weights_for(budget, expected[0])
