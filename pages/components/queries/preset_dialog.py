"""The dialog that fits a preset to the codebook: which attribute is which, and which category."""

from collections.abc import Mapping

import streamlit as st

from pages.components.queries.list import HERE, replace_list
from pages.components.shared.session import attempt, change, current, escaped, kept, say
from rpexplore.common.text import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.scenarios.workload_changes import with_preset_tables
from rpexplore.workload.preset_roles import (
    IN_TOTALS,
    Role,
    RoleMatch,
    guessed_match,
    guessed_matches,
)
from rpexplore.workload.presets import GEOGRAPHY, PRESETS, Preset
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.query_edits import with_queries

ASKED = "preset asked"
QUERIES, TABLES = "Own counts, each with its target", "Tables, on the page Tables"
ANY_SIZE = float("inf")
MOST_VALUES = 150  # of an attribute, each with a box of its own


def preset_button() -> None:
    """The button that opens the dialog, and the dialog while it is open."""
    st.button("From a preset", icon=":material/add:", key="preset button", on_click=_open)
    if ASKED not in st.session_state:
        return

    @st.dialog("Start from a preset", width="large", on_dismiss=_close)
    def dialog() -> None:
        if ASKED not in st.session_state:  # a button below has closed it
            st.rerun()
        presets = {preset.title: preset for preset in PRESETS}
        preset = presets[st.selectbox("Preset", presets, key="query preset")]
        st.caption(escaped(preset.explanation))
        codebook = current().domain
        kind = QUERIES
        if preset.marginals:
            kind = st.radio("Add it as", [QUERIES, TABLES], key="preset kind", horizontal=True)
        matches = _matches(preset, codebook, kind)
        if kind == TABLES:
            is_possible = _tables_told(preset, codebook, matches)
        else:
            is_possible = _queries_told(preset, codebook, matches)
        with st.container(horizontal=True):
            st.button(
                "Add the tables" if kind == TABLES else "Start from these counts",
                type="primary",
                on_click=_add_tables if kind == TABLES else _start,
                args=(preset, matches),
                disabled=not is_possible,
            )
            if kind == QUERIES:
                if current().query_list is not None:
                    st.button(
                        "Add them to my list",
                        on_click=_start,
                        args=(preset, matches),
                        kwargs={"behind": True},
                        disabled=not is_possible,
                    )
                st.button(
                    "Use attributes of its own",
                    on_click=_start,
                    args=(preset, None),
                    help="For records that are coded as the preset is, with a codebook of its own.",
                )
            st.button("Cancel", key="cancel preset", on_click=_close)

    dialog()


def _open() -> None:
    st.session_state[ASKED] = True


def _close() -> None:
    st.session_state.pop(ASKED, None)


def _matches(preset: Preset, codebook: Domain, kind: str) -> dict[str, RoleMatch]:
    """The attribute of each role and what its values stand for, as guessed or as corrected."""
    guesses = kept(guessed_matches, preset.roles, codebook)
    of_any_size = kept(guessed_matches, preset.roles, codebook, ANY_SIZE, slot="of any size")
    if kind == TABLES:
        guesses = of_any_size
    st.markdown("**Guessed from names and sizes; correct what is wrong.**")
    matches: dict[str, RoleMatch] = {}
    for role in preset.roles:
        left, right = st.columns(2)
        guessed = guesses[role.key].attribute if role.key in guesses else ""
        names = codebook.names if role.is_required else ("", *codebook.names)
        with left:
            name = st.selectbox(
                role.title if role.is_required else f"{role.title} (may be left out)",
                names,
                index=names.index(guessed) if guessed in names else None,
                format_func=lambda name: name or "left out",
                placeholder="choose an attribute",
                key=f"attribute of {role.key} in {preset.title}, {kind}",
            )
        with right:
            if name:
                is_grouped = any(role.key == key for key, _ in preset.groupings.values())
                matches[role.key] = _match(role, codebook[name], kind, is_grouped=is_grouped)
            elif not guessed and role.key in of_any_size:
                too_large = escaped(of_any_size[role.key].attribute)
                st.caption(f"With {too_large}, a list has too many cells; tables may have more.")
    return matches


