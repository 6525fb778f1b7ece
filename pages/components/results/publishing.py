"""All tables in the formats of catalogues, agencies and other programs, as one zip file."""

from pathlib import Path

import streamlit as st

from pages.components.shared.files import download
from pages.components.shared.session import escaped
from rpexplore.common.other_process import in_other_process
from rpexplore.errors import RpexploreError
from rpexplore.postprocessing.formats.export import Imprint
from rpexplore.postprocessing.formats.publishing import DEFAULT, FORMATS, published_zip
from rpexplore.postprocessing.results import AnyResults

MOST_IN_ZIP = 1_000_000  # cells: some seconds of work
# The workbook has a button of its own.
_OFFERED = [name for name in FORMATS if name != "excel"]


def publishing(results: AnyResults, folder: Path) -> None:
    """Choose formats, fill in what only people know, and download; folded."""
    with st.expander("Publish for catalogues, agencies and other programs"):
        st.caption(
            "Copies of all tables, whose columns have names that every format takes, with their "
            "errors and intervals, and the guarantee in the words of the release, which stays as "
            "it is."
        )
        if sum(item.n_rows for item in results.items) > MOST_IN_ZIP:
            st.caption(
                "These tables are too many to be made a file here; `rpexplore publish` writes them "
                "to a folder."
            )
            return
        formats = st.multiselect(
            "Formats",
            _OFFERED,
            default=[DEFAULT],
            format_func=lambda name: FORMATS[name].title,
            key="publish formats",
        )
        imprint = _imprint(folder, "sdmx" in formats)
        if imprint is not None and formats:
            name = f"{folder.name}-{'-'.join(formats)}.zip"
            download(name, lambda: in_other_process(published_zip, folder, formats, imprint))


def _imprint(folder: Path, of_agency: bool) -> Imprint | None:
    """What is filled in; None, and the page says why, if it cannot be."""
    fields = {
        "title": ("Title", folder.name),
        "publisher": ("Publisher", "who publishes the tables"),
        "license": ("Web address of the licence", "https://creativecommons.org/licenses/by/4.0/"),
    }
    if of_agency:
        fields |= {
            "agency": ("SDMX agency", "ESTAT"),
            "period": ("Period of the records", "2026, 2026-Q1, 2026-03"),
        }
    filled = {}
    for name, column in zip(fields, st.columns(len(fields)), strict=True):
        title, example = fields[name]
        typed = column.text_input(title, key=f"publish {name}", placeholder=example)
        filled[name] = typed.strip()
    try:
        return Imprint(**filled)
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None
