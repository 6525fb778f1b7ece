"""A run that stops behind its pilot in the app: the forecast from its figures, and the rest."""

from fractions import Fraction

import pytest

import rpexplore as rp
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.pilot import pilot_folder
from tests.pages.conftest import confirmed_run, finish, plain, set_up


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
    made = rp.Forecast(session.planned, rp.pilot_tables(pilot_folder(output)))
    assert made.describe() in plain(session.texts("markdown"))
    account = Ledger.beside(records).account(records)
    finish(session.press("Go on"))
    assert session.success[0].value.startswith("Finished: 67 noisy tables. Nothing further")
    assert Ledger.beside(records).account(records).spent_record_rho == account.spent_record_rho
    assert rp.Release.load(output).plan.sha256 == pilot.plan.part("tables").pilot_of
