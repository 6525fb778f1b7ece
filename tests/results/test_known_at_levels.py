"""Known totals of tables at levels and of sums: dense least squares over all cells as the check."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import null_space

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.results.known_release import KnownRelease
from rpexplore.results.known_totals import far_from_measured, with_known_totals
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.unbiased import Estimates

AGES = ("a", "a", "b", "b", "b", "c")
AGE = rp.Attribute(
    "age",
    rp.Integers(0, 5),
    levels=(Level("band", AGES), Level("adult", tuple("cccaaa")), Level("odd", tuple("xyyyyy"))),
)
DOMAIN = rp.Domain((AGE, rp.Attribute("sex", rp.Categories(("F", "M")))))
TABLES = [("age@band", "sex"), ("age@adult", "sex"), ("age@band",), ("sex",), ("age@adult",)]
RECORDS = [
    (age, "FM"[sex]) for age in range(6) for sex in range(2) for _ in range(3 + 7 * age + sex)
]
FRAME = pd.DataFrame(RECORDS, columns=["age", "sex"])
COUNTS = np.array([[3 + 7 * age + sex for sex in range(2)] for age in range(6)], float)


@pytest.fixture(scope="module")
def at_levels(tmp_path_factory):
    return released(tmp_path_factory.mktemp("levels"), rp.Workload.of(DOMAIN, TABLES))


@pytest.fixture(scope="module")
def of_sums(tmp_path_factory):
    workload = rp.Workload.of(DOMAIN, [("age", "sex"), ("age",)])
    return released(tmp_path_factory.mktemp("sums"), workload.with_bases({"age": rp.Prefix()}))


def released(folder, workload: rp.Workload):
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.05"))
    FRAME.to_csv(folder / "r.csv", index=False)
    return rp.release(plan, folder / "r.csv", folder / "out").part("tables")


def groups_of(release, index: int) -> np.ndarray:
    """[n values of a group or level, n values of the attribute]: 1 where a value lies in it."""
    closure, attributes = release.plan.closure, release.domain.attributes
    if index in closure.blocks:
        of_values = closure.blocks[index].index_of_values
    elif index < len(attributes) and attributes[index].of:
        of_values = np.array(attributes[index].index_of_values)
    else:
        return np.eye(attributes[index].size)
    return (of_values == np.arange(of_values.max() + 1)[:, None]).astype(float)


def dense(release, names) -> np.ndarray:
    """What sums the 12 cells to a table of single values or levels."""
    rows = [np.ones((1, size)) for size in COUNTS.shape]
    for name in names:
        index = release.domain.position(name)
        rows[int(release.domain.columns[index])] = groups_of(release, index)
    columns = [int(release.domain.columns[release.domain.position(name)]) for name in names]
    order = [*columns, *(column for column in (0, 1) if column not in columns)]
    together = np.kron(*rows).reshape(*map(len, rows), -1).transpose(*order, 2)
    return together.reshape(-1, COUNTS.size)


def constrained(release, known, query) -> tuple[np.ndarray, np.ndarray]:
    """Answers to a query and their covariance, of all cells that meet the totals."""
    closure, total, information = release.plan.closure, 0.0, 0.0
    constraints = np.vstack([dense(release, names) for names in known])
    start = np.linalg.lstsq(constraints, constraints @ COUNTS.ravel(), rcond=None)[0]
    free = null_space(constraints)
    measured = release.measured(range(len(closure)))
    for row in range(len(closure)):
        subset = closure.attributes(row)
        factors, noise = [np.ones((1, size)) for size in COUNTS.shape], np.ones((1, 1))
        in_order = sorted(subset, key=lambda index: int(closure.columns[index]))
        for index in in_order:
            column = int(closure.columns[index])
            sums, strategy = groups_of(release, index), closure.strategies.get(index)
            n = len(sums)
            decoded = np.eye(n) - 1 / n
            factors[column] = decoded @ sums
            if strategy is not None:
                decoded = strategy.decoding
                factors[column] = decoded @ strategy.matrix @ sums
            noise = np.kron(noise, decoded @ decoded.T)
        told = np.kron(*factors)
        y = contribution(measured[row], subset, closure.strategies)
        y = y.transpose([subset.index(index) for index in in_order])
        inverse = np.linalg.pinv(noise * float(release.plan.stated_scales[row]), hermitian=True)
        weighted = (inverse @ told @ free).T
        information = information + weighted @ told @ free
        total = total + weighted @ (y.ravel() - told @ start)
    inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-9)
    moved = query @ free
    return query @ (start + free @ inverse @ total), moved @ inverse @ moved.T


def summed(names, release) -> np.ndarray:
    shape = [release.domain[name].size for name in names]
    return (dense(release, names) @ COUNTS.ravel()).reshape(shape)


def check(release, known, tables) -> KnownRelease:
    found = with_known_totals(release, {names: summed(names, release) for names in known})
    for names in tables:
        position = release.table_names.index(names)
        rows = np.ones((1, 1))
        for name, matrix in zip(names, release.queries[position], strict=True):
            size = release.domain[name].size
            rows = np.kron(rows, np.eye(size) if matrix is None else matrix.of(np.eye(size), 0))
        values, covariance = constrained(release, known, rows @ dense(release, names))
        cells = found.cells(position)
        np.testing.assert_allclose(cells["value"], values, rtol=1e-7, atol=1e-7)
        errors = np.sqrt(np.maximum(np.diag(covariance), 0))
        np.testing.assert_allclose(cells["standard_error"], errors, rtol=1e-6, atol=1e-6)
    return found


@pytest.mark.parametrize(
    "known",
    [
        [("sex",)],
        [("age@adult",)],
        [("age@adult", "sex")],
        [("age", "sex")],  # finer than tables have it
        [("age@adult",), ("sex",)],
        [("age",), ("age@adult", "sex"), ()],
    ],
    ids=str,
)
def test_of_levels_it_is_least_squares_with_exact_constraints(at_levels, known):
    check(at_levels, known, at_levels.table_names)


@pytest.mark.parametrize("known", [[("age",)], [("sex",)], [("age", "sex")], [()]], ids=str)
def test_of_sums_it_is_least_squares_with_exact_constraints(of_sums, known):
    found = check(of_sums, known, of_sums.table_names)
    where = {"age": "1..3", "sex": "F"}
    query = np.kron([0, 1, 1, 1, 0, 0], [1, 0])[None]
    value, variance = constrained(of_sums, known, query)
    answer = found.answer(where=where)
    assert answer.value == pytest.approx(float(value[0]), abs=1e-7)
    assert answer.standard_error**2 == pytest.approx(float(variance[0, 0]), abs=1e-7)


def nearest_by_cvxpy(release, known) -> np.ndarray:
    """The nonnegative cells that meet the totals, nearest to the rest in standard errors."""
    cvxpy = pytest.importorskip("cvxpy")
    found = with_known_totals(release, {names: summed(names, release) for names in known})
    closure, cells, distance = release.plan.closure, cvxpy.Variable(12, nonneg=True), 0
    measured = release.measured(range(len(closure)))
    for row in range(len(closure)):
        if (subset := closure.attributes(row)) in found.contributions:
            continue
        in_order = sorted(subset, key=lambda index: int(closure.columns[index]))
        factors, noise = [np.ones((1, size)) for size in COUNTS.shape], np.ones((1, 1))
        for index in in_order:
            sums, strategy = groups_of(release, index), closure.strategies.get(index)
            decoded = np.eye(len(sums)) - 1 / len(sums)
            factors[int(closure.columns[index])] = decoded @ sums
            if strategy is not None:
                decoded = strategy.decoding
                factors[int(closure.columns[index])] = decoded @ strategy.matrix @ sums
            noise = np.kron(noise, decoded @ decoded.T)
        y = contribution(measured[row], subset, closure.strategies)
        y = y.transpose([subset.index(index) for index in in_order]).ravel()
        values, vectors = np.linalg.eigh(noise * float(release.plan.stated_scales[row]))
        kept = values > 1e-9 * values.max()
        root = (vectors[:, kept] / np.sqrt(values[kept])).T
        distance += cvxpy.sum_squares(root @ (np.kron(*factors) @ cells - y))
    constraints = [dense(release, one) @ cells == summed(one, release).ravel() for one in known]
    cvxpy.Problem(cvxpy.Minimize(distance), constraints).solve(solver="CLARABEL")
    return np.array(cells.value)


@pytest.mark.nightly
@pytest.mark.parametrize("known", [[("sex", "age@adult")], [("sex",)]], ids=str)
def test_nonnegative_tables_of_levels_meet_them_and_are_nearest(at_levels, tmp_path, known):
    totals = {names: summed(names, at_levels) for names in known}
    made = rp.postprocess(
        at_levels, tmp_path / "made", method="nonnegative", gap=1e-7, known_totals=totals
    )
    cells = nearest_by_cvxpy(at_levels, known)
    for names in at_levels.table_names:
        table = made.table(*names)
        expected = dense(at_levels, names) @ cells
        np.testing.assert_allclose(table["value"], expected, atol=0.02)
    for names in known:
        label = made.table(*names)
        np.testing.assert_allclose(label["value"], totals[names].ravel(), atol=1e-6)
        assert set(label["value_is"]) == {"publicly known"}


@pytest.mark.parametrize("method", ["nonnegative", None])
def test_folders_of_tables_at_levels_meet_them(at_levels, tmp_path, method):
    totals = {("age@adult", "sex"): summed(("age@adult", "sex"), at_levels).T}
    totals = {("sex", "age@adult"): totals["age@adult", "sex"]}
    is_whole = method is not None
    rp.postprocess(
        at_levels, tmp_path / "made", method=method, rounded=is_whole, known_totals=totals
    )
    made = ProcessedTables.load(tmp_path / "made")
    assert ["sex", "age@adult"] in [list(names) for names in made.known_tables]
    assert "publicly known totals met" in made.label
    readme = (tmp_path / "made/README.md").read_text()
    assert ("is unbiased, and the same" in readme) == (method is None)
    band = made.table("sex", "age@band")["value"].to_numpy().reshape(2, 3)
    adult = made.table("sex", "age@adult")["value"].to_numpy().reshape(2, 2)
    assert adult.tolist() == summed(("sex", "age@adult"), at_levels).tolist()
    np.testing.assert_allclose(band.sum(axis=1), adult.sum(axis=1), atol=1e-6)
    assert made.table("age@adult")["standard_error"].tolist() == [0, 0]
    if is_whole:
        assert (band == np.rint(band)).all()


@pytest.mark.parametrize("method", ["nonnegative", "smooth", None])
def test_tables_of_sums_meet_them_in_rows_as_planned(of_sums, tmp_path, method):
    totals = {("age",): summed(("age",), of_sums)}
    made = rp.postprocess(of_sums, tmp_path / "made", method=method, known_totals=totals)
    rows = made.table("age")
    assert rows["value"].tolist() == pytest.approx(np.cumsum(totals["age",]).tolist())
    assert set(rows["standard_error"]) == {0}
    whole = made.table("age", "sex")["value"].to_numpy().reshape(6, 2)
    assert whole.sum(axis=1).tolist() == pytest.approx(rows["value"].tolist())


def test_further_totals_are_met_beside_those_before(at_levels):
    known = {names: summed(names, at_levels) for names in (("age@adult",), ("sex",))}
    together, one_by_one = with_known_totals(at_levels, known), at_levels
    for names, counts in known.items():
        one_by_one = with_known_totals(one_by_one, {names: counts})
    assert one_by_one.known_tables == together.known_tables
    for position in range(len(TABLES)):
        assert one_by_one.cells(position).equals(together.cells(position))
    with pytest.raises(ReleaseError, match="contradict each other"):
        with_known_totals(one_by_one, {("sex",): known["sex",] + 1})


def test_what_levels_tell_in_part_is_refused(at_levels, of_sums, tmp_path):
    with pytest.raises(ReleaseError, match=r"by 'age@odd', and the tables have 'age' by other gr"):
        with_known_totals(at_levels, {"age@odd": [1, 2]})
    with pytest.raises(ReleaseError, match="by 'age@band', and the tables have 'age' by other"):
        with_known_totals(of_sums, {"age@band": [1, 2, 3]})
    two = {"age@adult": summed(("age@adult",), at_levels), "sex": summed(("sex",), at_levels)}
    with pytest.raises(ReleaseError, match="of one table, and there are those of 2"):
        rp.postprocess(at_levels, tmp_path / "x", method="nonnegative", known_totals=two)
    two["sex"] = two["sex"] + 1
    with pytest.raises(ReleaseError, match="contradict each other"):
        with_known_totals(at_levels, two)
    with pytest.raises(ReleaseError, match="at several levels"):
        Estimates.of(with_known_totals(at_levels, {"sex": summed(("sex",), at_levels)}))


def test_totals_at_levels_that_noise_does_not_explain_are_named(at_levels):
    right = with_known_totals(at_levels, {"age": summed(("age",), at_levels)})
    assert far_from_measured(at_levels, right) == ""
    wrong = with_known_totals(at_levels, {"age@adult": summed(("age@adult",), at_levels) + 500})
    assert "standard errors apart" in far_from_measured(at_levels, wrong)


def test_whole_tables_meet_totals_by_a_level_of_which_a_group_is_a_single_value(tmp_path):
    """Where such a branch ends, cells of the tree stand for no group."""
    age = {"name": "age", "constraints": {"minimum": 0, "maximum": 9}}
    age["levels"] = {"three": 3, "band": "0-8, 9+"}
    domain = rp.Domain.from_schema(
        {"fields": [age, {"name": "sex", "constraints": {"enum": ["F", "M"]}}]}
    )
    names = ("sex", "age@three")
    workload = rp.Workload.of(domain, [("age", "sex"), names, ("sex", "age@band")])
    totals = {names: np.array([[30, 51, 72, 38], [33, 54, 75, 39]], float)}
    made = rp.postprocess(
        released(tmp_path, workload),
        tmp_path / "made",
        method="nonnegative",
        rounded=True,
        known_totals=totals,
    )
    assert made.table(*names)["value"].tolist() == totals[names].ravel().tolist()
    by_age = made.table("age", "sex")["value"].to_numpy().reshape(10, 2)
    assert np.add.reduceat(by_age, [0, 3, 6, 9]).T.tolist() == totals[names].tolist()
