"""Every input answered: one line that names what is wrong, exit code 2, nothing written or charged.

A fast part in `make test`; all of it, some 1,700 inputs, in `make test-all`.
"""

import csv
import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.common.json_fields import sealed_text
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.errors import WorkloadError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from tests.attacks.malformed import ODD_TEXTS, blobs, edited_file, flipped
from tests.support.processor_time import is_slow

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
PATIENCE = 20  # seconds of processor time for one input
CODEBOOK = """attribute,value,label
age,young,
age,old,
sex,F,Female
sex,M,Male
region,R1,
region,R2,
"""
# What an exception of Python would say: its kind, or the type of a value.
PYTHON = re.compile(
    r"NoneType|[A-Z]\w+Error\b|'(int|float|str|bool|list|tuple|dict|bytes)'|<class|object at 0x"
    r"| object is | object has | unhashable | positional | keyword argument| indices must be"
    r"| to C long"
)
PLAN = ("plan", "codebook.csv", "--up-to", "2", "--rho", "1")
COUNTS = ("plan", "codebook.csv", "--counts")
QUERIES = "everybody: total ± 50\nold: age = old ± 20\n"


def part(inputs: Iterable) -> list:
    """All inputs by night, every twelfth one by day."""
    return list(inputs) if NIGHTLY else list(inputs)[::12]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with one good file of every kind."""
    folder = tmp_path_factory.mktemp("good")
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("codebook.csv").write_text(CODEBOOK, "utf-8")
        Path("queries.txt").write_text(QUERIES, "utf-8")
        rows = [f"{('young', 'old')[i % 3 == 0]},{'FM'[i % 2]},R{i % 2 + 1}" for i in range(60)]
        Path("records.csv").write_text("\n".join(["age,sex,region", *rows]) + "\n", "utf-8")
        rp.Domain.load("codebook.csv").save("codebook.json")
        for arguments in (
            (*PLAN, "--out", "plan.json"),
            ("release", "plan.json", "records.csv", "--out", "release", "--yes"),
            ("postprocess", "release", "--out", "processed", "--nonnegative"),
        ):
            result = CliRunner().invoke(cli, list(arguments))
            assert result.exit_code == 0, result.output
    finally:
        os.chdir(before)
    return folder


class Attacked:
    """Runs verbs in a copy of the good folder, and judges how they answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def __call__(self, *arguments: str) -> int:
        """Run a verb; its exit code. What it must not do is noted in `problems`."""
        before, began = self._names(), time.process_time()
        result = CliRunner().invoke(cli, list(arguments))
        wrong = {
            "too slow": is_slow(time.process_time() - began, PATIENCE),
            "traceback": "Traceback" in result.output or "is a bug" in result.output,
            "exit code": result.exit_code not in (0, 1, 2),
            "Python's words": PYTHON.search(result.output) is not None,
        }
        if result.exit_code == 2:
            wrong |= {
                "not one line": not re.fullmatch(r"error: [^\n]+\n", result.stderr),
                # A release tells first what it would cost.
                "output": result.stdout != "" and arguments[0] != "release",
                "written": self._names() != before,
                "long": len(result.stderr) > 2000,
            }
        if any(wrong.values()):
            kinds = ", ".join(kind for kind, holds in wrong.items() if holds)
            self.note(f"{kinds}: {arguments}: {result.output[:300]!r}")
        return result.exit_code

    def note(self, problem: str) -> None:
        self.problems.append(problem)

    def _names(self) -> set[Path]:
        return {path.relative_to(self.folder) for path in self.folder.rglob("*")}


@pytest.fixture
def attacked(finished, tmp_path, monkeypatch) -> Iterator[Attacked]:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    attacked = Attacked(tmp_path)
    yield attacked
    assert not attacked.problems, f"{len(attacked.problems)}:\n" + "\n".join(attacked.problems)


def outputs() -> Iterator[str]:
    """A new name each time, so that no output is refused for being there."""
    return (f"out{i}" for i in range(10**6))


