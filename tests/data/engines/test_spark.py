"""Counting on a cluster: parts counted in its Python workers, of one scan."""

import contextlib
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.coding import Takers
from rpexplore.data.engines import spark_session
from rpexplore.data.engines import spark_worker as worker
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.packing import Layout
from rpexplore.data.engines.session import Request
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from tests.attacks import test_persons
from tests.data.engines.people import DOMAIN, expected, people
from tests.data.engines.servers import in_spark

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
TABLES = ((0, 1, 3), (1, 2), (3, 4))


# Of values as they are.
PLAIN = Layout((), tuple(range(len(DOMAIN.names))))


def request(rule: PersonRule | None = None) -> Request:
    return Request("people", DOMAIN, TABLES, Takers(), rule)


def parts_of(records: pa.Table, n_parts: int) -> list[list[pa.RecordBatch]]:
    """The records as workers have them, some batches each."""
    given = pa.table({f"v{index}": records[name] for index, name in enumerate(DOMAIN.names)})
    batches = given.to_batches(max_chunksize=97)
    return [batches[part::n_parts] for part in range(n_parts)]


def rows_of(parts: list[list[pa.RecordBatch]], **most) -> list[dict]:
    counted = [
        batch for part in parts for batch in worker.counts_of_part(part, request(), PLAIN, **most)
    ]
    return [row for batch in worker.added_counts(counted) for row in batch.to_pylist()]


# Of the tables' 1350, 45 and 30 cells: all at once, a few at a time, and those of one alone.
@pytest.mark.parametrize("most_kept", [1 << 20, 1400, 40])
@pytest.mark.parametrize("chunk", [1 << 16, 64])
def test_counts_of_parts_add_up(most_kept, chunk, monkeypatch):
    monkeypatch.setattr(worker, "CHUNK_CELLS", chunk)
    records = people()
    counts = worker.counts_of_chunks(rows_of(parts_of(records, 3), most_kept=most_kept), request())
    assert counts.n_records == len(records)
    for table in TABLES:
        assert np.array_equal(counts.tables[table], expected(records, table))


def test_counts_above_four_thousand_million():
    half = [row for batch in worker.counts_of_part(parts_of(people(), 1)[0], request(), PLAIN)
            for row in batch.to_pylist()]  # fmt: skip
    for row in half:
        counts = np.frombuffer(row["counts"], dtype=f"u{row['width']}").astype(np.uint64) << 31
        if row["chunk"] == worker.CHECKS:
            counts[1:] = 0
        row |= {"width": 8, "counts": counts.tobytes()}
    both = pa.RecordBatch.from_pylist([*half, *half], schema=worker.SCHEMA)
    rows = [row for batch in worker.added_counts([both]) for row in batch.to_pylist()]
    counts = worker.counts_of_chunks(rows, request())
    assert np.array_equal(counts.tables[(1, 2)], expected(people(), (1, 2)) << 32)


def test_parts_of_other_records_are_refused():
    """As of a part that was lost, and of which there are others when it is read again."""
    rows = rows_of(parts_of(people(), 1))
    others = rows_of(parts_of(people().slice(1), 1))
    mixed = [row if row["chunk"] == worker.CHECKS else other
             for row, other in zip(rows, others, strict=True)]  # fmt: skip
    for wrong in (mixed, rows[:-1], [*rows, rows[0]]):
        with pytest.raises(DataError, match="changed while they were counted"):
            worker.counts_of_chunks(wrong, request())


