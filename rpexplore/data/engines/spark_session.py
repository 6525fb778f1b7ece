"""Sessions on Spark: the one that is there, or one that Spark makes, here or by Spark Connect.

Spark reads the records once; the counter of files counts each part of them where it lies, in the
Python workers of the cluster, and counts of parts are added there. Whatever is lost on the way is
worked out again: a part's counts depend on its records alone.
"""

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.data.areas import AreaShares, Work
from rpexplore.data.coding import code_type, refuse_zone
from rpexplore.data.engines import spark_areas, spark_tasks
from rpexplore.data.engines import spark_worker as worker
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.packing import Layout, UnlistedError
from rpexplore.data.engines.session import (
    STATE,
    Provenance,
    Request,
    Session,
    engine_errors,
    parts_of,
)
from rpexplore.data.engines.spark_areas import WHOLE, layout_of, quoted, word_expressions
from rpexplore.data.source import BEYOND, OF_NOBODY, UNCLEAR, Counts
from rpexplore.domain.ordered_values import Dates
from rpexplore.domain.universe import BOOLEANS, DAYS, NUMBERS
from rpexplore.errors import DataError

_CHUNKS_AT_ONCE = 8  # of counts, that one task adds
# Rooms of this package that workers have.
_ROOMS = (
    *("common", "data", "domain", "estimation", "planning", "privacy", "releases", "results"),
    "workload",
)
_PLAIN = (
    *("string", "char", "varchar", "boolean", "decimal", "float", "double"),
    *("date", "timestamp", "timestamp_ntz"),
)
# A session of Spark Connect that is collected stops what all later ones of this process run.
_stopped: list[Any] = []
_COUNTS = "chunk int, width int, places binary, counts binary"


