"""A run that stops behind its pilot in the app: the forecast from its figures, and the rest."""

from fractions import Fraction

import pytest

import rpexplore as rp
from rpexplore.analysis.most_people import plan_of_rest
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.pilot import pilot_folder, plan_behind_pilot
from rpexplore.releases.release import release
from rpexplore.results.pilot_tables import pilot_tables
from tests.pages.conftest import App, confirmed_run, finish, plain, set_up
from tests.support.stopped_runs import killed


@pytest.mark.nightly
def test_a_run_stops_behind_its_pilot_and_goes_on(app, records, tmp_path):
    session, output = app("release"), tmp_path / "out"
    session.scenario = session.scenario.replaced(pilot=Fraction(1, 20), public=())
    set_up(session, records, output)
    session.checkbox(key="pilot only").check().run()
    finish(confirmed_run(session))
    assert "The pilot is released" in session.success[0].value
    assert not output.exists()
    pilot = rp.Release.load(pilot_folder(output))
    made = rp.Forecast(session.planned, pilot_tables(pilot_folder(output)))
    assert made.describe() in plain(session.texts("markdown"))
    account = Ledger.beside(records).account(records)
    finish(session.press("Go on"))
    assert session.success[0].value.startswith("Finished: 67 noisy tables. Nothing further")
    assert Ledger.beside(records).account(records).spent_record_rho == account.spent_record_rho
    assert rp.Release.load(output).plan.sha256 == pilot.plan.part("tables").pilot_of


@pytest.fixture
def asking(app, small, tmp_path) -> App:
    """A session on the Plan page that has chosen a pilot, and to plan the rest from it."""
    session = app("plan", small)
    session.toggle(key="pilot").set_value(True).run()
    session.toggle(key="rest").set_value(True).run()
    return session


def test_a_share_that_no_pilot_can_have_is_refused_beside_its_field(asking):
    for typed in ("0", "100"):
        asking.text_input(key="pilot share").set_value(typed).run()
        assert f"above 0 % and below 100 % of the budget, got {typed}%" in plain(
            asking.texts("error")
        )
        assert asking.scenario.pilot == Fraction(1, 50)


def test_the_rest_is_planned_accepted_and_drawn_behind_a_reload(asking, app, tmp_path):
    assert not asking.error
    scenario = asking.scenario
    assert (scenario.pilot, scenario.rest_objective) == (Fraction(1, 50), rp.RestObjective("0.2"))
    assert "the rest is then planned anew" in plain([one.value for one in asking.info])
    assert "Proven optimal for the present weights." in plain(asking.texts("markdown"))
    path, output = tmp_path / "data" / "survey.csv", tmp_path / "out"
    path.parent.mkdir()
    lines = [f"{i % 10},{i % 2},{i % 5}" for i in range(300)]
    path.write_text("\n".join(["age,sex,region", *lines, "0,0,0"]))
    set_up(asking.open("release"), path, output)
    finish(confirmed_run(asking))
    assert "The pilot is released" in asking.success[0].value
    first = scenario.plan()
    rest = plan_of_rest(first, pilot_tables(pilot_folder(output)))
    assert rest.sha256 in plain(asking.texts("caption"))
    # The page is closed, and a new session, of another scenario, goes on from the folder.
    session = set_up(app("release"), path)
    assert "its pilot is released" in plain(session.texts("warning"))
    session.press("Go on from its pilot")
    assert not session.error
    assert rest.sha256 in plain(session.texts("caption"))
    finish(session.press("Accept this plan and draw the rest"))
    assert session.success[0].value.startswith("Finished: 7 noisy tables. Nothing further")
    assert rp.Release.load(output).plan.sha256 == rest.sha256
    (entry,) = Ledger.beside(path).account(path).entries
    assert (entry.state, entry.plan_sha256) == ("finished", first.sha256)


@pytest.mark.nightly
def test_an_accepted_rest_that_was_killed_is_gone_on_with(asking, app, tmp_path):
    """Another plan than the page would make now: the one in the folder is used."""
    first, path, output = asking.scenario.plan(), tmp_path / "survey.csv", tmp_path / "out"
    path.write_text("age,sex,region\n" + "1,1,1\n2,0,3\n" * 20)
    release(first, path, output, pilot_only=True)
    tables = first.part("tables")
    best = rp.plan(tables.workload, loss=rp.SumOfVariances(), budget=tables.budget)
    (entry,) = Ledger.beside(path).account(path).entries
    accepted = on_top_of_pilot(first, best.part("tables"), entry.pilot_sha256)
    accepted.save(tmp_path / "rest.json")
    killed("rpexplore.releases.measurement_file.Draft.add", 1, tmp_path / "rest.json", path, output)
    assert plan_behind_pilot(output).sha256 == accepted.sha256
    session = set_up(app("release"), path)
    session.press("Go on from its pilot")
    assert "accepted before" in plain(session.texts("markdown"))
    finish(session.press("Go on: draw the rest"))
    assert rp.Release.load(output).plan.sha256 == accepted.sha256
