"""Runs of a rest whose notes are taken away: no pilot is drawn twice, no rest is of two plans."""

import shutil
from functools import partial
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.analysis.forecast import public_tables_among
from rpexplore.analysis.most_people import plan_of_rest
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.errors import LedgerError, PlanError, ReleaseError, WorkloadError
from rpexplore.planning.plan import load_plan
from rpexplore.releases import charged_run, large_tables
from rpexplore.releases import release as release_module
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.measurement import check_measurable
from rpexplore.releases.pilot import plan_behind_pilot
from rpexplore.releases.release import release, resume
from tests.releases.table_plan import CSV, runs
from tests.releases.test_pilot_release import drawn, unfinished
from tests.releases.test_pilot_rest import FIRST, OTHER, REST, TABLES, behind, stating

WHOLE = rp.plan(rp.Request(tables=TABLES, budget=rp.Budget(rho="1/2"), pilot="5%"))


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    path.write_text(CSV)
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "out"


def test_a_rest_that_was_made_from_another_pilot_is_not_drawn(data, output, tmp_path):
    """Of two data sets under one plan; of what earlier versions made; of a pilot not yet drawn."""
    before = tmp_path / "data before" / "records.csv"
    before.parent.mkdir()
    before.write_text(CSV)
    for records, folder in ((before, tmp_path / "before"), (data, output)):
        with pytest.raises(ReleaseError, match=r"of which none into .* is under way"):
            release(REST, records, folder)
        release(FIRST, records, folder, pilot_only=True)
    of_other, unstated = behind(tmp_path / "before", REST), stating(REST, "")
    pilot = drawn(unfinished(output))
    refused = {
        r"made from the figures of another pilot .* forecast .*out --rest FILE\.": of_other,
        r"does not state which pilot's figures it was made from; plan the rest": unstated,
    }
    for said, plan in refused.items():
        for run in (rp.dry_run, release):
            with pytest.raises(ReleaseError, match=said) as caught:
                run(plan, data, output)
            assert caught.value.says_charge
    assert drawn(unfinished(output)) == pilot
    assert load_plan(unfinished(output) / "plan.json").sha256 == FIRST.sha256
    with pytest.raises(PlanError, match="from the figures of one pilot and nothing else"):
        plan_of_rest(FIRST, [PublicTable(ExpectedCounts.of_total(5))])


def test_a_dry_run_refuses_a_first_plan_and_a_pilot_as_the_run_does(data, output):
    plain = rp.plan(rp.Request(tables=TABLES, budget=rp.Budget(rho="1/2")))
    for run in (rp.dry_run, release):
        with pytest.raises(ReleaseError, match="release the pilot alone"):
            run(FIRST, data, output)
        with pytest.raises(ReleaseError, match="has no pilot"):
            run(plain, data, output, pilot_only=True)
    assert rp.dry_run(FIRST, data, output, pilot_only=True).findings


def test_a_rest_that_an_earlier_version_began_goes_on_and_claims_no_pilot(data, output):
    release(FIRST, data, output, pilot_only=True)
    unstated = stating(REST, "")
    unstated.save(unfinished(output) / "plan.json")
    assert plan_behind_pilot(output).sha256 == FIRST.sha256  # to be planned again
    (unfinished(output) / "run" / "rest").write_text(unstated.sha256)
    assert plan_behind_pilot(output).sha256 == unstated.sha256
    release(unstated, data, output)
    said = (output / "README.md").read_text()
    assert "which figures the rest is planned from, this plan does not state" in said
    assert "by the median of a forecast" not in said


@pytest.mark.parametrize("gone", [["draft.json"], ["draft.json", "name"], ["draft.json", "rest"]])
def test_a_pilot_that_was_shown_is_not_drawn_anew_when_its_note_is_gone(data, output, gone):
    release(FIRST, data, output, pilot_only=True)
    rest = behind(output, REST)
    for name in gone:
        (unfinished(output) / "run" / name).unlink(missing_ok=True)
    pilot = drawn(unfinished(output))
    with pytest.raises(ReleaseError, match="is not drawn again"):
        release(rest, data, output)
    assert drawn(unfinished(output)) == pilot  # so that a note from a backup helps
    assert [run.state for run in runs(data)] == ["started"]


