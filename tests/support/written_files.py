"""Which files a program opens for writing, as the kernel sees it: also those that are gone."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(
    STRACE is None and os.environ.get("RPEXPLORE_REQUIRE_STRACE") != "1",
    reason="no strace found; on Debian: apt-get install strace",
)
_OPENED = re.compile(
    r"(?:openat2?|open|creat)\(.*\b(?:O_WRONLY|O_RDWR|O_CREAT)\b.* = \d+<(.*)>(\(deleted\))?$"
)
# No files: what is written there is in memory, or nowhere.
_NO_FILES = re.compile(r"/dev/(null|tty|pts/.*)|/proc/.*|(pipe|socket|anon_inode):.*|/memfd:.*")


class Written:
    """Files that a program and all that it starts open for writing; TMPDIR is a folder beside."""

    def __init__(self, folder: Path) -> None:
        self._traces = folder / "traces"
        self._temporary = folder / "temporary"
        for made in (self._traces, self._temporary):
            made.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "TMPDIR": str(self._temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    @property
    def command(self) -> list[str]:
        """What stands before the arguments of Python, so that it is watched."""
        # One file a thread, in which no line is cut; -y names files by what they are, not were.
        watch = ["-ff", "-qq", "-y", "-s", "4096", "-o", str(self._traces / "of"), "--seccomp-bpf"]
        calls = "trace=open,openat,openat2,creat"
        return [str(STRACE), "-f", *watch, "-e", calls, sys.executable]

    def run(self, script: str, cwd: Path, **variables: str) -> None:
        """Run a script of Python in a folder; fails if it does."""
        # Told so, as it would try by a file of its own where temporary files can be.
        told = "import os, tempfile; tempfile.tempdir = os.environ['TMPDIR']\n"
        done = subprocess.run(
            [*self.command, "-c", f"{told}{script}"],
            cwd=cwd,
            env=self.environment | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def outside(self, *allowed: Path) -> set[str]:
        """The files that were opened for writing, but for these and those in these."""
        places = [str(place.resolve()) for place in allowed]
        return {
            path
            for path in self._paths()
            if not any(path == place or path.startswith(f"{place}/") for place in places)
        }

    def _paths(self) -> Iterator[str]:
        for trace in self._traces.iterdir():
            for line in trace.read_text("utf-8", "replace").splitlines():
                if (opened := _OPENED.match(line)) and not _NO_FILES.fullmatch(opened[1]):
                    yield opened[1]
