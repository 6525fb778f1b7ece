"""What was measured in several files is read as if it were one."""

import numpy as np
import pyarrow.parquet as pq

from rpexplore.releases.release import release
from rpexplore.releases.residual_files import StoredResiduals, residual_files
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.unbiased import Estimates
from tests.releases.table_plan import PLAN, draw_by, entries

FILE, ROWS = "residuals.parquet", "rpexplore.releases.residual_files._ROWS_PER_FILE"


def by_scale(size, gamma_squared):
    return np.full(size, int(gamma_squared) % 1009)


def test_several_files_hold_what_one_does(data, output, monkeypatch):
    draw_by(monkeypatch, by_scale)
    one = release(PLAN, data, output).part("tables")
    every = list(range(len(PLAN.closure)))
    whole = pq.read_table(output / FILE).to_pandas()
    expected = StoredResiduals(output, PLAN.closure).measured(every)
    estimates, counts = Estimates.of(one), one.counts("sex", "age")
    monkeypatch.setattr(ROWS, 4)
    several = release(PLAN, data, output.with_name("several"))
    assert list(residual_files(PLAN.closure).values()) == [range(2), range(2, 3), range(3, 4)]
    assert entries(several.folder / "residuals") == [f"000{i}.parquet" for i in range(3)]
    assert not (several.folder / FILE).exists()
    assert pq.read_table(several.folder / "residuals").to_pandas().equals(whole)
    assert "`residuals/` holds" in (several.folder / "README.md").read_text()
    several = TableRelease.load(several.folder)
    read = StoredResiduals(several.folder, PLAN.closure).measured(every)
    assert all(np.array_equal(read[residual], expected[residual]) for residual in every)
    assert several.counts("sex", "age").equals(counts)
    contributions = Estimates.of(several).contributions
    assert contributions.keys() == estimates.contributions.keys()
    for subset, values in estimates.contributions.items():
        assert np.array_equal(values, contributions[subset])
