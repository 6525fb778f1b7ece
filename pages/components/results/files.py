"""The results as files: tables, an Excel workbook, formats of others, code that reads them."""

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.shared.autosave import autosaves, open_key
from pages.components.shared.charts import download_frame
from pages.components.shared.files import download
from pages.components.shared.session import attempt, escaped, kept
from rpexplore.common.processes import in_other_process
from rpexplore.common.text import joined
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import TITLES
from rpexplore.releases.manifest import in_release
from rpexplore.releases.readme import TableFile
from rpexplore.releases.table_cells import parquet_of
from rpexplore.results.formats.crosstab import Crosstab
from rpexplore.results.formats.crosstab_workbook import shown_workbook
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.imprint import Imprint
from rpexplore.results.formats.languages import ENGLISH, LANGUAGES, Language
from rpexplore.results.formats.publishing import FORMATS, published_zip
from rpexplore.results.formats.readers_page import MOST_TABLES as MOST_TABLES_ON_PAGE
from rpexplore.results.formats.readers_page import readers_page_bytes
from rpexplore.results.formats.writers import DEFAULT
from rpexplore.results.publication import Publication
from rpexplore.results.results import AnyResults
from rpexplore.results.workbook import MAX_TABLES, workbook_bytes

MOST_IN_WORKBOOK = 200_000  # cells: some ten seconds of work
MOST_ON_PAGE = 2_000_000  # cells behind the crosstabs of a page for readers: the same


def table_downloads(frame: pd.DataFrame, file: str) -> None:
    """Buttons for one table; file: what to call it as CSV."""
    with st.container(horizontal=True, width="content"):
        download_frame(frame, file)
        parquet = f"{Path(file).stem}.parquet"
        download(parquet, lambda: parquet_of(frame))


def page_for_readers(
    results: AnyResults, folder: Path, publication: Publication, **look: Any
) -> None:
    """A button for one HTML file with all tables as crosstabs, where they are not too many.

    The last release of the open project has the title of the survey, others that of their folder.
    """
    saved = autosaves().last_release(open_key())
    imprint = Imprint()
    if saved is not None and saved.folder.absolute() == folder.absolute():
        imprint = Imprint(saved.scenario.survey, records=saved.scenario.record_noun)
    counts = [item.n_rows for item in results.items]
    if sum(counts) <= MOST_ON_PAGE and len(counts) <= MOST_TABLES_ON_PAGE:
        kind = "-publishable" if publication.leave_empty else ""
        download(
            f"{folder.name}{kind}.html",
            lambda: in_other_process(readers_page_bytes, folder, publication, imprint),
            "Download a page for readers",
            help="All tables in one file that opens in any browser and says in plain words what "
            "noise is in it: for those who have never heard of ε.",
            **look,
        )


def workbook_download(results: AnyResults, folder: Path, publication: Publication) -> None:
    """A button for all tables; where they are many, how to make the workbook without the app."""
    counts = [item.n_rows for item in results.items]
    if sum(counts) <= MOST_IN_WORKBOOK and len(counts) <= MAX_TABLES:
        label = "Download all tables as an Excel workbook"
        kind = "-publishable" if publication.leave_empty else ""
        download(
            f"tables{kind}.xlsx",
            lambda: in_other_process(workbook_bytes, folder, publication),
            label,
        )
    else:
        st.caption(
            "These tables are too many to be made a workbook here; `rpexplore workbook` writes one "
            "from the folder."
        )


def shown_download(
    folder: Path, table: Crosstab, heading: str, publication: Publication, file: str
) -> None:
    """A button for the crosstab that is shown; file: what to call it."""
    label = "Download as shown, for Excel"
    download(file, lambda: shown_workbook(folder, table, heading, publication), label)


# ---- All tables in the formats of catalogues, agencies and other programs, as one zip file.


