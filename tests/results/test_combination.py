"""Combining: against dense generalised least squares, statistically, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rpexplore as rp
from rpexplore.data.source import PersonRule
from rpexplore.domain.levels import Level
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results import combined_tables
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.unbiased import Estimates
from tests.results import dense
from tests.support.generalised import any_strategy
from tests.support.oracles import subsets

DOMAIN = rp.Domain.from_sizes({"a": 3, "b": 2, "one": 1, "c": 2})
ABC = ("a", "b", "c")
COUNTS = np.random.default_rng(1).integers(0, 50, (3, 2, 1, 2))


def unit_queries(domain, table):
    """A query for every cell of a table, row-major."""
    shape = [domain.attributes[attribute_index].size for attribute_index in table]
    for cell in np.ndindex(*shape):
        yield {
            domain.names[attribute_index]: np.eye(size)[index].tolist()
            for attribute_index, size, index in zip(table, shape, cell, strict=True)
        }


def check(combined: Estimates, world: dense.World) -> None:
    """Values, variances and covariances (of 5 cells with all) of every table, and its subsets."""
    domain = world.domain
    assert set(combined.tables) == world.tables
    for table in {subset for own in world.tables for subset in subsets(own)}:
        names = [domain.names[attribute_index] for attribute_index in table]
        values, covariance = world.best(table)
        scale = max(np.abs(values).max(), 1)
        np.testing.assert_allclose(
            combined.marginal(names).ravel(), values, rtol=1e-9, atol=1e-9 * scale
        )
        largest = np.abs(covariance).max()
        np.testing.assert_allclose(
            combined.marginal_variances(names).ravel(),
            np.diag(covariance),
            rtol=1e-9,
            atol=1e-9 * largest,
        )
        queries = list(unit_queries(domain, table))
        for row, one in enumerate(queries[:5]):
            of_row = [combined.covariance(names, one, two) for two in queries]
            np.testing.assert_allclose(of_row, covariance[row], rtol=1e-9, atol=1e-9 * largest)


@given(dense.worlds())
@settings(max_examples=30)
def test_it_is_generalised_least_squares_on_everything_at_once(world):
    check(combine(*world.releases, noisy=world.noisy), world)


@pytest.mark.parametrize("strategic", [False, True])
def test_three_releases_of_unequal_tables_and_two_marginals(strategic):
    rng = np.random.default_rng(5)
    strategies = {0: any_strategy(3, 1)} if strategic else {}
    tables = [[(0, 1), (3,)], [(0, 1, 2), (1, 3)], [(0, 3)]]
    parts = [
        dense.release(DOMAIN, COUNTS, of_one, rng, strategies, f"release {i}")
        for i, of_one in enumerate(tables)
    ]
    parts += [
        dense.noisy_marginal(DOMAIN, COUNTS, table, rng, Fraction(7, 3))
        for table in ([(1, 3), (1, 2)] if strategic else [(0, 1, 3), (2,)])
    ]
    world = dense.World(DOMAIN, COUNTS, parts)
    combined = combine(*world.releases, noisy=world.noisy)
    check(combined, world)
    assert combined.label == (
        "unbiased; combined by inverse variance from 3 releases and 2 noisy marginals"
    )
    assert combined.spent.rho == 3 * Fraction(1, 2) + 2 * Fraction(1, 8)


def test_an_attribute_with_a_strategy_may_be_in_one_release_only():
    rng = np.random.default_rng(2)
    parts = [
        dense.release(DOMAIN, COUNTS, [(0, 1)], rng, {0: any_strategy(3, 1)}, "first"),
        dense.release(DOMAIN, COUNTS, [(1, 3)], rng, {}, "second"),
    ]
    world = dense.World(DOMAIN, COUNTS, parts)
    check(combine(*world.releases), world)


@given(dense.worlds(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_and_the_grouping_make_no_difference(world, random):
    parts = [*world.releases, *(marginal.estimates() for marginal in world.noisy)]
    at_once = combine(*parts)
    random.shuffle(parts)
    step_by_step = parts[0]
    for part in parts[1:]:
        step_by_step = combine(part, step_by_step)
    assert step_by_step.variances == at_once.variances  # exactly
    assert step_by_step.tables == at_once.tables
    assert step_by_step.spent.rho == at_once.spent.rho
    for subset, expected in at_once.contributions.items():
        np.testing.assert_allclose(
            step_by_step.contributions[subset], expected, rtol=1e-12, atol=1e-10
        )


def test_weights_are_inverse_variances_and_what_one_has_is_kept_as_it_is():
    one = estimates(name="one", variance=Fraction(1, 3))
    two = estimates(name="two", variance=Fraction(1, 7), tables=[(0,)])
    combined = combine(one, two)
    assert combined.variances[(0,)] == Fraction(1, 10)
    assert combined.variances[(1,)] == Fraction(1, 3)
    assert combined.contributions[(1,)] is one.contributions[(1,)] or np.array_equal(
        combined.contributions[(1,)], one.contributions[(1,)]
    )
    expected = 0.3 * one.contributions[(0,)] + 0.7 * two.contributions[(0,)]
    np.testing.assert_allclose(combined.contributions[(0,)], expected, rtol=1e-14)
    # The parts stay as they were.
    assert one.variances[(0,)] == Fraction(1, 3)


def test_stated_standard_errors_are_right_in_simulations():
    """Of e = estimate − truth and the stated covariance C, Σ eᵀ C⁻¹ e has a χ² distribution.

    A false alarm has a probability of 1e-9; standard errors off by 10 % are found.
    """
    rng = np.random.default_rng(20)
    variances = [
        {subset: Fraction(1 + 2 * len(subset) + 3 * number) for subset in subsets((0, 1, 3))}
        for number in range(2)
    ]
    truth = COUNTS.reshape(3, 2, 2).astype(float)

    def once() -> Estimates:
        parts = [
            dense.release(DOMAIN, COUNTS, [(0, 1, 3)], rng, {}, "one", variances[0]),
            dense.release(DOMAIN, COUNTS, [(0, 1), (0, 3)], rng, {}, "two", variances[1]),
            dense.noisy_marginal(DOMAIN, COUNTS, (1, 3), rng, Fraction(5)),
        ]
        world = dense.World(DOMAIN, COUNTS, parts)
        return combine(*world.releases, noisy=world.noisy)

    combined = once()
    queries = list(unit_queries(DOMAIN, (0, 1, 3)))
    stated = [[combined.covariance(ABC, one, two) for two in queries] for one in queries]
    inverse = np.linalg.inv(np.array(stated))
    variance = combined.table(ABC)["standard_error"].to_numpy().reshape(truth.shape) ** 2
    runs, statistic, squares = 400, 0.0, np.zeros(truth.shape)
    for _ in range(runs):
        error = once().marginal(ABC) - truth
        statistic += error.ravel() @ inverse @ error.ravel()
        squares += error**2 / variance
    whole = stats.chi2(runs * truth.size)
    assert whole.ppf(1e-9) < statistic < whole.isf(1e-9)
    assert not whole.ppf(1e-9) < statistic * 1.1**2 < whole.isf(1e-9)
    assert not whole.ppf(1e-9) < statistic / 1.1**2 < whole.isf(1e-9)
    of_cell = stats.chi2(runs)
    assert of_cell.ppf(1e-10) < squares.min()
    assert squares.max() < of_cell.isf(1e-10)


# ---- what is refused


def estimates(
    domain=DOMAIN, *, name="one", variance=Fraction(1), tables=((0,), (1,)), strategies=None, **more
) -> Estimates:
    """What a release of these tables might have measured."""
    rng = np.random.default_rng(len(name))
    kept = {part for table in tables for part in subsets(table)}
    source = MeasurementSource(
        name, more.pop("sha256", name), more.pop("rho", Fraction(1, 2)), **more
    )
    contributions = {}
    for subset in sorted(kept):
        values = rng.normal(
            size=[domain.attributes[attribute_index].size for attribute_index in subset]
        )
        for axis in range(values.ndim):
            values = values - values.mean(axis=axis, keepdims=True)
        contributions[subset] = values
    return Estimates(
        domain,
        tuple(tables),
        contributions,
        dict.fromkeys(kept, variance),
        strategies or {},
        (source,),
    )


def test_nothing_is_refused():
    with pytest.raises(ReleaseError, match="nothing to combine"):
        combine()


def test_the_same_measurements_twice_are_refused():
    with pytest.raises(ReleaseError, match="'two' holds the same measurements as 'one'"):
        combine(estimates(name="one", sha256="x"), estimates(name="two", sha256="x"))
    both = combine(estimates(name="one"), estimates(name="two"))
    with pytest.raises(ReleaseError, match="'two' holds the same measurements"):
        combine(both, estimates(name="two"))
    marginal = NoisyMarginal.of(DOMAIN, "a", np.arange(3), 2)
    with pytest.raises(ReleaseError, match="same measurements"):
        combine(estimates(), noisy=[marginal, NoisyMarginal.of(DOMAIN, "a", np.arange(3), 2)])
    combine(estimates(), noisy=[marginal, NoisyMarginal.of(DOMAIN, "a", np.arange(1, 4), 2)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (rp.Domain.from_sizes({"a": 3, "b": 2, "one": 1}), "have different attributes"),
        (rp.Domain.from_sizes({"b": 2, "a": 3, "one": 1, "c": 2}), "have different attributes"),
        (rp.Domain.from_sizes({"a": 4, "b": 2, "one": 1, "c": 2}), "have different values of 'a'"),
    ],
)
def test_different_domains_are_refused(other, message):
    with pytest.raises(ReleaseError, match=f"{message}.*same codebook"):
        combine(estimates(name="one"), estimates(other, name="two", tables=[(0,)]))


def categories(values, labels=()):
    return rp.Domain((rp.Attribute("a", rp.Categories(values, labels)),))


def test_categories_in_another_order_are_refused_and_other_labels_are_not():
    one = estimates(categories(("x", "y")), name="one", tables=[(0,)])
    swapped = estimates(categories(("y", "x")), name="two", tables=[(0,)])
    with pytest.raises(ReleaseError, match="'one' and 'two' have different values of 'a'"):
        combine(one, swapped)
    labelled = estimates(categories(("x", "y"), ("X!", "Y!")), name="two", tables=[(0,)])
    assert combine(one, labelled).domain == one.domain


X, Y = ["lo", "lo", "hi"], ["lo", "hi", "hi"]


def with_levels(**levels: dict[str, list[str]]) -> rp.Domain:
    """Three attributes, by their name the levels of each and their groups."""
    return rp.Domain(
        tuple(
            rp.Attribute(
                name,
                rp.Integers(0, size - 1),
                levels=tuple(Level(*one) for one in levels.get(name, {}).items()),
            )
            for name, size in {"a": 3, "b": 3, "c": 2}.items()
        )
    ).with_levels


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_levels_are_those_of_any_release_whichever_comes_first(order, tmp_path):
    """Their places differ from codebook to codebook, and all of them have two groups."""
    known = [{}, {"a": {"x": X}}, {"a": {"y": Y, "x": X}}, {"b": {"y": Y}}]
    tables = ["c"], ["a@x", "c"], ["a@x"], ["b@y", "c"]
    parts = []
    for number, (levels, names) in enumerate(zip(known, tables, strict=True)):
        domain = with_levels(**levels)
        parts.append(estimates(domain, name="r" * (number + 1), tables=[domain.positions(names)]))
    combined = combine(*(parts[number] for number in order))
    assert {*map(frozenset, combined.table_names)} == {*map(frozenset, tables)}

    def centred(part, names):
        return part.marginal(names) - part.marginal(names).mean()

    # The total was measured four times, a@x twice, and b@y once, each time equally well.
    total = np.mean([part.marginal([]) for part in parts])
    np.testing.assert_allclose(combined.marginal([]), total)
    both = sum(centred(part, ["a@x"]) for part in parts[1:3]) / 2
    np.testing.assert_allclose(centred(combined, ["a@x"]), both)
    np.testing.assert_allclose(centred(combined, ["b@y"]), centred(parts[3], ["b@y"]))
    write_combined(combined, tmp_path / "out")
    again = load_combined(tmp_path / "out")
    for names in tables:
        np.testing.assert_allclose(again.marginal(names), combined.marginal(names))


def test_single_levels_that_split_each_other_are_not_combined():
    """Neither measured what the groups of both levels together split into."""
    domain = with_levels(a={"x": X, "y": Y})
    for name, other in (("a", "a@x"), ("a@y", "a@x")):
        parts = [
            estimates(domain, name=one, tables=[domain.positions([one])]) for one in (name, other)
        ]
        with pytest.raises(ReleaseError, match="'a' at other levels than all releases together"):
            combine(*parts)


def test_levels_of_one_name_must_have_the_same_groups():
    one, other = with_levels(a={"x": X}), with_levels(a={"x": Y})
    parts = [
        estimates(domain, name=name, tables=[domain.positions(["a@x"])])
        for domain, name in ((one, "one"), (other, "two"))
    ]
    with pytest.raises(ReleaseError, match=r"'a@x' has other groups for 'two'.*same levels"):
        combine(*parts)
    combine(parts[0], estimates(other, name="two", tables=[(1,)]))  # which has no table at it


def test_what_any_part_states_to_be_impossible_stays_so():
    attributes = rp.Domain.from_sizes({"x": 3, "y": 3}).attributes
    stated = ([{"x": "0"}, {"y": "0"}], [{"y": "0"}, {"x": "1", "y": "1"}])
    domains = [rp.Domain(attributes, impossible) for impossible in stated]
    parts = [estimates(domain, name=str(domain), tables=[(0,)]) for domain in domains]
    together = combine(*parts).domain.impossible
    assert [combination.text for combination in together] == ["x=0", "y=0", "x=1 y=1"]


def test_different_strategies_are_refused():
    first, second = any_strategy(3, 1), any_strategy(3, 2)
    for one, two in ((first, second), (first, None), (None, first)):
        with pytest.raises(ReleaseError, match=r"'a' was measured by different strategies"):
            combine(
                estimates(name="one", strategies={0: one} if one else {}),
                estimates(name="two", strategies={0: two} if two else {}),
            )
    with pytest.raises(ReleaseError, match="'a' was measured by different"):
        combine(
            estimates(name="one", strategies={0: first}),
            noisy=[NoisyMarginal.of(DOMAIN, "a", np.arange(3), 2)],
        )
    # The same matrix, however it is written.
    doubled = Strategy(first.integers * 2, first.bits + 1)
    combined = combine(
        estimates(name="one", strategies={0: first}),
        estimates(name="two", strategies={0: doubled}),
    )
    assert combined.strategies[0] is first


def test_other_matrices_of_one_residual_are_refused_by_the_releases_that_have_them():
    rows, others = np.array([[8, -8, 0], [8, 8, -8]]), np.array([[8, -8, 0], [4, 4, -4]])
    alike = Strategy(rows, 4)
    own = Strategy(rows, 4, of_residuals={(0, 1): Strategy(others, 4)})
    first, second = (
        estimates(name=name, tables=tables, strategies={0: alike})
        for name, tables in (("one", [(0,)]), ("two", [(0, 1)]))
    )
    third = estimates(name="three", tables=[(0, 1)], strategies={0: own})
    for parts, named in (
        ((first, second, third), "'two' and 'three'"),
        ((third, first, second), "'three' and 'two'"),
    ):
        with pytest.raises(ReleaseError, match=f"measured by different strategies for {named}"):
            combine(*parts)
    assert combine(first, third).strategies[0].within((0, 1)).integers.tolist() == others.tolist()


def test_other_values_counted_in_other_categories_are_refused():
    one = estimates(name="one", unknown_values={"a": "1"}, plan_sha256="p")
    two = estimates(name="two", unknown_values={"a": "2"}, plan_sha256="p")
    with pytest.raises(ReleaseError, match="Out-of-codebook values of 'a' were counted"):
        combine(one, two)
    same = estimates(name="two", unknown_values={"a": "1", "b": "0"}, plan_sha256="p")
    assert len(combine(one, same, estimates(name="three")).sources) == 3


def test_persons_bounded_in_different_ways_are_refused():
    bounded = PersonRule("id", 3, "keep first").text
    one = estimates(name="one", plan_sha256="p", person_rule=bounded)
    two = estimates(name="two", plan_sha256="p")
    for pair in ((one, two), (two, one)):
        with pytest.raises(ReleaseError, match="records of one person were bounded in different"):
            combine(*pair)
    same = estimates(name="two", plan_sha256="p", person_rule=bounded)
    combine(one, same, noisy=[NoisyMarginal.of(DOMAIN, "a", np.arange(3), 2)])


def test_releases_of_different_records_are_refused_where_a_ledger_knows_them(tmp_path):
    workload = rp.Workload.of(DOMAIN, ["a"])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    book = Ledger(tmp_path / "ledger.sqlite")
    for year in ("2019", "2020"):
        (tmp_path / f"{year}.csv").write_text("a\n1\n")
        book.book(tmp_path / f"{year}.csv", plan, tmp_path / f"out-{year}")
    first, second, third = (
        estimates(name=f"out-{year}", plan_sha256=plan.sha256) for year in ("2019", "2020", "2021")
    )
    with pytest.raises(
        ReleaseError, match=r"of different records, '2019\.csv as of .*' and '2020\.csv as of"
    ):
        combine(first, second, ledger=book.path)
    combine(first, second)
    combine(first, third, ledger=book.path)  # it cannot know which of the two runs this was


def test_releases_that_differ_by_more_than_their_noise_are_refused(monkeypatch):
    """Noise alone hardly ever is, with the stated chance at most; twice the noise often is."""
    rng = np.random.default_rng(21)
    variances = {subset: Fraction(2 + len(subset)) for subset in subsets((0, 1, 3))}

    def release(counts, name) -> Estimates:
        return dense.World(
            DOMAIN, counts, [dense.release(DOMAIN, counts, [(0, 1, 3)], rng, {}, name, variances)]
        ).releases[0]

    def is_refused(one: Estimates, two: Estimates) -> bool:
        try:
            combine(one, two)
        except ReleaseError as error:
            return "differ by more than their noise explains" in str(error)
        return False

    others = COUNTS.copy()
    others[0, 0] += 60
    assert is_refused(release(COUNTS, "one"), release(others, "two"))
    assert not is_refused(release(COUNTS, "one"), release(COUNTS, "two"))
    monkeypatch.setattr(combined_tables, "_NO_NOISE", 0.05)
    refused = {1: 0, 4: 0}
    for _ in range(100):
        one, two = release(COUNTS, "one"), release(COUNTS, "two")
        for factor in refused:
            smaller = {subset: variance / factor for subset, variance in variances.items()}
            parts = [replace(part, variances=smaller) for part in (one, two)]
            refused[factor] += is_refused(*parts)
    assert refused[1] <= stats.binom(100, 0.05).isf(1e-9)
    assert refused[4] > 50


def test_what_a_release_says_already_is_not_taken_for_news(tmp_path):
    part = estimates(name="one")
    own = part.marginal(["a"])
    with pytest.raises(ReleaseError, match="would count twice"):
        combine(part, noisy=[NoisyMarginal.of(DOMAIN, "a", own, 2)])
    known = with_levels(x=X)
    at_level = estimates(known, name="one", tables=[known.positions(["a", "a@x"][:1])])
    with pytest.raises(ReleaseError, match="would count twice"):
        combine(
            at_level, noisy=[NoisyMarginal.of(known.of_records, "a", at_level.marginal("a"), 2)]
        )
    other_marginal = NoisyMarginal.of(DOMAIN, "a", own + 1, 2)
    assert combine(part, noisy=[other_marginal])
    with pytest.raises(ReleaseError, match=r"same measurements|twice"):
        combine(part, noisy=[other_marginal, NoisyMarginal.of(DOMAIN, "a", own + 1, "2.0001")])
