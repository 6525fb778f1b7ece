"""Known totals by bands where tables have single ages: dense least squares as the check."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import null_space

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.results.combination import load_combined, write_combined
from rpexplore.results.known_totals import (
    far_from_measured,
    known_totals_from_csv,
    with_known_totals,
)
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.unbiased import Estimates

BANDS = {"band": "aabbbc", "adult": "cccaaa", "half": "hhhhhg", "odd": "xyyyyy", "pair": "ppqqrr"}
AGE = rp.Attribute(
    "age",
    rp.Integers(0, 5),
    levels=tuple(Level(name, tuple(groups)) for name, groups in BANDS.items()),
)
DOMAIN = rp.Domain((rp.Attribute("sex", rp.Categories(("F", "M"))), AGE))
COUNTS = np.array([[3 + 7 * age + 9 * sex for age in range(6)] for sex in range(2)], float)


@pytest.fixture(scope="module")
def single_ages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ages")
    workload = rp.Workload.of(DOMAIN, [("sex", "age"), ("age",), ("sex",)])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.05"))
    rows = [
        ("FM"[sex], age)
        for sex in range(2)
        for age in range(6)
        for _ in range(int(COUNTS[sex, age]))
    ]
    pd.DataFrame(rows, columns=["sex", "age"]).to_csv(folder / "r.csv", index=False)
    return rp.release(plan, folder / "r.csv", folder / "out").part("tables")


def rows_of(names) -> np.ndarray:
    """What sums the 12 cells to a table: [cells of the table, 12]."""
    matrices = [np.ones((1, 2)), np.ones((1, 6))]
    for name in names:
        attribute = DOMAIN.with_levels[name]
        if name == "sex":
            matrices[0] = np.eye(2)
        else:
            of = np.array(attribute.index_of_values if attribute.of else range(6))
            matrices[1] = (of == np.arange(of.max() + 1)[:, None]).astype(float)
    return np.kron(*matrices)


def total_of(names) -> np.ndarray:
    shape = [DOMAIN.with_levels[name].size for name in names]
    return (rows_of(names) @ COUNTS.ravel()).reshape(shape)


def constrained(release, known, query) -> tuple[np.ndarray, np.ndarray]:
    """Answers and covariance by generalised least squares over all cells that meet the totals."""
    closure, information, total = release.plan.closure, 0.0, 0.0
    constraints = np.vstack([rows_of(names) for names in known])
    start = np.linalg.lstsq(constraints, constraints @ COUNTS.ravel(), rcond=None)[0]
    free = null_space(constraints)
    for row, measured in release.measured(range(len(closure))).items():
        subset = closure.attributes(row)
        ones = [np.ones((1, n)) for n in (2, 6)]
        told = np.kron(
            *[np.eye(n) - 1 / n if i in subset else ones[i] for i, n in enumerate((2, 6))]
        )
        projections = [np.eye(n) - 1 / n for i, n in enumerate((2, 6)) if i in subset]
        noise = np.ones((1, 1))
        for projection in projections:
            noise = np.kron(noise, projection)
        inverse = np.linalg.pinv(noise, hermitian=True) / float(release.plan.stated_scales[row])
        y = contribution(measured, subset, closure.strategies).ravel()
        weighted = (inverse @ told @ free).T
        information = information + weighted @ told @ free
        total = total + weighted @ (y - told @ start)
    inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
    moved = query @ free
    return query @ (start + free @ inverse @ total), moved @ inverse @ moved.T


KNOWN = [
    [("age@band",)],
    [("sex", "age@band")],
    [("age@band",), ("sex",)],
    [("sex", "age@band"), ("age@half",)],  # of two levels, one within the other
    [("age@half",), ("age",)],
]


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_it_is_least_squares_with_exact_constraints(single_ages, tmp_path, known):
    found = with_known_totals(single_ages, {names: total_of(names) for names in known})
    assert not far_from_measured(single_ages, found)
    write_combined(found, tmp_path / "with")
    for estimates in (found, load_combined(tmp_path / "with")):
        for names in [("sex", "age"), ("age",), ("sex",), ("sex", "age@band")]:
            if not estimates.has(names):  # known by single ages alone
                continue
            values, covariance = constrained(single_ages, known, rows_of(names))
            np.testing.assert_allclose(estimates.marginal(names).ravel(), values, atol=1e-8)
            variances = estimates.marginal_variances(names).ravel()
            np.testing.assert_allclose(variances, np.diag(covariance), atol=1e-8)
        where = {"sex": "F", "age": "1..3"}
        query = np.kron([1, 0], [0, 1, 1, 1, 0, 0])[None]
        value, variance = constrained(single_ages, known, query)
        answer = estimates.answer(where=where)
        assert answer.value == pytest.approx(float(value[0]))
        assert answer.standard_error**2 == pytest.approx(float(variance[0, 0]))


def test_groups_that_cross_are_refused(single_ages):
    known = {names: total_of(names) for names in [("age@band",), ("age@pair",)]}
    with pytest.raises(ReleaseError, match="in part only"):
        with_known_totals(single_ages, known)


@pytest.mark.parametrize("rounded", [False, True])
def test_nonnegative_and_whole_tables_meet_them(single_ages, tmp_path, rounded):
    text = "sex,age@band,total\n" + "".join(
        f"{'FM'[sex]},{'abc'[band]},{count:.0f}\n"
        for (sex, band), count in np.ndenumerate(total_of(("sex", "age@band")))
    )
    known = known_totals_from_csv(single_ages, "register.csv", text.encode())
    rp.postprocess(
        single_ages, tmp_path / "made", method="nonnegative", rounded=rounded, known_totals=known
    )
    made = ProcessedTables.load(tmp_path / "made")
    assert [list(names) for names in made.known_tables] == [["sex", "age@band"]]
    values = made.table("sex", "age")["value"].to_numpy()
    np.testing.assert_allclose(
        rows_of(("sex", "age@band")) @ values, total_of(("sex", "age@band")).ravel(), atol=1e-6
    )
    assert values.min() >= 0
    if rounded:
        assert (values == np.rint(values)).all()
    with pytest.raises(ReleaseError, match="by groups of 'age'"):
        rp.postprocess(single_ages, tmp_path / "no", rounded=True, known_totals=known)


def test_totals_of_other_records_are_named(single_ages):
    found = with_known_totals(single_ages, {("age@band",): total_of(("age@band",)) + 900})
    assert "known total of age@band = " in far_from_measured(single_ages, found)


def test_beside_levels_of_another_attribute_it_is_the_noise_given_the_totals(tmp_path):
    place = rp.Attribute(
        "place", rp.Categories(tuple("uvw")), levels=(Level("part", ("U", "U", "W")),)
    )
    domain = rp.Domain((*DOMAIN.attributes, place))
    tables = [("sex", "age", "place"), ("sex", "place@part"), ("sex", "age")]
    plan = rp.plan(
        rp.Workload.of(domain, tables), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.05")
    )
    rows = [("F", age, place) for age in range(6) for place in "uvw" for _ in range(4 + age)]
    pd.DataFrame(rows, columns=["sex", "age", "place"]).to_csv(tmp_path / "r.csv", index=False)
    release = rp.release(plan, tmp_path / "r.csv", tmp_path / "out").part("tables")
    known = np.array([[27.0, 63.0, 27.0], [0.0, 0.0, 0.0]])
    found = with_known_totals(release, {("sex", "age@band"): known})
    write_combined(found, tmp_path / "with")
    before, after = Estimates.of(release, at_levels=True), load_combined(tmp_path / "with")
    cells = [{"sex": one, "age": str(age)} for one in "FM" for age in range(6)]
    noise = np.array([[before.covariance(["sex", "age"], a, b) for b in cells] for a in cells])
    sums = rows_of(("sex", "age@band"))
    gain = noise @ sums.T @ np.linalg.inv(sums @ noise @ sums.T)
    measured = before.marginal(["sex", "age"]).ravel()
    expected = measured - gain @ (sums @ measured - known.ravel())
    np.testing.assert_allclose(after.marginal(["sex", "age"]).ravel(), expected, atol=1e-8)
    variances = np.diag(noise - gain @ sums @ noise)
    found_variances = after.marginal_variances(["sex", "age"]).ravel()
    np.testing.assert_allclose(found_variances, variances, atol=1e-8)
    made = rp.postprocess(after, tmp_path / "whole", method="nonnegative", rounded=True)
    whole = made.table("sex", "age")["value"].to_numpy()
    assert (sums @ whole).tolist() == known.ravel().tolist()
