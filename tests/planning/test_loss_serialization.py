"""Losses as JSON and as text: what is written is read back; what cannot be read is refused."""

import pytest

import rpexplore as rp
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.custom import UnavailableLoss
from rpexplore.planning.serialization import loss_from_json, loss_from_text, options_of_loss

LOSSES = [
    rp.SumOfVariances("sqrt"),
    rp.MaxVariance(),
    rp.MaxVariance("target"),
    rp.SumWithinTargets("cells"),
    rp.MaxWithinTargets(),
    rp.SumWithBoundedMax("equal", 0.25),
    rp.PNorm(3.5, "target"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_what_is_written_is_read_back(loss):
    options = dict(options_of_loss(loss))
    more = {key.replace("-", "_"): value for key, value in options.items() if key != "loss"}
    assert loss_from_text(options["loss"], **more) == loss
    assert loss_from_json(loss.to_json()) == loss


def test_a_number_left_out_has_its_usual_value():
    assert loss_from_text(" bounded ") == rp.SumWithBoundedMax()
    assert loss_from_text("p-norm") == rp.PNorm()


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("least", {}, "must be one of sum, max, required"),
        ("sum:3", {}, "The loss sum takes no number"),
        ("p-norm:three", {}, "a number, such as p-norm:2"),
        ("p-norm:0.5", {}, "from 1 to 1000"),
        ("max", {"weighting": "cells"}, "--weighting belongs to the losses sum, required, bounded"),
        ("sum", {"relative_to": "target"}, "--relative-to belongs to the losses max, p-norm"),
        ("bounded:-1", {}, "The slack must be from"),
    ],
)
def test_what_cannot_be_read_is_refused(text, options, said):
    with pytest.raises(WorkloadError, match=said):
        loss_from_text(text, **options)


def test_a_custom_loss_is_not_written():
    with pytest.raises(PlanError, match="known to the script that made it alone"):
        options_of_loss(UnavailableLoss("mine"))
