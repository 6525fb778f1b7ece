"""Scenarios with areas or own counts beside tables, and with one section alone, on every page."""

import io
import json
import shlex
import time
import zipfile
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.common.json_fields import SEAL
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.named_areas import AreaTotals
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import MaxVariance
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.finished_release import Release
from rpexplore.reports.bundle import bundle
from rpexplore.results.estimates.area_guess_errors import guess_errors_of
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import StatedQueries
from tests.pages.conftest import finish, open_dialog, plain, set_up
from tests.pages.test_areas import CODEBOOK, TOWNS
from tests.support.processor_time import PATIENCE

nightly = partial(pytest.param, marks=pytest.mark.nightly)

PEOPLE = [("N|1", "F")] * 40 + [("N|2", "M")] * 30 + [("S|1", "F")] * 20
BOOK = AreaCodebook.from_files(json.dumps(CODEBOOK).encode(), "register.json", {"towns.csv": TOWNS})
AREAS = AreaStudy.of("register.json", BOOK)
COUNTS = StatedQueries.of(rp.QueryList(BOOK.domain, [[0, 1]], ("women",), [5]))
SEX = BOOK.domain
WITH_AREAS = Scenario(SEX, name="Towns", areas=AREAS)
ALL = Scenario(SEX, name="Everything", areas=AREAS, query_list=COUNTS)


def settled(session, done):
    """The page when it has been drawn with what it waits for."""
    deadline = time.monotonic() + PATIENCE
    while not done(session):
        assert not session.exception
        assert time.monotonic() < deadline
        time.sleep(0.05)
        session.run()
    return session


def released(session, folder) -> Release:
    """The plan of the scenario, run on the records of the towns from the Release page."""
    records, output = folder / "people.csv", folder / "towns"
    records.write_text("".join(f"{','.join(row)}\n" for row in [("town", "sex"), *PEOPLE]))
    session.open("release")
    set_up(session, records, output)
    session.press("Dry run")
    assert any("All is in order" in text for text in session.texts("success"))
    open_dialog(session)
    finish(session.press("Spend"))
    assert not session.exception
    return Release.load(output)


@pytest.mark.nightly
@pytest.mark.parametrize("asked", [nightly(WITH_AREAS), ALL], ids=lambda asked: asked.name)
def test_areas_beside_others_are_planned_released_and_read(app, tmp_path, asked):
    whole = asked.plan()
    session = app("plan", asked)
    settled(session, lambda page: any("Part" in frame.value for frame in page.dataframe))
    sections = next(frame.value for frame in session.dataframe if "Part" in frame.value)
    assert len(sections) == len(asked.kinds)
    assert session.metrics()["Privacy of the whole plan"] == "ρ = 0.1"
    session.open("areas")
    session.show("areas", "Plan")
    assert session.metrics()["Privacy"] == rho_text(whole.part("areas").rho, 3)
    for view in ("Levels", "Tables", "By area", "Map"):
        session.show("areas", view)
    assert released(session, tmp_path).plan.sha256 == whole.sha256
    session.open("results")
    assert not session.exception


DIFFERENT = [
    nightly(WITH_AREAS.replaced(name="Towns apart", areas=replace(AREAS, loss=MaxVariance()))),
    ALL.replaced(name="Largest of tables", loss=MaxVariance()),
]


@pytest.mark.nightly
@pytest.mark.parametrize("asked", DIFFERENT, ids=lambda asked: asked.name)
def test_sections_of_different_objectives_ask_for_their_shares(app, asked):
    with pytest.raises(PlanError, match="state the shares"):
        asked.plan()
    session = app("plan", asked)
    for page in ("plan", "areas", "release", "scenarios", "fairness", "tradeoffs", "plan"):
        session.open(page)
        if page == "areas":
            session.show("areas", "Plan")
        assert not session.exception, page
        if page in ("plan", "areas", "release"):
            assert "objective" in plain(session.texts("warning")), page
    for kind in asked.kinds[1:]:
        session.text_input(key=f"share of {kind}").set_value("20")
    session.text_input(key="share of tables").set_value(str(100 - 20 * (len(asked.kinds) - 1)))
    session.press("Use these shares")
    settled(session, lambda page: any("Part" in frame.value for frame in page.dataframe))
    whole = session.scenario.plan()
    assert not session.texts("warning")
    session.open("areas").show("areas", "Plan")
    settled(session, lambda page: "Privacy" in page.metrics())
    assert session.metrics()["Privacy"] == rho_text(whole.part("areas").rho, 3) == "ρ = 0.02"


ALONE = [
    Scenario(rp.Domain.from_sizes({}), name="Counts alone", query_list=COUNTS),
    Scenario(SEX, name="Areas alone", areas=AREAS, asks_for_tables=False),
    nightly(Scenario(SEX, name="Counts, no tables", query_list=COUNTS, asks_for_tables=False)),
]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("asked", ALONE, ids=lambda asked: asked.name)
def test_one_section_alone_is_planned_and_released(app, tmp_path, asked):
    whole = asked.plan()
    session = app("plan", asked)
    for page in ("home", "codebook", "workload", "fairness", "tradeoffs", "scenarios", "plan"):
        session.open(page)
        assert not session.exception, page
    settled(session, lambda page: "Privacy of the whole plan" in page.metrics())
    assert released(session, tmp_path).plan.sha256 == whole.sha256
    session.open("results")
    assert not session.exception


