"""Released cells, against the rows they come from; their words and parts."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.released_cells import (
    ReleasedCells,
    describe_margin,
    describe_sum,
    vector_of,
)
from rpexplore.domain.result_schema import PROCESSED, RELEASED, SMOOTH, Schema, frame_of
from rpexplore.errors import WorkloadError
from rpexplore.releases.table_cells import label_columns, parquet_of, table_of_cells
from tests.support.results import names_of, with_roles
from tests.support.strategies import domains

ATTRIBUTES = (
    rp.Attribute("age", rp.Integers(0, 2)),
    rp.Attribute("age label", rp.Categories(("f", "m"), ("female", "male"))),
    rp.Attribute("value", rp.Categories(("a", "b", "c", "d"))),
)
NAMES = [attribute.name for attribute in ATTRIBUTES]


def rows(attributes, values, variances) -> pd.DataFrame:
    """As a release folder has them."""
    return frame_of(table_of_cells([label_columns(each) for each in attributes], values, variances))


def made(values=None, error=2.0) -> pd.DataFrame:
    shape = [attribute.size for attribute in ATTRIBUTES]
    values = np.arange(24.0).reshape(shape) - 3 if values is None else values
    return rows(ATTRIBUTES, values, np.full(shape, error**2))


def as_processed(frame: pd.DataFrame, values) -> pd.DataFrame:
    place, labels = frame.columns.get_loc("value"), Schema.of(frame).labels
    frame = frame.rename(columns={"value": "unbiased_value"})
    frame.insert(place, "value", values)
    return with_roles(frame.assign(value_is="rounded; biased"), PROCESSED, labels)


@given(domains(max_attributes=3, max_size=4), st.randoms())
def test_cells_are_the_rows_by_axis(domain, random):
    shape = domain.sizes.tolist()
    values = np.array([random.uniform(-9, 9) for _ in range(np.prod(shape))]).reshape(shape)
    variances = np.abs(values) + 1
    cells = ReleasedCells.of(rows(domain.attributes, values, variances), domain.names)
    np.testing.assert_array_equal(cells.value, values)
    np.testing.assert_allclose(cells.standard_error**2, variances)
    np.testing.assert_allclose(cells.margin, 1.959963984540054 * np.sqrt(variances))
    assert [axis.name for axis in cells.axes] == list(domain.names)
    assert [list(axis.labels) for axis in cells.axes] == [each.labels() for each in domain]


def test_labels_stand_for_codes_and_no_attribute_is_taken_for_a_label():
    frame = made()
    assert list(frame.columns[:4]) == ["age", "age label", "age label label", "value (attribute)"]
    age, sex, value = ReleasedCells.of(frame, NAMES).axes
    assert age.labels == ("0", "1", "2")
    assert (sex.labels, sex.codes) == (("female", "male"), ("f", "m"))
    assert (value.name, value.labels) == ("value", ("a", "b", "c", "d"))


def test_the_total_has_no_axes():
    cells = ReleasedCells.of(rows((), np.array(7.0), np.array(4.0)), [])
    assert (cells.axes, float(cells.value), float(cells.standard_error)) == ((), 7.0, 2.0)
    assert list(cells.frame.columns) == names_of(RELEASED)


def test_rows_that_are_not_all_cells_are_refused():
    with pytest.raises(WorkloadError, match=r"23 rows, and its labels make 24 cells"):
        ReleasedCells.of(made().iloc[:-1], NAMES)


def test_parts_are_those_of_the_array():
    cells = ReleasedCells.of(made(), NAMES)
    fixed = cells.at({"age label": 1})
    np.testing.assert_array_equal(fixed.value, cells.value[:, 1, :])
    assert fixed.remarks == "age label: male."
    turned = fixed.along(["value", "age"])
    np.testing.assert_array_equal(turned.upper, fixed.upper.T)
    assert [axis.name for axis in turned.axes] == ["value", "age"]
    some = turned.only("value", [3, 1])
    np.testing.assert_array_equal(some.value, fixed.value.T[[3, 1]])
    assert some.axes[0].labels == ("d", "b")
    cut = turned.first([2, 5])
    np.testing.assert_array_equal(cut.lower, fixed.lower.T[:2])
    assert cut.axes[0].labels == ("a", "b")
    assert cut.remarks == (
        "age label: male. Of the 4 values of value the first 2 are shown; the list has them all."
    )


def test_the_frame_gives_the_rows_back():
    frame = made()
    result = ReleasedCells.of(frame, NAMES).along(["value", "age label", "age"]).frame
    assert list(result.columns[:3]) == ["value (attribute)", "age label", "age"]
    back = result.sort_values(["age", "age label", "value (attribute)"], ignore_index=True)
    for name in ("value", "standard_error", "lower_95", "upper_95"):
        np.testing.assert_allclose(back[name], frame[name])
    assert back["age label"].tolist() == frame["age label label"].tolist()


def test_processed_counts_keep_the_unbiased_ones_and_their_label():
    frame = made()
    cells = ReleasedCells.of(as_processed(frame, np.maximum(frame["value"], 0)), NAMES)
    assert cells.is_biased
    assert cells.value.min() == 0
    np.testing.assert_array_equal(cells.unbiased.ravel(), frame["value"])
    np.testing.assert_array_equal(cells.lower.ravel(), frame["lower_95"])
    result = cells.frame
    assert Schema.of(result).figures == PROCESSED
    assert set(result["value_is"]) == {"rounded; biased"}
    part = cells.at({"age": 0, "value": 0})
    assert part.describe_bars("counts of people").startswith(
        "Processed (biased) counts of people by age la"
    )
    assert "unbiased noisy counts and their 95 % intervals" in part.describe_bars(
        "counts of people"
    )


def test_smooth_counts_have_the_margin_of_the_model_and_are_publishable_by_it():
    frame = as_processed(made(), 100.0)
    errors = np.full(len(frame), 10.0)
    errors[0], errors[1] = np.nan, 21.0
    frame.insert(frame.columns.get_loc("unbiased_value"), "model_error", errors)
    frame = with_roles(frame, SMOOTH, Schema.of(made()).labels)
    cells = ReleasedCells.of(frame, NAMES)
    assert cells.is_smooth
    assert cells.publishable(0.2).ravel().tolist() == [False, False, *[True] * 22]
    part_names = ["value", "age label"]
    part = cells.at({"age": 0}).along(part_names)
    pd.testing.assert_frame_equal(cells.frame[names_of(SMOOTH)], frame[names_of(SMOOTH)])
    empty = cells.suppressed(0.2).frame
    assert empty["model_error"].isna().tolist() == empty["value"].isna().tolist()
    assert part.describe_bars("counts of people").startswith(
        "Smooth (biased) counts of people by value"
    )
    doubtful = part.describe_heat("counts of people", by_margin=False, crossed=False)
    assert "the unbiased count's interval includes 0" in doubtful
    assert "blank" not in doubtful
    assert "blank" in part.describe_heat("counts of people", by_margin=True, crossed=False)


def test_what_may_be_zero_is_where_the_margin_is_all_of_the_count():
    cells = ReleasedCells.of(made(), NAMES)
    expected = [abs(row.value) <= 1.96 * 2.0 for row in made().itertuples()]
    assert cells.includes_zero.ravel().tolist() == expected
    np.testing.assert_array_equal(cells.relative_margin >= 1, cells.includes_zero)
    assert np.isinf(cells.relative_margin.ravel()[3])  # the count is exactly 0
    assert cells.relative_margin.ravel()[-1] == pytest.approx(1.959964 * 2 / 20)


def test_sentences_say_how_many_may_be_zero():
    cells = ReleasedCells.of(made(), NAMES).at({"age label": 0})
    doubtful = int(cells.includes_zero.sum())
    assert doubtful > 0
    sentence = cells.describe_heat("counts of people", by_margin=False, crossed=True)
    assert sentence.startswith("Noisy counts of people by age and value;")
    assert f"In {doubtful} of 12 cells the interval includes 0" in sentence
    assert "Such cells are crossed." in sentence
    assert sentence.endswith("age label: female.")
    assert "left blank" in cells.describe_heat("counts of people", by_margin=True, crossed=False)
    sure = ReleasedCells.of(made(error=1e-3, values=np.full((3, 2, 4), 5.0)), NAMES)
    text = sure.at({"age label": 0}).describe_heat("counts of people", by_margin=True, crossed=True)
    assert text.endswith("No interval includes 0. age label: female.")
    bars = cells.along(["value", "age"]).describe_bars("counts of people")
    assert bars.startswith("Noisy counts of people by value, side by side for each age.")


def test_margins_in_words():
    assert describe_margin(made(error=10), "people") == "±19.6 people"
    frame = rows(ATTRIBUTES[:1], np.zeros(3), np.array([1.0, 4.0, 100.0]))
    assert describe_margin(frame, "people") == (
        "±1.96 people (the most accurate cell) to ±19.6 (the least accurate one)"
    )


def test_labels_may_be_read_back_from_a_file(tmp_path):
    """Where dictionaries may be in another order than the rows."""
    frame = made()
    shuffled = pd.Categorical(frame["value (attribute)"], categories=["d", "b", "a", "c"])
    cells = ReleasedCells.of(frame.assign(**{"value (attribute)": shuffled}), NAMES)
    assert cells.axes[2].labels == ("a", "b", "c", "d")
    (tmp_path / "a.parquet").write_bytes(parquet_of(frame))
    read = frame_of(pq.read_table(tmp_path / "a.parquet"))
    assert Schema.of(read) == Schema.of(frame)
    again = ReleasedCells.of(read, NAMES)
    np.testing.assert_array_equal(again.value, cells.value)


def test_sums_in_words():
    region = rp.Attribute("region", rp.Categories(("a", "b", "c", "d")))
    sex = rp.Attribute("sex", rp.Categories(("f", "m")))
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 99)), sex, region))
    chosen = {"age": range(18, 25), "sex": (), "region": (0, 1, 3)}
    text = describe_sum(domain, chosen, 1234.4, 10.0, "people")
    assert text == (
        "people with age 18 to 24 and region a, b or d: 1,234 ±19.6, 95 % of the time (σ = 10)"
    )
    everybody = describe_sum(domain, {"age": range(100)}, 5.0, 1.0, "people")
    assert everybody.startswith("people in all: 5 ±1.96")
    assert vector_of(region, (1, 3)) == [0, 1, 0, 1]
    assert vector_of(region, ()) == [1, 1, 1, 1]
