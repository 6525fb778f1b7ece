"""Folders with a codebook, records and a plan."""

from pathlib import Path

import pytest

from rpexplore.analysis import drawn_areas, populations
from tests.cli.program import BUDGET, CODEBOOK, Program


@pytest.fixture(autouse=True)
def few_populations(monkeypatch):
    """Each forecast draws 48, which takes 0.1 s; how ranges hold is tried in `tests/analysis`."""
    monkeypatch.setattr(populations, "N_POPULATIONS", 6)
    monkeypatch.setattr(drawn_areas, "_GRAINS", ((6, 24),))


@pytest.fixture
def run(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    Path("codebook.csv").write_text(CODEBOOK, "utf-8")
    rows = [f"{('young', 'old')[i % 3 == 0]},{'FM'[i % 2]},R{i % 3 + 1}" for i in range(90)]
    Path("records.csv").write_text("\n".join(["age,sex,region", *rows]) + "\n", "utf-8")
    return Program(tmp_path)


@pytest.fixture
def planned(run) -> Program:
    run.done("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--out", "plan.json")
    return run


@pytest.fixture
def planned_with_bases(run) -> Program:
    Path("mine.csv").write_text("query,R1,R2,R3\nnorth,1,0,0\nnot east,1,1,0\nall,1,1,1\n")
    Path("mine.npy").write_bytes(b"no matrix")
    bases = ["age=prefix", "region=custom:mine.csv", "region=ranges@region"]
    options = [option for basis in bases for option in ("--basis", basis)]
    run.done("plan", "codebook.csv", "--up-to", "2", *options, *BUDGET, "--out", "plan.json")
    return run
