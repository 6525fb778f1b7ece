"""What a report tells about targets, in numbers one and many."""

import pytest

import rpexplore as rp
from rpexplore.export.targets import targets

TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2}), 1)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({("age",): 1e4}, ["The one target is met.", "would be enough for it."]),
        ({("age",): 0.1}, ["The one target is not met.", "To meet it with", "target itself may"]),
        ({("age",): 1e-60}, ["No budget that can be planned with would meet it."]),
        ({("age",): 1e4, (): 1e4}, ["Both targets are met.", "enough for all of them."]),
        ({("age",): 0.1, (): 1e4}, ["1 of 2 targets is met.", "To meet all of them"]),
        ({("age",): 0.1, (): 0.1, ("sex",): 1e4}, ["1 of 3 targets is met."]),
        ({("age",): 0.1, (): 1e4, ("sex",): 1e4}, ["2 of 3 targets are met.", "targets themselv"]),
        ({("age",): 1e4, (): 1e4, ("sex",): 1e4}, ["All 3 targets are met."]),
    ],
)
def test_targets_are_told_in_grammar(wanted, told):
    workload = TABLES.with_targets(wanted)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    words = " ".join(targets(plan).sentences)
    for part in told:
        assert part in words