def test_files_that_are_something_else(attacked):
    out = outputs()
    verbs: list[Callable[[str], tuple[str, ...]]] = [
        lambda file: ("schema", file),
        lambda file: ("plan", file, *PLAN[2:], "--out", f"{next(out)}.json"),
        lambda file: ("plan", "codebook.csv", "--tables", file, "--rho", "1", "--out", "o.json"),
        lambda file: (*PLAN, "--basis", f"age=custom:{file}", "--out", "o.json"),
        lambda file: ("plan", "codebook.csv", "--request", file, "--out", f"{next(out)}.json"),
        lambda file: ("counts", "template", "--codebook", file, "--out", f"{next(out)}.csv"),
        lambda file: (*COUNTS, file, "--rho", "1", "--out", f"{next(out)}.json"),
        lambda file: ("show", file),
        lambda file: ("verify", file),
        lambda file: ("rewrite", file, "--out", f"{next(out)}.json"),
        lambda file: ("report", file, "--out", f"{next(out)}.html"),
        lambda file: ("release", file, "records.csv", "--out", next(out), "--yes"),
        lambda file: ("release", "plan.json", file, "--out", next(out), "--yes"),
        lambda file: ("release", "plan.json", "records.csv", "--ledger", file, "--out", "o"),
        lambda file: ("ledger", "records.csv", "--ledger", file),
        lambda file: ("answer", file, "total"),
        lambda file: ("postprocess", file, "--round", "--out", next(out)),
        lambda file: ("combine", "release", "--noisy", f"{file}:1", "--out", next(out)),
    ]
    endings = (".csv", ".json", ".parquet", ".npy", ".txt")
    cases = [(verb, blob, ending) for verb in verbs for blob in blobs() for ending in endings[:2]]
    cases += [(verb, blob, end) for verb in verbs for blob in blobs()[::6] for end in endings[2:]]
    for number, (verb, blob, ending) in enumerate(part(cases)):
        file = Path(f"attack{number}{ending}")
        file.write_bytes(blob)
        attacked(*verb(file.name))
        if file.is_file():
            file.unlink()


def test_plans_with_one_value_changed_are_refused(attacked):
    chooser = random.Random(1)
    for changed in part(edited_file(Path("plan.json"), chooser, 300)):
        Path("plan.json").write_bytes(changed)
        if attacked("verify", "plan.json") == 0:
            attacked.note(f"verified: {changed[:3000]!r}")
        if attacked("release", "plan.json", "records.csv", "--out", "new", "--yes") != 2:
            attacked.note(f"released: {changed[:3000]!r}")
            shutil.rmtree("new")
        attacked("show", "plan.json")


def test_codebooks_with_one_value_changed_are_answered(attacked):
    chooser = random.Random(2)
    for changed in part(edited_file(Path("codebook.json"), chooser, 200)):
        Path("codebook.json").write_bytes(changed)
        attacked("schema", "codebook.json")


def test_projects_with_one_value_changed_are_answered(attacked):
    """The app reads them; there is no verb that does."""
    Path("project.json").write_text(
        Project((Scenario.of_plan(TablePlan.load("plan.json")),)).text()
    )
    for changed in part(edited_file(Path("project.json"), random.Random(4), 300)):
        try:
            Project.parse(sealed_text(json.loads(changed)))
        except rp.errors.RpexploreError as error:
            if PYTHON.search(str(error)):
                attacked.note(str(error))


def test_lists_with_odd_texts_are_answered(attacked):
    """Tables, queries and codebooks as CSV, one cell of which is something else."""
    good = {
        "tables.csv": ["attributes,weight,target,required", '"age,sex",2,±50,yes', "total,1,,no"],
        "queries.csv": [
            "name,condition,by,target",
            "old,age = old,sex,± 20",
            "all,total,,5 % of 100",
        ],
        "codebook.csv": ["attribute,value,label,group", "age,young,Young,", "age,old,Old,All"],
    }
    out = outputs()
    plan = ("plan", "codebook.csv", "--rho", "1", "--tables", "tables.csv", "--out")
    verbs = {
        "tables.csv": lambda: (*plan, f"{next(out)}.json"),
        "queries.csv": lambda: (*COUNTS, "queries.csv", "--rho", "1", "--out", f"{next(out)}.json"),
        "codebook.csv": lambda: ("schema", "codebook.csv"),
    }
    cases = [
        (name, row, column, text) for name, lines in good.items() for row in range(len(lines))
        for column in range(4) for text in ODD_TEXTS
    ]  # fmt: skip
    for name, row, column, text in part(cases):
        before = Path(name).read_bytes() if Path(name).exists() else None
        rows = list(csv.reader(good[name]))
        rows[row][column] = text
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        attacked(*verbs[name]())
        Path(name).unlink() if before is None else Path(name).write_bytes(before)


