"""The plan for areas: objective and budget, how accurate each level is, and beside shares."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components.areas.study import area_plan, change_study
from pages.components.areas.usefulness import usefulness_of_areas
from pages.components.plan.budget import HERE, budget_inputs, budget_meaning, unit_inputs
from pages.components.shared.background import worked_out
from pages.components.shared.charts import download_frame, listing, metrics
from pages.components.shared.files import download
from pages.components.shared.session import bound, change_fields, escaped, kept
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.accuracy import csv_of_accuracy, readable
from rpexplore.analysis.areas.accuracy import describe_shares, level_accuracy
from rpexplore.analysis.areas.levels import beside_shares_by_level
from rpexplore.analysis.areas.targets import (
    describe_required,
    describe_targets,
    sufficient_budget,
)
from rpexplore.analysis.glossary import meaning
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import capitalised, rounded
from rpexplore.figures.areas import ACCURACY_COLUMNS, TABLE_COLUMNS, shares_listed
from rpexplore.planning.areas.area_loss import AREA_LOSSES
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.loss_serialization import loss_choices
from rpexplore.planning.losses.base import WEIGHTINGS, MaxVariance, WeightedSum
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.area_study import AreaStudy


def plan_view(opened: AreaStudy) -> None:
    """Inputs beside the answer."""
    with st.container(key="layout"):
        with st.container(key="inputs"):
            with st.container(gap="small"):
                _loss_input(opened)
            with st.container(gap="small"):
                unit_inputs()
                budget_inputs()
                budget_meaning()
        with st.container(key="answer"):
            planned = area_plan(opened)
            if planned is not None:
                _answer(planned)


def _loss_input(opened: AreaStudy) -> None:
    """The objective, how tables count in a sum, and whether areas of a level are alike."""
    offered = {
        choice: loss for choice, loss in loss_choices().items() if isinstance(loss, AREA_LOSSES)
    }
    loss = opened.loss
    st.radio(
        "Objective",
        list(offered),
        format_func=lambda choice: capitalised(offered[choice].objective),
        help=meaning("Objective"),
        **bound(
            "area objective",
            loss.choice,
            lambda choice: change_study(lambda study: replace(study, loss=offered[choice])),
        ),
    )
    if isinstance(loss, WeightedSum):
        st.selectbox(
            "How tables count in the sum",
            list(WEIGHTINGS),
            format_func=WEIGHTINGS.__getitem__,
            help=meaning(capitalised(WEIGHTINGS[loss.weighting])),
            **bound(
                "area weighting",
                loss.weighting,
                lambda weighting: change_study(
                    lambda study: replace(study, loss=type(loss)(weighting))
                ),
            ),
        )
        st.caption("All levels count alike, however many areas they have.")
    st.toggle(
        "The same noise for all areas of a level",
        help="Without it each area has the noise that is best for it, which is more accurate.",
        **bound(
            "area uniform",
            opened.uniform,
            lambda uniform: change_study(lambda study: replace(study, uniform=uniform)),
        ),
    )


def _answer(planned: AreaPlan) -> None:
    tree = planned.workload.tree
    metrics(
        ("Tables in all areas", f"{planned.n_items:,}", f"{tree.n_areas:,} areas"),
        (
            "Privacy",
            rho_text(planned.rho, 3),
            f"{planned.budget.epsilon_text(planned.rho)}; protects {escaped(planned.budget.unit)}",
        ),
    )
    st.markdown(
        f":material/verified: **Accuracy proven best.** {escaped(planned.proven)}",
        help=f"{meaning('Optimality')} "
        f"The proven gap is {rounded(planned.certificate.gap, 2, 'up')} of the objective.",
    )
    if isinstance(planned.loss, MaxVariance) and planned.loss.compares_with_targets:
        _targets(planned)
    if planned.loss.meets_required_targets:
        required = kept(describe_required, planned)
        st.markdown(f":material/straighten: **Required targets.** {escaped(required)}")
    st.subheader("How accurate each level is")
    levels = kept(level_accuracy, planned)
    listing(levels, ACCURACY_COLUMNS, "Accuracy of the tables of each level")
    download_frame(levels, "levels.csv")
    st.caption(
        "Standard error σ and its margin are root mean squares over the areas and tables of a "
        "level; the largest σ is that of a cell of the least accurate table in one area."
    )
    usefulness_of_areas(planned)
    with st.expander("Every table on every level"):
        tables = readable(kept(planned.accuracy))
        columns = {name: column for name, column in TABLE_COLUMNS.items() if name in tables}
        listing(tables, columns, "Accuracy of each table on each level")
        download("area_tables.csv", lambda: csv_of_accuracy(planned))
    if planned.loss.meets_required_targets:
        st.caption(
            "Shares of the budget by level are not set beside this plan: they are not made to meet "
            "required targets."
        )
    else:
        _shares(planned)
    with st.expander("What this plan guarantees, in full"):
        st.markdown(escaped(planned.guarantee))


def _targets(planned: AreaPlan) -> None:
    """Whether all targets are met, and the budget that is enough."""
    st.markdown(f":material/straighten: **Targets.** {escaped(describe_targets(planned))}")
    enough = sufficient_budget(planned)
    is_own, enough = enough == planned.budget, budget_of_whole("areas", enough)
    st.button(
        "Make that the budget",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": enough},
        disabled=is_own,
        help="The budget of the Plan page is then this one, too.",
    )


def _shares(planned: AreaPlan) -> None:
    st.subheader("Beside shares of the budget by level")
    beside = worked_out(_beside, planned, by=(planned,))
    if beside is not None:
        st.markdown(escaped(describe_shares(beside)))
        listing(*shares_listed(beside), "The plan beside shares of the budget by level")
        st.caption(
            "Agencies often give each level a share of the budget, and all its areas the same "
            "noise. The objective is to be as small as possible; this plan's stands beside it as a "
            "share of it. Compared only where all areas of a level have the same tables, as they "
            "always do on this page."
        )


def _beside(planned: AreaPlan, on_progress: Progress) -> pd.DataFrame:
    on_progress("Planning with shares by level", 0.0)
    return beside_shares_by_level(planned, on_progress=on_progress)
