"""Presets: every line counts the people that its name says, one by one."""

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.domain.levels import levels_from_json
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import cells_of_condition, condition_of_cells
from rpexplore.workload.preset_roles import RoleMatch, describe_match, guessed_matches
from rpexplore.workload.presets import (
    AGE_PYRAMID,
    CENSUS,
    CUMULATIVE_AGES,
    IDENTITY_PLUS_SUM,
    PRESETS,
    RACES,
    REDISTRICTING,
    race_combinations,
)
from rpexplore.workload.value_comparisons import ages_of

COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def test_the_combinations_of_races():
    """In the order of the printed table P1: 6 alone, 15 of two, 20, 15, 6, and one of all six."""
    names = race_combinations()
    assert len(set(names)) == len(names) == 63
    sets = [frozenset(name.removesuffix(" alone").split("; ")) for name in names]
    assert set(sets) == {frozenset(c) for k in range(1, 7) for c in combinations(RACES, k)}
    assert [len(races) for races in sets] == [1] * 6 + [2] * 15 + [3] * 20 + [4] * 15 + [5] * 6 + [
        6
    ]
    assert names[0] == "White alone"
    assert names[6] == "White; Black or African American"
    assert names[20] == "Native Hawaiian and Other Pacific Islander; Some Other Race"


def counts_person(line, adult, hispanic, races):
    """Whether a line of the redistricting tables counts a person, read from its name."""
    table, rest = line.split(" ", 1)
    if table in ("P3", "P4") and not adult:
        return False
    if table in ("P2", "P4"):
        if rest == "Hispanic or Latino":
            return hispanic
        assert rest.startswith("Not Hispanic or Latino")
        if hispanic:
            return False
        rest = rest.removeprefix("Not Hispanic or Latino").removeprefix(": ")
    if rest in ("", "Total"):
        return True
    match = re.fullmatch(r"Population of (\w+) (races?|or more races)", rest)
    if match and match[2] == "or more races":
        return len(races) >= COUNTS[match[1]]
    if match:
        return len(races) == COUNTS[match[1]]
    return races == frozenset(rest.removesuffix(" alone").split("; "))


def test_redistricting_lines_count_whom_they_name():
    queries = REDISTRICTING.queries()
    every = [frozenset(c) for k in range(1, 7) for c in combinations(RACES, k)]
    people = list(product([False, True], [True, False], every))  # as the cells are ordered
    labels = [
        f"{'18 years and over' if adult else 'Under 18 years'}, "
        f"{'Hispanic' if hispanic else 'Not Hispanic'} or Latino, "
        + "; ".join(race for race in RACES if race in races) + " alone" * (len(races) == 1)
        for adult, hispanic, races in people
    ]  # fmt: skip
    assert list(queries.cell_labels) == labels
    for name, row in zip(queries.names, queries.coefficients, strict=True):
        assert row.tolist() == [float(counts_person(name, *person)) for person in people], name


def test_redistricting_tables_are_complete():
    """71 lines in P1 and P3, 73 in P2 and P4 (2020 redistricting data), each query once."""
    names = REDISTRICTING.queries().names
    # In every table all six races are one line and its subtotal, P2 and P4 repeat a total.
    lines = {
        table: sum(name.startswith(table) for name in names) for table in ("P1", "P2", "P3", "P4")
    }
    assert lines == {"P1": 71 - 1, "P2": 73 - 2, "P3": 71 - 1, "P4": 73 - 2}
    assert {"P1 Total", "P3 Total", "P2 Hispanic or Latino", "P4 Not Hispanic or Latino"} <= {
        *names
    }
    for table in ("P1 ", "P2 Not Hispanic or Latino: ", "P3 ", "P4 Not Hispanic or Latino: "):
        assert f"{table}Population of two or more races" in names
        assert f"{table}Population of six races" in names
        assert f"{table}Asian alone" in names
    assert names[1:4] == ("P1 Population of one race", "P1 White alone",
                          "P1 Black or African American alone")  # fmt: skip


