"""Records of a survey, the ledgers of their releases, and what happens to both."""

import base64
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger import chain
from rpexplore.releases.ledger.ledger import Ledger
from tests.cli.program import Program

PLAN = plan_tables(
    rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1),
    loss=rp.SumOfVariances(),
    budget=rp.Budget(rho="1/2"),
)
KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
THIRD = plan_tables(
    rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1),
    loss=rp.SumOfVariances(),
    budget=rp.Budget(rho="1/3"),
)
DEMAND = rp.ApprovalDemand(1, f"alice@x ssh-ed25519 {KEY}\n")


def n_runs(data: Path) -> int:
    """In the account of the records, wherever it is."""
    return len(Ledger.of(data).account(data).entries)


def moved(data: Path, to: Path) -> Path:
    return Path(shutil.move(data, to / "moved.csv"))


def a_file_that_was_written_anew(folder: Path) -> Path:
    (folder / "one.csv").unlink()
    (folder / "one.csv").write_text("a\n0\n")
    return folder / "one.csv"


def written_anew_then_its_folder(data: Path, to: Path) -> Path:
    """As an editor saves it: another file, at the same path."""
    (to / "new.csv").write_text(data.read_text())
    (to / "new.csv").replace(data)
    return data.parent


def renamed(folder: Path) -> Path:
    return folder.rename(folder.with_name("renamed"))


def unmounted(named: Path) -> None:
    named.parent.rename(named.parent.with_name("unmounted"))
    named.parent.mkdir()


def replaced(named: Path) -> None:
    unmounted(named)
    records = named.parent / "other.csv"
    records.write_text("a\n0\n")
    Ledger(named).book(records, PLAN, "out")


def emptied(named: Path) -> None:
    with sqlite3.connect(named) as connection:
        connection.execute("DELETE FROM events")
        connection.execute("UPDATE last SET n_events = 0, digest = ?", [chain.START])
    connection.close()


def stop(doing: str, share: float) -> None:
    if doing == "Writing the release":
        raise KeyboardInterrupt


def in_command(*arguments: str | Path) -> str:
    """What the command says, of its output and its errors."""
    return Program(Path())("ledger", *map(str, arguments)).output


def costing(rho: str) -> Any:
    """What the ledger sees of a plan, with any cost for one record."""
    return SimpleNamespace(
        record_rho=Fraction(rho), budget=THIRD.budget, sha256=THIRD.sha256, noise=None
    )


def run_of(ledger: Ledger, data: Path, **changed) -> dict:
    """What an entry of a run on the records holds, by whoever books."""
    return {
        "names": [*ledger.account(data).names] or [*ledger._names(FileSource(data))],
        "data_bytes": 1,
        "data_modified": "",
        "started": "",
        "user": "booker",
        "plan_sha256": "",
        "record_rho": "1/3",
        "unit": "",
        "output": "",
        **changed,
    }
