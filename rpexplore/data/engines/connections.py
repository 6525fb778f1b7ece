"""Engines that records can be counted in, and connections to them: named, never typed.

What a connection is (an address, often with a password) stands in an environment variable or in a
file of secrets. Saved projects, plans, ledgers, errors and logs hold its name, never what it is.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from rpexplore.common.files import home_folder, secret_toml
from rpexplore.errors import DataError

# Why a server cannot be reached, and what to do, by the words of `session.error_kind`.
UNREACHABLE = {
    "login": "the server refuses the user or the password; correct them where the connection is "
    "kept, with special signs as %40 and so on",
    "database": "the server has no such database; correct its name where the connection is kept",
    "address": "host and port are no address of a server; correct them where the connection is "
    "kept",
    "away": "no server answers; see that it runs and can be reached from here, and that host and "
    "port are right where the connection is kept",
    "full": "the server has no room for one more connection; run again later",
}


@dataclass(frozen=True)
class Engine:
    """Facts about an engine that are known without its package.

    schemes   of its addresses
    form      an address, as an example
    needs     packages of Python
    others    that its errors come from as well
    extra     the optional extra of rpexplore that installs these
    is_file   whether an address names a file, rather than a server
    beside    how files beside it end, in which the engine keeps what a writer is about
    no_stream why records cannot be told to pass through this process; "" where they can
    must_stream  whether there is no other way to count its records

    Its module `<extra>_session` has `open_session(connection)`, a context manager of a `Session`.
    """

    name: str
    schemes: tuple[str, ...]
    form: str
    needs: tuple[str, ...]
    others: tuple[str, ...]
    extra: str
    is_file: bool = False
    beside: tuple[str, ...] = ()
    no_stream: str = ""
    must_stream: bool = False


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "postgresql",
            ("postgresql", "postgres"),
            "postgresql://user:password@host:5432/database",
            ("ibis", "psycopg"),
            (),
            "postgres",
        ),
        Engine(
            "duckdb",
            ("duckdb",),
            "duckdb:///path/to/file",
            ("ibis", "duckdb"),
            ("_duckdb",),
            "duckdb",
            is_file=True,
            beside=(".wal",),
            no_stream="DuckDB is in this process, so that its records stream anyway",
        ),
        Engine(
            "spark",
            ("spark", "pyspark", "sc"),
            "spark://host:7077 (sc://host:15002 by Spark Connect)",
            ("pyspark",),
            ("py4j", "grpc"),
            "spark",
            no_stream="Spark's workers count them where they are, with the counter of files",
        ),
        Engine(
            "sqlite",
            ("sqlite",),
            "sqlite:///path/to/file",
            ("adbc_driver_manager", "adbc_driver_sqlite"),
            (),
            "adbc",
            is_file=True,
            beside=("-journal", "-wal", "-shm"),
            no_stream="SQLite is in this process, so that its records stream anyway",
        ),
        Engine(
            "adbc",
            ("adbc+postgresql", "adbc+grpc", "adbc+grpc+tls", "adbc+snowflake"),
            "adbc+postgresql://user:password@host:5432/database (adbc+grpc+tls:// and adbc+grpc:// "
            "by Flight SQL, adbc+snowflake://)",
            ("adbc_driver_manager",),
            (),
            "adbc",
            must_stream=True,
        ),
    )
}

_ENGINE_OF_SCHEME = {
    scheme: engine.name for engine in ENGINES.values() for scheme in engine.schemes
}


@dataclass(frozen=True, repr=False)
class Connection:
    """A way to an engine that holds records. Neither repr nor errors show what `url` is.

    name  what people call it
    url   postgresql://user:password@host:port/database (all that libpq takes), duckdb:///absolute
          path or duckdb://relative path, sqlite:// likewise, spark://host:port, sc://host:port of
          Spark Connect, spark:// alone for the session that is there or that Spark's own settings
          make, or adbc+postgresql:// and others by ADBC

    Raises `DataError` for an address of another kind.
    """

    name: str
    url: str = field(repr=False)

    def __post_init__(self) -> None:
        scheme, separator, rest = self.url.strip().partition("://")
        object.__setattr__(self, "url", self.url.strip())
        if not separator or scheme.lower() not in _ENGINE_OF_SCHEME:
            *forms, last = (engine.form for engine in ENGINES.values())
            raise DataError(
                f"The connection {self.name!r} must be an address like {', '.join(forms)}, or "
                f"{last}; correct it where it is kept."
            )
        engine = ENGINES[self.engine]
        if engine.is_file and (not rest or ":memory:" in rest or rest.startswith("md:")):
            raise DataError(
                f"The connection {self.name!r} must name a file, as {engine.form}; correct it "
                "where it is kept."
            )

    def __repr__(self) -> str:
        return f"Connection({self.name!r}, {self.engine!r})"

    @property
    def engine(self) -> str:
        """The name of one of `ENGINES`."""
        return _ENGINE_OF_SCHEME[self.url.partition("://")[0].lower()]

    @property
    def is_remote(self) -> bool:
        """Whether a server of Spark Connect is meant."""
        return self.url.lower().startswith("sc://")

    @property
    def location(self) -> str:
        """The part behind the scheme: a path for DuckDB, host and port for Spark."""
        return self.url.partition("://")[2]

    def without_secrets(self, text: str) -> str:
        """A text of an engine without what this address holds that others must not see."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    def _secrets(self) -> set[str]:
        """The address, and the password in it however it is written there."""
        secrets = {self.url}
        if ENGINES[self.engine].is_file:
            return secrets
        # Not urlsplit's own parts of the host: they refuse what they cannot read, quoting it.
        address, _, options = self.url.partition("?")
        user, at, _ = address.partition("://")[2].rpartition("@")
        if at:
            password = user.partition(":")[2]
            # An @ that should be %40 makes a server's library take the rest for the host.
            secrets |= {user, password, unquote(password), *password.split("@")}
        # Spark Connect has its options behind semicolons.
        for key, value in parse_qsl(options) + parse_qsl(address.partition(";")[2], separator=";"):
            if "pass" in key.lower() or "secret" in key.lower() or "token" in key.lower():
                secrets.add(value)
        return secrets - {""}

    def options(self) -> dict[str, str]:
        """The part behind the question mark: settings of Spark."""
        return dict(parse_qsl(self.url.partition("?")[2]))


