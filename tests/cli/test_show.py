"""The command line: what a plan promises, shown, verified and rewritten."""

import hashlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import title
from tests.cli.program import BUDGET
from tests.support.plan_texts import content_of, laid_out, other_layouts


def test_show_has_the_least_accurate_first_and_says_what_is_left_out(planned):
    text = planned.done("show", "plan.json", "--tables", "2")
    listed = text.partition("\ntable ")[2].splitlines()
    least_accurate = TablePlan.load("plan.json").tables.nlargest(2, "standard_error")["attributes"]
    assert [line.split("  ")[0] for line in listed[2:4]] == [title(t) for t in least_accurate]
    assert listed[4].startswith("… and 5 more tables: --tables 7 shows all")
    assert "The shadow price of each table is its share in what decides the objective" in text
    whole = planned.done("show", "plan.json")
    assert "more tables" not in whole
    assert all(name in whole for name in ("total", "age × sex", "sex × region"))


def test_show_says_which_targets_are_met(run):
    targets = ["--target", "age=100", "--target", "sex=0.001"]
    run.done("plan", "codebook.csv", "--up-to", "1", *targets, *BUDGET, "--out", "plan.json")
    text = run.done("show", "plan.json")
    assert re.search(r"^age .*  100  .* %  yes$", text, re.MULTILINE)
    assert re.search(r"^sex .*  0\.001  .* %   no$", text, re.MULTILINE)


def test_show_writes_all_tables_and_plan_reads_them_again(planned):
    planned.done("show", "plan.json", "--tables", "1", "--csv", "tables.csv")
    assert len(Path("tables.csv").read_text("utf-8").splitlines()) == 8
    assert "exists already" in planned.refused("show", "plan.json", "--csv", "tables.csv")
    planned.done("plan", "codebook.csv", "--tables", "tables.csv", *BUDGET, "--out", "again.json")
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()


def test_show_as_json_has_every_table(planned):
    facts = planned.json("show", "plan.json")
    plan = TablePlan.load("plan.json")
    assert facts["sha256"] == plan.sha256
    assert facts["table_count"] == len(facts["tables"]) == 7
    by_table = {tuple(row["attributes"]): row for row in facts["tables"]}
    assert by_table[("age", "sex")]["standard_error"] == plan.standard_errors[4]
    assert by_table[()]["target"] is None
    assert len(planned.json("show", "plan.json", "--tables", "2")["tables"]) == 2


@pytest.mark.nightly
def test_compare_with_plainer_mechanisms(planned):
    compared = rp.compare(TablePlan.load("plan.json"))
    text = planned.done("compare", "plan.json")
    assert all(sentence in text for sentence in compared.sentences)
    row = compared.frame().iloc[0]
    line = rf"^{row['name']} +{row['baseline']} .* {row['budget_text']}$"
    assert re.search(line, text, re.MULTILINE)
    assert "Standard errors" not in text
    listed = planned.done("compare", "plan.json", "--tables", "2").splitlines()
    assert listed[-4].split("  ")[0] == "table"
    facts = planned.json("compare", "plan.json")
    assert facts["baselines"][0]["times_budget"] == row["times_budget"]
    assert len(facts["tables"]) == 7


def test_show_refuses_a_plan_that_claims_too_much(planned):
    content = content_of(Path("plan.json").read_text("utf-8"))
    content["privacy_cost"] = "0.0001"
    Path("plan.json").write_text(laid_out(content), "utf-8")
    assert "does not hold what it claims" in planned.refused("show", "plan.json")


def test_a_reformatted_plan_is_refused_until_it_is_rewritten(planned):
    original = Path("plan.json").read_bytes()
    for layout, text in other_layouts(original.decode()).items():
        Path("other.json").write_bytes(text.encode())
        for verb in ("show", "verify"):
            message = planned.refused(verb, "other.json")
            assert "other.json must be byte for byte" in message, layout
            assert "rpexplore rewrite other.json --out FILE" in message
        facts = planned.json("rewrite", "other.json", "--out", "again.json", "--force")
        assert facts == {"plan": "again.json", "sha256": hashlib.sha256(original).hexdigest()}
        assert Path("again.json").read_bytes() == original


