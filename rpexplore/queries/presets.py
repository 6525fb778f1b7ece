"""Presets: well-known lists of queries to start from, each by roles of a codebook's attributes.

Their targets are starting points, in people, for areas of some thousand inhabitants.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, combinations

from rpexplore.domain.attribute import Attribute, Categories, Integers
from rpexplore.domain.domain import Domain
from rpexplore.queries.fitted_presets import GEOGRAPHY, Line, Preset, Table
from rpexplore.queries.preset_roles import Role
from rpexplore.workload.bases import Hierarchy, Identity, Prefix

# The six categories of race of the Office of Management and Budget (1997).
RACES = (
    "White",
    "Black or African American",
    "American Indian and Alaska Native",
    "Asian",
    "Native Hawaiian and Other Pacific Islander",
    "Some Other Race",
)
OLDEST = 115  # this age stands for all from it on, as in the census of the United States

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_COARSE, _FINE = 5.0, 10.0  # standard errors of the redistricting tables


def race_combinations() -> tuple[str, ...]:
    """The 63 ways to be of one or more of the six races, by how many they are, [63]."""
    alone = [f"{race} alone" for race in RACES]
    several = (combinations(RACES, count) for count in range(2, len(RACES) + 1))
    return (*alone, *map("; ".join, chain.from_iterable(several)))


# ---- redistricting

_COMBINATIONS = race_combinations()
_N_RACES = (*[1] * len(RACES), *(name.count("; ") + 1 for name in _COMBINATIONS[len(RACES) :]))
_SEVERAL = frozenset(index for index, count in enumerate(_N_RACES) if count > 1)
_RACE = Role(
    "race",
    "Race",
    ("race", "races", "racial"),
    _COMBINATIONS,
    {"Two or more races": _SEVERAL},
    {
        "Black or African American alone": ("Black", "African American"),
        "American Indian and Alaska Native alone": ("American Indian", "Native American"),
        "Native Hawaiian and Other Pacific Islander alone": ("Pacific Islander",),
        "Some Other Race alone": ("Other",),
        "Two or more races": ("Multiracial", "Mixed", "Multiple", "2+"),
    },
    usual_size=7,
    is_required=True,
)
_HISPANIC = Role(
    "hispanic",
    "Hispanic origin",
    ("hispanic", "latino", "latina", "origin", "ethnicity"),
    ("Hispanic or Latino", "Not Hispanic or Latino"),
    aliases={
        "Hispanic or Latino": ("Hispanic", "Latino", "Yes"),
        "Not Hispanic or Latino": ("Not Hispanic", "Not Latino", "No"),
    },
    usual_size=2,
)
_VOTING_AGE = Role(
    "voting_age",
    "Voting age",
    ("voting", "adult", "adults", "age", "ages", "years"),
    ("Under 18 years", "18 years and over"),
    aliases={"Under 18 years": ("Child", "Minor"), "18 years and over": ("Adult",)},
    ages=((0, 17), (18, float("inf"))),
    usual_size=2,
)
# Of table P5: the places behind the first are group quarters, the first four of these institutions.
_QUARTERS = Role(
    "quarters",
    "Group quarters",
    ("quarters", "gq"),
    (
        "Not in group quarters",
        "Correctional facilities for adults",
        "Juvenile facilities",
        "Nursing facilities",
        "Other institutional facilities",
        "College or university student housing",
        "Military quarters",
        "Other noninstitutional facilities",
    ),
    {
        "Group quarters": frozenset(range(1, 8)),
        "Institutionalized population": frozenset(range(1, 5)),
        "Noninstitutionalized population": frozenset(range(5, 8)),
    },
    {
        "Not in group quarters": ("Household", "Private household", "Housing unit"),
        "Correctional facilities for adults": ("Correctional facility", "Prison"),
        "Juvenile facilities": ("Juvenile facility",),
        "Nursing facilities": ("Nursing facility", "Nursing home"),
        "College or university student housing": ("Student housing",),
        "Military quarters": ("Military", "Barracks"),
        "Group quarters": ("Other group quarters",),
    },
    usual_size=8,
)


def _redistricting_lines() -> Iterator[Line]:
    """Tables P1 to P5 of the redistricting data of the United States (Public Law 94-171), 2020.

    P1 race; P2 Hispanic or Latino, and not by race; P3 and P4 the same for adults; P5 group
    quarters. Each with the subtotals that are printed.
    """
    hispanic, others = {"hispanic": frozenset({0})}, {"hispanic": frozenset({1})}
    adults = {"voting_age": frozenset({1})}
    races = list(_race_lines())
    total = races[0][0]
    for ages, by_race, by_origin in (({}, "P1", "P2"), (adults, "P3", "P4")):
        for name, race, target in races:
            yield f"{by_race} {name}", {**ages, **race}, target
        yield f"{by_origin} Hispanic or Latino", {**ages, **hispanic}, _COARSE
        for name, race, target in races:
            of_race = "" if name == total else f": {name}"
            yield f"{by_origin} Not Hispanic or Latino{of_race}", {**ages, **others, **race}, target
    unions = _QUARTERS.unions
    yield "P5 Total", {"quarters": unions["Group quarters"]}, _COARSE
    for union, indices in list(unions.items())[1:]:
        yield f"P5 {union}", {"quarters": indices}, _COARSE
        for index in sorted(indices):
            yield f"P5 {_QUARTERS.categories[index]}", {"quarters": frozenset({index})}, _FINE


def _race_lines() -> Iterator[Line]:
    """The lines of a table by race, as it is printed."""
    yield "Total", {}, _COARSE
    for count in range(1, len(RACES) + 1):
        of_count = [index for index, races in enumerate(_N_RACES) if races == count]
        if count == 2:
            yield "Population of two or more races", {"race": _SEVERAL}, _COARSE
        target = _COARSE if count == 1 else _FINE
        noun = "race" if count == 1 else "races"
        name = f"Population of {_NUMBERS[count]} {noun}"
        yield name, {"race": frozenset(of_count)}, target
        for index in of_count:
            yield _COMBINATIONS[index], {"race": frozenset({index})}, target


def _redistricting_domain() -> Domain:
    return Domain(
        tuple(
            Attribute(role.key, Categories(role.categories))
            for role in (_VOTING_AGE, _HISPANIC, _RACE)
        )
    )


# ---- sex and age

_SEX = Role("sex", "Sex", ("sex", "gender"), usual_size=2, is_required=True)
_AGE = Role("age", "Age", ("age", "ages", "years"), usual_size=OLDEST + 1, is_required=True)


def _pyramid_tables(attributes: Mapping[str, Attribute]) -> list[Table]:
    """Values of age, groups of five years where there are single years, and all; also by sex."""
    sex, age = attributes["sex"], attributes["age"]
    if isinstance(age.values, Integers) and age.values.step == 1 and age.size > 5:
        by_age: Table = {age.name: Hierarchy((5,))}
        return [{sex.name: Identity(), **by_age}, by_age]
    tables = [(sex.name, age.name), (age.name,), (sex.name,), ()]
    return [dict.fromkeys(names, Identity()) for names in tables]


def _cumulative_tables(attributes: Mapping[str, Attribute]) -> list[Table]:
    sex, age = attributes["sex"].name, attributes["age"].name
    by_sex = {sex: Identity()}
    return [{**by_sex, age: Identity()}, {**by_sex, age: Prefix()}, {age: Prefix()}]


def _sexes_and_ages() -> Domain:
    return Domain(
        (
            Attribute("sex", Categories(("Female", "Male"))),
            Attribute("age", Integers(0, OLDEST), f"Age ({OLDEST} and over as {OLDEST})"),
        )
    )


# ---- the presets

REDISTRICTING = Preset(
    "Redistricting data (P.L. 94-171)",
    "Tables P1 to P5 of the United States' redistricting data: people and adults by race and by "
    "Hispanic origin, and people in group quarters, with every subtotal that is printed.",
    (_RACE, _HISPANIC, _VOTING_AGE, _QUARTERS, GEOGRAPHY),
    _redistricting_domain,
    lines=_redistricting_lines,
    marginals=(
        ("race",),
        ("hispanic", "race"),
        ("voting_age", "race"),
        ("voting_age", "hispanic", "race"),
        ("quarters",),
    ),
)
AGE_PYRAMID = Preset(
    "Age pyramid",
    "Women and men by each age, in groups of five years, and in total, each also for both sexes "
    "together.",
    (_SEX, _AGE, GEOGRAPHY),
    _sexes_and_ages,
    tables=_pyramid_tables,
    marginals=(("sex", "age"),),
)
CUMULATIVE_AGES = Preset(
    "Cumulative ages",
    "Women and men by each age, and how many are of each age or younger, by sex and together.",
    (_SEX, _AGE, GEOGRAPHY),
    _sexes_and_ages,
    tables=_cumulative_tables,
)
# The smallest privacy cost for n values is 2n/(n + 1) (docs/mathematics.md §8).
IDENTITY_PLUS_SUM = Preset(
    "Values and their sum",
    "Each value of an attribute and the sum of them all, the smallest example in which the noise "
    "of different answers should depend on each other.",
    (Role("value", "Attribute", (), usual_size=64, is_required=True),),
    lambda: Domain((Attribute("value", Integers(1, 64)),)),
    tables=lambda attributes: [{attributes["value"].name: Identity()}, {}],
    target=1.0,
)
PRESETS = (REDISTRICTING, AGE_PYRAMID, CUMULATIVE_AGES, IDENTITY_PLUS_SUM)
