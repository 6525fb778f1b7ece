"""The approvals that this session was given, for runs and reports."""

import streamlit as st

from rpexplore.planning.approval import Approval
from rpexplore.planning.plan import Plan

_GIVEN = "approvals given"


def given_approvals(planned: Plan) -> tuple[Approval, ...]:
    """The approvals of a plan that this session was given."""
    return tuple(one for one in held_approvals().values() if one.plan_sha256 == planned.sha256)


def held_approvals() -> dict[str, Approval]:
    """All that this session was given, by their SHA-256."""
    return st.session_state.setdefault(_GIVEN, {})
