"""Survey weights on the command line: planned, released, answered, and refused beside others."""

import json

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli

FIELDS = [
    {"name": "region", "constraints": {"enum": ["N", "S"]}},
    {"name": "sex", "constraints": {"enum": ["F", "M"]}},
    {"name": "income", "type": "number", "bounds": [0, 1000]},
]
WEIGHT = {"name": "w", "type": "number", "bounds": [0, 40], "weights": True}
RECORDS = "region,sex,income,w\n" + "N,F,500,1.2345\nS,M,2000,99\n" * 200
WEIGHTED = ("--weight-column", "w", "--max-weight", "40")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    (folder / "codebook.json").write_text(json.dumps({"fields": FIELDS}))
    (folder / "weighted.json").write_text(json.dumps({"fields": [*FIELDS, WEIGHT]}))
    (folder / "areas.csv").write_text("county\nX\nY\n")
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


def plan(run, *asked, codebook="codebook.json", out="plan.json", **more):
    return run("plan", codebook, *asked, "--rho", "10", "--out", out, "--force", **more)


def test_options_codebook_and_request_plan_the_same_weighted_tables(run, folder):
    said = plan(run, "--up-to", "2", *WEIGHTED, "--unweighted", "sex", "--target", "region=90")
    assert "standard error of a weighted count" in said
    made = rp.Plan.load(folder / "plan.json")
    workload = made.part("tables").workload
    assert workload.tables == [("sex",), ("w",), ("region", "w"), ("region", "sex", "w")]
    assert workload.targets[2] == 90
    assert made.domain["w"].values == rp.Amounts(0, 40, 3, are_weights=True)
    (folder / "request.toml").write_text(
        'codebook = "codebook.json"\nup-to = 2\nweight-column = "w"\nmax-weight = 40\n'
        'unweighted = ["sex"]\ntarget = ["region=90"]\nrho = 10\n'
    )
    run("plan", "--request", "request.toml", "--out", "again.json", "--force")
    assert rp.Plan.load(folder / "again.json").sha256 == made.sha256
    asked = ["--up-to", "2", "--weight-column", "w", "--unweighted", "sex", "--target", "region=90"]
    plan(run, *asked, codebook="weighted.json", out="of-codebook.json")
    assert rp.Plan.load(folder / "of-codebook.json").sha256 == made.sha256
    assert "weights below 0 count as 0, those above 40 as 40" in run("show", "plan.json")
    assert "weights from 0 to 40, rounded to 3 decimals" in run("schema", "weighted.json")
    # Nobody has to find out by oneself that a codebook with weights is not weighted.
    said = plan(run, "--up-to", "1", codebook="weighted.json", out="plain.json")
    assert "Tables count records, unweighted; --weight-column w weights them." in said


@pytest.mark.nightly
def test_weighted_counts_are_released_answered_and_left_aside_by_estimates(run, folder):
    plan(run, "--up-to", "1", *WEIGHTED, "--unweighted", "sex")
    run("release", "plan.json", "records.csv", "--out", "released")
    answer = json.loads(run("answer", "released", "w=weighted count", "region=S", "--json"))
    # 200 · 40, as 99 counts as 40; at ρ = 10 the noise is small.
    assert answer["value"] == pytest.approx(8000, abs=7 * answer["standard_error"])
    assert 0 < answer["standard_error"] < 100
    assert answer["unit"] == "weighted count"
    table = rp.Release.load(folder / "released").table("region", "w")
    # 200 · 1.234, half to even
    value, error = table[["value", "standard_error"]].to_numpy()[0]
    assert value == pytest.approx(246.8, abs=7 * error)
    output = run("postprocess", "released", "--nonnegative", "--out", "processed")
    assert "also holds tables of weighted counts; they are not part of this" in output
    output = run("combine", "released", "--out", "combined")
    assert "The weighted counts of 'released' are left aside" in output
    about = ["--agency", "A", "--period", "2026", "--title", "T", "--publisher", "P"]
    about += ["--license", "https://a.b/c"]
    for name in ("excel", "sdmx", "croissant", "csvw", "dcat", "r", "frictionless", "px"):
        run("publish", "released", "--out", f"as-{name}", "--format", name, *about)
    run("report", "plan.json", "--out", "report.html")
    said = (folder / "report.html").read_text()
    assert "weights below 0 count as 0, those above 40 as 40" in said
    assert "which count records or have weighted counts of records." in said
    plan(run, "--table", "region", *WEIGHTED, out="all.json")
    run("release", "all.json", "records.csv", "--out", "all")
    output = run("postprocess", "all", "--nonnegative", "--out", "none", fails=True)
    assert "All tables of 'all' are weighted counts" in output


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            ["--up-to", "1", "--count", "women: sex == 'F' ± 5", *WEIGHTED],
            "Own counts of this plan count records",
        ),
        (["--up-to", "1", "--adaptive", "--expected-count", "9", *WEIGHTED], "--adaptive does not"),
        (
            ["--up-to", "1", "--smooth-weights", "--expected-count", "9", *WEIGHTED],
            "--smooth-weights does not go with",
        ),
        (
            ["--areas", "areas.csv", "--table", "county,sex", *WEIGHTED, "--unweighted", "region"],
            "The table (region) is not in the workload",
        ),
        (["--up-to", "1", "--max-weight", "40"], "--max-weight goes with --weight-column"),
        (["--up-to", "1", "--unweighted", "sex"], "--unweighted goes with --weight-column"),
        (["--up-to", "1", "--weight-column", "w"], "goes with --max-weight N"),
        (["--up-to", "1", "--weight-column", "sex"], "that has no weights"),
        (["--up-to", "1", "--weight-column", "income", "--max-weight", "9"], "has no weights"),
        (["--up-to", "1", "--weight-column", "w", "--max-weight", "-1"], "above the minimum"),
        (["--up-to", "1", *WEIGHTED, "--unweighted", "region,sex"], "not in the workload"),
        (["--table", "sex", *WEIGHTED, "--basis", "w=prefix"], "has weights, and tables have its"),
    ],
)
def test_what_cannot_be_weighted_is_refused_in_a_sentence(run, asked, words):
    output = plan(run, *asked, fails=True)
    assert words in " ".join(output.split())
    assert "bug" not in output


MIXED = """
codebook = "weighted.json"
table = ["region,w"]
counts-of = "sex"
count = ["women: sex = 'F' ± 5"]
rho = 1
"""
COUNTS = """
codebook = "codebook.json"
up-to = 1
weight-column = "w"
max-weight = 40
count = ["women: sex = 'F' ± 5"]
rho = 1
"""


@pytest.mark.parametrize(
    ("request_text", "words"),
    [
        (MIXED, "Own counts of this plan count records, and its tables are weighted"),
        (COUNTS, "as in sum(w) where age >= 18"),
    ],
)
def test_requests_refuse_own_counts_beside_weights(run, folder, request_text, words):
    (folder / "mixed.toml").write_text(request_text)
    output = run("plan", "--request", "mixed.toml", "--out", "mixed.json", fails=True)
    assert words in output
    (folder / "mixed.toml").write_text(
        request_text.replace("rho = 1", "minimum-budget = 'targets'")
    )
    asked = ["--request", "mixed.toml", "--target", "5", "--out", "mixed.json"]
    assert words in run("plan", *asked, fails=True)
    assert not (folder / "mixed.json").exists()
