"""What is made of an adaptive release: records, biased in any case, and nothing unbiased."""

import pandas as pd
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import BOUND
from rpexplore.releases.release import release
from rpexplore.results.combination import load_measured, load_unbiased
from rpexplore.results.publication import Publication
from rpexplore.results.results import load_results
from rpexplore.results.synthetic.comparison import MEASURED, NO_DIFFERENCE, RECORDS
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.synthetic.records_folder import synthesize
from rpexplore.results.unbiased import Estimates
from rpexplore.results.workbook import write_workbook
from tests.releases.adaptive_run import PLAN, write_records


def test_records_are_made_of_all_that_was_measured(tmp_path):
    write_records(tmp_path / "records.csv")
    done = release(PLAN, tmp_path / "records.csv", tmp_path / "out").part("rounds")
    with pytest.raises(
        ReleaseError,
        match="3 estimated tables, and unbiased tables are needed: adaptive estimates are biased",
    ):
        load_unbiased(tmp_path / "out")
    estimates = load_measured(tmp_path / "out")
    assert isinstance(estimates, Estimates)
    assert dict(estimates.variances) == dict(done.measured.variances)
    is_triple_measured = (0, 1, 3) in done.measured.variances
    assert estimates.tables == (((0, 1, 3),) if is_triple_measured else ((0, 1), (0, 3), (1, 3)))
    records = synthesize(estimates, tmp_path / "synthetic")
    assert records.n_records == pytest.approx(200, abs=60)
    # Opened later, too, they promise no exact error of any table.
    opened = SyntheticRecords.load(tmp_path / "synthetic")
    assert opened.manifest["is_adaptive"] is True
    assert set(opened.comparison["nearer"]) <= {MEASURED, NO_DIFFERENCE, RECORDS}
    readme = " ".join((tmp_path / "synthetic" / "README.md").read_text().split())
    for text in (opened.summary, readme):
        assert "they are biased as well, and have a bound on their error where one is known" in text
        assert "exact error" not in text
    assert "## Beside what was measured" in readme
    assert "may not be among the released ones" in readme


def test_a_workbook_has_the_bound_of_each_table(tmp_path):
    write_records(tmp_path / "records.csv")
    done = release(PLAN, tmp_path / "records.csv", tmp_path / "out").part("rounds")
    publication = Publication(leave_empty=True)
    write_workbook(load_results(tmp_path / "out"), tmp_path / "x.xlsx", publication=publication)
    label = pd.read_excel(tmp_path / "x.xlsx", header=None, dtype=str)
    (row,) = label.index[label[0] == "File"]
    listed = label.loc[row + 1 :].set_axis(label.loc[row].tolist(), axis=1)
    assert listed[BOUND].tolist() == done.describe_bounds()
    assert label[1].str.contains("adaptive, biased", case=False).any()
    (sheet,) = [name for name in listed["Sheet"] if name.endswith("region") and "age" not in name]
    cells = pd.read_excel(tmp_path / "x.xlsx", sheet)
    table = publication.table(done.table("region"))
    assert cells["value"].tolist() == pytest.approx(table["value"].tolist(), nan_ok=True)
    assert "unbiased_value" not in cells