def test_expected_counts_of_odd_files_are_refused():
    """The app reads them; there is no verb that does."""
    domain = rp.Domain.parse(CODEBOOK, "codebook.csv")
    for blob in blobs():
        with pytest.raises(WorkloadError):
            expected_counts_from_csv(domain, blob, "counts.csv")


def test_releases_with_one_bit_changed_are_refused(attacked):
    chooser = random.Random(3)
    files = sorted(path for path in Path("release").rglob("*") if path.is_file())
    for file in files:
        content = file.read_bytes()
        for changed in part(flipped(content, chooser, 40)):
            file.write_bytes(changed)
            if attacked("answer", "release", "total") != 2:
                attacked.note(f"believed: {file}: {set(changed) ^ set(content)}")
        file.write_bytes(content)


def test_options_with_odd_texts_are_answered(attacked):
    out = outputs()
    options = {
        PLAN: ("--rho", "--of-order", "--at-most-cells", "--table", "--tables", "--weight",
               "--loss", "--target", "--basis", "--weighting", "--relative-to", "--out"),
        ("release", "plan.json", "records.csv", "--yes"): (
            "--unknown-values", "--missing-values", "--person-id", "--excess", "--ledger",
            "--limit-rho", "--database", "--out"),
        ("show", "plan.json"): ("--tables", "--csv"),
        ("report", "plan.json"): ("--out", "--record-noun"),
        ("answer", "release"): ("total",),
        ("ledger", "records.csv"): ("--limit-record-rho", "--ledger"),
        ("postprocess", "release", "--nonnegative"): ("--gap", "--out"),
        ("combine", "release"): ("--noisy", "--ledger", "--out"),
    }  # fmt: skip
    cases = [
        (start, option, text) for start, names in options.items() for option in names
        for text in ODD_TEXTS
    ]  # fmt: skip
    for start, option, text in part(cases):
        if "--out" not in (*start, option) and start[0] in ("plan", "release", "postprocess"):
            start = (*start, "--out", next(out) + (".json" if start[0] == "plan" else ""))
        given = (f"{option}={text}",) if option.startswith("--") else (text,)
        attacked(*start, *given)


TEXT_INPUTS = {
    "a codebook as CSV": ("schema", "huge.csv"),
    "a codebook": ("schema", "huge.json"),
    "areas": ("plan", "codebook.csv", "--areas", "huge.csv", "--rho", "1", "--out", "o.json"),
    "own counts": (*COUNTS, "huge.csv", "--rho", "1", "--out", "o.json"),
    "tables": ("plan", "codebook.csv", "--tables", "huge.csv", "--rho", "1", "--out", "o.json"),
    "a matrix": (*PLAN, "--basis", "age=custom:huge.csv", "--out", "o.json"),
    "a request": ("plan", "codebook.csv", "--request", "huge.csv", "--out", "o.json"),
    "expected counts": ("show", "plan.json", "--expected", "huge.csv"),
    "a public table": ("forecast", "plan.json", "--public", "huge.csv"),
    "a plan": ("verify", "huge.json"),
    "an approval": ("verify", "plan.json", "--approval", "huge.csv"),
    "a noisy table": ("combine", "release", "--noisy", "huge.csv:25", "--out", "o"),
    "a device without end": ("forecast", "plan.json", "--public", "/dev/zero"),
}


@pytest.mark.parametrize("kind", TEXT_INPUTS)
def test_files_of_any_size_are_refused_before_they_are_read(attacked, kind):
    """A gigabyte and more of one sparse file: no memory and no time is spent on it."""
    for name in ("huge.csv", "huge.json"):
        with open(name, "wb") as file:
            file.truncate(1_100_000_000)
    result = CliRunner().invoke(cli, list(TEXT_INPUTS[kind]))
    assert result.exit_code == 2, result.output
    assert "has more than the " in result.stderr or "more than any codebook" in result.stderr


def test_rows_of_a_public_table_are_read_no_further_than_the_first_wrong_one():
    """The open quote at the end, or millions of lines before it, are not come to."""
    domain = rp.Domain.from_sizes({"age": 2})
    wrong = b'age,count\n0,5\n0,6\n1,7\n"'
    with pytest.raises(WorkloadError, match=r"Line 3: .* twice"):
        expected_counts_from_csv(domain, wrong, "counts.csv")
