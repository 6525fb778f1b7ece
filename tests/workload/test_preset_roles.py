"""Presets fitted to codebooks: which attribute is guessed for which role, and what is counted."""

import math

import numpy as np
import pytest

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.common.installation import sample_data_folder
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import with_preset_tables
from rpexplore.workload.preset_roles import IN_TOTALS, RoleMatch, guessed_matches
from rpexplore.workload.presets import AGE_PYRAMID, PRESETS, REDISTRICTING

RACES = ("White", "Black", "Native American", "Asian", "Pacific Islander", "Other", "Mixed")


def categories(name, *values, groups=()):
    return Attribute(name, Categories(values), groups=groups)


RACE = categories("race", *RACES)
SHORT = Domain(
    (
        categories("region", "North", "South", "East"),
        Attribute("raza", Categories(tuple("WBNAPOM"), RACES)),
        categories("latino", "no", "yes"),
        Attribute("age", Bins((0, 18, 65, 120))),
    )
)


def fitted(domain, preset=REDISTRICTING, **corrected):
    matches = guessed_matches(preset.roles, domain) | corrected
    return preset.fitted(domain, {key: match for key, match in matches.items() if match})


def counted(queries, name):
    """The labels of the cells that a query counts."""
    row = queries.coefficients[queries.names.index(name)]
    assert set(row.tolist()) <= {0, 1}
    return {label for label, is_in in zip(queries.cell_labels, row, strict=True) if is_in}


def test_the_codebook_of_the_example_is_recognised():
    domain = Domain.load(sample_data_folder() / "redistricting.json")
    matches = guessed_matches(REDISTRICTING.roles, domain)
    # By precinct, the cells would be too many for a list.
    attributes = {key: match.attribute for key, match in matches.items()}
    assert attributes == {key: key for key in ("race", "hispanic", "voting_age", "quarters")}
    assert [option.partition(" ")[0] for option in matches["race"].options] == [
        "White", "Black", "American", "Asian", "Native", "Some", "Two",
    ]  # fmt: skip
    assert matches["hispanic"].options == ("Hispanic or Latino", "Not Hispanic or Latino")
    assert matches["voting_age"].options == ("Under 18 years", "18 years and over")
    assert matches["quarters"].options == (
        "Not in group quarters",
        "Correctional facilities for adults",
        "Nursing facilities",
        "College or university student housing",
        "Group quarters",
    )
    of_any_size = guessed_matches(REDISTRICTING.roles, domain, math.inf)
    assert of_any_size == matches | {"geography": RoleMatch("precinct")}
    queries = REDISTRICTING.fitted(domain, matches).queries
    assert queries.domain.names == ("race", "hispanic", "voting_age", "quarters")
    with pytest.raises(
        WorkloadError, match=r"at most 1,024 cells, got precinct .90. × race .7. .* ask for tables"
    ):
        fitted(domain, geography=RoleMatch("precinct"))


def test_lines_count_the_values_that_make_up_their_categories():
    preset = fitted(SHORT, geography=None)
    assert preset.queries.domain.names == ("raza", "latino", "age")
    everybody = set(preset.queries.cell_labels)
    adults = {label for label in everybody if "0 to under 18" not in label}
    two_or_more = {label for label in everybody if label.startswith("Mixed")}
    assert counted(preset.queries, "P1 Total") == everybody
    assert counted(preset.queries, "P3 Total") == adults
    assert counted(preset.queries, "P1 Population of two or more races") == two_or_more
    assert counted(preset.queries, "P1 Population of one race") == everybody - two_or_more
    assert counted(preset.queries, "P4 Not Hispanic or Latino: Asian alone") == {
        label for label in adults if label.startswith("Asian, no")
    }
    assert counted(preset.queries, "P2 Hispanic or Latino") == {
        label for label in everybody if ", yes" in label
    }
    # 57 combinations and five of their subtotals are no values, in each of four tables.
    assert len(preset.left_out) == 4 * 62 + 10
    assert "P1 White; Black or African American" in preset.left_out
    assert len(preset.queries) == 2 * (1 + 1 + 6 + 1) + 2 * (1 + 9)
    assert "with their own targets: a standard error of 5. 258 lines of the" in preset.text


def test_a_wider_category_stands_for_what_others_leave():
    quarters = categories("gq", "Household", "Prison", "Nursing home", "Other group quarters")
    domain = Domain((RACE, quarters))
    assert guessed_matches(REDISTRICTING.roles, domain)["quarters"].attribute == "gq"
    preset = fitted(domain)
    assert counted(preset.queries, "P5 Total") == {
        f"{race}, {place}" for race in RACES for place in quarters.values.labels[1:]
    }
    assert len(counted(preset.queries, "P5 Nursing facilities")) == len(RACES)
    # Others may be institutions or not.
    assert {"P5 Institutionalized population", "P5 Military quarters"} <= {*preset.left_out}


