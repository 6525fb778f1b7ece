"""Answers about an attribute that tables have at its levels, against dense least squares."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.planner import plan_tables

AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 9},
    "levels": {"pairs": 2, "adult": "0-3, 4+", "late": "0-7, 8+"},
}
SEXES = {"name": "sex", "constraints": {"enum": ["m", "f"]}}
DOMAIN = rp.Domain.from_schema({"fields": [AGES, SEXES]})
TABLES = [("age@pairs",), ("age@adult", "sex"), ("age@late", "sex")]


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> rp.Release:
    folder: Path = tmp_path_factory.mktemp("levels")
    random = np.random.default_rng(5)
    records = {"age": random.integers(0, 10, 400), "sex": random.choice(["m", "f"], 400)}
    pd.DataFrame(records).to_csv(folder / "records.csv", index=False)
    plan = plan_tables(
        rp.Workload.of(DOMAIN, TABLES), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1")
    )
    return rp.release(plan, folder / "records.csv", folder / "out")


@pytest.mark.parametrize(
    ("where", "table"),
    [
        ({"age": "4..9"}, ("age@pairs",)),
        ({"age": "2..5"}, ("age@pairs",)),
        ({"age": "4..9", "sex": "f"}, ("age@adult", "sex")),
        ({"age": "8..9", "sex": "f"}, ("age@late", "sex")),
        ({"age": [1, 1, 1, 1, -2, -2, -2, -2, -2, -2], "sex": [1, 3]}, ("age@adult", "sex")),
    ],
)
def test_a_union_of_groups_is_answered_from_their_level(released, where, table):
    """Its value is the sum of released cells, its variance that of their dense covariance."""
    tables = released.part("tables")
    answer = tables.answer(where=where)
    domain = tables.domain
    frame = tables.table(*table)
    weights = np.ones(len(frame))
    cells = [{} for _ in weights]
    for name in table:
        column = domain[name].of or name
        places = [domain[name].labels().index(str(label)) for label in frame[name]]
        for cell, place in zip(cells, places, strict=True):
            cell[name] = place
        if column in where:
            vector = where[column]
            if isinstance(vector, str):
                first, _, last = vector.partition("..")
                labels = domain[column].labels()
                chosen = range(labels.index(first), labels.index(last or first) + 1)
                vector = [float(place in chosen) for place in range(len(labels))]
            index = domain[name].index_of_values or range(len(vector))
            of_groups = {group: vector[value] for value, group in enumerate(index)}
            weights *= [of_groups[place] for place in places]
    covariance = np.array(
        [[tables.plan.covariance(table, one, other) for other in cells] for one in cells]
    )
    assert answer.value == pytest.approx(float(weights @ frame["value"]), abs=1e-6)
    assert answer.standard_error**2 == pytest.approx(weights @ covariance @ weights, rel=1e-9)
    assert tables.plan.query_variance(where=where) == pytest.approx(answer.standard_error**2)
    assert released.answer(where=where) == answer
    asked = rp.Questions(released)
    assert asked.answer(where) == answer


def test_what_divides_groups_is_refused_with_the_nearest_ranges(released):
    for ask in (released.answer, rp.Questions(released).answer):
        with pytest.raises(WorkloadError, match=r"divides a group.*: age=4,5 \(of age@pairs\), "):
            ask(where={"age": "3..6"})
        with pytest.raises(WorkloadError, match=r"age@adult, age@late.*tell: age=4\.\.9 \(of"):
            ask(where={"age": "3..9", "sex": "f"})


def test_groups_of_a_level_that_no_table_has_with_the_others_are_their_values(released):
    asked = rp.Questions(released)
    answer = asked.answer("age@pairs=4-5, 6-7, 8-9 sex=f")
    assert answer == released.answer(where={"age": "4..9", "sex": "f"})
    assert asked.answer("age@pairs=4-5") == released.answer(where={"age": "4..5"})


def test_what_is_named_at_several_levels_must_meet_all_of_them(tmp_path):
    domain = rp.Domain((*DOMAIN.attributes, rp.Attribute("job", rp.Categories(("a", "b")))))
    plan = plan_tables(
        rp.Workload.of(domain, [("age", "sex"), ("job",)]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="1000000"),
    )
    records = pd.DataFrame(
        {"age": [*range(10)] * 100, "sex": ["m", "f"] * 500, "job": ["a"] * 500 + ["b"] * 500}
    )
    records.to_csv(tmp_path / "records.csv", index=False)
    asked = rp.Questions(rp.release(plan, tmp_path / "records.csv", tmp_path / "out"))
    for where, count in (
        ("age@adult=4+ age@late=0-7", 400),
        ("age@late=0-7 age@adult=4+", 400),
        ("age=1..5 age@adult=4+", 200),
        ("age@adult=0-3 age@late=8+", 0),
        ({"age@pairs": ["4-5", "8..9"], "sex": "f"}, 200),
    ):
        assert asked.answer(where).value == pytest.approx(count, abs=1)
    # By a model, which knows the values.
    assert asked.answer("age@adult=4+ job=a").value == pytest.approx(300, abs=5)
    with pytest.raises(WorkloadError, match="The query on 'age' must be 10 finite numbers"):
        asked.answer({"age": 7})


def test_a_mean_is_answered_where_groups_of_a_level_are_named(tmp_path):
    pay = rp.Attribute("pay", rp.Amounts(0, 100))
    domain = rp.Domain((*DOMAIN.attributes, pay))
    plan = plan_tables(
        rp.Workload.of(domain, [("age@adult", "pay"), ("age", "sex", "pay")]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="1000000"),
    )
    ages = np.tile(np.arange(10), 50)
    records = pd.DataFrame({"age": ages, "sex": ["m"] * 250 + ["f"] * 250, "pay": 10 * ages})
    records.to_csv(tmp_path / "records.csv", index=False)
    asked = rp.Questions(rp.release(plan, tmp_path / "records.csv", tmp_path / "out"))
    # Of a table with the level, and of one with the values alone.
    assert asked.answer("pay=mean age@adult=0-3").value == pytest.approx(15, abs=0.1)
    assert asked.answer("pay=mean age@pairs=4-5 sex=f").value == pytest.approx(45, abs=0.1)