def test_every_preset_is_usable_and_can_be_shown():
    for preset in (preset for preset in PRESETS if preset is not CENSUS):
        queries = preset.queries()
        assert len({row.tobytes() for row in queries.coefficients}) == len(queries)
        assert queries.counted_cells.all()
        assert np.linalg.matrix_rank(queries.coefficients) == queries.n_cells
        assert preset.title
        assert re.fullmatch(r"[A-Z].*[^.]\.", preset.explanation)
        for row in queries.coefficients[:: len(queries) // 20]:
            text = condition_of_cells(queries.domain, row == 1)
            assert text is not None
            assert cells_of_condition(queries.domain, text).tolist() == (row == 1).tolist()
    assert len({preset.title for preset in PRESETS}) == len(PRESETS)


def test_census_lines_count_whom_they_name():
    """P12 by the labels of its cells; P1 to P4 as the redistricting data have them, at any age."""
    queries, other = CENSUS.queries(), REDISTRICTING.queries()
    by_age, sexes, *rest = queries.domain
    assert queries.domain.sizes.tolist() == [23, 2, 2, 63]
    ages = by_age.labels()
    # A tree of ages that holds every one once: 0 to 4, 5 to 9, …, 85 and over.
    ends = [ages_of(label) for label in ages]
    assert [first for first, _ in ends] == [0, *(int(last) + 1 for _, last in ends[:-1])]
    is_adult = np.array([int(first >= 18) for first, _ in ends])
    printed = dict(zip(other.names, other.coefficients.reshape(-1, 2, 2, 63), strict=True))
    named = {name for name in printed if name != "P1 Total"}  # which is that of P12
    for name, row in zip(queries.names, queries.cell_coefficients, strict=True):
        cells = row.reshape(23, 2, 2, 63)
        if not name.startswith("P12 "):
            assert np.array_equal(cells, np.repeat(printed[name][is_adult][:, None], 2, axis=1))
            named.remove(name)
            continue
        sex, _, age = name.removeprefix("P12 ").partition(": ")
        of_sex = [sex in ("Total", label) for label in sexes.labels()]
        of_age = [age in ("", label) for label in ages]
        assert np.array_equal(
            cells, np.broadcast_to(np.outer(of_age, of_sex)[..., None, None], cells.shape)
        )
    assert not named
    assert sum(name.startswith("P12 ") for name in queries.names) == 1 + 2 * 24
    assert [attribute.name for attribute in rest] == ["hispanic", "race"]


def test_census_is_fitted_to_single_years_and_told_in_runs():
    domain = Domain.load(Path(__file__).parents[2] / "sample_data" / "census-tables.json")
    matches = guessed_matches(CENSUS.roles, domain)
    told = describe_match(CENSUS.roles[0], matches["age"], domain)
    assert told.startswith("Age: age, 0 … 4 = Under 5 years, 5 … 9 = 5 to 9 years, ")
    assert told.endswith("85 … 114 = 85 years and over")
    fitted = CENSUS.fitted(domain, matches)
    # 23 × 2 groups of age and sex, times 7 races and 2 origins: all that the lines tell apart.
    assert "86 queries over 644 groups of 3,220 cells" in fitted.text


def of_ages(queries, sexes, ages):
    """The query that counts these people, by its place."""
    wanted = [
        float(sex in sexes and age in ages) for sex in ("Female", "Male") for age in range(116)
    ]
    (index,) = np.flatnonzero((queries.coefficients == wanted).all(axis=1))
    return queries.names[index]


def test_age_pyramid():
    queries = AGE_PYRAMID.queries()
    assert queries.domain.sizes.tolist() == [2, 116]
    for sexes in (["Female"], ["Male"], ["Female", "Male"]):
        start = [f"sex {sexes[0]}"] if len(sexes) == 1 else []
        assert of_ages(queries, sexes, range(116)) == (" ".join(start) or "total")
        for age in range(116):
            assert of_ages(queries, sexes, [age]) == " × ".join([*start, f"age {age}"])
        for age in range(0, 115, 5):
            name = " × ".join([*start, f"age {age} to {age + 4}"])
            assert of_ages(queries, sexes, range(age, age + 5)) == name
    assert len(queries) == 3 * (1 + 116 + 23)


def test_cumulative_ages():
    queries = CUMULATIVE_AGES.queries()
    for sexes in (["Female"], ["Male"], ["Female", "Male"]):
        start = [f"sex {sexes[0]}"] if len(sexes) == 1 else []
        for age in range(1, 116):
            result = of_ages(queries, sexes, range(age + 1))
            assert result == " × ".join([*start, f"age ≤ {age}"])
    for sex in ("Female", "Male"):
        for age in range(116):
            assert of_ages(queries, [sex], [age]) == f"sex {sex} × age {age}"
    assert len(queries) == 2 * 116 + 2 * 115 + 116


def values_and_sum(n):
    domain = Domain((Attribute("value", Integers(1, n)),))
    return IDENTITY_PLUS_SUM.fitted(domain, {"value": RoleMatch("value")}).queries


@pytest.mark.parametrize("n", [1, 2, 7, 1024])
def test_identity_plus_sum(n):
    queries = values_and_sum(n)
    rows = [*np.eye(n).tolist(), *([[1.0] * n] if n > 1 else [])]
    assert queries.coefficients.tolist() == rows
    assert set(queries.targets.tolist()) == {1.0}
    assert queries.domain.sizes.tolist() == [n]


@pytest.mark.parametrize("n", [1025, 5000])
def test_too_many_values_are_refused(n):
    with pytest.raises(WorkloadError, match="at most 1,024 cells"):
        values_and_sum(n)


def test_presets_bring_a_domain_that_can_be_written():
    for preset in PRESETS:
        domain = preset.queries().domain
        assert Domain.parse(domain.text("d.json"), "d.json") == domain


def test_the_census_as_tables_finds_the_levels_of_ages_by_their_groups():
    ages = Integers(0, 114)
    bands = {
        "decades": ", ".join(f"{first}-{first + 9}" for first in range(0, 100, 10)) + ", 100+",
        "grown": "0-17, 18+",
        "printed": "0-4, 5-9, 10-14, 15-17, 18-19, 20, 21, 22-24, 25-29, 30-34, 35-39, 40-44, "
        "45-49, 50-54, 55-59, 60-61, 62-64, 65-66, 67-69, 70-74, 75-79, 80-84, 85+",
    }
    others = (
        Attribute("sex", Categories(("Male", "Female"))),
        Attribute("race", Categories(("White", "Black"))),
        Attribute("hispanic", Categories(("Hispanic", "Not Hispanic"))),
    )

    def fitted(levels):
        age = Attribute("age", ages, levels=levels_from_json(levels, ages))
        domain = Domain((*others, age))
        return CENSUS.fitted_marginals(domain, guessed_matches(CENSUS.roles, domain))

    assert fitted(bands) == (("sex", "age@printed"), ("race", "hispanic", "age@grown"))
    del bands["grown"]
    with pytest.raises(WorkloadError, match=r"'age' by the groups 0-17, 18\+, and no level"):
        fitted(bands)
