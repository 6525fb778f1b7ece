"""The results browser: tables in several views, subtotals, answers, publishable cells."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.results.crosstab import crosstab_view
from pages.components.results.source import is_of_current
from pages.components.results.views import bar_view, heat_view, list_view, map_view
from pages.components.shared.charts import numbers
from pages.components.shared.inputs import number_field
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import released_cells
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.queries import with_targets_as_typed
from rpexplore.common.text import capitalised
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.result_schema import OWN_COUNT
from rpexplore.domain.survey import Sampling
from rpexplore.errors import RpexploreError
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.adaptive_release import BOUND_MEANING
from rpexplore.releases.items import Answer
from rpexplore.releases.query_release import OwnCounts
from rpexplore.results.formats.crosstab import SINGLE_VALUES, levels_of
from rpexplore.results.formats.listed_columns import columns_of
from rpexplore.results.measurement_source import sources_of, spent
from rpexplore.results.publication import (
    CV_MEANING,
    SMOOTH_CV_MEANING,
    Publication,
    SmoothingGain,
    has_errors,
)
from rpexplore.results.results import Results, ShownTables

VIEWS = {  # how many attributes each needs, what draws it, and what it is called in a sentence
    "Crosstab": (0, crosstab_view, "a crosstab"),
    "List": (0, list_view, "a list"),
    "Bars": (1, bar_view, "bars"),
    "Heat map": (2, heat_view, "a heat map"),
    "Map": (0, map_view, "a map"),
}
MOST_VALUES = 1000  # of an attribute, to choose from
ANSWER_COLUMNS = {
    "name": Column("own count", "text"),
    "answer": Column("noisy count", "estimate"),
    "unit": Column("unit", "text"),
    "standard_error": COLUMNS["standard_error"],
    "margin_95": COLUMNS["margin_95"],
    "cv": Column("CV", "share"),
    "quality": Column("quality", "text"),
    "wanted": Column("target", "text"),
    "met": Column("target met", "text"),
}


def browse(
    results: Results, folder: Path, record_noun: str, sampling: Sampling | None
) -> tuple[tuple[str, ...], Publication]:
    """One table, chosen by its attributes; returned with what of it is publishable.

    folder: where the results are; record_noun: what a record stands for, in the plural; sampling:
    as of `browse_table`
    """
    attributes = _attributes(results, folder.absolute())
    return attributes, browse_table(results, attributes, record_noun, sampling, folder)


def browse_table(
    results: ShownTables,
    attributes: tuple[str, ...],
    record_noun: str,
    sampling: Sampling | None,
    folder: Path,
) -> Publication:
    """The table with these attributes in one of several views, and its subtotals.

    sampling: the error that the forecast of their plan counts beside the noise; folder: where the
    results are
    """
    views = [name for name in VIEWS if name != "Map" or results.in_areas]
    if st.session_state.get("results view") not in views:
        st.session_state.pop("results view", None)
    with st.container(horizontal=True, gap="medium"):
        view = st.radio(
            "Show as", views, key="results view", horizontal=True, persist_state="session"
        )
        publication = publication_input(results, sampling)
    if not results.has_counts(attributes):
        others = " Take one out, or choose others." if attributes else " Choose some."
        if attributes and results.is_biased:
            others = " Add one or take one out."
        what = "estimated" if results.is_estimated else "processed"
        what = what if results.is_biased else "released"
        exactly = "exactly these attributes" if results.is_biased else "all of these attributes"
        st.info(f"There is no {what} table with {exactly}.{others}")
        return publication
    least, draw, name = VIEWS[view]
    if view == "Crosstab":  # of which the workbook says where it comes from
        draw = partial(draw, folder=folder)
    try:
        if len(attributes) < least:
            needed = "an attribute" if least == 1 else "two attributes"
            st.info(f"Choose {needed} at least to see the table as {name}.")
        else:
            if view != "Map":  # which is of more areas, and says so itself
                _say_what_is_publishable(results, attributes, record_noun, publication)
            draw(results, attributes, record_noun, publication)
            _means(results, attributes)
            gain = SmoothingGain.of_table(kept(results.table, attributes))
            if gain is not None and not gain.is_gain:
                st.info(gain.describe(), icon=":material/balance:")
        if results.is_estimated:
            st.caption(
                "Of sums of these estimates no error is known: add up the counts of a table, or "
                "take a smaller table."
            )
        elif results.is_biased:
            st.caption(
                "Subtotals with exact errors are those of the unbiased counts: open the release "
                "that these tables were made of."
            )
        else:
            _subtotal(results, attributes, record_noun, publication)
    except RpexploreError as error:
        st.error(escaped(error.on_screen()))
    except OSError as error:
        st.error(escaped(f"The tables cannot be read any more ({error.strerror or error})."))
    return publication


def _means(results: ShownTables, attributes: tuple[str, ...]) -> None:
    """The means of a table with amounts, and what is done to amounts beyond their limits."""
    if clamping := results.clamping_of(attributes):
        st.caption(escaped(clamping))
    means = kept(results.means_of, attributes)
    if means is None:
        return
    st.subheader("Means")
    st.markdown(
        "The sum over the number of records with an amount, weighted as the sum is, with Fieller's "
        "95 % interval. Empty where the interval of that number holds 0."
    )
    columns = columns_of(means) | {"value": Column("mean", "estimate")}
    numbers(means, columns, "means.csv", "Means with their 95 % intervals")


def _say_what_is_publishable(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    if bound := results.bound_of(attributes, record_noun):
        st.markdown(escaped(bound), help=BOUND_MEANING)
    frame = kept(results.table, attributes)
    publishable, smooth = publication.publishable(frame), results.is_smooth
    meaning_of_cv = SMOOTH_CV_MEANING if smooth else CV_MEANING
    if not has_errors(frame):
        st.markdown("**Which cells are publishable is not known.**", help=meaning_of_cv)
        return
    is_at_several = any(len(levels_of(results, name)) > 1 for name in attributes)
    of = SINGLE_VALUES if is_at_several else ""
    share = publication.describe(int(publishable.sum()), publishable.size, of)
    st.markdown(f"**{share}**", help=f"{publication.rule(smooth=smooth)}. {meaning_of_cv}")


def _attributes(results: Results, folder: Path) -> tuple[str, ...]:
    """The attributes of the table to look at; those of one that is there to begin with.

    What was chosen in another folder stays if there are counts of it here.
    """
    names, tables = results.attributes, results.table_names
    chosen = st.session_state.get("looked at")
    is_new = st.session_state.get("looked at in") != folder
    st.session_state["looked at in"] = folder
    if (
        chosen is None
        or not set(chosen) <= set(names)
        or (is_new and not results.has_counts(chosen))
    ):
        # One attribute first; the total alone says little.
        st.session_state["looked at"] = list(min(tables, key=lambda table: (not table, len(table))))
    chosen = st.multiselect(
        "Attributes of the table",
        names,
        key="looked at",
        persist_state="session",  # the table of the Release page stays on that of the results
        placeholder="the total",
        help="Tables as they were processed or estimated."
        if results.is_biased
        else "Any released table, and any that is inside one: its counts are summed from what was "
        "measured, and have exact errors too.",
    )
    return results.in_column_order(chosen)


def _subtotal(
    results: ShownTables, attributes: tuple[str, ...], record_noun: str, publication: Publication
) -> None:
    """Widgets to choose values of each attribute of a table, and what they add up to."""
    domain = results.domain
    if domain is None:
        return
    ordered = [name for name in domain.names if name in attributes and domain[name].size > 1]
    if not ordered or any(domain[name].size > MOST_VALUES for name in ordered):
        return
    st.subheader("Subtotals")
    st.markdown(meaning("Subtotal"))
    chosen: dict[str, Sequence[int]] = {}
    for name, column in zip(ordered, st.columns(max(len(ordered), 2)), strict=False):
        with column:
            chosen[name] = _values(domain[name])
    answer = kept(_answer, results, domain, attributes, chosen)
    if publication.hides(answer.value, answer.standard_error):
        st.info("This subtotal is not publishable, and is left empty.")
        return
    sentence = released_cells.describe_sum(
        domain, chosen, answer.value, answer.standard_error, record_noun
    )
    st.info(f"**{escaped(capitalised(sentence))}**", icon=":material/functions:")


def _answer(
    results: ShownTables,
    domain: Domain,
    attributes: tuple[str, ...],
    chosen: dict[str, Sequence[int]],
) -> Answer:
    query = {
        name: released_cells.vector_of(domain[name], chosen.get(name, ())) for name in attributes
    }
    return results.answer(attributes, where=query)


def _values(attribute: Attribute) -> Sequence[int]:
    """The chosen values' indices: a range of numbers, or any categories; (): all."""
    # Options are labels: a browser keeps what it shows, and results may number others alike.
    name, labels = escaped(attribute.name), attribute.labels()
    if isinstance(attribute.values, Amounts):
        rows = released_cells.rows_of_amounts(attribute.values)
        return [rows.index(st.selectbox(name, rows, key=f"summed {attribute.name}"))]
    if isinstance(attribute.values, Categories):
        key = f"summed {attribute.name}"
        chosen = st.multiselect(name, labels, key=key, placeholder="all together")
        return [labels.index(label) for label in chosen]
    left, right = st.columns(2)
    lowest = left.selectbox(f"{name} from", labels, key=f"from {attribute.name}")
    first = labels.index(lowest)
    upper = labels[first:]
    key = f"to {attribute.name} from {lowest}"
    highest = right.selectbox(f"{name} to", upper, len(upper) - 1, key=key)
    return range(first, labels.index(highest) + 1)


