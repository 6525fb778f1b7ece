"""What a plan minimises, its privacy unit, its budget and the parts that share it."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.shared.charts import folded, metrics, numbers
from pages.components.shared.protected import protected_inputs
from pages.components.shared.session import (
    bound,
    change,
    change_fields,
    current,
    escaped,
    forget_typed,
    show_messages,
)
from pages.components.shared.solutions import whole_plan
from rpexplore.analysis import budget_units
from rpexplore.analysis.glossary import meaning
from rpexplore.common.numbers import exact_fraction
from rpexplore.common.text import (
    capitalised,
    joined,
    needed_number_of,
    rounded,
    with_article,
)
from rpexplore.errors import PlanError
from rpexplore.figures.chart import Column
from rpexplore.planning.losses.losses import WEIGHTINGS, Loss, WeightedSum
from rpexplore.planning.part_plan import TITLES
from rpexplore.planning.part_shares import stated_shares
from rpexplore.planning.pilot import DEFAULT_SHARE, SHARE_BEFORE_REST, share_of_budget
from rpexplore.planning.plan import Plan
from rpexplore.planning.serialization import loss_choices
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.deployments import (
    deployments_beside,
    deployments_near,
    describe_comparability,
)
from rpexplore.reports.evidence import COLUMNS
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.rules import MEDIAN

# ---- What a plan minimises: the objective on the Plan page, and the options that go with it.


HERE = "objective"


def loss_input() -> None:
    """The objective, and beside it the options that go with it."""
    loss, offered = current().loss, loss_choices()

    def choose(choice: str) -> None:
        chosen = offered[choice]
        if isinstance(chosen, WeightedSum) and isinstance(loss, WeightedSum):
            chosen = replace(chosen, weighting=loss.weighting)
        change_fields(HERE, loss=chosen)

    is_one = len(current().workload) == 1
    described = "there is one table, and all of the budget is for it"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.selectbox(
            "Objective",
            list(offered),
            format_func=lambda choice: capitalised(offered[choice].objective),
            help=f"{capitalised(described if is_one else loss.description)}. "
            f"{meaning('Objective')}",
            **bound("objective", loss.choice, choose),
        )
        with st.popover("Options", key="options of the objective"):
            _loss_options(loss, is_one)
            reference_distribution_input()
            pilot_input()
    show_messages(HERE)


def weighting_input(loss: WeightedSum, key: str, take: Callable[[Loss], object]) -> None:
    """How tables count in a sum; take: called with the loss in which they count otherwise."""
    st.selectbox(
        "How tables count in the sum",
        list(WEIGHTINGS),
        format_func=WEIGHTINGS.__getitem__,
        help=meaning(capitalised(WEIGHTINGS[loss.weighting])),
        **bound(key, loss.weighting, lambda changed: take(replace(loss, weighting=changed))),
    )


def _loss_options(loss: Loss, is_one: bool) -> None:
    """How tables count in a sum, and the number that a loss has."""
    if isinstance(loss, WeightedSum) and not is_one:
        weighting_input(loss, "weighting", lambda changed: change_fields(HERE, loss=changed))
    if (number := loss.number) is not None:
        options: Any = loss  # a dataclass, as every loss is

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
    """A switch, off by default, where tables can have a pilot, or are to have one.

    Beside it, its share of the budget, and whether the rest is planned from its figures.
    """
    scenario = current()
    if "tables" not in scenario.kinds or not (scenario.pilot or scenario.workload.has_values_alone):
        return
    st.toggle(
        "Measure one-way tables first (pilot)",
        help="A release draws the one-way tables first. It can stop there (“Stop after the pilot” "
        "on the Release page, or --pilot-only): a forecast from their figures then says how good "
        "all other tables will be. All tables stay as accurate as without a pilot: its "
        "measurements count in them.",
        **bound(
            "pilot",
            scenario.pilot is not None,
            lambda wanted: change_fields(HERE, pilot=DEFAULT_SHARE if wanted else None, then=""),
        ),
    )
    if scenario.pilot is None:
        return
    st.toggle(
        "Then plan the rest from its figures",
        help="The plan states tables, budget and objective, and measures the pilot. Its rest is "
        "planned when the pilot is measured, within the same booking: as many "
        f"{escaped(scenario.counted)} as can be in good cells, by a forecast from the pilot's "
        "figures. On the Release page you see that plan before you accept it. An (ε, δ) then "
        "follows from ρ alone, which is 10 to 17 % more variance; a stated ρ costs nothing.",
        **bound(
            "rest",
            bool(scenario.then),
            lambda wanted: change_fields(
                HERE,
                pilot=SHARE_BEFORE_REST if wanted else scenario.pilot,
                then=MEDIAN if wanted else "",
            ),
        ),
    )
    st.text_input(
        "Largest share of the pilot (%)",
        help="2 % is enough to plan the rest from; a larger pilot may cost accuracy that the rest "
        "would have used better."
        if scenario.then
        else "5 % is usual. The pilot has no more than the plan spends on one-way tables anyway.",
        **bound(
            "pilot share",
            f"{float(100 * scenario.pilot):.10g}",
            lambda typed: change(
                HERE, lambda: current().replaced(pilot=share_of_budget(f"{typed.strip()}%"))
            ),
        ),
    )


# ---- The privacy part of the Plan page: the privacy unit and the privacy budget.


BUDGET_HERE = "plan"
UNITS = {"rho": "ρ (zCDP)", "epsilon": "(ε, δ)", "mu": "μ"}
LETTERS = {"rho": "ρ", "epsilon": "ε", "mu": "μ"}


def unit_inputs() -> None:
    """The privacy unit, and the unit in which the budget is stated."""
    budget = current().budget
    protected_inputs(BUDGET_HERE)
    st.session_state["unit"] = _stated_as()
    st.segmented_control(
        "Privacy budget, stated as",
        list(UNITS),
        format_func=UNITS.__getitem__,
        key="unit",
        required=True,
        help=meaning("Privacy budget"),
    )
    if _stated_as() == "epsilon":
        delta = budget_units.stated_delta(budget)
        value = budget_units.text_in_unit(budget, "epsilon", delta)
        st.text_input(
            "δ",
            help=meaning("δ"),
            **bound("delta", delta, lambda typed: _restate(value, "epsilon", typed)),
        )


def _stated_as() -> str:
    """The unit in which the budget is shown and typed: the chosen one, or that it was given in."""
    return st.session_state.get("unit") or budget_units.stated_unit(current().budget)


def _restate(value: str, unit: str, delta: str) -> None:
    change(
        BUDGET_HERE,
        lambda: current().replaced(
            budget=budget_units.with_value(current().budget, unit, str(value), delta)
        ),
    )


def budget_inputs() -> Any:
    """The budget, typed or by a slider, in the unit of `unit_inputs`, which a button shows.

    Returns where it stands what the budget means, for `describe_guess` of the plan.
    """
    budget, unit = current().budget, _stated_as()
    delta = budget_units.stated_delta(budget)
    value = budget_units.text_in_unit(budget, unit, delta)

    def take(typed: str) -> None:
        _restate(typed, unit, delta)

    letter = LETTERS[unit]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            f"Privacy budget {letter}",
            width=130,
            help=meaning(letter),
            **bound("typed budget", value, take),
        )
        st.select_slider(
            "← more private · more accurate →",
            budget_units.slider_stops(unit, value),
            **bound("slid budget", value, take),
        )
        whom = escaped(with_article(budget.noun))
        label = f"δ = {delta}, {whom}" if unit == "epsilon" else f"Protects {whom}"
        with st.popover(label, key="budget details"):
            unit_inputs()
            folded("Budget in context", "budget context", lambda: _budget_context(budget))
    meaning_of_budget = st.empty()
    meaning_of_budget.caption(budget_units.describe_guess(budget))
    show_messages(BUDGET_HERE)
    for note in budget_units.budget_warnings(budget, current().expected):
        st.info(note)
    return meaning_of_budget


def _budget_context(budget: Budget) -> None:
    """In other units, and beside published releases."""
    st.markdown("**In other units**")
    st.dataframe(
        budget_units.equivalents(budget),
        hide_index=True,
        alt="The budget in other units",
        column_order=["measure", "value"],
        column_config={"measure": "Measure", "value": "Value"},
    )
    st.caption(
        "Each ε follows from ρ alone, rounded up; the noise of a plan mostly proves a smaller one, "
        "which the plan states. A budget given as ε has the ρ that its noise allows. μ is that of "
        "continuous noise; the noise drawn here is discrete."
    )
    st.markdown("**Beside published releases**")
    nearest = deployments_beside(budget)
    st.markdown(
        "\n".join(f"- **{escaped(name)}**  \n:small[{escaped(facts)}]" for name, facts in nearest)
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


# ---- The parts of the plan: what each publishes, and its share of the budget.


PARTS_HERE = "sections"
PAGES_OF_PARTS = {"areas": "pages/areas.py", "counts": "pages/queries.py"}


def sections(scenario: Scenario) -> bool:
    """The whole plan and its split, where there are parts beside tables.

    False if there is no plan of them, which is said then.
    """
    if scenario.kinds == ("tables",):
        return True
    with st.container(border=True):
        st.subheader("Parts of the plan")
        planned = whole_plan(scenario)
        if planned is not None:
            _split(planned, scenario)
        tables_input(scenario)
        if len(scenario.kinds) > 1:
            _shares_input(scenario)
        show_messages(PARTS_HERE)
        if planned is not None and planned.part("tables") is not None:
            st.caption("All other figures are about the tables, at their share of the budget.")
        with st.container(horizontal=True):
            for kind in scenario.kinds:
                if kind in PAGES_OF_PARTS:
                    st.page_link(PAGES_OF_PARTS[kind], label=f"Look at {TITLES[kind].lower()}")
    return planned is not None


def tables_input(scenario: Scenario) -> None:
    """Whether tables are in the plan, where there is something beside them."""
    beside = [kind for kind in scenario.kinds if kind != "tables"]
    if not beside and scenario.asks_for_tables:
        return
    st.checkbox(
        "Tables are part of the plan",
        help="Without them the whole budget is for the other parts. The choice of tables is kept.",
        **bound(
            "asks for tables",
            scenario.asks_for_tables,
            lambda wanted: change_fields(PARTS_HERE, asks_for_tables=wanted),
        ),
    )


def _split(planned: Plan, scenario: Scenario) -> None:
    """Total, shares and certificate."""
    metrics(("Privacy of the whole plan", *budget_units.privacy_as_stated(planned)))
    frame = pd.DataFrame(
        {
            "Part": TITLES[part.kind],
            "Share": f"{rounded(100 * planned.shares[part.kind], 3)} %",
            "Publishes": part.full_contents,
        }
        for part in planned.parts
    )
    st.dataframe(frame, hide_index=True, alt="The parts of the plan and their shares")
    if scenario.stated_shares is None and len(planned.parts) > 1:
        st.caption("The shares of the budget are those that serve the objective best.")
    if planned.proven:
        st.markdown(f":material/verified: {escaped(planned.proven)}")


def _shares_input(scenario: Scenario) -> None:
    """The best split of the budget, or shares typed for each part."""
    with st.expander("State the shares", expanded=not scenario.splits_itself):
        stated = scenario.stated_shares or {}
        with st.form("shares", border=False):
            for column, kind in zip(st.columns(len(scenario.kinds)), scenario.kinds, strict=True):
                share = stated.get(kind)
                column.text_input(
                    f"{TITLES[kind]} (%)",
                    value="" if share is None else f"{float(100 * share):.10g}",
                    key=f"share of {kind}",
                )
            with st.container(horizontal=True):
                st.form_submit_button("Use these shares", on_click=_take, args=(scenario.kinds,))
                st.form_submit_button("Use the best shares", on_click=_take, args=((),))


def _take(kinds: tuple[str, ...]) -> None:
    def changed() -> Scenario:
        typed = {kind: st.session_state[f"share of {kind}"].strip() for kind in kinds}
        if not kinds:
            return current().replaced(shares=())
        missing = [TITLES[kind].lower() for kind in kinds if not typed[kind]]
        if missing:
            raise PlanError(f"Type the share of {joined(missing)}, in per cent.")
        shares: dict[str, Fraction] = {
            kind: exact_fraction(text, f"The share of {TITLES[kind].lower()}") / 100
            for kind, text in typed.items()
        }
        return current().replaced(shares=tuple(stated_shares(shares, kinds).items()))

    if change(PARTS_HERE, changed):
        forget_typed()
