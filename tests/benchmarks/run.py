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
from collections.abc import Callable
from pathlib import Path

from rpexplore.reports.report import find_browser
from tests.benchmarks import (
    adaptive,
    app,
    area_forecasts,
    area_suggestions,
    areas,
    browser,
    convex,
    counting,
    engines,
    explanations,
    floors,
    forecasts,
    formats,
    generalised,
    growth,
    load,
    nonnegative,
    planning,
    queries,
    releases,
    sampling,
    second_plan,
    small_area_floors,
    small_areas,
    smooth,
    suggestions,
    synthetic,
    targets,
)
from tests.benchmarks.history import History, is_worse
from tests.benchmarks.measure import REPEATS, Row
from tests.benchmarks.planning import DATA

ROOT = Path(__file__).resolve().parents[2]
HEADING = (
    "Times: the named call alone (imports and inputs made before), best of "
    f"{REPEATS} in a process of its own. Peaks: that whole process."
)


CASES: dict[str, Callable[[], list[Row]]] = {
    case.__name__: case
    for case in (
        *planning.CASES,
        *app.CASES,
        *browser.CASES,
        *load.CASES,
        *generalised.CASES,
        *targets.CASES,
        *explanations.CASES,
        *forecasts.CASES,
        *area_forecasts.CASES,
        *area_suggestions.CASES,
        *suggestions.CASES,
        *convex.CASES,
        *queries.CASES,
        *engines.CASES,
        *counting.CASES,
        *formats.CASES,
        *sampling.CASES,
        *floors.CASES,
        *releases.CASES,
        *nonnegative.CASES,
        *smooth.CASES,
        *second_plan.CASES,
        *adaptive.CASES,
        *areas.CASES,
        *small_areas.CASES,
        *small_area_floors.CASES,
        *synthetic.CASES,
        *growth.CASES,
    )
}
NEED_ADULT = (
    *("adult_release", "nonnegative_adult", "nonnegative_eight"),
    *("smooth_adult", "smooth_eight", "smooth_coverage", "smooth_rehearsed", "synthetic_adult"),
    *("smooth_second_plan", "adaptive_adult", "adaptive_eight"),
    *("forecasts_of_calibrated", "forecast_of_adult"),
    *("promises_of_adult", "promises_from_the_number_alone", "suggestions_for_adult"),
    "promises_in_areas",
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
