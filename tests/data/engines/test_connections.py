"""Connections: named, kept by their owner alone, and never told."""

import tomllib
import traceback
from importlib.util import find_spec
from pathlib import Path

import pytest

from rpexplore.data.engines.connections import (
    ENGINES,
    Connection,
    connection_named,
    connection_names,
    secrets_file,
)
from rpexplore.errors import DataError

PASSWORD = "s3cr3t/p%40ss"
URL = f"postgresql://ann:{PASSWORD}@db.example:5433/survey?sslmode=require"


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """A file of secrets, for its owner alone."""
    path = tmp_path / "secrets.toml"
    path.write_text(f'[connections]\nCENSUS = "{URL}"\nOTHER = "duckdb:///x.duckdb"\n')
    path.chmod(0o600)
    monkeypatch.setenv("RPEXPLORE_SECRETS", str(path))
    monkeypatch.delenv("CENSUS", raising=False)
    return path


def refusal(*arguments, of=connection_named) -> str:
    """What the error says; fails if anything printed of it holds the address."""
    with pytest.raises(DataError) as caught:
        of(*arguments)
    printed = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    for secret in (PASSWORD, "s3cr3t", "ann"):
        assert secret not in printed.replace(str(secrets_file()), "")
        assert secret not in caught.value.private
    return str(caught.value)


def test_a_connection_by_its_name(kept, monkeypatch):
    assert connection_named("CENSUS").url == URL
    assert connection_names() == ("CENSUS", "OTHER")
    monkeypatch.setenv("CENSUS", "duckdb:///here")  # comes first
    assert connection_named("CENSUS").engine == "duckdb"


def test_secrets_lie_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("RPEXPLORE_SECRETS", raising=False)
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path))
    assert secrets_file() == tmp_path / "secrets.toml"
    assert connection_names() == ()
    assert "'CENSUS'" in refusal("CENSUS")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o610, 0o644])
def test_a_file_that_others_can_use_is_refused(mode, kept):
    kept.chmod(mode)
    assert f"chmod 600 {kept}" in refusal("CENSUS")
    assert f"chmod 600 {kept}" in refusal(of=connection_names)


@pytest.mark.parametrize(
    "text",
    [
        f'[connections]\nCENSUS = "{URL}\n',
        f'[connections]\nCENSUS = ["{URL}"]\n',
        f'connections = "{URL}"\n',
        "\xff",
    ],
)
def test_a_broken_file_is_refused_without_being_quoted(text, kept):
    kept.write_bytes(text.encode("latin-1"))
    assert str(kept) in refusal("CENSUS")


@pytest.mark.parametrize("name", ["", "NOBODY"])
def test_an_unknown_name_is_refused(name, kept):
    assert "[connections]" in refusal(name)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://ann:{PASSWORD}@db/x",
        f"ann:{PASSWORD}@db",
        f"host=db user=ann password={PASSWORD}",
        "duckdb://",
        "duckdb://:memory:",
    ],
)
def test_other_addresses_are_refused_without_being_quoted(url):
    assert "'CENSUS'" in refusal("CENSUS", url, of=Connection)


def test_an_address_is_in_no_repr():
    connection = Connection("CENSUS", URL)
    assert repr(connection) == "Connection('CENSUS', 'postgresql')"
    assert str(connection) == f"{connection}" == repr(connection)


@pytest.mark.parametrize(
    "said",
    [
        f'connection to "{URL}" failed',
        f"password {PASSWORD!r} is wrong",
        "password s3cr3t/p@ss is wrong",
        f"user ann:{PASSWORD}",
    ],
)
def test_what_engines_say_loses_its_secrets(said):
    cleaned = Connection("CENSUS", URL).without_secrets(said)
    assert "s3cr3t" not in cleaned
    assert "***" in cleaned


def test_passwords_among_the_options_are_secrets_too():
    connection = Connection("CENSUS", "postgresql://db/x?user=ann&password=s3cr3t")
    assert connection.without_secrets("it is s3cr3t") == "it is ***"


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_every_engine_has_addresses_and_a_module_that_opens_them(engine):
    for scheme in engine.schemes:
        assert (
            Connection("x", f"{scheme}://{engine.form.partition('://')[2]}").engine == engine.name
        )
    assert find_spec(f"rpexplore.data.engines.{engine.extra}_session") is not None
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert engine.extra in project["project"]["optional-dependencies"]
