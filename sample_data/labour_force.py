"""Labour-force survey: people of 15 and more in Orsavia, and what they do for a living.

All figures are made up, shaped like those of a mid-sized industrial country.
"""

from pathlib import Path
from random import Random

import country
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

SEED = 20_260_401
EARLIER_SEED = 20_250_401  # of the year before, whose tables are public
RESPONDENTS = 40_000
EXPECTED_BY = ("region", "sex", "age_group", "status")

# code: (name, share of people, (unemployed, outside the labour force) where 1 is the country)
REGIONS = {
    code: (facts[0], facts[1], rates)
    for (code, facts), rates in zip(
        country.REGIONS.items(),
        ((1.0, 1.0), (0.8, 0.9), (1.2, 1.0), (1.1, 1.1), (0.8, 1.0), (0.9, 1.0), (1.1, 1.0),
         (0.9, 1.1), (1.5, 1.1), (1.0, 1.0), (1.0, 1.1), (1.4, 1.2)),
        strict=True,
    )
}  # fmt: skip
# name: (share of people, outside the labour force for men, for women, unemployed of the others)
AGE_GROUPS = {
    "15-24": (12, 0.52, 0.56, 0.17),
    "25-34": (16, 0.08, 0.18, 0.075),
    "35-44": (17, 0.06, 0.15, 0.05),
    "45-54": (18, 0.09, 0.16, 0.045),
    "55-64": (16, 0.28, 0.40, 0.05),
    "65-74": (13, 0.86, 0.92, 0.02),
    "75+": (8, 0.98, 0.99, 0.01),
}
EDUCATION = {"L": "Low (ISCED 0-2)", "M": "Medium (ISCED 3-4)", "H": "High (ISCED 5-8)"}
EDUCATION_BY_AGE = {"15-24": (38, 48, 14), "25-34": (11, 44, 45), "35-44": (13, 45, 42),
                    "45-54": (18, 49, 33), "55-64": (25, 49, 26), "65-74": (36, 46, 18),
                    "75+": (52, 37, 11)}  # fmt: skip
STATUS = ("Employed", "Unemployed", "Outside the labour force")
NONE = "Not applicable"
# name: (weights by education, weight for women where it is 1 for men, part-time, temporary)
INDUSTRIES = {
    "Agriculture": ((5, 3, 1), 0.6, 0.22, 0.10),
    "Manufacturing": ((17, 20, 12), 0.45, 0.08, 0.08),
    "Construction": ((13, 10, 3), 0.15, 0.08, 0.12),
    "Trade and repair": ((17, 17, 8), 1.1, 0.28, 0.11),
    "Transport": ((8, 7, 3), 0.35, 0.13, 0.10),
    "Hospitality": ((12, 6, 2), 1.2, 0.42, 0.25),
    "Information and finance": ((1, 5, 17), 0.7, 0.12, 0.07),
    "Business services": ((10, 9, 15), 1.0, 0.22, 0.14),
    "Public administration": ((3, 7, 11), 1.0, 0.15, 0.10),
    "Education": ((2, 4, 17), 2.3, 0.30, 0.18),
    "Health and care": ((7, 10, 12), 3.2, 0.36, 0.13),
    "Other services": ((8, 6, 4), 1.6, 0.34, 0.15),
}
CONTRACTS = ("Permanent", "Temporary", "Self-employed", NONE)
HOURS = ("None", "1-19", "20-34", "35-47", "48+")
SELF_EMPLOYED = {"Agriculture": 0.55, "Construction": 0.25, "Business services": 0.2}


def drawn_person(random: Random) -> Row:
    """One respondent, in the order of `schema_fields`."""
    u = random.random
    region = picked({code: share for code, (_, share, _) in REGIONS.items()}, u())
    age = picked({name: facts[0] for name, facts in AGE_GROUPS.items()}, u())
    older = {"65-74": 0.53, "75+": 0.6}.get(age, 0.5)
    sex = "F" if u() < older else "M"
    education = picked(dict(zip(EDUCATION, EDUCATION_BY_AGE[age], strict=True)), u())
    level = tuple(EDUCATION).index(education)
    _, men, women, unemployed = AGE_GROUPS[age]
    fewer_jobs, fewer_seek = REGIONS[region][2]
    outside = (women if sex == "F" else men) * fewer_seek * (1.25, 1, 0.85)[level]
    if u() < min(outside, 0.995):
        return (region, sex, age, education, STATUS[2], NONE, NONE, "None")
    if u() < unemployed * fewer_jobs * (1.9, 1, 0.6)[level]:
        return (region, sex, age, education, STATUS[1], NONE, NONE, "None")
    industry = picked(
        {name: by_level[level] * (weight if sex == "F" else 1)
         for name, (by_level, weight, _, _) in INDUSTRIES.items()},
        u(),
    )  # fmt: skip
    _, _, part_time, temporary = INDUSTRIES[industry]
    young = on_curve(((0, 2.6), (1, 1.2), (2, 0.8), (6, 0.6)), tuple(AGE_GROUPS).index(age))
    contract = "Temporary" if u() < temporary * young else "Permanent"
    if u() < SELF_EMPLOYED.get(industry, 0.08):
        contract = "Self-employed"
    short = part_time * (1.5 if sex == "F" else 0.5) * (1.4 if age in ("15-24", "65-74") else 1)
    rank = u()
    if rank < min(short, 0.9):
        hours = "1-19" if rank < short * 0.35 else "20-34"
    else:
        hours = "48+" if u() < (0.3 if contract == "Self-employed" else 0.07) else "35-47"
    if u() < 0.02:  # employed, and away all week
        hours = "None"
    return (region, sex, age, education, STATUS[0], industry, contract, hours)


def sample_rows(seed: int) -> list[Row]:
    """All respondents."""
    random = Random(seed)
    return shuffled([drawn_person(random) for _ in range(RESPONDENTS)], random)


def schema_fields() -> list[dict]:
    """The fields of the Table Schema, in the order of the columns."""
    regions = {code: name for code, (name, _, _) in REGIONS.items()}
    parts = [[country.PARTS[code]] for code in regions]
    return [
        listed_field("region", "Region of residence", regions, parts),
        listed_field("sex", "Sex", country.SEX),
        listed_field("age_group", "Age group", tuple(AGE_GROUPS)),
        listed_field("education", "Highest education completed", EDUCATION),
        listed_field("status", "Labour status", STATUS),
        listed_field("industry", "Industry of the main job", (*INDUSTRIES, NONE)),
        listed_field("contract", "Contract of the main job", CONTRACTS),
        listed_field("hours", "Hours worked last week", HOURS),
    ]


def write(folder: Path) -> None:
    """Write records, codebook and expected counts."""
    fields = schema_fields()
    names = [field["name"] for field in fields]
    write_schema(folder / "labour-force.json", fields)
    write_csv(folder / "labour-force.csv.gz", names, sample_rows(SEED))
    counts = counted_rows(sample_rows(EARLIER_SEED), fields, EXPECTED_BY)
    write_csv(folder / "labour-force-expected.csv", (*EXPECTED_BY, "count"), counts)
