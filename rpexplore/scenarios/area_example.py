"""The example for areas: a made-up country with its codebook, its file of areas and records."""

from functools import cache
from pathlib import Path

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.area_tree import AreaTree
from rpexplore.planning.areas.area_plan import AreaPlan

CODEBOOK, RECORDS = "municipal-register.json", "municipal-register.csv.gz"
MAP = "municipal-register-map.geojson"
COUNTRY = "Orsavia, a made-up country of 2,814 areas on five levels."
SUMMARY = "41,882 people, each with the district of Orsavia, a made-up country, that they live in."


@cache
def sample_areas() -> AreaCodebook:
    """The areas of the country, and the other attributes."""
    return AreaCodebook.load(sample_data_folder() / CODEBOOK)


def sample_records_for(plan: AreaPlan) -> Path | None:
    """The records of the country, if the plan is for its areas and its codebook."""
    is_for_them = is_sample(plan.workload.tree) and plan.domain == sample_areas().domain
    return sample_data_folder() / RECORDS if is_for_them else None


def sample_map_for(tree: AreaTree) -> Path | None:
    """The map of the country's municipalities, if these are its areas."""
    return sample_data_folder() / MAP if is_sample(tree) else None


def is_sample(tree: AreaTree) -> bool:
    """Whether these are the areas of the country."""
    return tree.sha256 == sample_areas().tree.sha256
