"""Subtotals of a released table, with its exact standard error."""

from collections.abc import Sequence

import streamlit as st

from pages.components.shared.session import escaped, kept
from rpexplore.analysis import released_cells
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.errors import RpexploreError
from rpexplore.postprocessing.results import Results
from rpexplore.workload.table_text import Table

MOST_VALUES = 1000  # of an attribute, to choose from


def any_range(found: Results, table: Table, record_noun: str) -> None:
    """Widgets to choose values of each attribute of a table, and what they add up to."""
    domain = found.domain
    if domain is None:
        return
    ordered = [name for name in domain.names if name in table and domain[name].size > 1]
    if not ordered or any(domain[name].size > MOST_VALUES for name in ordered):
        return
    st.subheader("Subtotals")
    st.markdown(
        "Other sums of this table, such as a range of ages: what was measured gives each with its "
        "exact standard error, which counts in how the noise of its parts goes together."
    )
    chosen: dict[str, Sequence[int]] = {}
    for name, place in zip(ordered, st.columns(max(len(ordered), 2)), strict=False):
        with place:
            chosen[name] = _values(domain[name])
    query = {name: released_cells.vector_of(domain[name], chosen.get(name, ())) for name in table}
    try:
        answer = kept(
            "any range",
            (found, table, tuple((name, tuple(values)) for name, values in chosen.items())),
            lambda: found.answer(table, where=query),
        )
    except RpexploreError as problem:
        st.error(escaped(str(problem)))
        return
    value, error = answer.value, answer.standard_error
    words = released_cells.describe_sum(domain, chosen, value, error, record_noun)
    st.info(f"**{escaped(words)}**", icon=":material/functions:")


def _values(attribute: Attribute) -> Sequence[int]:
    """The chosen places: a range of numbers, or any categories; (): all."""
    name, places = escaped(attribute.name), range(attribute.size)
    if isinstance(attribute.values, Categories):
        return st.multiselect(
            name,
            places,
            format_func=attribute.values.label,
            key=f"summed {attribute.name}",
            placeholder="all together",
        )
    left, right = st.columns(2)
    first = left.selectbox(
        f"{name} from", places, format_func=attribute.values.label, key=f"from {attribute.name}"
    )
    upper = range(first, attribute.size)
    last = right.selectbox(
        f"{name} to",
        upper,
        index=len(upper) - 1,
        format_func=attribute.values.label,
        key=f"to {attribute.name} from {first}",
    )
    return range(first, last + 1)
