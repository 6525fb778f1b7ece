"""Combined own counts and areas are least squares on everything that all releases measured."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases.release import release
from rpexplore.results.area_results import AreaResults
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.workload.query_definitions import stated_from_text
from rpexplore.workload.query_list import QueryList
from tests.releases.area_plans import BOTH, OTHERS, RECORDS, SEXES, TOTAL, TREE, asked
from tests.releases.parts_plan import plan_of, records
from tests.support.area_trees import incidence
from tests.support.oracles import kron
from tests.support.query_lists import query_plan

SEX, JOB = rp.Categories(("f", "m")), rp.Categories(("yes", "no", "other"))
S, J = rp.Attribute("sex", SEX), rp.Attribute("job", JOB)


def run(plan, data, folder):
    ledger = folder.parent / "book.sqlite"
    return release(plan, data, folder, name=folder.parent.name, ledger=ledger)


def counts_plan(attributes, rows, names, rho):
    queries = QueryList(rp.Domain(attributes), np.array(rows), names, np.ones(len(rows)))
    return query_plan(queries, budget=rp.Budget(rho=rho))


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Lists over sex × job, and over sex alone."""
    folder = tmp_path_factory.mktemp("counts")
    first = counts_plan((S, J), [[1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0]], ("work", "w"), "1/2")
    second = counts_plan((S,), [[1, 0], [1, 1]], ("women", "all"), "1/3")
    return [run(plan, records(), folder / name) for plan, name in ((first, "one"), (second, "two"))]


