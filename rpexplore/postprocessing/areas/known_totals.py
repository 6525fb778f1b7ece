"""Totals of areas that are publicly known, which whole counts are made to meet.

They are not protected: a total that is no public knowledge must not be given here.
"""

from collections.abc import Mapping

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import ReleaseError

UNKNOWN = -1


def known_totals(tree: AreaTree, totals: Mapping[int, int]) -> np.ndarray:
    """Totals by the numbers of areas as int64[n_areas], `UNKNOWN` for all others.

    Raises:
        ReleaseError: For a negative total, parts that do not add up, or parts of which some
            are known and some are not, or that lie in an area whose total is not known.
    """
    found = np.full(tree.n_areas, UNKNOWN, dtype=np.int64)
    areas = np.fromiter(totals.keys(), dtype=np.int64, count=len(totals))
    found[areas] = np.fromiter(totals.values(), dtype=np.int64, count=len(totals))
    if np.any(found[areas] < 0):
        area = int(areas[np.argmax(found[areas] < 0)])
        raise ReleaseError(
            f"The known total of {_name(tree, area)} is negative; it must be 0 or more."
        )
    known = found >= 0
    n_known = np.bincount(tree.parents[1:][known[1:]], minlength=tree.n_areas)
    sums = np.bincount(tree.parents[1:], np.maximum(found[1:], 0), minlength=tree.n_areas)
    for wrong, why in (
        ((n_known > 0) & (n_known < tree.n_parts), "is known for some of its parts only"),
        ((n_known > 0) & ~known, "is known for its parts, but not for itself"),
        (
            (n_known > 0) & (sums != found),
            "is not the sum of those of its parts",
        ),
    ):
        if np.any(wrong):
            area = int(np.argmax(wrong))
            raise ReleaseError(
                f"The total of {_name(tree, area)} {why}; give totals that add up, of all areas "
                "from the top down to a level."
            )
    return read_only(found)


def _name(tree: AreaTree, area: int) -> str:
    return f"the area {' > '.join(tree.path(area)) or tree.levels[0]}"
