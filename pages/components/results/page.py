"""Results: look at what was released, and make other tables of it."""

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from pages.components.results.areas import area_work, browse_areas
from pages.components.results.browser import browse, browse_answers
from pages.components.results.files import (
    page_for_readers,
    publishing,
    reading_code,
    workbook_download,
)
from pages.components.results.postprocess import (
    HERE,
    POSTPROCESSING,
    combining,
    how_it_came_about,
    postprocessing,
    shrinkage,
)
from pages.components.results.source import Shown, reading_choice, record_noun_of, results_source
from pages.components.results.synthetic import (
    browse_area_records,
    browse_records,
    synthesizing,
    synthesizing_areas,
    where_records_are_made,
)
from pages.components.shared.background import finish, follow_begun, worked_out
from pages.components.shared.charts import folded
from pages.components.shared.session import attempt, escaped, kept, show_messages
from pages.components.shared.texts import explained_title
from rpexplore.analysis.outcome import Outcome, outcome_columns
from rpexplore.domain.result_schema import OWN_COUNT
from rpexplore.domain.values import example_of_question, question_from_text
from rpexplore.releases.finished_release import Release
from rpexplore.releases.means import unit_of_query
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaResults
from rpexplore.results.publication import Publication, sampling_of
from rpexplore.results.synthetic.questions import ModelAnswer, Questions, describe_answer
from rpexplore.results.unbiased import Estimates


def draw() -> None:
    """The page."""
    finish(POSTPROCESSING)
    explained_title("Results")
    with st.container():  # there without a message too: what is below stays open when it goes
        show_messages(HERE)
    shown = results_source()
    if shown is not None:
        reading_choice(shown)
        _VIEWS[shown.part.kind](shown)


def _tables(shown: Shown) -> None:
    """Unbiased tables, and what can be made of them."""
    publication = _browse(shown)
    question_box(shown.part, record_noun_of(shown.part), publication)
    if shown.whole.stated_forecast is not None:
        folded("Forecast and outcome", "outcome", partial(_outcome, shown.whole))
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


# ---- What came out of a release beside the forecast that its plan keeps.


def _outcome(release: Release) -> None:
    """Forecast and outcome by number of attributes and by table."""
    outcome = worked_out(
        Outcome.of,
        release.plan,
        release.part("tables"),
        by=(release.plan.sha256, release.folder),
    )
    if outcome is None:
        return
    first, *others = outcome.sentences
    st.markdown(f"**{escaped(first)}**")
    st.caption(escaped(" ".join(others)))
    st.dataframe(
        outcome_columns(outcome.by_order(), "attributes", outcome.whom),
        hide_index=True,
        alt="Forecast and outcome by number of attributes",
    )
    by_table = outcome.tables()
    if len(by_table):
        st.dataframe(
            outcome_columns(by_table, "table", outcome.whom),
            hide_index=True,
            height=260,
            alt="Forecast and outcome of every table, that farthest below its forecast first",
        )


# ---- A question in words of the codebook, answered from the tables or by a model.


def question_box(
    tables: TableRelease | Estimates, record_noun: str, publication: Publication
) -> None:
    """One field for a question, and its answer with interval and label."""
    st.subheader("Ask a question")
    questions = kept(Questions, tables)
    domain = tables.domain
    asked = f"How many {escaped(record_noun)} have …"
    if domain.amounts:
        asked += ", or what is their sum or mean?"
    text = st.text_input(
        asked,
        key="question",
        placeholder=example_of_question(domain, tables.table_names),
        help="Values of any attributes of the tables, as in a condition: a value, a range, several "
        "with commas between. Where no table has the attributes together, a model answers. Of "
        "amounts ask for the sum or mean: income=mean region=North.",
        persist_state="session",
    ).strip()
    if not text:
        return
    where = attempt(lambda: question_from_text(domain, text))
    if where is None:
        return
    answer = worked_out(questions.answer, text, by=(questions, text))
    if answer is None:
        return
    if publication.hides(answer.value, answer.standard_error):
        st.info("This answer is not publishable, and is left empty.")
        return
    noun = unit_of_query(domain, where, record_noun, tables.table_names)
    st.info(f"**{escaped(describe_answer(answer, noun))}**", icon=":material/functions:")
    if noun != record_noun and (clamping := tables.clamping_of(where)):
        st.caption(escaped(clamping))
    if isinstance(answer, ModelAnswer):
        st.caption(answer.describe())
