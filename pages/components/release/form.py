"""The form of a release: which plan it runs, and whether all that is chosen can be used."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import streamlit as st

from pages.components.shared.expected_counts import adaptive_plan_of_scenario, forecast
from pages.components.shared.files import upload
from pages.components.shared.session import (
    accepted,
    attempt,
    bound,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.solutions import NO_PLAN, whole_plan
from rpexplore.analysis.adaptive import NOTHING_PROMISED
from rpexplore.common.files import utf8_text
from rpexplore.data.source import Source
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.approval import Approval
from rpexplore.planning.plan import Plan
from rpexplore.results.estimates.area_cells import why_no_whole_counts
from rpexplore.serving.sessions import last_step

T = TypeVar("T")


@dataclass
class ReleaseForm:
    """The plan and the records of a release; incomplete once an input of it cannot be used."""

    planned: Plan
    data: Source
    is_complete: bool = True

    def attempt(self, make: Callable[[], T]) -> T | None:
        """What `make` returns; None where it is refused, and the page says why."""
        try:
            return make()
        except RpexploreError as error:
            st.error(escaped(error.on_screen()))
            self.is_complete = False
            return None

    def wait(self, text: str) -> None:
        """Say what is still to be chosen."""
        st.info(text)
        self.is_complete = False


# ---- Which plan the Release page runs: that of the open scenario, or an adaptive one.


HERE = "which plan"
ADDRESS, ADAPTIVE = "plan", "adaptive"  # in the address of the page
KINDS = {"unbiased": "Unbiased tables", ADAPTIVE: "Adaptive plan (biased)"}
_CHOSEN, _FILE = "kind of plan to run", "adaptive plan file"


def adaptive_link(label: str) -> None:
    """A link to the last step, where the adaptive plan is then chosen."""
    st.page_link(
        f"pages/{last_step().page}.py",
        label=label,
        icon=":material/arrow_forward:",
        query_params={ADDRESS: ADAPTIVE},
    )


def kind_input(label: str = "Plan to run") -> str:
    """One of `KINDS`: the one in the address, or that was chosen last."""
    kind = st.query_params.get(ADDRESS) or st.session_state.get(_CHOSEN)
    kind = kind if kind in KINDS else next(iter(KINDS))
    _choose(kind)
    st.radio(
        label,
        list(KINDS),
        format_func=KINDS.__getitem__,
        horizontal=True,
        **bound("plan to run", kind, _choose),
    )
    return kind


def plan_to_run(label: str = "Plan to run", *, takes_files: bool = True) -> Plan | None:
    """The whole plan of the open scenario; or with rounds in place of its tables, if wanted."""
    # Adaptive plans have no levels of attributes.
    has_choice = "tables" in current().kinds and not current().workload.uses_levels
    if not has_choice or kind_input(label) != ADAPTIVE:
        whole = whole_plan()
        return None if whole is None else _with_forecast(whole)
    rounds = adaptive_plan_input() if takes_files else adaptive_plan_of_scenario()
    if rounds is None or len(current().kinds) == 1 or _FILE in st.session_state:
        return None if rounds is None else rounds.alone
    whole = whole_plan(by_rho=True)
    if whole is None:
        return None
    beside = [part for part in whole.parts if part.kind != "tables"]
    return attempt(lambda: kept(Plan, (*beside, rounds), whole.budget, whole.version), NO_PLAN)


def _with_forecast(planned: Plan) -> Plan | None:
    """The plan, or the one that keeps its forecast, if wanted; asked where there can be one.

    None while the forecast is made, or where there is none, which the page explains.
    """
    tables = planned.part("tables")
    if tables is None or tables.workload.has_amounts.all():
        return planned
    if attempt(lambda: current().public_tables) is None:
        return planned
    if not st.checkbox(
        "Keep the forecast in the plan",
        key="keep forecast",
        persist_state="session",
        help="The release then shows what came out beside what was forecast. The noise is the "
        "same; the file, and so its SHA-256, is another one: approvals are of the one or the "
        "other.",
    ):
        return planned
    made = forecast(tables)
    return None if made is None else replace(planned, forecast=made.stated)


def say_without_whole_counts(planned: Plan) -> None:
    """Before anything is spent: why no whole counts can be made of areas, if none can."""
    areas = planned.part("areas")
    if areas is not None and (refused := kept(why_no_whole_counts, areas)):
        st.info(escaped(f"No whole counts can be made of the areas of this release. {refused}"))


def _choose(kind: str) -> None:
    st.session_state[_CHOSEN] = kind
    if kind == ADAPTIVE:
        st.query_params[ADDRESS] = kind
    else:
        st.query_params.pop(ADDRESS, None)


def adaptive_plan_input() -> AdaptivePlan | None:
    """The adaptive plan of an uploaded file, or else of the open scenario; None without one."""
    st.warning(NOTHING_PROMISED, icon=":material/label_important:")
    with st.expander("Run a plan file instead", expanded=_FILE in st.session_state):
        upload("Adaptive plan file (.json)", ["json"], "uploaded adaptive plan", _take)
        show_messages(HERE)
        held = st.session_state.get(_FILE)
        if held is not None:
            name, plan = held
            st.markdown(f"**{escaped(name)}**, SHA-256 `{plan.sha256}`")
            st.button(
                "Back to the plan of the scenario",
                on_click=st.session_state.pop,
                args=(_FILE, None),
            )
    return adaptive_plan_of_scenario() if held is None else held[1]


def _take(content: bytes, name: str) -> None:
    plan = accepted(HERE, lambda: AdaptivePlan.parse(utf8_text(content, name, PlanError), name))
    if plan is not None:
        st.session_state[_FILE] = name, plan


# ---- The approvals that this session was given, for runs and reports.


_GIVEN = "approvals given"


def given_approvals(planned: Plan) -> tuple[Approval, ...]:
    """The approvals of a plan that this session was given."""
    return tuple(one for one in held_approvals().values() if one.plan_sha256 == planned.sha256)


def held_approvals() -> dict[str, Approval]:
    """All that this session was given, by their SHA-256."""
    return st.session_state.setdefault(_GIVEN, {})
