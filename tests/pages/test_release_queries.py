"""The release of a list of queries, without tables, in the app."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import confirmed_run, finish, plain, set_up


def test_a_list_of_queries_alone_is_checked_run_and_shown(app, small, tmp_path):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    stated = stated_from_text(domain, "everybody: total ± 50\nold: age >= 8 ± 20")
    records, output = tmp_path / "survey.csv", tmp_path / "answers"
    records.write_text("sex,age\n" + "1,9\n" * 30 + "0,3\n" * 70)
    session = app("release", small.replaced(query_list=stated, asks_for_tables=False))
    set_up(session, records, output)
    assert any("The plan: 2 noisy own counts, ρ = " in text for text in session.texts("markdown"))
    session.press("Dry run")
    assert any("All is in order" in text for text in session.texts("success"))
    assert not output.exists()
    finish(confirmed_run(session))
    assert not session.exception
    released = Release.load(output)
    assert [part.kind for part in released.plan.parts] == ["counts"]
    assert released.plan.budget == small.budget  # all of it is for own counts
    done = released.part("counts")
    shown = session.open("results").dataframe[0].value
    assert shown["answer"].tolist() == done.answers["answer"].tolist()
    # 100 people, 30 of them old: farther out with probability 1e-11.
    assert shown["wanted"].tolist() == ["±50 at 95 %", "±20 at 95 %"]
    assert set(shown["quality"]) <= set("ABCDE")
    errors = done.answers["standard_error"]
    assert np.all(np.abs(done.answers["answer"] - [100, 30]) < 6.8 * errors)
    (entry,) = Ledger.beside(records).account(records).entries
    assert (entry.state, entry.record_rho) == ("finished", released.plan.record_rho)
    assert str(output) in plain(session.texts("caption"))


@pytest.mark.nightly
def test_a_stopped_release_of_queries_is_finished_without_further_cost(
    app, small, tmp_path, monkeypatch
):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    stated = stated_from_text(domain, "everybody: total ± 50")
    records, output = tmp_path / "survey.csv", tmp_path / "answers"
    records.write_text("sex,age\n" + "1,9\n" * 30)
    session = app("release", small.replaced(query_list=stated, asks_for_tables=False))
    set_up(session, records, output)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.query_release.QuerySteps.write", full)
        finish(confirmed_run(session))
    assert any("No space left" in text for text in session.texts("error"))
    session.press("Finish it without further cost")
    assert plain(session.texts("success")).startswith(
        "Finished: 1 noisy own count. Nothing further was charged. The files are in "
    )
    assert len(Release.load(output).part("counts").answers) == 1
    (entry,) = Ledger.beside(records).account(records).entries
    assert entry.state == "finished"