def _match(role: Role, attribute: Attribute, kind: str, *, is_grouped: bool) -> RoleMatch:
    """What each value of an attribute stands for, in a box each; tables have every value."""
    guess = kept(guessed_match, role, attribute, slot=role.key)
    values = plural(attribute.size, "value")
    if not role.categories or kind == TABLES:
        by = "groups" if is_grouped and kind == TABLES else "each"
        st.caption(f"Counted by {by} of its {values}.")
        return guess
    if attribute.size > MOST_VALUES:
        st.caption(f"It has {values}, too many to say here what each stands for.")
        return guess
    without = guess.options.count(IN_TOTALS)
    st.caption(f"What its {values} stand for")
    with st.expander(f"{without:,} not recognised" if without else "All recognised"):
        chosen = [
            st.selectbox(
                escaped(value),
                role.options,
                index=role.options.index(option),
                key=f"{value} of {attribute.name} in {role.key}",
            )
            for value, option in zip(attribute.labels(), guess.options, strict=True)
        ]
    return RoleMatch(attribute.name, tuple(chosen))


def _queries_told(preset: Preset, codebook: Domain, matches: Mapping[str, RoleMatch]) -> bool:
    """Whether there are such queries, which the dialog tells of; if not, it says why."""
    fitted = attempt(lambda: kept(preset.fitted, codebook, matches))
    if fitted is None:
        return False
    st.markdown(escaped(fitted.text))
    if current().query_list is not None:
        st.caption(
            "“Start from these counts” replaces your list; Undo brings it back. “Add them to my "
            "list” leaves out those that count the same cells as a count of yours."
        )
    return True


def _tables_told(preset: Preset, codebook: Domain, matches: Mapping[str, RoleMatch]) -> bool:
    """The same for tables."""
    tables = attempt(lambda: preset.fitted_marginals(codebook, matches))
    if tables is None:
        return False
    titles = ", ".join(" × ".join(table) for table in tables)
    area = matches.get(GEOGRAPHY.key)
    values, levels = "values", ""
    if preset.groupings:
        values = "values, or groups of a level"
    if area is not None and codebook[area.attribute].groups:
        levels = f", {escaped(area.attribute)} at every level"
    st.markdown(
        f"{plural(len(tables), 'table')}: {escaped(titles)}. They count single {values}{levels}, "
        "and are added to the tables that you have."
    )
    return bool(tables)


def _start(
    preset: Preset, matches: Mapping[str, RoleMatch] | None, *, behind: bool = False
) -> None:
    """Put the queries in place of the list, or behind it; without matches with own attributes."""
    before = current().query_list
    if ASKED not in st.session_state:  # a second click
        return

    def stated() -> StatedQueries:
        queries = preset.queries()
        if matches is not None:
            queries = preset.fitted(current().domain, matches).queries
        made = StatedQueries.of(queries)
        return with_queries(before, made) if behind else made

    if replace_list(stated):
        back = "" if before is None else " Undo brings your list back."
        text = f"Started from “{preset.title}”.{back}"
        if behind:
            added = plural(len(current().query_list or ()) - len(before or ()), "own count")
            text = f"Added {added} of “{preset.title}”."
        say(HERE, "success", text)
    _close()


def _add_tables(preset: Preset, matches: Mapping[str, RoleMatch]) -> None:
    if ASKED not in st.session_state:
        return
    before = len(current().workload)
    if change(HERE, lambda: with_preset_tables(current(), preset, matches)):
        added = plural(len(current().workload) - before, "table")
        say(HERE, "success", f"Added {added} of “{preset.title}”.")
    _close()
