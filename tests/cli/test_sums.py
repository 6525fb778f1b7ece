"""Sums and means of amounts on the command line: planned, released, answered, left aside."""

import json
import re
import zipfile

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.releases.means import unit_of_query

FIELDS = [
    {"name": "region", "constraints": {"enum": ["N", "S"]}},
    {"name": "sex", "constraints": {"enum": ["F", "M"]}},
    {"name": "income", "type": "number", "bounds": [0, 1000], "unit": "EUR"},
    {"name": "wealth", "type": "number", "bounds": [-10, 10], "decimals": 1},
]
CLAMPING = "Amounts below 0 EUR count as 0, those above 1,000 EUR as 1,000."
RECORDS = "region,sex,income,wealth\n" + "N,F,500,1.25\nS,M,2000,-99\n" * 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums")
    (folder / "codebook.json").write_text(json.dumps({"fields": FIELDS}))
    (folder / "records.csv").write_text(RECORDS)
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*arguments, fails=False):
        result = CliRunner().invoke(cli, list(arguments))
        assert (result.exit_code != 0) == fails, result.output
        return result.output

    return run


def plan(run, *asked, out="plan.json", **more):
    return run("plan", "codebook.json", *asked, "--rho", "10", "--out", out, "--force", **more)


def test_sums_and_means_ask_for_the_same_tables(run, folder):
    asked = ["--sum", "income", "--mean", "income", "--mean", "wealth"]
    plan(run, *asked, "--by", "region,sex", "--by", "total", "--up-to", "1")
    tables = rp.Plan.load(folder / "plan.json").part("tables").workload.tables
    assert set(tables) == {
        (), ("region",), ("sex",), ("income",), ("wealth",),
        ("region", "sex", "income"), ("region", "sex", "wealth"),
    }  # fmt: skip
    (folder / "request.toml").write_text(
        'codebook = "codebook.json"\nsum = "income,wealth"\nby = ["region,sex", "total"]\n'
        "up-to = 1\nrho = 10\n"
    )
    run("plan", "--request", "request.toml", "--out", "again.json", "--force")
    assert rp.Plan.load(folder / "again.json").sha256 == rp.Plan.load(folder / "plan.json").sha256


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--sum", "total"], "There is no attribute 'total'"),
        (["--sum", "sex"], "must name an attribute of amounts; the attributes of amounts are"),
        (["--by", "region", "--up-to", "1"], "--by goes with --sum"),
        (["--table", "income", "--basis", "income=prefix"], "has amounts, and tables have its"),
        (["--table", "income", "--basis", "income=sums"], "leave it out"),
        (["--count", "rich: income > 500 ± 5"], "as in sum(income) where age >= 18, and not"),
        (["--count", "x: sum(income) sex = 'F' ± 5"], "there must be the word where and a cond"),
        (["--count", "x: sum(sex) ± 5"], "needs an attribute of amounts, and 'sex' is none"),
        (
            ["--count", "x: sum(income) ± 5", "--count", "y: sum(wealth) ± 5"],
            "can add up one attribute of amounts, got 'income' and 'wealth'",
        ),
        (["--sum", "income", "--up-to", "1", "--smooth-weights", "--expected-count", "9"], "has a"),
    ],
)
def test_what_sums_cannot_be_is_refused_in_a_sentence(run, asked, words):
    output = plan(run, *asked, fails=True)
    assert words in output
    assert "bug" not in output


def unpacked(path) -> bytes:
    """The content of a file, of an Excel workbook that of its texts."""
    if path.suffix != ".xlsx":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read("xl/sharedStrings.xml")


def test_answers_say_what_they_are_a_number_of_also_without_a_unit():
    domain = rp.Domain.from_schema({"fields": FIELDS})
    for asked, unit in (
        ({"income": "sum", "region": "N"}, "EUR, sum of income"),
        ({"wealth": "mean"}, "mean of wealth"),
        ({"region": "N"}, ""),
    ):
        assert unit_of_query(domain, asked, "", []).strip(", ") == unit


