"""Publishable cells of released tables, by their own noisy counts."""

import numpy as np
import pandas as pd
import pytest

from rpexplore.domain.result_schema import ADAPTIVE, PROCESSED, RELEASED, SMOOTH, Schema
from rpexplore.domain.survey import Sampling, SurveyDesign
from rpexplore.errors import WorkloadError
from rpexplore.results.publication import Publication, SmoothingGain, has_errors
from tests.support.results import with_roles

# CVs of 10, 20, 21, 10 and 100 %, and none where the count is 0; −100 is not above 0.
COUNTS, ERRORS = [100, 50, 100, -100, 5, 0], [10, 10, 21, 10, 5, 1]
ANSWERS = ["yes", "yes", "no", "no", "no", "no"]


def released(name: str = "cv") -> pd.DataFrame:
    """name: of the attribute"""
    values, errors = np.array(COUNTS, dtype=float), np.array(ERRORS, dtype=float)
    frame = pd.DataFrame(
        {
            name: list("abcdef"),
            "value": values,
            "standard_error": errors,
            "lower_95": values - 2 * errors,
            "upper_95": values + 2 * errors,
        }
    )
    return with_roles(frame, RELEASED)


def processed() -> pd.DataFrame:
    frame = released().rename(columns={"value": "unbiased_value"})
    frame.insert(1, "value", 1000.0)
    return with_roles(frame.assign(value_is="rounded; biased"), PROCESSED)


def smooth() -> pd.DataFrame:
    """By the model-based error of the smooth counts, whatever the unbiased ones are."""
    frame = released().rename(columns={"standard_error": "model_error"})
    frame.insert(3, "unbiased_value", 1000.0)
    frame.insert(4, "standard_error", 700.0)
    return with_roles(frame.assign(value_is="smooth; biased"), SMOOTH)


def adaptive() -> pd.DataFrame:
    """Estimates of an adaptive release, with nothing unbiased beside them."""
    frame = released().rename(columns={"standard_error": "model_error"})
    return with_roles(frame.assign(value_is="estimated; biased"), ADAPTIVE)


@pytest.mark.parametrize("made", [released, processed, smooth, adaptive])
def test_cells_up_to_the_limit_and_above_0_are_publishable(made):
    frame = made()
    table = Publication(0.2).table(frame)
    n_labels = 1
    assert table.columns[0] == "cv (attribute)"
    modelled = made in (smooth, adaptive)
    behind = table.columns.get_loc("model_error" if modelled else "upper_95") + 1
    assert table.columns[behind : behind + 3].tolist() == ["cv", "quality", "publishable"]
    assert table["quality"].tolist() == [*"BCDEEE"]
    assert table["publishable"].tolist() == ANSWERS
    assert table["cv"].tolist() == pytest.approx([0.1, 0.2, 0.21, 0.1, 1, np.nan], nan_ok=True)
    of_frame, of_table = Schema.of(frame), Schema.of(table)
    assert [one.name for one in of_table.columns] == table.columns.tolist()
    assert of_frame.has_unbiased == of_table.has_unbiased == (made in (processed, smooth))
    assert of_table.labels[0].attribute == "cv"
    kept = table.drop(columns=["cv", "quality", "publishable"])
    assert kept.iloc[:, n_labels:].equals(frame.iloc[:, n_labels:])
    # 21 % and 100 % are within 100 %; what is not above 0 is not publishable at any limit.
    assert Publication(1.0).publishable(frame).tolist() == [True, True, True, False, True, False]


@pytest.mark.parametrize("made", [released, processed, smooth, adaptive])
def test_other_cells_are_left_empty_if_wanted(made):
    frame = made()
    table = Publication(0.2, leave_empty=True).table(frame)
    emptied = ("value", "model_error", "unbiased_value", "lower_95", "cv")
    numbers = [name for name in table if name in emptied]
    assert table.loc[2:, numbers].isna().to_numpy().all()
    assert table.loc[:1, numbers].notna().to_numpy().all()
    if made is not adaptive:
        assert table["standard_error"].tolist() == frame["standard_error"].tolist()
    assert table["publishable"].tolist() == ANSWERS
    assert frame.equals(made())  # the release's own table is as it was


