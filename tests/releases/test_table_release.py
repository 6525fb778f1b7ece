"""A release of tables: held to its limit, charged what it costs, and silent."""

import ast
import json
import logging
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import rpexplore
from rpexplore import (
    Budget,
    SumOfVariances,
)
from rpexplore.data.files.source import FileSource
from rpexplore.errors import (
    BudgetError,
    LedgerError,
)
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import release
from tests.releases.table_plan import (
    PLAN,
    SECRET,
    WORKLOAD,
    entries,
    ledger_rows,
    runs,
)

# --- limits


def test_a_limit_is_noted_kept_and_held(data, output, without_noise):
    release(PLAN, data, output, limit_rho="1.2")
    assert Ledger.beside(data).account(data).limit_record_rho == Fraction(6, 5)
    for limit in ("1.3", "1.1", "1.2000000000000000000001"):
        with pytest.raises(LedgerError, match="another budget limit"):
            release(PLAN, data, output.with_name("two"), limit_rho=limit)
    release(PLAN, data, output.with_name("two"))
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(PLAN, data, output.with_name("three"), limit_rho="1.2")
    assert entries(output.parent) == ["release", "two"]
    assert [run.state for run in runs(data)] == ["finished"] * 2


def test_beyond_the_limit_no_noise_is_drawn(planned, data, output, forbidden_noise):
    with pytest.raises(LedgerError, match="left of its budget limit"):
        release(planned, data, output, limit_rho="0.49")
    account = Ledger.beside(data).account(data)
    assert (account.entries, account.limit_record_rho) == ((), None)
    assert entries(output.parent) == []


@pytest.mark.parametrize("limit", [0, -1, "0.000", "nan", "much", True])
def test_a_limit_that_is_none_is_refused(limit, data, output, forbidden_noise):
    with pytest.raises((LedgerError, BudgetError)):
        release(PLAN, data, output, limit_rho=limit)
    assert entries(data.parent) == ["records.csv"] or runs(data) == ()
    assert entries(output.parent) == []


def test_a_person_with_m_records_costs_a_record_m_squared_less(data, output, without_noise):
    person = plan_tables(
        WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="9/2", max_records_per_person=3)
    )
    release(person, data, output, limit_rho="9")
    account = Ledger.beside(data).account(data)
    assert account.limit_record_rho == 1
    assert account.spent_record_rho == person.record_rho
    assert Fraction(1, 2) * (1 - Fraction(1, 10**9)) < account.spent_record_rho <= Fraction(1, 2)
    # The same total, told in records.
    release(PLAN, data, output.with_name("two"), limit_rho="1")
    with pytest.raises(LedgerError, match="one person with at most 3 records"):
        release(person, data, output.with_name("three"))


def test_what_is_booked_covers_what_is_measured(data, output, without_noise):
    """ρ = Σ p_A / (2σ²_A), summed here in exact rationals from the plan file."""
    release(PLAN, data, output)
    sizes = [2, 3]  # of sex and age
    exact = Fraction(0)
    (part,) = json.loads((output / "plan.json").read_text())["parts"]
    residuals = [(), (0,), (1,), (0, 1)]  # in the order of files
    for attributes, scale in zip(residuals, part["residuals"], strict=True):
        p = Fraction(1)
        for attribute in attributes:
            p *= Fraction(sizes[attribute] - 1, sizes[attribute])
        exact += p / Fraction(part["noise_scales"][scale]) / 2
    (run,) = runs(data)
    assert exact <= run.record_rho <= exact * (1 + Fraction(1, 10**20))
    assert run.record_rho <= Fraction(1, 2)
    assert run.plan_sha256 == PLAN.sha256
    assert Path(run.output).name == output.name


def test_the_mapping_of_other_values_is_part_of_the_release(data, output):
    done = release(PLAN, data, output, unknown_values={"sex": "m"})
    assert done.manifest["unknown_values"] == {"sex": "m"}
    assert "counted as: sex: m" in (output / "README.md").read_text()


# --- silence


def test_nothing_private_is_logged_printed_or_stored(tmp_path, output, caplog, capfd):
    """41,357 records, of which 41,353 fall in one cell; noise makes equality a rare chance."""
    caplog.set_level(logging.DEBUG)
    data = tmp_path / "folder-of-secrets" / "records-of-secrets.csv"
    data.parent.mkdir()
    data.write_text(f"sex,age,one,{SECRET}\n" + "f,0,k,zz\n" * 41_353 + "m,8,k,zz\n" * 4)
    planned = plan_tables(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1e-9"))  # σ of 10^5
    shown = []
    release(
        planned, data, output, on_progress=lambda doing, share: shown.append(f"{doing} {share}")
    )
    captured = capfd.readouterr()
    texts = [captured.out, captured.err, *shown, *(r.getMessage() for r in caplog.records)]
    private = [SECRET, "41353", "41357", "secrets", str(data.stat().st_size)]
    private.append(str(int(data.stat().st_mtime)))
    for path in output.rglob("*"):
        if path.suffix in (".json", ".md"):
            texts.append(path.read_text())
        elif path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in [SECRET, "secrets"])
    for word in private:
        # Hashes are hexadecimal and could hold five digits by chance.
        assert not any(word in text for text in texts if "sha256" not in text)
    manifest = json.loads((output / "manifest.json").read_text())
    for word in private:
        assert word not in json.dumps({**manifest, "files": [], "plan_sha256": ""})
    for path in output.rglob("*.parquet"):
        keys = set((pq.ParquetFile(path).metadata.metadata or {}).keys())
        assert keys <= {b"ARROW:schema"}  # no pandas metadata, nothing of where it came from
    dump = "\n".join(
        str(row)
        for table in ("events", "last")
        for row in ledger_rows(Ledger.beside(data), f"SELECT * FROM {table}")
    )
    for word in (SECRET, "41353", "41357"):
        assert word not in dump


def test_progress_is_told_in_order_and_ends_with_one(planned, data, output):
    reports = []
    release(planned, data, output, on_progress=lambda doing, share: reports.append((doing, share)))
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    assert reports[0] == ("Checking the plan", 0.0)
    assert reports[-1] == ("Finished", 1.0)
    phases = [doing for doing, _ in reports]
    assert phases.index("Booking the run in the ledger") < phases.index("Measuring with noise")


def test_only_the_sampler_names_a_source_of_randomness():
    """Beyond the imports that test_layering checks: no keyword passes another source either."""
    package, sources = Path(rpexplore.__file__).parent, ("random_bytes", "seed", "random_state")
    for path in package.rglob("*.py"):
        text = path.read_text()
        if path.parent.name == "noise" or not any(name in text for name in sources):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword):
                assert node.arg not in sources, path.name


def test_a_release_of_records_that_left_their_server_says_so(
    data, output, monkeypatch, without_noise
):
    note = "The records left their server."
    monkeypatch.setattr(FileSource, "streaming_note", note)
    release(PLAN, data, output)
    assert note in (output / "README.md").read_text()
