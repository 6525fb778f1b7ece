"""Public tables: fitted together, ordered, and refused where they do not fit."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts_file import csv_of_public_table, public_table_from_csv
from rpexplore.domain.public_tables import MAX_TOGETHER, PublicTables, without_margin
from rpexplore.errors import WorkloadError

FIELDS = [
    {"name": "age", "constraints": {"minimum": 0, "maximum": 5}, "levels": {"two": 3}},
    {"name": "sex", "constraints": {"enum": ["f", "m"]}},
    {"name": "job", "constraints": {"enum": ["a", "b", "c"]}},
]
DOMAIN = rp.Domain.from_schema({"fields": FIELDS})


def table(names: str, counts, **more) -> rp.PublicTable:
    attributes = tuple(names.split(","))
    known = DOMAIN.with_levels
    values = tuple(tuple(known[name].stored_values()) for name in attributes)
    flat = tuple(np.asarray(counts, dtype=float).ravel().tolist())
    return rp.PublicTable(rp.ExpectedCounts(attributes, values, flat), **more)


def test_tables_that_share_an_attribute_make_the_others_independent_given_it():
    random = np.random.default_rng(1)
    joint = random.integers(1, 50, (6, 2, 3)).astype(float)
    by_age_sex, by_sex_job = table("age,sex", joint.sum(2)), table("sex,job", joint.sum(0))
    ((of),) = PublicTables(DOMAIN, (by_age_sex, by_sex_job)).connected
    fitted = of.fitted(np.ones(36)).reshape(6, 2, 3) * joint.sum()
    wanted = joint.sum(2)[:, :, None] * joint.sum(0)[None] / joint.sum((0, 2))[None, :, None]
    assert of.columns == (0, 1, 2)
    assert np.allclose(fitted, wanted, rtol=1e-7)


def test_a_table_at_a_level_says_what_its_groups_have():
    of_level, of_sex = table("age@two", [30, 70]), table("sex", [25, 75])
    public = PublicTables(DOMAIN, (of_level, of_sex), 100)
    by_age = next(of for of in public.connected if of.columns == (0,))
    start = np.arange(1.0, 7.0)
    fitted = by_age.fitted(start)
    assert np.allclose(fitted, [0.05, 0.1, 0.15, 0.7 * 4 / 15, 0.7 * 5 / 15, 0.7 * 6 / 15])
    assert np.allclose(by_age.holds((2,), np.arange(6) // 3), [0.3, 0.7])
    assert by_age.holds((6,), np.arange(6)) is None


def test_of_tables_that_contradict_each_other_the_newer_is_followed_and_it_is_said():
    newer = table("sex,job", [[10, 10, 10], [30, 20, 20]], name="census", date="2021")
    older = table("sex", [50, 50], name="register", date="2011")
    public = PublicTables(DOMAIN, (newer, older))
    (of,) = public.connected
    assert np.allclose(of.fitted(np.ones(6)).reshape(2, 3).sum(1), [0.3, 0.7])
    (sentence,) = public.contradictions
    assert "register (2011) and census (2021) contradict each other by sex" in sentence
    assert "50 % and 30 %" in sentence
    assert public.n_records == 100


def test_a_contradiction_at_different_levels_is_named_with_the_largest_difference():
    """Ages 0–2 hold 30 % of the older table; the newer, by single ages, has 10 + 10 + 20 = 40 %."""
    older = table("age@two,sex", [[20, 10], [30, 40]], name="register", date="2011")
    newer = table("age", [10, 10, 20, 20, 20, 20], name="census", date="2021")
    (sentence,) = PublicTables(DOMAIN, (newer, older)).contradictions
    assert "contradict each other by age@two" in sentence
    assert "30 % and 40 %" in sentence or "70 % and 60 %" in sentence
    agreeing = table("age", [10, 10, 10, 30, 20, 20], date="2021")
    assert not PublicTables(DOMAIN, (agreeing, older)).contradictions
    one = table("sex,age@two", [[20, 30], [10, 40]], date="2021")
    assert not PublicTables(DOMAIN, (one, older)).contradictions


def test_impossible_combinations_hold_in_what_public_tables_leave_open():
    """By hand: nobody of age 0 has job a; age and job else independent given the margins."""
    domain = rp.Domain.from_schema({"fields": FIELDS, "impossible": [{"age": "0", "job": ["a"]}]})
    ages, jobs = table("age", [20, 20, 20, 20, 10, 10]), table("job", [40, 30, 30])
    (of,) = PublicTables(domain, (ages, jobs)).connected
    assert of.columns == (0, 2)
    fitted = of.fitted(np.ones(18)).reshape(6, 3)
    assert fitted[0, 0] == 0
    assert np.allclose(fitted.sum(1) * 100, [20, 20, 20, 20, 10, 10])
    assert np.allclose(fitted.sum(0) * 100, [40, 30, 30])
    # Quasi-independence: odds ratios of the possible cells are 1.
    assert np.allclose(fitted[1:, 0] * fitted[1, 1], fitted[1:, 1] * fitted[1, 0])
    assert np.allclose(fitted[:, 1] * fitted[1, 2], fitted[:, 2] * fitted[1, 1])
    both = table("age,job", np.full((6, 3), 10))
    (sentence,) = PublicTables(domain, (both,)).contradictions
    assert "impossible by the codebook" in sentence
    assert "5.6 %" in sentence


def test_what_an_older_table_calls_empty_does_not_keep_the_newer_from_being_followed():
    older = table("job", [50, 50, 0], date="2011")
    newer = table("job", [50, 0, 50], date="2021")
    (of,) = PublicTables(DOMAIN, (newer, older)).connected
    assert np.allclose(of.fitted(np.ones(3)), [0.5, 0, 0.5])


def test_shares_say_how_records_are_divided_and_a_total_that_differs_is_named():
    shares, counts = table("sex", [25, 75], is_shares=True), table("job", [50, 25, 25])
    public = PublicTables(DOMAIN, (shares, counts))
    assert public.n_records == 100
    assert np.allclose(public.connected[0].fitted(np.ones(2)), [0.25, 0.75])
    assert without_margin(DOMAIN, public.tables, ["age@two", "sex", "job"]) == ("age",)
    assert not public.contradictions
    (sentence,) = PublicTables(DOMAIN, (shares, counts), 95).contradictions
    assert "the counts by job counts 100 in all, and 95 are expected: 5.3 % apart" in sentence


def test_a_file_says_name_date_and_source_before_its_header():
    facts = b"# name: Census, final\r\n# date: 2021-01\r\n# source: the office\r\n"
    content = facts + b"sex,percent\r\nf,51.2\r\nm,48.8\r\n"
    read = public_table_from_csv(DOMAIN, content, "file.csv")
    assert read.citation == "Census, final (2021-01; the office; shares)"
    assert read.counts.counts == (51.2, 48.8)
    assert public_table_from_csv(DOMAIN, csv_of_public_table(read).encode(), "other.csv") == read
    padded = content.replace(b"# name: Census, final", b'"# name: Census, ""final""",')
    assert public_table_from_csv(DOMAIN, padded, "file.csv").name == 'Census, "final"'
    plain = b"age@two,count\n0 to 2,30\n3 to 5,70\n"
    assert public_table_from_csv(DOMAIN.with_levels, plain, "file.csv").name == "file.csv"
    for bad, message in (
        (content.replace(b"51.2", b"-51.2"), "file.csv: Line 5: The count must be 0 to"),
        (content.replace(b"f,", b"x,"), "Line 5: 'sex' has no value 'x' in the codebook"),
        (content.replace(b"2021-01", b"2021-13"), "must be written like 2026"),
        (content.replace(b"# source", b"# date"), "two lines with its date"),
    ):
        with pytest.raises(WorkloadError, match=message):
            public_table_from_csv(DOMAIN, bad, "file.csv")


