"""The report: one document on a plan for whoever has to approve it, as HTML and as PDF."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from rpexplore.analysis.budget_units import right_guesses
from rpexplore.analysis.outcome import Outcome
from rpexplore.common.text import joined, plural
from rpexplore.domain.domain import except_from_records
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.public_tables import PublicTables
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import ExportError, PlanError
from rpexplore.figures.chart import Chart, Column
from rpexplore.planning.approval import Approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Check, verify
from rpexplore.reports.adaptive import rounds_report
from rpexplore.reports.areas import areas_report
from rpexplore.reports.counts import counts_report
from rpexplore.reports.evidence import (
    all_values,
    codebook,
    context,
    glossary,
    nist_checklist,
    proof,
    versions,
)
from rpexplore.reports.first_pages import approvals_section, board_section, label, with_comments
from rpexplore.reports.forecast import forecast_sections, public_section
from rpexplore.reports.kinds import Given, PartReport, PlanWords, Words
from rpexplore.reports.section import (
    Facts,
    Numbers,
    Section,
    numbers_file,
    numbers_of,
    text_of_template,
)
from rpexplore.reports.tables import tables_report
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.workload_request import WorkloadRequest

# The HTML file holds everything it shows, the program that draws its charts included, and forbids
# the browser to ask anybody for more (Content-Security-Policy). It holds no time, no path and no
# user of the machine that made it: the same plan gives the same report.


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


# What there is to tell of each kind of part: a new kind needs a line here and in `kinds`.
SECTIONS: dict[str, Callable[[Any, Given], PartReport]] = {
    "tables": tables_report,
    "areas": areas_report,
    "counts": counts_report,
    "rounds": rounds_report,
}


def report(
    plan: Plan | PartPlan,
    *,
    name: str = "",
    survey: str = "",
    note: str = "",
    record_noun: str = "records",
    expected: ExpectedCounts | None = None,
    cv_limit: float = CV_LIMIT,
    request: WorkloadRequest | None = None,
    rehearsal: SmoothRehearsal | None = None,
    board: BoardNotes | str | Path | None = None,
    area_totals: Mapping[int, float] | None = None,
    approvals: Sequence[Approval] = (),
    design: SurveyDesign | None = None,
    outcome: Outcome | None = None,
    public: PublicTables | None = None,
    area_guesses: pd.DataFrame | None = None,
) -> Report:
    """The contents of the report on a plan.

    Args:
        plan: Of tables, areas, own counts or adaptive rounds; of several parts the report tells
            what they have in common once, and then the sections of each.
        name: What to call the plan: the scenario's name, say.
        survey: What the records are: "Household survey".
        note: A remark of its author.
        record_noun: What one record stands for, in the plural.
        expected: Public counts from which tables are forecast, and other counts judged.
        cv_limit: The largest coefficient of variation of a good cell.
        request: The request of the scenario, which has the targets as they were typed.
        rehearsal: How near smooth tables of this plan came, from `rehearse_smooth_tables`.
        area_totals: Publicly known totals of areas, as of `rp.AreaForecast`.
        board: Comments on sections, open questions and the decision of a board, or their file.
        approvals: Of this plan, to be named in the report.
        design: The design of the survey, if its sampling error counts beside the noise.
        outcome: What came out of a release by this plan, beside the forecast that the plan keeps.
        public: Public tables that forecasts rest on, in place of `expected`; the report names them.
        area_guesses: The errors of best guesses for areas to expect, from
            `results.estimates.area_guess_errors.guess_errors_by_level`.

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
    checks = {part.kind: _checks(part) for part in plan.parts}
    tables = plan.part("tables")
    if rehearsal is not None and (tables is None or rehearsal.plan_sha256 != tables.sha256):
        raise PlanError(
            "The simulation is of another plan, with the SHA-256 "
            f"{rehearsal.plan_sha256[:16]}…; simulate this one, or leave the simulation out."
        )
    notes = BoardNotes.load(board) if isinstance(board, (str, Path)) else board or BoardNotes()
    words = PlanWords.of(plan)
    kept = Plan.of(plan).forecast
    given = Given(
        record_noun, expected, cv_limit, request, rehearsal, area_totals, design, public, kept,
        area_guesses,
    )  # fmt: skip
    parts = [(part, SECTIONS[part.part.kind](part.part, given)) for part in words.parts]
    domain = plan.domain
    first, *others = with_comments(
        [
            label(plan, expected),
            *_shares(plan, words),
            codebook(domain),
            *_of_parts(parts, lambda part, told: told.sections),
            *public_section(public),
            *forecast_sections(Plan.of(plan), outcome, record_noun),
            context(plan),
            *_of_parts(parts, lambda part, told: [proof(part, checks[part.part.kind])]),
            nist_checklist(plan, record_noun),
            versions(plan, words),
            all_values(domain),
            glossary(),
        ],
        notes,
    )
    headings = [section.heading for section in (first, *others)]
    typed = [text.strip() for text in (survey, name) if text.strip()]
    names = list(dict.fromkeys(typed)) or [f"Release of {plan.asked}"]
    scenario = "".join(f"Scenario “{text}”. " for text in names[1:])
    released = joined(
        [f"{plural(part.part.n_items, part.item)}{told.of_kind}" for part, told in parts]
    )
    used = {part.domain.names[index] for part in plan.parts for index in part.attribute_indices}
    return Report(
        title=names[0],
        head=" · ".join(names),
        subtitle=(
            f"{scenario}A plan to release {released} over {plural(len(used), 'attribute')} with "
            "noise, under differential privacy. Made without looking at any record"
            f"{except_from_records(domain)}.{_from_release(request)}"
        ),
        front=(
            _in_short(plan, parts),
            board_section(notes, plan, headings),
            *([approvals_section(plan, approvals)] if approvals else []),
        ),
        note=note.strip(),
        label=first,
        sections=tuple(others),
        sha256=plan.sha256,
    )


