"""Runs killed at lines all over the code: nothing is lost, nothing is charged twice.

A run that is booked can be finished at no further cost, whenever it was killed; one that is not is
not charged, and can be begun again. A few points in `make test`, 250 in `make test-all`.
"""

import os
import shutil
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.queries.builders import marginal_queries
from rpexplore.releases.ledger import FILENAME, Ledger
from rpexplore.releases.plan_run import run_of
from rpexplore.releases.release import can_be_resumed
from tests.support.stopped_runs import killed_at_line, lines_of

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
POINTS = 80 if NIGHTLY else 6  # of each kind of run


@pytest.fixture(scope="module", params=["tables", "queries"])
def plan(request, tmp_path_factory) -> Path:
    """A plan file."""
    domain = rp.Domain.from_sizes({"age": 4, "sex": 2, "region": 3})
    if request.param == "tables":
        made = rp.plan(
            rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
        )
    else:
        made = rp.query_plan(marginal_queries(domain, 2), budget=rp.Budget(rho=1))
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    made.save(path)
    return path


def records(folder: Path) -> Path:
    """A folder of its own with records."""
    folder.mkdir()
    rows = ["age,sex,region", *(f"{i % 4},{i % 2},{i % 3}" for i in range(40))]
    (folder / "records.csv").write_text("\n".join(rows) + "\n")
    return folder / "records.csv"


def states(data: Path) -> list[str]:
    return [entry.state for entry in Ledger.beside(data).account(data).runs]


def test_killed_at_any_line_a_run_is_free_or_can_be_finished(plan, tmp_path):
    whole = records(tmp_path / "whole")
    kind = run_of(rp.load_plan(plan)).release_kind
    n_lines = lines_of(plan, whole, whole.parent / "release")
    seen = set()
    for point in range(POINTS):
        data = records(tmp_path / str(point))
        output = data.parent / "release"
        killed_at_line(1 + point * n_lines // POINTS, plan, data, output)
        charged = states(data)
        assert len(charged) <= 1
        if output.exists():
            assert kind.load(output)
        seen.add(charged[0] if charged else "free")
        if can_be_resumed(output):
            seen.add("drawn")
            rp.resume(output)
        elif not output.exists():
            rp.release(rp.load_plan(plan), data, output)
        assert states(data) == ["finished"], (point, charged)
        assert kind.load(output)
        kept = {"records.csv", "release", FILENAME}
        left = {path.name for path in data.parent.iterdir()} - kept
        # A ledger that was being made is cleared away by the next one, after a minute.
        assert all(name.startswith(f".{FILENAME}.new-") for name in left)
        shutil.rmtree(data.parent)
    assert {"free", "started", "drawn"} <= seen
