"""What a plan minimises, its privacy unit and its budget, on the Plan page."""

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components.shared.charts import numbers
from pages.components.shared.session import (
    bound,
    change,
    change_fields,
    current,
    escaped,
    show_messages,
)
from rpexplore.analysis import budget_units
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, describe_share, needed_number_of
from rpexplore.figures.chart import Column
from rpexplore.planning.losses.losses import WEIGHTINGS, Loss, WeightedSum
from rpexplore.planning.pilot import DEFAULT_SHARE
from rpexplore.planning.serialization import loss_choices
from rpexplore.privacy.deployments import (
    deployments_beside,
    deployments_near,
    describe_comparability,
)
from rpexplore.reports.evidence import COLUMNS

# ---- What a plan minimises: the objective on the Plan page, and the options that go with it.


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


def pilot_input() -> None:
    """A switch, off by default, where tables can have a pilot, or are to have one."""
    scenario = current()
    if "tables" not in scenario.kinds or not (scenario.pilot or scenario.workload.is_marginals):
        return
    share = DEFAULT_SHARE if scenario.pilot is None else scenario.pilot
    st.toggle(
        f"Measure one-way tables first, with {describe_share(float(share))} of the budget (pilot)",
        help="A release draws the one-way tables first. On the command line it can stop there "
        "(--pilot-only): a forecast from their figures then says how good all other tables will "
        "be. All tables stay as accurate as without a pilot: its measurements count in them.",
        **bound(
            "pilot",
            scenario.pilot is not None,
            lambda wanted: change_fields(HERE, pilot=DEFAULT_SHARE if wanted else None),
        ),
    )


# ---- The privacy part of the Plan page: the privacy unit and the privacy budget.


BUDGET_HERE = "plan"
RECORD, PERSON = "A record", "A person"
UNITS = {"rho": "ρ (zCDP)", "epsilon": "(ε, δ)", "mu": "μ"}
LETTERS = {"rho": "ρ", "epsilon": "ε", "mu": "μ"}


def unit_inputs() -> None:
    """The privacy unit: a record, or a person with a limit of records."""
    records = current().budget.max_records_per_person

    def set_limit(limit: int | None) -> None:
        change(
            BUDGET_HERE,
            lambda: current().replaced(
                budget=budget_units.with_privacy_unit(current().budget, limit)
            ),
        )

    def set_unit(unit: str) -> None:
        limit = int(st.session_state.get("records per person") or 1)
        set_limit(limit if unit == PERSON else None)

    st.radio(
        "Privacy unit",
        [RECORD, PERSON],
        horizontal=True,
        help=meaning("Privacy unit"),
        **bound("protected", RECORD if records is None else PERSON, set_unit),
    )
    if records is not None:
        st.number_input(
            "At most how many records can one person have?",
            min_value=1,
            **bound("records per person", records, set_limit),
        )


def budget_inputs() -> None:
    """The budget: a typed value beside a slider, in a unit of the user's choice."""
    budget = current().budget
    if st.session_state.get("unit") is None:  # a new visit, or the chosen one clicked again
        st.session_state["unit"] = budget_units.stated_unit(budget)
    unit = st.segmented_control(
        "Privacy budget, stated as",
        list(UNITS),
        format_func=UNITS.__getitem__,
        key="unit",
        required=True,
        help=meaning("Privacy budget"),
    )
    unit = unit or budget_units.stated_unit(budget)
    delta = budget_units.stated_delta(budget)
    value = budget_units.text_in_unit(budget, unit, delta)

    def restate(value: str, delta: str = delta) -> None:
        change(
            BUDGET_HERE,
            lambda: current().replaced(
                budget=budget_units.with_value(current().budget, unit, str(value), delta)
            ),
        )

    letter = LETTERS[unit]
    boxes = st.columns(2 if unit == "epsilon" else 1)
    boxes[0].text_input(letter, help=meaning(letter), **bound("typed budget", value, restate))
    if unit == "epsilon":
        boxes[1].text_input(
            "δ",
            help=meaning("δ"),
            **bound("delta", delta, lambda delta: restate(value, delta)),
        )
    st.select_slider(
        f"{letter}: ← more private · more accurate →",
        budget_units.slider_stops(unit, value),
        **bound("slid budget", value, restate),
    )
    show_messages(BUDGET_HERE)


def budget_meaning() -> None:
    """What the budget promises, what it is in other units, and which ones were published."""
    budget = current().budget
    for note in budget_units.budget_warnings(budget, current().expected):
        st.info(note)
    st.caption(budget_units.describe_guess(budget))
    # Only when it is open: it takes as long as a chart, at each step of the slider.
    context = st.expander("Budget in context", key="budget context", on_change="rerun")
    if not context.open:
        return
    with context:
        st.markdown("**In other units**")
        st.dataframe(
            budget_units.equivalents(budget),
            hide_index=True,
            alt="The budget in other units",
            column_order=["measure", "value"],
            column_config={"measure": "Measure", "value": "Value"},
        )
        st.caption(
            "Each ε follows from ρ alone, rounded up; the noise of a plan mostly proves a smaller "
            "one, which the plan states. A budget given as ε has the ρ that its noise allows. μ is "
            "that of continuous noise; the noise drawn here is discrete."
        )
        st.markdown("**Beside published releases**")
        nearest = deployments_beside(budget)
        st.markdown(
            "\n".join(
                f"- **{escaped(name)}**  \n:small[{escaped(facts)}]" for name, facts in nearest
            )
        )
        if st.button("All published releases", type="tertiary", icon=":material/open_in_full:"):
            _all_releases()
        for sentence in describe_comparability(budget):
            st.caption(escaped(sentence))


@st.dialog("Published releases and their budgets", width="large")
def _all_releases() -> None:
    """All published releases with their sources."""
    frame = deployments_near(current().budget, most=None).astype({"year": str})
    columns = COLUMNS | {"source": Column("source", "text")}
    numbers(frame, columns, "published_releases.csv", "Published releases and their budgets")
