"""Random trees of areas, and the same mathematics by dense algebra."""

import numpy as np
from hypothesis import strategies as st

import rpexplore as rp


@st.composite
def area_trees(draw, *, max_rows: int = 10):
    """Small trees of uneven depth."""
    path = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)
    paths = draw(st.lists(path, min_size=1, max_size=max_rows, unique=True))
    leaves = [p for p in paths if not any(q[: len(p)] == p and q != p for q in paths)]
    depth = max(map(len, leaves))
    return rp.AreaTree.from_columns(
        {f"level {k}": [(*row, *[None] * depth)[k] for row in leaves] for k in range(depth)}
    )


def incidence(tree: rp.AreaTree) -> np.ndarray:
    """Which areas without parts lie in each area, 0/1 [n_areas, n_undivided]."""
    undivided = np.flatnonzero(tree.n_parts == 0)
    within = np.zeros((tree.n_areas, len(undivided)))
    for column, area in enumerate(undivided.tolist()):
        while area >= 0:
            within[area, column] = 1
            area = int(tree.parents[area])
    return within
