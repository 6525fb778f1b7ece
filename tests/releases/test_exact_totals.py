"""Releases with exact totals: these are exact, tables add up to them, and labels say so."""

import json
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.results.formats.publishing import publish
from rpexplore.results.measurement_source import MeasurementSource, guarantee, refuse_unlike

DOMAIN = rp.Domain.from_sizes({"state": 3, "sex": 2, "age": 4})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)


def plan_with(exact: list, neighbours: str = "add-remove") -> rp.Plan:
    budget = rp.Budget(rho="0.1", exact=exact, neighbours=neighbours)
    return rp.plan(TABLES, loss=rp.SumOfVariances(), budget=budget)


BY_STATE = plan_with(["state"])
BY_BOTH = plan_with([("state", "sex")])


@pytest.fixture
def data(tmp_path) -> Path:
    records = np.random.default_rng(1).integers(0, [3, 2, 4], size=(500, 3))
    lines = [",".join(map(str, record)) for record in records.tolist()]
    path = tmp_path / "records.csv"
    path.write_text("\n".join(["state,sex,age", *lines, ""]))
    return path


def true_counts(data: Path, *columns: int) -> np.ndarray:
    records = np.loadtxt(data, delimiter=",", skiprows=1, dtype=int)
    sizes = [DOMAIN.sizes[column] for column in columns]
    counts = np.zeros(sizes)
    np.add.at(counts, tuple(records[:, column] for column in columns), 1)
    return counts


def test_totals_are_exact_and_tables_add_up_to_them(data, tmp_path):
    tables = rp.release(BY_BOTH, data, tmp_path / "out").part("tables")
    values = {names: tables.table(names)["value"].to_numpy() for names in tables.table_names}
    assert np.array_equal(values["state", "sex"], true_counts(data, 0, 1).ravel())
    assert np.array_equal(values["state",], true_counts(data, 0))
    assert np.array_equal(values["sex",], true_counts(data, 1))
    assert values[()] == [500]
    by_age = values["state", "age"].reshape(3, 4)
    assert by_age.sum(axis=1) == pytest.approx(true_counts(data, 0), abs=1e-9)
    assert values["sex", "age"].reshape(2, 4).sum(axis=1) == pytest.approx(true_counts(data, 1))
    # What is not exact has noise.
    assert not np.array_equal(np.rint(by_age), true_counts(data, 0, 2))


def test_what_is_exact_has_no_error(data, tmp_path):
    release = rp.release(BY_BOTH, data, tmp_path / "out")
    tables = release.part("tables")
    for names in ((), ("sex",), ("state",), ("state", "sex")):
        table = tables.table(names)
        assert not table["standard_error"].any()
        assert table["value"].equals(table["lower_95"])
        assert table["value"].equals(table["upper_95"])
        assert release.plan.part("tables").margin_of_error(names) == 0
    assert tables.table("sex", "age")["standard_error"].min() > 1
    # A sum over what has noise is exact, too, where only exact totals are left of it.
    answer = tables.answer("state", "age", where={"state": [1, 1, 0]})
    assert (answer.value, answer.standard_error) == (true_counts(data, 0)[:2].sum(), 0)
    lines = (tmp_path / "out" / "tables" / "0001_state.csv").read_text().splitlines()
    assert lines[1].split(",")[1:] == [
        f"{true_counts(data, 0)[0]:.0f}",
        "0",
        *lines[1].split(",")[3:],
    ]


def test_what_is_exact_stays_so_in_processed_tables(data, tmp_path):
    """An empty state and small counts: nonnegative and smooth tables would move them."""
    lines = data.read_text().splitlines()
    data.write_text("\n".join([lines[0], *(one for one in lines[1:90] if one[0] != "2"), ""]))
    release = rp.release(BY_BOTH, data, tmp_path / "out")
    true = true_counts(data, 0, 1)
    for method, rounded in (
        ("nonnegative", False),
        ("smooth", False),
        ("smooth", True),
        (None, True),
    ):
        folder = tmp_path / f"{method} {rounded}"
        tables = rp.postprocess(release, folder, method=method, rounded=rounded)
        values = {names: tables.table(*names)["value"].to_numpy() for names in tables.table_names}
        assert np.array_equal(values["state", "sex"], true.ravel())
        assert np.array_equal(values["state",], true.sum(axis=1))
        if not rounded:
            assert values["state", "age"].reshape(3, 4).sum(axis=1) == pytest.approx(
                true.sum(axis=1), abs=1e-6
            )
        assert method is None or min(each.min() for each in values.values()) >= 0
        publish(folder, tmp_path / f"{method} {rounded} page", formats=["jsonstat"])
        written = tmp_path / f"{method} {rounded} page" / "jsonstat" / "0004_state_sex.json"
        assert json.loads(written.read_text("utf-8"))["status"] == "A"


def test_every_label_says_what_is_exact_and_what_is_not_promised(data, tmp_path):
    rp.release(BY_STATE, data, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["exact_totals"] == [["state"]]
    readme = (tmp_path / "out" / "README.md").read_text()
    for text in (readme, manifest["guarantee"]):
        assert "The totals of state are released as they are, without noise" in text
        assert "Whatever these totals tell" in text
    publish(tmp_path / "out", tmp_path / "page", formats=["html", "jsonstat"])
    statuses = {
        path.stem: json.loads(path.read_text("utf-8"))["status"]
        for path in (tmp_path / "page" / "jsonstat").iterdir()
    }
    assert (statuses["0000_total"], statuses["0001_state"]) == ("A", "A")
    assert "A" not in f"{statuses['0003_age']} {statuses['0004_state_sex']}"
    page = (tmp_path / "page" / "tables.html").read_text("utf-8")
    assert "Only the totals of state are exact: they have no noise" in page
    (entry,) = Ledger.beside(data).account(data).entries
    ((total,),) = entry.kind.exact
    assert entry.kind.kind == "replace"
    assert total.startswith("state (values ")  # which tells it from states of other codebooks


def test_a_folder_that_hides_its_exact_totals_is_refused(data, tmp_path):
    rp.release(BY_STATE, data, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    written = json.loads(path.read_text())
    del written["exact_totals"]
    path.write_text(json.dumps(written, indent=1))
    with pytest.raises(ReleaseError):
        rp.Release.load(tmp_path / "out")


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (BY_STATE, BY_BOTH, "ρ = 0.2 "),
        (plan_with([], neighbours="replace"), BY_STATE, "ρ = 0.5 "),  # 4 · 0.1 + 0.1
        (BY_STATE, plan_with([]), "ρ = 1.7 "),  # 16 · 0.1 + 0.1
    ],
)
def test_kinds_of_neighbours_are_not_added_up(data, tmp_path, first, second, together):
    rp.release(first, data, tmp_path / "one")
    with pytest.raises(LedgerError, match=f"would promise {together}for changes that keep all"):
        rp.release(second, data, tmp_path / "two")
    assert not (tmp_path / "two").exists()
    rp.release(first, data, tmp_path / "again")
    assert Ledger.beside(data).account(data).spent_record_rho == 2 * first.record_rho


def test_releases_with_exact_totals_are_not_combined():
    sources = [
        MeasurementSource(
            name, name * 10, BY_STATE.rho, plan_sha256="1", run=name, neighbours="replace",
            exact=(("state",),),
        )
        for name in ("one", "two")
    ]  # fmt: skip
    with pytest.raises(ReleaseError, match="releases with exact totals are not combined"):
        refuse_unlike(sources)
    assert MeasurementSource.from_json(sources[0].to_json()) == sources[0]
    assert "(of each exact total all or none) changes" in guarantee(sources[:1])
