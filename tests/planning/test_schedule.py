"""The schedule of adaptive releases, and what they select from, each against its definition."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning import adaptive
from rpexplore.planning.adaptive import Schedule, first_share, schedule


def of(rho, n_candidates, records, persons=None) -> Schedule:
    budget = rp.Budget(rho=rho, max_records_per_person=persons)
    return schedule(budget, n_candidates, records)


def test_rounds_grow_by_half_and_spend_a_tenth_on_selection():
    steps = of("1.33", 30, 10**6, persons=2)
    # ρ of one record 1.33/4 = 0.3325; two fifths of it 0.133, so 0.1995 for four rounds:
    # 1 + 3/2 + … = 65/8, so 0.1995 · 8/65 for the first; 30/10 = 3 tables have a third each.
    assert steps.first_rho == Fraction("0.133")
    assert [step.n_tables for step in steps.rounds] == [3] * 4
    first = 0.1995 * 8 / 65
    assert float(steps.rounds[0].selection_rho) == pytest.approx(first / 30, rel=1e-11)
    assert float(steps.rounds[0].measurement_rho) == pytest.approx(9 * first / 30, rel=1e-11)
    for number, step in enumerate(steps.rounds):
        assert float(step.rho) == pytest.approx(first * 1.5**number, rel=1e-11)


def test_few_records_have_fewer_rounds_of_fewer_tables():
    # 5,000 records: a draw needs 2/ε ≤ 100, so ρ ≥ (1/50)²/8 = 5e-5. Of ρ = 0.01 rounds have a
    # fifth, of which 2e-4 is to select: four draws, in four rounds 4 · 8/65 < 1 in the first, in
    # three 4 · 4/19 < 1, in two 4 · 2/5 = 1.6 and 2.4.
    assert [step.n_tables for step in of("0.01", 500, 5000).rounds] == [1, 2]
    assert [step.n_tables for step in of("1e-9", 500, 5000).rounds] == [1]
    assert [step.n_tables for step in of("1e4", 500, 5000).rounds] == [24] * 4


def test_the_first_plan_has_less_where_more_is_told_from_noise():
    # N √ρ = 600, 6,000 and 60,000: 1.36 - 0.2 log10 of it in steps of 0.05, from 0.4 to 0.8.
    shares = [first_share(Fraction(1, 10_000), 6 * 10**power) for power in (4, 5, 6)]
    assert shares == [Fraction(4, 5), Fraction(3, 5), Fraction(2, 5)]


@given(
    rho=st.fractions(Fraction(1, 10**9), 1000),
    persons=st.sampled_from([None, 1, 7]),
    n_candidates=st.integers(1, 10**6),
    records=st.integers(1, 10**12),
)
def test_the_budget_is_kept_and_used_exactly(rho, persons, n_candidates, records):
    steps = of(rho, n_candidates, records, persons)
    allowed = rho / (persons or 1) ** 2
    assert allowed * (1 - Fraction(1, 10**10)) <= steps.rho <= allowed
    for step in steps.rounds:
        assert 1 <= step.n_tables <= min(24, max(1, n_candidates // 10))
        if len(steps.rounds) > 1:
            # 2/ε ≤ N/50 with ε² = 8 ρ
            assert 8 * step.selection_rho * records**2 >= 10**4 * (1 - Fraction(1, 10**10))


DOMAIN = rp.Domain.from_sizes({"a": 3, "one": 1, "b": 2, "c": 4, "d": 2})
WORKLOAD = rp.Workload.of(DOMAIN, [(), ("d",), ("a", "one", "b"), ("a", "c"), ("a", "b", "c", "d")])


def test_candidates_are_the_pairs_and_triples_within_tables(monkeypatch):
    tables = [("a", "b"), ("a", "c"), ("a", "b", "c", "d")]
    subsets = [
        {DOMAIN.positions(subset) for table in tables for subset in combinations(table, order)}
        for order in (2, 3)
    ]
    pairs, triples = map(sorted, subsets)
    assert adaptive.candidates_of(WORKLOAD) == (*pairs, *triples)
    # abc, abd, acd and bcd have 24 + 12 + 24 + 16 cells.
    monkeypatch.setattr(adaptive, "MOST_CELLS", 76)
    assert adaptive.candidates_of(WORKLOAD) == (*pairs, *triples)
    monkeypatch.setattr(adaptive, "MOST_CELLS", 75)
    assert adaptive.candidates_of(WORKLOAD) == tuple(pairs)
