"""Expected counts, the forecast from them, and the adaptive plan that needs them."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.files import upload
from pages.components.shared.session import (
    attempt,
    bound,
    change,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import NO_PLAN
from rpexplore.analysis.adaptive import tables_of
from rpexplore.analysis.area_forecast import AreaForecast
from rpexplore.analysis.drawn_areas import DrawnAreas, shares_of_areas
from rpexplore.analysis.drawn_counts import drawn_once, why_none_drawn
from rpexplore.analysis.forecast import Forecast, public_tables_by
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.published_lines import (
    area_forecast_of_scenario,
    forecast_of_scenario,
    public_of_areas,
)
from rpexplore.common.text import count_of, needed_number_of, number_of, number_text, plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.named_areas import AreaTotals
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.request import share_of_budget
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.planning_tasks import solve_adaptive
from rpexplore.workload.survey_text import design_from_texts, effect_texts

# ---- Expected counts, which say what an accuracy is worth, the limit of good cells, the forecast.


HERE = "expected"


def forecast(planned: TablePlan, scenario: Scenario | None = None) -> Forecast | None:
    """The forecast of a plan's tables; None without expected counts, and while it is made.

    scenario: whose plan it is; else that of the open one
    """
    scenario = current() if scenario is None else scenario
    public = attempt(lambda: scenario.public_tables)
    if public is None:
        return None
    stated = scenario.public, scenario.expected
    # Not by its name: what was drawn serves every scenario with the same tables.
    by, slot = (planned.workload, *stated), _slot(scenario)
    if why := kept(why_none_drawn, planned.workload, public, slot=slot, by=by):
        st.caption(f"{why} Their margins of error do not depend on counts: see Tables and Plan.")
        return None
    drawn = worked_out(drawn_once, planned.workload, public, stated, by=by, slot=slot)
    return drawn and kept(forecast_of_scenario, planned, drawn, scenario, slot=scenario.name)


def forecast_in_areas(planned: AreaPlan, scenario: Scenario | None = None) -> AreaForecast | None:
    """The same of a plan for areas, by what is public of their attributes."""
    scenario = current() if scenario is None else scenario
    study = scenario.planned_areas
    public = None if study is None else kept(public_of_areas, scenario, study, slot=scenario.name)
    totals = known_area_totals(planned, scenario)
    if public is None and study is not None and totals is not None:
        public = public_tables_by(study.domain, ExpectedCounts.of_total(totals.number))
    if public is None:
        return None
    slot, by = _slot(scenario), (planned.workload, public, totals)
    own = None if totals is None else totals.totals
    drawn = worked_out(DrawnAreas.of, planned.workload, public, own, by=by, slot=slot)
    return drawn and kept(area_forecast_of_scenario, planned, drawn, scenario, slot=scenario.name)


def known_area_totals(planned: AreaPlan, scenario: Scenario) -> AreaTotals | None:
    """The publicly known totals of the areas of a scenario's plan."""
    study, tree = scenario.areas, planned.workload.tree
    if study is None or not study.totals or study.areas.sha256 != tree.sha256:
        return None
    by = tree.sha256, study.totals
    return kept(
        AreaTotals.of_file, tree, study.totals.encode(), "totals.csv", slot=scenario.name, by=by
    )


def area_totals_input(planned: AreaPlan) -> None:
    """A box for a file of publicly known totals of areas, which are kept with the scenario."""
    totals, study = known_area_totals(planned, current()), current().areas

    def take(content: bytes, name: str) -> None:
        def stated() -> Scenario:
            taken = AreaTotals.of_file(planned.workload.tree, content, name)
            shares_of_areas(planned.workload.tree, taken.totals)  # refuses other than the whole
            return current().replaced(areas=study and replace(study, totals=taken.text))

        change(HERE, stated, "No totals were taken.")

    show_messages(HERE)
    upload(
        "Totals of areas that are public, which make the forecast narrow",
        ["csv"],
        "file of area totals",
        take,
        help="A CSV with the codes of areas and a column total, count or population, such as the "
        "last census's. The file of areas itself will do if it has one. The totals are saved with "
        "the scenario.",
    )
    if totals is not None:
        st.caption(
            f"Known are {plural(len(totals.totals), 'total')} of areas, of {totals.number:,} "
            "records in all."
        )
        without = {"areas": study and replace(study, totals="")}
        st.button("Without these totals", on_click=change_fields, args=(HERE,), kwargs=without)


