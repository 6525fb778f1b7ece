"""Presets: well-known lists of queries, fitted to the attributes of a codebook."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np

from rpexplore.common.text import plural, rounded
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Integers
from rpexplore.errors import WorkloadError
from rpexplore.workload.bases import Basis, Hierarchy, Identity, Prefix
from rpexplore.workload.preset_roles import FittedRole, Role, RoleMatch
from rpexplore.workload.query_edits import chosen_domain
from rpexplore.workload.query_files import USUAL_TARGET, query_list, table_queries
from rpexplore.workload.query_list import (
    MAX_CELLS,
    MOST_CELLS,
    QueryList,
    check_list_size,
    checked_n_cells,
)
from rpexplore.workload.table_text import query_matrix

# ---- A preset fitted to a codebook: its queries about the attributes that have its roles.
#
# In a preset that is given by lines, a line is a query that counts some categories of some roles.
# It is left out where the values of an attribute do not make up these categories.


Line: TypeAlias = tuple[str, Mapping[str, frozenset[int]], float]
"""A query: its name, the categories that it counts of each role, by key, and its target."""

Table: TypeAlias = dict[str, Basis]
"""The basis of each attribute of a table, by name."""

GEOGRAPHY = Role(
    "geography",
    "Geography",
    (
        *("area", "block", "borough", "canton", "city", "county", "department", "district"),
        *("geography", "municipality", "postcode", "precinct", "province", "region", "state"),
        *("territory", "tract", "ward", "zip"),
    ),
)


@dataclass(frozen=True)
class FittedPreset:
    """The queries of a preset for a codebook, and the names of the lines that are left out."""

    queries: QueryList
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """ "26 queries over 28 cells, with their own targets: …. 3 lines of …"."""
        text = (
            f"{plural(len(self.queries), 'query')} over {self.queries.cells_text}, "
            f"with their own targets: {describe_targets(self.queries)}."
        )
        if not self.left_out:
            return text
        return (
            f"{text} {plural(len(self.left_out), 'line')} of the preset cannot be counted with "
            f"these attributes and categories, such as “{self.left_out[0]}”."
        )


@dataclass(frozen=True)
class Preset:
    """A list of queries to start from, given by lines or by tables.

    title        on screen
    explanation  in one sentence
    roles        that it asks by; one of them may be `GEOGRAPHY`, then it asks for each area as well
    own          makes attributes of its own, called by the keys of their roles
    lines        its queries, of roles with categories
    tables       its tables, for the attribute of each role, by key, which are asked by each value
    target       the standard error of each cell of its tables
    marginals    the same as tables of the workload: the roles of each, without geography
    groupings    what stands in `marginals` for a role whose categories are grouped: its key, and
                 the number of the group of each category
    """

    title: str
    explanation: str
    roles: tuple[Role, ...]
    own: Callable[[], Domain]
    lines: Callable[[], Iterator[Line]] | None = None
    tables: Callable[[Mapping[str, Attribute]], Sequence[Table]] | None = None
    target: float = USUAL_TARGET
    marginals: tuple[tuple[str, ...], ...] = ()
    groupings: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def queries(self) -> QueryList:
        """The queries about attributes of its own."""
        domain = self.own()
        roles = [role for role in self.roles if role.key in domain]
        matches = {role.key: RoleMatch(role.key, role.categories) for role in roles}
        return self.fitted(domain, matches).queries

    def fitted(self, codebook: Domain, matches: Mapping[str, RoleMatch]) -> FittedPreset:
        """The queries about a codebook's attributes.

        matches: by the key of the role; a role without one is left out

        Raises `WorkloadError` for matches that cannot be, and for too many cells or queries.
        """
        attributes = self._attributes(codebook, matches)
        domain = chosen_domain(codebook, [attribute.name for attribute in attributes.values()])
        area = attributes.pop(GEOGRAPHY.key, None)
        is_small = self.lines is None or area is not None  # areas multiply the lines
        n_cells = checked_n_cells(domain, MAX_CELLS if is_small else MOST_CELLS)
        by_area = [] if area is None else _by_area(area)
        if self.tables is not None:
            tables = self.tables(attributes)
            crossed = [table | by for by in by_area or [{}] for table in tables]
            return FittedPreset(table_queries(domain, crossed, self.target))
        assert self.lines is not None
        roles = {
            role.key: FittedRole.of(role, matches[role.key], codebook)
            for role in self.roles
            if role.key in attributes
        }
        counted, left_out = _counted(roles, self.lines())
        areas = [(None, {})]
        if area is not None:
            areas = [(label, {area.name: row}) for by in by_area for label, row in _areas(area, by)]
        check_list_size(len(counted) * len(areas), n_cells, given=True)
        lines = (
            (name if label is None else f"{name}, {label}", _row(domain, rows | of_area), target)
            for label, of_area in areas
            for name, rows, target in counted
        )
        return FittedPreset(query_list(domain, lines), left_out)

    def fitted_marginals(
        self, codebook: Domain, matches: Mapping[str, RoleMatch]
    ) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table; those of roles without a match are left out.

        Raises `WorkloadError` for matches that cannot be, and where an attribute has no level with
        the groups of a table.
        """
        attributes = self._attributes(codebook, matches)
        # The attribute of each key, and what tables call it.
        names = {key: (attribute.name, attribute.name) for key, attribute in attributes.items()}
        for key, (of_role, group_of) in self.groupings.items():
            role = next(role for role in self.roles if role.key == of_role)
            fitted = FittedRole.of(role, matches[of_role], codebook)
            names[key] = fitted.attribute.name, fitted.name_at_groups(group_of)
        area = [GEOGRAPHY.key] if GEOGRAPHY.key in names else []
        tables = [
            dict(names[key] for key in (*keys, *area))
            for keys in self.marginals
            if all(key in names for key in keys)
        ]
        return tuple(tuple(table[name] for name in codebook.in_order(table)) for table in tables)

    def _attributes(
        self, codebook: Domain, matches: Mapping[str, RoleMatch]
    ) -> dict[str, Attribute]:
        """The attribute of each role that is not left out, by key, in the order of the roles."""
        attributes: dict[str, Attribute] = {}
        taken: dict[str, str] = {}  # the title of the role of each attribute
        for role in self.roles:
            if role.key in matches:
                attribute = attributes[role.key] = codebook[matches[role.key].attribute]
                if attribute.name in taken:
                    raise WorkloadError(
                        f"{role.title}: {attribute.name!r} is the attribute of "
                        f"{taken[attribute.name]} already; choose another one, or leave one of the "
                        "two out."
                    )
                taken[attribute.name] = role.title
            elif role.is_required:
                raise WorkloadError(
                    f"{role.title}: no attribute is chosen; choose one, or another preset."
                )
        return attributes


