"""What becomes of values in the records that the codebook does not know."""

from collections.abc import Mapping

import streamlit as st

from pages.components.shared.session import escaped
from rpexplore.domain.domain import Domain
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.scenarios.schema_grid import values_of


def other_categories(planned: ReleasePlan) -> dict[str, str] | None:
    """For attributes of the user's choice: the category that takes values not in the codebook.

    None while an attribute is chosen without its category.
    """
    domain = planned.domain
    _forget_others_of_another(domain)
    with st.expander("Out-of-codebook values", expanded=bool(st.session_state.get("others"))):
        st.markdown(
            "Records with a value that is not in the codebook, or with none, are refused before "
            "any privacy is spent. Or choose attributes, and a category each, that takes such "
            "values."
        )
        chosen = st.multiselect(
            "Put other values into a category of",
            domain.names,
            key="others",
            persist_state="session",
        )
        others = {}
        for name in chosen:
            names = category_names(domain, name)
            others[name] = st.selectbox(
                f"Other values of {escaped(name)} become",
                list(names),
                index=None,
                format_func=names.__getitem__,
                placeholder="Choose a category",
                key=f"other value of {name}",
                persist_state="session",
            )
    return None if None in others.values() else others


def others_line(planned: ReleasePlan, others: Mapping[str, str]) -> None:
    """What becomes of other values, in one line beside the button."""
    domain = planned.domain
    parts = [f"{name} → {category_names(domain, name)[value]}" for name, value in others.items()]
    if parts:
        st.caption(escaped(f"Out-of-codebook values: {', '.join(parts)}"))


def category_names(domain: Domain, name: str) -> dict[str, str]:
    """{value: "R12 (Outer Isles)"} for an attribute's values; the label where it says more."""
    frame = values_of(domain[name])
    pairs = zip(frame["value"].tolist(), frame["label"].tolist(), strict=True)
    return {value: value if label == value else f"{value} ({label})" for value, label in pairs}


def _forget_others_of_another(domain: Domain) -> None:
    """Choices were made among the categories of one codebook; under another they mean nothing."""
    before: Domain | None = st.session_state.get("others of")
    if before is not None and before != domain:
        st.session_state["others"] = []
        for name in before.names:
            st.session_state.pop(f"other value of {name}", None)
    st.session_state["others of"] = domain