_Told = Sequence[tuple[Words, PartReport]]


def _checks(part: Any) -> tuple[Check, ...]:
    """What was recomputed of a part; `PlanError` if it does not hold what it claims."""
    verified = verify(part)
    if not verified.holds:
        broken = next(check for check in verified.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}), so there "
            "is nothing to report; make it again."
        )
    return verified.checks


def _of_parts(
    parts: _Told, sections_of: Callable[[Words, PartReport], Sequence[Section]]
) -> list[Section]:
    """Sections of each part; of several parts each heading begins with the part's name."""
    sections = [(part, section) for part, told in parts for section in sections_of(part, told)]
    if len(parts) == 1:
        return [section for _, section in sections]
    return [
        replace(section, heading=f"{part.name}: {section.heading}") for part, section in sections
    ]


def _in_short(plan: Plan | PartPlan, parts: _Told) -> Section:
    """What is released, how good it is, and what it costs, for who has a minute."""
    privacy = (
        "Privacy",
        f"{plan.epsilon_text}, for {plan.budget.full_unit}.",
        right_guesses(plan.budget, plan),
    )
    # Of tables that are a pilot the cost is but a part of what was booked.
    notes = [("Pilot", part.part.note) for part, _ in parts if part.part.note]
    if len(parts) == 1:
        return Section("In short", (), (Facts([*parts[0][1].front, privacy, *notes]),))
    facts = [Facts(told.front, part.name) for part, told in parts]
    return Section("In short", (), (*facts, Facts([privacy, *notes], "All parts together")))


def _shares(plan: Plan | PartPlan, words: PlanWords) -> list[Section]:
    """How the budget is shared by several parts; nothing of one."""
    if len(words.parts) == 1:
        return []
    costs = [part.exact_privacy_cost for part in plan.parts]
    frame = pd.DataFrame(
        {
            "part": [part.name for part in words.parts],
            "rho": [float(cost / 2) for cost in costs],
            "share": [float(cost / plan.exact_privacy_cost) for cost in costs],
        }
    )
    columns = {
        "part": Column("part", "text"),
        "rho": Column("ρ", term="ρ"),
        "share": Column("share of the budget", "share"),
    }
    sentence = (
        "All parts are released by one run, under one guarantee: their costs add up to that of the "
        "plan."
    )
    return [Section("Budget by part", (sentence,), (Numbers(frame, columns),))]


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


# ---- The report as PDF, printed by a Chromium, Chrome or Edge that is on the machine.
#
# The browser gets a profile of its own, which is deleted afterwards, and can resolve no host name:
# the report holds all it shows, and nothing else is fetched either. The file says nothing of the
# machine or of the time: the same plan, printed by the same browser, gives the same file.


