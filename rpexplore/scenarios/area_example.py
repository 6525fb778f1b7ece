"""The example for areas: a made-up country with its codebook, its file of areas and records."""

from functools import cache
from pathlib import Path

from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.planning.areas.area_plan import AreaPlan

CODEBOOK, RECORDS = "municipal-register.json", "municipal-register.csv.gz"
COUNTRY = "Orsavia, a made-up country of 2,814 areas on five levels."
SUMMARY = "41,882 people, each with the district of Orsavia, a made-up country, that they live in."


@cache
def sample_areas() -> AreaCodebook:
    """The areas of the country, and the other attributes."""
    return AreaCodebook.load(sample_data_folder() / CODEBOOK)


def sample_records_for(plan: AreaPlan) -> Path | None:
    """The records of the country, if the plan is for its areas and its codebook."""
    book = sample_areas()
    is_of_country = plan.workload.tree.sha256 == book.tree.sha256 and plan.domain == book.domain
    return sample_data_folder() / RECORDS if is_of_country else None
