"""Survey weights on the Tables page: their column, their limit, and tables that stay unweighted."""

from typing import Any

import streamlit as st

from pages.components.shared.session import bound, change, change_domain, current, escaped
from pages.components.workload.builders import HERE
from rpexplore.analysis.glossary import meaning
from rpexplore.domain.amounts import Amounts
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import title

MOST_OFFERED = 500
NONE = "none: tables count records"
_COLUMN, _LARGEST = "weight column", "largest new weight"


def survey_weights() -> None:
    """The attribute that weights the tables and its limit, or a column to add."""
    domain, weighted_by = current().domain, current().request.weighted_by
    names = [domain.names[index] for index in domain.weights]
    if names:
        st.selectbox(
            "Survey weights",
            ["", *names],
            format_func=lambda name: escaped(name) if name else NONE,
            help=meaning("Weighted count"),
            **bound("weighted by", weighted_by, lambda name: _set(weighted_by=name)),
        )

    def set_largest(text: str) -> None:
        change_domain(HERE, lambda: current().domain.with_weights(weighted_by, text.strip()))

    values = domain[weighted_by].values if weighted_by else None
    if isinstance(values, Amounts):
        st.text_input(
            "Largest weight that counts",
            help="Choose it without a look at the records. The error of a weighted count is so "
            "many times that of a count.",
            **bound("largest weight", str(values.maximum), set_largest),
        )
        st.caption(escaped(values.clamping_sentence))
        if current().areas is not None:
            st.caption(
                "Tables in areas are weighted by it as well; those that stay unweighted stay so in "
                "areas. Their records need the column, too."
            )
        _unweighted(weighted_by)
    elif not names:
        with st.expander("Weight the records"):
            st.text_input("Column with the survey weights", key=_COLUMN)
            st.text_input("Largest weight that counts, chosen without a look", key=_LARGEST)
            st.button("Weight all tables", on_click=_add)


def _unweighted(weighted_by: str) -> None:
    """The tables that stay counts of records."""
    request = current().request
    if len(current().workload) > MOST_OFFERED and not request.unweighted:
        return
    tables = [
        tuple(name for name in table if name != weighted_by) for table in current().workload.tables
    ]
    st.multiselect(
        "Tables that stay unweighted",
        list(dict.fromkeys([*tables, *request.unweighted])),
        format_func=lambda table: escaped(title(table)),
        placeholder="none",
        **bound(
            "unweighted",
            list(request.unweighted),
            lambda chosen: _set(unweighted=tuple(map(tuple, chosen))),
        ),
    )


def _set(**fields: Any) -> None:
    change(HERE, lambda: current().with_request(**fields))


def _add() -> None:
    """The column among the attributes, and all tables weighted by it."""
    column, largest = (str(st.session_state[key]).strip() for key in (_COLUMN, _LARGEST))

    def weighted() -> Scenario:
        changed, _ = current().with_domain(current().domain.with_weights(column, largest))
        return changed.with_request(weighted_by=column)

    change(HERE, weighted)
