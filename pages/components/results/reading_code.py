"""Lines of other programs that read the table that is looked at."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from pages.components.shared.session import kept
from rpexplore.errors import RpexploreError
from rpexplore.postprocessing.results import Results
from rpexplore.releases.reading_code import TableFile

_LANGUAGE = {"Python": "python", "R": "r", "SAS": "sas", "Stata": "stata"}  # as colours know it


def reading_code(
    results: Results, folder: Path, attributes: Sequence[str], cv_limit: float
) -> None:
    """The lines for the table with these attributes, folded; none if it is no file of its own."""
    wanted = frozenset(attributes)
    positions = [i for i, names in enumerate(results.table_names) if frozenset(names) == wanted]
    if not positions:
        return
    names = results.table_names[positions[0]]
    try:
        code = kept(TableFile.of, folder, positions[0], names).code(cv_limit)
    except RpexploreError:  # the browser above has said so
        return
    with st.expander("Read this table in Python, R, SAS or Stata"):
        st.caption(
            "To be run in the folder of the results; the coefficient of variation is added, and "
            "which cells are publishable by it."
        )
        for tab, (name, lines) in zip(st.tabs(list(code)), code.items(), strict=True):
            tab.code(lines, language=_LANGUAGE[name])
