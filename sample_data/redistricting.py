"""Redistricting: everybody in Westmark, an invented province of counties, districts and precincts.

The categories are those of the redistricting data of the United States; all figures are made up.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

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

SEED = 20_300_401
# Of the census before, whose counts are public: other people in the same precincts.
EARLIER_SEED = 20_200_401
EXPECTED_BY = ("precinct", "race", "voting_age")

RACES = {
    "W": "White alone",
    "B": "Black or African American alone",
    "N": "American Indian and Alaska Native alone",
    "A": "Asian alone",
    "P": "Native Hawaiian and Other Pacific Islander alone",
    "O": "Some Other Race alone",
    "2+": "Two or more races",
}
HISPANIC = {"H": "Hispanic or Latino", "N": "Not Hispanic or Latino"}
VOTING_AGE = {"17-": "Under 18 years", "18+": "18 years and over"}
QUARTERS = ("Household", "Correctional facility", "Nursing facility", "Student housing",
            "Other group quarters")  # fmt: skip
# name: (precincts of each district, people in a precinct, weights of the races,
#        weight of Hispanic people where it is 1 for others)
COUNTIES = {
    "Marl": ((9, 8, 8, 7, 6), 1500, (52, 20, 0.6, 13, 0.3, 4, 10), 0.22),
    "Tarn": ((7, 6, 6, 5), 1000, (78, 8, 0.8, 4, 0.1, 2, 7), 0.10),
    "Sound": ((6, 5, 5), 900, (66, 5, 1.5, 9, 2.5, 6, 10), 0.32),
    "Fell": ((5, 4, 3), 450, (86, 1, 6, 1, 0.1, 1, 5), 0.05),
}
# Precincts with one large institution: (kind, people that live in it).
INSTITUTIONS = {
    "M103": ("Student housing", 640),
    "M402": ("Student housing", 210),
    "T204": ("Correctional facility", 480),
    "S301": ("Other group quarters", 330),
}
HISPANIC_BY_RACE = {"W": 1, "B": 0.3, "N": 1.6, "A": 0.1, "P": 0.4, "O": 14, "2+": 1.8}
YOUNGER_BY_RACE = {"W": 0.9, "B": 1.15, "N": 1.2, "A": 0.95, "P": 1.2, "O": 1.3, "2+": 1.7}


@dataclass(frozen=True)
class Precinct:
    """What stays from one census to the next."""

    code: str
    label: str
    path: tuple[str, str]
    people: int
    races: dict[str, float]
    hispanic: float
    young: float


def precincts() -> list[Precinct]:
    """All precincts, those of a district side by side."""
    u = Random(SEED).random
    made = []
    for county, (districts, people, weights, hispanic) in COUNTIES.items():
        for district, count in enumerate(districts, start=1):
            for number in range(1, count + 1):
                # People of the same race live near each other.
                near = [on_curve(((0, 0.3), (0.7, 1), (1, 3.5)), u()) for _ in RACES]
                made.append(
                    Precinct(
                        f"{county[0]}{district}{number:02}",
                        f"{county} {district}, precinct {number}",
                        (f"{county} County", f"{county} {district}"),
                        int(people * (0.5 + u())),
                        dict(zip(RACES, (w * n for w, n in zip(weights, near, strict=True)),
                                 strict=True)),
                        hispanic * (0.4 + 1.2 * u()),
                        0.15 + 0.12 * u(),
                    )
                )  # fmt: skip
    return made


def sample_rows(seed: int, growth: float = 1.0) -> list[Row]:
    """Everybody, in an order that does not show who lives near whom."""
    random = Random(seed)
    u = random.random
    rows: list[Row] = []
    for precinct in precincts():
        kind, inmates = INSTITUTIONS.get(precinct.code, ("", 0))
        rows += [drawn_person(precinct, kind, random) for _ in range(inmates)]
        living = int(precinct.people * growth * (0.95 + 0.1 * u()))
        rows += [drawn_person(precinct, "", random) for _ in range(living)]
    return shuffled(rows, random)


def drawn_person(precinct: Precinct, quarters: str, random: Random) -> Row:
    """One person, in the order of `schema_fields`; quarters: "" where they are to be drawn."""
    u = random.random
    race = picked(precinct.races, u())
    odds = precinct.hispanic * HISPANIC_BY_RACE[race]
    hispanic = u() < odds / (1 + odds)
    young = precinct.young * YOUNGER_BY_RACE[race] * (1.2 if hispanic else 1)
    if quarters:
        young = 0.02
    age = "17-" if u() < young else "18+"
    if not quarters:
        at_home = u() > (0.018 if age == "18+" else 0.002)
        quarters = "Household" if at_home else "Nursing facility"
        if not at_home and (age == "17-" or u() < 0.2):
            quarters = "Other group quarters"
    return (precinct.code, race, "H" if hispanic else "N", age, quarters)


def schema_fields() -> list[dict]:
    """The fields of the Table Schema, in the order of the columns."""
    areas = precincts()
    codes = {area.code: area.label for area in areas}
    return [
        listed_field("precinct", "Voting precinct", codes, [area.path for area in areas]),
        listed_field("race", "Race", RACES),
        listed_field("hispanic", "Hispanic or Latino origin", HISPANIC),
        listed_field("voting_age", "Voting age", VOTING_AGE),
        listed_field("quarters", "Living quarters", QUARTERS),
    ]


def write(folder: Path) -> None:
    """Write records, codebook and expected counts."""
    fields = schema_fields()
    names = [field["name"] for field in fields]
    write_schema(folder / "redistricting.json", fields)
    write_csv(folder / "redistricting.csv.gz", names, sample_rows(SEED))
    counts = counted_rows(sample_rows(EARLIER_SEED, growth=0.93), fields, EXPECTED_BY)
    write_csv(folder / "redistricting-expected.csv", (*EXPECTED_BY, "count"), counts)
