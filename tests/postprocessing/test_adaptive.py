"""What is made of an adaptive release: records, biased in any case, and nothing unbiased."""

import pytest

from rpexplore.errors import ReleaseError
from rpexplore.postprocessing.combination_folder import load_measured, load_unbiased
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.synthetic.records_folder import synthesize
from rpexplore.releases.release import release
from tests.releases.adaptive.adaptive_run import PLAN, write_records


def test_records_are_made_of_all_that_was_measured(tmp_path):
    write_records(tmp_path / "records.csv")
    done = release(PLAN, tmp_path / "records.csv", tmp_path / "out")
    with pytest.raises(ReleaseError, match="biased, and unbiased tables are needed"):
        load_unbiased(tmp_path / "out")
    estimates = load_measured(tmp_path / "out")
    assert isinstance(estimates, Estimates)
    assert dict(estimates.variances) == dict(done.measured.variances)
    is_triple_measured = (0, 1, 3) in done.measured.variances
    assert estimates.tables == (((0, 1, 3),) if is_triple_measured else ((0, 1), (0, 3), (1, 3)))
    records = synthesize(estimates, tmp_path / "synthetic")
    assert records.n_records == pytest.approx(200, abs=60)