def test_what_no_value_stands_for_is_left_out_with_its_subtotals():
    without_asian = Domain((categories("race", "White", "Black", "Unknown"),))
    preset = fitted(without_asian)
    assert preset.queries.names == (
        "P1 Total",
        "P1 White alone",
        "P1 Black or African American alone",
    )
    assert counted(preset.queries, "P1 Total") == {"White", "Black", "Unknown"}
    assert guessed_matches(REDISTRICTING.roles, without_asian)["race"].options[-1] == IN_TOTALS


def test_geography_gives_each_area_its_queries():
    small = Domain((categories("region", "North", "South", "East"), RACE))
    alone, by_area = fitted(small, geography=None), fitted(small)
    assert len(by_area.queries) == 4 * len(alone.queries)
    assert counted(by_area.queries, "P1 Asian alone, South") == {"South, Asian"}
    assert len(counted(by_area.queries, "P1 Total")) == 3 * len(RACES)
    levels = categories("district", "a", "b", "c", groups=(("Up",), ("Up",), ("Down",)))
    queries = fitted(Domain((levels, RACE))).queries
    assert counted(queries, "P1 Asian alone, Up") == {"a, Asian", "b, Asian"}
    sex, age = categories("sex", "f", "m"), Attribute("age", Integers(0, 9))
    pyramid = fitted(Domain((small["region"], sex, age)), AGE_PYRAMID).queries
    assert len(pyramid) == 4 * 3 * (1 + 2 + 10)
    assert len(counted(pyramid, "region East × sex f × age 5 to 9")) == 5


def test_ages_that_are_no_single_years_are_asked_by_each_value():
    domain = Domain.load(sample_data_folder() / "labour-force.json")
    queries = fitted(domain, AGE_PYRAMID, geography=None).queries
    assert queries.domain.names == ("sex", "age_group")
    assert len(queries) == 3 * 8


@pytest.mark.parametrize(
    ("domain", "corrected", "message"),
    [
        (Domain((categories("sex", "f", "m"),)), {}, "Race: no attribute is chosen; choose one"),
        (
            Domain((RACE, categories("sex", "f", "m"))),
            {"hispanic": RoleMatch("sex", (IN_TOTALS,) * 2)},
            "Hispanic origin: no value of 'sex' stands for .*; say which does, or choose another",
        ),
        (
            Domain((RACE, Attribute("age", Integers(0, 99, 10)))),
            {},
            "Voting age: the value '10 to 19' of 'age' holds ages up to 17 and above; choose",
        ),
        (
            Domain((RACE, categories("latino", "yes", "no"))),
            {"geography": RoleMatch("latino")},
            "Geography: 'latino' is the attribute of Hispanic origin already; choose another",
        ),
        (
            Domain((RACE,)),
            {"race": RoleMatch("race", ("White alone",))},
            "'race' has 7 values, got what 1 stand for",
        ),
    ],
)
def test_matches_that_cannot_be_are_refused(domain, corrected, message):
    with pytest.raises(WorkloadError, match=message):
        fitted(domain, **corrected)


def test_no_guess_is_refused_whatever_the_codebook_holds():
    for file in sorted(sample_data_folder().glob("*.json")):
        has_areas = file.stem in ("municipal-register", "country-census")
        domain = AreaCodebook.load(file).domain if has_areas else Domain.load(file)
        for preset in PRESETS:
            matches = guessed_matches(preset.roles, domain)
            assert len({match.attribute for match in matches.values()}) == len(matches)
            if all(role.key in matches for role in preset.roles if role.is_required):
                queries = preset.fitted(domain, matches).queries
                assert np.all(queries.coefficients.any(axis=1))


def test_a_preset_gives_tables_as_well_with_areas_at_every_level():
    domain = Domain.load(sample_data_folder() / "redistricting.json")
    matches = guessed_matches(REDISTRICTING.roles, domain)
    matches = {key: match for key, match in matches.items() if key != "quarters"}
    matches["geography"] = RoleMatch("precinct")
    scenario = Scenario(domain).with_request(kind="listed", listed=(("race", "precinct"),))
    after = with_preset_tables(scenario, REDISTRICTING, matches)
    assert after.request.listed == scenario.request.listed
    (line,) = after.request.more
    assert line.listed == (
        ("precinct", "race", "hispanic"),
        ("precinct", "race", "voting_age"),
        ("precinct", "race", "hispanic", "voting_age"),
    )
    assert after.workload.exact_cells.tolist()[0] == 90 * 7
    assert after.workload.exact_cells.tolist()[1] == (1 + 4 + 15 + 90) * 7 * 2
    with pytest.raises(WorkloadError, match="there already"):
        with_preset_tables(after, REDISTRICTING, matches)
