"""Combined releases of tables with an attribute at several levels, against dense matrices."""

from functools import cache

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.processed_folder import postprocess
from tests.planning.test_levels import AGES, RACES, SEXES, measured_matrix
from tests.results.estimates.test_level_counts import GROUPS, records

DOMAIN = rp.Domain.from_schema({"fields": [AGES, SEXES, RACES]})
ALL = (("sex", "age@five"), ("age@adult", "race"), ("age@odd", "race@ab"), ("age", "sex"), ())
ADULTS = (("age@adult", "sex"), ("race@ab",), ("sex",))  # the coarsest groups of all


@cache
def planned(tables: tuple[tuple[str, ...], ...], rho: str) -> TablePlan:
    workload = rp.Workload.of(DOMAIN, tables)
    # Even shares, which are the same whatever the tables are.
    return plan_tables(
        workload,
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=rho),
        uniform_reference=tables is not ALL or rho == "0.2",
    )


def released(plan: TablePlan, folder, name: str) -> rp.Release:
    return rp.release(plan, records(400), folder / name, name=name, ledger=folder / "ledger")


def query(domain: rp.Domain, names: tuple[str, ...]) -> np.ndarray:
    """The cells of a table, a row each, of all cells of age × sex × race: float64[n, 120]."""
    places = dict(zip(("age", "sex", "race"), np.indices((20, 2, 3)).reshape(3, -1), strict=True))
    cells = np.zeros(120, dtype=int)
    for name in names:
        groups = GROUPS.get(name, np.array(domain[name].index_of_values or range(3)))
        of_cells = groups[places[name.split("@")[0]]]
        cells = cells * domain[name].size + of_cells
    return (np.arange(cells.max() + 1)[:, None] == cells).astype(float)


def dense(releases: list[rp.Release]) -> tuple[np.ndarray, np.ndarray]:
    """Of all cells the generalised least squares estimate, and its covariance, as far as known."""
    rows, wanted = [], []
    for release in releases:
        tables = release.part("tables")
        plan, closure = tables.plan, tables.plan.closure
        measured = tables.measured(range(len(closure)))
        for residual, sigma_squared in enumerate(plan.sigma_squared.floats.tolist()):
            error = np.sqrt(sigma_squared) * float(closure.integer_scale(residual))
            rows.append(measured_matrix(plan, residual) / error)
            wanted.append(measured[residual].ravel() / error)
    matrix = np.vstack(rows)
    covariance = np.linalg.pinv(matrix.T @ matrix, rcond=1e-12)
    return covariance @ matrix.T @ np.concatenate(wanted), covariance


@pytest.mark.parametrize(("others", "rho"), [(ALL, "0.1"), (ADULTS, "0.2")])
def test_averages_are_those_of_generalised_least_squares(others, rho, tmp_path):
    releases = [
        released(planned(ALL, rho), tmp_path, "one"),
        released(planned(others, "0.3"), tmp_path, "two"),
    ]
    cells, covariance = dense(releases)
    write_combined(combine(*releases), tmp_path / "out")
    for combined in (combine(*reversed(releases)), load_combined(tmp_path / "out")):
        assert {*map(frozenset, combined.table_names)} == {*map(frozenset, (*ALL, *others))}
        for names in combined.table_names:
            own = query(combined.domain, names)
            np.testing.assert_allclose(combined.marginal(names).ravel(), own @ cells, atol=1e-6)
            variances = np.einsum("ij,jk,ik->i", own, covariance, own)
            found = combined.marginal_variances(names).ravel()
            np.testing.assert_allclose(found, variances, rtol=1e-7)
    # Whatever level is asked for: five-year groups add up to single ages.
    single = combined.marginal(["age", "sex"])  # the axes in the order of the codebook
    sums = np.add.reduceat(single, range(0, 20, 5), axis=0)
    np.testing.assert_allclose(combined.marginal(["sex", "age@five"]), sums.T, atol=1e-6)
    # And so do the whole tables made of what is combined.
    made = postprocess(combined, tmp_path / "whole", method="nonnegative", rounded=True)
    whole = {frozenset(names): made.table(names) for names in combined.table_names}
    ages, fives = whole[frozenset({"age", "sex"})], whole[frozenset({"age@five", "sex"})]
    single = ages["value"].to_numpy().reshape(20, 2)
    sums = np.add.reduceat(single, range(0, 20, 5), axis=0)
    np.testing.assert_array_equal(fives["value"].to_numpy().reshape(2, 4), sums.T)


def test_what_was_measured_by_other_groups_is_refused(tmp_path):
    releases = [
        released(planned(ALL, "0.1"), tmp_path, "one"),
        released(planned((("age@five",), ("age", "sex")), "0.1"), tmp_path, "two"),
    ]
    with pytest.raises(ReleaseError, match=r"'two' have 'age' at other levels than all.*age@odd"):
        combine(*releases)
    with pytest.raises(ReleaseError, match=r"at the levels of 'age' were.*--uniform-ref"):
        combine(releases[0], released(planned(ADULTS, "0.1"), tmp_path, "three"))
