"""A shared server that plans only: no page reads a path, takes records or runs a release."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from rpexplore.common.installation import sample_data_folder
from rpexplore.common.server import ServerSettings
from rpexplore.domain.domain import Domain
from rpexplore.scenarios.examples import EXAMPLES, sample_project
from rpexplore.serving.sessions import HAND_OVER
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import TITLES, VIEWS, VIEWS_OF_LINES, plain

ROOT = Path(__file__).parents[2]
REMOVED = ("release", "results")
PAGES = {page: title for page, title in TITLES.items() if page not in REMOVED}
PAGES["handover"] = HAND_OVER


@pytest.fixture
def planning_only(plan_only):
    """The app as a server that plans only has it."""
    plan_only()


@pytest.fixture
def everything():
    """A scenario with tables, expected counts, queries and areas."""
    example, areas = EXAMPLES[0].scenario, sample_project().current.areas
    sexes = Domain((example.domain["sex"],))
    stated = stated_from_text(sexes, '"everybody": total ± 20')
    return example.replaced(query_list=stated, areas=areas)


def test_from_a_codebook_to_the_plan_that_is_handed_over(app, planning_only):
    session = app("home")
    session.press("Start with a codebook")
    assert session.title[0].value == "Data"
    codebook = (sample_data_folder() / "household.json").read_bytes()
    session.file_uploader(key="codebook").upload("household.json", codebook).run()
    assert len(session.scenario.domain) == 11
    session.open("workload").open("plan")
    assert not session.error
    assert "All changes are saved on the server." in session.texts("caption")
    session.open("handover")
    assert session.title[0].value == HAND_OVER
    assert "rpexplore approve plan.json --key KEY" in session.code[0].value
    assert "rpexplore release plan.json data.csv --out folder" in session.code[0].value
    said = plain(session.texts("markdown"))
    assert session.planned.sha256 in said
    assert "no records come to this server" in said
    labels = {button.proto.label for button in session.get("download_button")}
    assert {"Download plan and report (.zip)", "Download plan.json"} <= labels
    assert not any("Run the release" in button.label for button in session.button)
    session.unfold("board notes")
    session.text_area(key="decision").set_value("Approved.").run()
    assert session.scenario.board.decided_on == session.planned.sha256


@pytest.mark.parametrize(
    "names",
    [("home", "codebook", "plan", "handover"), pytest.param(PAGES, marks=pytest.mark.nightly)],
    ids=["some pages", "all pages"],
)
def test_no_page_takes_or_tells_a_path(names, app, planning_only, everything, tmp_path):
    session = app("home", everything)
    for view in session.pages({name: PAGES[name] for name in names}):
        said = str(session.main)
        for text in (str(tmp_path), str(ROOT), "this computer", "ledger.sqlite"):
            assert text not in said, (view, text)
        for field in (*session.text_input, *session.text_area):
            assert "path" not in field.label.lower(), view
            assert "folder" not in field.label.lower(), view


EVERY_PAGE = """
import sys
from streamlit.testing.v1 import AppTest
from rpexplore.analysis import populations

populations.N_POPULATIONS = 4  # as in `app`
session = AppTest.from_file("app.py", default_timeout=600).run()
for page, views in {shown!r}.items():
    session.switch_page(f"pages/{{page}}.py").run()
    assert not session.exception, (page, session.exception)
    for view in views:
        session.session_state[page] = view
        session.run()
        assert not session.exception, (page, view)
for page in {removed!r}:  # their files, as if they were the app, and in their addresses
    removed = AppTest.from_file(f"pages/{{page}}.py", default_timeout=600)
    removed.session_state["project"] = session.session_state["project"]
    removed.session_state["data path"] = "/etc/passwd"
    removed.run()
    assert "plans only" in removed.info[0].value
    assert not removed.text_input
barred = (
    "rpexplore.releases.ledger", "rpexplore.releases.release", "rpexplore.data.engines",
    "rpexplore.releases.charged_run", "pages.components.release.page",
)
print([name for name in sys.modules if name in barred or name.startswith(barred[0])])
"""


SHOWN = {page: VIEWS.get(page, ()) for page in PAGES} | dict(VIEWS_OF_LINES.values())


@pytest.mark.parametrize(
    "shown",
    [
        dict.fromkeys(("codebook", "plan", "handover"), ()),
        pytest.param(SHOWN, marks=pytest.mark.nightly),
    ],
    ids=["some pages", "all views"],
)
def test_what_reads_records_or_ledgers_is_never_imported(shown, tmp_path):
    environment = {**os.environ, **ServerSettings(planning_only=True).variable}
    environment["RPEXPLORE_HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", EVERY_PAGE.format(shown=shown, removed=REMOVED)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stderr[-2000:]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("survey.sav", b"$FL2@(#) SPSS DATA FILE"),
        ("survey.json", b"$FL2@(#) SPSS DATA FILE"),
        ("survey.csv", b"PAR1 and so on"),
        ("survey.csv", b"age,sex\n12,F\n13,M\n"),
    ],
)
def test_a_box_refuses_records_and_keeps_nothing_of_them(
    app, planning_only, small, name, content, monkeypatch
):
    managers = []
    remove = MemoryUploadedFileManager.remove_file

    def removing(manager, *given):
        remove(manager, *given)
        managers.append(manager)

    monkeypatch.setattr(MemoryUploadedFileManager, "remove_file", removing)
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("A file").run()
    assert "are not taken. Make the codebook where they are" in plain(session.texts("caption"))
    session.file_uploader(key="codebook").upload(name, content).run()
    if session.error:  # else the box itself has refused it, by its ending
        assert "this server takes n" in plain(session.texts("error"))
        assert "codebook.json" in plain(session.texts("error"))
        assert [*managers[-1].file_storage.values()] == [{}]
    else:
        assert name.endswith(".sav")
    assert session.scenario == small
    assert "columns to take" not in [box.key for box in session.multiselect]
