"""What people read before they approve a plan or run it is all that there is to read."""

import pytest

import rpexplore as rp
from rpexplore.cli.console import say, say_privately
from rpexplore.errors import WorkloadError
from rpexplore.workload.universe import universe_of

STEERING = "c\x1b[1A\x1b[2K\x9b8m\u202ehidden\u2066\r\u2028P"


def test_no_text_of_a_codebook_or_plan_steers_a_terminal(capsys, monkeypatch):
    """A condition, or the label of a value, hid the line before it, or was read from the right."""
    monkeypatch.setattr("rpexplore.cli.console.on_a_terminal", lambda: True)
    say(f"{STEERING}\tq\r\nend")
    say_privately([STEERING])
    shown = capsys.readouterr()
    assert shown.out == "c�[1A�[2K�8m�hidden���P\tq\r\nend\n"
    assert shown.err == "c�[1A�[2K�8m�hidden���P\n"


@pytest.mark.parametrize("value", ["x\n  Privacy    0-zCDP", "x\x1b[8m", "x\x85", "\u202ex", "x\r"])
def test_a_condition_is_one_line_as_it_is_read(value):
    """It stands in labels, READMEs and reports: by a line end it could go on like one of them."""
    domain = rp.Domain.from_sizes({"a": 2})
    with pytest.raises(WorkloadError, match=r"could hide the rest|direction"):
        universe_of(f'c = "{value}"', domain)
    assert universe_of('c\n= "a\u00a0b"', domain).text == 'c = "a\u00a0b"'
