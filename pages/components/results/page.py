"""Results: look at what was released, and make other tables of it."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.components.results.areas import area_work, browse_areas
from pages.components.results.browser import browse, browse_answers
from pages.components.results.files import (
    page_for_readers,
    publishing,
    reading_code,
    workbook_download,
)
from pages.components.results.forecast import beside_forecast
from pages.components.results.postprocess import (
    HERE,
    POSTPROCESSING,
    combining,
    how_it_came_about,
    postprocessing,
    shrinkage,
)
from pages.components.results.question import question_box
from pages.components.results.source import Shown, reading_choice, record_noun_of, results_source
from pages.components.results.synthetic import (
    browse_area_records,
    browse_records,
    synthesizing,
    synthesizing_areas,
    where_records_are_made,
)
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.session import kept, show_messages
from pages.components.shared.texts import explained_title
from rpexplore.domain.result_schema import OWN_COUNT
from rpexplore.results.area_results import AreaResults
from rpexplore.results.publication import Publication, sampling_of
from rpexplore.results.unbiased import Estimates


def draw() -> None:
    """The page."""
    finish(POSTPROCESSING)
    explained_title("Results")
    show_messages(HERE)
    shown = results_source()
    if shown is not None:
        reading_choice(shown)
        _VIEWS[shown.part.kind](shown)


def _tables(shown: Shown) -> None:
    """Unbiased tables, and what can be made of them."""
    publication = _browse(shown)
    question_box(shown.part, record_noun_of(shown.part), publication)
    beside_forecast(shown.whole)
    postprocessing(shown.part, shown.whole, shown.folder)
    synthesizing(shown.part, shown.folder)


def _rounds(shown: Shown) -> None:
    _browse(shown)
    how_it_came_about(shown.part, record_noun_of(shown.part))
    follow_begun(POSTPROCESSING)
    synthesizing(kept(Estimates.of, shown.part), shown.folder)


def _processed(shown: Shown) -> None:
    _browse(shown)
    if shown.part.is_smooth:
        shrinkage(shown.part)
    where_records_are_made(shown.part)
    follow_begun(POSTPROCESSING)


def _browse(shown: Shown) -> Publication:
    """A table, and all of them for others; returns what of it is publishable."""
    part, above = shown.part, st.container(horizontal=True)  # a table may be long
    attributes, publication = browse(
        part, shown.folder, record_noun_of(part), sampling_of(shown.whole)
    )
    with above:
        _all_in_one_file(shown, publication)
    publishing(shown.whole, shown.folder)
    reading_code(part, shown.folder, attributes, publication.cv_limit)
    return publication


def _areas(shown: Shown) -> None:
    results = kept(AreaResults, shown.part)
    _downloads(shown, browse_areas(results, sampling_of(shown.whole)))
    area_work(results)
    combining(shown.whole, shown.folder)


def _whole_areas(shown: Shown) -> None:
    _downloads(shown, browse_areas(shown.part, sampling_of(shown.whole)))
    if shown.part.is_smooth:
        synthesizing_areas(shown.part, shown.folder)
    follow_begun(POSTPROCESSING)


def _counts(shown: Shown) -> None:
    browse_answers(shown.part)
    _downloads(shown, Publication())
    reading_code(shown.part, shown.folder, (OWN_COUNT,), Publication().cv_limit)
    follow_begun(POSTPROCESSING)
    combining(shown.whole, shown.folder)


def _records(shown: Shown) -> None:
    browse_records(shown.part)
    follow_begun(POSTPROCESSING)


def _area_records(shown: Shown) -> None:
    browse_area_records(shown.part)
    follow_begun(POSTPROCESSING)


def _downloads(shown: Shown, publication: Publication) -> None:
    """All tables of all parts: for readers, as a workbook, and in other formats."""
    with st.container(horizontal=True):
        _all_in_one_file(shown, publication)
    publishing(shown.whole, shown.folder)


def _all_in_one_file(shown: Shown, publication: Publication) -> None:
    page_for_readers(shown.whole, shown.folder, publication)
    workbook_download(shown.whole, shown.folder, publication)


# What is shown of results of each kind.
_VIEWS: Mapping[str, Callable[[Shown], None]] = {
    "tables": _tables,
    "rounds": _rounds,
    "processed": _processed,
    "areas": _areas,
    "whole areas": _whole_areas,
    "counts": _counts,
    "synthetic": _records,
    "area records": _area_records,
}
