"""Counting on several connections of a PostgreSQL server, which see one snapshot."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from rpexplore.data.engines import counting, postgres_servers, postgres_session
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.postgres_servers import Snapshot
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from tests.data.engines.people import DOMAIN, TABLES, check_tables, people
from tests.data.engines.test_stopped_counting import Cancel, runs, stopping
from tests.support.processor_time import PATIENCE

N_RECORDS = 301


@dataclass
class Watch:
    """How many connections there were beside the first; what is done before and after they are."""

    numbers: list[int] = field(default_factory=list)
    before: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None


@pytest.fixture
def watch(monkeypatch):
    """For three blocks as many connections."""
    monkeypatch.setattr(counting, "_BLOCK_CELLS", 1)
    monkeypatch.setattr(postgres_session, "_BLOCKS_AT_LEAST", 1)
    monkeypatch.setattr(postgres_servers.os, "cpu_count", lambda: 8)
    watch, whole = Watch(), Snapshot.servers_beside

    @contextmanager
    def watched(self, n_wanted):
        watch.before()
        with whole(self, n_wanted) as servers:
            watch.numbers.append(len(servers))
            watch.after()
            yield servers

    monkeypatch.setattr(Snapshot, "servers_beside", watched)
    return watch


@pytest.fixture
def reader(postgres):
    """A connection of somebody who may read `people`, and is not the server's keeper."""
    postgres.source(people(N_RECORDS), "people")
    postgres.run(
        "DO $$ BEGIN CREATE ROLE counter LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
        "ALTER ROLE counter CONNECTION LIMIT -1",
        "GRANT SELECT ON people TO counter",
        "GRANT EXECUTE ON FUNCTION pg_control_system() TO counter",
    )
    return Connection("READER", postgres.url.replace("keeper", "counter"))


def test_all_see_the_records_of_one_moment(watch, postgres):
    records = people(N_RECORDS)
    source = postgres.source(records, "people")
    # Each would see other records on a snapshot of its own.
    watch.before = watch.after = lambda: postgres.run("INSERT INTO people SELECT * FROM people")
    check_tables(source, records)
    assert watch.numbers == [2]
    assert postgres.run("SELECT count(*) FROM people") == [(4 * N_RECORDS,)]


def test_the_first_records_of_persons_are_the_same_for_all(watch, postgres):
    source = postgres.source(people(), "people")
    rule = PersonRule("who", 2, "keep first", "turn")
    together = source.count(DOMAIN, TABLES, person_rule=rule)
    postgres.run("CREATE VIEW same AS SELECT * FROM people")
    alone = replace(source, table="same").count(DOMAIN, TABLES, person_rule=rule)
    assert watch.numbers == [2]  # of a view, which may read other records each time, by one
    assert together.n_records == alone.n_records
    for table in TABLES:
        assert (together.counts(table) == alone.counts(table)).all()


@pytest.mark.parametrize("refused", ["a second one", "a snapshot", "a snapshot elsewhere"])
def test_one_counts_alone_where_there_can_be_no_other(
    refused, watch, reader, postgres, monkeypatch
):
    if refused == "a second one":
        postgres.run("ALTER ROLE counter CONNECTION LIMIT 1")
    elif refused == "a snapshot":
        monkeypatch.setattr(postgres_servers, "_EXPORT", "SELECT 1 / 0")
    else:  # as by a pooler, which gives a number of its own for the server's process
        monkeypatch.setattr(postgres_servers, "_EXPORT", "SELECT pg_export_snapshot(), -1")
    check_tables(DatabaseSource(reader, "people"), people(N_RECORDS))
    assert watch.numbers == [0]


def test_one_that_fails_stops_all(watch, reader, postgres, monkeypatch):
    # Nothing but a policy makes a table slow, and where one applies records are refused.
    monkeypatch.setattr(postgres_servers, "_ALL_ROWS", "SET LOCAL row_security = on")
    postgres.run(
        "DROP POLICY IF EXISTS slow ON people",
        "CREATE POLICY slow ON people USING (pg_sleep(0.1)::text = '')",
        "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
    )
    n_at_work: list[int] = []

    def kill_one(doing: str, share: float) -> None:
        if watch.numbers and not n_at_work:
            ours, end = [], time.monotonic() + PATIENCE
            while len(ours) < 3 and time.monotonic() < end:  # until all are at work
                ours = postgres.run(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'rpexplore' "
                    "AND state = 'active' ORDER BY backend_start DESC"
                )
            n_at_work.append(len(ours))
            postgres.run(f"SELECT pg_terminate_backend({ours[0][0]})")

    source = DatabaseSource(reader, "people")
    with pytest.raises(DataError, match="'READER' the connection was lost"):
        source.count(DOMAIN, TABLES, on_progress=kill_one)
    assert n_at_work == [3]
    assert not runs(postgres)
    with pytest.raises(Cancel):
        source.count(DOMAIN, TABLES, on_progress=stopping(Cancel()))
    assert watch.numbers == [2, 2]
    assert not runs(postgres)