MOST_IN_ZIP = 1_000_000  # cells: some seconds of work
_SHARES = {
    "": "None: counts alone",
    "row": "Of the row of the crosstab",
    "column": "Of the column of the crosstab",
    "total": "Of all",
}
# The workbook has a button of its own.
_OFFERED = [name for name in FORMATS if name != "excel"]
_PEOPLE = {"de": "Personen", "fr": "personnes", "es": "personas"}  # examples to be typed


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
            persist_state="session",
        )
        in_english = [FORMATS[name].title for name in formats if not FORMATS[name].said_in]
        is_translated = not in_english
        left, middle, right = st.columns(3, vertical_alignment="bottom")
        language = left.selectbox(
            "Language",
            list(LANGUAGES) if is_translated else [ENGLISH.code],
            format_func=LANGUAGES.__getitem__,
            key="publish language" if is_translated else "publish in English",
            persist_state="session",
            help="The page for readers, crosstabs for Excel, PX, SDMX, JSON-stat, CSVW and the "
            "quality report are in other languages as well; names and labels of the codebook stay "
            "as they are.",
        )
        if in_english:
            st.caption(f"In English alone: {joined(in_english)}.")
        shares = middle.selectbox(
            "Shares in per cent",
            _SHARES,
            format_func=_SHARES.__getitem__,
            key="publish shares",
            persist_state="session",
            help="Beside each figure its share, with its standard error; crosstabs show these in "
            "place of counts.",
        )
        fewer_than = 0
        if not shares:
            fewer_than = right.number_input(
                "Print counts below this as “fewer than …”",
                min_value=0,
                value=0,
                key="publish fewer than",
                persist_state="session",
                help="0 prints all counts. A way of presentation that protects nobody: the noise "
                "does. In files of data the figures of these cells are empty, and flagged. Sums, "
                "means and weighted counts stay as they are.",
            )
        asked = {"shares": shares, "language": Language(language), "fewer_than": fewer_than}
        export = attempt(lambda: Export(folder, **asked))
        if export is None:
            return
        imprint = _imprint(folder, formats, export.attributes, asked["language"])
        if imprint is not None and formats:
            parts = [*formats, *([language] if language != ENGLISH.code else [])]
            given = folder, formats, imprint, shares, language, fewer_than
            download(
                f"{folder.name}-{'-'.join(parts)}.zip",
                lambda: in_other_process(published_zip, *given),
            )


def _imprint(
    folder: Path, formats: Collection[str], attributes: Sequence[str], language: Language
) -> Imprint | None:
    """What is filled in; None, and the page says why, if it cannot be."""
    fields = {
        "title": ("Title", folder.name),
        "publisher": ("Publisher", "who publishes the tables"),
        "records": ("Records are", "persons; as in the plan"),
        "license": ("Web address of the licence", "https://creativecommons.org/licenses/by/4.0/"),
    }
    if "sdmx" in formats:
        fields["agency"] = ("SDMX agency", "ESTAT")
    if {"sdmx", "px"} & set(formats):
        fields["period"] = ("Period of the records", "2026, 2026-Q1, 2026-03")
    if not language.is_english:
        fields["records"] = ("What the records are, in that language", _PEOPLE[language.code])
    in_row = 4 if len(fields) == 4 else 3
    rows = [st.columns(in_row, vertical_alignment="bottom") for _ in range(0, len(fields), in_row)]
    filled = {}
    for (name, (title, example)), column in zip(fields.items(), chain(*rows), strict=False):
        # Title and period are those of one publication.
        kept_on = None if name in ("title", "period") else "session"
        # A word of one language is none of another.
        key = f"publish {name} {language.code}" if name == "records" else f"publish {name}"
        typed = column.text_input(title, key=key, placeholder=example, persist_state=kept_on)
        filled[name] = typed.strip()
    if {"sdmx", "px", "jsonstat"} & set(formats):
        filled["time"] = st.selectbox(
            "Attribute of time",
            ["", *attributes],
            format_func=lambda name: name or "None: all figures are of one period",
            key="publish time",
            help="The attribute whose values are periods, such as 2026 or 2026-Q1.",
        )
    try:
        return Imprint(**filled)
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None


# ---- Lines of other programs that read the table that is looked at.


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
        code = kept(TableFile.of, folder, file, items[0].number).code(cv_limit)
    except RpexploreError:  # the browser above has said so
        return
    with st.expander("Read this table in Python, R, SAS or Stata"):
        st.caption(
            "To be run in the folder of the results; the coefficient of variation is added, and "
            "which cells are publishable by it."
        )
        for tab, (name, lines) in zip(st.tabs(list(code)), code.items(), strict=True):
            tab.code(lines, language=_LANGUAGE[name])