NO_BROWSER = (
    "A PDF report is printed by Chromium, Chrome or Edge, and none of them was found; install one "
    "(on Debian and Ubuntu: apt-get install chromium), or write the report as .html and print it "
    "from any browser"
)

_COMMANDS = (
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "chromium",
    "chromium-browser",
)
_MAC_APPLICATIONS = ("Google Chrome", "Microsoft Edge", "Chromium")
_WINDOWS_PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
    "Chromium/Application/chrome.exe",
)
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # which is tiny in containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--user-agent=rpexplore",  # stands in the file as its creator
    "--virtual-time-budget=60000",  # ms that the charts have, as many as they need of them
    "--no-pdf-header-footer",
)
_TIMEOUT = 300  # seconds; a report takes about 3
_DATE = re.compile(rb"\(D:\d{14}[+-]\d\d'\d\d'\)")
_NO_DATE = b"(D:19800101000000+00'00')"  # of the same length, so that the file's offsets hold
_HEADER_CELL = re.compile(rb"/ID \(node(\d{8})\)")


def find_browser() -> Path | None:
    """The browser that prints reports: by its command, or where its installer puts it."""
    for command in _COMMANDS:
        if path := shutil.which(command):
            return Path(path)
    return next((path for path in _installed_paths() if path.is_file()), None)


def _installed_paths() -> list[Path]:
    """Where installers of macOS and Windows put browsers, beside the search path."""
    applications = [
        Path(folder, f"{name}.app", "Contents", "MacOS", name)
        for folder in ("/Applications", os.path.expanduser("~/Applications"))
        for name in _MAC_APPLICATIONS
    ]
    folders = [
        os.environ[name]
        for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        if os.environ.get(name)
    ]
    programs = [Path(folder, program) for folder in folders for program in _WINDOWS_PROGRAMS]
    return applications + programs


def pdf(report: Report) -> bytes:
    """The report as a PDF file.

    Raises `ExportError` if there is no browser, or if it prints nothing.
    """
    browser = find_browser()
    if browser is None:
        raise ExportError(f"{NO_BROWSER}.")
    with tempfile.TemporaryDirectory(
        dir=_scratch_parent(browser), ignore_cleanup_errors=True
    ) as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(html(report), encoding="utf-8")
        _print_page(browser, source, target)
        return _with_ranks(_DATE.sub(_NO_DATE, target.read_bytes()))


def _with_ranks(file: bytes) -> bytes:
    """The PDF with its header cells of tables numbered from 0, wherever it refers to them.

    The browser numbers them among all it has made, more or fewer of which were in time.
    """
    numbers = sorted(set(_HEADER_CELL.findall(file)))
    ranks = {number: b"%08d" % rank for rank, number in enumerate(numbers)}
    pattern = rb"\(node(\d{8})\)"
    return re.sub(pattern, lambda match: b"(node%s)" % ranks.get(match[1], match[1]), file)


def _scratch_parent(browser: Path) -> Path | None:
    """The folder for temporary files; Chromium from a snap sees only its own."""
    snap = Path(os.path.expanduser("~/snap/chromium/common"))
    return snap if browser.name.startswith("chromium") and snap.is_dir() else None


def _print_page(browser: Path, source: Path, target: Path) -> None:
    command = [
        str(browser),
        *_OPTIONS,
        f"--user-data-dir={source.with_name('profile')}",
        f"--print-to-pdf={target}",
    ]
    # Chromium's sandbox does not work for root, as whom containers often run.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")
    remedy = "write the report as .html and print it from a browser"
    try:
        finished = subprocess.run(
            [*command, source.as_uri()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExportError(
            f"{browser} did not print the report within {_TIMEOUT} seconds; {remedy}."
        ) from None
    except OSError as error:
        raise ExportError(f"{browser} cannot be started ({error.strerror}); {remedy}.") from error
    if not target.is_file() or not target.read_bytes().startswith(b"%PDF-"):
        lines = finished.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise ExportError(
            f"{browser} did not print the report (exit code {finished.returncode}: "
            f"{lines[-1]}); {remedy}."
        )
