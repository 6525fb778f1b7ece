"""What a report tells about relative errors, where counts that are public are known."""

from rpexplore.analysis import relative_errors as relative
from rpexplore.analysis.forecast import Forecast
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.export.report.section import Section
from rpexplore.figures.distributions import chart_of_publishable_cells
from rpexplore.planning.plan import Plan

WANTED = 0.2  # the coefficient of variation that the chart marks; the curve has all the others


def relative_errors_section(plan: Plan, expected: ExpectedCounts) -> Section:
    """Standard errors against expected counts (RP+ Remark 2): which cells are worth publishing."""
    forecast = Forecast.of_plan("This plan", plan)
    title = "Relative errors"
    try:
        cells = relative.ExpectedCells.of(expected, plan.workload)
    except WorkloadError as error:
        return Section(title, (f"The expected counts do not fit the plan: {error}",))
    if not cells.held.any():
        return Section(title, (cells.left_out_text,))
    frame = relative.by_order(forecast, cells, WANTED)
    return Section(
        title,
        (
            f"Expected counts: {expected.text}. They were typed in or loaded as public, and no "
            "record was looked at for them; the plan does not depend on them.",
            "The coefficient of variation of a cell is its standard error, of the privacy noise "
            "alone, divided by its expected count.",
            *([cells.left_out_text] if cells.left_out else []),
        ),
        (chart_of_publishable_cells(relative.curves(forecast, cells), frame, WANTED),),
    )
