"""--known-totals on the command line, for tables: files, what is made, what is refused."""

import json
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.results.combination import load_combined
from tests.cli.program import CODEBOOK, Program

COUNTS = {("young", "F"): 30, ("young", "M"): 20, ("old", "F"): 7, ("old", "M"): 0}
KNOWN = "age,sex,total\n" + "".join(f"{a},{s},{n}\n" for (a, s), n in COUNTS.items())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release of all tables of up to two attributes."""
    home = tmp_path_factory.mktemp("known")
    (home / "codebook.csv").write_text(CODEBOOK)
    rows = [(a, s, f"R{i % 3 + 1}") for (a, s), n in COUNTS.items() for i in range(n)]
    pd.DataFrame(rows, columns=["age", "sex", "region"]).to_csv(home / "records.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        run = Program(home)
        run.done("plan", "codebook.csv", "--up-to", "2", "--rho", "0.1", "--out", "plan.json")
        run.done("release", "plan.json", "records.csv", "--out", "out")
    return home


@pytest.fixture
def run(folder, tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    Path("out").symlink_to(folder / "out")
    Path("known.csv").write_text(KNOWN)
    return Program(tmp_path)


def test_totals_alone_make_unbiased_tables_of_which_the_rest_is_made(run):
    said = run.done("postprocess", "out", "--known-totals", "known.csv", "--out", "known")
    assert "The publicly known totals of age × sex are met; they are not protected." in said
    tables = load_combined("known")
    assert tables.marginal(["age", "sex"]).ravel().tolist() == list(COUNTS.values())
    assert "Standard error   0\n" in run.done("answer", "known", "age=old")
    assert "age × sex are publicly known, and met" in Path("known/README.md").read_text("utf-8")
    made = run.json("postprocess", "known", "--nonnegative", "--round", "--out", "whole")
    assert made["known_totals"] == [["age", "sex"]]
    rows = pd.read_csv(next(Path("whole/tables").glob("*age_region.csv")))
    assert rows.groupby("age")["value"].sum().to_dict() == {"young": 50, "old": 7}


@pytest.mark.nightly
def test_records_and_publications_of_them_have_the_totals(run):
    run.done("postprocess", "out", "--known-totals", "known.csv", "--out", "known")
    run.done("postprocess", "known", "--nonnegative", "--round", "--out", "whole")
    run.done("synthesize", "known", "--out", "records")
    drawn = pd.read_csv("records/synthetic_records.csv").groupby(["age", "sex"]).size().to_dict()
    assert drawn == {cell: n for cell, n in COUNTS.items() if n}
    run.done("publish", "whole", "--format", "sdmx", "--language", "de", "--out", "public")
    file = next(Path("public/sdmx").glob("*age_sex*.csv"))
    assert set(pd.read_csv(file)["OBS_STATUS"]) == {"A"}
    assert "öffentlich bekannt" in file.read_text("utf-8")


def test_what_noise_does_not_explain_is_said(run):
    Path("far.csv").write_text("sex,count\nF,5000\nM,20\n")
    both = ("postprocess", "out", "--round", "--known-totals", "far.csv")
    assert (
        "The known total of sex = Female is 5,000, and the noisy count"
        in run.json(*both, "--out", "made")["doubt"]
    )
    assert "standard errors apart, which noise does not explain" in run.done(*both, "--out", "b")


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sex,total\nF,1.5\nM,2\n", "bad.csv: Line 2: The total '1.5' must be a whole number"),
        ("sex,total\nF,-1\nM,2\n", "bad.csv: Line 2: The total '-1'"),
        ("sex,total\nF,1\nX,2\n", "bad.csv: Line 3: 'sex' has no value 'X' in the codebook"),
        ("sex,total\nF,1\n", "bad.csv has no total of sex = Male; give each combination of sex"),
        ("sex,total\nF,1\nM,2\nF,1\n", "bad.csv: Line 4: sex = Female is there twice"),
        ("sex,total\nF,1\nM,2\n,4\n", "contradict each other, at most by 1: all records is 3 in"),
        ("town,total\nx,1\n", "bad.csv: The column 'town' is no attribute of the tables"),
        (
            "sex,number\nF,1\nM,2\n",
            "must be a column called total, got 'sex', 'number'",
        ),
        ("sex,total\n", "bad.csv has no rows"),
        ("sex,total\nF\n", "bad.csv: Line 2: There are 1 value for 2 columns"),
        ("sex,sex,total\nF,F,1\n", "bad.csv: There are two columns 'sex'"),
    ],
)
def test_what_is_no_file_of_totals_is_refused(run, content, message):
    Path("bad.csv").write_text(content)
    told = run.refused("postprocess", "out", "--known-totals", "bad.csv", "--out", "made")
    assert message in told
    assert "made" not in run.files()


def test_one_file_has_several_marginals(run):
    Path("both.csv").write_text(KNOWN.replace("age,sex", "age,sex,region").replace(
        "F,", "F,,").replace("M,", "M,,") + ",,R1,19\n,,R2,19\n,,R3,19\n")  # fmt: skip
    made = run.json("postprocess", "out", "--known-totals", "both.csv", "--out", "made")
    assert made["known_totals"] == [["age", "sex"], ["region"]]
    assert json.loads(Path("made/estimates.json").read_text())["known_totals"] == [
        ["age", "sex"], ["region"],
    ]  # fmt: skip


def test_totals_by_a_level_are_met_by_tables_at_several(run):
    """0-1 and 2+ are known; the other level crosses them, and has the same total by sex."""
    levels = {"known": "0-1, 2+", "crossing": "0, 1-2, 3"}
    ages = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 3}}
    sex = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
    Path("levels.json").write_text(json.dumps({"fields": [ages | {"levels": levels}, sex]}))
    rows = [f"{age},{sex}" for age in range(4) for sex in "FM" for _ in range(5 + 3 * age)]
    Path("r.csv").write_text("\n".join(["age,sex", *rows]))
    tables = ["--table", "age@known,sex", "--table", "age@crossing,sex"]
    run.done("plan", "levels.json", *tables, "--rho", "0.5", "--out", "levels-plan.json")
    run.done("release", "levels-plan.json", "r.csv", "--out", "at-levels")
    known = "sex,age@known,total\nF,0-1,13\nF,2+,25\nM,0-1,13\nM,2+,25\n"
    Path("bands.csv").write_text(known)
    given = ("postprocess", "at-levels", "--known-totals", "bands.csv")
    text = run.done(*given, "--out", "unbiased")
    assert "Publicly known totals met; unbiased" in text
    facts = run.json(*given, "--nonnegative", "--round", "--out", "whole-levels")
    assert ["sex", "age@known"] in facts["known_totals"]
    for folder in ("unbiased", "whole-levels"):
        made = rp.load_results(folder)
        assert made.table("sex", "age@known")["value"].tolist() == [13, 25, 13, 25]
        crossing = made.table("sex", "age@crossing")["value"].to_numpy().reshape(2, 3)
        assert crossing.sum(axis=1).tolist() == pytest.approx([38, 38])
