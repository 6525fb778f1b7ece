"""The areas of a scenario as JSON: what is asked for them, and which tree they are, by its SHA-256.

The tree is in a file of its own, which all that is about it share.
"""

from typing import Any

from rpexplore.common.json_fields import (
    FieldError,
    check_keys,
    columns,
    indices,
    indices_by_first_use,
    lists,
    sha256_of,
    text_of,
)
from rpexplore.domain.area_tree import MAX_AREAS
from rpexplore.domain.area_tree_reference import AreaTreeReference, ReadTreeFile
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.areas.area_plan_file import loss_of_areas
from rpexplore.planning.tables_in_json import tables_from_json, tables_to_json
from rpexplore.scenarios.area_study import AreaStudy

_KEYS = (
    "codebook", "attribute", "domain", "sha256", "levels", "workloads", "loss", "uniform_levels",
)  # fmt: skip
_EXPECTED = "expected"  # left out where there are none
_LEVEL_KEYS = ("name", "areas", "workload")


def study_to_json(study: AreaStudy) -> dict[str, Any]:
    """Plain values for a file; `study_from_json` undoes it exactly."""
    workloads: list[list[dict[str, Any]]] = []
    numbers: list[int | None] = []
    for level in study.levels:
        rows = tables_to_json(study.tables[level]) if level in study.tables else []
        if rows and rows not in workloads:
            workloads.append(rows)
        numbers.append(workloads.index(rows) if rows else None)
    levels = zip(study.levels, study.areas.sizes, numbers, strict=True)
    content = {
        "codebook": study.filename,
        "attribute": study.attribute,
        "domain": study.domain.to_schema(),
        "sha256": study.areas.sha256,
        "levels": [dict(zip(_LEVEL_KEYS, level, strict=True)) for level in levels],
        "workloads": [{"tables": rows} for rows in workloads],
        "loss": study.loss.to_json(),
        "uniform_levels": study.uniform,
    }
    return content if study.expected is None else content | {_EXPECTED: study.expected.to_json()}


def study_from_json(content: Any, read: ReadTreeFile) -> AreaStudy:
    """The study of a file's content; raises what `refusing` takes. The areas are not read yet."""
    expected = content.get(_EXPECTED) if isinstance(content, dict) else None
    check_keys(content, (*_KEYS, *([] if expected is None else [_EXPECTED])), "the areas")
    if type(content["uniform_levels"]) is not bool:
        raise FieldError("uniform_levels must be true or false.")
    levels = columns(content, "levels", _LEVEL_KEYS)
    names = tuple(text_of({"name": name}, "name") for name in levels["name"])
    sizes = indices(levels["areas"], MAX_AREAS + 1, "number of areas of a level")
    domain = Domain.from_schema(content["domain"])
    rows = columns(content, "workloads", ("tables",))["tables"]
    workloads = [tables_from_json(tables, domain) for tables in lists(rows, "workload")]
    used = [number for number in levels["workload"] if number is not None]
    indices_by_first_use(used, len(workloads), "workload")
    if not used or len(set(names)) < len(names):
        raise FieldError("each level must have a name of its own, and some level tables.")
    return AreaStudy(
        filename=text_of(content, "codebook"),
        attribute=text_of(content, "attribute"),
        domain=domain,
        areas=AreaTreeReference(sha256_of(content, "sha256"), names, tuple(sizes.tolist()), read),
        tables={
            name: workloads[number]
            for name, number in zip(names, levels["workload"], strict=True)
            if number is not None
        },
        loss=loss_of_areas(content["loss"]),
        uniform=content["uniform_levels"],
        expected=None if expected is None else ExpectedCounts.from_json(expected).fitted(domain),
    )
