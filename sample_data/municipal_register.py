"""Municipal register: people of Orsavia by districts of municipalities, counties and regions.

Areas differ in size as they do anywhere: a capital of sixty districts beside villages that are not
divided at all. All figures are made up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from country import REGIONS, SEX
from country_map import write_map
from drawing import (
    Row,
    listed_field,
    on_curve,
    picked,
    shuffled,
    write_csv,
    write_schema,
)

SEED = 20_310_101
AREAS, RECORDS = "municipal-register-areas.csv", "municipal-register.csv.gz"
MAP = "municipal-register-map.geojson"
LEVELS = ("region", "county", "municipality", "district")

AGE_GROUPS = {"0-17": 19, "18-34": 21, "35-49": 20, "50-64": 20, "65-79": 15, "80+": 5}
BIRTHPLACES = {"O": "Orsavia", "E": "Elsewhere in Europe", "W": "Elsewhere in the world"}
# Parts of an area by its rank from 0 to 1: a few have many.
COUNTIES = ((0, 1), (0.6, 4), (0.9, 8), (1, 12))
MUNICIPALITIES = ((0, 1), (0.3, 3), (0.7, 8), (0.95, 16), (1, 24))
DISTRICTS = ((0, 0), (0.45, 1.4), (0.7, 4), (0.9, 12), (0.98, 34), (1, 60))
PEOPLE = ((0, 2), (0.5, 13), (0.9, 32), (1, 70))  # in an area that is not divided
BEGINNINGS = ("Al", "Ber", "Dor", "El", "Fin", "Gar", "Hol", "Ing", "Kel", "Lun", "Mar", "Nor",
              "Os", "Pel", "Ros", "Sel", "Tor", "Ul", "Ver", "Wes")  # fmt: skip
ENDINGS = ("bach", "berg", "by", "dal", "field", "ford", "ham", "holm", "mere", "moor", "mouth",
           "sted", "ton", "vik", "wick", "worth")  # fmt: skip
PARTS_OF_TOWNS = ("Centre", "North", "South", "East", "West", "Harbour", "Station", "Mill",
                  "Park", "Hill", "Church", "Market", "Bridge", "Green", "Castle")  # fmt: skip


@dataclass(frozen=True)
class Area:
    code: str
    parent: str
    name: str
    rank: float  # within its region: the more central, the larger
    is_divided: bool


def areas() -> list[Area]:
    """All areas, the parts of one behind each other."""
    u = Random(SEED).random
    made = []
    for region, (name, share, *_) in REGIONS.items():
        made.append(Area(region, "", name, share / 18, is_divided=True))
        for county in _parts(region, 2 + on_curve(COUNTIES, share / 18), u):
            made.append(Area(county, region, f"{_name(u)} County", u(), is_divided=True))
            for municipality in _parts(county, on_curve(MUNICIPALITIES, u()), u):
                # Towns of more people are divided; of the rest, one without parts is a village.
                rank, name = u(), _name(u)
                districts = list(_parts(municipality, on_curve(DISTRICTS, rank), u))
                is_divided = len(districts) > 1
                made.append(Area(municipality, county, name, rank, is_divided=is_divided))
                for number, district in enumerate(districts if is_divided else []):
                    part = PARTS_OF_TOWNS[number % len(PARTS_OF_TOWNS)]
                    more = f" {number // len(PARTS_OF_TOWNS) + 1}" * (number >= len(PARTS_OF_TOWNS))
                    made.append(Area(district, municipality, f"{name} {part}{more}", u(),
                                     is_divided=False))  # fmt: skip
    return made


def _parts(code: str, count: float, u) -> Iterator[str]:
    """The codes of about so many parts of an area."""
    for number in range(1, int(count + u()) + 1):
        yield f"{code}{number:02}"


def _name(u) -> str:
    return BEGINNINGS[int(u() * len(BEGINNINGS))] + ENDINGS[int(u() * len(ENDINGS))]


def sample_rows() -> list[Row]:
    """Everybody, in an order that does not show who lives near whom."""
    random = Random(SEED + 1)
    u = random.random
    rows: list[Row] = []
    for area in areas():
        if area.is_divided:
            continue
        # Neighbours are alike: of one age, and from one place.
        older, foreign = 0.4 + 1.2 * u(), 0.02 + 0.2 * u() * area.rank
        ages = {
            group: share * (older if group in ("65-79", "80+") else 1)
            for group, share in AGE_GROUPS.items()
        }
        for _ in range(int(on_curve(PEOPLE, u()))):
            age = picked(ages, u())
            sex = "F" if u() < (0.62 if age == "80+" else 0.5) else "M"
            origin = "O" if u() > foreign else "E" if u() < 0.6 else "W"
            rows.append((area.code, sex, age, origin))
    return shuffled(rows, random)


def write_municipalities(path: Path) -> None:
    """Write a map of the municipalities: the fewer people live in one, the more room it has."""
    made = [area for area in areas() if len(area.code) <= len("R010101")]
    parts: dict[str, list[str]] = {"": []}
    for area in sorted(made, key=lambda area: len(area.code)):
        parts.setdefault(area.parent, []).append(area.code)
    rooms = {area.code: 1.6 - area.rank for area in made if area.code not in parts}
    write_map(path, parts, {area.code: area.name for area in made}, rooms, Random(SEED + 2).random)


def write(folder: Path) -> None:
    """Write the areas, the codebook, the map and the records."""
    listed = [(area.code, area.parent, area.name) for area in areas()]
    write_csv(folder / AREAS, ("code", "parent", "name"), listed)
    digest = sha256((folder / AREAS).read_bytes()).hexdigest()
    fields = [
        {"name": LEVELS[-1], "title": "Place of living",
         "areas": {"path": AREAS, "sha256": digest, "levels": list(LEVELS)}},
        listed_field("sex", "Sex", SEX),
        listed_field("age_group", "Age group", list(AGE_GROUPS)),
        listed_field("birthplace", "Place of birth", BIRTHPLACES),
    ]  # fmt: skip
    write_schema(folder / "municipal-register.json", fields)
    write_municipalities(folder / MAP)
    write_csv(folder / RECORDS, [field["name"] for field in fields], sample_rows())
