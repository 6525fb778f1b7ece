"""What a plan should aim for: the choice on the Plan page, and the numbers that go with it."""

from typing import Any

import streamlit as st

from pages.components.shared.session import bind, change, current
from rpexplore.planning.losses.base import (
    AIMS,
    WEIGHTINGS,
    Loss,
    MaxVariance,
    SumOfVariances,
    weighting_in_words,
)
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.p_norm import PNorm

SUM, LARGEST, TARGET = "sum", "largest", "target"
MUSTS, BOUNDED, NORM = "required", "bounded", "norm"
NAMES = {
    **{aim: AIMS[aim].capitalize() for aim in (SUM, LARGEST, TARGET)},
    MUSTS: "The musts met, then the others",
    BOUNDED: AIMS[BOUNDED].capitalize(),
    NORM: "Large errors count more (p-norm)",
}
CAPTIONS = {
    SUM: "The weighted sum of all tables' variances.",
    LARGEST: "The largest variance of all tables, by importance.",
    TARGET: "The largest variance compared with its target.",
    MUSTS: "Targets marked “must” are met, and just met; what is left of the budget serves the "
    "other tables.",
    BOUNDED: "As the first, but no table much worse than it has to be.",
    NORM: "Between the average and the largest.",
}
AVERAGE, TARGETS = "average", "targets"
THEN = {
    AVERAGE: "small errors of the others on average",
    TARGETS: "the others' targets met as well as can be",
}


def aim_of(loss: Loss) -> str:
    if isinstance(loss, SumOfVariances):
        return SUM
    if isinstance(loss, MaxVariance):
        return TARGET if loss.relative_to == "target" else LARGEST
    if isinstance(loss, SumWithinTargets | MaxWithinTargets):
        return MUSTS
    return BOUNDED if isinstance(loss, SumWithBoundedMax) else NORM


def aim(place: str) -> None:
    """The kind of aim, and below it what else it needs to know."""
    loss = current().loss

    def take(chosen: Loss) -> None:
        change(place, lambda: current().replaced(loss=chosen))

    def set_aim() -> None:
        take(_first_of(st.session_state["aim"], loss))

    st.radio(
        "The plan should give",
        list(NAMES),
        format_func=NAMES.__getitem__,
        captions=[CAPTIONS[each] for each in NAMES],
        key=bind("aim", aim_of(loss)),
        on_change=set_aim,
    )
    if isinstance(loss, SumOfVariances):
        _weighting(loss.weighting, lambda weighting: take(SumOfVariances(weighting)))
    elif isinstance(loss, SumWithinTargets | MaxWithinTargets):
        _then(loss, take)
    elif isinstance(loss, SumWithBoundedMax):
        excess = loss.excess
        _weighting(loss.weighting, lambda weighting: take(SumWithBoundedMax(weighting, excess)))
        _bound(loss, take)
    elif isinstance(loss, PNorm):
        _power(loss, take)


def _first_of(chosen: str, loss: Loss) -> Loss:
    """The loss of an aim that was just chosen; how tables count is kept."""
    weighting = getattr(loss, "weighting", "equal")  # of those that are averages
    return {
        SUM: SumOfVariances(weighting),
        LARGEST: MaxVariance(),
        TARGET: MaxVariance(relative_to="target"),
        MUSTS: SumWithinTargets(weighting),
        BOUNDED: SumWithBoundedMax(weighting),
        NORM: PNorm(),
    }[chosen]


def _weighting(present: str, take: Any) -> None:
    st.selectbox(
        "How tables count in the sum",
        list(WEIGHTINGS),
        format_func=weighting_in_words,
        key=bind("weighting", present),
        on_change=lambda: take(st.session_state["weighting"]),
        help="On top of each table's importance, which is set on the Workload page.",
    )


def _then(loss: SumWithinTargets | MaxWithinTargets, take: Any) -> None:
    def set_then() -> None:
        chosen = st.session_state["after musts"]
        take(SumWithinTargets() if chosen == AVERAGE else MaxWithinTargets())

    st.radio(
        "Once the musts are met",
        list(THEN),
        format_func=THEN.__getitem__,
        key=bind("after musts", AVERAGE if isinstance(loss, SumWithinTargets) else TARGETS),
        on_change=set_then,
    )
    if isinstance(loss, SumWithinTargets):
        _weighting(loss.weighting, lambda weighting: take(SumWithinTargets(weighting)))


def _bound(loss: SumWithBoundedMax, take: Any) -> None:
    def set_bound() -> None:
        take(SumWithBoundedMax(loss.weighting, st.session_state["excess"] / 100))

    st.number_input(
        "Largest standard error above the smallest possible, at most, in %",
        min_value=0.01,
        max_value=10_000.0,
        step=5.0,
        format="%.4g",
        key=bind("excess", 100 * loss.excess),
        on_change=set_bound,
        help="0 would be the plan with the smallest largest error; the more is allowed, the nearer "
        "the plan comes to the one with the smallest errors on average.",
    )


def _power(loss: PNorm, take: Any) -> None:
    st.number_input(
        "Power p: 1 is the sum, and the larger it is, the more the largest variances count",
        min_value=1.0,
        max_value=1000.0,
        step=1.0,
        format="%.4g",
        key=bind("power", float(loss.p)),
        on_change=lambda: take(PNorm(st.session_state["power"], loss.relative_to)),
    )