def connection_named(name: str) -> Connection:
    """The connection that an environment variable of this name holds, or else the file of secrets.

    Raises `DataError` if neither has it, or if others than its owner can read the file.
    """
    if "://" in name:  # it may hold a password, so it is not said again
        raise DataError(
            "The connection must be given by its name, not by its address; keep the address in an "
            "environment variable, or in the file of secrets, and give the name of that."
        )
    value = (os.environ.get(name) if name else None) or _connections().get(name)
    if not value:
        raise DataError(
            f"There is no connection {name!r}; set an environment variable of that name, or enter "
            f"it under [connections] in {str(secrets_file())!r}."
        )
    return Connection(name, value)


def connection_names() -> tuple[str, ...]:
    """The names of the connections in the file of secrets, sorted; none where there is no file."""
    return tuple(sorted(_connections()))


def secrets_file() -> Path:
    """The path in RPEXPLORE_SECRETS, or secrets.toml in the program's own folder."""
    named = os.environ.get("RPEXPLORE_SECRETS")
    return Path(named) if named else home_folder() / "secrets.toml"


def _connections() -> dict[str, str]:
    path = secrets_file()
    try:
        content = secret_toml(path, "The file of secrets", DataError)
    except FileNotFoundError:
        return {}
    connections = None if content is None else content.get("connections", {})
    if not isinstance(connections, dict) or not all(
        isinstance(value, str) for value in connections.values()
    ):
        raise DataError(
            f"The file of secrets {str(path)!r} must be TOML with a table [connections] of texts; "
            'write lines such as NAME = "postgresql://…" under it.'
        )
    return connections
