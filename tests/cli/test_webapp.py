"""The command line: the app as a child process, and where its files are."""

import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rpexplore.common import installation
from rpexplore.common.server import ServerSettings
from rpexplore.errors import RpexploreError
from tests.cli.program import started
from tests.support.processor_time import PATIENCE

# What must not count: settings in the user's home, in the current folder, in the environment.
OPEN_SETTINGS = """
[server]
address = "0.0.0.0"
enableCORS = false
baseUrlPath = "elsewhere"
sslCertFile = "none.pem"
[browser]
gatherUsageStats = true
[global]
developmentMode = true
"""


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGHUP]
)
def test_app_answers_this_machine_only_and_stops_on_a_signal(number, tmp_path):
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit/config.toml").write_text(OPEN_SETTINGS, "utf-8")
    (tmp_path / "streamlit.py").write_text("raise SystemExit('a stranger')", "utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}
    environment |= ServerSettings(True, "http://127.0.0.1:1/").variable
    port = free_port()
    where = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    app = started("app", "--port", str(port), "--no-browser", **where)
    try:
        assert app.stdout is not None
        assert f"http://127.0.0.1:{port}" in app.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health") as answer:
            assert answer.read() == b"ok"
        with pytest.raises(urllib.error.HTTPError, match="403"):  # without the token
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        # A server on all addresses would answer on this one as well.
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port), timeout=2)
        # As a terminal does; what the app has started is in a session of its own.
        os.killpg(app.pid, number)
        _, stderr = app.communicate(timeout=PATIENCE)
    finally:
        if app.poll() is None:
            os.killpg(app.pid, signal.SIGKILL)
            app.communicate()
    assert app.returncode == 0
    assert "Traceback" not in stderr
    assert "Aborted" not in stderr
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_app_says_that_its_port_is_taken(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = run.refused("app", "--port", str(port))
    assert f"Port {port} cannot be used" in refusal
    assert "--port" in refusal


def test_data_folders_reach_the_app(run, tmp_path, monkeypatch):
    assert installation.data_folders() == [installation.sample_data_folder()]
    (tmp_path / "a: b").mkdir()
    monkeypatch.chdir(tmp_path)
    (name, value), *more = installation.data_folders_variable([Path("a: b"), Path()]).items()
    assert not more
    monkeypatch.setenv(name, value)
    assert installation.data_folders() == [tmp_path / "a: b", tmp_path]
    assert installation.data_folders_variable([]) == {}
    assert "There is no folder" in run.refused("app", "--data-folder", "missing")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("installed", [True, False])
def test_app_files_are_found_in_a_wheel_and_in_a_checkout(tmp_path, monkeypatch, installed):
    package = tmp_path / "rpexplore"
    folder = package / "webapp" if installed else tmp_path
    (folder / "sample_data").mkdir(parents=True)
    (folder / "app.py").touch()
    (tmp_path / ("other.toml" if installed else "pyproject.toml")).touch()
    monkeypatch.setattr(installation, "_PACKAGE", package)
    assert installation.app_script() == folder / "app.py"
    assert installation.sample_data_folder() == folder / "sample_data"


def test_files_of_others_beside_an_installed_package_are_not_the_app(tmp_path, monkeypatch):
    (tmp_path / "app.py").touch()
    (tmp_path / "sample_data").mkdir()
    monkeypatch.setattr(installation, "_PACKAGE", tmp_path / "rpexplore")
    with pytest.raises(RpexploreError, match="install rpexplore again"):
        installation.app_script()


def test_app_files_of_this_checkout_are_there():
    assert installation.app_script().is_file()
    assert (installation.sample_data_folder() / "household.csv").is_file()