def test_what_is_drawn_of_a_rest_is_not_read_by_another_plan_when_its_name_is_gone(
    data, output, monkeypatch
):
    release(FIRST, data, output, pilot_only=True)
    rest, other = (behind(output, plan) for plan in (REST, OTHER))
    write = charged_run._write_parts

    def stopped(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(charged_run, "_write_parts", stopped)
        with pytest.raises(KeyboardInterrupt):
            release(rest, data, output)
    name = unfinished(output) / "run" / "rest"
    noted = name.read_bytes()
    name.unlink()
    for plan in (other, rest):
        with pytest.raises(ReleaseError, match=r"the note by which plan \(run/rest\) is gone"):
            release(plan, data, output)
    name.write_bytes(noted)
    assert release(rest, data, output).plan.sha256 == rest.sha256


def stopped_as_it_writes(plan, data, output) -> None:
    def stop(doing, _):
        if doing == "Writing the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(plan, data, output, on_progress=stop)


def test_of_two_copies_of_a_run_that_drew_apart_one_is_finished(data, output, tmp_path):
    release(FIRST, data, output, pilot_only=True)
    rest, other = (behind(output, plan) for plan in (REST, OTHER))
    copies = [tmp_path / name for name in ("a", "b")]
    shutil.copytree(unfinished(output), tmp_path / "backup")
    stopped_as_it_writes(rest, data, output)
    unfinished(output).rename(unfinished(copies[0]))
    (tmp_path / "backup").rename(unfinished(output))
    stopped_as_it_writes(other, data, output)
    unfinished(output).rename(unfinished(copies[1]))
    assert resume(copies[0]).plan.sha256 == rest.sha256
    with pytest.raises(ReleaseError, match="one charge is for one release"):
        resume(copies[1])
    assert not copies[1].exists()
    assert [run.state for run in runs(data)] == ["finished"]


def test_a_pilot_that_lies_released_is_not_drawn_anew_in_a_copy_from_before(
    data, output, tmp_path, monkeypatch
):
    """Of a folder that was brought back from a backup: two pilots for one charge."""

    def stop(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(release_module, "write_measured", stop)
        with pytest.raises(KeyboardInterrupt):
            release(WHOLE, data, output, pilot_only=True)
    shutil.copytree(unfinished(output), tmp_path / "backup")
    release(WHOLE, data, output, pilot_only=True)
    after = unfinished(output).rename(tmp_path / "after")
    (tmp_path / "backup").rename(unfinished(output))
    with pytest.raises(ReleaseError, match="which is not drawn again") as caught:
        release(WHOLE, data, output)
    assert caught.value.says_charge
    unfinished(output).rename(tmp_path / "before")
    after.rename(unfinished(output))
    release(WHOLE, data, output)
    assert [run.state for run in runs(data)] == ["finished"]


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_run_that_a_copy_has_finished_meanwhile_is_not_released(data, output, is_resumed):
    """Two machines on one ledger ran copies of one unfinished folder: two noises, one charge."""
    release(FIRST, data, output, pilot_only=True)
    (run,), book = runs(data), Ledger.beside(data)
    rest = behind(output, REST)

    def meanwhile(doing: str, _: float) -> None:
        if doing == "Writing the release":
            book.finish(run.id, "0" * 64)

    go_on = partial(release, rest, data)
    if is_resumed:
        stopped_as_it_writes(rest, data, output)
        go_on = resume
    with pytest.raises(ReleaseError, match="one charge is for one release") as caught:
        go_on(output, on_progress=meanwhile)
    assert caught.value.says_charge
    assert not output.exists()
    assert [run.manifest_sha256 for run in runs(data)] == ["0" * 64]
    with pytest.raises(LedgerError, match="another release of this run"):  # at the last moment
        book.finish(run.id, "1" * 64)


def test_the_rest_behind_a_pilot_of_one_record_can_be_planned_with_other_parts():
    """A total of 1, or below, is 1; counts by an attribute add up to a little less in floats."""
    counts = ExpectedCounts(("v",), (("0", "1", "2"),), (0.7, 0.2, 0.1 - 2e-16))
    assert counts.total < 1
    public = PublicTables(rp.Domain.from_sizes({"v": 3}), (PublicTable(counts),))
    assert public_tables_among(public.domain, public).n_records == counts.total
    with pytest.raises(WorkloadError, match=r"at least 1, got 0\.9"):
        PublicTables(public.domain, (), 0.9)


def test_a_rest_is_not_measured_slice_by_slice_as_its_pilot_is_not_looked_at_there(monkeypatch):
    monkeypatch.setattr(large_tables, "MAX_TABLE_CELLS", 5)
    for plan in (FIRST, REST):
        with pytest.raises(ReleaseError, match="a table of a plan with a pilot"):
            check_measurable(plan.part("tables"))
