"""Planning of plain marginals, with plan file, report and a release of Adult.

Cases of `tests.benchmarks.run`.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.analysis.frontier import frontier
from rpexplore.analysis.measures import SCHEMES
from rpexplore.planning.planner import Optimum, optimum, plan_tables
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.report import html, report
from tests.benchmarks import app
from tests.benchmarks.measure import (
    REPEATS,
    Row,
    best_of_three,
    ended_seconds,
    environment,
    once,
    peak_gigabytes,
)
from tests.published import figures

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def hundred_attributes() -> rp.Workload:
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(100)})
    return rp.Workload.all_up_to(domain, 3)


def plan_of(
    workload: rp.Workload,
    loss: rp.SumOfVariances | rp.MaxVariance,
    tolerance: float = TOLERANCE,
) -> TablePlan:
    return plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1), tolerance=tolerance)


def published_figures() -> list[Row]:
    deviation, gap = 0.0, 0.0
    for file, figure in figures.FIGURES.items():
        for row in figures.rows(file):
            value, plan = figure(row)
            deviation = max(deviation, abs(value - float(row["published"])))
            gap = max(gap, plan.certificate.gap)
    return [
        ("published figures, largest deviation (printed: 3 decimals)", deviation, "<=", 0.0005),
        ("published figures, largest gap", gap, "<=", 1e-6),
    ]


def sum_of_variances() -> list[Row]:
    seconds, _ = best_of_three(
        lambda w: plan_of(w, rp.SumOfVariances()), hundred_attributes, time.process_time
    )
    return [
        ("plan 166,751 tables, sum of variances, processor s", seconds, "<=", 0.12),
        ("  process peak, GB", peak_gigabytes(), "<", 1.0),
    ]


def three_hundred_attributes() -> list[Row]:
    domain = rp.Domain.from_sizes({f"a{i}": 2 + i % 20 for i in range(300)})
    seconds, plan = once(
        lambda: plan_of(rp.Workload.all_up_to(domain, 3), rp.SumOfVariances()), time.process_time
    )
    return [
        (f"plan {len(plan.workload):,} tables, workload included, processor s", seconds, "<=", 15),
        ("  process peak, GB", peak_gigabytes(), "<", 3.0),
    ]


def max_variance() -> list[Row]:
    seconds, plan = best_of_three(lambda w: plan_of(w, rp.MaxVariance()), hundred_attributes)
    return [
        ("plan 166,751 tables, largest variance, s", seconds, "<=", 1.0),
        ("  gap", plan.certificate.gap, "<=", 1e-6),
    ]


def max_variance_of_random_weight() -> list[Row]:
    def fresh() -> rp.Workload:
        plain = hundred_attributes()
        weights = np.random.default_rng(0).uniform(1, 100, len(plain))
        return rp.Workload(plain.domain, plain.members, weights, plain.targets)

    rows: list[Row] = []
    for options in ({"tolerance": 1e-4}, {}):
        seconds, plan = best_of_three(
            lambda w, chosen=options: plan_of(w, rp.MaxVariance(), **chosen), fresh
        )
        tolerance = "tolerance 1e-4" if options else "default tolerance"
        rows += [
            (f"plan 166,751 tables, weight 1 to 100, {tolerance}, s", seconds, "<=", 1.5),
            ("  gap", plan.certificate.gap, "<=", 1e-4),
        ]
    return rows


def adult_plans() -> list[Row]:
    rows: list[Row] = []
    for name, loss in (("sum", rp.SumOfVariances("cells")), ("largest", rp.MaxVariance())):
        seconds, _ = best_of_three(
            lambda w, chosen=loss: plan_of(w, chosen), lambda: figures.workload("Adult", "<=3")
        )
        rows.append((f"plan Adult, at most 3-way, {name}, ms", 1000 * seconds, "<=", 20))
    return rows


def plan_file() -> list[Row]:
    made = plan_of(hundred_attributes(), rp.SumOfVariances())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        # `replace` makes a copy without what a plan remembers, its text among it.
        writing, _ = best_of_three(lambda plan: plan.save(path), lambda: replace(made))
        loading, _ = best_of_three(lambda _: TablePlan.load(path))
        verifying, verification = best_of_three(
            rp.verify, lambda: TablePlan.load(path), time.process_time
        )
        size = path.stat().st_size / 1e6
    return [
        ("plan.json of 166,751 tables, written, s", writing, "<=", 0.3),
        ("  loaded, s", loading, "<=", 0.6),
        ("  loaded and then verified exactly, processor s", verifying, "<=", 0.15),
        ("  checks that fail", sum(not check.holds for check in verification.checks), "<=", 0),
        ("  size, MB", size, "<=", 6),
    ]


def adult_release() -> list[Row]:
    from rpexplore.releases.release import release

    sizes = json.loads((DATA / "adult-domain.json").read_text(encoding="utf-8"))
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 3)
    plan = plan_of(workload, rp.SumOfVariances("cells"))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "adult.csv"  # the ledger is written beside the data
        data.write_bytes((DATA / "adult.csv").read_bytes())
        outputs = (Path(folder) / f"release-{count}" for count in range(REPEATS))
        seconds, _ = best_of_three(
            lambda given: release(*given), lambda: (replace(plan), data, next(outputs))
        )
    return [
        (f"release of {len(workload)} tables of adult.csv, s", seconds, "<=", 20),
        ("  process peak, GB", peak_gigabytes(), "<", 2.0),
    ]


def four_schemes() -> list[Row]:
    def solve(workload: rp.Workload) -> list[Optimum]:
        first, *others = SCHEMES.values()
        solved = optimum(workload, loss=first)
        return [solved, *(optimum(workload, loss=o, closure=solved.closure) for o in others)]

    seconds, _ = best_of_three(solve, hundred_attributes)
    return [("four schemes of 166,751 tables, for every budget, s", seconds, "<=", 1.5)]


def average_against_worst() -> list[Row]:
    workload = app.hundred().workload
    ends = [optimum(workload, loss=loss) for loss in (rp.SumOfVariances(), rp.MaxVariance())]
    seconds, points = best_of_three(lambda _: frontier(*ends))
    gap = max(point.gap for point in points.points)
    return [
        ("average against worst case of 166,751 tables, on demand, s", seconds, "<=", 10),
        ("  largest gap of its points", gap, "<=", 1e-6),
    ]


def report_on_many_tables() -> list[Row]:
    plan = plan_of(app.hundred().workload, rp.SumOfVariances())
    seconds, text = best_of_three(lambda made: html(report(made)), lambda: replace(plan))
    return [
        ("report.html on 166,751 tables, s", seconds, "<=", 10),
        ("  size, MB", len(text.encode()) / 1e6, "<=", 8),
    ]


def verbs_on_a_small_codebook() -> list[Row]:
    """`schema`, `plan` and `show` as programs, over Python with what these do not do without."""
    needed = "import click, numpy, scipy.sparse, scipy.special"
    verb = "from rpexplore.cli.main import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        codebook, plan = Path(folder) / "codebook.csv", str(Path(folder) / "plan.json")
        rows = [f"a{i},{value}," for i in range(11) for value in range(5)]
        codebook.write_text("\n".join(["attribute,value,label", *rows]), "utf-8")
        asked = [str(codebook), "--out", plan, "--force", "--up-to", "2", "--rho", "0.1"]
        floor = _program_seconds("-c", needed)
        reading = _program_seconds("-c", verb, "schema", str(codebook))
        start = _program_seconds("-c", "import click, numpy")
        planning = _program_seconds("-c", verb, "plan", *asked)
        showing = _program_seconds("-c", verb, "show", plan)
    return [
        ("`schema` of 11 attributes, processor s", reading, "<=", 0.5),
        ("  over the start of Python with NumPy, times", reading / start, "<=", 3),
        ("`plan` of 67 tables, processor s", planning, "<=", 0.8),
        ("  over the start of Python with SciPy, times", planning / floor, "<=", 2.2),
        ("`show` of them, processor s", showing, "<=", 0.8),
        ("  over the start of Python with SciPy, times", showing / floor, "<=", 2.2),
    ]


def _program_seconds(*arguments: str) -> float:
    """Processor time of the fastest of three runs of Python with these arguments."""

    seconds = []
    for _ in range(REPEATS):
        start = ended_seconds()
        command = [sys.executable, *arguments]
        subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
        seconds.append(ended_seconds() - start)
    return min(seconds)


CASES = (
    verbs_on_a_small_codebook,
    published_figures,
    sum_of_variances,
    three_hundred_attributes,
    max_variance,
    max_variance_of_random_weight,
    adult_plans,
    plan_file,
    adult_release,
    four_schemes,
    average_against_worst,
    report_on_many_tables,
)
