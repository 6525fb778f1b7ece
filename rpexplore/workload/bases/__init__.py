"""Query bases: which sums of an attribute's values a table has (docs/mathematics.md §4.1).

In reading order: `base` (what a basis tells about itself, and its matrix W, computed with); the
bases `runs` (single values, prefixes, ranges, windows), `hierarchy`, `custom`, and `sums`, which
attributes of amounts and of weights have. A new one is a class
here and an entry in BASES below, which all rooms go by; a test asks for its name in `rpexplore` and
for its fields in the schema of plan files.

Imports `domain`, `common` and `errors`; nothing else of `workload`.
"""

from typing import Any

from rpexplore.errors import WorkloadError
from rpexplore.workload.bases.base import Basis
from rpexplore.workload.bases.custom import CustomBasis
from rpexplore.workload.bases.hierarchy import Hierarchy
from rpexplore.workload.bases.runs import Identity, Prefix, Ranges, Windows
from rpexplore.workload.bases.sums import Sums, WeightedCounts

# In the order in which they are offered.
BASES: dict[str, type[Basis]] = {
    basis.kind: basis
    for basis in (Identity, Prefix, Ranges, Windows, Hierarchy, CustomBasis, Sums, WeightedCounts)
}


def to_json(basis: Basis) -> dict[str, Any]:
    """The basis as JSON content; `from_json` undoes it exactly."""
    return {"kind": basis.kind, **basis.json_fields()}


def from_json(content: dict[str, Any]) -> Basis:
    """The basis of JSON content; KeyError, TypeError or `RpexploreError` for anything else."""
    kind = content["kind"]
    if kind not in BASES:
        raise WorkloadError(
            f"The basis of an attribute must be {', '.join(BASES)}, got {kind!r}; use one of them."
        )
    return BASES[kind].from_json_fields(content)
