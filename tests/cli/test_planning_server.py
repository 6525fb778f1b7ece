"""The command line: what a shared server is started with, and what makes no sense."""

import pytest

from rpexplore.common.server import ServerSettings, server_settings
from tests.support.planning_server import answered, free_port, planning_server


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--address https://x.example", "add --planning-only"),
        ("--host 0.0.0.0", "add --planning-only"),
        ("--login x.toml", "add --planning-only"),
        ("--no-login", "add --planning-only"),
        ("--planning-only", "either --login FILE or"),
        ("--planning-only --login x.toml --no-login", "either --login FILE or"),
        ("--planning-only --login missing.toml", "There is no login file"),
        ("--planning-only --no-login --data-folder .", "leave out --data-folder"),
        ("--planning-only --no-login --host 0.0.0.0", "give the --address"),
        ("--planning-only --no-login --host agency.example", "IP address"),
        ("--planning-only --no-login --address https://x.example/?y", "without a query"),
        ("--planning-only --no-login --address http://x.example", "https://"),
    ],
)
def test_refused(run, options, said):
    assert said in run.refused("app", *options.split())


def test_settings_reach_the_server(monkeypatch):
    settings = ServerSettings(True, "https://plan.agency.example/plan/", "/etc/login.toml")
    server_settings.cache_clear()
    for name, value in settings.variable.items():
        monkeypatch.setenv(name, value)
    try:
        assert server_settings() == settings
        assert settings.public_address.base_path == "/plan"
    finally:
        server_settings.cache_clear()


# By day tests/browser/test_planning_server.py starts and ends one.
@pytest.mark.nightly
def test_it_starts_is_ready_and_ends_cleanly(tmp_path):
    port = free_port()
    with planning_server(tmp_path, "--no-login", port=port) as server:
        assert answered(f"http://127.0.0.1:{port}/_stcore/health") == 200
        assert answered(f"http://127.0.0.1:{port}/") == 200
        (server.home / "accounts").mkdir(exist_ok=True)
        server.home.rename(tmp_path / "gone")
        server.home.write_text("no folder")  # a disk that is gone, to root as well
        server.wait_for("/ready", 503)
        server.home.unlink()
        server.wait_for("/ready")
        server.process.terminate()
        server.wait_for("/ready", 503)
    assert server.process.returncode == 0
    assert [line["event"] for line in server.events] == [
        "server started",
        "server ready",
        "server stopping",
    ]
    assert server.stdout.read_text() == (
        f"The planning server runs at http://127.0.0.1:{port}/. Ctrl-C stops it.\n"
    )