def test_rewrite_refuses_what_is_no_plan_or_claims_too_much(planned):
    content = content_of(Path("plan.json").read_text("utf-8"))
    content["privacy_cost"] = "0.0001"
    Path("broken.json").write_text(laid_out(content), "utf-8")
    text = Path("plan.json").read_text("utf-8")
    Path("edited.json").write_text(text.replace('"weight":1.0', '"weight":1.5', 1), "utf-8")
    for file, message in (
        ("edited.json", "was changed since it was written"),
        ("broken.json", "does not hold what it claims"),
        ("codebook.csv", "is not a plan file"),
        ("none.json", "cannot be read"),
    ):
        assert message in planned.refused("rewrite", file, "--out", "again.json")
    assert "exists already" in planned.refused("rewrite", "plan.json", "--out", "plan.json")
    assert not Path("again.json").exists()


def test_verify_says_so_by_its_exit_code(planned):
    text = planned.done("verify", "plan.json")
    assert text.count("ok  ") == 4
    assert "(ε, δ)-differentially private" in text
    assert planned.json("verify", "plan.json")["holds"] is True

    content = content_of(Path("plan.json").read_text("utf-8"))
    content["residuals"][0]["sigma_squared"] = "0.001"
    Path("broken.json").write_text(laid_out(content), "utf-8")
    result = planned("verify", "broken.json")
    assert result.exit_code == 1
    assert "FAIL privacy cost" in result.stdout
    assert "does not hold what it claims" in result.stdout
    result = planned("verify", "broken.json", "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["holds"] is False
    assert facts["guarantee"] is None
    assert not facts["checks"][0]["holds"]


def test_show_says_which_bases_attributes_have(planned_with_bases):
    text = planned_with_bases.done("show", "plan.json")
    assert "age: cumulative: up to each value\n" in text
    assert "region: own matrix (mine)\n" in text
    assert "region: ranges: every range of values, in region\n" in text
    loaded = TablePlan.load("plan.json")
    line = next(line for line in text.splitlines() if line.startswith("region (ranges)"))
    row = loaded.workload.position("region")
    rms, largest = loaded.standard_errors[row], loaded.largest_standard_errors[row]
    assert f"{rms:.4g}"[:4] in line
    assert f"{largest:.4g}"[:4] in line
    assert largest > rms
    facts = planned_with_bases.json("show", "plan.json")
    assert facts["bases"][0] == {
        "attribute": "age",
        "basis": "prefix",
        "description": "cumulative: up to each value",
        "tables": None,
    }
    assert facts["bases"][2]["tables"] == [["region"]]
    assert facts["uniform_reference"] is False
    assert {"standard_error", "largest_standard_error"} <= facts["tables"][0].keys()


def test_tables_with_bases_are_written_and_read_again(planned_with_bases):
    planned_with_bases.done("show", "plan.json", "--csv", "tables.csv")
    header = Path("tables.csv").read_text("utf-8").splitlines()[0]
    assert header.startswith("item,attributes,")
    bases = ["age=prefix", "region=custom:mine.csv", "region=ranges@region"]
    options = [option for basis in bases for option in ("--basis", basis)]
    again = ["--tables", "tables.csv", *options, *BUDGET, "--out", "again.json"]
    planned_with_bases.done("plan", "codebook.csv", *again)
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()


def test_columns_that_say_nothing_are_left_out(planned):
    planned.done("show", "plan.json", "--csv", "tables.csv")
    assert Path("tables.csv").read_text("utf-8").splitlines()[0] == (
        "item,attributes,cells,standard_error,margin_95,weight,shadow_price"
    )
    assert pd.read_csv("tables.csv")["standard_error"].is_monotonic_decreasing
    assert planned.json("show", "plan.json")["bases"] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["certificate"].update(gap=0.5),
        lambda content: content["budget"].update(privacy_cost="3"),
        lambda content: content["tables"][0].update(weight=0),
        lambda content: content["residuals"].pop(),
    ],
)
def test_verify_ends_with_1_for_a_plan_that_contradicts_itself(change, planned):
    """Even where there is nothing to recompute; with 2 only for what is no plan."""
    content = content_of(Path("plan.json").read_text("utf-8"))
    change(content)
    Path("broken.json").write_text(laid_out(content), "utf-8")
    result = planned("verify", "broken.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("FAIL contents: broken.json cannot be used: ")
    assert result.stdout.endswith("This plan does not hold what it claims.\n")
    facts = json.loads(planned("verify", "broken.json", "--json").stdout)
    assert (facts["holds"], facts["sha256"]) == (False, None)
    Path("broken.json").write_text(laid_out({**content, "format_version": 99}), "utf-8")
    assert "is not a plan file" in planned.refused("verify", "broken.json")
