"""Own counts on the Tables page: lines of text, and what is added to them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.files import download, upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import attempt, bound, change, current, escaped, kept, say
from rpexplore.common.text import plural
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.bases import Prefix, Ranges
from rpexplore.workload.counts_by import By, text_by
from rpexplore.workload.own_sums import joined_definition
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.workload.query_edits import (
    chosen_domain,
    differences_from_codebook,
    example_text,
    with_queries,
)
from rpexplore.workload.query_files import (
    crossed_queries,
    csv_of_coefficients,
    csv_of_conditions,
    csv_template,
    marginal_queries,
    stated_from_csv,
)
from rpexplore.workload.query_list import MAX_CELLS, QueryList
from rpexplore.workload.query_typing import MOST_LISTED, TypedLines, built_count
from rpexplore.workload.targets import NOTATIONS, Target

# ---- The list as lines of text.


HERE = "queries"
USUAL_TARGET = "±20"
# As plain text: code in a caption would be too faint to read.
NOTATION = (
    "Conditions compare attributes with values, as in age >= 18, 18 <= age < 65 or "
    'region in ("north", "south"), joined by &, |, ! and brackets; total counts everybody. '
    "A condition by sex, region@groups stands for a count of each combination. "
    f"Targets: {NOTATIONS}, behind ± or @. Name and target may be left out."
)


def typed_lines() -> TypedLines:
    """What was typed in this session and is not in effect yet."""
    lines: TypedLines = st.session_state.setdefault("typed queries", TypedLines())
    lines.forget_others(revision(HERE))
    return lines


def replace_list(make: Callable[[], StatedQueries | None]) -> bool:
    """Put another list in place of the current one, and forget lines that could not be read."""
    is_replaced = change(HERE, lambda: current().replaced(query_list=make()))
    if is_replaced:
        typed_lines().typed = None
    return is_replaced


def default_target() -> Target | None:
    """The target of queries that have none of their own; None where the typed one is none."""
    try:
        target = Target.parse(st.session_state.get("query target", USUAL_TARGET))
    except RpexploreError:
        return None
    return None if target.required else target


def take_typed() -> None:
    """Take over the typed lines; refused ones are kept to be mended, and say so on every visit."""
    lines, before, codebook = typed_lines(), current().query_list, current().domain
    if lines.typed is None:
        return
    accepted = change(
        HERE,
        lambda: current().replaced(query_list=lines.read(codebook, before, default_target())),
        otherwise="There is no list until this is mended."
        if before is None
        else "Until this is mended, the list before it stays in effect.",
    )
    if accepted:
        lines.typed = None


def query_list() -> None:
    """The queries as lines of text."""
    stated, lines = current().query_list, typed_lines()
    text = kept(lines.shown, stated, by=(stated, lines.typed))
    if text is None:
        st.info(
            f"This list of {plural(len(stated or ()), 'own count')} cannot be edited here: it is "
            "long, or has counts that no line can hold. Download the CSV file below, change it, "
            "and load it again."
        )
    else:
        st.text_area(
            "One count a line, as name: condition ± margin",
            height=160,
            placeholder=_example(),
            **bound("query lines", text, lambda typed: lines.type(typed, revision(HERE))),
        )
        with st.expander("How counts are written", type="compact"):
            st.caption(escaped(NOTATION))


def target_input() -> None:
    """The target of counts that have none of their own."""
    st.text_input(
        "Target, unless a line has its own",
        USUAL_TARGET,
        key="query target",
        persist_state="session",
        help=f"Counts for what you type or add from now on: {NOTATIONS}.",
    )
    if default_target() is None:
        st.error(escaped(f"The target of counts without one must be like {NOTATIONS}."))


def _example() -> str:
    """Lines that could be typed, about the first attribute that can be."""
    first = choosable(current().domain)[:1]
    return example_text(chosen_domain(current().domain, first)) if first else ""


# ---- What the list is about: attributes of the codebook, or those of a preset.


def choosable(codebook: Domain) -> list[str]:
    """The attributes that counts can be about: all but amounts."""
    return [name for index, name in enumerate(codebook.names) if index not in codebook.amounts]


def own_attributes() -> None:
    """What a list is about whose attributes are not, or no longer, those of the codebook."""
    codebook, stated = current().domain, current().query_list
    if stated is None:
        return
    domain = stated.queries.domain
    differences = " ".join(differences_from_codebook(domain, codebook))
    if not differences:
        return
    st.markdown(f"This list is about **attributes of its own**: {_describe_sizes(domain)}.")
    st.info(
        escaped(
            f"{differences} The list is planned with the attributes it has; the records it is run "
            "on need the same."
        )
    )

    def with_codebook_values() -> StatedQueries:
        return stated_from_text(chosen_domain(codebook, domain.names), text_from_stated(stated))

    def read_again() -> None:
        change(HERE, lambda: current().replaced(query_list=with_codebook_values()))

    if all(name in codebook for name in domain.names):
        st.button("Read it with the codebook's values", on_click=read_again)


def _describe_sizes(domain: Domain) -> str:
    sizes = (f"{attribute.name} ({attribute.size:,})" for attribute in domain)
    return escaped(" × ".join(sizes))


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
        "And a condition or a sum as text, if you like",
        key=_TYPED,
        placeholder="18 <= age < 65 & !(region == 'North')",
        help="Conditions compare attributes with values, joined by &, |, ! and brackets. Amounts "
        "are added up by sum(income) or sum(income) where age >= 18; records(income) counts the "
        "records that have one.",
    ).strip()
    by = how.multiselect("By", names, key=_BY, placeholder="one count for all")
    parts = [*filter(None, conditions)]
    if not (parts or typed or by or st.session_state[_NAME]):
        return
    stated = attempt(
        lambda: kept(
            built_count,
            domain,
            st.session_state[_NAME],
            text_by(joined_definition(parts, typed), by),
            default_target(),
        )
    )
    if stated is not None:
        several = plural(len(stated), "count")
        split = f", by {', '.join(by)}" if by else ""
        st.caption(escaped(f"{several}: {' & '.join(parts) or 'everybody'}{split}"))
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
