"""Scenarios with areas or own counts beside tables, and with one section alone, on every page."""

import json
import time
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.privacy.conversions import rho_text
from rpexplore.queries.definitions import StatedQueries
from rpexplore.releases.release import Release
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario
from tests.pages.conftest import finish, open_dialog, plain, set_up
from tests.pages.test_areas import CODEBOOK, TOWNS
from tests.support.processor_time import PATIENCE

PEOPLE = [("N|1", "F")] * 40 + [("N|2", "M")] * 30 + [("S|1", "F")] * 20
BOOK = AreaCodebook.from_files(json.dumps(CODEBOOK).encode(), "register.json", {"towns.csv": TOWNS})
AREAS = AreaStudy.of("register.json", BOOK)
COUNTS = StatedQueries.of(rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5]))
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


@pytest.mark.parametrize("asked", [WITH_AREAS, ALL], ids=lambda asked: asked.name)
def test_areas_beside_others_are_planned_released_and_read(app, tmp_path, asked):
    whole = asked.plan()
    session = app("plan", asked)
    settled(session, lambda page: any("Section" in frame.value for frame in page.dataframe))
    sections = next(frame.value for frame in session.dataframe if "Section" in frame.value)
    assert len(sections) == len(asked.kinds)
    assert session.metrics()["Privacy of the whole plan"] == "ρ = 0.1"
    session.open("areas")
    session.show("areas", "Plan")
    print(session.metrics())
    assert session.metrics()["Privacy"] == rho_text(whole.part("areas").rho, 3)
    for view in ("Levels", "Tables", "By area", "Map (optional)"):
        session.query_params["areas"] = view
        session.show("areas", view)
    records, output = tmp_path / "people.csv", tmp_path / "towns"
    records.write_text("".join(f"{','.join(row)}\n" for row in [("home", "sex"), *PEOPLE]))
    session.open("release")
    set_up(session, records, output)
    session.press("Dry run")
    print(session.texts("error"), session.texts("success"))
    assert any("All is in order" in text for text in session.texts("success"))
    print(plain(open_dialog(session).texts("markdown")))
    finish(session.press("Spend"))
    assert not session.exception
    print(session.texts("success"))
    done = Release.load(output)
    assert done.plan.sha256 == whole.sha256
    session.open("results")
    assert not session.exception
    print(
        session.texts("markdown"), session.texts("subheader"), [t.label for t in session.get("tab")]
    )
