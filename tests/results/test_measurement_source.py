"""Sources: exact sums of what was spent, units, and the guarantee in words."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.common.text import rounded
from rpexplore.errors import BudgetError
from rpexplore.privacy.conversions import epsilon_from_rho
from rpexplore.results.measurement_source import (
    MeasurementSource,
    describe_sources,
    guarantee,
    spent,
)


@st.composite
def sources(draw):
    amount = st.fractions(Fraction(1, 1000), 100)
    return MeasurementSource(
        draw(st.text(max_size=5)),
        draw(st.text(max_size=5)),
        draw(st.none() | amount),
        draw(st.none() | st.integers(1, 9)),
        draw(st.sampled_from(["", "abc"])),
        draw(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)),
        draw(st.sampled_from(["", "No person has more."])),
    )


@given(sources())
def test_a_source_comes_back_from_json(source):
    assert MeasurementSource.from_json(json.loads(json.dumps(source.to_json()))) == source


@given(st.lists(sources(), min_size=1, max_size=5))
def test_what_was_spent_is_the_exact_sum_for_the_largest_unit(listed):
    """For one record ρ/m², and m² times all of these for a person with the most records."""
    known = [source for source in listed if source.rho is not None]
    most = max((source.max_records_per_person or 1 for source in known), default=1)
    record = sum(source.rho / (source.max_records_per_person or 1) ** 2 for source in known)
    total = spent(listed)
    assert total.rho == record * most**2
    assert total.is_known == (len(known) == len(listed))
    assert sum(rho for rho in total.rhos if rho is not None) == total.rho
    persons = any(source.max_records_per_person for source in known)
    plural = "s" if most > 1 else ""
    expected = f"one person with at most {most} record{plural}" if persons else "one record"
    assert total.unit == expected


@pytest.mark.parametrize(("rho", "most"), [(0, None), (-1, None), (1, 0), (None, 0)])
def test_what_nobody_can_spend_is_refused(rho, most):
    with pytest.raises(BudgetError):
        MeasurementSource("a", "b", None if rho is None else Fraction(rho), most)


ONE = MeasurementSource("one", "1", Fraction(1, 2), plan_sha256="p")
TWO = MeasurementSource("two", "2", Fraction(1, 4), plan_sha256="p")
PERSON = MeasurementSource("three", "3", Fraction(9), 3, plan_sha256="p")
MARGINAL = MeasurementSource("four", "4", None)


def test_sources_are_counted_in_words():
    assert describe_sources([ONE]) == "1 release"
    assert describe_sources([MARGINAL]) == "1 noisy marginal"
    assert describe_sources([ONE, MARGINAL, TWO]) == "2 releases and 1 noisy marginal"


def test_the_guarantee_tells_the_sum_and_what_follows():
    text = guarantee([ONE, TWO])
    assert "computed from 2 releases; computing them spent nothing more" in text
    assert "with ρ = 0.75 for one record, the sum of what each spent (0.5 + 0.25)" in text
    epsilon = rounded(epsilon_from_rho("0.75", "1e-9"), 5, "up")
    assert f"ε = {epsilon} at δ = 1e-9" in text
    assert "another privacy unit" not in text


def test_the_guarantee_tells_of_units_that_were_converted():
    text = guarantee([ONE, PERSON])
    assert "ρ = 13.5 for one person with at most 3 records" in text
    assert "(4.5 + 9)" in text
    assert "released for another privacy unit is counted here for this one" in text


def test_the_guarantee_of_one_release_needs_no_sum():
    text = guarantee([ONE])
    assert "from 1 release;" in text
    assert "the sum of" not in text


def test_the_amounts_of_many_are_not_listed():
    many = [MeasurementSource(str(i), str(i), Fraction(1, 2), plan_sha256="p") for i in range(7)]
    text = guarantee(many)
    assert "with ρ = 3.5 for one record:" in text


def test_with_unknown_amounts_nothing_is_promised():
    text = guarantee([ONE, MARGINAL])
    assert "spent at least ρ = 0.5 for one record" in text
    assert "Nobody stated what 1 noisy marginal spent" in text
    assert "ε =" not in text
    text = guarantee([MARGINAL])
    assert text.endswith("What was spent on them is not known, because nobody stated it.")
    assert "ρ" not in text


def test_amounts_are_rounded_up():
    third = MeasurementSource("a", "a", Fraction(1, 3), plan_sha256="p")
    assert "ρ = 0.333334 for" in guarantee([third])
