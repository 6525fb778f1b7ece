"""Aggregation of each attribute, on the Tables page: in all tables, and another one in some."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.charts import folded
from pages.components.shared.files import download, upload
from pages.components.shared.inputs import removable, revision
from pages.components.shared.session import bound, change, current, escaped, say, show_messages
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, plural
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import RpexploreError
from rpexplore.scenarios import bases
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.workload.bases import BASES, Basis, CustomBasis, Identity
from rpexplore.workload.table_text import Table, list_titles, title, titles

# Only attributes with another aggregation than single values are listed, not a hundred others.


_CHOSEN = "attributes with a basis chosen"  # listed, even if it is single values again
MOST_OFFERED = 2000


def basis_choices() -> None:
    """The aggregation of each attribute, and widgets to change it."""
    listed = _listed()
    with st.container(key="inputs"), st.container(gap="small"):
        st.selectbox(
            "Change the aggregation of",
            [
                name
                for index, name in enumerate(current().domain.names)
                if name not in listed and index not in current().domain.amounts
            ],
            index=None,
            placeholder="Choose an attribute",
            help=meaning("Aggregation"),
            **bound("attribute to change", None, _list),
        )
        show_messages("bases")
    with st.container(gap="small"):
        for name in listed:
            _attribute(current().domain[name])
        if not listed:
            kinds = [capitalised(one.title) for one in BASES.values() if not one.of_amounts]
            st.markdown("All tables count single values now. The kinds of aggregation:")
            st.markdown("\n".join(f"- **{kind}**: {meaning(kind)}" for kind in kinds))


def _listed() -> list[str]:
    names = {choice.attribute for choice in current().request.basis_choices}
    names.update(st.session_state.get(_CHOSEN, ()))
    return [name for name in current().domain.names if name in names]


def _list(name: str | None) -> None:
    """Keep an attribute listed, also when it has single values again."""
    if name is not None:
        st.session_state.setdefault(_CHOSEN, set()).add(name)


def _attribute(attribute: Attribute) -> None:
    """One attribute: its aggregation, what that counts, and other ones in some tables."""
    name = attribute.name
    choices = current().request.basis_choices
    in_all_tables = {choice.attribute: choice.basis for choice in choices if not choice.tables}
    present = in_all_tables.get(name, Identity())
    slot, key = f"bases {name}", f"of all {name}"

    def choose(basis: Basis) -> None:
        _list(name)
        change(slot, lambda: current().with_basis(name, basis))

    with st.container(border=True, gap="small"):
        title, kind, more, last = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
        size = plural(attribute.size, "value")
        if attribute.groups:
            size += f", in {plural(len({*attribute.groups} - {()}), 'group')}"
        title.markdown(f"**{escaped(name)}**  \n{size}")
        last.button("Remove", key=f"remove {key}", on_click=_drop, args=(name,), type="tertiary")
        basis_input(kind, more, st.container(), attribute, present, choose, slot=slot, key=key)
        show_messages(slot)
        _describe(attribute, present)
        some_tables(attribute, present)


def _describe(attribute: Attribute, basis: Basis) -> None:
    """The queries, and what a table counts."""
    workload = current().workload
    sentences = [bases.describe_queries(basis, attribute)]
    table = bases.example_table(workload, attribute.name, basis)
    if table is not None:
        counted = bases.describe_table(workload, table, current().record_noun)
        sentences.append(f"A table counts {counted}.")
    sentences.append(bases.describe_order(basis, attribute))
    sentences.append(bases.unavailable_bases(attribute))
    st.caption(escaped(" ".join(filter(None, sentences))))


def _drop(name: str) -> None:
    """Count single values of an attribute in all tables."""
    st.session_state.get(_CHOSEN, set()).discard(name)
    forget_file(f"of all {name}")
    choices = current().request.basis_choices
    _set_choices(tuple(choice for choice in choices if choice.attribute != name))


def some_tables(attribute: Attribute, general: Basis) -> None:
    """The aggregations in single tables, and widgets for another one, drawn when they are unfolded.

    general: the aggregation in all other tables
    """
    name = attribute.name
    choices = current().request.basis_choices
    for position, choice in enumerate(choices):
        if choice.attribute == name and choice.tables:
            text = (
                f"In {escaped(list_titles(choice.tables))}: "
                f"**{escaped(choice.basis.describe(attribute))}**. "
                f"{escaped(bases.describe_queries(choice.basis, attribute))}"
            )
            others = (*choices[:position], *choices[position + 1 :])
            removable(text, f"remove basis {position} of {name}", partial(_set_choices, others))
    draw = partial(_other_basis, attribute, general)
    folded("Another aggregation in some tables", f"some {name}", draw, type="compact")


def _other_basis(attribute: Attribute, general: Basis) -> None:
    name, workload = attribute.name, current().workload
    slot, key = f"bases {name} in some", f"of some {name}"
    rows = workload.containing([name])
    offered = rows[:MOST_OFFERED]
    tables = [workload.tables[row] for row in offered.tolist()]
    if not tables:
        st.caption(f"No table has {escaped(name)} now.")
        return
    known_titles: dict[Table, str] = dict(zip(tables, titles(workload, offered), strict=True))
    picked = st.multiselect(
        f"Only in these tables with {escaped(name)}",
        tables,
        format_func=lambda table: known_titles.get(table, title(table)),
        key=f"tables {key}",
        persist_state="session",
        placeholder="Choose tables",
        help="Other tables have the aggregation above.",
    )
    if len(rows) > len(offered):
        st.caption(
            f"The first {len(offered):,} of {len(rows):,} tables; narrow the tables above to "
            "choose among others."
        )
    present: Basis = st.session_state.get(f"basis {key}", Identity())

    def choose(basis: Basis) -> None:
        basis.check(attribute)
        st.session_state[f"basis {key}"] = basis

    def apply() -> None:
        if change(slot, lambda: current().with_basis(name, present, tuple(picked))):
            st.session_state[f"tables {key}"] = []
            st.session_state.pop(f"basis {key}", None)
            forget_file(key)

    kind, more, last = st.columns([4, 4, 3], vertical_alignment="bottom")
    below = st.container()
    basis_input(
        kind, more, below, attribute, present, choose, slot=slot, key=key, label_end=" there"
    )
    is_unchanged = not picked or present == general
    last.button(
        "Apply to these tables",
        key=f"apply {key}",
        on_click=apply,
        disabled=is_unchanged,
        help="Choose tables above, and another aggregation than theirs." if is_unchanged else None,
    )
    show_messages(slot)


def _set_choices(choices: tuple[BasisChoice, ...]) -> None:
    change("bases", lambda: current().with_request(basis_choices=choices))


# ---- Widgets to choose the basis of an attribute, with the numbers or the file that it needs.


Take = Callable[[Callable[[], Basis], str], Basis | None]
UNCHANGED = "Nothing was changed."


def basis_input(
    where: Any,
    beside: Any,
    below: Any,
    attribute: Attribute,
    present: Basis,
    choose: Callable[[Basis], Any],
    *,
    slot: str,
    key: str,
    label_end: str = "",
) -> None:
    """A basis of the attribute in the container `where`, with its numbers or its file.

    `choose` is given the basis that was chosen, and may refuse it with a message in `slot`.
    """
    kinds = bases.available_kinds(attribute)
    awaits_file = st.session_state.get(f"awaits file {key}", False)
    kind = CustomBasis.kind if awaits_file else present.kind

    def take(make: Callable[[], Basis], otherwise: str) -> Basis | None:
        try:
            basis = make()
            choose(basis)
        except RpexploreError as error:
            say(slot, "error", f"{error} {otherwise}")
            return None
        return basis

    def set_kind(kind: str) -> None:
        forget_file(key)
        basis = BASES[kind].default(attribute)
        if basis is None:
            st.session_state[f"awaits file {key}"] = True
        elif basis.kind != present.kind:
            take(lambda: basis, UNCHANGED)

    where.selectbox(
        f"Aggregation of {escaped(attribute.name)}{label_end}",
        kinds if kind in kinds else [*kinds, kind],
        format_func=lambda kind: BASES[kind].title,
        help=meaning(capitalised(BASES[kind].title)),
        **bound(f"kind {key}", kind, set_kind),
    )
    if BASES[kind].parameter == "file":
        with below:
            _file(attribute, present, take, slot, key)
    elif present.parameter != "none":
        with beside:
            _parameter(attribute, present, take, key)


def forget_file(key: str) -> None:
    """Wait no longer for the file of a custom basis."""
    st.session_state.pop(f"awaits file {key}", None)


def _parameter(attribute: Attribute, present: Basis, take: Take, key: str) -> None:
    """A box for the number of the basis, or for its numbers as text."""
    name, text = f"{present.parameter} {key}", present.parameter_text()
    title, hint = present.parameter_title, present.parameter_help(attribute) or None

    def change(parameter: float | str) -> None:
        take(lambda: present.from_parameter(str(parameter)), UNCHANGED)

    if present.parameter == "number":
        number = int(text)
        most = max(attribute.size, number)
        st.number_input(title, 1, most, step=1, help=hint, **bound(name, number, change))
    else:
        st.text_input(title, help=hint, **bound(name, text.replace(",", ", "), change))


def _file(attribute: Attribute, present: Basis, take: Take, slot: str, key: str) -> None:
    """A box for the matrix of a custom basis, and a template for one."""
    so_far = present.describe(attribute)
    unchanged = f"Until a file is taken, {attribute.name} stays as it was: {so_far}."

    def read(content: bytes, file: str) -> None:
        basis = take(lambda: CustomBasis.read(content, file, attribute), unchanged)
        if isinstance(basis, CustomBasis):
            forget_file(key)
            revision(f"file {key}", step=True)
            say(slot, "success", f"Took the {len(basis.rows):,} queries of {file}.")

    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        upload(
            "Matrix as .csv or .npy: a line for each query, with a number for each value",
            ["csv", "npy"],
            revision(f"file {key}"),
            read,
        )
    with right:
        download(
            "own-matrix.csv",
            lambda: bases.template_csv(attribute),
            "Download a template",
            key=f"template {key}",
            help="A file that can be used as it is: the total, and each value. Change it and add "
            "lines of your own.",
        )
    if not isinstance(present, CustomBasis):
        st.caption(escaped(unchanged))
