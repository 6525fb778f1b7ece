"""The public names of `rpexplore`: all there, loaded when needed, what a type checker sees."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rpexplore as rp

STUB = Path(rp.__file__).with_suffix(".pyi").read_text("utf-8")


def modules_after(*lines: str) -> set[str]:
    """What a new interpreter has loaded after these lines."""
    code = "\n".join(["import sys", *lines, "print(*sys.modules)"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_is_there():
    assert [name for name in rp.__all__ if getattr(rp, name) is None] == []
    assert set(rp.__all__) <= set(dir(rp))


def test_type_checkers_see_what_runs():
    imports = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(STUB))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.asname
    }
    loaded = {name: f"{module}.{name}" for name, module in rp._MODULES.items()}
    assert imports == {"errors": "rpexplore.errors", **loaded}


def test_no_package_has_the_name_of_a_public_name():
    packages = {path.stem for path in Path(rp.__file__).parent.iterdir()}
    assert packages & set(rp.__all__) == {"errors"}


def test_what_is_not_there_is_said():
    with pytest.raises(AttributeError, match="no attribute 'reach'"):
        _ = rp.reach


def test_importing_loads_nothing_heavy():
    heavy = {
        "numpy",
        "scipy",
        "scipy.optimize",
        "pandas",
        "pyarrow",
        "cvxpy",
        "plotly",
        "streamlit",
    }
    assert not modules_after("import rpexplore") & heavy


@pytest.mark.nightly
def test_records_need_no_module_that_windows_lacks():
    loaded = modules_after(
        "sys.modules['resource'] = None",
        "import rpexplore.results.synthetic.records_folder",
    )
    assert "rpexplore.results.synthetic.graphical_model" in loaded


def test_planning_loads_no_code_that_reads_records():
    loaded = modules_after(
        "import rpexplore as rp",
        "workload = rp.Workload.all_up_to(rp.Domain.from_sizes({'a': 2, 'b': 3}), 2)",
        "rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))",
    )
    records = ("rpexplore.data", "rpexplore.releases", "rpexplore.results")
    assert not {name for name in loaded if name.startswith(records)}
    assert not loaded & {"pyarrow", "cvxpy", "streamlit", "duckdb"}
