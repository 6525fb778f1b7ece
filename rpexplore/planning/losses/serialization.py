"""Losses in files: their kind and their options."""

from dataclasses import asdict
from typing import Any

from rpexplore.errors import PlanError
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.losses.named_loss import UnavailableLoss
from rpexplore.planning.losses.p_norm import PNorm

_LOSS_KINDS: dict[str, Any] = {
    "sum_of_variances": SumOfVariances,
    "max_variance": MaxVariance,
    "required_then_average": SumWithinTargets,
    "required_then_targets": MaxWithinTargets,
    "bounded_average": SumWithBoundedMax,
    "p_norm": PNorm,
    "own": (CustomLoss, UnavailableLoss),
}


def loss_to_json(loss: Loss) -> dict[str, Any]:
    """A loss as plain values, for files. Of an own one only the name: it is a piece of program."""
    kind = next(kind for kind, of_kind in _LOSS_KINDS.items() if isinstance(loss, of_kind))
    if isinstance(loss, CustomLoss | UnavailableLoss):
        return {"kind": kind, "name": loss.name}
    options: Any = loss  # a dataclass, as all in the table are
    return {"kind": kind, **asdict(options)}


def loss_from_json(content: Any) -> Loss:
    """The loss that `loss_to_json` wrote; raises `PlanError` for an unknown kind."""
    options = dict(content)
    kind = options.pop("kind")
    if kind not in _LOSS_KINDS:
        raise PlanError(f"the loss must be one of {', '.join(_LOSS_KINDS)}, got {kind!r}.")
    of_kind = _LOSS_KINDS[kind]
    return (
        UnavailableLoss(**options)
        if of_kind == (CustomLoss, UnavailableLoss)
        else of_kind(**options)
    )
