"""Counts people while the workers that do so are killed: a program that leaves a file for each."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from tests.data.engines.people import DOMAIN, expected, people
from tests.data.engines.servers import in_spark, running_spark

TABLES = [(0, 1, 3), (1, 2), (3, 4)]


def siblings() -> list[int]:
    """The workers that this one shares a parent with, as it was forked from it; itself last."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[1]) == os.getppid() and int(path.parent.name) != os.getpid():
            pids.append(int(path.parent.name))
    return [*pids, os.getpid()]


def killing(folder: Path):
    """Hands records on, slowly, and in the first try of a part kills all workers half way."""

    def passed_on(batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        for number, batch in enumerate(batches):
            time.sleep(0.02)  # so that what counts has begun
            if number == 5 and context.attemptNumber() == 0 and context.partitionId() == 0:
                for pid in siblings():
                    (folder / f"killed {pid}").touch()
                    os.kill(pid, signal.SIGKILL)
            yield batch

    return passed_on


def main(folder: Path) -> None:
    records = people()
    with running_spark(folder, 2, n_tries=4) as spark:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
        in_spark(spark, records, folder, "stored")
        stored = spark.table("stored").repartition(2)
        stored.mapInArrow(killing(folder), stored.schema).createOrReplaceTempView("records")
        source = DatabaseSource(Connection("CLUSTER", "spark://"), "records")
        counts = source.count(DOMAIN, TABLES)
    for table in TABLES:
        assert np.array_equal(counts.counts(table), expected(records, table)), table


if __name__ == "__main__":
    main(Path(sys.argv[1]))
