"""Records of a database, counted by the areas that they lie in as those of a file are."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.data.areas import AreaCoder, AreaCut, AreaCuts
from rpexplore.data.coding import Takers
from rpexplore.data.engines import postgres_session, spark_areas
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import Request
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.frames import FrameSource
from rpexplore.domain.area_tree import AreaRange
from rpexplore.releases import area_measurement, area_parts, area_release
from rpexplore.releases.area_parts import AreaParts
from tests.data.engines.area_runs import PARTS, SAMPLER, SMALL, Watched, same_noise
from tests.data.engines.servers import in_duckdb, in_spark
from tests.releases.area_plans import PLANS, RECORDS
from tests.releases.table_plan import no_noise
from tests.releases.test_area_release import contents, measurements

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("0", "1"))),
        rp.Attribute("age", rp.Integers(0, 2)),
    )
)
CODES = ("1", "2", 'é "2", \\.\n\t', "A", "a")
TREE = rp.AreaTree.from_columns({"region": [*"NNNNN", "S"], "town": [*CODES, None]})
CUTS = AreaCuts(TREE, tuple(AreaCut(AreaRange.within(TREE, 0, 0, 1, last)) for last in range(3)))
TABLES = [(0, 1, 4), (0, 3), (2,)]
SETS = [(0, 4), (1, 3), (1, 4), (2,)]  # no table has both attributes


ENGINES = ["duckdb", "postgresql", "postgresql, streamed", "sqlite", "adbc"]
# By day the first test counts in all of them but Spark.
some_by_night = pytest.mark.parametrize(
    "stored",
    [
        *("duckdb", "postgresql, streamed"),
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("postgresql", *ENGINES[3:], "spark")
        ),
    ],
    indirect=True,
)


@pytest.fixture(params=[*ENGINES, pytest.param("spark", marks=pytest.mark.nightly)])
def stored(request, tmp_path):
    """Stores a table in an engine: called with the table, it gives the source."""
    if request.param == "duckdb":
        return lambda records: in_duckdb(records, tmp_path / "records.duckdb")
    if request.param == "spark":
        spark = request.getfixturevalue("spark")
        return lambda records: in_spark(spark, records, tmp_path, "people")
    if request.param == "sqlite":
        pytest.importorskip("adbc_driver_sqlite")
        return lambda records: in_sqlite(records, tmp_path / "records.db")
    server = request.getfixturevalue("postgres")
    if request.param == "adbc":
        pytest.importorskip("adbc_driver_postgresql")
        connection = Connection("SERVER", f"adbc+{server.url}")
        return lambda records: (
            server.source(records, "people") and DatabaseSource(connection, "people", stream=True)
        )
    stream = request.param != "postgresql"
    return lambda records: replace(server.source(records, "people"), stream=stream)


def in_sqlite(records: pa.Table, path) -> DatabaseSource:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE IF EXISTS people")
        database.execute(f"CREATE TABLE people ({', '.join(records.column_names)})")
        marks = ", ".join("?" * records.num_columns)
        rows = (tuple(row.values()) for row in records.to_pylist())
        database.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    return DatabaseSource(Connection("FILE", f"sqlite://{path}"), "people")


def people(count: int) -> pa.Table:
    generator = np.random.default_rng(3)
    # A code that ends early is missing or empty; é can be written in two ways.
    written = [("N", code) for code in (*CODES, CODES[2].replace("é", "e\u0301"))]
    areas = [*written, ("S", None), ("S", "")]
    rows = [areas[k] for k in generator.integers(0, len(areas), count).tolist()]
    return pa.table(
        {
            "region": [region for region, _ in rows],
            "town": [town for _, town in rows],
            "sex": generator.integers(0, 2, count),
            "age": generator.integers(0, 3, count),
            "who": generator.integers(0, 40, count),
            "day": generator.integers(0, 5, count),
        }
    )


def check(source: rp.DatabaseSource, records: pa.Table, tables, **options) -> None:
    counts = source.count(DOMAIN, tables, areas=CUTS, **options)
    same = FrameSource(records, name="people").count(DOMAIN, tables, areas=CUTS, **options)
    assert counts.n_records == same.n_records
    for table in tables:
        np.testing.assert_array_equal(counts.counts(table), same.counts(table))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("tables", [TABLES, SETS, pytest.param([(2,)], marks=pytest.mark.nightly)])
def test_counts_are_those_of_the_same_records_in_memory(tables, stored):
    records = people(300)
    source = stored(records)
    check(source, records, tables)
    check(source, records, tables, person_rule=rp.PersonRule("who", most=300))


AMOUNTS = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("0", "1"))),
        rp.Attribute("income", rp.Amounts(-10, 100, missing=[("", "not stated")])),
        rp.Attribute("w", rp.Amounts(0, 4, 1, are_weights=True)),
    )
)


@some_by_night
def test_amounts_and_weights_are_summed_in_areas(stored):
    records, generator = people(300), np.random.default_rng(4)
    income = [None if amount > 100 else amount for amount in generator.integers(-20, 110, 300)]
    weights = generator.integers(0, 45, 300) / 10
    records = records.append_column("income", pa.array(income, pa.int64()))
    records = records.append_column("w", pa.array(weights))
    source = stored(records)
    for rule in (None, rp.PersonRule("who", most=300)):
        # By sex, income, weight and the areas of the lowest level; and income in regions alone.
        counts = source.count(AMOUNTS, [(0, 1, 2, 5), (1, 4)], areas=CUTS, person_rule=rule)
        lowest, regions = counts.counts((0, 1, 2, 5)), counts.counts((1, 4))
        steps = np.clip(np.array([0 if y is None else y for y in income]), -10, 100) + 10
        tenths = np.rint(np.minimum(weights, 4) * 10).astype(int)
        stated = np.array([y is not None for y in income])
        # A record adds y w where both are high, in 110 · 40 times, tenths rounded halves up.
        sums = np.where(stated, (steps * tenths + 5) // 10, 0)
        sexes, towns = records["sex"].to_numpy(), records["town"].to_pylist()
        for sex in (0, 1):
            assert lowest[sex, 1, 1].sum() == sums[sexes == sex].sum()
            # Those without an amount have a cell of their own, 110 times their weights.
            own = (sexes == sex) & ~stated
            assert lowest[sex, 2, 1].sum() == 110 * tenths[own].sum() // 10
            in_a = (sexes == sex) & np.array([town == "A" for town in towns])
            assert lowest[sex, 1, 1, TREE.find(["N", "A"])] == sums[in_a].sum()
        in_north = np.array([region == "N" for region in records["region"].to_pylist()])
        assert regions[1, TREE.find(["N"])] == steps[in_north & stated].sum()
        assert counts.counts((0,)).tolist() == np.bincount(sexes).tolist()


@some_by_night
def test_whole_numbers_are_codes_of_areas_too(stored):
    towns = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", "3"]})
    records = pa.table({"town": [1, 3, 3], "sex": [0, 1, 1]})
    cuts = AreaCuts(towns, (AreaCut(AreaRange.within(towns, 0, 0, 1, 2)),))
    counts = stored(records).count(DOMAIN, [(0, 2)], areas=cuts).counts((0, 2))
    # Nobody elsewhere; areas are the country, N, S, 1, 2, 3.
    assert counts.tolist() == [[0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 2, 0]]


@some_by_night
def test_all_records_lie_in_a_tree_that_has_but_its_top(stored):
    country = rp.AreaTree.from_columns({"country": ["A"]})
    cuts = AreaCuts(country, (AreaCut(AreaRange.within(country, 0, 0, 1, 0)),))
    source = stored(pa.table({"sex": [0, 1, 1], "who": [1, 2, 2]}))
    for tables in ([(0, 2)], [(2,)]):
        for rule in (None, rp.PersonRule("who", most=2)):
            counts = source.count(DOMAIN, tables, areas=cuts, person_rule=rule)
            expected = [[1, 0], [2, 0]] if len(tables[0]) > 1 else [3, 0]
            assert counts.n_records == 3
            assert counts.counts(tables[0]).tolist() == expected


def test_groups_whose_records_are_counted_nowhere_are_refused(monkeypatch):
    request = Request(
        "people", DOMAIN, ((2,),), Takers(), None, AreaCoder(CUTS, "", ["region", "town"], 2)
    )
    monkeypatch.setattr(postgres_session, "area_codes", lambda *_: {2: np.zeros(0, dtype=np.int64)})
    tally = postgres_session.GroupTally(request)
    tally.add((), pa.record_batch({postgres_session.N_RECORDS: [3]}))
    with pytest.raises(rp.errors.DataError, match="changed while they were counted"):
        tally.counts()


@some_by_night
def test_what_is_wrong_with_records_is_refused_as_that_of_files_is(stored):
    records = people(50)
    at_most_one = rp.PersonRule("who", most=1)
    elsewhere = records.set_column(0, "region", [["N"] * 49 + ["X"]])
    nowhere = records.set_column(0, "region", [["N"] * 49 + [None]])
    older = records.set_column(3, "age", pa.array([0] * 49 + [7]))
    ageless = records.set_column(3, "age", pa.array([0] * 49 + [None], pa.int64()))
    refused = (
        (elsewhere, None),
        (nowhere, None),
        (older, None),
        (ageless, None),
        (records, at_most_one),
    )
    for wrong, rule in refused:
        said = []
        for source in (stored(wrong), FrameSource(wrong, name="people")):
            with pytest.raises(rp.errors.DataError) as error:
                source.count(DOMAIN, SETS, areas=CUTS, person_rule=rule)
            said.append(str(error.value))
        assert said[0] == said[1]
    at = records.column_names.index("sex")
    strange = records.set_column(at, "sex", [["0"] * 49 + ["7"]])
    check(stored(strange), strange, SETS, unknown_values={"sex": "1"})


@pytest.mark.parametrize(
    "stored", [*ENGINES[:3], pytest.param("spark", marks=pytest.mark.nightly)], indirect=True
)  # by ADBC none is left out
def test_ties_between_records_of_a_person_are_broken_by_areas_too(stored):
    records = people(300)
    rule = rp.PersonRule("who", most=1, excess="keep first", order="day")
    counts = []
    for order in (slice(None), slice(None, None, -1)):
        source = stored(records.take(pa.array(np.arange(300)[order])))
        counts.append(
            [
                source.count(DOMAIN, tables, areas=CUTS, person_rule=rule).counts((0, 4))
                for tables in (TABLES, [(0, 4), (1, 4)])
            ]
        )
    assert counts[0][0].sum() == len(set(records["who"].to_pylist()))
    np.testing.assert_array_equal(*counts)


def test_codes_that_a_collation_takes_for_one_are_two_areas(postgres):
    records, counts = pa.table({"region": ["N"] * 2, "town": ["A", "a"], "sex": [0, 0]}), []
    for order in ([0, 1], [1, 0]):
        source = postgres.source(records.take(pa.array(order)), "people")
        postgres.run(
            "DROP COLLATION IF EXISTS any_case",
            "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)",
            "ALTER TABLE people ALTER town TYPE text COLLATE any_case",
        )
        assert postgres.run("SELECT 1 WHERE 'a' COLLATE any_case = 'A'")
        check(source, records, [(0, 4)])
        first = rp.PersonRule("region", 1, "keep first", "sex")
        counts.append(source.count(DOMAIN, [(0, 4)], areas=CUTS, person_rule=first).counts((0, 4)))
    np.testing.assert_array_equal(*counts)


def watch_tasks(monkeypatch, tmp_path, draw) -> None:
    """Let tasks of Spark, in parts as here, draw by a function, and leave it in `drawn from N`."""
    tasks_from = area_release.tasks_from

    def watched(parts, first):
        shares, work = tasks_from(parts, first)
        (folder := tmp_path / f"drawn from {first}").mkdir()
        return shares, Watched(work, folder, draw)

    monkeypatch.setattr(area_release, "tasks_from", watched)


@some_by_night
def test_a_release_in_passes_measures_what_one_of_the_same_records_in_memory_does(
    stored, tmp_path, monkeypatch
):
    monkeypatch.setattr(area_parts, "PART_NUMBERS", 8)
    monkeypatch.setattr(area_parts, "PART_CELLS", 1)
    monkeypatch.setattr(area_measurement, "discrete_gaussian", no_noise)
    watch_tasks(monkeypatch, tmp_path, no_noise)
    plan, records = PLANS["less further down"], pa.Table.from_pylist(RECORDS)
    ledger, measured = tmp_path / "ledger.sqlite", []
    for source in (stored(records), FrameSource(records, name="people")):
        release = rp.release(plan, source, tmp_path / f"release {len(measured)}", ledger=ledger)
        files = sorted((release.part("areas").folder / "residuals").iterdir())
        measured.append([pq.read_table(file) for file in files])
    assert len(AreaParts(plan).passes) == 3
    assert measured[0] == measured[1]


def test_a_release_from_spark_is_that_of_one_process_given_the_same_noise(
    spark, tmp_path, monkeypatch
):
    for name, value in SMALL.items():
        monkeypatch.setattr(f"{PARTS}.{name}", value)
    monkeypatch.setattr(SAMPLER, same_noise)
    watch_tasks(monkeypatch, tmp_path, same_noise)
    records, plan, book = pa.Table.from_pylist(RECORDS), PLANS["the same"], tmp_path / "book"
    source, output = in_spark(spark, records, tmp_path), tmp_path / "there"

    def stopped(*given):
        """Before the second share of the tasks is taken."""
        for number, share in enumerate(taken(*given)):
            if number == 1:
                raise KeyboardInterrupt
            yield share

    taken = spark_areas.taken
    with monkeypatch.context() as patch:
        patch.setattr(spark_areas, "taken", stopped)
        with pytest.raises(KeyboardInterrupt):
            rp.release(plan, source, output, ledger=book)
    draft = tmp_path / ".there.unfinished/run/draft.json"
    kept = json.loads(draft.read_text())["n_measured"]
    rp.release(plan, source, output, ledger=book)

    here = rp.release(plan, records, tmp_path / "here", ledger=book, name="people")
    assert contents(output) == contents(tmp_path / "here")
    assert [run.state for run in rp.Ledger(book).account(source).entries] == ["finished"]
    n_drawn = [len(np.load(path)) for path in (tmp_path / "drawn from 2").iterdir()]
    assert 0 < kept < sum(n_drawn) + kept == len(measurements(output))
    assert here.plan.sha256 == plan.sha256


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["worker", "executor"])
def test_a_task_that_is_killed_and_tried_again_publishes_one_noise(what, tmp_path):
    """In a process of its own: only a session that is made so tries again."""
    pytest.importorskip("pyspark")
    command = [sys.executable, "-m", "tests.data.engines.lost_task", str(tmp_path), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@some_by_night
def test_impossible_records_and_those_in_empty_areas_are_refused_in_every_engine(stored, tmp_path):
    """The combination is of attributes that no table has together: it is counted for the check."""
    domain = rp.Domain(DOMAIN.attributes, ({"sex": "1", "age": "2"},))
    tree = rp.AreaTree.from_columns({"region": list("NNS"), "town": list("123")}, empty=[0, 1, 0])
    tables = rp.Workload.of(domain, [("sex",), ("age",)])
    areas = rp.AreaWorkload.of_levels(tree, {"town": tables})
    plan = rp.plan(rp.Request(tables=tables, areas=areas, budget=rp.Budget(rho=1)))
    rows = {"region": ["N", "S"], "town": ["1", "3"], "sex": ["1", "0"], "age": [1, 2]}

    def refusal(changed) -> rp.errors.RpexploreError:
        source = stored(pa.table({**rows, **changed}))
        with pytest.raises(rp.errors.RpexploreError) as caught:
            rp.dry_run(plan, source, tmp_path / "out", ledger=tmp_path / "ledger.sqlite")
        return caught.value

    error = refusal({"age": [2, 2]})
    assert "impossible: sex=1 age=2." in str(error)
    assert error.private == "1 record has sex=1 age=2."
    assert "or that of an area stated to be empty" in str(refusal({"town": ["2", "3"]}))
