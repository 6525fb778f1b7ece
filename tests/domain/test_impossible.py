"""Impossible combinations in a codebook: kept exactly, refused by name, followed through edits."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain import structural_zeros
from rpexplore.domain.levels import Level
from rpexplore.domain.values import (
    combination_from_text,
    describe_combinations,
)
from rpexplore.errors import DomainError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.results.synthetic.impossible import Impossible, conditions_of_records
from rpexplore.scenarios.codebook_import import combinations_in_words, domain_with_lines, lines_of
from rpexplore.scenarios.scenario import Scenario
from tests.support.processor_time import at_most

AGE = rp.Attribute("age", rp.Integers(0, 99))
STATUS = rp.Attribute("status", rp.Categories(("s", "m", "a,b"), ("Single", "Married", "x age=1")))
WORK = rp.Attribute("work", rp.Categories(("yes", "no")))
STATED = (
    {"status": "Married", "age": "0..14"},
    {"age": [1, "3..4"], "work": "yes"},
    {"status": "x age=1", "work": "no"},
)
DOMAIN = rp.Domain((AGE, STATUS, WORK), STATED)
TEXTS = ["age=0..14 status=Married", "age=1,3..4 work=yes", "status=x age=1 work=no"]


def texts(domain):
    return [combination.text for combination in domain.impossible]


def test_they_are_kept_in_every_file_that_holds_a_codebook():
    assert texts(DOMAIN) == TEXTS
    text = DOMAIN.text("c.json")
    assert rp.Domain.parse(text, "c.json") == DOMAIN
    assert hash(rp.Domain.parse(text, "c.json")) == hash(DOMAIN)
    assert Scenario.parse(Scenario(DOMAIN).text()).domain == DOMAIN
    bare = rp.Domain(DOMAIN.attributes)
    assert bare != DOMAIN
    assert "impossible" not in bare.text("c.json")
    plans = [
        plan_tables(
            rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
        )
        for domain in (bare, DOMAIN)
    ]
    without, stated = (plan.text.split("\n") for plan in plans)
    assert TablePlan.parse(plans[1].text).workload.domain == DOMAIN
    # The noise is the same: the plans differ in the codebook, and so in the seal.
    differing = [line for line, other in zip(without, stated, strict=True) if line != other]
    assert [line.split(":")[0] for line in differing] == ['"domain"', '"sha256"']


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"age": "1"}, "must be a list of combinations"),
        (
            [{"work": "no"}, {}],
            r"combination 2 .*such as \{\"age\": \"0\", \"status\": \"s\"\}, got",
        ),
        ([{"sex": "f"}], "combination 1 of the codebook: There is no attribute 'sex'"),
        ([{"age": "0..140"}], "must be named by one of them or a range .* got '0..140'"),
        ([{"age": None}], "'age' must be a text or a list of texts, got null"),
    ],
)
def test_what_the_domain_does_not_allow_is_refused(stated, message):
    with pytest.raises(DomainError, match=message):
        rp.Domain(DOMAIN.attributes, stated)


def test_a_csv_codebook_cannot_say_them():
    domain = rp.Domain((WORK,), [{"work": "no"}])
    with pytest.raises(DomainError, match="1 impossible combination: work=no, which a CSV"):
        domain.text("c.csv")


def test_a_codebook_in_which_nobody_is_possible_is_refused():
    for stated in (
        [{"work": ["yes", "no"]}],
        [{"work": "yes"}, {"work": "no", "age": "0..49"}, {"work": "no", "age": "50..99"}],
    ):
        with pytest.raises(DomainError, match="so there can be no records; leave out one"):
            rp.Domain((AGE, WORK), stated)
        schema = rp.Domain((AGE, WORK)).to_schema() | {"impossible": stated}
        with pytest.raises(DomainError, match="so there can be no records"):
            rp.Domain.parse(json.dumps(schema), "c.json")


def test_cells_without_a_possible_record_against_all_records():
    """Of tables of any attributes; what takes two combinations together is impossible, too."""
    sizes = {"a": 3, "b": 2, "c": 2, "d": 4, "e": 2}
    stated = [
        {"a": "0", "b": "1"},
        {"b": "0", "c": "1"},  # with the one above: never a=0 c=1
        {"c": "0", "d": "2,3"},
        {"d": "1", "c": "0,1"},  # never d=1
        {"a": "2", "c": "1", "d": "0"},
    ]
    zeros = rp.Domain(rp.Domain.from_sizes(sizes).attributes, stated).structural_zeros
    full = np.ones(tuple(sizes.values()))
    full[0, 1] = 0
    full[:, 0, 1] = 0
    full[:, :, 0, 2:] = 0
    full[:, :, :, 1] = 0
    full[2, :, 1, 0] = 0
    assert full[tuple(zeros.possible_record())] == 1
    for order in range(6):
        for table in combinations(range(5), order):
            counts = full.sum(axis=tuple(axis for axis in range(5) if axis not in table))
            possible = zeros.possible(table)
            assert np.all(counts > 0 if possible is None else possible == (counts > 0))
            np.testing.assert_allclose(zeros.even_shares(table), counts / counts.sum())


def test_cells_at_levels_are_impossible_where_each_value_of_their_group_is():
    """Also where each is by another combination; the levels come in another order than columns."""
    stated = [
        {"a": "0", "b": "1"},
        {"a": "1", "b": "1", "c": "0"},
        {"d": "0,1", "c": "1"},
        {"d": "3", "a": "2"},
    ]
    full = np.ones((3, 2, 2, 4))
    full[0, 1] = 0
    full[1, 1, 0] = 0
    full[:, :, 1, :2] = 0
    full[2, :, :, 3] = 0
    groups = {"d": ["x", "x", "y", "z"], "a": ["x", "x", "y"]}
    attributes = [
        replace(one, levels=(Level("l", tuple(groups[one.name])),)) if one.name in groups else one
        for one in rp.Domain.from_sizes({"a": 3, "b": 2, "c": 2, "d": 4})
    ]
    domain = rp.Domain((attributes[3], *attributes[:3]), stated).with_levels
    by_name = {"a": 0, "b": 1, "c": 2, "d": 3}
    for order in range(5):
        for table in combinations(range(len(domain)), order):
            columns = [by_name[domain.names[domain.columns[index]]] for index in table]
            if len({*columns}) < len(columns):
                continue
            counts = full.sum(axis=tuple(axis for axis in range(4) if axis not in columns))
            counts = counts.transpose(np.argsort(np.argsort(columns)))
            for axis, index in enumerate(table):
                if (attribute := domain.attributes[index]).of:
                    members = np.eye(attribute.size)[:, list(attribute.index_of_values)]
                    counts = np.moveaxis(np.tensordot(members, counts, (1, axis)), 0, axis)
            possible = domain.structural_zeros.possible(table)
            assert np.all(counts > 0 if possible is None else possible == (counts > 0))
            np.testing.assert_allclose(domain.structural_zeros.even_shares(table) > 0, counts > 0)
            # Records at levels: the same cells, as conditions.
            conditions, left_out = conditions_of_records(domain, table, [], ignore_codebook=False)
            met = np.zeros([domain.attributes[index].size for index in table], dtype=bool)
            for condition in Impossible.of(domain, table, conditions).conditions:
                masks = [
                    condition.get(axis, np.ones(size, dtype=bool))
                    for axis, size in enumerate(met.shape)
                ]
                met[np.ix_(*masks)] = True
            if not left_out:
                np.testing.assert_array_equal(met, counts == 0)


def test_a_combination_of_very_many_attributes_makes_no_table_of_them():
    """By hand: 8^10 combinations of kinds would take 8 GB; those of two attributes still hold."""
    names = [f"a{i}" for i in range(10)]
    stated = [dict.fromkeys(names, str(value)) for value in range(7)]
    stated.append({"a0": "0", "a1": "1"})
    zeros = rp.Domain(rp.Domain.from_sizes(dict.fromkeys(names, 9)).attributes, stated)
    possible = zeros.structural_zeros.possible((0, 1))
    assert np.argwhere(~possible).tolist() == [[0, 1]]
    assert zeros.structural_zeros.possible((2, 3)) is None
    with pytest.raises(DomainError, match="Too many impossible combinations hang together"):
        zeros.structural_zeros.even_shares((0,))


def test_combinations_that_hang_together_in_too_many_ways(monkeypatch):
    """Then cells are only those of single combinations, and even shares are refused."""
    stated = [{f"a{i}": "0", f"a{j}": "0"} for i, j in combinations(range(6), 2)]
    stated.append({"a0": "1", "a1": "1"})
    domain = rp.Domain.from_sizes({f"a{i}": 3 for i in range(6)})
    monkeypatch.setattr(structural_zeros, "_MOST_CELLS", 20)
    zeros = rp.Domain(domain.attributes, stated).structural_zeros
    assert zeros.possible((0, 1)).tolist() == [
        [False, True, True], [True, False, True], [True, True, True]
    ]  # fmt: skip
    with pytest.raises(DomainError, match="Too many impossible combinations hang together"):
        zeros.even_shares((0, 1))


def test_they_follow_an_edit_or_are_dropped_with_a_word():
    years = replace(AGE, name="years")
    edited = DOMAIN.with_attributes((STATUS, years, WORK), {"age": "years"})
    assert texts(edited)[0] == "status=Married years=0..14"
    assert Scenario(DOMAIN).with_domain(edited, renamed={"age": "years"})[1] == []
    fewer = replace(STATUS, values=rp.Categories(("s", "m")))
    changed, notes = Scenario(DOMAIN).with_domain(DOMAIN.with_attributes((AGE, fewer, WORK)))
    assert texts(changed.domain) == TEXTS[1:2]
    assert notes == [
        "Dropped, because the codebook no longer has their attributes or values as they were: "
        f"2 impossible combinations: {TEXTS[0]}; {TEXTS[2]}"
    ]
    _, notes = Scenario(DOMAIN).with_domain(rp.Domain(DOMAIN.attributes), from_elsewhere=True)
    assert notes[0].startswith("Dropped, because the loaded codebook does not state them: 3 imposs")


def test_they_are_typed_one_a_line():
    assert domain_with_lines(DOMAIN, lines_of(DOMAIN)) == DOMAIN  # also what reads otherwise
    typed = domain_with_lines(DOMAIN, f"\n work=yes  age=7 \n{TEXTS[2]}\n\nwork=yes age=7")
    assert texts(typed) == ["age=7 work=yes", TEXTS[2]]
    assert domain_with_lines(DOMAIN, " ").impossible == ()
    assert describe_combinations(typed.impossible * 2).endswith("; age=7 work=yes; and 1 more")


def test_they_are_read_by_labels():
    age = replace(AGE, label="Age in years")
    stated = ({"status": ["s", "m"], "age": "0..14"}, {"age": [1, "3..4"], "work": "yes"})
    assert combinations_in_words(rp.Domain((age, STATUS, WORK), stated)) == (
        "Age in years 0 to 14 with status Single or Married; Age in years 1 or 3 to 4 with work yes"
    )
    assert combinations_in_words(rp.Domain((age, STATUS, WORK), (*stated, *STATED))).endswith(
        "; and 1 more"
    )
    jobs = rp.Attribute("job", rp.Categories(tuple("abcdefgh"), tuple("ABCDEFGH")))
    many = rp.Domain((AGE, jobs), ({"age": "0..14", "job": "b..h"},))
    assert combinations_in_words(many) == "age 0 to 14 with job B to H"


def test_a_combination_as_it_is_typed():
    domain = rp.Domain.from_sizes({"age": 90, "age group": 3, "a=b": 2})
    condition = {"age": "0..14, 20", "age group": "2", "a=b": "1"}
    assert combination_from_text(domain, "age=0..14, 20 age group=2 a=b=1") == condition
    for wrong in ("", "x age=1", "age=1 age=2"):
        with pytest.raises(DomainError, match="impossible combination"):
            combination_from_text(domain, wrong)
    for wrong in ("sex=1", "age=1 sex=1"):
        with pytest.raises(DomainError, match="no attribute 'sex'"):
            combination_from_text(domain, wrong)
    with pytest.raises(DomainError, match="must be named by"):
        combination_from_text(domain, "age=90")


def test_a_long_text_that_is_no_combination_is_refused_at_once():
    with at_most(2), pytest.raises(DomainError):
        combination_from_text(rp.Domain.from_sizes({"a": 2}), "a=1" + " " * 100_000 + "b")
