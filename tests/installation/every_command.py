"""Every command once, in the current folder; run where it has only what the core needs.

It needs rpexplore and nothing of the tests, so that it runs in any environment. What needs an extra
must be refused in one sentence. Arguments: modules to hide, as if they were not installed.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

BUDGET = ("--rho", "0.1")
AREAS = ("codebook.csv", "--areas", "homes.csv", "--separator", "|")
_ENTRY = {"name": "A", "curator": "B", "intended-use": "C", "region": "D", "actors": "E"}
_ENTRY |= {"sector": "Education", "justification": "F", "author": "G"}
ENTRY = [part for name, value in _ENTRY.items() for part in (f"--{name}", value)]
# In this order; each is done without any extra.
DONE = [
    ("--version",),
    ("schema", "codebook.csv"),
    ("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--out", "plan.json"),
    ("show", "plan.json"),
    ("forecast", "plan.json", "--expected-count", "100"),
    ("suggest", "plan.json", "--expected-count", "100"),
    ("verify", "plan.json"),
    ("rewrite", "plan.json", "--out", "again.json"),
    ("compare", "plan.json"),
    ("simulate", "plan.json", "--expected-count", "90"),
    ("release", "plan.json", "records.csv", "--out", "first"),
    ("release", "plan.json", "records.parquet", "--out", "second"),
    ("ledger", "records.csv"),
    ("answer", "first", "age=old"),
    ("combine", "first", "second", "--out", "both"),
    ("postprocess", "both", "--smooth", "--round", "--out", "published"),
    ("workbook", "published", "--out", "published.xlsx"),
    ("registry", "first", "--out", "entry.yaml", *ENTRY),
    ("publish", "published", "--out", "export", "--format", "csvw", "--format", "excel"),
    ("synthesize", "first", "--rows", "50", "--out", "synthetic"),
    ("counts", "presets"),
    ("counts", "template", "--codebook", "codebook.csv", "--out", "template.csv"),
    ("plan", "codebook.csv", "--count", "old: age = 'old' @ 1", *BUDGET, "--out", "counts.json"),
    ("release", "counts.json", "records.csv", "--out", "answers"),
    ("schema", *AREAS),
    ("plan", *AREAS, "--up-to", "1", "--detail", "same", *BUDGET, "--out", "areas.json"),
]
# The command, and the extra that it needs.
REFUSED = [
    (("app",), "app"),
    (("schema", "survey.sav"), "formats"),
    (("report", "plan.json", "--out", "report.html"), "app"),
    (("synthesize", "first", "--engine", "graphical_model", "--out", "no"), "synthetic"),
]
# Of databases, an address by the extra that is needed; the variable has the name of the extra.
CONNECTIONS = {
    "adbc": "sqlite:///records.db",
    "duckdb": "duckdb:///records.db",
    "postgres": "postgresql://ann@localhost/survey",
    "spark": "spark://",
}
TABLE = ("--table", "people", "--ledger", "ledger.sqlite", "--out", "no")
REFUSED += [(("release", "plan.json", "--database", extra, *TABLE), extra) for extra in CONNECTIONS]


def main(hidden: set[str]) -> None:
    sys.meta_path[:] = [_Hiding(finder, hidden) for finder in sys.meta_path]
    os.environ |= CONNECTIONS
    _write_inputs()
    import rpexplore as rp
    from rpexplore.cli.main import cli

    untried = set(_verbs(cli))
    if _write_key():
        DONE.append(("approve", "plan.json", "--key", "key", "--yes"))
    else:
        untried -= {("approve",)}
    for arguments in DONE:
        code, said = _run(cli, arguments)
        assert code == 0, (arguments, said)
        untried -= {arguments[:1], arguments[:2]}
    for arguments, extra in REFUSED:
        code, said = _run(cli, arguments)
        assert code == 2, (arguments, said)
        _check_sentence(said.removeprefix("error: "), extra)
        untried -= {arguments[:1]}
    assert not untried, f"try these commands here as well: {untried}"
    try:
        rp.CustomLoss(sum, "mine")
    except rp.errors.MissingExtraError as error:
        _check_sentence(str(error), "custom")
    else:
        raise AssertionError("a loss of one's own needs CVXPY")


class _Hiding:
    """A finder of modules that does not find some."""

    def __init__(self, finder: Any, hidden: set[str]) -> None:
        self._finder, self._hidden = finder, hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, fullname: str, *arguments: Any) -> Any:
        if fullname.partition(".")[0] in self._hidden:
            return None
        return self._finder.find_spec(fullname, *arguments)


def _write_inputs() -> None:
    lines = ["attribute,value", "age,young", "age,old", "sex,F", "sex,M"]
    Path("codebook.csv").write_text("\n".join(lines) + "\n", "utf-8")
    Path("homes.csv").write_text("home\n1|1\n1|2\n2|1\n2|2\n", "utf-8")
    Path("survey.sav").write_bytes(b"$FL2@(#) SPSS DATA FILE")
    records = [f"{('young', 'old')[i % 3 == 0]},{'FM'[i % 2]}" for i in range(90)]
    Path("records.csv").write_text("\n".join(["age,sex", *records]) + "\n", "utf-8")
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv("records.csv"), "records.parquet")


def _write_key() -> bool:
    """Write an SSH key; False where there is no ssh-keygen, without which nobody can approve."""
    if shutil.which("ssh-keygen") is None:
        return False
    key = ("-q", "-t", "ed25519", "-N", "", "-C", "ann@example.org", "-f", "key")
    subprocess.run(["ssh-keygen", *key], check=True)
    return True


def _verbs(command: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands below one that does something: ("counts", "presets")."""
    below = getattr(command, "commands", {})
    for name, verb in below.items():
        yield from _verbs(verb, (*names, name))
    if not below:
        yield names


def _run(cli: Any, arguments: tuple[str, ...]) -> tuple[Any, str]:
    """The exit code of a command, and what it said on standard error."""
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        try:
            cli(list(arguments))
            code = 0
        except SystemExit as end:
            code = end.code
    return code, errors.getvalue()


def _check_sentence(said: str, extra: str) -> None:
    sentence = r"The package '\w+' is needed for [^\n]+, and is not installed; install it with: "
    assert re.fullmatch(rf'{sentence}pip install "rpexplore\[{extra}\]"\n?', said), said


if __name__ == "__main__":
    main(set(sys.argv[1:]))
