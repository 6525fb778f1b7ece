"""Counting in engines by rules for persons: who has how many records, and which count."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from tests.data.engines.conftest import two_stores
from tests.data.engines.people import DOMAIN, TABLES, expected, people
from tests.data.engines.servers import in_duckdb, in_spark


def kept(records: pa.Table, most: int) -> pa.Table:
    """The first so many records of each person, by turn."""
    rows, seen = [], Counter()
    for row in sorted(records.to_pylist(), key=lambda row: row["turn"]):
        seen[row["who"]] += 1
        if seen[row["who"]] <= most:
            rows.append(row)
    return pa.Table.from_pylist(rows, records.schema)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_first_records_of_each_person(most, store):
    records = people(400)
    rule = PersonRule("who", most, "keep first", "turn")
    counts = store(records).count(DOMAIN, TABLES, person_rule=rule)
    wanted = kept(records, most)
    assert counts.n_records == len(wanted)
    for table in TABLES:
        assert np.array_equal(counts.counts(table), expected(wanted, table))


def test_the_first_records_of_each_person_in_spark(spark, tmp_path):
    records = people(100)
    rule = PersonRule("who", 1, "keep first", "turn")
    counts = in_spark(spark, records, tmp_path, "persons").count(DOMAIN, [(0, 1)], person_rule=rule)
    assert np.array_equal(counts.counts((0, 1)), expected(kept(records, 1), (0, 1)))


@two_stores
def test_too_many_records_of_a_person_are_refused(store):
    records = people(400)
    most = max(Counter(records["who"].to_pylist()).values())
    source = store(records)
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("who", most)).n_records == 400
    with pytest.raises(DataError, match=f"more records than the {most - 1} that") as caught:
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", most - 1))
    assert not re.search(r"person \d", caught.value.on_screen())


@pytest.mark.parametrize("stream", [False, True])
def test_ids_of_a_collation_that_may_take_two_for_one(postgres, stream):
    """PostgreSQL looks for no pattern in texts of such a collation."""
    records = pa.table({"who": [*"acaBé", "7", "8"], "sex": [0, 0, 0, 1, 1, 1, 1]})
    records = records.append_column("turn", pa.array(range(7)))
    source = replace(postgres.source(records, "people"), stream=stream)
    postgres.run(
        "DROP COLLATION IF EXISTS any_case",
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level1', "
        "deterministic = false)",
        "ALTER TABLE people ALTER who TYPE text COLLATE any_case",
    )
    domain = Domain((Attribute("sex", Categories(("0", "1"))),))
    rule = PersonRule("who", 1, "keep first", "turn")
    assert source.count(domain, [(0,)], person_rule=rule).counts((0,)).tolist() == [2, 4]


@two_stores
@pytest.mark.parametrize("nobody", [None, ""])
def test_records_of_nobody_are_refused(nobody, store):
    records = people(9)
    at = records.column_names.index("who")
    records = records.set_column(at, "who", pa.array([nobody, *"bcdefghi"], pa.string()))
    for rule in (PersonRule("who", 9), PersonRule("who", 1, "keep first", "turn")):
        with pytest.raises(DataError, match="of every record whose"):
            store(records).count(DOMAIN, TABLES, person_rule=rule)


@two_stores
def test_persons_are_told_apart_letter_by_letter(store):
    """But not by capitals alone (tests/attacks/test_persons.py)."""
    records = people(4)
    at = records.column_names.index("who")
    source = store(records.set_column(at, "who", pa.array(["aa", "AB", "a.a", "\u00e4a"])))
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 1)).n_records == 4


def test_rules_that_cannot_be_followed_are_refused(store):
    source = store(people(5))
    with pytest.raises(DataError, match="have no order"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 1, "keep first"))
    with pytest.raises(DataError, match="no column 'whose'"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("whose", 1))


def test_servers_that_cannot_compare_texts_know_persons_by_number_alone(postgres, monkeypatch):
    import psycopg

    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", 12_00_22)
    source = postgres.source(people(5), "people")
    with pytest.raises(DataError, match="before PostgreSQL 13"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 5))
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("turn", 1)).n_records == 5


def test_ties_in_the_order_are_broken_by_what_is_counted(tmp_path):
    """One person more changes the counts by that person's records alone, however many are tied."""
    rng = np.random.default_rng(3)
    who, sex = rng.integers(0, 3000, 20_000), rng.integers(0, 2, 20_000)
    domain = Domain((Attribute("sex", Categories(("0", "1"))),))
    rule = PersonRule("who", 1, "keep first", "year")

    def counted(name: str, more: int, order: np.ndarray) -> np.ndarray:
        records = pa.table(
            {
                "who": np.append(who[order], [9999] * more),
                "sex": np.append(sex[order], [1] * more),
                "year": np.full(20_000 + more, 2020),
            }
        )
        source = in_duckdb(records, tmp_path / name)
        return source.count(domain, [(0,)], person_rule=rule).counts((0,))

    as_they_are = np.arange(20_000)
    first = counted("first.duckdb", 0, as_they_are)
    assert counted("shuffled.duckdb", 0, rng.permutation(20_000)).tolist() == first.tolist()
    assert np.abs(counted("more.duckdb", 1, as_they_are) - first).tolist() == [0, 1]