def browse_answers(counts: OwnCounts) -> None:
    """Every own count with its noise and its accuracy, and what is guaranteed."""
    answers = counts.answers
    met = answers["met"].to_numpy()
    total = spent(sources_of(counts))
    privacy = f"{rho_text(total.rho)} for {total.unit}"
    if not counts.made_of:
        plan = counts.plan
        privacy = f"{plan.amount_text} for {plan.budget.full_unit}"
    st.markdown(
        f"{escaped(counts.contents)} with {escaped(privacy)}; "
        f"{int(met.sum()):,} of {len(met):,} targets are met. The counts are unbiased, "
        "not rounded, and may be negative."
    )
    if not counts.made_of:
        proven = escaped(counts.plan.proven)
        st.markdown(f":material/verified: **Proven optimal for this objective.** {proven}")
    alt = "Every own count with its noise and its accuracy"
    table = with_targets_as_typed(Publication().table(answers), current().query_list)
    columns = dict(ANSWER_COLUMNS)
    if clamping := counts.clamping_of([OWN_COUNT]):
        queries = counts.queries
        units = [queries.unit(query) or current().record_noun for query in range(len(queries))]
        table["unit"] = units
        st.caption(escaped(clamping))
        columns["answer"] = Column("noisy count or sum", "estimate")
    columns = {name: column for name, column in columns.items() if name in table}
    numbers(table, columns, "noisy-counts.csv", alt)
    with st.expander("What this release guarantees, in full"):
        st.markdown(escaped(counts.guarantee if counts.made_of else counts.plan.guarantee))


# ---- Which cells of the results are publishable, and whether others are left empty.


def publication_input(results: ShownTables, sampling: Sampling | None) -> Publication:
    """A limit, at first that of the open scenario where the tables can be its, and a choice."""
    usual = current().cv_limit if is_of_current(results) else CV_LIMIT
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        percent = number_field(
            "Publishable: CV at most (%)",
            f"limit of results, usually {usual}",
            value=float(f"{100 * usual:.10g}"),
            least=0.1,
            most=1000.0,
            width=230,
            help=f"{CV_MEANING} A count that is not above 0 is not publishable.",
            persist_state="session",
        )
        leave_empty = st.checkbox(
            "Leave cells that are not publishable empty",
            key="leave cells empty",
            persist_state="session",
            help="In what is shown and downloaded here: CSV, Parquet and the workbook. The folder "
            "of the results stays as it is.",
        )
    limit = usual if percent is None else percent / 100
    scenario = current()
    if is_of_current(results) and scenario.design is not None:  # what is chosen now, then
        sampling = Sampling(scenario.design)
        if scenario.expected is not None:
            sampling = Sampling(scenario.design, float(scenario.expected.total))
    return Publication(limit, leave_empty, sampling)
