"""The kinds of plans there are, of which every plan file names one."""

import re
from pathlib import Path

from rpexplore.common.formatting import joined
from rpexplore.common.json_fields import loads, refusing
from rpexplore.errors import PlanError
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan, plan_text
from rpexplore.queries.plan import QueryPlan

PLAN_KINDS: tuple[type[ReleasePlan], ...] = (Plan, QueryPlan)

# The format stands ahead of all the rest where the library wrote the file.
_FORMAT_AT_START = re.compile(r'\s*\{\s*"format"\s*:\s*"([^"]*)"')


def load_plan(path: str | Path, *, canonical: bool = True) -> ReleasePlan:
    """The plan of a file, of the kind that the file names.

    canonical: whether to refuse a file that is not byte for byte what `save` writes

    Raises `PlanError` if it is missing or not a usable plan of any kind.
    """
    text, name = plan_text(path), Path(path).name
    if match := _FORMAT_AT_START.match(text):
        file_format = match[1]
    else:
        with refusing(PlanError, f"{name} is not a plan file"):
            content = loads(text)
        file_format = content.get("format") if isinstance(content, dict) else None
    for kind in PLAN_KINDS:
        if kind.file_format == file_format:
            return kind.parse(text, name, canonical=canonical)
    formats = joined([f'"{kind.file_format}"' for kind in PLAN_KINDS], " or ")
    raise PlanError(f'{name} is not a plan file: "format" must be {formats}.')
