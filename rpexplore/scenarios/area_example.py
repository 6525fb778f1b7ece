"""The example for areas: a made-up country with its codebook, its file of areas and records."""

from functools import cache
from pathlib import Path

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.area_tree import AreaTree
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario

CODEBOOK, RECORDS = "municipal-register.json", "municipal-register.csv.gz"
ATTRIBUTES = ("sex", "age_group", "birthplace")  # beside the areas
MAP = "municipal-register-map.geojson"
COUNTRY = "Orsavia, a made-up country of 2,814 areas on five levels."
SUMMARY = "41,882 people, each with the district of Orsavia, a made-up country, that they live in."


@cache
def sample_areas() -> AreaCodebook:
    """The areas of the country, and the other attributes."""
    return AreaCodebook.load(sample_data_folder() / CODEBOOK)


def sample_project() -> Project:
    """The country in a project of its own, with the tables to begin with."""
    book = sample_areas()
    return Project(
        (
            Scenario(
                book.domain,
                name="All tables on every level",
                survey="Municipal register",
                record_noun="people",
                areas=AreaStudy.of(CODEBOOK, book),
            ),
        )
    )


def sample_records_for(plan: Plan) -> Path | None:
    """The records of the country, if the plan is for its codebook, and for its areas if for any."""
    if plan.domain.names != ATTRIBUTES or plan.domain != sample_areas().domain:
        return None
    areas = plan.part("areas")
    is_for_others = areas is not None and not is_sample(areas.workload.tree)
    return None if is_for_others else sample_data_folder() / RECORDS


def sample_map_for(tree: AreaTree) -> Path | None:
    """The map of the country's municipalities, if these are its areas."""
    return sample_data_folder() / MAP if is_sample(tree) else None


def is_sample(tree: AreaTree) -> bool:
    """Whether these are the areas of the country."""
    return tree.sha256 == sample_areas().tree.sha256
