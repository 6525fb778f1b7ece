"""The engines that records can be counted in: one entry and one module each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """What is known of an engine without its package.

    schemes         of its addresses, the usual one first
    form            an address, as an example
    package         its Python package
    error_packages  top-level packages that its errors come from
    extra           the optional extra of rpexplore that installs the package
    is_file         whether an address names a file, rather than a server

    Its module `<extra>_session` has `open_session(connection)`, a context manager of a `Session`.
    """

    name: str
    schemes: tuple[str, ...]
    form: str
    package: str
    error_packages: tuple[str, ...]
    extra: str
    is_file: bool = False


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "postgresql",
            ("postgresql", "postgres"),
            "postgresql://user:password@host:5432/database",
            "psycopg",
            ("psycopg",),
            "postgres",
        ),
        Engine(
            "duckdb",
            ("duckdb",),
            "duckdb:///path/to/file",
            "duckdb",
            ("duckdb", "_duckdb"),
            "duckdb",
            is_file=True,
        ),
        Engine(
            "spark",
            ("spark", "pyspark"),
            "spark://host:7077",
            "pyspark",
            ("pyspark", "py4j"),
            "spark",
        ),
    )
}
