"""Synthetic records of tables with an attribute at several levels."""

import numpy as np
import pandas as pd
import pytest

from rpexplore.errors import ReleaseError
from rpexplore.results.combination import combine
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.synthetic.records_folder import synthesize
from tests.results.estimates.test_level_counts import GROUPS, TABLES, planned, records, released


def test_records_have_every_whole_table_and_agree_with_themselves(tmp_path):
    plan = planned(impossible=[{"age": "0..3", "race": "c"}])
    people = records(300)
    people = people[(people["age"] > 3) | (people["race"] != "c")]
    release = released(plan, people, tmp_path)
    synthesize(release, tmp_path / "records")
    made = SyntheticRecords.load(tmp_path / "records")
    frame = made.records()
    whole = postprocess(release, tmp_path / "whole", method="nonnegative", rounded=True)
    assert len(frame) == made.n_records == int(whole.table()["value"].iloc[0])
    for names in filter(None, TABLES):
        table = whole.table(names)
        labels = [column for column in table.columns if column in names]
        counted = frame.groupby(labels, observed=False).size()
        expected = table.set_index(labels)["value"].astype(int)
        wanted = expected.rename(index=str)
        found = counted.rename(index=str).reindex(wanted.index, fill_value=0)
        pd.testing.assert_series_equal(found, wanted, check_names=False, check_dtype=False)
    ages = frame["age"].astype(int).to_numpy()
    for name in ("age@five", "age@adult", "age@odd"):
        of_ages = pd.Series(frame[name].astype(str)).groupby(GROUPS[name][ages]).nunique()
        assert of_ages.eq(1).all()  # one label for each group of ages
    assert not np.any((ages <= 3) & (frame["race"] == "c"))
    assert "agree at all levels" in (tmp_path / "records" / "README.md").read_text("utf-8")
    again = synthesize(combine(release), tmp_path / "again")
    pd.testing.assert_frame_equal(again.records(), frame)


def test_what_records_of_whole_counts_cannot_be_is_refused(tmp_path):
    release = released(planned(), records(50), tmp_path)
    for asked in ({"rows": 5}, {"never": ["sex=m"]}, {"ignore_codebook": True}):
        with pytest.raises(ReleaseError, match="records are those of the whole counts"):
            synthesize(release, tmp_path / "records", **asked)
