"""The folder of a release of queries: complete, told apart from others, and silent."""

import json
import logging

import pyarrow.parquet as pq
import pytest

import rpexplore
from rpexplore import Budget, SumOfVariances, Workload
from rpexplore.errors import ReleaseError
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from tests.releases.table_plan import QUERIES, SECRET, entries
from tests.releases.table_plan import QUERY_PLAN as PLAN
from tests.support.query_lists import query_plan


def test_the_folder_holds_everything_and_hashes_tell_changes(data, output):
    done = release(PLAN, data, output)
    assert entries(output) == ["README.md", "counts", "manifest.json", "plan.json"]
    answers = ["answers.csv", "answers.parquet", "measurements.parquet"]
    assert entries(output / "counts") == answers
    names = ["README.md", "plan.json", *(f"counts/{name}" for name in answers)]
    assert output.stat().st_mode & 0o777 == data.parent.stat().st_mode & 0o777
    assert (output / "plan.json").read_text() == PLAN.text
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest == done.manifest
    assert manifest["rho"] == rpexplore.common.numbers.exact_text(PLAN.rho)
    assert sorted(entry["path"] for entry in manifest["files"]) == sorted(names)
    readme = (output / "README.md").read_text()
    assert "3 own counts over the 6 cells of\n`sex` × `age`" in readme
    assert "zCDP" in readme
    for name in names:
        file = output / name
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        with pytest.raises(ReleaseError, match="was changed"):
            QueryRelease.load(output)
        file.write_bytes(content)
    QueryRelease.load(output)


def test_releases_of_tables_and_of_queries_are_told_apart(data, output):
    release(PLAN, data, output)
    with pytest.raises(ReleaseError, match="holds own counts, and no tables; name"):
        TableRelease.load(output)
    tables = rpexplore.plan(
        Workload.all_up_to(QUERIES.domain, 1), loss=SumOfVariances(), budget=Budget(rho=1)
    )
    release(tables, data, output.with_name("tables"))
    with pytest.raises(ReleaseError, match="holds tables, and no own counts; name"):
        QueryRelease.load(output.with_name("tables"))
    with pytest.raises(ReleaseError, match="not a finished release"):
        QueryRelease.load(data.parent)


def test_nothing_private_is_logged_printed_or_stored(tmp_path, output, caplog, capfd):
    """41,357 records, of which 41,353 fall in one cell; noise makes equality a rare chance."""
    caplog.set_level(logging.DEBUG)
    data = tmp_path / "folder-of-secrets" / "records-of-secrets.csv"
    data.parent.mkdir()
    data.write_text(f"sex,age,{SECRET}\n" + "f,0,zz\n" * 41_353 + "m,8,zz\n" * 4)
    planned = query_plan(QUERIES, budget=Budget(rho="1e-9"))
    shown = []
    release(planned, data, output, on_progress=lambda doing, share: shown.append(doing))
    captured = capfd.readouterr()
    texts = [captured.out, captured.err, *shown, *(r.getMessage() for r in caplog.records)]
    texts += [(output / name).read_text() for name in ("README.md", "plan.json")]
    texts.append((output / "counts" / "answers.csv").read_text())
    digits_by_chance = {"files": [], "run": "", "sha256": ""}
    texts.append(
        json.dumps({**json.loads((output / "manifest.json").read_text()), **digits_by_chance})
    )
    for path in output.rglob("*.parquet"):
        assert b"secrets" not in path.read_bytes()
        assert set(pq.ParquetFile(path).metadata.metadata or {}) <= {b"ARROW:schema"}
    for word in (SECRET, "41353", "41357", "secrets"):
        assert not any(word in text for text in texts)
