"""A question in words of the codebook, answered from the tables or by a model."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import attempt, escaped, kept
from rpexplore.domain.values import combination_from_text, example_of
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.publication import Publication
from rpexplore.results.synthetic.questions import ModelAnswer, Questions, describe_answer
from rpexplore.results.unbiased import Estimates


def question_box(
    tables: TableRelease | Estimates, record_noun: str, publication: Publication
) -> None:
    """One field for a question, and its answer with interval and label."""
    st.subheader("Ask a question")
    questions = kept(Questions, tables)
    domain = tables.domain
    used = domain.in_order({name for table in tables.table_names for name in table})
    text = st.text_input(
        f"How many {escaped(record_noun)} have …",
        key="question",
        placeholder=example_of(domain, used),
        help="Values of any attributes of the tables, as in a condition: a value, a range, several "
        "with commas between. Where no table has the attributes together, a model answers.",
        persist_state="session",
    ).strip()
    if not text:
        return
    where = attempt(lambda: combination_from_text(domain, text, "question"))
    if where is None:
        return
    answer = worked_out(questions.answer, text, by=(questions, text))
    if answer is None:
        return
    if publication.hides(answer.value, answer.standard_error):
        st.info("This answer is not publishable, and is left empty.")
        return
    st.info(f"**{escaped(describe_answer(answer, record_noun))}**", icon=":material/functions:")
    if isinstance(answer, ModelAnswer):
        st.caption(answer.describe())