class ClusterSession(Session):
    """A session on a cluster. `backend` is Spark's own."""

    def provenance(self, name: str) -> Provenance:
        return replace(super().provenance(name), unseen=("what Spark keeps",))

    def columns(self, name: str) -> list[tuple[str, str]]:
        with engine_errors(self.connection, name):
            return [
                (field.name, field.dataType.simpleString()) for field in self._frame(name).schema
            ]

    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of one reading; of a second one where values are not written as in the codebook."""
        try:
            return self._count(name, request, (), on_progress)
        except UnlistedError as error:
            return self._count(name, request, error.attribute_indices, on_progress)

    def _count(
        self, name: str, request: Request, unlisted: Collection[int], on_progress: Progress
    ) -> Counts:
        with engine_errors(self.connection, name):
            send_package(self.backend)
            counts = counts_frame(self._frame(name), request, unlisted)
        rows = self.pieces(
            lambda: (row.asDict() for row in counts.toLocalIterator()), name, on_progress
        )
        with closing(rows):
            return worker.counts_of_chunks(rows, request)

    def worked_on(
        self,
        name: str,
        request: Request,
        shares: AreaShares,
        work: Work,
        check: Callable[[Counts], None],
        on_progress: Progress,
    ) -> Generator[Iterator[np.ndarray], None, None]:
        """The results of `work` for each share of the records, as of `spark_areas.taken`."""
        try:
            yield from self._worked_on(name, request, (), shares, work, check, on_progress)
        except UnlistedError as error:  # raised before there is anything of any share
            unlisted = error.attribute_indices
            yield from self._worked_on(name, request, unlisted, shares, work, check, on_progress)

    def _worked_on(self, name, request, unlisted, shares, work, check, on_progress):
        with engine_errors(self.connection, name):
            send_package(self.backend)
            records, layout = coded_frame(self._frame(name), request, unlisted)
            # Numbers by which Spark spreads rows over n partitions: the first to the first, and so
            # on. 40 for each: one that none of them leads to is not seen in the life of this
            # universe; nothing but the order in which results come would depend on it.
            n = 1 + len(shares)
            tried = self.backend.range(40 * n, numPartitions=1).repartition(n, "id")
            sent = tried.selectExpr("id", "spark_partition_id() AS number").collect()
            found = {row.number: row.id for row in sent}
            keys = [found.get(number, 40 * n + number) for number in range(n)]
            tasks = spark_areas.Tasks(request, layout, shares, work, keys)
            made = made_frame(self.backend, records, tasks)
        # Of one query, which is never run again: what is made of a share is made once that counts.
        rows = self.pieces(
            lambda: (row.asDict() for row in made.toLocalIterator(prefetchPartitions=True)),
            name,
            on_progress,
        )
        with closing(rows):
            yield from spark_areas.taken(rows, tasks, check)

    def computed(
        self, compute: spark_tasks.Compute, n_tasks: int, on_progress: Progress
    ) -> Generator[tuple[int, list[np.ndarray]], None, None]:
        """What a function makes of each number below `n_tasks`, a task each, in any order.

        It needs no records, and makes the same whenever a task is tried again.
        """
        with engine_errors(self.connection):
            send_package(self.backend)
            made = computed_frame(self.backend, compute, n_tasks)
        rows = self.pieces(
            lambda: (row.asDict() for row in made.toLocalIterator(prefetchPartitions=True)),
            "",
            on_progress,
        )
        with closing(rows):
            yield from spark_tasks.arrays_of(rows)

    def _frame(self, name: str) -> Any:
        return self.backend.table(".".join(quoted(part) for part in parts_of(name) if part))


def counts_frame(frame: Any, request: Request, unlisted: Collection[int] = ()) -> Any:
    """The counts of these records, in chunks: one scan, and one exchange, of counts.

    With a rule for persons another one, of coded records. unlisted: attributes that hold values
    which Spark does not find. Raises `DataError` for a column that cannot be an attribute.
    """
    records, layout = coded_frame(frame, request, unlisted)
    counts = records.mapInArrow(
        lambda batches: worker.counts_of_part(batches, request, layout), _COUNTS
    )
    n_tasks = ceil((1 + worker.n_chunks(request)) / _CHUNKS_AT_ONCE)
    added = counts.repartition(n_tasks, worker.CHUNK)
    return added.mapInArrow(lambda batches: worker.added_counts(batches), _COUNTS)


def made_frame(spark: Any, records: Any, tasks: spark_areas.Tasks) -> Any:
    """The result for each share of these records, a partition each: one scan, one exchange."""
    rows = records.mapInArrow(tasks.rows_of_part, spark_areas.COLUMNS)
    # Of each share one without records, as all are worked on, also where nobody is.
    empty = ["0 AS chunk", "0 AS width", "NULL AS places", "X'' AS counts", "id AS share"]
    every = spark.range(max(tasks.keys) + 1).filter(
        f"id IN ({', '.join(map(str, tasks.keys[1:]))})"
    )
    rows = rows.union(every.selectExpr(*empty))
    by_share = rows.repartition(len(tasks.keys), spark_areas.SHARE)
    by_share = by_share.sortWithinPartitions(spark_areas.SHARE)
    return by_share.mapInArrow(tasks.made, spark_areas.COLUMNS)


def computed_frame(spark: Any, compute: spark_tasks.Compute, n_tasks: int) -> Any:
    """What `compute` makes of each number: a partition each, then one exchange.

    Partitions are fetched one after another. Behind an exchange all have been computed by then,
    as many side by side as there are processors; without one, each would be when it is fetched.
    """
    numbers = spark.range(0, n_tasks, 1, n_tasks)
    made = numbers.mapInArrow(
        lambda batches: spark_tasks.rows_of(batches, compute), spark_tasks.COLUMNS
    )
    return made.repartition(n_tasks, "number").sortWithinPartitions("number", "place", "piece")


def coded_frame(frame: Any, request: Request, unlisted: Collection[int]) -> tuple[Any, Layout]:
    """The records as `counts_of_part` has them; what `counts_frame` tells of them."""
    frame = _within(frame, request)
    names = request.domain.names
    kinds = {names[index]: _kind(frame, names[index]) for index in request.attribute_indices}
    for index in request.attribute_indices:  # here: what workers refuse, Spark tells at length
        if kinds[names[index]] == "timestamp" and isinstance(
            request.domain.attributes[index].values, Dates
        ):
            refuse_zone(names[index], frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    for name in request.area_columns.values():
        _kind(frame, name)
    if request.rule is not None:
        return _with_states(frame, request), Layout((), tuple(request.attribute_indices))
    layout = layout_of(kinds, request, unlisted)
    columns = word_expressions(kinds, request, layout)
    columns += [f"{quoted(names[index])} AS v{index}" for index in layout.unlisted]
    columns += [f"{quoted(name)} AS {area}" for area, name in request.area_columns.items()]
    # A row needs a column, also where all are counted together.
    return frame.selectExpr(*columns or ["0 AS any_value"]), layout


def _within(frame: Any, request: Request) -> Any:
    """The records of the universe, with the columns that are counted by."""
    universe = request.universe
    if universe is None:
        return frame
    for attribute in universe.domain:
        if _kind(frame, attribute.name) == "timestamp" and isinstance(attribute.values, Dates):
            refuse_zone(attribute.name, frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    fields = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    universe.check_kinds({name: _held_by(fields.get(name, "")) for name in universe.columns})
    names = [request.domain.names[index] for index in request.attribute_indices]
    names += [*request.area_columns.values(), *universe.columns]
    names += [] if request.rule is None else request.rule.columns
    needed = frame.selectExpr(*map(quoted, dict.fromkeys(names)))
    return needed.mapInArrow(
        lambda batches: worker.records_within(batches, universe), needed.schema
    )


def _with_states(frame: Any, request: Request) -> Any:
    """The counted records of every person: c<index> and STATE.

    Ties in the order are broken by all that is counted, so that what counts of a person depends on
    that person's records alone.
    """
    rule = request.rule
    assert rule is not None
    _kind(frame, rule.column)
    given = {f"v{index}": request.domain.names[index] for index in request.attribute_indices}
    given |= request.area_columns | {worker.PERSON: rule.column}
    if (is_ordered := rule.excess == "keep first") and rule.order is not None:
        given[worker.ORDER] = rule.order
    records = frame.selectExpr(*(f"{quoted(name)} AS {alias}" for alias, name in given.items()))
    codes = [f"c{index}" for index in request.attribute_indices]
    kinds = [f"{name} bigint" for name in (worker.PERSON_LOW, worker.PERSON_HIGH, worker.WRITING)]
    kinds.append(f"{STATE} tinyint")
    if is_ordered:
        kinds.append(f"{worker.ORDER} {records.schema[worker.ORDER].dataType.simpleString()}")
    sizes = (request.code_sizes[index] for index in request.attribute_indices)
    kinds += [f"{code} {_whole_type(size)}" for code, size in zip(codes, sizes, strict=True)]
    if request.area_columns:
        codes.append(worker.AREA)
        kinds.append(f"{worker.AREA} bigint")
    coded = records.mapInArrow(
        lambda batches: worker.coded_records(batches, request), ", ".join(kinds)
    )
    order = [f"{worker.ORDER} ASC NULLS LAST", *codes] if is_ordered else ["0"]
    # By state as well: those of nobody are no person.
    person = f"PARTITION BY {STATE}, {worker.PERSON_LOW}, {worker.PERSON_HIGH}"
    writings = [f"{end}({worker.WRITING}) OVER ({person})" for end in ("min", "max")]
    ranked = coded.selectExpr(
        *codes,
        f"CASE WHEN {STATE} = 0 AND {writings[0]} <> {writings[1]} THEN {UNCLEAR} ELSE {STATE} END "
        f"AS {STATE}",
        f"row_number() OVER ({person} ORDER BY {', '.join(order)}) > {rule.most} "
        f"AND {STATE} <> {OF_NOBODY} AS is_beyond",
    )
    if is_ordered:
        ranked = ranked.filter("NOT is_beyond")
    state = f"CASE WHEN is_beyond AND {STATE} = 0 THEN {BEYOND} ELSE {STATE} END"
    return ranked.selectExpr(*codes, f"CAST({state} AS tinyint) AS {STATE}")


def _whole_type(size: int) -> str:
    """The narrowest type of Spark's that `Coder.signed_codes` of so many values have."""
    return {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}[code_type(size).itemsize]


