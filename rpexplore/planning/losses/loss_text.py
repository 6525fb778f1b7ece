"""Losses as texts, for command lines: "sum", "max", "required", "bounded:0.1", "p-norm:3", …"""

from typing import Any

from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.p_norm import PNorm

# name -> (class, the field that a number behind a colon is, the option that goes with it)
_WEIGHTING, _RELATIVE_TO = "weighting", "relative_to"
_KINDS: dict[str, tuple[Any, str, str]] = {
    "sum": (SumOfVariances, "", _WEIGHTING),
    "max": (MaxVariance, "", _RELATIVE_TO),
    "required": (SumWithinTargets, "", _WEIGHTING),
    "required-then-targets": (MaxWithinTargets, "", ""),
    "bounded": (SumWithBoundedMax, "excess", _WEIGHTING),
    "p-norm": (PNorm, "p", _RELATIVE_TO),
}
FORMS = ", ".join(f"{name}:NUMBER" if field else name for name, (_, field, _) in _KINDS.items())


def loss_from_text(
    text: str, *, weighting: str | None = None, relative_to: str | None = None
) -> Loss:
    """The loss of a text such as "sum" or "p-norm:3"; a number left out has its usual value.

    weighting, relative_to: of the losses that have them. Raises `WorkloadError` for an unknown
    text, a number that does not fit, and an option that belongs to other losses.
    """
    name, colon, number = text.strip().partition(":")
    if name not in _KINDS:
        raise WorkloadError(f"The loss must be one of {FORMS}, got {text!r}.")
    of_kind, field, option = _KINDS[name]
    given: dict[str, Any] = {}
    if colon and not field:
        raise WorkloadError(f"The loss {name} takes no number, got {text!r}; leave it out.")
    if colon:
        try:
            given[field] = float(number)
        except ValueError:
            raise WorkloadError(
                f"Behind the colon of {text!r} must stand a number, such as {name}:"
                f"{getattr(of_kind(), field):g}."
            ) from None
    for key, value in ((_WEIGHTING, weighting), (_RELATIVE_TO, relative_to)):
        if value is None:
            continue
        if option != key:
            having = ", ".join(each for each, (_, _, has) in _KINDS.items() if has == key)
            raise WorkloadError(
                f"--{key.replace('_', '-')} belongs to the losses {having}, not to {name}; leave "
                "it out."
            )
        given[key] = value
    return of_kind(**given)


def options_of_loss(loss: Loss) -> list[tuple[str, str]]:
    """The options that make `loss_from_text` give this loss: [("loss", "sum"), …].

    Raises `PlanError` for an own loss, which is a piece of program.
    """
    found = [name for name, (of_kind, _, _) in _KINDS.items() if type(loss) is of_kind]
    if not found:
        raise PlanError(
            f"The aim of this plan, {loss.aim}, is known to the script that made it alone; plan "
            "with it there."
        )
    _, field, option = _KINDS[found[0]]
    number = f":{getattr(loss, field)!r}" if field else ""
    options = [("loss", f"{found[0]}{number}")]
    return [*options, (option.replace("_", "-"), getattr(loss, option))] if option else options
