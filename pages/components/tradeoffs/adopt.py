"""How the Trade-offs page applies a result."""

from collections.abc import Callable
from typing import Any

from pages.components.shared.session import change, change_project, current, project, say
from pages.components.shared.solutions import budget_of_whole
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import NOTE_LENGTH, Scenario


def use_budget(slot: str, budget: Budget, **changes: Any) -> None:
    """Apply a budget to the open scenario, maybe with other changes; messages go to `slot`."""
    if change(
        slot, lambda: current().replaced(budget=budget_of_whole("tables", budget), **changes)
    ):
        say(slot, "success", f"Applied: the budget is now {rho_text(budget.rho, 6, 'nearest')}.")


def save_scenario(slot: str, make: Callable[[], Scenario], note: str) -> None:
    """Save the result as a further scenario, with a note of what it is, and open it."""
    if change_project(slot, lambda: project().added(make().replaced(note=note[:NOTE_LENGTH]))):
        say(slot, "success", f"Saved as “{current().name}”, which is open now.")