def show_forecast(made: Forecast | AreaForecast, figures: pd.DataFrame, alt: str) -> None:
    """A forecast in a sentence, a table of its figures, and what it rests on."""
    st.markdown(f"**{escaped(made.describe())}**", help=meaning("Good cell"))
    st.dataframe(figures, hide_index=True, alt=alt)
    st.caption(escaped(made.rests_on))


def _slot(scenario: Scenario) -> str:
    return "" if scenario.name == current().name else scenario.name


def cv_limit_input() -> None:
    """The largest coefficient of variation of a good cell."""

    def take(typed: str) -> None:
        change(HERE, lambda: current().replaced(cv_limit=limit(typed)))

    def limit(typed: str) -> float:
        return needed_number_of(typed, "The coefficient of variation", least=0.1, most=1000.0) / 100

    st.text_input(
        "CV limit (%)",
        width=180,
        help=f"{meaning('Good cell')} {meaning('Coefficient of variation')}",
        **bound("wanted coefficient", f"{100 * current().cv_limit:.10g}", take),
    )
    show_messages(HERE)


def expected_total_input() -> None:
    """The expected number of records, which is all that a first answer needs."""
    expected = current().expected

    def of_total(typed: str) -> ExpectedCounts | None:
        total = count_of(typed, "The expected number")
        return None if total is None else ExpectedCounts.of_total(total)

    st.text_input(
        f"Expected number of {escaped(current().record_noun)} in all",
        placeholder="none typed",
        **bound(
            "expected total",
            number_text(
                expected.total if expected is not None and not expected.attributes else None
            ),
            lambda typed: _set_expected(lambda: of_total(typed)),
        ),
    )
    show_messages(HERE)


def design_inputs() -> None:
    """The design of a sample survey, whose own error then counts beside the noise."""
    design = current().design

    def take(effects: str, weight_cv: str, fraction: str) -> None:
        def stated() -> Scenario:
            cv = number_of(weight_cv, "The coefficient of variation of the weights", least=0.0)
            made = design_from_texts(
                current().domain,
                [text.strip() for text in effects.split(";") if text.strip()],
                None if cv is None else cv / 100,
                f"{fraction.strip()}%" if fraction.strip() else None,
            )
            return current().replaced(design=made)

        change(HERE, stated)

    effects = "" if design is None else "; ".join(effect_texts(current().domain, design))
    fraction = ""
    if design is not None and design.sampling_fraction:
        fraction = f"{100 * design.sampling_fraction:.10g}"
    of_tables = "; ".join(effects.split("; ")[1:])
    with st.expander("The records are a sample: its own error", expanded=design is not None):
        st.markdown(meaning("Total error"))
        first, second, third = st.columns(3)
        first.text_input(
            "Design effect; of one table after a semicolon: 1.8; age,sex=2.1",
            placeholder="none typed",
            **bound("design effect", effects, lambda typed: take(typed, "", fraction)),
        )
        second.text_input(
            "Or coefficient of variation of the weights (%)",
            placeholder="none typed",
            **bound("weight cv", "", lambda typed: take(of_tables, typed, fraction)),
        )
        third.text_input(
            "Sampling fraction (%)",
            placeholder="none typed",
            **bound("sampling fraction", fraction, lambda typed: take(effects, "", typed)),
        )


def _set_expected(make: Callable[[], ExpectedCounts | None]) -> None:
    def changed() -> Scenario:
        scenario = current().replaced(expected=make())
        _ = scenario.public_tables  # which refuses a number that is far from theirs
        return scenario

    change(HERE, changed)


# ---- The adaptive plan of the open scenario: of its tables, budget and expected counts alone.


def adaptive_plan_of_scenario() -> AdaptivePlan | None:
    """The plan; None while it is made, and where there is none, which the page explains."""
    scenario = current()
    if len(scenario.kinds) > 1 and scenario.stated_shares is None:
        st.warning(
            f"{NO_PLAN}adaptive tables promise no accuracy that could be compared with that of the "
            "other parts. State the shares of the budget on the Plan page, under Parts of the "
            "plan; adaptive tables then have that of the tables."
        )
        st.page_link("pages/plan.py", label="To the shares")
        return None
    if scenario.expected is None:
        st.markdown("How the budget is divided depends on how many there will be, about.")
        expected_total_input()
        return None
    tables, left_out = kept(tables_of, scenario.workload)
    if left_out:
        st.caption(left_out)
    records = max(round(scenario.expected.total), 1)
    shares = scenario.stated_shares or {"tables": Fraction(1)}
    # As stated, not at the cost of a fixed plan, whose noise proves more than ρ alone.
    budget = share_of_budget(scenario.budget, shares["tables"])
    return worked_out(solve_adaptive, tables, budget, records, problem=NO_PLAN)
