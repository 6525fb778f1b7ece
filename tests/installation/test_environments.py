"""Fresh environments, as pip makes them: how large, what works, what else can be beside.

By night: pip fetches hundreds of megabytes.
"""

import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.support.environments import environment, run
from tests.support.wheel import built_wheel

pytestmark = pytest.mark.nightly

EVERY_COMMAND = Path(__file__).with_name("every_command.py")
MIB = 1 << 20
# Other packages of differential privacy. dp-wizard brings opendp[mbi] of a version of its own:
# asked for both, pip takes the newest opendp and finds no solution, with rpexplore or without. Both
# pin mbi to a version before 2, so that the extra `synthetic` cannot be beside them.
OTHERS = [
    ("opendp[mbi]", "pipeline-dp", "dp-accounting"),
    ("dp-wizard>=0.10", "pipeline-dp", "dp-accounting"),
]
PLAN = """
import rpexplore as rp
from rpexplore.planning.planner import plan_tables
tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 4}), 2)
plan = rp.plan(tables, loss=rp.MaxVariance(), budget=rp.Budget(rho="0.5"))
assert plan.certificate.gap < 1e-5
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def installed_size(python: Path) -> float:
    """The sum of the sizes of the files in its site-packages, bytecode included, MiB."""
    base = python.parents[1]
    packages = sysconfig.get_path("purelib", "venv", {"base": base, "platbase": base})
    return sum(path.stat().st_size for path in Path(packages).rglob("*") if path.is_file()) / MIB


def test_the_core(wheel, tmp_path):
    python = environment(tmp_path / "venv", str(wheel))
    assert installed_size(python) <= 480
    folder = tmp_path / "run"
    folder.mkdir()
    run(python, str(EVERY_COMMAND), cwd=folder)


def test_the_app(wheel, tmp_path):
    python = environment(tmp_path / "venv", f"{wheel}[app]")
    assert installed_size(python) <= 650
    program = str(python.with_name("rpexplore"))
    (tmp_path / "codebook.csv").write_text("attribute,value\na,0\na,1\n", "utf-8")
    plan = ("plan", "codebook.csv", "--up-to", "1", "--rho", "1", "--out", "plan.json")
    run(python, program, *plan, cwd=tmp_path)
    run(python, program, "report", "plan.json", "--out", "report.html", cwd=tmp_path)
    app = subprocess.Popen(
        [program, "app", "--port", "8597", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert app.stdout is not None
        assert app.stdout.readline().startswith("The app runs at http://127.0.0.1:8597/")
    finally:
        app.send_signal(signal.SIGTERM)
        app.wait(60)


@pytest.mark.parametrize("others", OTHERS, ids=["opendp", "dp-wizard"])
def test_beside_other_packages(wheel, others, tmp_path):
    python = environment(tmp_path / "venv", f"{wheel}[app,custom,databases]", *others)
    modules = ["opendp.prelude", "mbi", "pipeline_dp", "dp_accounting"]
    if "dp-wizard>=0.10" in others:
        modules.append("dp_wizard")
    imports = "\n".join(f"import {module}" for module in modules)
    run(python, "-c", f"{imports}\n{PLAN}", cwd=tmp_path)
