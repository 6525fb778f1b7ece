"""Releases whose neighbours replace records: what they say, and that kinds do not add up."""

import json
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.measurement_source import MeasurementSource, guarantee, refuse_unlike

DOMAIN = rp.Domain.from_sizes({"a": 3, "b": 2})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)


def plan_for(neighbours: str, rho: str = "0.1") -> rp.Plan:
    budget = rp.Budget(rho=rho, neighbours=neighbours)
    return rp.plan(TABLES, loss=rp.SumOfVariances(), budget=budget)


REPLACED, ADDED = plan_for("replace"), plan_for("add-remove")


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text("a,b\n" + "0,1\n1,0\n2,1\n" * 100)
    return path


def test_a_release_has_the_number_of_records_and_says_what_is_protected(data, tmp_path):
    released = rp.release(REPLACED, data, tmp_path / "out")
    assert float(released.part("tables").table(()).iloc[0]["value"]) == 300
    assert sum(released.part("tables").table("a")["value"]) == pytest.approx(300)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["neighbours"] == "replace"
    assert "The number of records is public" in (tmp_path / "out" / "README.md").read_text()
    (entry,) = Ledger.beside(data).account(data).entries
    assert (entry.kind.kind, entry.record_rho) == ("replace", REPLACED.record_rho)


def test_a_folder_that_hides_its_neighbours_is_refused(data, tmp_path):
    rp.release(REPLACED, data, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"neighbours": "replace",\n', ""))
    with pytest.raises(ReleaseError):
        rp.Release.load(tmp_path / "out")


@pytest.mark.parametrize(("first", "second"), [(REPLACED, ADDED), (ADDED, REPLACED)])
def test_kinds_of_neighbours_are_not_added_up_in_a_ledger(data, tmp_path, first, second):
    rp.release(first, data, tmp_path / "one")
    # 4 · 0.1 + 0.1, whichever came first.
    with pytest.raises(
        LedgerError, match=r"would promise ρ = 0\.5 for one record, replaced \("
    ) as no:
        rp.release(second, data, tmp_path / "two")
    assert "nothing about one that is added or removed" in str(no.value)
    assert not (tmp_path / "two").exists()
    with pytest.raises(LedgerError, match="not added up"):
        Ledger.beside(data).book(data, second, tmp_path / "two")
    rp.release(first, data, tmp_path / "again")
    assert Ledger.beside(data).account(data).spent_record_rho == 2 * first.record_rho


def test_kinds_of_neighbours_are_not_combined():
    sources = [
        MeasurementSource(kind, kind * 10, plan.rho, plan_sha256="1", run=kind, neighbours=kind)
        for kind, plan in (("replace", REPLACED), ("add-remove", ADDED))
    ]
    with pytest.raises(ReleaseError, match="only releases of one kind of neighbours"):
        refuse_unlike(sources)
    assert MeasurementSource.from_json(sources[0].to_json()) == sources[0]
    assert "replacing it by any other changes" in guarantee(sources[:1])
