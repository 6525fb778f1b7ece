"""Runs killed at lines all over the code: nothing is lost, nothing is charged twice.

A run that is booked can be finished at no further cost, whenever it was killed; one that is not is
not charged, and can be begun again. A few points in `make test`, of records in a file;
in `make test-all` 80 of each kind of run on files, and 20 on each engine.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyarrow.csv import read_csv

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.planning.plan import load_plan
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import can_be_resumed
from rpexplore.workload.query_files import marginal_queries
from tests.data.engines.servers import Server, in_duckdb
from tests.support.ledgers import database_ledger
from tests.support.stopped_runs import killed_at_line, lines_of

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"


NIGHTLY_ADAPTIVE = pytest.param("adaptive", marks=pytest.mark.nightly)  # longer than others


@pytest.fixture(scope="module", params=["parts", "tables", "queries", "areas", NIGHTLY_ADAPTIVE])
def plan(request, tmp_path_factory) -> Path:
    """A plan file: of one part, or ("parts") of all but adaptive tables."""
    domain = rp.Domain.from_sizes({"age": 4, "sex": 2, "region": 3})
    tree = rp.AreaTree.from_columns({"region": ["0", "1", "2"]})
    in_areas = rp.Workload.of(rp.Domain(domain.attributes[:2]), [("age", "sex")])
    parts = {
        "tables": rp.Workload.all_up_to(domain, 2),
        "areas": rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, in_areas)),
        "counts": marginal_queries(domain, 2),
        "rounds": rp.Rounds(rp.Workload.all_of_order(domain, 3), 2_000),
    }
    of_param = {"queries": ["counts"], "adaptive": ["rounds"], "parts": list(parts)[:3]}
    kinds = of_param.get(request.param, [request.param])
    request = rp.Request(**{kind: parts[kind] for kind in kinds}, budget=rp.Budget(rho=1))
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    rp.plan(request).save(path)
    return path


def records(folder: Path) -> Path:
    """A folder of its own with records."""
    folder.mkdir()
    rows = ["age,sex,region", *(f"{i % 4},{i % 2},{i % 3}" for i in range(40))]
    (folder / "records.csv").write_text("\n".join(rows) + "\n")
    return folder / "records.csv"


@pytest.fixture
def store(request) -> Callable[[Path], tuple[Path | DatabaseSource, int]]:
    """Stores records in a folder of their own, or on a server; and how many points to try."""
    points = 20 if NIGHTLY else 2
    if request.param == "file":
        return lambda folder: (records(folder), 80 if NIGHTLY else 6)
    if request.param == "duckdb":
        return lambda folder: (in_duckdb(read_csv(records(folder)), folder / "a.duckdb"), points)
    server: Server = request.getfixturevalue("postgres")
    made: list[DatabaseSource] = []

    def on_server(folder: Path) -> tuple[DatabaseSource, int]:
        table = read_csv(records(folder))
        made[:] = made or [server.source(table, "killed")]
        return made[0], points

    return on_server


@pytest.fixture
def ledger_in(request, monkeypatch) -> Callable[[Path], Path | str]:
    """The ledger of a run in a folder: a file there, or a new one on a server."""
    if request.param == "file":
        return lambda folder: folder / FILENAME
    server: Server = request.getfixturevalue("postgres")
    return lambda folder: database_ledger(server, monkeypatch).name


@pytest.mark.parametrize(
    ("plan", "store", "ledger_in"),
    [
        pytest.param("tables", "file", "file", marks=pytest.mark.nightly),
        ("tables", "file", "postgresql"),
        pytest.param("tables", "postgresql", "file", marks=pytest.mark.nightly),
        pytest.param("tables", "duckdb", "file", marks=pytest.mark.nightly),
        pytest.param("queries", "file", "file", marks=pytest.mark.nightly),
        ("parts", "file", "file"),
        pytest.param("parts", "duckdb", "file", marks=pytest.mark.nightly),
        pytest.param("parts", "postgresql", "file", marks=pytest.mark.nightly),
        pytest.param("areas", "postgresql", "file", marks=pytest.mark.nightly),
        pytest.param("queries", "duckdb", "file", marks=pytest.mark.nightly),
        pytest.param("queries", "postgresql", "file", marks=pytest.mark.nightly),
    ],
    indirect=True,
)
def test_killed_at_any_line_a_run_is_free_or_can_be_finished(
    plan, store, ledger_in, tmp_path, monkeypatch
):
    folder = tmp_path / "whole"
    data, n_points = store(folder)
    ledger = ledger_in(folder)
    if not isinstance(ledger, Path):  # each is made anew, and read over a connection
        n_points = 40 if NIGHTLY else 2
    n_lines = lines_of(plan, data, folder / "release", ledger)
    seen = set()
    for point in range(n_points):
        folder = tmp_path / str(point)
        # A table on a server is the same each time, and its ledger another one.
        monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / f"home-{point}"))
        data, _ = store(folder)
        before = {path.name for path in folder.iterdir()}
        output, ledger = folder / "release", ledger_in(folder)

        def states(data=data, ledger=ledger) -> list[str]:
            return [entry.state for entry in Ledger(ledger).account(data).entries]

        killed_at_line((2 * point + 1) * n_lines // (2 * n_points), plan, data, output, ledger)
        charged = states()
        assert len(charged) <= 1
        if output.exists():
            assert rp.Release.load(output)
        seen.add(charged[0] if charged else "free")
        if can_be_resumed(output):
            seen.add("drawn")
            rp.resume(output)
        elif not output.exists():
            rp.release(load_plan(plan), data, output, ledger=ledger)
        assert states() == ["finished"], (point, charged)
        assert rp.Release.load(output)
        left = {path.name for path in folder.iterdir()} - before - {"release", FILENAME}
        # A folder of DuckDB's that nothing was put into is cleared away after a day.
        for name in left:
            assert name.startswith(".a.duckdb.")
            assert name.endswith(".tmp")
            os.utime(folder / name, (0, 0))
            data.columns()
            assert not (folder / name).exists()
        shutil.rmtree(folder)
    assert {"free", "started", "drawn"} <= seen or n_points < 6


def test_killed_while_it_tidies_a_release_is_tidied_later(tmp_path, monkeypatch):
    """Whether its measurements were removed by then, its note or all: the release is complete."""
    data = records(tmp_path / "data")
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4}), 1)
    plan = rp.plan(rp.Request(tables=tables, budget=rp.Budget(rho=1)))
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.booked_run.shutil.rmtree", lambda *_, **__: None)
        whole = rp.release(plan, data, tmp_path / "whole").folder
    left = sorted(path.name for path in (whole / "run").iterdir())
    for number, gone in enumerate([["measured.int64"], ["drawn.json"], left]):
        output = tmp_path / f"out-{number}"
        shutil.copytree(whole, output)
        for name in gone:
            (output / "run" / name).unlink()
        result = CliRunner().invoke(cli, ["release", "--resume", "--out", str(output)])
        assert result.exit_code == 0, (gone, result.output)
        assert "The release was complete" in result.output
        assert not (output / "run").exists()
        assert rp.resume(output).table("age").equals(rp.Release.load(whole).table("age"))
    assert [entry.state for entry in Ledger.beside(data).account(data).entries] == ["finished"]


KILLED = """
import os, signal, sys
from rpexplore.planning.plan import Plan
from rpexplore.releases.ledger.ledger import Ledger
when, data, plan = sys.argv[1], sys.argv[2], Plan.load(sys.argv[3])
link = os.link
def killed(*arguments):
    if when == "after":
        link(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
os.link = killed
Ledger.beside(data).book(data, plan, "out")
"""


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.nightly), "after"])
def test_a_ledger_whose_maker_was_killed_is_cleared_of_its_draft_at_once(when, tmp_path):
    """Before or after it had its name, at which nobody makes it once more."""
    data, domain = records(tmp_path / "data"), rp.Domain.from_sizes({"age": 4})
    tables = rp.Workload.all_up_to(domain, 1)
    plan = rp.plan(rp.Request(tables=tables, budget=rp.Budget(rho=1)))
    plan.save(tmp_path / "plan.json")
    command = [sys.executable, "-c", KILLED, when, str(data), str(tmp_path / "plan.json")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (data.parent / FILENAME).exists() == (when == "after")
    assert [path.name for path in data.parent.glob(f".{FILENAME}.new-*")]
    rp.release(plan, data, tmp_path / "out")
    assert {path.name for path in data.parent.iterdir()} == {data.name, FILENAME}
