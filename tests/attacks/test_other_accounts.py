"""Attacks by another account of the same machine: what it lays out is not taken for one's own.

In a folder that several people may write to, anybody can make what a run of somebody else would
find: its unfinished folder, its folder of settings, its file of secrets.
"""

import os
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.cli.serve import serve
from rpexplore.common.files import home_folder
from rpexplore.data.engines.connections import connection_named, connection_names
from rpexplore.errors import DataError, ReleaseError, RpexploreError
from rpexplore.planning.strategies import user_cache
from rpexplore.releases import atomic_folder
from rpexplore.releases.atomic_folder import new_folder, unfinished_folder
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import remembered_ledgers
from rpexplore.scenarios.autosave import Autosaves
from tests.releases.table_plan import CSV, PLAN

HOW = {
    "somebody else's": "it belongs to somebody else",
    "open to all": r"others may write to it \(mode 777\)",
    "open to a group": r"others may write to it \(mode 770\)",
}


@pytest.fixture(params=HOW)
def laid(request, monkeypatch):
    """Makes something what another account could have made; called with its path."""

    def lay(path: Path) -> str:
        if request.param == "somebody else's":
            if os.geteuid() == 0:
                os.chown(path, 65534, -1)
            else:
                monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        else:
            path.chmod(0o777 if request.param == "open to all" else 0o770)
        return HOW[request.param]

    return lay


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    path.write_text(CSV)
    return path


def test_an_unfinished_folder_that_no_own_run_has_left_is_not_taken(laid, data, tmp_path):
    output = tmp_path / "out"
    hidden = unfinished_folder(output)
    (hidden / "run").mkdir(parents=True)
    (hidden / "run" / "booked.json").write_text("{}")
    (hidden / "run" / "drawn.json").write_text("{}")
    problem = laid(hidden)
    for refused in (
        lambda: rp.dry_run(PLAN, data, output),
        lambda: rp.release(PLAN, data, output),
        lambda: rp.resume(output),
    ):
        with pytest.raises(ReleaseError, match=f"cannot be used: {problem}"):
            refused()
    assert Ledger.beside(data).account(data).entries == ()
    assert len(list(hidden.rglob("*"))) == 3


def test_an_unfinished_folder_that_appears_after_the_check_is_not_taken(
    laid, tmp_path, monkeypatch
):
    hidden = unfinished_folder(tmp_path / "out")
    hidden.mkdir()
    (hidden / "precious").touch()
    problem = laid(hidden)
    monkeypatch.setattr(atomic_folder, "check_new", lambda *_, **__: None)
    with pytest.raises(ReleaseError, match=problem), new_folder(tmp_path / "out"):
        raise AssertionError
    assert (hidden / "precious").exists()


OF_HOME = {
    "saved projects": Autosaves.of_user,
    "projects of an account": lambda: Autosaves.of_account("0" * 64),
    "strategies": lambda: user_cache.__wrapped__(),
    "remembered ledgers": remembered_ledgers,
    "connections": connection_names,
    "the app": lambda: serve(1, data_folders=[], open_browser=False, say=print),
}


@pytest.mark.parametrize("use", OF_HOME.values(), ids=OF_HOME)
def test_what_is_kept_in_somebody_elses_folder_is_not_taken(use, laid, tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir(0o700)
    monkeypatch.setenv("RPEXPLORE_HOME", str(folder))
    monkeypatch.delenv("RPEXPLORE_NO_CACHE", raising=False)
    problem = laid(folder)
    with pytest.raises(RpexploreError, match=f"cannot be used: {problem}.*RPEXPLORE_HOME"):
        use()
    assert list(folder.iterdir()) == []


def test_a_link_of_somebody_elses_is_not_followed_to_what_is_kept(tmp_path, monkeypatch):
    folder, link = tmp_path / "home", tmp_path / "link"
    folder.mkdir(0o700)
    link.symlink_to(folder)
    monkeypatch.setenv("RPEXPLORE_HOME", str(link))
    assert home_folder() == link
    if os.geteuid() != 0:
        pytest.skip("only the administrator can give a link to somebody else")
    os.chown(link, 65534, -1, follow_symlinks=False)
    with pytest.raises(RpexploreError, match="belongs to somebody else"):
        home_folder()


def test_a_file_of_secrets_is_ones_own(tmp_path, monkeypatch, laid):
    path = tmp_path / "secrets.toml"
    path.write_text('[connections]\nSURVEY = "postgresql://elsewhere/survey"\n')
    path.chmod(0o600)
    monkeypatch.setenv("RPEXPLORE_SECRETS", str(path))
    assert connection_named("SURVEY").url == "postgresql://elsewhere/survey"
    problem = laid(path)
    problem = problem if "belongs" in problem else "must be for its owner alone"
    with pytest.raises(DataError, match=problem):
        connection_named("SURVEY")


def test_settings_of_the_app_are_ones_own(tmp_path, monkeypatch, laid):
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / ".streamlit" / "config.toml"
    settings.parent.mkdir(0o700)
    settings.write_text('[theme]\nfont = "Evil:http://127.0.0.1:9/evil.css"\n')
    settings.chmod(0o600)
    laid(settings)
    with pytest.raises(RpexploreError, match=r"would take settings from .*cannot be trusted"):
        serve(1, data_folders=(), open_browser=False, say=print)


def test_a_folder_that_is_usually_open_to_a_group_is_closed_until_it_has_its_name(tmp_path):
    seen = []
    before = os.umask(0o002)
    try:
        with new_folder(tmp_path / "out") as folder:
            seen.append(folder.stat().st_mode & 0o777)
    finally:
        os.umask(before)
    assert [*seen, (tmp_path / "out").stat().st_mode & 0o777] == [0o700, 0o775]
