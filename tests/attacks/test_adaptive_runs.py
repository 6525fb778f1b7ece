"""Adaptive runs stopped between rounds: they go on from what was drawn, of the same records alone.

What was selected is known to who sees the folder, so that nothing is drawn twice.
"""

import json
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.domain.record_layout import Place, RecordLayout
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.ledger.ledger import Ledger

NAMES = "abc"
LAYOUT = RecordLayout(tuple(NAMES), (Place(0, 1), Place(1, 2), Place(2, 3)), 3)
SWAPPED = RecordLayout(("b", "a", "c"), LAYOUT.places, 3)


@pytest.fixture(scope="module")
def plan() -> Plan:
    domain = rp.Domain([rp.Attribute(name, rp.Categories(("1", "2", "3"))) for name in NAMES])
    tables = rp.Workload.all_of_order(domain, 2)
    return rp.plan(rp.Rounds(tables, 2000), budget=rp.Budget(rho="0.5"))


@pytest.fixture
def data(tmp_path) -> Path:
    path, drawn = tmp_path / "people.dat", random.Random(0)
    lines = ("".join(drawn.choice("123") for _ in NAMES) + "\n" for _ in range(2000))
    path.write_text("".join(lines))
    return path


def run(plan: Plan, data: Path, layout=LAYOUT, encoding=None, stop: str = "") -> rp.Release:
    """Run the plan, or stop where it says that it does this."""

    def on_progress(doing: str, _share: float) -> None:
        if stop and stop in doing:
            raise KeyboardInterrupt

    source = FileSource(data, encoding, layout)
    return rp.release(plan, source, data.parent / "out", on_progress=on_progress)


def drawn(data: Path) -> bytes:
    """What is noted as drawn in the unfinished folder."""
    folder = unfinished_folder(data.parent / "out") / "run"
    n_drawn = json.loads((folder / "draft.json").read_text())["n_measured"]
    return (folder / "measured.int64").read_bytes()[: 8 * n_drawn]


def states(data: Path) -> list[str]:
    return [entry.state for entry in Ledger.beside(data).account(data).entries]


def copied_back(data: Path) -> None:
    away = data.with_suffix(".copy")
    shutil.copy2(data, away)
    data.unlink()
    away.rename(data)
    data.chmod(0o600)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("stop", ["Round 1 of 4", "Round 2 of 4: Selecting", "Round 3 of 4"])
def test_records_that_were_copied_back_are_the_same(plan, data, stop):
    """They were taken for others for good: no one can set back when a file was last renamed."""
    with pytest.raises(KeyboardInterrupt):
        run(plan, data, stop=stop)
    before = drawn(data)
    copied_back(data)
    with suppress(KeyboardInterrupt):
        run(plan, data, stop="Round 4 of 4: Selecting")
    assert drawn(data).startswith(before)
    run(plan, data)
    assert states(data) == ["finished"]


def test_nothing_is_drawn_of_records_that_are_read_or_written_otherwise(plan, data):
    with pytest.raises(KeyboardInterrupt):
        run(plan, data, stop="Round 2 of 4: Selecting")
    before, times = drawn(data), (data.stat().st_atime_ns, data.stat().st_mtime_ns)

    def refused(**how) -> None:
        with pytest.raises(ReleaseError, match="of other records, and is not drawn again"):
            run(plan, data, **how)
        assert drawn(data) == before

    refused(layout=SWAPPED)
    refused(encoding="windows-1252")
    text = data.read_text()
    data.write_text(text.replace("1", "2", 1))
    refused()
    data.write_text(text)
    refused()
    os.utime(data, ns=times)
    run(plan, data)
    assert states(data) == ["finished"]
