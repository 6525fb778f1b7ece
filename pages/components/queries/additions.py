"""Own counts that are added to the list: one from labels, many at once, or those of a file."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.components.queries.list import (
    HERE,
    choosable,
    default_target,
    replace_list,
    target_input,
)
from pages.components.shared.files import download, upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import attempt, change, current, escaped, kept, say
from rpexplore.common.text import plural
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.bases import Prefix, Ranges
from rpexplore.workload.counts_by import By, text_by
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.query_edits import chosen_domain, with_queries
from rpexplore.workload.query_files import (
    crossed_queries,
    csv_of_coefficients,
    csv_of_conditions,
    csv_template,
    marginal_queries,
    stated_from_csv,
)
from rpexplore.workload.query_list import MAX_CELLS, QueryList
from rpexplore.workload.query_typing import MOST_LISTED, built_count

# ---- One count, built from attributes and the labels of their values, or from a typed condition.


_GROUPS_NAMED = 4  # of a level, beside its name
_N_CONDITIONS, _NAME, _TYPED, _BY = "conditions of count", "new count", "typed count", "count by"


def count_builder() -> None:
    """Who counts, by which attributes; what is wrong is said as long as it is."""
    domain = current().domain
    names = choosable(domain.with_levels)
    called, who, how = st.columns([2, 5, 2])
    called.text_input("Name of a new count", key=_NAME, placeholder="adults in the north")
    with called:
        target_input()
    conditions = []
    for number in range(st.session_state.setdefault(_N_CONDITIONS, 1)):
        attribute, values = who.columns([2, 3])
        name = attribute.selectbox(
            "and" if number else "Who counts",
            names,
            index=None,
            format_func=lambda name: _with_groups(domain, name),
            key=f"condition on {number}",
            placeholder="choose an attribute" if number else "everybody",
        )
        if name is not None:
            conditions.append(_values(values, domain, name, number))
    further = {_N_CONDITIONS: st.session_state[_N_CONDITIONS] + 1}
    who.button("And …", key="further condition", on_click=lambda: st.session_state.update(further))
    typed = who.text_input(
        "And a condition as text, if you like",
        key=_TYPED,
        placeholder="18 <= age < 65 & !(region == 'North')",
        help="Conditions compare attributes with values, joined by &, |, ! and brackets.",
    ).strip()
    by = how.multiselect("By", names, key=_BY, placeholder="one count for all")
    parts = [*filter(None, conditions), *([f"({typed})" if conditions else typed] if typed else [])]
    definition = text_by(" & ".join(parts), by)
    if not (parts or by or st.session_state[_NAME]):
        return
    stated = attempt(
        lambda: kept(built_count, domain, st.session_state[_NAME], definition, default_target())
    )
    if stated is not None:
        several = plural(len(stated), "count")
        st.caption(escaped(f"{several}: {definition or 'total'}"))
    st.button(
        "Add to the list",
        key="add built count",
        type="primary",
        on_click=_add_built,
        args=(stated,),
        disabled=stated is None,
    )


def _with_groups(domain: Domain, name: str) -> str:
    """The name of an attribute, or of a level of it with its first groups, to recognise it by."""
    by = By.of(domain, name)
    if by.name == by.attribute.name:
        return name
    labels = (*by.labels[:_GROUPS_NAMED], *(["…"] if len(by.labels) > _GROUPS_NAMED else []))
    return f"{name}: {', '.join(labels)}"


def _values(where: Any, domain: Domain, name: str, number: int) -> str:
    """The condition on an attribute, or on a level of it, by the labels of its values."""
    by = By.of(domain, name)
    key = f"values of {name} in {number}"
    if by.name != by.attribute.name or isinstance(by.attribute.values, Categories):
        chosen = where.multiselect("is", by.labels, key=key, placeholder="any of its values")
        groups = [by.labels.index(label) for label in chosen]
        return by.condition(*groups) if groups else ""
    ordered = by.labels[: by.attribute.n_ordered]
    low, high = where.columns(2)
    first = low.selectbox("from", ordered, key=f"first {key}")
    after = ordered[ordered.index(first) :]
    last = high.selectbox("to", after, len(after) - 1, key=f"last {key}")
    start = ordered.index(first)
    return by.condition(*range(start, start + after.index(last) + 1))


def _add_built(stated: StatedQueries) -> None:
    before = current().query_list
    if replace_list(lambda: with_queries(before, stated)):
        say(
            HERE,
            "success",
            f"Added {plural(len(current().query_list or ()) - len(before or ()), 'own count')}.",
        )
        for key in [key for key in st.session_state if str(key).startswith("condition on ")]:
            st.session_state[key] = None
        st.session_state.update({_N_CONDITIONS: 1, _NAME: "", _TYPED: "", _BY: []})


# ---- Many counts at once, and files.


TABLES = "Every cell of small tables"
CUMULATIVE = "Cumulative counts"
RANGES = "Every range of values"


def many_at_once() -> None:
    """Queries that are made from the attributes, and put behind the list; or a file of them."""
    stated, codebook = current().query_list, current().domain
    shown = st.expander("Many at once, or a CSV file", key="query files", on_change="rerun")
    if not shown.open:
        return
    with shown:
        names = [] if stated is None else stated.queries.domain.names
        chosen = st.multiselect(
            "Attributes",
            choosable(codebook),
            [name for name in names if name in codebook],
            key=revision("attributes of many"),
            placeholder="choose attributes of the codebook",
        )
        domain = attempt(lambda: chosen_domain(codebook, chosen)) if chosen else None
        if domain is not None:
            _many(domain)
        about = domain if stated is None else stated.queries.domain
        if about is not None:
            _csv_files(about)


def _many(domain: Domain) -> None:
    kind = st.segmented_control(
        "What to add",
        [TABLES, CUMULATIVE, RANGES],
        default=TABLES,
        required=True,
        key="queries to add",
    )
    if kind == TABLES:
        most = st.number_input(
            "Attributes in a table, at most",
            min_value=0,
            max_value=len(domain),
            value=min(1, len(domain)),
            key=f"queries up to {len(domain)}",
        )
        args = (lambda: marginal_queries(domain, most),)
    else:
        left, right = st.columns(2)
        name = left.selectbox("Of the attribute", domain.names, key="queries along")
        by = right.multiselect(
            "for each combination of",
            [other for other in domain.names if other != name],
            key=f"queries by other than {name}",
            placeholder="nothing: for all together",
        )
        basis = Prefix() if kind == CUMULATIVE else Ranges()
        args = (lambda: crossed_queries(domain, name, basis, by),)
    st.button("Add to the list", on_click=_add, args=args)
    st.caption(
        "They get the target of counts without one of their own. What counts the same as a count "
        "of the list is left out."
    )


def _add(make: Callable[[], QueryList]) -> None:
    before = current().query_list

    def longer() -> Scenario:
        target = default_target()
        if target is None:
            raise WorkloadError("Own counts need a target; mend the one above first.")
        added = StatedQueries.of(make(), target)
        return current().replaced(query_list=with_queries(before, added))

    if change(HERE, longer):
        added = len(current().query_list or ()) - len(before or ())
        say(HERE, "success", f"Added {plural(added, 'own count')}.")


def _csv_files(domain: Domain) -> None:
    """A CSV file with conditions, or with a coefficient for each cell, in both directions."""
    upload(
        "CSV with the columns name, condition and target, or with name, target and a column of "
        "numbers for each cell; it replaces the list",
        ["csv"],
        revision("query file"),
        partial(_load, domain),
    )
    with st.container(horizontal=True):
        _downloads(domain)
    st.caption(
        "With numbers, an own count can be any weighted sum of cells: 1 counts a cell, 0 does "
        "not, and 0.5, −1 or 2.25 weigh it."
    )


def _load(domain: Domain, content: bytes, name: str) -> None:
    had_one = current().query_list is not None
    if replace_list(lambda: stated_from_csv(domain, content, name, default_target())):
        back = " Undo brings the list before it back." if had_one else ""
        count = plural(len(current().query_list or ()), "own count")
        say(HERE, "success", f"Read {name}: {count}.{back}")


def _downloads(domain: Domain) -> None:
    """The list as CSV files, and a template for one."""
    stated = current().query_list
    if stated is not None:
        conditions = kept(_with_conditions, stated)
        if conditions is not None:
            download("own-counts.csv", conditions, "Download the list with conditions")
        if stated.queries.atoms is None:
            download(
                "own-counts-coefficients.csv",
                lambda: csv_of_coefficients(stated),
                "Download the list with numbers for cells",
            )
    if domain.n_cells <= MAX_CELLS:
        download(
            "own-counts-template.csv",
            lambda: csv_template(domain),
            "Download a template with numbers",
        )


def _with_conditions(stated: StatedQueries) -> str | None:
    try:
        return csv_of_conditions(stated) if len(stated) <= MOST_LISTED else None
    except WorkloadError:  # of a query that has no condition
        return None
