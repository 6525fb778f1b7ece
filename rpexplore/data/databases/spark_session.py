"""Sessions on Spark: the one that is there, or one that Spark makes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.session import Provenance, Session, SQLSession, engine_errors


class ClusterSession(SQLSession):
    """A session on a cluster, which works everything out anew unless it is told to keep it."""

    def provenance(self, name: str) -> Provenance:
        return replace(super().provenance(name), unseen=("what Spark keeps",))

    @contextmanager
    def hold(self, records: Any) -> Iterator[Any]:
        cached = records.cache()
        try:
            yield cached
        finally:
            with suppress(Exception):  # the session may be gone
                cached.release()


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    """The Spark session that is there, which goes on, or one that Spark makes and is stopped."""
    import ibis
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    there = SparkSession.getActiveSession()
    with engine_errors(connection):
        spark = there or _new_spark(connection)
        backend = ibis.pyspark.connect(spark)
        schema = spark.catalog.currentDatabase()
    group = f"rpexplore-{uuid4()}"

    def begin() -> None:
        spark.sparkContext.setJobGroup(group, "counting", interruptOnCancel=True)

    def cancel() -> None:
        spark.sparkContext.cancelJobGroup(group)

    try:
        # Not by its master: a cluster has many, and its tables are the same from each.
        yield ClusterSession(connection, backend, "spark:", schema, cancel, begin)
    finally:
        if there is None:
            spark.stop()


def _new_spark(connection: Connection) -> Any:
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    builder = SparkSession.builder.appName("rpexplore")
    if host := connection.location.partition("?")[0]:
        builder = builder.master(f"spark://{host}")
    for key, value in connection.options().items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
