"""Every verb that writes, and every kind of output that nothing may be written to."""

import io
import os
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from tests.releases.table_plan import CSV, PLAN

ENTRY = [
    *("--name=A", "--curator=B", "--intended-use=C", "--region=D", "--sector=Energy"),
    *("--actors=E", "--justification=F", "--author=G"),
]
VERBS = {
    "plan": ("plan", "codebook.json", "--up-to", "1", "--rho", "1", "--force"),
    "schema": ("schema", "codebook.json", "--force"),
    "rewrite": ("rewrite", "plan.json", "--force"),
    "show": ("show", "plan.json", "--force"),
    "report": ("report", "plan.json", "--force"),
    "counts": ("plan", "codebook.json", "--count", "n: total ± 9", "--rho", "1", "--force"),
    "template": ("counts", "template", "--codebook", "codebook.json", "--force"),
    "release": ("release", "plan.json", "records", "--yes"),
    "combine": ("combine", "done", "again"),
    "postprocess": ("postprocess", "done", "--round"),
    "publish": ("publish", "done"),
    "registry": ("registry", "done", *ENTRY, "--force"),
}
ENDINGS = {"schema": ".json", "show": ".csv", "template": ".csv", "report": ".html"}
KINDS = ["not UTF-8", "pipe", "socket", "loop", "dangling", "link", "folder", "in a file", "device"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A plan, its codebook, records in a folder, and two releases."""
    folder = tmp_path_factory.mktemp("outputs")
    PLAN.save(folder / "plan.json")
    PLAN.domain.save(folder / "codebook.json")
    (folder / "records").mkdir()
    (folder / "records" / "part.csv").write_text(CSV)
    for name in ("done", "again"):
        rp.release(PLAN, folder / "records", folder / name)
    (folder / "file").write_text("precious")
    return folder


def output(kind: str, ending: str) -> Path:
    """A path of this kind in the current folder, where a verb is asked to write to."""
    path = Path(f"{kind.replace(' ', '-')}{ending}")
    if kind == "not UTF-8":
        return Path(os.fsdecode(b"\xff") + ending)
    if kind == "in a file":
        return Path("file") / f"out{ending}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        return Path("/dev/null")
    else:
        path.symlink_to({"link": "file", "dangling": "none", "loop": path.name}[kind])
    return path


def seen(folder: Path) -> dict[str, tuple]:
    """What lies in a folder, and when it was changed."""
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_written_to_is_refused_and_left_alone(verb, kind, folder, monkeypatch):
    monkeypatch.chdir(folder)
    path = output(kind, ENDINGS.get(verb, ""))
    before, device = seen(folder), Path("/dev/null").stat()
    try:
        result = CliRunner().invoke(
            cli, [*VERBS[verb], "--csv" if verb == "show" else "--out", str(path)]
        )
        assert result.exit_code == 2, result.output
        assert "bug" not in result.output
        named = path.parent if kind == "in a file" else path
        assert ascii(named.name).strip("'") in result.stderr
        assert seen(folder) == before
        assert Path("/dev/null").stat().st_ino == device.st_ino
    finally:
        if path.parent == Path() and os.path.lexists(path):
            path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("option", ["--out", "--ledger"])
def test_nothing_is_written_among_records(option, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before, account = seen(folder), Ledger(FILENAME).account("records")
    options = {"--out": "fresh", option: "records/new"}
    arguments = [text for pair in options.items() for text in pair]
    result = CliRunner().invoke(cli, [*VERBS["release"], *arguments])
    assert result.exit_code == 2
    assert "lies in the folder of the records 'records'" in result.stderr
    assert seen(folder) == before
    assert Ledger(FILENAME).account("records") == account


@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_what_is_no_file_is_no_ledger(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("records.csv").write_text(CSV)
    path = output(kind, "")
    arguments = ["ledger", "records.csv", "--ledger", str(path), "--limit-record-rho", "1"]
    try:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 2
        assert "it is no file" in result.stderr
    finally:
        path.unlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_under_standard_output_is_told_on_the_other(more, folder, monkeypatch, capsys):
    """And nobody is led to run again what was done already."""
    monkeypatch.chdir(folder)
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(full, write_through=True))
        with pytest.raises(SystemExit) as stop:
            cli.main([*VERBS["show"], *more])
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert "standard output (No space left on device); what was done before stays done" in told
    assert told.count("\n") == 1
