"""The app: one file a page, and its parts.

`components/<page>/` has the parts of a page, `components/shared/` what several pages use: the
session and its scenario, plans solved in the background, charts, autosave, the line on top.
Numbers and sentences come from `rpexplore.analysis`, pictures from `rpexplore.figures`.
"""

import streamlit as st

from rpexplore.serving.sessions import HAND_OVER, plans_only

# Pages that one entry of the row above leads to; on each there are links to the others.
BESIDE = ({"fairness": "Fairness", "tradeoffs": "Trade-offs", "scenarios": "Scenarios"},)


def all_pages() -> list:
    """The pages in the order of the way through the app; those beside others are not in the row.

    A server that plans only has one in place of the last two, where plans are handed over.

    Without icons: as the icon of a browser tab, Streamlit would fetch them from a font service.
    """
    if plans_only():
        last = [st.Page("pages/handover.py", title=HAND_OVER)]
    else:
        last = [
            st.Page("pages/release.py", title="Release"),
            st.Page("pages/results.py", title="Results"),
        ]
    return [
        st.Page("pages/home.py", title="Home"),
        st.Page("pages/codebook.py", title="Data"),
        st.Page("pages/workload.py", title="Tables"),
        st.Page("pages/queries.py", title="Own counts", visibility="hidden"),  # now on Tables
        st.Page("pages/areas.py", title="Areas", visibility="hidden"),
        st.Page("pages/plan.py", title="Plan"),
        st.Page("pages/fairness.py", title="Compare"),
        st.Page("pages/tradeoffs.py", title="Trade-offs", visibility="hidden"),
        st.Page("pages/scenarios.py", title="Scenarios", visibility="hidden"),
        *last,
    ]
