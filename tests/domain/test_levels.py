"""Levels of attributes in codebooks, and as attributes of tables."""

import pytest

import rpexplore as rp
from rpexplore.domain.categories import Categories
from rpexplore.domain.levels import groups_of
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.domain.values import product_query
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.scenarios.codebook_grid import domain_with_level_lines

AGES = {"name": "age", "type": "integer", "constraints": {"minimum": 3, "maximum": 19}}
COUNTRIES = {"name": "country", "type": "string", "constraints": {"enum": ["DE", "FR", "BR"]}}


def domain_of(field: dict, **levels) -> rp.Domain:
    return rp.Domain.from_schema({"fields": [{**field, "levels": levels}]})


@pytest.mark.parametrize(
    ("stated", "values", "groups"),
    [
        (5, Integers(3, 11), ["3 to 4"] * 2 + ["5 to 9"] * 5 + ["10 to 11"] * 2),
        ("0-1, 2+", Integers(0, 3), ["0-1", "0-1", "2+", "2+"]),
        ("0-20, 20-30", Bins((0, 10, 20, 30)), ["0-20", "0-20", "20-30"]),
        ("0..4, 5+", Integers(4, 5), ["0..4", "5+"]),
        ("5, 0 to 4, 6-9.5", Integers(4, 6), ["0 to 4", "5", "6-9.5"]),
        (10, Bins((0, 5, 10, 15, 20)), ["0 to 10"] * 2 + ["10 to 20"] * 2),
        (2.0, Integers(0, 2), ["0 to 1", "0 to 1", "2"]),
        (2, Integers(10**6, 10**6 + 2), ["1000000 to 1000001"] * 2 + ["1000002"]),
        (2, Integers(0, 2, missing=(("-9", "refused"),)), ["0 to 1", "0 to 1", "2", "refused"]),
        ("quarter", Dates("2026-01", "2026-04", "month", missing=(("", "open"),)),
         ["2026-Q1"] * 3 + ["2026-04-01 to 2026-04-30", "open"]),
        ({"Europe": ["FR", "DE"], "other": ["BR"]}, Categories(("DE", "FR", "BR")),
         ["Europe", "Europe", "other"]),
    ],
)  # fmt: skip
def test_the_forms_of_a_level(stated, values, groups):
    assert list(groups_of("level", stated, values)) == groups


@pytest.mark.parametrize(
    ("field", "stated", "message"),
    [
        (AGES, "0-9, 11-19", "has 10 in no band"),
        (AGES, "0-10, 10-19", "has 10 in two bands, 0-10 and 10-19"),
        (AGES, "0-12, 11-19", "has bands that overlap, 0-12 and 11-19"),
        (AGES, "0-9..5, 10+", "must be bands such as"),
        (AGES, "young, old", "must be bands such as 0-17, 18-64, 65., got 'young'"),
        (AGES, 1, "width of level 'x' must be a whole number of at least 2"),
        (AGES, 50, "has one group of all values"),
        (AGES, ["a", "b"], "a group for each of its 17 values, got 2"),
        ({**AGES, "constraints": {"minimum": 0, "maximum": 19, "step": 5}}, 7, "would split"),
        (COUNTRIES, {"Europe": ["DE", "FR"]}, "has no group for 'BR'"),
        (COUNTRIES, {"a": ["DE", "FR"], "b": ["FR", "BR"]}, "'FR' in two groups, 'a' and 'b'"),
        (COUNTRIES, {"a": ["DE", "US"], "b": ["FR", "BR"]}, "'US' in the group 'a', which is no"),
        (COUNTRIES, ["a", "b", "c"], "a group for every value"),
        (
            COUNTRIES,
            {"a": ["DE"], "a ": ["FR"], "b": ["BR"]},
            "two groups that are both called 'a'",
        ),
        (COUNTRIES, ["\u00e9", "e\u0301", "b"], "two groups that are both called '\u00e9'"),
        (
            {**AGES, "missingValues": [{"value": "-9", "label": "0–9"}]},
            "0–9, 10+",
            "has a group that is called '0–9', as a cell for missing values is",
        ),
        (COUNTRIES, "0-3", "states numbers, and the values are none"),
        (
            {
                "name": "day",
                "type": "date",
                "constraints": {"minimum": "2026-01", "maximum": "2026-12", "step": "month"},
            },
            "week",
            "by week would split",
        ),
    ],
)
def test_a_level_that_cannot_be_made_is_refused_by_name(field, stated, message):
    with pytest.raises(DomainError, match=message):
        domain_of(field, x=stated)


