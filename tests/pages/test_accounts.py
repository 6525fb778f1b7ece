"""Every way from one account of a shared server into another's, tried."""

import io
import zipfile
from types import SimpleNamespace

import pytest

import rpexplore as rp
from pages.components.shared import autosave
from rpexplore.domain import area_tree_file
from rpexplore.domain.area_tree_file import parquet_of_tree
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project, content_of, name_of_areas
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving import accounts
from rpexplore.serving.accounts import (
    BROWSER_COOKIE,
    HOURS_LOGGED_IN,
    Account,
    account_of_browser,
    account_of_claims,
)
from tests.pages.conftest import App

NOW = 1_800_000_000
CLAIMS = {"iss": "https://login", "sub": "ada", "iat": NOW, "nonce": "n"}
ADA, BEN = Account("a" * 64), Account("b" * 64)


@pytest.fixture(autouse=True)
def _now(monkeypatch):
    monkeypatch.setattr(accounts, "time", SimpleNamespace(time=lambda: NOW))
    monkeypatch.setattr(accounts, "_ended", set())


@pytest.fixture
def become(plan_only, monkeypatch):
    """On a shared server: who the session's account is from now on."""
    plan_only()
    return lambda account: monkeypatch.setattr(autosave, "account", lambda: account)


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def folder(**changed) -> str | None:
    account = account_of_claims({**CLAIMS, **changed})
    return account and account.folder


def test_an_account_is_issuer_and_subject_and_nothing_else():
    assert folder() == folder(email="x@y", name="Ben", nonce="m", aud="z", iat=NOW - 5)
    others = [
        folder(sub="ben"),
        folder(iss="https://other"),
        folder(iss="https://logina", sub="da"),
    ]
    assert len({folder(), *others, account_of_browser({BROWSER_COOKIE: "k" * 43}).folder}) == 5
    assert all(len(other) == 64 for other in others)


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": None},
        {"iss": ""},
        {"sub": None},
        {"sub": ""},
        {"sub": ["ada"]},
        {"iat": None},
        {"iat": "now"},
        {"iat": NOW - HOURS_LOGGED_IN * 3600},
        {"iat": NOW + 3600},  # which would last longer
        {"iat": float("nan")},
    ],
)
def test_who_is_not_logged_in_has_no_account(changed):
    assert folder() is not None
    assert folder(**changed) is None


def test_an_account_is_told_to_its_session_whole():
    account = account_of_claims({**CLAIMS, "name": "Ada Ü\nx: y"})
    assert account is not None
    assert account.header.isascii()
    assert account.header.isprintable()
    assert Account.of_header(account.header) == account
    browser = account_of_browser({BROWSER_COOKIE: "k" * 43})
    assert browser is not None
    assert Account.of_header(browser.header) == browser


@pytest.mark.parametrize("key", ["", "k" * 42, "k" * 44, "../" + "k" * 40, "k" * 42 + "\n", None])
def test_a_browser_without_a_whole_key_has_no_account(key):
    assert account_of_browser({BROWSER_COOKIE: key}) is None


@pytest.mark.parametrize("name", ["", "..", "a" * 63, "A" * 64, "../" + "a" * 61, "a" * 64 + "\n"])
def test_a_folder_of_an_account_has_no_other_name(name):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        Autosaves.of_account(name)


def test_a_key_in_the_address_opens_nothing_of_another_account(app, become, small):
    become(ADA)
    ada = app("plan", small)
    ada.text_input(key="typed budget").set_value("0.25").run()
    key = ada.query_params["project"]
    assert Autosaves.of_account(ADA.folder).keys() == [key]
    become(BEN)
    for asked in (key, f"../{ADA.folder}/{key}", f"../../accounts/{ADA.folder}/{key}"):
        ben = App("plan", asked)
        assert ben.query_params["project"] != asked
        assert ben.project != ada.project
    assert not autosave.take_saved(key)
    become(ADA)
    assert App("plan", key).project == ada.project
    assert App("plan").project == ada.project  # the last one, on any browser


def test_a_session_that_another_account_takes_over_begins_anew(app, become, small):
    become(ADA)
    stolen = app("plan", small)
    become(BEN)
    stolen.run()
    assert stolen.project != Project((small,))
    assert stolen.project == autosave.new_project()


def test_areas_are_given_to_their_account_alone(become, tmp_path, monkeypatch):
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home"))
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
    domain = rp.Domain.from_sizes({"age": 10})
    study = AreaStudy.of("areas.json", rp.AreaCodebook("home", tree, domain))
    project = Project((Scenario(domain, areas=study),))
    text, whole = project.text(), content_of(project)
    become(ADA)
    of_ada = autosave.autosaves()
    of_ada.save_areas(project)
    of_ada.save("0" * 32, text, None)
    opened = of_ada.read("0" * 32)
    assert opened is not None
    assert opened.project.current.areas.areas.tree.sha256 == tree.sha256  # in memory from now on

    become(BEN)
    for upload, name in (
        (text.encode(), "project.json"),
        (zipped({"project.json": text.encode()}), "project.zip"),
    ):
        known = autosave.project_of_upload(upload, name).current.areas.areas
        assert not known.is_read
        with pytest.raises(RpexploreError, match="give it again"):
            _ = known.tree
    fake = parquet_of_tree(rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"122"]}))
    for content in (fake, b"", b"junk"):
        forged = {"project.json": text.encode(), name_of_areas(tree.sha256): content}
        with pytest.raises(RpexploreError, match="damaged areas"):
            autosave.project_of_upload(zipped(forged), "project.zip")
    # Saved, and read again as one's own.
    of_ben = autosave.autosaves()
    of_ben.save("1" * 32, text, None)
    assert not of_ben.has_tree(tree.sha256)
    saved = of_ben.read("1" * 32)
    assert saved is not None
    assert not saved.project.current.areas.areas.is_read
    # Who has the file has the areas.
    assert autosave.project_of_upload(whole, "project.zip").current.areas.areas.is_read
    assert of_ben.has_tree(tree.sha256)
    assert area_tree_file._in_memory