@pytest.mark.parametrize(
    ("tables", "expected", "message"),
    [
        ((table("age@two", [50, 50]),), 0, "at least 1, got 0"),
        ((), -5, "expected records must be at least 1, got -5"),
        ((), float("nan"), "must be 0 to"),
        ((), None, "needs the number of records"),
        ((table("sex", [60, 60]),), 100, "more than 10 % apart"),
        ((table("sex", [50, 50]), table("job", [90, 20, 20])), None, "more than 10 % apart"),
        ((table("sex", [50, 50], is_shares=True),), None, "do not say how many there are"),
    ],
)
def test_what_does_not_fit_is_refused(tables, expected, message):
    with pytest.raises(WorkloadError, match=message):
        PublicTables(DOMAIN, tables, expected)


def test_tables_that_connect_too_many_cells_are_refused():
    domain = rp.Domain.from_sizes({"a": 100, "b": 100, "c": 100})
    values = tuple(map(str, range(100)))
    pairs = [("a", "b"), ("b", "c")]
    tables = tuple(
        rp.PublicTable(rp.ExpectedCounts(pair, (values, values), (1.0,) * 10_000)) for pair in pairs
    )
    with pytest.raises(WorkloadError, match=f"at most {MAX_TOGETHER:,}"):
        _ = PublicTables(domain, tables).connected
