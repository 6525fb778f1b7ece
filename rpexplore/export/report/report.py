"""The report: one document on a plan that can be handed to whoever has to approve it.

The HTML file holds everything it shows, the program that draws its charts included, and forbids
the browser to ask anybody for more (Content-Security-Policy). It holds no time, no path and no
user of the machine that made it: the same plan gives the same report.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from rpexplore.common.formatting import plural
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.provenance import except_from_records
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.errors import PlanError
from rpexplore.export.report.accuracy import accuracy, relative_errors_section, tables_section
from rpexplore.export.report.adaptive import (
    adaptive_front,
    adaptive_sections,
    unbiased_usefulness,
)
from rpexplore.export.report.approvals import approvals_section
from rpexplore.export.report.areas import area_front, area_sections, useful_in_areas
from rpexplore.export.report.baselines import baselines_section
from rpexplore.export.report.board import board_section, with_comments
from rpexplore.export.report.board import in_short as short_of_tables
from rpexplore.export.report.codebook import aggregations, all_values, codebook
from rpexplore.export.report.context import context
from rpexplore.export.report.fairness import fairness_section
from rpexplore.export.report.glossary import glossary
from rpexplore.export.report.kinds import ReportedPlan
from rpexplore.export.report.nist_checklist import nist_checklist
from rpexplore.export.report.privacy_label import label
from rpexplore.export.report.proof import proof, versions
from rpexplore.export.report.readings import readings
from rpexplore.export.report.section import (
    Section,
    numbers_file,
    numbers_of,
    text_of_template,
)
from rpexplore.export.report.targets import targets
from rpexplore.figures.chart import Chart
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.approval import Approval
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.verification import verify
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.workload_request import WorkloadRequest

MOST_ROWS = 300  # of a chart's numbers on screen; more are a file of their own
MOST_WHOLE_ROWS = 6  # of a table that is not split between printed pages
MOST_PRINTED_ROWS = 40  # of a chart's numbers on paper; more are left out
FONT_SIZE = 13  # px, in charts


@dataclass(frozen=True, eq=False)
class Report:
    """The contents of a report, in order, before they become HTML.

    front: the sections of the first page
    """

    title: str
    head: str
    subtitle: str
    front: tuple[Section, ...]
    note: str
    label: Section
    sections: tuple[Section, ...]
    sha256: str

    @property
    def charts(self) -> list[Chart]:
        """All charts, in the order of the document."""
        parts = [part for section in (self.label, *self.sections) for part in section.parts]
        return [part for part in parts if isinstance(part, Chart)]


def report(
    plan: ReportedPlan,
    *,
    name: str = "",
    survey: str = "",
    note: str = "",
    record_noun: str = "records",
    expected: ExpectedCounts | None = None,
    cv_limit: float = CV_LIMIT,
    request: WorkloadRequest | None = None,
    rehearsal: SmoothRehearsal | None = None,
    board: BoardNotes | None = None,
    area_totals: Mapping[int, float] | None = None,
    approvals: Sequence[Approval] = (),
) -> Report:
    """The contents of the report on a plan.

    Args:
        plan: Of tables; or of tables in areas, or an adaptive one, which have no request and no
            rehearsal.
        name: What to call the plan: the scenario's name, say.
        survey: What the records are: "Household survey".
        note: A remark of its author.
        record_noun: What one record stands for, in the plural.
        expected: Public counts to judge relative errors by.
        cv_limit: The largest coefficient of variation of a publishable cell.
        request: The request of the scenario, which has the targets as they were typed.
        rehearsal: How near smooth tables of this plan came, from `rehearse_smooth_tables`.
        area_totals: Publicly known totals of areas, as of `publishable_in_areas`.
        board: Comments on sections, open questions and the decision of a board.
        approvals: Of this plan, to be named in the report.

    Raises:
        PlanError: If the plan does not hold what it claims: there is nothing to report; or if the
            rehearsal is of another plan.
        ApprovalError: If an approval is of another plan, or not signed by its key.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> "Ages" in str(report(best, name="Ages"))
        True
    """
    verified = verify(plan)
    if not verified.holds:
        broken = next(check for check in verified.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}), so there "
            "is nothing to report; make it again."
        )
    if rehearsal is not None and rehearsal.plan_sha256 != plan.sha256:
        raise PlanError(
            "The rehearsal is of another plan, with the SHA-256 "
            f"{rehearsal.plan_sha256[:16]}…; rehearse this one, or leave the rehearsal out."
        )
    domain, notes = plan.domain, board or BoardNotes()
    tables = plural(plan.n_items, "table")
    attributes = plural(len(plan.attribute_indices), "attribute")
    if isinstance(plan, AreaPlan):
        of_kind = f" of {plural(plan.workload.tree.n_areas, 'area')}"
        useful = useful_in_areas(plan, expected, cv_limit, area_totals)
        in_short = area_front(plan, record_noun, useful)
        about_tables = [
            *aggregations(plan.workload.tables, plan.closure.strategies),
            *area_sections(plan, record_noun, useful),
        ]
    elif isinstance(plan, AdaptivePlan):
        of_kind = ", adaptively,"
        unbiased = unbiased_usefulness(plan, expected, cv_limit)
        in_short = adaptive_front(plan, record_noun, unbiased)
        about_tables = adaptive_sections(plan, unbiased)
    else:
        of_kind = ""
        in_short = short_of_tables(plan, record_noun, expected, cv_limit)
        about_tables = [
            *aggregations(plan.workload, plan.closure.strategies),
            tables_section(plan),
            accuracy(plan, record_noun),
            fairness_section(plan, record_noun),
            *([baselines_section(plan)] if plan.loss.is_available else []),
            *([] if expected is None else [relative_errors_section(plan, expected, cv_limit)]),
            targets(plan, request),
            readings(request, rehearsal, record_noun),
        ]
    first, *others = with_comments(
        [
            label(plan),
            codebook(domain),
            *about_tables,
            context(plan),
            proof(plan, verified),
            nist_checklist(plan, record_noun),
            versions(plan),
            all_values(domain),
            glossary(),
        ],
        notes,
    )
    headings = [section.heading for section in (first, *others)]
    typed = [text.strip() for text in (survey, name) if text.strip()]
    names = list(dict.fromkeys(typed)) or [f"Release of {tables}"]
    scenario = "".join(f"Scenario “{text}”. " for text in names[1:])
    return Report(
        title=names[0],
        head=" · ".join(names),
        subtitle=(
            f"{scenario}A plan to release {tables}{of_kind} over {attributes} with noise, under "
            "differential privacy. Made without looking at any record"
            f"{except_from_records(domain)}.{_from_release(request)}"
        ),
        front=(
            in_short,
            board_section(notes, plan, headings),
            *([approvals_section(plan, approvals)] if approvals else []),
        ),
        note=note.strip(),
        label=first,
        sections=tuple(others),
        sha256=plan.sha256,
    )


def _from_release(request: WorkloadRequest | None) -> str:
    """That the plan was made from a first release, if it was."""
    weights = None if request is None else request.smooth_weights
    if weights is None or weights.pairs is None:
        return ""
    return f" Its weights follow from {weights.pairs.text}: noisy figures, spent before."


def html(report: Report) -> str:
    """The report as one HTML file that needs nothing else."""
    from plotly.offline import get_plotlyjs

    plotly, script = get_plotlyjs(), text_of_template("report.js")
    figures = json_for_script([plain_figure(chart) for chart in report.charts])
    template = _environment().get_template("report.html.j2")
    return template.render(
        report=report,
        css=Markup(text_of_template("report.css")),
        policy=_policy([plotly, script]),
        plotly=Markup(plotly),
        figures=Markup(figures),
        script=Markup(script),
        most_rows=MOST_ROWS,
        most_whole_rows=MOST_WHOLE_ROWS,
        most_printed_rows=MOST_PRINTED_ROWS,
    )


def plain_figure(chart: Chart) -> dict[str, Any]:
    """A figure as data and layout, without a template: the page gives it its colours."""
    content = json.loads(chart.figure.to_json() or "{}")
    # A width would be that of the screen it was made on, not of the column.
    left_out = ("template", "width")
    layout = {key: value for key, value in content["layout"].items() if key not in left_out}
    # What the template that is left out would say, and texts of one size with the others.
    for name, settings in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            settings.setdefault("automargin", True)
            settings.setdefault("tickangle", 0)
            settings.setdefault("title", {}).setdefault("font", {"size": FONT_SIZE})
    for note in layout.get("annotations", ()):
        note["font"] = {**note.get("font", {}), "size": FONT_SIZE}
    return {"data": content["data"], "layout": layout}


def json_for_script(content: Any) -> str:
    """JSON that can stand inside a script element, whatever texts it holds."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Sequence[str]) -> str:
    """What the browser may do: run exactly these scripts, draw, and nothing else."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{_base64(digest)}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(text_of_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "kind": lambda part: type(part).__name__,
        "data_uri": lambda text: f"data:text/csv;charset=utf-8;base64,{_base64(text.encode())}",
        "breakable": _breakable,
        "numbers_of": numbers_of,
        "numbers_file": numbers_file,
        "css_string": _css_string,
    }
    return environment


def _breakable(text: str) -> Markup:
    """A text whose very long words may be broken, so that they do not widen a column."""
    pieces = re.split(r"(\S{24})(?=\S)", text)
    return Markup("<wbr>").join(piece for piece in pieces if piece)


def _css_string(text: str) -> Markup:
    """A text as a CSS string, in which nothing but letters, digits and blanks stands as it is."""
    # The blank behind an escape belongs to it.
    escaped = (char if char == " " or char.isalnum() else f"\\{ord(char):x} " for char in text)
    return Markup('"' + "".join(escaped) + '"')


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
