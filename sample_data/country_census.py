"""Census of Orsavia: everybody, by blocks of municipalities in counties in regions, and its map.

Areas are drawn first, on the map; then how many live in each block; then who. All figures are made
up.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from random import Random

import country_mesh as mesh
from country import REGIONS, SEX, Curve
from country_mesh import Draw, Field, Point
from drawing import listed_field, on_curve, write_counted, write_csv, write_schema
from municipal_register import BIRTHPLACES

SEED = 20_310_401
NAME = "country-census"
LEVELS = ("region", "county", "municipality", "block")

# Where regions begin to grow, in degrees from the middle of the map; that without is on the isles.
SEEDS: dict[str, Point] = {
    "R01": (-0.9, 1.35), "R02": (-0.55, 0.15), "R03": (2.7, -0.3), "R04": (0.9, 1.6),
    "R05": (-0.2, -1.45), "R06": (1.3, 0.3), "R07": (1.1, -1.1), "R08": (-1.75, -0.95),
    "R09": (-1.5, 0.85), "R10": (-2.3, 0.1), "R11": (2.3, 0.95),
}  # fmt: skip
ON_ISLES = "R12"
FIELDS_OF_COUNTY, FIELDS_OF_MUNICIPALITY = 68, 3.15

AGES = {"0-14": 15, "15-24": 11, "25-39": 20, "40-54": 20, "55-64": 13, "65-79": 15, "80+": 6}
# People in a municipality by its rank from 0 to 1, those in a block, and the largest of towns.
PEOPLE: Curve = ((0, 110), (0.3, 300), (0.6, 620), (0.85, 1500), (0.95, 4000), (0.99, 14_000),
                 (1, 45_000))  # fmt: skip
PEOPLE_OF_BLOCK: Curve = ((0, 40), (0.2, 85), (0.8, 190), (1, 420))
EARLIER = 4_000_000  # ten years before
CAPITAL, SEATS = 260_000, 34_000  # the capital; the first municipality of each other region

BEGINNINGS = ("Al", "Ash", "Bel", "Ber", "Birk", "Brom", "Cal", "Car", "Dal", "Dor", "El", "Esk",
              "Fal", "Fin", "Gar", "Glen", "Hal", "Hol", "Ing", "Ivel", "Kel", "Kirk", "Lang",
              "Lun", "Mar", "Mel", "Nor", "Oak", "Os", "Pel", "Quar", "Raven", "Ros", "Sand", "Sel",
              "Stan", "Thorn", "Tor", "Ul", "Var", "Ver", "Wal", "Wes", "Wil", "Yar")  # fmt: skip
ENDINGS = ("bach", "beck", "berg", "borough", "bridge", "brook", "by", "cliff", "combe", "dal",
           "den", "field", "ford", "gate", "grove", "ham", "haven", "holm", "hurst", "ley", "low",
           "march", "mere", "moor", "mouth", "ness", "port", "stead", "sted", "stoke", "thorpe",
           "ton", "vale", "vik", "wick", "wood", "worth")  # fmt: skip
PREFIXES = ("Upper", "Lower", "Great", "Little", "New", "Old")


@dataclass(frozen=True)
class Municipality:
    """code, of which the beginnings are those of its county and region; fields on the map."""

    code: str
    fields: list[Field]


def municipalities(draw: Draw) -> list[Municipality]:
    """All municipalities, those of a county behind each other."""
    land = mesh.fields_within(mesh.rugged(mesh.MAINLAND, draw))
    for lake in mesh.LAKES:
        land -= mesh.fields_within(mesh.rugged(lake, draw))
    mainland, *_ = mesh.connected(land)
    isles = set().union(*(mesh.fields_within(mesh.rugged(isle, draw)) for isle in mesh.ISLES))
    for field in mainland:
        isles -= {field, *mesh.beside(field)}
    seeds = [
        min(mainland, key=lambda field: mesh.distance(mesh.middle_of(field), seed))
        for seed in SEEDS.values()
    ]
    grown = mesh.grown(mainland, seeds, [1.0] * len(seeds), draw)
    regions = {region: [fields] for region, fields in zip(SEEDS, grown, strict=True)}
    regions[ON_ISLES] = [isle for isle in mesh.connected(isles) if len(isle) > 3]
    made = []
    for region in REGIONS:
        counties = [
            county
            for part in regions[region]
            for county in _divided(part, len(part) / FIELDS_OF_COUNTY, draw)
        ]
        for number, county in enumerate(counties, 1):
            parts = _divided(county, len(county) / FIELDS_OF_MUNICIPALITY, draw)
            made += [
                Municipality(f"{region}{number:02}{part:02}", fields)
                for part, fields in enumerate(parts, 1)
            ]
    return made


def _divided(fields: list[Field], count: float, draw: Draw) -> list[list[Field]]:
    """Fields in about so many connected areas of different sizes."""
    seeds = mesh.spread(fields, max(1, int(count + draw())), draw)
    return mesh.grown(fields, seeds, [0.6 + draw() for _ in seeds], draw)


def blocks_of(code: str, draw: Draw) -> tuple[float, list[int]]:
    """The rank of a municipality, and how many people live in each of its blocks."""
    rank = draw()
    people = on_curve(PEOPLE, rank) * (0.6 + REGIONS[code[:3]][1] / 18)
    if code.endswith("0101"):
        rank, people = 1, CAPITAL if code[:3] == "R02" else SEATS * (0.5 + draw())
    blocks = []
    while len(blocks) < 2 or (sum(blocks) < people and len(blocks) < 1999):
        blocks.append(int(on_curve(PEOPLE_OF_BLOCK, draw()) * (0.8 + 0.5 * rank)))
    return rank, blocks


def cells_of(
    people: int, foreign: float, old: float, young: float, draw: Draw, spread: float = 0.3
) -> Iterator[int]:
    """How many of some people are of each sex, age group and place of birth, in that order.

    foreign: share of those born elsewhere; old, young: how many times as many there are as
    elsewhere; spread: how far a count is from what these make likely, at most.
    """
    ages = {
        group: share * (old if group in ("65-79", "80+") else young if group == "15-24" else 1)
        for group, share in AGES.items()
    }
    everybody = sum(ages.values())
    for sex in SEX:
        for group, share in ages.items():
            women = 0.62 if group == "80+" else 0.5
            here = people * share / everybody * (women if sex == "F" else 1 - women)
            away = foreign * (1.4 if group in ("15-24", "25-39") else 0.8)
            for part in (1 - away, 0.6 * away, 0.4 * away):
                yield int(here * part * (1 - spread + 2 * spread * draw()) + draw())


def names_of(places: Sequence[Municipality], draw: Draw) -> dict[str, str]:
    """A name for each region, county and municipality; no municipality has that of another."""
    names = {region: name for region, (name, *_) in REGIONS.items()}
    used = set()
    for place in places:
        name = ""
        while not name or name in used:
            name = BEGINNINGS[int(draw() * len(BEGINNINGS))] + ENDINGS[int(draw() * len(ENDINGS))]
            if name in used:
                name = f"{PREFIXES[int(draw() * len(PREFIXES))]} {name}"
        used.add(name)
        county = place.code[:5]
        names.setdefault(county, f"{name} County")  # its first municipality is its seat
        names[place.code] = name
    return names


def write(folder: Path) -> None:
    """Write the areas, the codebook, the map and the records."""
    places = municipalities(Random(SEED).random)
    names = names_of(places, Random(SEED + 1).random)
    mesh.write_map(
        folder / f"{NAME}-map.geojson",
        {place.code: place.fields for place in places},
        names,
        Random(SEED + 2).random,
    )
    draw = Random(SEED + 3).random
    listed = [(code, code[:-2] if len(code) > 3 else "", name) for code, name in names.items()]
    blocks: list[str] = []
    counts = array("q")  # of people, row-major: block, sex, age group, place of birth
    for place in places:
        rank, sizes = blocks_of(place.code, draw)
        old, away = 0.7 + 0.6 * draw(), 0.02 + 0.14 * rank * draw()
        for number, people in enumerate(sizes, 1):
            blocks.append(f"{place.code}{number:04}")
            listed.append((blocks[-1], place.code, ""))
            young = 3.0 if rank > 0.95 and draw() < 0.05 else 0.8 + 0.3 * rank
            alike = away * (0.5 + draw()), old * (0.8 + 0.4 * draw())
            counts.extend(cells_of(people, *alike, young, draw))
    write_csv(folder / f"{NAME}-areas.csv", ("code", "parent", "name"), listed)
    digest = sha256((folder / f"{NAME}-areas.csv").read_bytes()).hexdigest()
    fields = [
        {"name": LEVELS[-1], "title": "Place of living",
         "areas": {"path": f"{NAME}-areas.csv", "sha256": digest, "levels": list(LEVELS)}},
        listed_field("sex", "Sex", SEX),
        listed_field("age_group", "Age group", list(AGES)),
        listed_field("birthplace", "Place of birth", BIRTHPLACES),
    ]  # fmt: skip
    write_schema(folder / f"{NAME}.json", fields)
    values = [blocks, list(SEX), list(AGES), list(BIRTHPLACES)]
    # Those of a census ten years before: of a smaller country, and not made from the records.
    draw = Random(SEED + 4).random
    earlier = cells_of(EARLIER, 0.06, 0.9, 0.9, draw, spread=0.05)
    cells = product(*values[1:])
    write_csv(
        folder / f"{NAME}-expected.csv",
        [*(field["name"] for field in fields[1:]), "count"],
        [(*cell, count) for cell, count in zip(cells, earlier, strict=True)],
    )
    columns = {field["name"]: of_field for field, of_field in zip(fields, values, strict=True)}
    write_counted(folder / f"{NAME}.parquet", columns, counts)