@pytest.mark.parametrize(
    ("function", "more"), [(worker.counts_of_part, [PLAIN]), (worker.coded_records, [])]
)
def test_what_cannot_be_read_is_refused_in_words_of_ours(function, more):
    bad = pa.array([b"s3cr3t\xff"]).view(pa.string())
    columns = {f"v{index}": bad for index in range(len(DOMAIN.names))}
    batch = pa.record_batch(columns | {worker.PERSON: bad})
    with pytest.raises(DataError, match="holds what cannot be read"):
        list(function([batch], request(), *more))


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "module",
    [
        "data.engines.spark_worker",
        "releases.area_measurement",
        "results.estimates.area_subtrees",
    ],
    ids=["count", "measure", "estimate"],
)
def test_workers_need_the_sent_files_numpy_pyarrow_and_scipy_but_to_count(module):
    others = {"scipy", "pandas", "threadpoolctl", "ibis", "pyspark", "streamlit"}
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        f"import rpexplore.{module} as worker\n"
        "assert worker.__file__.startswith(sys.argv[1])\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        f"print(loaded & {others - (set() if module.startswith('data') else {'scipy'})})\n"
    )
    archive = str(spark_session.archive())
    done = subprocess.run(
        [sys.executable, "-c", code, archive], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def explained(frame) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        frame.explain()
    return output.getvalue()


def test_records_are_read_once(spark, tmp_path):
    in_spark(spark, people(50), tmp_path)
    frame = spark.table("records")
    plan = explained(spark_session.counts_frame(frame, request()))
    assert (plan.count("FileScan"), plan.count("Exchange"), plan.count("MapInArrow")) == (1, 1, 2)
    assert "note" not in plan.partition("ReadSchema")[2]
    rule = PersonRule("who", 1, "keep first", "turn")
    plan = explained(spark_session.counts_frame(frame, request(rule)))
    assert (plan.count("FileScan"), plan.count("Exchange")) == (1, 2)


def test_workers_have_these_files_before_others(spark):
    spark_session.send_package(spark)

    def paths(batches):
        for _ in batches:
            yield pa.record_batch({"at": sys.path[:2]})

    rows = spark.range(1).coalesce(1).mapInArrow(paths, "at string").collect()
    # Before it is the folder that this process works in, which is that of the tests.
    assert spark_session.archive().name in rows[1]["at"]


@pytest.mark.parametrize("value", ["s3cr3t", pytest.param(None, marks=pytest.mark.nightly)])
def test_what_is_not_in_the_codebook_is_told_by_no_worker(value, spark, tmp_path):
    records = people(50)
    column = pa.array([value, *records["sex"].to_pylist()[1:]], pa.string())
    at = records.column_names.index("sex")
    source = in_spark(spark, records.set_column(at, "sex", column), tmp_path)
    what = "a missing value" if value is None else "a value that is not in the codebook"
    with pytest.raises(DataError, match=f"'sex' holds {what}") as caught:
        source.count(DOMAIN, TABLES)
    assert "s3cr3t" not in f"{caught.value} {caught.value.private}"
    option = "missing_values" if value is None else "unknown_values"
    assert source.count(DOMAIN, TABLES, **{option: {"sex": "f"}}).n_records == 50


def test_a_session_made_in_another_thread_goes_on(spark):
    spark.range(3).createOrReplaceTempView("numbers")
    source = DatabaseSource(Connection("CLUSTER", "spark://"), "numbers")
    # A thread of Python's has one of Java's, which has not seen the session.
    with ThreadPoolExecutor(1) as other:
        assert other.submit(source.columns).result() == ("id",)
    assert spark.table("numbers").count() == 3


def test_times_of_a_zone_are_refused_in_the_sentence_that_files_have(spark, tmp_path):
    """Not where a worker fails, whose error Spark tells behind a trace of Java."""
    day = rp.Attribute("day", rp.Dates("2026-01-01", "2026-01-31"))
    times = pa.array([1767571200], pa.timestamp("s", "UTC"))  # 2026-01-05
    source = in_spark(spark, pa.table({"day": times}), tmp_path, "times")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        with pytest.raises(DataError, match="'day' holds times in the zone America/New_York, and"):
            source.count(rp.Domain((day,)), [(0,)])
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert source.count(rp.Domain((day,)), [(0,)]).tables[0,][4] == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


# By day the next test counts by such a rule in Spark, and test_person_rules.py refuses elsewhere.
@pytest.mark.nightly
def test_rules_for_persons_in_spark(spark, tmp_path):
    records = people(40)
    source = in_spark(spark, records, tmp_path)
    most = max(np.unique(records["who"].to_pylist(), return_counts=True)[1])
    source.count(DOMAIN, TABLES, person_rule=PersonRule("who", int(most)))
    with pytest.raises(DataError, match="more records than"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", int(most) - 1))
    at = records.column_names.index("who")
    for nobody in (None, ""):
        column = pa.array([nobody, *records["who"].to_pylist()[1:]], pa.string())
        source = in_spark(spark, records.set_column(at, "who", column), tmp_path)
        for rule in (PersonRule("who", 9), PersonRule("who", 1, "keep first", "turn")):
            with pytest.raises(DataError, match="of every record whose"):
                source.count(DOMAIN, TABLES, person_rule=rule)


# A way takes two seconds of processor time: `.ci/run` tries three, nights twenty.
@pytest.mark.parametrize(("ids", "expected"), test_persons.WAYS[4 :: 5 if NIGHTLY else 40])
def test_a_person_is_one_however_written_in_spark(ids, expected, spark, tmp_path):
    table = test_persons.records(pa.array(ids, pa.string()))
    test_persons.check(in_spark(spark, table, tmp_path), expected)


@pytest.mark.nightly
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(tmp_path):
    """In a process of its own: only a session that is made so tries again."""
    pytest.importorskip("pyspark")
    command = [sys.executable, "-m", "tests.data.engines.lost_worker", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("killed *"))) >= 2  # one that counts, and one that reads
