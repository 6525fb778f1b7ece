"""What is handed over of a plan for areas, where nothing is released: its files."""

import streamlit as st

from pages.components.areas.export import take_along
from pages.components.areas.study import area_plan
from pages.components.shared.session import escaped, kept
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.postprocessing.areas.released_cells import why_no_whole_counts
from rpexplore.scenarios.area_study import AreaStudy

OWN_RELEASE = (
    "Areas are a release of their own, and its cost comes on top of that of other releases of the "
    "same records."
)


def hand_over_view(opened: AreaStudy) -> None:
    """The plan's files, and the commands that run it where the records are."""
    planned = area_plan(opened)
    if planned is not None:
        st.markdown(OWN_RELEASE)
        say_without_whole_counts(planned)
        take_along(planned)


def say_without_whole_counts(planned: AreaPlan) -> None:
    """Before anything is spent: why no whole counts can be made of the release, if none can."""
    if refused := kept(why_no_whole_counts, planned):
        st.info(escaped(f"No whole counts can be made of this release. {refused}"))