def test_own_counts_are_generalised_least_squares(counted):
    both = combine(*counted).part("counts")
    # R over the six cells of sex × job: a row on sex counts all jobs.
    one, two = (part.part("counts") for part in counted)
    rows = np.vstack([one.plan.strategy.integers, np.repeat(two.plan.strategy.integers, 3, axis=1)])
    gammas = [float(part.plan.gamma_squared) for part in (one, two)]
    precisions = 1 / np.repeat(gammas, [len(one.measurements), len(two.measurements)])
    information = rows.T @ (precisions[:, None] * rows)
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    measured = np.concatenate([one.measurements, two.measurements])
    cells = inverse @ rows.T @ (precisions * measured)
    wanted = np.array(
        [[1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    )
    assert both.queries.names == ("work", "w", "women", "all")
    answers = both.answers
    np.testing.assert_allclose(answers["answer"], wanted @ cells, rtol=1e-8)
    variances = np.diag(wanted @ inverse @ wanted.T)
    np.testing.assert_allclose(answers["standard_error"] ** 2, variances, rtol=1e-8)
    assert np.all(answers["standard_error"][:2] <= one.answers["standard_error"] * (1 + 1e-12))


def test_own_counts_about_groups_of_cells_are_combined_as_those_about_cells(counted, monkeypatch):
    by_cells = combine(*counted).part("counts")
    monkeypatch.setattr("rpexplore.results.combined_counts.MAX_CELLS", 0)
    by_atoms = combine(*counted).part("counts")
    assert by_atoms.queries.atoms is not None
    assert by_atoms.queries.names == by_cells.queries.names
    for column in ("answer", "standard_error"):
        np.testing.assert_allclose(by_atoms.answers[column], by_cells.answers[column], rtol=1e-9)


def test_conditions_about_many_cells_are_combined(tmp_path):
    """Two lists that share `women`: of one accuracy each, so half the variance together."""
    many = rp.Attribute("age", rp.Integers(0, 999))
    data = pa.table({"sex": ["f", "f", "m"], "age": [1, 30, 700]})
    runs = []
    for name, more in (("one", "young: age < 18 & sex == 'f' ± 5"), ("two", "old: age > 600 ± 5")):
        text = f"women: sex == 'f' ± 5\n{more}"
        queries = stated_from_text(rp.Domain((S, many)), text).queries
        plan = query_plan(queries, budget=rp.Budget(rho="1/2"))
        runs.append(run(plan, data, tmp_path / name))
    both = combine(*runs).part("counts")
    assert both.queries.names == ("women", "young", "old")
    assert both.queries.cells_text == "5 groups of 2,000 cells"
    alone = [each.part("counts").answers.set_index("name")["standard_error"] for each in runs]
    together = both.answers.set_index("name")["standard_error"]
    assert together["women"] <= 1 / np.sqrt(sum(1 / each["women"] ** 2 for each in alone)) + 1e-9
    assert together["young"] <= alone[0]["young"] + 1e-9
    assert together["old"] <= alone[1]["old"] + 1e-9


def test_a_count_of_one_name_must_be_one_count(counted, tmp_path):
    other = run(counts_plan((S,), [[0, 1]], ("women",), "1"), records(), tmp_path / "men")
    with pytest.raises(ReleaseError, match="'women' counts other cells in 'two' than in 'men'"):
        combine(counted[1], other)
    jobs = rp.Attribute("sex", rp.Categories(("f", "m", "x")))
    other = run(counts_plan((jobs,), [[0, 1, 1]], ("x",), "1"), records(), tmp_path / "x")
    with pytest.raises(ReleaseError, match="different values of 'sex'"):
        combine(counted[1], other)


@pytest.fixture(scope="module")
def in_areas(tmp_path_factory):
    import pandas as pd

    folder, made = tmp_path_factory.mktemp("areas"), []
    data = pd.DataFrame(RECORDS)
    for name, workload, rho in (
        ("a", asked(top=BOTH, region=BOTH, town=SEXES, block=TOTAL), "1/2"),
        ("b", asked(top=TOTAL, town=BOTH, block=SEXES), "1/3"),
    ):
        plan = plan_areas(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=Fraction(rho)))
        made.append(run(plan, data, folder / name))
    return made


def test_areas_are_generalised_least_squares(in_areas, tmp_path):
    both = combine(*in_areas)
    write_combined(both, tmp_path / "both")
    areas = load_combined(tmp_path / "both").part("areas")
    # Over all cells (leaf area × sex × age): each measured residual of each area is a row.
    below = incidence(TREE)
    sizes = OTHERS.sizes.tolist()
    rows, weights, measured = [], [], []
    for part in (each.part("areas") for each in in_areas):
        plan = part.plan
        for path in sorted((part.folder / "residuals").iterdir()):
            table = pq.read_table(path).to_pandas()
            for (area, residual), numbers in table.groupby(["area", "residual"], sort=False):
                attributes = plan.closure.attributes(residual)
                matrix = integer_residual(sizes, attributes)
                variance = plan.exact_variance(residual, plan.groups.of_area[area])
                scale = np.prod([sizes[index] ** 2 for index in attributes])
                rows.append(np.kron(below[area], matrix))
                weights += [1 / float(variance * int(scale))] * len(numbers)
                measured += numbers["measured"].tolist()
    rows, weights, measured = np.vstack(rows), np.array(weights), np.array(measured)
    inverse = np.linalg.pinv(rows.T @ (weights[:, None] * rows), rcond=1e-10, hermitian=True)
    cells = inverse @ rows.T @ (weights * measured)
    for level, attributes in (("town", ("sex", "age")), ("block", ("sex",)), ("all", ())):
        table = areas.table(level, *attributes)
        within = TREE.level_slice(TREE.levels.index(level))
        keep = kron(
            [np.eye(size) if name in attributes else np.ones((1, size))
             for name, size in zip(OTHERS.names, sizes, strict=True)]
        )  # fmt: skip
        queries = np.vstack([np.kron(below[area], keep) for area in range(TREE.n_areas)[within]])
        np.testing.assert_allclose(table["value"], queries @ cells, atol=1e-7)
        variances = np.einsum("ij,jk,ik->i", queries, inverse, queries)
        np.testing.assert_allclose(table["standard_error"] ** 2, variances, rtol=1e-7)
    assert len(areas.sums_of_areas({"all": [0]})) == 1
    assert "combined by inverse variance from 2 releases" in AreaResults(areas).of_area(1).label


def integer_residual(sizes, attributes):
    """Ξ of a residual on the cells of an area: n I − 1 1ᵀ of its attributes, sums over others."""
    return kron(
        [
            n * np.eye(n) - np.ones((n, n)) if index in attributes else np.ones((1, n))
            for index, n in enumerate(sizes)
        ]
    )


def test_other_areas_cannot_be_combined(in_areas, tmp_path):
    import pandas as pd

    tree = rp.AreaTree.from_columns({"region": ["N", "S", "W"]})
    workload = rp.AreaWorkload.of_levels(tree, {"region": TOTAL})
    plan = plan_areas(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    other = run(plan, pd.DataFrame(RECORDS), tmp_path / "other")
    with pytest.raises(ReleaseError, match="'a' and 'other' have tables in different areas"):
        combine(in_areas[0], other)


def test_parts_go_with_their_like_and_others_are_taken_over(tmp_path):
    one = run(plan_of(("tables", "areas", "counts")), records(), tmp_path / "one")
    two = run(plan_of(("tables", "counts")), records(), tmp_path / "two")
    both = combine(one, two)
    assert [part.kind for part in both.parts] == ["tables", "areas", "counts"]
    assert both.taken_over == ["The tables in areas are those of 'one' alone."]
    assert both.spent.rho == one.plan.rho + two.plan.rho
    write_combined(both, tmp_path / "both")
    again = load_combined(tmp_path / "both")
    assert again.guarantee == both.guarantee
    assert again.taken_over == both.taken_over
    assert again.answer("other women") == both.part("counts").answer("other women")
    for kind in ("areas", "counts"):
        for was, item in zip(both.part(kind).items, again.part(kind).items, strict=True):
            assert was.read().equals(item.read())
    with pytest.raises(ReleaseError, match="same measurements"):
        combine(again, two)
    three = run(plan_of(("counts",)), records(), tmp_path / "three")
    further, at_once = combine(again, three), combine(one, two, three)
    np.testing.assert_allclose(further.answers["answer"], at_once.answers["answer"], rtol=1e-12)
    (tmp_path / "both" / "sources" / "01" / "counts" / "measurements.parquet").write_bytes(b"")
    with pytest.raises(ReleaseError, match="missing or was changed"):
        load_combined(tmp_path / "both")


def test_the_number_of_records_stays_exact_where_neighbours_replace_a_record(tmp_path):
    """And helps the others: as least squares over what keeps it."""
    domain = rp.Domain.from_sizes({"a": 3})
    lists = [[[1, 1, 1], [1, 0, 0]], [[2, 2, 2], [0, 1, 1], [0, 0, 1]]]
    names = [["all", "first"], ["twice", "others", "last"]]
    (tmp_path / "a.csv").write_text("a\n" + "0\n" * 5 + "1\n" * 4 + "2\n" * 3)
    done = []
    for number, (rows, called) in enumerate(zip(lists, names, strict=True)):
        queries = QueryList(domain, np.array(rows), tuple(called), np.full(len(rows), 5.0))
        budget = rp.Budget(rho=Fraction(number + 1, 10), neighbours="replace")
        plan = rp.plan(rp.Request(counts=queries, budget=budget))
        done.append(rp.release(plan, tmp_path / "a.csv", tmp_path / str(number)))
    combined = rp.combine(*done).part("counts")
    table = combined.cells().to_pandas().set_index("name")
    assert table.loc["all", ["answer", "standard_error"]].tolist() == [12, 0]
    assert table.loc["twice", ["answer", "standard_error"]].tolist() == [24, 0]
    parts = [one.plan.part("counts") for one in done]
    matrix = np.concatenate([p.strategy.integers / np.sqrt(float(p.gamma_squared)) for p in parts])
    exact = np.ptp(matrix, axis=1) == 0
    assert np.any(exact)
    # In the two directions that keep the number of records.
    free = np.array([[1, -1, 0], [0, 1, -1]]).T
    noisy = matrix[~exact] @ free
    covariance = free @ np.linalg.inv(noisy.T @ noisy) @ free.T
    queries = combined.queries
    wanted = np.sqrt(
        np.einsum("ij,jk,ik->i", queries.coefficients, covariance, queries.coefficients)
    )
    np.testing.assert_allclose(combined.standard_errors, wanted, rtol=1e-9, atol=1e-12)