def describe_targets(queries: QueryList) -> str:
    """The targets of a preset's queries: "standard errors of 5 to 10"."""
    least, most = (rounded(limit, 3) for limit in (queries.targets.min(), queries.targets.max()))
    return (
        f"a standard error of {least}" if least == most else f"standard errors of {least} to {most}"
    )


def _counted(
    roles: Mapping[str, FittedRole], lines: Iterator[Line]
) -> tuple[list[tuple[str, dict[str, np.ndarray], float]], tuple[str, ...]]:
    """(name, coefficients for the values of each attribute, target) of lines; others by name."""
    counted, left_out = [], []
    for name, wanted, target in lines:
        rows: dict[str, np.ndarray] = {}
        for key, categories in wanted.items():
            row = roles[key].row(categories) if key in roles else None
            if row is None:
                left_out.append(name)
                break
            rows[roles[key].attribute.name] = row
        else:
            counted.append((name, rows, target))
    return counted, tuple(left_out)


def _row(domain: Domain, rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """The coefficients of the cells, from those of the values of some attributes."""
    factors = [rows.get(attribute.name, np.ones(attribute.size)) for attribute in domain]
    return reduce(np.kron, factors)


def _by_area(area: Attribute) -> list[Table]:
    """All areas together, and each; with the groups of areas that the codebook has."""
    if area.groups:
        return [{area.name: Hierarchy()}]
    return [{}, {area.name: Identity()}]


def _areas(area: Attribute, by: Table) -> Iterator[tuple[str | None, np.ndarray]]:
    """The name of each area of a table, None for all together, and its values."""
    if not by:
        yield None, np.ones(area.size)
        return
    matrix = query_matrix(by[area.name], area)
    for label, row in zip(matrix.labels(), matrix.of(np.eye(area.size), 0), strict=True):
        yield None if row.all() else label, row


# ---- Presets: well-known lists of queries to start from, each by roles of a codebook's
# attributes.
#
# Their targets are starting points, in people, for areas of some thousand inhabitants.


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
    yield from _lines_by_race({"voting_age": frozenset({1})})
    unions = _QUARTERS.unions
    yield "P5 Total", {"quarters": unions["Group quarters"]}, _COARSE
    for union, indices in list(unions.items())[1:]:
        yield f"P5 {union}", {"quarters": indices}, _COARSE
        for index in sorted(indices):
            yield f"P5 {_QUARTERS.categories[index]}", {"quarters": frozenset({index})}, _FINE


def _lines_by_race(adults: Mapping[str, frozenset[int]]) -> Iterator[Line]:
    """Tables P1 to P4; adults: the categories of ages that these are."""
    hispanic, others = {"hispanic": frozenset({0})}, {"hispanic": frozenset({1})}
    races = list(_race_lines())
    total = races[0][0]
    for ages, by_race, by_origin in (({}, "P1", "P2"), (adults, "P3", "P4")):
        for name, race, target in races:
            yield f"{by_race} {name}", {**ages, **race}, target
        yield f"{by_origin} Hispanic or Latino", {**ages, **hispanic}, _COARSE
        for name, race, target in races:
            of_race = "" if name == total else f": {name}"
            yield f"{by_origin} Not Hispanic or Latino{of_race}", {**ages, **others, **race}, target


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


def _domain_of_categories(*roles: Role) -> Domain:
    return Domain(tuple(Attribute(role.key, Categories(role.categories)) for role in roles))


# ---- table P12 beside them

_FIRST_AGES = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80)
_LAST_AGES = (*(first - 1 for first in _FIRST_AGES[1:]), 84)
_P12_AGE = Role(
    "age",
    "Age",
    ("age", "ages", "years"),
    (
        "Under 5 years",
        *(
            f"{first} years" if first == last else f"{first} to {last} years"
            for first, last in zip(_FIRST_AGES[1:], _LAST_AGES[1:], strict=True)
        ),
        "85 years and over",
    ),
    ages=(*zip(_FIRST_AGES, _LAST_AGES, strict=True), (85, float("inf"))),
    usual_size=OLDEST + 1,
    is_required=True,
)
_P12_SEX = Role(
    "sex",
    "Sex",
    ("sex", "gender"),
    ("Male", "Female"),
    aliases={"Male": ("M", "Men", "Man"), "Female": ("F", "Women", "Woman")},
    usual_size=2,
    is_required=True,
)


