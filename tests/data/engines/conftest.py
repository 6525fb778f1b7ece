"""Engines that hold a table of records."""

from dataclasses import replace

import pytest

from tests.data.engines.servers import in_duckdb

# By day those that count in different ways: in the database, and in Python from what it streams.
two_stores = pytest.mark.parametrize(
    "store",
    ["duckdb", pytest.param("postgresql", marks=pytest.mark.nightly), "postgresql, streamed"],
    indirect=True,
)


@pytest.fixture(params=["duckdb", "postgresql", "postgresql, streamed"])
def store(request, tmp_path):
    """Stores a table in an engine: called with the table, it gives the source."""
    if request.param == "duckdb":
        return lambda records: in_duckdb(records, tmp_path / "records.duckdb")
    server = request.getfixturevalue("postgres")
    stream = request.param != "postgresql"
    return lambda records: replace(server.source(records, "people"), stream=stream)
