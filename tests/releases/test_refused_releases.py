"""Releases that are refused before anything is booked or written."""

import logging
import shutil
import sqlite3
import traceback
from functools import partial

import pytest

from rpexplore import (
    Budget,
    Domain,
    SumOfVariances,
    Workload,
)
from rpexplore.common.numbers import exact_text
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Counts
from rpexplore.errors import (
    DataError,
    DomainError,
    LedgerError,
    PlanError,
    ReleaseError,
)
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import dry_run, release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_folder import postprocess
from tests.releases.table_plan import (
    CSV,
    PLAN,
    SECRET,
    WORKLOAD,
    entries,
    ledger_rows,
    runs,
    tampered,
)

TAMPERED = {  # what is written of the plan otherwise, and what the refusal speaks of
    "less noise": ('"noise_scales":\\[\n"[0-9.]*"', '"noise_scales":[\n"0.5"', "privacy cost"),
    "other variance": ('"variance":1.84[0-9]*', '"variance":1.84', "variance"),
    "lower cost": ('"privacy_cost":"0.9[0-9]*"', '"privacy_cost":"0.9999"', "privacy cost"),
    "higher cost": ('"privacy_cost":"0.9[0-9]*"', '"privacy_cost":"1.0001"', "privacy cost"),
    "huge scale": (
        '"noise_scales":\\[\n"[0-9.]*"',
        f'"noise_scales":[\n"1{"0" * 400}"',
        "size that floats hold",
    ),
    "tiny scale": (
        '"noise_scales":\\[\n"[0-9.]*"',
        f'"noise_scales":[\n"0.{"0" * 400}1"',
        "size that floats hold",
    ),
    "no bound": ('"lower_bound":[0-9.]*', '"lower_bound":0.0', "lower_bound|bound"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_plan_is_refused(what, data, output, forbidden_noise):
    pattern, written, says = TAMPERED[what]
    with pytest.raises(PlanError, match=says):
        release(tampered(PLAN, pattern, written), data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


BAD_CSV = {
    "value": CSV.replace("m,5", f"{SECRET},5"),
    "null": CSV.replace("m,5", ",5"),
    "number": CSV.replace("m,5", "m,987654"),
    "ragged": CSV + f"{SECRET}\n",
    "no column": CSV.replace("sex", SECRET),
    "column twice": CSV.replace("notes", "age"),
    "no header": CSV.partition("\n")[2],
    "nothing": "",
    "other encoding": CSV.replace("m,5", f"{SECRET}é,5").encode("latin-1"),
}


@pytest.mark.parametrize("what", BAD_CSV)
def test_bad_records_are_refused(what, planned, data, output, forbidden_noise, caplog):
    caplog.set_level(logging.DEBUG)
    text = BAD_CSV[what]
    data.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        release(planned, data, output)
    printed = "".join(traceback.format_exception(caught.value))
    for private in (SECRET, "987654", "notes"):
        assert private not in str(caught.value)
        assert private not in printed
    if what in ("value", "no column"):
        assert SECRET in caught.value.on_screen()
    assert not [record for record in caplog.records if record.name.startswith("rpexplore")]
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("name", ["none.csv", "folder.csv", "records.dat", "broken.parquet"])
def test_bad_files_are_refused(name, planned, data, output, forbidden_noise):
    path = data.with_name(name)
    if name == "folder.csv":
        path.mkdir()
    elif name != "none.csv":
        path.write_text(CSV)
    before = entries(data.parent)
    with pytest.raises(DataError):
        release(planned, path, output)
    assert entries(data.parent) == before
    assert entries(output.parent) == []


@pytest.mark.parametrize("other", [{"nobody": "f"}, {"sex": "female-ish"}, {"age": "7"}])
def test_an_unknown_other_is_refused(other, planned, data, output, forbidden_noise):
    with pytest.raises((DataError, DomainError)):
        release(planned, data, output, unknown_values=other)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("what", ["release", "empty folder", "file", "dangling link"])
def test_an_existing_output_is_refused(what, planned, data, output, forbidden_noise):
    if what == "release":
        output.mkdir()
        (output / "manifest.json").write_text("precious")
    elif what == "empty folder":
        output.mkdir()
    elif what == "file":
        output.write_text("precious")
    else:
        output.symlink_to(output.with_name("nowhere"))
    with pytest.raises(ReleaseError, match="already something"):
        release(planned, data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == ["release"]
    if what in ("release", "file"):
        assert "precious" in (output / "manifest.json" if what == "release" else output).read_text()


@pytest.mark.parametrize("what", ["release", "release by a link", "processed tables"])
def test_an_output_within_a_complete_folder_is_refused(what, data, output):
    done = release(PLAN, data, output).part("tables")
    folder = done.folder / "tables" / "more"
    write = partial(release, PLAN, data)
    if what == "release by a link":
        (output.parent / "link").symlink_to(done.folder)
        folder = output.parent / "link" / "more"
    elif what == "processed tables":
        write = partial(postprocess, done, method="nonnegative", rounded=True)
    before = Ledger.beside(data).account(data)
    with pytest.raises(ReleaseError, match=r"\(it lies in '.*/release', which is complete"):
        write(folder)
    assert Ledger.beside(data).account(data) == before
    assert TableRelease.load(done.folder).table_names


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, "file/below", "nul\0"])
def test_an_output_that_cannot_be_made_is_refused(name, planned, data, output, forbidden_noise):
    (output.parent / "file").write_text("precious")
    with pytest.raises(ReleaseError):
        release(planned, data, output.parent / name)
    assert runs(data) == ()
    assert entries(output.parent) == ["file"]


def test_what_cannot_be_measured_is_refused(data, output, forbidden_noise, monkeypatch):
    domain = Domain.from_sizes({"a": 100_000, "b": 20_000})
    huge = plan_tables(
        Workload.of(domain, [("a", "b")]), loss=SumOfVariances(), budget=Budget(rho=1)
    )
    hopeless = plan_tables(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1e-30"))
    for unusable in (huge, hopeless):
        with pytest.raises(ReleaseError):
            release(unusable, data, output)
    crowd = Counts({}, 2**61)
    monkeypatch.setattr(FileSource, "count", lambda *args, **options: crowd)
    with pytest.raises(ReleaseError, match="too many records") as caught:
        release(PLAN, data, output)
    assert str(2**61) not in str(caught.value)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("how", ["rubbish", "a folder", "folder missing", "rubbish amount"])
def test_an_unusable_ledger_is_refused(how, data, output, forbidden_noise, tmp_path):
    path = tmp_path / "ledger.sqlite"
    if how == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    elif how == "a folder":
        path.mkdir()
    elif how == "folder missing":
        path = tmp_path / "none" / "ledger.sqlite"
    else:
        Ledger(path).book(data, PLAN, "out")
        amount = exact_text(PLAN.record_rho)
        ledger_rows(
            Ledger(path), f"UPDATE events SET content = replace(content, '\"{amount}\"', 'rubbish')"
        )
    with pytest.raises(LedgerError):
        release(PLAN, data, output, ledger=path)
    assert entries(output.parent) == []


def test_a_ledger_in_a_folder_that_may_not_be_written_to_is_refused(data, output, monkeypatch):
    """Emulated, since root may write anywhere."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        "rpexplore.releases.ledger.ledger_file.sqlite3.connect",
        lambda path, **options: connect(f"file:{path}?mode=ro", **{**options, "uri": True}),
    )
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", None)
    with pytest.raises(LedgerError, match="can be written to"):
        release(PLAN, data, output)
    assert entries(data.parent) == ["records.csv"]
    assert entries(output.parent) == []


@pytest.mark.parametrize("why", ["bad records", "beyond the limit"])
def test_a_refused_run_notes_no_limit(why, data, output, forbidden_noise):
    """A typing error in the limit must not stay: only a run that is booked says what it is."""
    if why == "bad records":
        data.write_text(BAD_CSV["value"])
    with pytest.raises((DataError, LedgerError)):
        release(PLAN, data, output, limit_rho="0.1" if why == "beyond the limit" else "5")
    assert Ledger.beside(data).account(data).limit_record_rho is None


def test_a_disk_without_room_is_refused_before_the_run_is_booked(
    planned, data, output, monkeypatch
):
    usage = shutil.disk_usage(data.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=100))
    with pytest.raises(ReleaseError, match="kB free"):
        release(planned, data, output)
    assert runs(data) == ()


def test_no_records_at_all_are_released_only_where_they_may_be(
    planned, data, output, forbidden_noise
):
    empty = data.parent / "empty.csv"
    empty.write_text(CSV.splitlines()[0] + "\n", "utf-8")
    with pytest.raises(DataError, match=r"There are no records in .*the option --empty"):
        release(planned, empty, output)
    assert not runs(empty.parent)
    assert not output.exists()
    assert dry_run(planned, empty, output, may_be_empty=True).findings
