"""Health register: one year of hospital stays in Orsavia, several of some patients.

All figures are made up. A stay is a record; a patient has up to ten of them in the year.
"""

from datetime import date, timedelta
from pathlib import Path
from random import Random

import country
from drawing import (
    Row,
    counted_rows,
    listed_field,
    picked,
    shuffled,
    write_csv,
    write_schema,
)

SEED = 20_260_701
EARLIER_SEED = 20_250_701  # of the year before, whose tables are public
PATIENTS = 34_000  # some of them in hospital in the year before only
MOST_STAYS = 10
NEW_YEAR = date(2025, 1, 1)
EXPECTED_BY = ("sex", "age_group", "diagnosis")

AGE_GROUPS = {"0-9": 9, "10-19": 5, "20-29": 9, "30-39": 12, "40-49": 9, "50-59": 13, "60-69": 16,
              "70-79": 16, "80+": 11}  # fmt: skip
# name: (group, weights at 0-9, 10-39, 40-69, 70+, weight for women where it is 1 for men,
#        planned, nights, chance of a further stay)
DIAGNOSES = {
    "Infections": ("Internal medicine", (16, 4, 3, 5), 1.0, 0.05, 6, 0.12),
    "Neoplasms": ("Internal medicine", (1, 3, 15, 13), 1.0, 0.8, 5, 0.62),
    "Blood and immunity": ("Internal medicine", (2, 1, 1, 2), 1.1, 0.5, 4, 0.45),
    "Endocrine and metabolic": ("Internal medicine", (2, 2, 4, 4), 1.1, 0.4, 5, 0.25),
    "Circulatory": ("Internal medicine", (1, 2, 16, 25), 0.7, 0.45, 6, 0.3),
    "Respiratory": ("Internal medicine", (22, 5, 6, 10), 0.9, 0.15, 6, 0.28),
    "Digestive": ("Internal medicine", (9, 11, 13, 10), 0.9, 0.4, 5, 0.18),
    "Genitourinary": ("Internal medicine", (4, 6, 7, 6), 1.1, 0.5, 4, 0.25),
    "Mental": ("Mind and nerves", (1, 10, 6, 2), 0.9, 0.35, 18, 0.35),
    "Nervous system": ("Mind and nerves", (5, 4, 4, 4), 1.0, 0.45, 6, 0.2),
    "Eye and ear": ("Surgery", (7, 2, 2, 3), 1.0, 0.8, 2, 0.12),
    "Musculoskeletal": ("Surgery", (2, 6, 13, 11), 1.1, 0.75, 5, 0.12),
    "Injuries": ("Surgery", (11, 12, 9, 14), 0.8, 0.08, 5, 0.1),
    "Pregnancy and birth": ("Birth", (0, 26, 1, 0), 1.0, 0.45, 3, 0.1),
    "Newborn": ("Birth", (17, 0, 0, 0), 1.0, 0.1, 6, 0.1),
}
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
ADMISSIONS = ("Planned", "Emergency", "Transfer")
OUTCOMES = ("Home", "Other hospital", "Nursing care", "Died")
NIGHTS = (0, 1, 2, 4, 8, 15, 31, 366)


def drawn_patient(number: int, random: Random) -> list[Row]:
    """The stays of one patient, in the order in which they were."""
    u = random.random
    region = picked({code: facts[1] for code, facts in country.REGIONS.items()}, u())
    age = picked(AGE_GROUPS, u())
    sex = "F" if u() < (0.6 if age in ("20-29", "30-39") else 0.51) else "M"
    stage = {"0-9": 0, "10-19": 1, "20-29": 1, "30-39": 1, "70-79": 3, "80+": 3}.get(age, 2)
    weights = {
        name: by_age[stage] * (women if sex == "F" else name != "Pregnancy and birth")
        for name, (_, by_age, women, _, _, _) in DIAGNOSES.items()
    }
    main = picked(weights, u())
    again = DIAGNOSES[main][5] * (0.5, 0.7, 1, 1.15)[stage]
    day, rows, is_first = int(565 * u()) - 200, [], True
    while day < 365 and len(rows) < MOST_STAYS:
        diagnosis = main if is_first or u() < 0.75 else picked(weights, u())
        nights, row = drawn_stay(diagnosis, stage, random)
        if day >= 0:
            admitted = NEW_YEAR + timedelta(days=day)
            month = MONTHS[admitted.month - 1]
            rows.append((f"P{number:05}", admitted.isoformat(), month, region, sex, age, diagnosis,
                         *row))  # fmt: skip
        if row[-1] == "Died" or u() >= again:
            break
        is_first, again = False, 0.5 * again + 0.5 * 0.75  # who came twice comes more often
        day += nights + 3 + int(40 * u())
    return rows


def drawn_stay(diagnosis: str, stage: int, random: Random) -> tuple[int, Row]:
    """Nights, and admission, nights and outcome as in a row."""
    u = random.random
    _, _, _, planned, typical, _ = DIAGNOSES[diagnosis]
    admission = "Planned" if u() < planned else "Transfer" if u() < 0.07 else "Emergency"
    rank = u()
    nights = int(typical * rank * (0.7 + 0.15 * stage) / (1.15 - rank))
    if admission == "Planned" and u() < 0.3:
        nights = 0
    nights = min(nights, 200)
    old = (0.1, 0.15, 0.7, 2.4)[stage]
    outcome = picked(
        {"Home": 90, "Other hospital": 4, "Nursing care": 3 * old,
         "Died": 2 * old * (0.2 if admission == "Planned" else 1)},
        u(),
    )  # fmt: skip
    return nights, (admission, nights, outcome)


def sample_rows(seed: int) -> list[Row]:
    """All stays, in an order that does not show which are of one patient."""
    random = Random(seed)
    stays = [stay for number in range(PATIENTS) for stay in drawn_patient(number, random)]
    return shuffled(stays, random)


def schema_fields() -> list[dict]:
    """The fields of the Table Schema; the first two columns of the records are not in it."""
    regions = {code: facts[0] for code, facts in country.REGIONS.items()}
    parts = [[country.PARTS[code]] for code in regions]
    return [
        listed_field("month", "Month of admission", MONTHS),
        listed_field("region", "Region of residence", regions, parts),
        listed_field("sex", "Sex", country.SEX),
        listed_field("age_group", "Age group", tuple(AGE_GROUPS)),
        listed_field("diagnosis", "Main diagnosis", tuple(DIAGNOSES),
                     [[facts[0]] for facts in DIAGNOSES.values()]),
        listed_field("admission", "Kind of admission", ADMISSIONS),
        {"name": "nights", "title": "Nights in hospital", "type": "number", "bins": list(NIGHTS)},
        listed_field("outcome", "Where to", OUTCOMES),
    ]  # fmt: skip


def write(folder: Path) -> None:
    """Write records, codebook and expected counts."""
    fields = schema_fields()
    columns = ("patient", "admitted", *(field["name"] for field in fields))
    write_schema(folder / "hospital-stays.json", fields)
    write_csv(folder / "hospital-stays.csv.gz", columns, sample_rows(SEED))
    rows = [row[2:] for row in sample_rows(EARLIER_SEED)]
    counts = counted_rows(rows, fields, EXPECTED_BY)
    write_csv(folder / "hospital-stays-expected.csv", (*EXPECTED_BY, "count"), counts)
