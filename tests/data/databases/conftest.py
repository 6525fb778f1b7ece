"""Engines that hold a table of records."""

import pytest

from tests.data.databases.servers import in_duckdb


@pytest.fixture(params=["duckdb", "postgresql"])
def store(request, tmp_path):
    """Stores a table in an engine: called with the table, it gives the source."""
    if request.param == "duckdb":
        return lambda records: in_duckdb(records, tmp_path / "records.duckdb")
    server = request.getfixturevalue("postgres")
    return lambda records: server.source(records, "people")