def test_answers_about_amounts_say_whether_they_are_weighted():
    """In whichever order the question names the weights and the amounts; where some table is."""
    weights = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}
    domain = rp.Domain.from_schema({"fields": [weights, *FIELDS]})
    for asked, unit in (
        ({"w": "sum", "income": "mean"}, "EUR, weighted mean of income"),
        ({"income": "sum", "w": "weighted count"}, "EUR, weighted sum of income"),
        ({"income": "mean", "region": "N"}, "EUR, unweighted mean of income"),
        ({"income": "records", "w": "sum"}, "weighted count"),
        ({"region": "N"}, ""),
    ):
        assert unit_of_query(domain, asked, "", [("region",), ("income", "w")]) == unit
    assert unit_of_query(domain, {"income": "mean"}, "", [("income",)]) == "EUR, mean of income"


def test_sums_are_released_answered_and_left_aside_by_estimates(run, folder):
    assert "amounts from 0 to 1,000 EUR" in run("schema", "codebook.json")
    said = plan(run, "--sum", "income", "--by", "region", "--up-to", "1")
    assert "sum of income in EUR by region: " in said
    assert "amounts below 0 EUR count as 0" in run("show", "plan.json")
    assert "privacy cost" in run("verify", "plan.json")
    run("release", "plan.json", "records.csv", "--out", "released")
    answer = json.loads(run("answer", "released", "income=sum", "--json"))
    # 200 · 500 + 200 · 1,000, where 2,000 counts as 1,000; at ρ = 10 the noise is small.
    assert answer["value"] == pytest.approx(300_000, abs=7 * answer["standard_error"])
    assert 0 < answer["standard_error"] < 1000
    assert answer["unit"] == "EUR, sum of income"
    assert answer["clamping"] == CLAMPING
    answer = json.loads(run("answer", "released", "income=mean", "--json"))
    assert answer["value"] == pytest.approx(750, abs=20)
    assert answer["value"] == pytest.approx(750, abs=7 * answer["standard_error"])
    # Fieller's interval, which 1 of 20 runs has beside the truth, is about this wide.
    width = answer["upper_95"] - answer["lower_95"]
    assert width == pytest.approx(2 * 1.96 * answer["standard_error"], rel=0.1)
    said = run("answer", "released", "income=mean", "income=sum region=N", "region=N")
    assert [line.split(maxsplit=2)[2:] for line in said.splitlines() if "Value" in line] == [
        ["EUR, mean of income"], ["EUR, sum of income"], []
    ]  # fmt: skip
    assert said.count(CLAMPING) == 2
    # Every table of amounts says the unit, in every format.
    for path in ("tables/*income*.csv", "means/*income*.csv"):
        (table,) = (folder / "released").glob(path)
        assert "(EUR)" in table.read_text()
    # A share in per cent has no mean.
    assert "`answer` alone tells means" in run(
        "answer", "released", "income=mean", "--per", "region", fails=True
    )
    means = rp.Release.load(folder / "released").part("tables").means("region", "income")
    assert means["value"].tolist() == pytest.approx([500, 1000], abs=20)
    # All that is made of counts leaves the sums aside, and says so.
    for verb in (["postprocess", "--nonnegative"], ["synthesize"]):
        output = run(verb[0], "released", *verb[1:], "--out", f"of-{verb[0]}")
        assert "also holds tables of sums of amounts; they are not part of this" in output
    assert not list((folder / "of-postprocess" / "tables").glob("*income*"))
    output = run("combine", "released", "--out", "combined")
    assert "The sums of amounts of 'released' are left aside" in output
    about = ["--agency", "A", "--period", "2026", "--title", "T", "--publisher", "P"]
    about += ["--license", "https://a.b/c"]
    for name in ("excel", "sdmx", "croissant", "csvw", "dcat", "r", "frictionless"):
        run("publish", "released", "--out", f"as-{name}", "--format", name, *about)
        files = [path for path in (folder / f"as-{name}").rglob("*") if path.is_file()]
        assert any(b"EUR" in unpacked(path) for path in files), name
    plan(run, "--sum", "income", out="sums.json")
    run("release", "sums.json", "records.csv", "--out", "sums")
    output = run("postprocess", "sums", "--nonnegative", "--out", "none", fails=True)
    assert "All tables of 'sums' are sums of amounts" in output
    assert not (folder / "none").exists()


