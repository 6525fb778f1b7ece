"""The plan files of areas in one zip file, with the script and the command that make them."""

from rpexplore.common.zip_file import zip_of
from rpexplore.export.reproduction.area_script import PLAN, RUN, area_command, area_script
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy

FILENAME = "area-plan.zip"


def area_bundle(plan: AreaPlan, study: AreaStudy) -> bytes:
    """The plan file, the Parquet files that belong beside it, and how they are made again."""
    files = {PLAN: plan.text.encode(), **plan.files.by_name}
    files["plan.py"] = area_script(study, plan.budget).encode()
    make = area_command(study, plan.budget)
    files["commands.txt"] = (f"{make}\n\n{RUN}" if make else RUN).encode()
    return zip_of(files)
