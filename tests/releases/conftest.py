"""Records, a folder to write to, and noise that is left out or forbidden."""

from pathlib import Path

import pytest

from rpexplore.planning.part_plan import PartPlan
from tests.releases.table_plan import CSV, PLANS, draw_by, no_noise


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    path.write_text(CSV)
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    """Where a release may go: the folder around it is empty."""
    (tmp_path / "outputs").mkdir()
    return tmp_path / "outputs" / "release"


@pytest.fixture(params=PLANS)
def planned(request) -> PartPlan:
    """A plan of either kind."""
    return PLANS[request.param]


@pytest.fixture
def without_noise(monkeypatch):
    draw_by(monkeypatch, no_noise)


@pytest.fixture
def forbidden_noise(monkeypatch):
    def draw(*args, **options):
        raise AssertionError("noise was drawn")

    draw_by(monkeypatch, draw)
