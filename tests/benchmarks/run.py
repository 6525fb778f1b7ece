"""Speed and memory of planning and release, against what they must reach: `make bench`.

Every case runs in a process of its own (so that a process peak is that case's alone), three times
in a row; the time is the best of the three. It is the time of the call named in the row: imports
and the making of the inputs are outside. The peak is that of the whole process, imports included.
Beside each figure stands the median of the last runs on this machine, where there were any.
Exit code 1 if a row misses its limit.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.analysis.forecast import SCHEMES
from rpexplore.analysis.frontier import frontier
from rpexplore.export.report.pdf import find_browser
from rpexplore.export.report.report import html, report
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.planner import TOLERANCE, optimum
from rpexplore.scenarios.scenario import Scenario
from tests.benchmarks import (
    app,
    areas,
    browser,
    convex,
    counting,
    engines,
    floors,
    generalised,
    nonnegative,
    queries,
    releases,
    sampling,
    smooth,
    synthetic,
    targets,
    usefulness,
)
from tests.benchmarks.history import History, is_worse
from tests.benchmarks.measure import REPEATS, Row, best_of_three, once, peak_gigabytes
from tests.published import figures

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
HEADING = (
    "Times: the named call alone (imports and inputs made before), best of "
    f"{REPEATS} in a process of its own. Peaks: that whole process."
)


def hundred_attributes() -> rp.Workload:
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(100)})
    return rp.Workload.all_up_to(domain, 3)


def plan_of(
    workload: rp.Workload,
    loss: rp.SumOfVariances | rp.MaxVariance,
    tolerance: float = TOLERANCE,
) -> rp.Plan:
    return rp.plan(workload, loss=loss, budget=rp.Budget(privacy_cost=1), tolerance=tolerance)


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
        loading, _ = best_of_three(lambda _: rp.Plan.load(path))
        verifying, verification = best_of_three(
            rp.verify, lambda: rp.Plan.load(path), time.process_time
        )
        size = path.stat().st_size / 1e6
    return [
        ("plan.json of 166,751 tables, written, s", writing, "<=", 0.5),
        ("  loaded, s", loading, "<=", 1),
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


def app_of(scenario: Scenario, what: str, limit: float) -> list[Row]:
    megabytes, seconds = app.figures(scenario)
    return [
        *((f"app, {what}: {step}, s", took, "<=", limit) for step, took in seconds.items()),
        *((f"  payload of the {name} page, MB", size, "<=", 3) for name, size in megabytes.items()),
    ]


def app_adult() -> list[Row]:
    return app_of(app.adult(), "Adult up to 3-way", 0.25)


def app_hundred() -> list[Row]:
    return app_of(app.hundred(), "166,751 tables", 0.8)


CASES: dict[str, Callable[[], list[Row]]] = {
    case.__name__: case
    for case in (
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
        app_adult,
        app_hundred,
        *browser.CASES,
        *generalised.CASES,
        *targets.CASES,
        *usefulness.CASES,
        *convex.CASES,
        *queries.CASES,
        *engines.CASES,
        *counting.CASES,
        *sampling.CASES,
        *floors.CASES,
        *releases.CASES,
        *nonnegative.CASES,
        *smooth.CASES,
        *areas.CASES,
        *synthetic.CASES,
    )
}
NEED_ADULT = (
    *("adult_release", "nonnegative_adult", "nonnegative_eight"),
    *("smooth_adult", "smooth_eight", "smooth_coverage", "smooth_rehearsed", "synthetic_adult"),
)
HOLDS = {
    "<=": lambda measured, limit: measured <= limit,
    "<": lambda measured, limit: measured < limit,
    ">=": lambda measured, limit: measured >= limit,
}


def lacking(case: str) -> str:
    """What this machine lacks for a case; empty if nothing."""
    if case in NEED_ADULT and not (DATA / "adult.csv").is_file():
        return "no data"
    if CASES[case] in browser.CASES and find_browser() is None:
        return "no Chromium"
    return ""


def rows_of(case: str) -> list[Row]:
    """The rows of a case, measured in a fresh process."""
    command = [sys.executable, "-m", "tests.benchmarks.run", "--measure", case]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def main() -> int:
    parser = argparse.ArgumentParser(description=HEADING)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"any of: {', '.join(CASES)}")
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(CASES[given.measure]()))
        return 0
    for unknown in set(given.cases) - set(CASES):
        parser.error(f"there is no case {unknown!r}; there are {', '.join(CASES)}")

    print(HEADING, flush=True)
    print(f"{'what':<62} {'wanted':>11} {'measured':>11} {'before':>9}  ok")
    history, row, missed = History(), "", 0
    for case in given.cases or CASES:
        if lack := lacking(case):
            print(f"{case:<62} {'':>11} {lack:>11} {'':>9}  skipped")
            continue
        for what, measured, sign, limit in rows_of(case):
            holds = HOLDS[sign](measured, limit)
            missed += not holds
            wanted = f"{sign} {limit:g}"
            verdict = "yes" if holds else "NO"
            row = f"{row.partition(':')[0]}: {what.strip()}" if what.startswith(" ") else what
            before = history.before(case, row)
            history.add(case, row, measured)
            if before is not None and is_worse(measured, sign, before):
                verdict += ", worse than before"
            was = "" if before is None else f"{before:.3g}"
            print(f"{what:<62} {wanted:>11} {measured:>11.3g} {was:>9}  {verdict}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
