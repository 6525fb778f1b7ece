"""Adaptive plans on the command line."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from rpexplore.cli.commands import Option
from rpexplore.cli.console import text_table
from rpexplore.common.formatting import describe_share
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.common.concurrency import Progress
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
    from rpexplore.postprocessing.rehearsal.adaptive_rehearsal import AdaptiveRehearsal

AdaptiveFlag = Annotated[
    bool,
    Option(
        "--adaptive",
        help="A plan whose release selects, in rounds, what it measures more accurately: biased "
        "estimates, and nothing is promised of their accuracy beforehand. Needs --expected-count "
        "or --expected, by whose total the budget is divided; says when to choose it.",
    ),
]


def refuse_beside_adaptive(
    wanted: "tuple[ExpectedCounts, float] | None", options: Mapping[str, Any]
) -> None:
    """Raise `WorkloadError` for options that do not go with --adaptive, or are missing.

    options: their names, and what was given; what counts as false was not
    """
    given = [name for name, value in options.items() if value]
    if given:
        raise WorkloadError(
            f"--adaptive divides the budget by a rule of its own and promises no accuracy, so "
            f"{given[0]} does not go with it; leave one of them out."
        )
    if wanted is None:
        raise WorkloadError(
            "--adaptive goes with --expected-count N or --expected FILE; give one of them."
        )


def rehearsed_adaptively(
    plan: "AdaptivePlan", expected: "ExpectedCounts", on_progress: "Progress"
) -> "AdaptiveRehearsal":
    """One made-up release of an adaptive plan, beside the plan that is made to be smoothed."""
    from rpexplore.analysis.adaptive import smooth_alternative
    from rpexplore.postprocessing.rehearsal.adaptive_rehearsal import rehearse_adaptive

    return rehearse_adaptive(plan, smooth_alternative(plan), expected, on_progress=on_progress)


def adaptive_rehearsal(
    rehearsal: "AdaptiveRehearsal", record_noun: str
) -> tuple[dict[str, Any], str]:
    """What a rehearsal found: facts, and text."""
    frame = rehearsal.frame
    columns = {
        "attributes": [f"{order}" for order in frame["order"]],
        "tables": [f"{count:,}" for count in frame["tables"]],
        "adaptive": list(map(describe_share, frame["adaptive"])),
        "smooth, of a fixed plan": list(map(describe_share, frame["fixed"])),
    }
    facts = {"records": rehearsal.n_records, "errors": frame.to_dict("records")}
    return facts, f"{text_table(columns)}\n\n{rehearsal.describe(record_noun)}"
