"""The verb that rehearses the smooth tables of a plan."""

from typing import TYPE_CHECKING

from rpexplore.cli import options
from rpexplore.cli.console import progress, say_result, text_table
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    from rpexplore.common.concurrency import Progress
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
    from rpexplore.planning.table_plan import TablePlan

# It imports what it needs itself, so that no other verb waits for it.


def rehearse(
    plan_file: options.PlanFile,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    record_noun: options.RecordNoun = "records",
    as_json: options.AsJson = False,
) -> None:
    """Simulate smooth tables of a plan on made-up records.

    A rehearsal before the run: how near unbiased, nonnegative and smooth tables would come, by
    number of attributes. Records are made up from expected counts and measured with the plan's
    noise; no real one is read, and nothing is spent. An adaptive plan is rehearsed beside smooth
    tables of a fixed plan of the same budget.
    """
    from rpexplore.cli.adaptive_plans import adaptive_rehearsal, rehearsed_adaptively
    from rpexplore.cli.facts import row_facts
    from rpexplore.cli.publishable import expected_from_options
    from rpexplore.common.formatting import describe_share
    from rpexplore.domain.readings import READINGS
    from rpexplore.planning.plan import load_plan

    with progress("Reading the plan") as on_progress:
        loaded = load_plan(plan_file)
        tables, rounds = loaded.part("tables"), loaded.part("rounds")
        if tables is None and rounds is not None:
            wanted = _needed(expected_from_options(loaded.domain, expected_count, expected, None))
            adaptive = rehearsed_adaptively(rounds, wanted, on_progress)
            say_result(as_json, *adaptive_rehearsal(adaptive, record_noun))
            return
        if tables is None:
            raise RpexploreError(
                f"{plan_file.name} is {loaded.kind_text}, and smooth tables are those of plans of "
                "tables; give one of `rpexplore plan`, or see with `rpexplore show` what this one "
                "promises."
            )
        wanted = expected_from_options(loaded.domain, expected_count, expected, None)
        rehearsal = rehearsed(tables, wanted, on_progress)
    frame = rehearsal.frame.dropna(axis="columns")
    shown = [reading for reading in READINGS if reading in frame]
    table = text_table(
        {
            "attributes": [f"{order}" for order in frame["order"]],
            "tables": [f"{count:,}" for count in frame["tables"]],
            **{name: [describe_share(share) for share in frame[name]] for name in shown},
        }
    )
    sentence = rehearsal.describe(record_noun)
    facts = {
        "records": rehearsal.n_records,
        "expected_counts": rehearsal.expected.text,
        "errors": row_facts(frame),
        "caution": rehearsal.caution,
    }
    say_result(as_json, facts, f"{table}\n\n{sentence}\n\n{rehearsal.caution}")


def rehearsed(
    plan: "TablePlan", wanted: "tuple[ExpectedCounts, float] | None", on_progress: "Progress"
) -> "SmoothRehearsal":
    """The rehearsal of a plan with the expected counts of options; they may not be missing."""
    from rpexplore.postprocessing.rehearsal.smooth_rehearsal import rehearse_smooth_tables

    return rehearse_smooth_tables(plan, _needed(wanted), on_progress=on_progress)


def _needed(wanted: "tuple[ExpectedCounts, float] | None") -> "ExpectedCounts":
    """The expected counts of options; they may not be missing."""
    if wanted is None:
        raise RpexploreError(
            "Made-up records need expected counts; give --expected-count N or --expected FILE."
        )
    return wanted[0]
