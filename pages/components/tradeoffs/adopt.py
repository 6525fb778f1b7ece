"""How the Trade-offs page applies what it found."""

from collections.abc import Callable
from typing import Any

from pages.components.shared.session import add_scenario, change, current, say
from rpexplore.common.formatting import rounded
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import NOTE_LENGTH, Scenario


def use_budget(place: str, budget: Budget, **more: Any) -> None:
    """Apply a budget to the open scenario, maybe with other changes."""
    if change(place, lambda: current().replaced(budget=budget, **more)):
        say(place, "success", f"Applied: the budget is now ρ = {rounded(budget.rho, 6)}.")


def keep_scenario(place: str, make: Callable[[], Scenario], note: str) -> None:
    """Save the result as a further scenario, with a note of what it is, and open it."""
    if add_scenario(place, lambda: make().replaced(note=note[:NOTE_LENGTH])):
        say(place, "success", f"Saved as “{current().name}”, which is open now.")
