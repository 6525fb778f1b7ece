"""The engines that records can be counted in: one entry and one module each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """What is known of an engine without its package.

    schemes         of its addresses, the usual one first
    form            an address, as an example
    package         its Python package; extra: the optional extra of rpexplore that installs it
    module          with `open_session(connection)`, a context manager of a `Session`
    error_packages  top-level packages that its errors come from
    is_file         whether an address names a file, rather than a server
    """

    name: str
    schemes: tuple[str, ...]
    form: str
    package: str
    extra: str
    module: str
    error_packages: tuple[str, ...]
    is_file: bool = False


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "postgresql",
            ("postgresql", "postgres"),
            "postgresql://user:password@host:5432/database",
            "psycopg",
            "postgres",
            "rpexplore.data.databases.postgres_session",
            ("psycopg",),
        ),
        Engine(
            "duckdb",
            ("duckdb",),
            "duckdb:///path/to/file",
            "duckdb",
            "duckdb",
            "rpexplore.data.databases.duckdb_session",
            ("duckdb", "_duckdb"),
            is_file=True,
        ),
        Engine(
            "spark",
            ("spark", "pyspark"),
            "spark://host:7077",
            "pyspark",
            "spark",
            "rpexplore.data.databases.spark_session",
            ("pyspark", "py4j"),
        ),
    )
}
