"""Recodes: what records have, and what it is counted as, in every source."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.domain.domain import Domain
from rpexplore.domain.recodes import recode_of_file, with_not_stated, with_recode
from rpexplore.errors import DomainError
from rpexplore.planning.planner import plan_tables
from tests.data.engines.servers import in_duckdb

PERSONS = {
    "name": "persons",
    "type": "string",
    "constraints": {"enum": ["1", "2", "3+"]},
    "recode": {"3": "3+", "4..20": "3+"},
}
TOWN = {
    "name": "town",
    "type": "string",
    "constraints": {"enum": ["0101", "0102"]},
    "missingValues": ["99"],
    "recode": {"0007": "0101", "0008": "0101", "x": "99"},
}
DOMAIN = Domain.from_schema({"fields": [PERSONS, TOWN]})
ROWS = [(1, "0101"), (3, "0007"), (20, "0008"), (4, "0102"), (2, "99"), (12, "x"), (2, "0102")]
FRAME = pd.DataFrame(ROWS, columns=["persons", "town"])


def changed(field: dict, **stated) -> Domain:
    return Domain.from_schema({"fields": [{**field, **stated}]})


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "duckdb"])
def test_every_source_counts_the_new_values(kind, tmp_path):
    FRAME.to_csv(tmp_path / "r.csv", index=False)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "r.parquet")
    sources = {
        "csv": lambda: FileSource(tmp_path / "r.csv"),
        "parquet": lambda: FileSource(tmp_path / "r.parquet"),
        "pandas": lambda: FrameSource(FRAME, name="r"),
        "duckdb": lambda: in_duckdb(pa.Table.from_pandas(FRAME), tmp_path / "r.db"),
    }
    counts = sources[kind]().count(DOMAIN, [(0, 1)])
    new = {number: "3+" if number > 2 else str(number) for number in range(1, 21)}
    towns = {"0007": "0101", "0008": "0101", "x": "99"}
    expected = pd.crosstab(FRAME["persons"].map(new), FRAME["town"].replace(towns))
    expected = expected.reindex(index=["1", "2", "3+"], columns=["0101", "0102", "99"])
    assert counts.counts((0, 1)).tolist() == expected.to_numpy().tolist()


def test_recodes_are_in_the_plan():
    workload = rp.Workload.all_up_to(DOMAIN, 1)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    other = changed(PERSONS, recode={"3": "3+"}), DOMAIN["town"]
    fewer = rp.Workload.all_up_to(Domain((other[0]["persons"], other[1])), 1)
    without = plan_tables(fewer, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    assert "20" in plan.domain["persons"].values.spellings[2]
    assert plan.sha256 != without.sha256


@pytest.mark.parametrize(
    ("recode", "message"),
    [
        ({"3": "4+"}, "none of its values"),
        ({"1": "2"}, "lists '1' as a value as well"),
        ({"3": "3+", "2..4": "3+"}, "lists '2' as a value as well"),
        ({"3..5": "3+", "5": "3+"}, "says twice what '5'"),
        ({"9..3": "3+"}, "from the smaller to the larger"),
        ({"4..400000": "3+"}, "more than 100,000"),
        ({"3": None}, "to a value of its list"),
        (["3"], "must be an object"),
    ],
)
def test_recodes_that_cannot_be_used(recode, message):
    with pytest.raises(DomainError, match=message):
        changed(PERSONS, recode=recode)


NUMBERS = [
    {
        "name": "age",
        "type": "integer",
        "bins": [0, 15, 65, 90],
        "missingValues": ["-9"],
        "recode": {"90+": "90", "998": "0 to under 15", "200..201": "64"},
    },
    {
        "name": "rooms",
        "type": "integer",
        "constraints": {"minimum": 1, "maximum": 9, "step": 3},
        "recode": {"10": 9, "many": "7 to 9"},
    },
    {
        "name": "moved",
        "type": "date",
        "constraints": {"minimum": "2020", "maximum": "2022", "step": "year"},
        "recode": {"long ago": "2020-01-01", "1999-01-01": "2020"},
    },
]


@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_numbers_and_dates_are_recoded_before_they_are_read(kind, tmp_path):
    """Text for text, what pandas counts once the texts are replaced by hand."""
    domain = Domain.from_schema({"fields": NUMBERS})
    ages = ["90+", "998", "200", "201", "-9", "14", "90", "15"]
    rooms = ["10", "many", "1", "3", "4", "9", "7", "2"]
    days = ["long ago", "1999-01-01", "2021-05-05", "2022-12-31", *["2020-02-29"] * 4]
    frame = pd.DataFrame({"age": ages, "rooms": rooms, "moved": days})
    frame.to_csv(tmp_path / "r.csv", index=False)
    source = FileSource(tmp_path / "r.csv")
    if kind == "duckdb":
        source = in_duckdb(pa.Table.from_pandas(frame), tmp_path / "r.db")
    counts = source.count(domain, [(0,), (1,), (2,)])
    age = frame["age"].replace({"90+": "90", "998": "0", "200": "64", "201": "64"}).astype(int)
    found = pd.cut(age[age >= 0], [0, 15, 65, 91], right=False).value_counts(sort=False)
    assert counts.counts((0,)).tolist() == [*found, (age == -9).sum()]
    rooms = frame["rooms"].replace({"10": "9", "many": "7"}).astype(int)
    assert counts.counts((1,)).tolist() == [*((rooms - 1) // 3).value_counts().sort_index()]
    years = frame["moved"].replace({"long ago": "2020", "1999-01-01": "2020"}).str[:4]
    assert counts.counts((2,)).tolist() == [*years.value_counts().sort_index()]
    again = Domain.from_schema(domain.to_schema())
    assert again == domain
    assert again["age"].values.recode[:2] == (("90+", "90"), ("998", "0"))


@pytest.mark.parametrize(
    ("field", "recode", "message"),
    [
        (0, {"90+": "91"}, "to '91', which is none of its numbers; name one from 0 to under 15 to"),
        (0, {"-9": "0"}, "says twice what '-9'"),
        (0, {"7": "8", "7.0": "9"}, "says twice what '7.0'"),
        (0, {" ": "8"}, "An empty value cannot be recoded"),
        (0, {"1000..2000": "8"}, "more than 1,000"),
        (2, {"x": "2023"}, "none of its dates"),
    ],
)
def test_recodes_of_numbers_that_cannot_be_used(field, recode, message):
    with pytest.raises(DomainError, match=message):
        changed(NUMBERS[field], recode=recode)


def test_amounts_are_not_recoded():
    with pytest.raises(DomainError, match="amounts are summed as they are"):
        changed({"name": "x", "type": "number", "bounds": [0, 9]}, recode={"10": "9"})


def test_recodes_come_from_files_of_old_and_new_codes():
    plain = changed({**TOWN, "recode": {}})
    file = recode_of_file("new;old;name\n0101;0007;A\n0101;0101;A\n0101;0008;B\n", "old-new.csv")
    assert with_recode(plain, "town", file)["town"].values.spellings[0] == ("0007", "0008")
    for text, message in (
        ("old,code\n1,2\n", "one column old and one column new"),
        ("old,new\n1,2\n1,3\n", "line 3, recodes '1' to '3'"),
        ("old,new\n1,\n", "must have an old and a new value"),
    ):
        with pytest.raises(DomainError, match=message):
            recode_of_file(text, "old-new.csv")


def test_records_without_a_value_can_have_one_more():
    plain = Domain(
        (
            rp.Attribute("sex", rp.Categories(("F", "M")), groups=(("a",), ())),
            rp.Attribute("age", rp.Integers(0, 1, missing=(("-9", "refused"),))),
            rp.Attribute("town", rp.Categories(("x", "not stated"))),
        )
    )
    domain = with_not_stated(plain, ["sex", "age", "town"])
    assert domain["sex"].stored_values() == ["F", "M", "not stated"]
    assert domain["sex"].groups == (("a",), (), ("Missing",))
    assert domain["age"].labels() == ["0", "1", "refused", "not stated"]
    assert domain["town"] == plain["town"]
    assert with_not_stated(domain, domain.names) == domain
    records = pd.DataFrame({"sex": ["F", None, None], "age": [1, None, -9], "town": ["x"] * 3})
    values = {"*": "not stated"}
    counts = FrameSource(records, name="r").count(domain, [(0,), (1,)], missing_values=values)
    assert counts.counts((0,)).tolist() == [1, 0, 2]
    assert counts.counts((1,)).tolist() == [0, 1, 1, 1]