def _census_lines() -> Iterator[Line]:
    """P12, sex by 23 groups of ages, and P1 to P4 of the redistricting data."""
    yield "P12 Total", {}, _COARSE
    for number, sex in enumerate(_P12_SEX.categories):
        of_sex = {"sex": frozenset({number})}
        yield f"P12 {sex}", of_sex, _COARSE
        for index, ages in enumerate(_P12_AGE.categories):
            yield f"P12 {sex}: {ages}", {**of_sex, "age": frozenset({index})}, _FINE
    first = _FIRST_AGES.index(18)
    yield from _lines_by_race({"age": frozenset(range(first, len(_P12_AGE.categories)))})


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
    lambda: _domain_of_categories(_VOTING_AGE, _HISPANIC, _RACE),
    lines=_redistricting_lines,
    marginals=(
        ("race",),
        ("hispanic", "race"),
        ("voting_age", "race"),
        ("voting_age", "hispanic", "race"),
        ("quarters",),
    ),
)
CENSUS = Preset(
    "Census: P12 and P.L. 94-171",
    "Sex by the 23 groups of ages of table P12, together with tables P1 to P4 of the redistricting "
    "data: one list, so that what is measured for one table serves the others.",
    (_P12_AGE, _P12_SEX, replace(_HISPANIC, is_required=True), _RACE, GEOGRAPHY),
    lambda: _domain_of_categories(_P12_AGE, _P12_SEX, _HISPANIC, _RACE),
    lines=_census_lines,
    marginals=(("age_groups", "sex"), ("adults", "race", "hispanic")),
    groupings={
        "age_groups": ("age", tuple(range(len(_P12_AGE.ages)))),
        "adults": ("age", tuple(int(first >= 18) for first, _ in _P12_AGE.ages)),
    },
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
PRESETS = (REDISTRICTING, CENSUS, AGE_PYRAMID, CUMULATIVE_AGES, IDENTITY_PLUS_SUM)
