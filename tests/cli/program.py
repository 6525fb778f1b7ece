"""The program for tests of the command line: a codebook, and verbs run in a folder."""

import json
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from rpexplore.cli.main import cli
from tests.support.processes import heed_signals

CODEBOOK = """attribute,value,label
age,young,
age,old,
sex,F,Female
sex,M,Male
region,R1,North
region,R2,South
region,R3,Elsewhere
"""
BUDGET = ("--loss", "sum", "--rho", "0.1")


class Program:
    """Runs verbs in this process, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, input: str | None = None):
        return CliRunner().invoke(cli, list(arguments), input=input)

    def done(self, *arguments: str) -> str:
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return result.stdout

    def json(self, *arguments: str) -> dict:
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, *arguments: str) -> str:
        """The message of an error, which is one line on standard error and nothing else."""
        result = self(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
        return result.stderr

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


def started(*arguments: str, patch: str = "", **options) -> subprocess.Popen:
    """The program as a process, with `patch` run in it first. It ignores no signal."""
    source = f"{patch}\nfrom rpexplore.cli.main import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
        **options,
    )
