"""Household survey: the people of Orsavia, an invented country, and their codebook.

Households are drawn first, then everything about their members, so that people who live together
share a region, a dwelling and a plausible family. The figures to draw from are in `country.py`.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import country
from country import NO_OCCUPATION, SETTLEMENTS, WORKING
from drawing import (
    Row,
    counted_rows,
    listed_field,
    on_curve,
    picked,
    shuffled,
    write_csv,
    write_schema,
)

SEED = 20_260_101
# The expected counts are those of other people, drawn likewise: of an earlier survey.
EARLIER_SEED = 20_210_101
EXPECTED_BY = ("age", "sex", "region")
PEOPLE = 50_000


@dataclass
class Person:
    """One member of a household; fields are filled in the order in which they are drawn."""

    age: int
    sex: str
    marital: str
    education: str = ""
    employment: str = ""
    occupation: str = NO_OCCUPATION
    income: int = 0


HEAD_AGES = {str(age): on_curve(country.HEADS, age) for age in range(18, 100)}
EDUCATION_LEVELS = tuple(country.EDUCATION)
REGION_SHARES = {code: facts[1] for code, facts in country.REGIONS.items()}


def drawn_household(random: Random) -> list[Row]:
    """One row a member, in the order of `schema_fields`."""
    u = random.random
    region = picked(REGION_SHARES, u())
    settlement = picked(dict(zip(SETTLEMENTS, country.REGIONS[region][2], strict=True)), u())
    members = drawn_family(settlement, random)
    small_children = any(person.age < 6 for person in members)
    advantage = u()  # members' education is alike: each takes the household's rank or its own
    for person in members:
        rank = advantage if u() < 0.4 else u()
        drawn_work(person, rank, region, settlement, small_children, random)
    tenure = drawn_tenure(members, settlement, random)
    size = country.HOUSEHOLD_SIZES[min(len(members), len(country.HOUSEHOLD_SIZES)) - 1]
    return [
        (person.age, person.sex, region, settlement, person.marital, person.education,
         person.employment, person.occupation, person.income, size, tenure)
        for person in members
    ]  # fmt: skip


def drawn_family(settlement: str, random: Random) -> list[Person]:
    """The members of a household (age, sex, marital status), the adult it is named for first."""
    u = random.random
    age = int(picked(HEAD_AGES, u()))
    together = u() < on_curve(country.LIVES_AS_COUPLE, age)
    sex = "F" if u() < (0.5 if together else on_curve(country.WOMEN_AMONG_ALONE, age)) else "M"
    married = together and u() < on_curve(country.COUPLE_IS_MARRIED, age)
    members = [Person(age, sex, "Married" if married else unmarried_status(age, sex, u()))]
    if together:
        other_sex = sex if u() < 0.02 else "FM"["MF".index(sex)]
        older = 2 if other_sex == "M" else -2
        other_age = min(99, max(18, age + older + int((u() + u() + u() - 1.5) * 8)))
        status = "Married" if married else unmarried_status(other_age, other_sex, u())
        members.append(Person(other_age, other_sex, status))
    parent_age = min(person.age for person in members)
    if u() < (0.92 if together else 0.5 if sex == "F" else 0.2):
        for _ in range(int(picked(country.CHILDREN_EVER_BORN, u()))):
            child_age = parent_age - 18 - int(12 * (u() + u()))  # born at 18 to 41
            if child_age >= 0 and u() < on_curve(country.CHILD_STILL_AT_HOME, child_age):
                child_sex = "F" if u() < 0.488 else "M"
                status = unmarried_status(child_age, child_sex, u())
                members.append(Person(child_age, child_sex, status))
    if 35 <= age < 66 and u() < 0.05:  # a parent of the adult's own
        elder_age, elder_sex = min(99, age + 20 + int(18 * u())), "F" if u() < 0.75 else "M"
        members.append(Person(elder_age, elder_sex, unmarried_status(elder_age, elder_sex, u())))
    if not together and age < 35 and u() < (0.4 if settlement == "City" else 0.15):
        for _ in range(1 + int(3 * u())):  # people who share a flat
            sharer_age, sharer_sex = max(18, age - 4 + int(9 * u())), "F" if u() < 0.5 else "M"
            status = unmarried_status(sharer_age, sharer_sex, u())
            members.append(Person(sharer_age, sharer_sex, status))
    return members


def unmarried_status(age: int, sex: str, u: float) -> str:
    """Single, divorced or widowed; men are widowed less often, their wives being younger."""
    widowed = on_curve(country.WIDOWED, age) * (1 if sex == "F" else 0.75)
    if u < widowed:
        return "Widowed"
    return "Divorced" if u < widowed + on_curve(country.DIVORCED, age) else "Single"


def drawn_work(person: Person, rank: float, region: str, settlement: str, small_children: bool,
               random: Random) -> None:  # fmt: skip
    """Fill in education, employment, occupation and income of one person."""
    u = random.random
    age = person.age
    # A map of [0, 1] onto itself that moves people in cities up and people in villages down.
    lift = {"City": 0.3, "Town": 0, "Village": -0.25}[settlement]
    older = min(1.0, max(0.0, (age - 30) / 50))
    mix = {code: a + (b - a) * older for code, (_, a, b, _) in country.EDUCATION.items()}
    final = EDUCATION_LEVELS.index(picked(mix, rank + lift * rank * (1 - rank)))
    reached = bisect_right((12, 16, 18, 20, 22, 24), age)  # the highest level possible at this age
    level = min(final, reached)
    person.education = EDUCATION_LEVELS[level]

    projects = u() < (0.85 if final > level else on_curve(country.STUDIES, age))
    if age < 16:
        person.employment = "Under 16"
        return
    keeps_house = 0.05 if person.sex == "F" else 0.015
    if small_children:
        keeps_house *= 3.5
    if projects and age < 60:
        person.employment = "Student"
    elif u() < on_curve(country.RETIRED, age):
        person.employment = "Retired"
    elif u() < on_curve(country.UNABLE_TO_WORK, age) * (1.6 - 0.2 * level):
        person.employment = "Unable to work"
    elif age >= 20 and u() < keeps_house:
        person.employment = "Homemaker"
    elif u() < on_curve(country.UNEMPLOYED, age) * (1.7 - 0.2 * level):
        person.employment = "Unemployed"
    elif u() < on_curve(country.SELF_EMPLOYED, age):
        person.employment = "Self-employed"
    else:
        person.employment = "Employee"

    if person.employment in WORKING:
        person.occupation = drawn_occupation(person, level, region, settlement, u())
    person.income = drawn_income(person, region, small_children, random)


def drawn_occupation(person: Person, level: int, region: str, settlement: str, u: float) -> str:
    schooling, place = (0, 0, 0, 1, 1, 2, 2)[level], SETTLEMENTS.index(settlement)
    often = country.REGIONS[region][4]
    return picked(
        {
            name: by_level[schooling] * by_place[place] * often.get(name, 1)
            * (women if person.sex == "F" else 1)
            for name, (_, by_level, by_place, women) in country.OCCUPATIONS.items()
        },
        u,
    )  # fmt: skip


def drawn_income(person: Person, region: str, small_children: bool, random: Random) -> int:
    """Monthly income in whole currency units, rounded to tens as people report it."""
    u = random.random
    rank, second = u(), u()
    pay_level = country.EDUCATION[person.education][3]
    if person.employment in WORKING:
        amount = country.OCCUPATIONS[person.occupation][0] * pay_level * country.REGIONS[region][3]
        amount *= on_curve(country.EXPERIENCE, person.age) * on_curve(country.PAY_BY_RANK, rank)
        if person.employment == "Self-employed":
            amount *= 0.5 + second  # less certain than a wage
        part_time = (0.45 if small_children else 0.2) if person.sex == "F" else 0.08
        if u() < part_time:
            amount *= 0.45 + 0.3 * u()
    elif person.employment == "Retired":
        amount = 550 + 900 * pay_level * pay_level * on_curve(country.PAY_BY_RANK, rank)
    elif person.employment == "Unable to work":
        amount = 600 + 600 * rank
    elif person.employment == "Unemployed":
        amount = 350 + 600 * rank
    else:  # students and homemakers: nothing, or a little
        amount = 0 if second < 0.4 else 900 * rank
    return min(int(amount / 10) * 10, country.INCOME_BINS[-1])


def drawn_tenure(members: list[Person], settlement: str, random: Random) -> str:
    u = random.random
    head = members[0]
    per_head = on_curve(((1, 1), (7, 4)), len(members))  # people who live together share costs
    means = sum(person.income for person in members) / per_head
    place = {"City": 0.82, "Town": 1, "Village": 1.1}[settlement]
    owner = on_curve(country.OWNER, head.age) * on_curve(country.OWNER_BY_INCOME, means) * place
    if head.employment == "Student":
        owner = 0.03
    if u() < min(0.96, owner):
        return "Owner"
    if u() < (0.15 if settlement == "Village" else 0.07):
        return "Other"
    social = 0.1 if head.employment == "Student" else on_curve(country.SOCIAL_BY_INCOME, means)
    return "Social" if u() < social else "Renter"


def sample_rows(seed: int = SEED) -> list[Row]:
    """The people who answered, in an order that does not show who lives with whom."""
    random = Random(seed)
    rows: list[Row] = []
    while len(rows) < PEOPLE:
        rows += drawn_household(random)
    return shuffled(rows, random)[:PEOPLE]


# True by law and by the meaning of the codes, and so of all records.
IMPOSSIBLE = (
    {"age": "0..17", "marital_status": "Married..Widowed"},
    {"age": "0..15", "employment": "Employee..Unable to work"},
)


def schema_fields() -> list[dict]:
    """The fields of the Table Schema, in the order of the columns."""
    ages = {"minimum": 0, "maximum": 99, "step": 1}
    regions = {code: facts[0] for code, facts in country.REGIONS.items()}
    parts = [[country.PARTS[code]] for code in regions]
    schooling = {code: facts[0] for code, facts in country.EDUCATION.items()}
    bins = list(country.INCOME_BINS)
    return [
        {"name": "age", "title": "Age in years", "type": "integer", "constraints": ages},
        listed_field("sex", "Sex", country.SEX),
        listed_field("region", "Region of residence", regions, parts),
        listed_field("settlement", "Kind of settlement", SETTLEMENTS),
        listed_field("marital_status", "Marital status", country.MARITAL),
        listed_field("education", "Highest education completed", schooling),
        listed_field("employment", "Employment status", country.EMPLOYMENT),
        listed_field("occupation", "Occupation", (*country.OCCUPATIONS, NO_OCCUPATION)),
        {"name": "income", "title": "Monthly income", "type": "number", "bins": bins},
        listed_field("household_size", "People in the household", country.HOUSEHOLD_SIZES),
        listed_field("tenure", "How the dwelling is held", country.TENURES),
    ]


def codebook_rows(fields: list[dict]) -> list[tuple[str, str, str, str]]:
    """(attribute, value, label, group) of every category; ages and income intervals written out."""
    rows = []
    for field in fields:
        if "bins" in field:
            joints = ["to under "] * (len(field["bins"]) - 2) + ["to "]  # the last includes its end
            values = [
                f"{left} {joint}{right}"
                for joint, (left, right) in zip(joints, pairwise(field["bins"]), strict=True)
            ]
        elif "enum" in field["constraints"]:
            values = field["constraints"]["enum"]
        else:
            limits = field["constraints"]
            values = [str(age) for age in range(limits["minimum"], limits["maximum"] + 1)]
        labels = {item["value"]: item["label"] for item in field.get("categories", ())}
        groups = field.get("groups", [[]] * len(values))
        rows += [
            (field["name"], value, labels.get(value, value), " > ".join(path))
            for value, path in zip(values, groups, strict=True)
        ]
    return rows


def write(folder: Path) -> None:
    """Write records, codebook (as Table Schema and as CSV) and expected counts."""
    fields = schema_fields()
    names = [field["name"] for field in fields]
    write_schema(folder / "household.json", fields, IMPOSSIBLE)
    write_csv(
        folder / "household-codebook.csv",
        ("attribute", "value", "label", "group"),
        codebook_rows(fields),
    )
    write_csv(folder / "household.csv", names, sample_rows())
    counts = counted_rows(sample_rows(EARLIER_SEED), fields, EXPECTED_BY)
    write_csv(folder / "household-expected.csv", (*EXPECTED_BY, "count"), counts)