def test_smooth_cells_without_a_model_based_error_are_not_publishable():
    frame = smooth().assign(model_error=np.nan)
    assert has_errors(smooth())
    assert not has_errors(frame)
    table = Publication().table(frame)
    assert set(table["publishable"]) == {"no"}
    assert table["cv"].isna().all()
    assert set(table["quality"]) == {""}


def test_an_attribute_called_as_a_processed_count_keeps_its_labels():
    frame = released("unbiased_value")
    table = Publication(0.2, leave_empty=True).table(frame)
    assert table["unbiased_value"].tolist() == list("abcdef")
    assert table["value"].isna().tolist() == [answer == "no" for answer in ANSWERS]


def test_a_single_count_is_left_empty_by_the_same_rule():
    empty = Publication(0.2, leave_empty=True)
    hidden = [empty.hides(*cell) for cell in zip(COUNTS, ERRORS, strict=True)]
    assert hidden == [answer == "no" for answer in ANSWERS]
    assert not Publication(0.2).hides(5, 5)


def test_a_survey_s_own_error_counts_beside_the_noise():
    """d (1 − f) = 2 · 0.5 = 1: variances 100 + 100, 100 + 50, 441 + 100; of 5 people 25 + 5.

    Counts below 0 have the noise alone. With 400 records a fourth of the sampling is gone at 100.
    """
    design = SurveyDesign(2.0, sampling_fraction=0.5)
    total = Publication(0.2, sampling=Sampling(design))
    table = total.table(released())
    exact = [0.02**0.5, 150**0.5 / 50, 541**0.5 / 100, 0.1, 30**0.5 / 5, np.nan]
    assert table["cv"].tolist() == pytest.approx(exact, nan_ok=True)
    assert table["quality"].tolist() == [*"CDDEEE"]
    assert table["publishable"].tolist() == ["yes", *["no"] * 5]
    (column,) = (one for one in Schema.of(table).columns if one.role == "cv")
    assert "noise and sampling together" in column.meaning
    assert total.rule() == "Noisy count above 0 and total CV at most 20 %"
    assert total.hides(50, 10) is False
    assert Publication(0.2, leave_empty=True, sampling=Sampling(design)).hides(50, 10)
    of_400 = Publication(0.2, sampling=Sampling(design, 400)).table(released())
    assert of_400["cv"].iloc[0] == pytest.approx(175**0.5 / 100)
    # A table with a design effect of its own.
    own = SurveyDesign(2.0, ((("cv",), 8.0),), 0.5)
    assert Publication(sampling=Sampling(own)).table(released())["cv"].iloc[0] == pytest.approx(
        500**0.5 / 100
    )


def test_how_many_are_publishable_is_a_sentence():
    assert Publication(0.125).rule() == "Noisy count above 0 and CV at most 12.5 %"
    assert Publication().rule(smooth=True) == "Smooth count above 0 and model-based CV at most 20 %"
    assert Publication().describe(53, 80) == "53 of 80 cells are publishable (66 %)."
    empty = Publication(leave_empty=True)
    assert empty.describe(1, 2) == "1 of 2 cells is publishable (50 %); the others are left empty."
    assert empty.describe(2, 2) == "2 of 2 cells are publishable (100 %)."
    with pytest.raises(WorkloadError, match="got 20"):
        Publication(20)


def test_smoothing_gains_where_the_model_based_error_is_clearly_the_smaller_one():
    for frame in (released(), processed(), smooth().assign(model_error=np.nan)):
        assert SmoothingGain.of_table(frame) is None
    # Root mean squares: √((3² + 4² + 4 · 0²) / 6) = 2.041 = 0.95 · 2.149.
    for error, gains in ((2.05, "no"), (2.14, "no"), (2.15, "yes")):
        frame = smooth().assign(model_error=[3.0, 4.0, 0, 0, 0, 0], standard_error=error)
        gain = SmoothingGain.of_table(frame)
        assert gain is not None
        assert gain.text == gains
        assert ("Smoothing gains next to nothing here" in gain.describe()) == (gains == "no")
