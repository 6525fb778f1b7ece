"""What is made to be run elsewhere, script and commands, runs nothing that a name says.

Codebooks and projects come from others, and whoever keeps the records runs the script beside them.
"""

import ast
import shlex

import pytest

import rpexplore as rp
from rpexplore.reports.script import command_lines, python_script
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest

NAMES = [
    'a""" + open("x", "w") + """b',
    "a''' + open('x', 'w') + '''b",
    "a' + open(\"x\", 'w') + '\\",
    "a $(open x)\u2028open('x', 'w')\x85`open x` \\",
]
BUDGETS = {
    "exact": lambda name: {"exact": [name]},
    "period": lambda name: {"period": name, "max_records_per_person": 2},
    "distinct": lambda name: {"distinct": name, "unit_noun": "household"},
    "replaced": lambda name: {"neighbours": "replace"},
}


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_codebook_is_code(kind, name):
    domain = rp.Domain(
        (rp.Attribute(name, rp.Integers(0, 1)), rp.Attribute("b", rp.Integers(0, 2)))
    )
    tables = WorkloadRequest("listed", listed=((name,), (name, "b")))
    texts = {"name": name, "note": f"{name}\r{name}\x0c{name}\n{name}", "survey": name}
    scenario = Scenario(domain, tables, budget=rp.Budget(rho=1, **BUDGETS[kind](name)), **texts)
    plan = rp.plan(
        rp.Request(
            tables=scenario.workload,
            budget=scenario.budget,
            universe="other = '" + name.replace("'", "").replace("\x85", "") + "'",
        )
    )
    tree = ast.parse(python_script(plan, scenario))
    called = {ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)}
    assert "rp.Attribute" in called
    assert "open" not in called
    assert name not in str(ast.get_docstring(tree))
    lines = shlex.split(command_lines(plan, scenario), comments=True)
    assert lines.count("rpexplore") == command_lines(plan, scenario).count("\nrpexplore ")
