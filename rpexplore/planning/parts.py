"""The parts of a plan: what is planned together and released under one guarantee."""

from typing import Any


def parts_of(plan: Any) -> tuple[Any, ...]:
    """The parts of a plan; a plan that is one by itself."""
    return getattr(plan, "parts", (plan,))


def part_of(plan: Any, kind: str) -> Any:
    """The part of a plan that is of this kind, or None."""
    return next((part for part in parts_of(plan) if part.kind == kind), None)
