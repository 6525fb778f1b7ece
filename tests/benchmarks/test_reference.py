"""The benchmark beside the reference runs another package of its form, and compares rightly."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.reference import Measured, NotRun, Task, compare, reference, run

# Of three attributes of two values: the smallest sum of the variances of all 27 cells at privacy
# cost 1 is (√(1 + 2/4) + √(1/2))² an attribute, from coefficients 1 + 2/4 and 1, costs 1 and 1/2.
TINY = Task("tiny", "sum", (2, 2, 2), "III")
STAND_IN = """
import gurobipy as gp
from gurobipy import GRB
from .parameter import options

class ResPlanSum:
    def __init__(self, domains, bases):
        assert len(domains) == len(bases)

    def input_mech(self, attributes):
        pass

    def get_noise_level(self):
        return (2 + 3 ** 0.5) ** 3
"""


def stand_in(folder: Path, text: str = STAND_IN) -> str:
    package = folder / "resplan"
    package.mkdir()
    (package / "ResPlan.py").write_text(text, encoding="utf-8")
    (package / "__init__.py").write_text("from .ResPlan import ResPlanSum", encoding="utf-8")
    return str(folder)


def test_both_sides_run_and_agree(tmp_path: Path) -> None:
    theirs = reference(stand_in(tmp_path), sys.executable)
    line, as_good = compare(TINY, theirs, run, rounds=1)
    assert as_good
    assert line.endswith("1.38752, agrees")  # √((2 + √3)³ / 27)
    with pytest.raises(NotRun, match="ResPlanMax"):  # which the stand-in does not have
        theirs(replace(TINY, kind="largest"))


def test_a_line_compares_the_best_runs() -> None:
    their_runs = [Measured(seconds, 0.5, 2.0, 3) for seconds in (6.0, 5.0, 7.0)]

    def line(objective: float) -> tuple[list[str], bool]:
        theirs, ours = iter(their_runs), iter([0.7, 0.2, 0.3])
        text, as_good = compare(
            TINY, lambda _: next(theirs), lambda _: Measured(next(ours), 0.25, objective, 3)
        )
        return text.split(maxsplit=6), as_good

    figures = ["tiny", "5.0000", "0.2000", "25", "0.50", "0.25"]
    assert line(2.0019) == ([*figures, "2.0019, agrees"], True)
    assert line(1.9) == ([*figures, "1.9, 5.0% smaller"], True)
    assert line(2.1) == ([*figures, "2.1, 5.0% LARGER"], False)


def test_what_does_not_run_is_said(tmp_path: Path) -> None:
    def theirs(task: Task) -> Measured:
        raise NotRun("it took more than 900 s")

    ours = Measured(0.2, 0.25, 2.0, 3)
    line, as_good = compare(TINY, theirs, lambda _: ours)
    assert as_good
    assert line.endswith("the reference was not run: it took more than 900 s")

    with pytest.raises(NotRun, match="must be the folder of a clone"):
        reference(str(tmp_path), sys.executable)
    folder = stand_in(tmp_path, "import not_to_be_found")
    with pytest.raises(NotRun, match=r"No module named 'not_to_be_found'; install"):
        reference(folder, sys.executable)
    with pytest.raises(NotRun, match="must be a Python interpreter"):
        reference(folder, str(tmp_path / "python"))
