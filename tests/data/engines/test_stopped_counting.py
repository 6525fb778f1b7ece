"""Counting in engines stopped on the way: by its caller, or by a server that dies."""

import time

import duckdb
import pyarrow as pa
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import DataError
from tests.data.engines.servers import Server, in_duckdb, running_postgres
from tests.data.engines.test_areas import CUTS
from tests.support.processor_time import PATIENCE


class Cancel(Exception):
    """What the caller raises to stop."""


def stopping(error: BaseException):
    started = time.monotonic()

    def progress(doing: str, share: float) -> None:
        if time.monotonic() - started > 1:
            raise error

    return progress


SLOW = Domain((Attribute("c", Categories(("0", "1"))),))


def runs(server: Server) -> bool:
    """Whether a session of ours stays there."""
    ours = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rpexplore'"
    deadline = time.monotonic() + PATIENCE
    while server.run(ours) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(server.run(ours))


@pytest.mark.parametrize(
    ("error", "stream"), [(Cancel, False), (KeyboardInterrupt, False), (Cancel, True)]
)
def test_the_caller_stops_a_server(error, stream, postgres):
    postgres.run(
        "DROP VIEW IF EXISTS slow",
        "CREATE VIEW slow AS SELECT '1' AS c FROM generate_series(1, 10000) "
        "WHERE pg_sleep(0.1)::text = ''",
    )
    with pytest.raises(error):
        DatabaseSource(postgres.connection, "slow", stream).count(
            SLOW, [(0,)], on_progress=stopping(error())
        )
    assert not runs(postgres)


def test_records_in_no_area_stop_a_stream(postgres):
    """Other faults are told at the end, all at once."""
    postgres.run(
        "CREATE OR REPLACE VIEW endless AS SELECT '1' AS c, 'N' AS region, 'nowhere' AS town "
        "FROM generate_series(1, 10) "
        "CROSS JOIN generate_series(1, 10000) AS a CROSS JOIN generate_series(1, 10000) AS b"
    )
    source = DatabaseSource(postgres.connection, "endless", stream=True)
    with pytest.raises(DataError, match="not in the tree"):
        source.count(SLOW, [(0, 1)], areas=CUTS)
    assert not runs(postgres)


def test_the_caller_stops_duckdb(tmp_path):
    source = in_duckdb(pa.table({"c": ["1"]}), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute(
            "CREATE OR REPLACE VIEW slow AS "
            "SELECT (range % 2)::varchar AS c FROM range(1000000000000)"
        )
    started = time.monotonic()
    with pytest.raises(Cancel):
        DatabaseSource(source.connection, "slow").count(
            SLOW, [(0,)], on_progress=stopping(Cancel())
        )
    assert time.monotonic() - started < PATIENCE  # all rows would take a day


def test_the_caller_stops_spark(spark):
    spark.range(10**12).selectExpr("cast(id % 2 as string) as c").createOrReplaceTempView("slow")
    source = DatabaseSource(Connection("CLUSTER", "spark://"), "slow")
    started = time.monotonic()
    with pytest.raises(Cancel):
        source.count(SLOW, [(0,)], on_progress=stopping(Cancel()))
    assert time.monotonic() - started < PATIENCE
    assert spark.range(3).count() == 3  # the session itself goes on


def test_a_server_that_dies_on_the_way():
    with running_postgres() as server:
        server.run(
            "CREATE VIEW slow AS SELECT '1' AS c FROM generate_series(1, 10000) "
            "WHERE pg_sleep(0.1)::text = ''"
        )
        killed: list[Server] = []

        def progress(doing: str, share: float) -> None:
            if not killed:
                killed.append(server)
                time.sleep(1)  # until the statement runs
                server.stop()

        with pytest.raises(DataError, match="connection was lost") as caught:
            DatabaseSource(server.connection, "slow").count(SLOW, [(0,)], on_progress=progress)
        assert str(server.folder) not in str(caught.value)