def test_a_project_of_format_1_says_once_that_its_sections_now_share_the_budget(app):
    session = app("home", ALL)
    content = json.loads(Project((ALL,)).text())
    old = {name: value for name, value in content.items() if name != SEAL}
    text = json.dumps(old | {"format_version": 1})
    session.file_uploader(key="project file on home").set_value(
        ("project.json", text.encode(), "application/json")
    ).run()
    assert "now share one budget of" in plain(session.texts("info"))
    session.open("codebook")
    assert "now share one budget of" not in plain(session.texts("info"))
    opened = Project.parse(text)
    assert opened.splits_anew
    assert not Project.parse(opened.text()).splits_anew


def test_what_one_takes_along_is_judged_by_the_counts_of_areas(app):
    expected = rp.ExpectedCounts.of_total(90)
    session = app("release", ALL.replaced(areas=replace(AREAS, expected=expected)))
    export = session.unfold("commands")
    assert not export.exception
    assert "each level and table in areas and each own count" in plain(session.texts("caption"))
    assert "two Parquet files" in plain(session.texts("caption"))


@pytest.mark.nightly
def test_known_totals_of_areas_are_in_forecast_and_report(app, tmp_path, monkeypatch):
    alone = WITH_AREAS.replaced(asks_for_tables=False)
    session = app("areas", alone).show("areas", "Plan")
    box = session.file_uploader(key="file of area totals")
    box.set_value([("t.csv", b"region,total\nN,70\nN,9\n", "text/csv")]).run()
    assert "once more; keep one" in plain(session.texts("error"))
    totals = b"region,total\nN,70\nS,20\n"
    box = session.file_uploader(key="file of area totals")
    box.set_value([("totals.csv", totals, "text/csv")]).run()
    assert "2 totals of areas, of 90 records" in plain(session.texts("caption"))
    (levels,) = (frame.value for frame in session.dataframe if "tables that meet" in frame.value)
    assert levels.set_index("level").loc["region", "people of the median area"] == "20"
    opened = Project.parse(session.session_state["project"].text())
    assert opened.current.areas.totals == totals.decode()  # found again after a reload
    assert opened.current.areas.planned == alone.areas
    session.open("release").unfold("commands")
    commands = session.code[-1].value
    assert "--expected-count 90" in commands
    assert "--expected-areas area-totals.csv" in commands
    # The report is that of the command line.
    plan, known = alone.plan(), AreaTotals.of_file(BOOK.tree, totals, "totals.csv")
    expected = rp.ExpectedCounts.of_total(90)
    guesses = guess_errors_of(plan, expected, alone.cv_limit, known.totals)
    content = bundle(plan, alone, None, (), expected, guesses, known)
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = Path("commands.txt").read_text().splitlines()
    line = next(line for line in lines if line.startswith("rpexplore report"))
    done = CliRunner().invoke(cli, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    assert Path("made.html").read_text() == Path("report.html").read_text()
    assert "Best guesses" in Path("made.html").read_text()


@pytest.mark.nightly
def test_other_scenarios_and_changes_are_looked_at_with_the_share_of_a_section(app):
    session = app("scenarios", ALL)
    session.session_state["project"] = Project((ALL, ALL.replaced(name="Again", shares=())))
    for page in ("scenarios", "tradeoffs", "fairness"):
        session.open(page)
        assert not session.exception, page
    session.open("tradeoffs").show("tradeoffs", "What if")
    session.open("workload").show("workload", "weights")
    assert not session.exception


def test_adaptive_tables_beside_own_counts_need_stated_shares(app):
    expected = rp.ExpectedCounts.of_total(1000)
    session = app("plan", Scenario(SEX, query_list=COUNTS, expected=expected))
    session.query_params["plan"] = "adaptive"
    session.open("release")
    session.radio(key="plan to run").set_value("adaptive").run()
    assert not session.exception
    assert "State the shares" in plain(session.texts("warning"))
    shares = (("tables", Fraction(3, 4)), ("counts", Fraction(1, 4)))
    session.scenario = session.scenario.replaced(shares=shares)
    session.open("release")
    assert not session.exception
    assert "State the shares" not in plain(session.texts("warning"))


@pytest.mark.nightly
def test_adaptive_tables_beside_own_counts_keep_a_stated_epsilon(app):
    domain = rp.Domain.from_sizes({"sex": 2, "age": 2})
    scenario = Scenario(
        domain,
        query_list=StatedQueries.of(rp.QueryList(domain, [[0, 0, 0, 1]], ("old women",), [5])),
        budget=rp.Budget(epsilon=1, delta="1e-6"),
        shares=(("tables", Fraction(3, 4)), ("counts", Fraction(1, 4))),
        expected=rp.ExpectedCounts.of_total(1000),
    )
    session = app("release", scenario)
    session.radio(key="plan to run").set_value("adaptive").run()
    settled(session, lambda shown: "The plan:" in plain(shown.texts("markdown")))
    # At the cost at which Gaussian noise alone proves it, ρ alone proves ε = 1.08.
    assert "(ε = 1 at δ = 1e-6)" in plain(session.texts("markdown"))
