"""The core alone: every command that needs no extra works, the others say which one they need."""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EVERY_COMMAND = Path(__file__).with_name("every_command.py")


def core() -> set[str]:
    """The packages of the core: what it depends on, and what these depend on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found, ahead = {"rpexplore"}, list(project["dependencies"])
    while ahead:
        requirement = Requirement(ahead.pop())
        name = canonicalize_name(requirement.name)
        is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_wanted and name not in found:
            found.add(name)
            ahead += requires(name) or []
    return found


def test_every_command_works_without_any_extra(tmp_path):
    kept = core()
    hidden = [
        module
        for module, packages in packages_distributions().items()
        if not kept & {canonicalize_name(package) for package in packages}
    ]
    assert {"streamlit", "plotly", "cvxpy", "ibis"} <= set(hidden)
    done = subprocess.run(
        [sys.executable, EVERY_COMMAND, *hidden],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
