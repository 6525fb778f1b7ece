"""Releases without CSV files."""

from pathlib import Path

import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.finished_release import Release
from rpexplore.releases.release import release, resume
from rpexplore.releases.table_release import TableRelease
from tests.releases.table_plan import PLAN
from tests.support.sealed import edit_manifest


def files_in(folder: Path) -> dict[Path, bytes]:
    """The files but those that say when they were made, or how."""
    files = {path.relative_to(folder): path for path in folder.rglob("*.*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if name.name not in ("manifest.json", "README.md")
    }


def test_a_release_without_csv_files_has_all_the_rest(planned, data, output, without_noise):
    release(planned, data, output)
    lean = release(planned, data, output.with_name("lean"), parquet_only=True)
    expected = {path: text for path, text in files_in(output).items() if path.suffix != ".csv"}
    assert files_in(lean.folder) == expected
    assert Release.load(lean.folder).manifest == lean.manifest
    assert "csv" not in (lean.folder / "README.md").read_text().lower()
    if planned is PLAN:
        assert "one table, as Parquet, one row a cell" in (lean.folder / "README.md").read_text()


def test_a_release_has_all_csv_files_or_none(data, output, without_noise):
    release(PLAN, data, output)
    name = next(path.name for path in (output / "tables").glob("*.csv"))
    (output / "tables" / name).unlink()
    edit_manifest(
        output,
        lambda manifest: manifest.update(
            files=[entry for entry in manifest["files"] if not entry["path"].endswith(name)]
        ),
    )
    with pytest.raises(ReleaseError, match="lists other files"):
        TableRelease.load(output)


def test_a_run_that_is_finished_later_is_without_csv_files_as_well(data, output, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.table_release.TableWriter.table", stop)
        with pytest.raises(KeyboardInterrupt):
            release(PLAN, data, output, parquet_only=True)
    resume(output)
    assert not list(output.rglob("*.csv"))
    TableRelease.load(output)
