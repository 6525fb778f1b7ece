"""The levels of areas: how many there are of each, and of their parts; never a list of areas."""

import streamlit as st

from pages.components.shared.charts import metrics, numbers
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.areas.accuracy import describe_levels
from rpexplore.analysis.areas.levels import level_sizes
from rpexplore.common.formatting import joined
from rpexplore.figures.areas import LEVEL_COLUMNS
from rpexplore.scenarios.area_study import AreaStudy


def area_levels(opened: AreaStudy) -> None:
    """How many areas, levels and other attributes there are, and a table of the levels."""
    tree, domain = opened.areas.tree, opened.domain
    sizes = kept(level_sizes, tree, by=(tree,))
    metrics(
        ("Areas", f"{tree.n_areas:,}", escaped(opened.filename)),
        ("Levels", f"{len(tree.levels):,}", escaped(f"attribute {opened.attribute}")),
        ("Other attributes", f"{len(domain):,}", escaped(joined(domain.names))),
    )
    st.markdown(escaped(describe_levels(sizes)))
    numbers(sizes, LEVEL_COLUMNS, "levels.csv", "The levels of the areas")
