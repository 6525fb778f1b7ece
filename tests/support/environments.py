"""Environments of their own, as pip makes them, for what cannot be in that of the tests."""

import subprocess
import sys
import venv
from pathlib import Path


def environment(folder: Path, *requirements: str) -> Path:
    """The interpreter of a new environment with these, and without pip."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return python


def run(python: Path, *arguments: str, cwd: Path) -> str:
    """What an interpreter prints, isolated from this checkout."""
    done = subprocess.run(
        [python, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