MANY = {"name": "many", "type": "integer", "constraints": {"minimum": 0, "maximum": 99_999}}


@pytest.mark.nightly
def test_levels_are_counted_before_they_are_made(monkeypatch):
    """A codebook of a few lines can state levels that take minutes and gigabytes."""
    of_one = {f"level {number}": number + 2 for number in range(6)}
    two = {"fields": [{**MANY, "name": name, "levels": of_one} for name in ("one", "two")]}
    with pytest.raises(DomainError, match="levels of a codebook can group 1,000,000 values"):
        rp.Domain.from_schema(two)
    monkeypatch.setattr("rpexplore.domain.levels.groups_of", lambda *_: pytest.fail("made"))
    with pytest.raises(DomainError, match="can have 100 levels, got 101"):
        domain_of(AGES, **{f"level {number}": 2 for number in range(101)})
    with pytest.raises(DomainError, match=r"group 1,000,000 values.*got 11 levels of 100,000"):
        domain_of(MANY, **{f"level {number}": 2 for number in range(11)})
    with pytest.raises(DomainError, match="can have 100 levels, got 101"):
        domain_with_level_lines(domain_of(AGES), "age", "\n".join(["x: 5"] * 101))


def test_a_codebook_with_levels_is_written_and_read_again(tmp_path):
    domain = domain_of(AGES, five=5, adult="0-17, 18+")
    domain.save(tmp_path / "codebook.json")
    assert rp.Domain.load(tmp_path / "codebook.json") == domain
    assert rp.Domain.from_schema(domain.with_levels.to_schema()) == domain
    with pytest.raises(DomainError, match="has levels, which a CSV codebook cannot say"):
        domain.save(tmp_path / "codebook.csv")


def test_tables_have_levels_behind_the_attributes():
    groups = [["Europe"], ["Europe"], ["America"]]
    schema = {
        "fields": [{**AGES, "levels": {"adult": "0-17, 18+"}}, {**COUNTRIES, "groups": groups}]
    }
    domain = rp.Domain.from_schema(schema).with_levels
    assert domain.names == ("age", "country", "age@adult", "country@groups")
    assert domain["country@groups"].labels() == ["Europe", "America"]
    assert domain.columns.tolist() == [0, 1, 0, 1]
    assert domain.n_cells == 17 * 3
    assert domain.of_records == rp.Domain.from_schema(schema)


def test_tables_up_to_an_order_have_levels_where_they_are_named():
    domain = rp.Domain.from_schema({"fields": [{**AGES, "levels": {"five": 5}}, COUNTRIES]})
    assert rp.Workload.all_up_to(domain, 2).tables[-1] == ("age", "country")
    with_level = rp.Workload.all_up_to(domain, 2, containing=["age@five"])
    assert with_level.tables == [("age@five",), ("country", "age@five")]


def test_a_table_with_two_levels_of_an_attribute_is_refused():
    domain = domain_of(AGES, five=5, adult="0-17, 18+")
    with pytest.raises(WorkloadError, match="has the attribute 'age' at two levels"):
        rp.Workload.of(domain, [("age@adult", "age@five")])


def test_groups_and_levels_by_their_bare_names_are_refused_with_the_right_ones():
    domain = domain_of(COUNTRIES, continent={"Europe": ["DE", "FR"], "America": ["BR"]})
    with pytest.raises(DomainError, match="one of its level continent; write country@continent=Eu"):
        product_query(domain, {"country": "Europe"})
    with pytest.raises(DomainError, match=r"it is a level, .* its attribute: country@continent"):
        domain.position("continent")
    for known in (domain, domain.with_levels):
        with pytest.raises(DomainError, match="'country' has no level 'con'; it has 'continent'"):
            known.position("country@con")


def test_bands_of_whole_bins_may_end_before_an_edge():
    bins = Bins((0, 15, 65, 99), are_whole=True)
    assert groups_of("level", "0-14, 15-99", bins) == ("0-14", "15-99", "15-99")
    assert groups_of("level", "0-15, 15+", bins) == ("0-15", "15+", "15+")
    with pytest.raises(DomainError, match="in no band"):
        groups_of("level", "0-14, 15-99", Bins(bins.edges))