def _kind(frame: Any, name: str) -> str:
    """The type of a column that can be an attribute, or say whose a record is."""
    kind = frame.schema[name].dataType.simpleString()
    if kind.partition("(")[0].partition(" ")[0] not in (*_PLAIN, *WHOLE):
        raise DataError(
            f"The column {name!r} is of a kind ({kind}) that cannot be counted; make a column of "
            "text, of numbers or of dates from it, in a view say."
        )
    return kind


def _held_by(type_name: str) -> str:
    """What a column of this type of Spark holds, as universes have it; "" for texts and others."""
    if type_name.startswith("decimal") or type_name in (*WHOLE, "float", "double"):
        return NUMBERS
    if type_name in ("date", "timestamp", "timestamp_ntz"):
        return DAYS
    return BOOLEANS if type_name == "boolean" else ""


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    """The Spark session that is there, which goes on, or one that is made and stopped."""
    with engine_errors(connection):
        there = None if connection.is_remote else _present_spark()
        spark = there or _new_spark(connection)
        schema = spark.catalog.currentDatabase()
    begin, cancel = _controls(spark)
    try:
        # Not by its master: a cluster has many, and its tables are the same from each.
        yield ClusterSession(connection, spark, "spark:", schema, cancel, begin)
    finally:
        if there is None:
            spark.stop()
            _stopped.append(spark)


