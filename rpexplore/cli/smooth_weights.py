"""Weights for smooth tables on the command line."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from rpexplore.cli.commands import Option
from rpexplore.cli.console import progress
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.cli.options import MinimumBudgetFor
    from rpexplore.domain.domain import Domain
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.privacy.budget import Budget
    from rpexplore.workload.smooth_weights import SmoothWeights

SmoothWeightsFlag = Annotated[
    bool,
    Option(
        "--smooth-weights",
        help="Weights for a release whose tables are to be smoothed, by the "
        "budget and the expected counts (--expected-count or --expected). Tables of 1 and 2 "
        "attributes within the others are added; --weight goes on top.",
    ),
]


FromRelease = Annotated[
    Path | None,
    Option(
        "--from-release",
        metavar="FOLDER",
        help="Weights for smooth tables, and more for pairs of attributes that depend on each "
        "other in a first release (or combined ones), of these records: for a second release that "
        "is combined with it. Looks at its noisy figures only. In trials both came 3 to 6 % nearer "
        "to the truth than one plan at ε = 0.1, and 2 % nearer to 1 % farther at ε = 1.",
    ),
]


def smooth_for(
    is_wanted: bool,
    first_release: Path | None,
    domain: "Domain",
    minimum_budget: "MinimumBudgetFor | None",
    budget: "Budget",
    expected: "tuple[ExpectedCounts, float] | None",
    loss: str | None,
    weighting: str | None,
) -> "SmoothWeights | None":
    """The weights, if they are wanted; other options that do not go with them are refused."""
    if not is_wanted and first_release is None:
        return None
    option = "--smooth-weights" if first_release is None else "--from-release"
    if first_release is None and expected is None:
        raise WorkloadError(
            "--smooth-weights goes with --expected-count N or --expected FILE; give one of them."
        )
    if minimum_budget is not None:
        raise WorkloadError(
            f"{option} depends on the budget, which --minimum-budget has yet to find; give "
            "a budget instead."
        )
    if loss not in (None, "sum") or weighting not in (None, "equal"):
        raise WorkloadError(
            f"{option} is made for the average error with equal weight per table; leave "
            "--loss and --weighting out."
        )
    if first_release is None:
        from rpexplore.scenarios.smooth_planning import smooth_weights_for

        assert expected is not None
        return smooth_weights_for(budget, expected[0])
    from rpexplore.postprocessing.dependence import weights_from_release

    with progress("Reading the first release") as on_progress:
        return weights_from_release(first_release, domain, budget, on_progress=on_progress)


def next_steps(weights: "SmoothWeights | None", first_release: Path | None) -> str | None:
    """What a plan made from a first release is for, and what to do with it; None for others."""
    if weights is None or first_release is None:
        return None
    return (
        f"{weights.text}. No record was looked at, only noisy figures of that release.\n"
        "Release this plan on the same records (both budgets add up), then combine and smooth:\n"
        f"  rpexplore combine {quote(str(first_release))} SECOND --out both\n"
        "  rpexplore postprocess both --smooth --out smooth"
    )
