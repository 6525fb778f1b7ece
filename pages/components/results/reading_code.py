"""Lines of other programs that read the table that is looked at."""

from collections.abc import Collection
from pathlib import Path

import streamlit as st

from pages.components.shared.session import kept
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import TITLES
from rpexplore.postprocessing.results import AnyResults
from rpexplore.releases.manifest import in_release
from rpexplore.releases.reading_code import TableFile

_LANGUAGE = {"Python": "python", "R": "r", "SAS": "sas", "Stata": "stata"}  # as colours know it


def reading_code(
    results: AnyResults, folder: Path, attributes: Collection[str], cv_limit: float
) -> None:
    """The lines for the table with these attributes, folded; none if it is no file of its own.

    folder: that of the release, in which a part may have a folder of its own
    """
    items = [item for item in results.items if set(item.attributes) == set(attributes)]
    if not items:
        return
    file = in_release(results.kind, items[0].file) if results.kind in TITLES else items[0].file
    try:
        code = kept(TableFile.of, folder, file).code(cv_limit)
    except RpexploreError:  # the browser above has said so
        return
    with st.expander("Read this table in Python, R, SAS or Stata"):
        st.caption(
            "To be run in the folder of the results; the coefficient of variation is added, and "
            "which cells are publishable by it."
        )
        for tab, (name, lines) in zip(st.tabs(list(code)), code.items(), strict=True):
            tab.code(lines, language=_LANGUAGE[name])