def test_the_total_beside_sums_by_an_attribute_is_smoothed(run):
    """No group is compared with its unbiased count where no table counts by an attribute."""
    plan(run, "--table", "total", "--sum", "income", "--by", "sex", out="total.json")
    run("release", "total.json", "records.csv", "--out", "total", "--yes")
    facts = json.loads(run("postprocess", "total", "--smooth", "--out", "smooth", "--json"))
    assert facts["table_count"] == 1
    assert "farthest_group" not in facts


def test_own_sums_are_planned_released_and_divided(run):
    of_men = "m: sum(income) where sex == 'M' ± 9000"
    text = plan(run, "--count", of_men, "--count", "n: records(income) by sex ± 20")
    assert "Plan for 3 own counts over" in text
    assert re.search(r"Accuracy .*\(EUR, sum of income\)\n +standard errors .*\(records\)", text)
    run("release", "plan.json", "records.csv", "--out", "own")
    answer = json.loads(run("answer", "own", "m", "--json"))
    assert answer["value"] == pytest.approx(200_000, abs=7 * answer["standard_error"])
    assert answer["unit"] == "EUR, sum of income"
    mean = json.loads(run("answer", "own", "m", "--per", "n, sex = M", "--json"))
    assert (mean["unit"], mean["clamping"]) == ("EUR, mean of income", CLAMPING)
    assert "unit" not in json.loads(run("answer", "own", "n, sex = M", "--json"))
    assert mean["value"] == pytest.approx(1000, abs=7 * mean["standard_error"])
    output = run("forecast", "plan.json", "--expected-count", "400", fails=True)
    assert "the own counts add up amounts, which expected counts do not tell" in output


@pytest.mark.nightly
def test_sums_in_areas_are_planned_released_answered_and_exported(run, folder):
    (folder / "areas.csv").write_text("county\nX\nY\n")
    rows = [f"{'XY'[number % 2]},{line}" for number, line in enumerate(RECORDS.splitlines()[1:])]
    (folder / "in-areas.csv").write_text(
        "\n".join(["county,region,sex,income,wealth", *rows]) + "\n"
    )
    asked = ["--areas", "areas.csv", "--sum", "income", "--by", "county,sex", "--by", "region"]
    text = plan(run, *asked, "--table", "county,sex", out="in-areas.json")
    assert "Sums       standard error of a sum, and of a count beside it" in text
    assert "county: sum of income in EUR by sex: " in text
    assert "holds what it claims" in run(
        "release", "in-areas.json", "in-areas.csv", "--out", "areas", "--dry-run"
    )
    run("release", "in-areas.json", "in-areas.csv", "--out", "areas")
    # X has the 200 women of 500 each, Y the 200 men, clamped to 1,000: σ is about 240.
    answer = ["answer", "areas", "income=sum", "--level", "county", "--json"]
    values = [row["value"] for row in json.loads(run(*answer))["answers"]]
    assert values == pytest.approx([100_000, 200_000], abs=5_000)
    answer[2] = "income=mean"
    means = [row["value"] for row in json.loads(run(*answer))["answers"]]
    assert means == pytest.approx([500, 1000], abs=25)
    for form in ("csvw", "html", "crosstabs"):
        run("publish", "areas", "--format", form, "--out", f"published-{form}")
    means = list((folder / "published-csvw").rglob("*means*.csv"))
    assert len(means) == 2
    refused = ["--areas", "areas.csv", "--sum", "income", "--by", "county", "--adaptive"]
    assert "--adaptive" in plan(run, *refused, "--expected-count", "9", fails=True)
