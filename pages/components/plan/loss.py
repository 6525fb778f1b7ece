"""What a plan minimises: the objective on the Plan page, and the options that go with it."""

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components.shared.session import bound, change, change_fields, current, show_messages
from rpexplore.analysis.glossary import meaning
from rpexplore.common.formatting import capitalised
from rpexplore.common.typed_numbers import needed_number_of
from rpexplore.planning.loss_serialization import loss_choices
from rpexplore.planning.losses.base import WEIGHTINGS, Loss, WeightedSum

HERE = "objective"
FRONT = ("sum", "max", "required")  # the others are offered under "more"


def loss_input() -> None:
    """The objective, and below it its options."""
    loss, offered = current().loss, loss_choices()
    options: Any = loss  # a dataclass, as every loss is

    def choose(choice: str) -> None:
        chosen = offered[choice]
        if isinstance(chosen, WeightedSum) and isinstance(loss, WeightedSum):
            chosen = replace(chosen, weighting=loss.weighting)
        change_fields(HERE, loss=chosen)

    front = [choice for choice in offered if choice in (*FRONT, loss.choice)]
    st.radio(
        "Objective",
        front,
        format_func=lambda choice: capitalised(offered[choice].objective),
        help=meaning("Objective"),
        **bound("objective", loss.choice, choose),
    )
    is_one = len(current().workload) == 1
    described = "there is one table, and all of the budget is for it"
    st.caption(f"{capitalised(described if is_one else loss.description)}.")
    with st.popover("More objectives", type="tertiary"):
        for choice, other in offered.items():
            if choice not in front:
                st.button(
                    capitalised(other.objective),
                    key=f"objective {choice}",
                    on_click=choose,
                    args=(choice,),
                    type="tertiary",
                    help=f"{capitalised(other.description)}.",
                )
    if isinstance(loss, WeightedSum) and not is_one:
        st.selectbox(
            "How tables count in the sum",
            list(WEIGHTINGS),
            format_func=WEIGHTINGS.__getitem__,
            help=meaning(capitalised(WEIGHTINGS[loss.weighting])),
            **bound(
                "weighting",
                loss.weighting,
                lambda weighting: change_fields(HERE, loss=replace(loss, weighting=weighting)),
            ),
        )
    if (number := loss.number) is not None:

        def changed(typed: str) -> Loss:
            value = needed_number_of(
                typed, number.typed_label, least=number.least, most=number.most
            )
            return replace(options, **{number.field: value / number.scale})

        st.text_input(
            number.typed_label,
            help=number.help or None,
            **bound(
                f"{loss.kind} {number.field}",
                f"{float(getattr(loss, number.field)) * number.scale:.4g}",
                lambda typed: change(HERE, lambda: current().replaced(loss=changed(typed))),
            ),
        )
    show_messages(HERE)


def reference_distribution_input() -> None:
    """A switch, on by default, where some attribute's aggregation is not single values."""
    if current().workload.is_marginals:
        return
    st.toggle(
        "Optimise the reference distribution (recommended)",
        help=meaning("Reference distribution"),
        **bound(
            "optimise reference",
            not current().uniform_reference,
            lambda wanted: change_fields(HERE, uniform_reference=not wanted),
        ),
    )