def _controls(spark: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """A mark for the work of a thread, and a function that stops all work with this mark."""
    mark = f"rpexplore-{uuid4()}"
    if _is_remote(spark):
        return lambda: spark.addTag(mark), lambda: spark.interruptTag(mark)
    context = spark.sparkContext
    return (
        lambda: context.setJobGroup(mark, "counting", interruptOnCancel=True),
        lambda: context.cancelJobGroup(mark),
    )


def _is_remote(spark: Any) -> bool:
    """Whether a session is one of Spark Connect; those of Python on Spark itself know its core."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _present_spark() -> Any:
    """The session of this thread, else that of this process; None if Spark does not run here."""
    from pyspark import SparkContext  # pyright: ignore[reportMissingImports]
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    # Nothing public tells this without starting Spark, but for the session of a thread.
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _new_spark(connection: Connection) -> Any:
    if connection.is_remote:
        from pyspark.sql.connect.session import SparkSession as RemoteSession  # pyright: ignore[reportMissingImports]

        return RemoteSession.builder.remote(connection.url).create()
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    builder = SparkSession.builder.appName("rpexplore")
    if host := connection.location.partition("?")[0]:
        builder = builder.master(f"spark://{host}")
    for key, value in connection.options().items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if str(spark.sparkContext.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable  # which has what workers need
    return spark


def send_package(spark: Any) -> None:
    """Let workers have what `spark_worker` needs, whatever is installed there."""
    path = str(archive())
    if _is_remote(spark):
        spark.addArtifacts(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)


@cache
def archive() -> Path:
    """This package's files for workers, till this process ends; named by what they hold."""
    package = Path(__file__).parents[2]
    files = [path for room in _ROOMS for path in sorted((package / room).rglob("*.py"))]
    contents = {path.relative_to(package): path.read_bytes() for path in files}
    contents[Path("errors.py")] = (package / "errors.py").read_bytes()
    contents[Path("__init__.py")] = b'"""What counts in the workers of a cluster."""\n'
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]
    path = Path(_folder().name) / f"rpexplore-{digest}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"rpexplore/{name.as_posix()}", content)
    return path


@cache
def _folder() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="rpexplore-")
