"""`rpexplore combine` on the command line: what it writes and tells, and what it refuses."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.after import combine
from rpexplore.cli.commands import command
from rpexplore.cli.console import Verbs
from rpexplore.common.numbers import exact_text
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import release
from rpexplore.results.combination import ASSUMED, load_combined

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("F", "M"), ("Female", "Male"))),
        rp.Attribute("region", rp.Categories(("R1", "R2", "R3"))),
    )
)
program = Verbs(commands=[command(combine)])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Two releases of one file's records, one of another's, and noisy marginals."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'FM'[i % 2]},R{i % 3 + 1}" for i in range(60)]
    for name, some in (("records.csv", rows), ("others.csv", rows[:30])):
        Path(name).write_text("\n".join(["sex,region", *some]) + "\n", "utf-8")
    for name, tables, rho, data in (
        ("one", [["sex", "region"]], "1/2", "records.csv"),
        ("two", [["sex"], ["region"]], "1/4", "records.csv"),
        ("three", [["sex"]], "1/4", "others.csv"),
    ):
        budget = rp.Budget(rho=rho)
        plan = plan_tables(rp.Workload.of(DOMAIN, tables), loss=rp.SumOfVariances(), budget=budget)
        release(plan, data, name)
    Path("census.csv").write_text("region,count\nR1,21\nR2,20\nR3,19.5\n", "utf-8")
    Path("odd:1.csv").write_text("sex,count\nFemale,31.3\nMale,29.1\n", "utf-8")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(program, ["combine", *arguments])


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def refused(*arguments: str) -> str:
    """The message of an error, which is one line on standard error; nothing is written."""
    result = run(*arguments, "--out", "both")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
    assert not Path("both").exists()
    return result.stderr


def test_releases_are_combined(folder):
    text = done("one", "two", "--out", "both")
    result = load_combined("both")
    assert [source.name for source in result.sources] == ["one", "two"]
    assert text == (
        f"{result.guarantee}\n\nThe 3 noisy tables are in both\nSpent ρ = 0.75 for one record\n\n"
        f"{ASSUMED}\n"
    )


def test_json_tells_the_same(folder):
    facts = json.loads(done("one", "two", "--out", "both", "--json"))
    result = load_combined("both")
    assert facts == {
        "folder": "both",
        "label": result.label,
        "parts": ["tables"],
        "table_count": 3,
        "rho": exact_text(result.spent.rho),
        "rho_is_known": True,
        "unit": "one record",
        "sources": [source.to_json() for source in result.sources],
        "taken_over": [],
        "left_aside": [],
        "warning": None,
    }


def test_noisy_marginals_come_in_with_variance_and_maybe_rho(folder):
    noisy = ("--noisy", "census.csv:25", "--noisy", "odd:1.csv:1/4:0.125")
    text = done("one", *noisy, "--out", "both")
    census, odd = load_combined("both").sources[1:]
    assert (census.name, census.rho) == ("census.csv", None)
    assert (odd.name, odd.rho) == ("odd:1.csv", Fraction(1, 8))
    assert "Spent at least ρ = 0.625 for one record" in text
    assert "The 3 noisy tables are" in text
    # 1/σ² of what one release knows of the sexes, and of the noisy marginal with variance 1/4.
    done("one", "--out", "alone")
    alone, both = load_combined("alone"), load_combined("both")
    assert 1 / both.variances[(0,)] == 1 / alone.variances[(0,)] + 4


def test_what_was_combined_can_be_combined_further(folder):
    done("one", "--noisy", "census.csv:25", "--out", "first")
    done("first", "two", "--out", "second")
    assert len(load_combined("second").sources) == 3


def test_other_records_are_refused_where_a_ledger_knows_them(folder):
    ledger = str(Ledger.beside("records.csv").path)
    refusal = refused("one", "three", "--ledger", ledger)
    assert "'one' and 'three' are of different records" in refusal
    done("one", "two", "--ledger", ledger, "--out", "both")


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["one", "one"], "holds the same measurements as 'one'"),
        (["one", "nothing"], "'nothing' is not a finished release"),
        (["one", "--noisy", "census.csv"], "must be a CSV file, :, and the variance"),
        (["one", "--noisy", "census.csv:many"], "must be a CSV file, :, and the variance"),
        (["one", "--noisy", "census.csv:cauchy=2"], "must be laplace, geometric or rounding"),
        (["one", "--noisy", "none.csv:4"], "'none.csv' cannot be read"),
        (["one", "--noisy", "census.csv:0"], "variance .* must be positive, got 0"),
        (["one", "--noisy", "census.csv:4:0"], "rho must be positive"),
        (["one", "--ledger", "none"], "no ledger at '.*none'"),
        ([], "Missing argument 'RELEASE"),
    ],
)
def test_what_cannot_be_combined_is_refused(arguments, refusal, folder):
    assert re.search(refusal, refused(*arguments))


def test_a_changed_release_is_refused(folder):
    with Path("two/residuals.parquet").open("ab") as file:
        file.write(b"x")
    assert "'residuals.parquet' of 'two' is missing or was changed" in refused("one", "two")


def test_an_existing_folder_is_kept(folder):
    result = run("one", "two", "--out", "three")
    assert result.exit_code == 2
    assert "nothing is ever overwritten" in result.stderr
    with pytest.raises(ReleaseError):
        load_combined("three")
