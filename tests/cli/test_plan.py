"""The command line: codebooks, and plans of tables with weights, targets and bases."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from statistics import NormalDist

import pandas as pd
import pyreadstat
import pytest

import rpexplore as rp
from rpexplore.cli import inputs
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning import planner
from rpexplore.planning.losses.losses import PNorm, SumOfVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.results.second_plan import weights_from_release
from rpexplore.results.smooth_choice import SHARES, choose_smooth_weights
from rpexplore.workload.bases import CustomBasis, Prefix, Ranges
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload
from tests.cli.program import BUDGET


def test_schema_lists_attributes_and_cells(run):
    text = run.done("schema", "codebook.csv")
    assert re.search(r"^sex +categories +2 +Female, Male$", text, re.MULTILINE)
    assert "3 attributes; one table of all together would have 12 cells" in text
    facts = run.json("schema", "codebook.csv")
    assert [(a["name"], a["values"]) for a in facts["attributes"]] == [
        ("age", 2),
        ("sex", 2),
        ("region", 3),
    ]


def test_schema_counts_no_values_of_amounts(run):
    income = {"name": "income", "type": "number", "bounds": [0, 2000], "unit": "EUR"}
    fields = [income, {"name": "sex", "constraints": {"enum": ["F", "M"]}}]
    Path("amounts.json").write_text(json.dumps({"fields": fields}))
    text = run.done("schema", "amounts.json")
    assert re.search(r"^income +amounts +– +amounts from 0 to 2,000 EUR$", text, re.MULTILINE)
    assert "one table of all together would have 2 cells" in text
    facts = run.json("schema", "amounts.json")
    assert (facts["cells"], [one["values"] for one in facts["attributes"]]) == (2, [None, 2])


def test_schema_lists_the_levels_that_tables_can_name(run):
    assert "levels" not in run.done("schema", "codebook.csv")
    age = {"name": "age", "constraints": {"minimum": 0, "maximum": 29}}
    age["levels"] = {"five": 5, "adult": "0-17, 18+"}
    region = {"name": "region", "constraints": {"enum": ["n1", "n2", "s1"]}}
    region["groups"] = [["North"], ["North"], ["South"]]
    Path("levels.json").write_text(json.dumps({"fields": [age, region]}), "utf-8")
    text = run.done("schema", "levels.json")
    assert re.search(r"^age .* five \(6\), adult \(2\) ", text, re.MULTILINE)
    assert [fact["levels"] for fact in run.json("schema", "levels.json")["attributes"]] == [
        [{"name": "five", "groups": 6}, {"name": "adult", "groups": 2}],
        [{"name": "groups", "groups": 2}],
    ]


def test_schema_of_so_many_attributes_that_their_cells_have_thousands_of_digits(run):
    Domain.from_sizes(dict.fromkeys([f"a{i}" for i in range(1_505)], 1_000)).save("big.json")
    assert "would have about 10^4515 cells" in run.done("schema", "big.json")
    assert run.json("schema", "big.json")["cells"] == "about 10^4515"


def test_schema_says_when_there_are_more_values_than_shown(run):
    Domain.from_sizes({"age": 5, "sex": 4, **dict.fromkeys("abcdefgh", 100)}).save("big.json")
    text = run.done("schema", "big.json")
    assert re.search(r"age +whole numbers +5 +0, 1, 2, 3, …$", text, re.MULTILINE)
    assert re.search(r"sex +whole numbers +4 +0, 1, 2, 3$", text, re.MULTILINE)
    assert "about 10^17 cells" in text


@pytest.mark.usefixtures("in_this_process")
def test_schema_takes_the_labels_of_a_file_of_spss(run):
    labels = {"sex": {1.0: "Male", 2.0: "Female"}}
    records = pd.DataFrame({"sex": [1.0, 2.0], "age": [30.0, 40.0]})
    pyreadstat.write_sav(records, "survey.sav", variable_value_labels=labels)
    facts = run.json("schema", "survey.sav", "--out", "codebook.json")
    assert Domain.load("codebook.json")["sex"].labels() == ["Male", "Female"]
    (remark,) = facts["remarks"]
    assert "Left out, because the file lists no values for them: age (type numbers)" in remark


def test_schema_takes_groups_from_a_hierarchy(run):
    Path("regions.hrc").write_text("Coast\n@R1\n@R3\nInland\n@R2\n", "utf-8")
    run.done("schema", "codebook.csv", "--groups", "region=regions.hrc", "--out", "grouped.json")
    assert Domain.load("grouped.json")["region"].groups == (("Coast",), ("Inland",), ("Coast",))
    assert "must be an attribute" in run.refused("schema", "codebook.csv", "--groups", "x.hrc")


def test_schema_converts_and_overwrites_only_by_force(run):
    run.done("schema", "codebook.csv", "--out", "codebook.json")
    assert Domain.load("codebook.json").names == ("age", "sex", "region")
    Path("codebook.json").write_text("precious", "utf-8")
    assert "exists already" in run.refused("schema", "codebook.csv", "--out", "codebook.json")
    assert Path("codebook.json").read_text("utf-8") == "precious"
    run.done("schema", "codebook.csv", "--out", "codebook.json", "--force")
    assert Domain.load("codebook.json") == Domain.load("codebook.csv")
    run.refused("schema", "codebook.csv", "--out", "codebook.txt")
    schemas = [
        {"name": name, "schema": json.loads(Path("codebook.json").read_text())} for name in "ab"
    ]
    Path("package.json").write_text(json.dumps({"resources": schemas}), "utf-8")
    run.done("schema", "package.json", "--resource", "b", "--out", "codebook.json", "--force")
    assert Domain.load("codebook.json") == Domain.load("codebook.csv")
    assert "2 tables, 'a', 'b'; take one" in run.refused("schema", "package.json")
    assert "no folder" in run.refused("schema", "codebook.csv", "--out", "none/codebook.json")
    impossible = [{"age": Domain.load("codebook.csv")["age"].labels()[0], "sex": "F"}]
    Domain(Domain.load("codebook.csv").attributes, impossible).save("stated.json")
    assert "states 1 impossible combination: age=" in run.done("schema", "stated.json")
    assert run.json("schema", "stated.json")["impossible"] == impossible
    assert "save the domain as .json" in run.refused("schema", "stated.json", "--out", "c.csv")


def test_plan_is_saved_and_summed_up(run):
    text = run.done("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--out", "plan.json")
    plan = TablePlan.load("plan.json")
    assert str(plan) in text
    assert "Saved to plan.json" in text
    assert f"SHA-256 {plan.sha256}" in text
    assert len(plan.workload) == 7


def test_plan_says_what_a_unit_without_a_number_of_records_is(run):
    unit = ["plan", "codebook.csv", "--up-to", "1", *BUDGET, "--unit", "household", "--force"]
    assert "One household is taken to be one record" in run.done(*unit, "--out", "plan.json")
    several = run.done(*unit, "--records-per-person", "4", "--out", "plan.json")
    assert "is taken to be" not in several


def test_plan_unites_tables_given_in_several_ways(run):
    Path("list.csv").write_text("attributes,weight,target\ntotal,2,9\nage × sex,3,\n", "utf-8")
    options = ["--tables", "list.csv", "--of-order", "1", "--table", "sex,region"]
    more = ["--weight", "region,sex=1.5", "--target", "sex=12", "--weight", "total=4"]
    run.done("plan", "codebook.csv", *options, *more, *BUDGET, "--out", "plan.json")
    workload = TablePlan.load("plan.json").workload
    names = [(), ("age",), ("sex",), ("region",), ("age", "sex"), ("sex", "region")]
    assert workload.tables == names
    assert workload.weights.tolist() == [4, 1, 1, 1, 3, 1.5]
    assert {index: t for index, t in enumerate(workload.targets) if t == t} == {0: 9, 2: 12}


def test_plan_takes_targets_in_any_unit(run):
    Path("list.csv").write_text("attributes,target,required\ntotal,+-60,yes\n", "utf-8")
    targets = ["--target", "age=±50 at 99 % required", "--target", "age,sex=5 % of 1,000"]
    targets += ["--target", "region=σ = 20"]
    options = ["--tables", "list.csv", "--of-order", "1", "--table", "age,sex"]
    run.done("plan", "codebook.csv", *options, *targets, *BUDGET, "--out", "plan.json")
    wanted = TablePlan.load("plan.json").workload.targets
    quantile = NormalDist().inv_cdf
    assert wanted[:2].tolist() == pytest.approx([60 / quantile(0.975), 50 / quantile(0.995)])
    assert wanted[[3, -1]].tolist() == [20, 50]


def test_targets_may_be_required(run):
    Path("list.csv").write_text("attributes,target,required\ntotal,+-60,yes\nage,5,\n", "utf-8")
    workload = inputs.workload_from_options(
        Domain.load("codebook.csv"),
        up_to=None,
        of_order=[],
        at_most_cells=None,
        table=["sex"],
        tables=Path("list.csv"),
        weight=[],
        target=["sex=±50 required"],
        basis=[],
    )
    assert workload.required.tolist() == [True, False, True]


def test_plan_takes_tables_by_cells(run):
    run.done("plan", "codebook.csv", "--at-most-cells", "4", *BUDGET, "--out", "plan.json")
    assert TablePlan.load("plan.json").workload.tables[-1] == ("age", "sex")


@pytest.mark.parametrize(
    ("budget", "rho"),
    [
        (["--rho", "1/3"], Fraction(1, 3)),
        (["--privacy-cost", "0.1"], Fraction(1, 20)),
        (["--mu", "0.3"], Fraction(9, 200)),
        (["--rho", "0.3", "--records-per-person", "3"], Fraction(3, 10)),
    ],
)
def test_budgets_are_exact(run, budget, rho):
    run.done("plan", "codebook.csv", "--up-to", "1", "--loss", "max", *budget, "--out", "plan.json")
    assert TablePlan.load("plan.json").budget.rho == rho


def test_budget_as_epsilon_and_delta(run):
    budget = ["--epsilon", "1", "--delta", "1e-9"]
    facts = run.json(
        "plan", "codebook.csv", "--up-to", "1", "--loss", "max", *budget, "--out", "plan.json"
    )
    assert 0.999 < facts["epsilon_by_delta"]["1e-9"] <= 1


def test_losses(run):
    for name, choice in {
        "cells.json": ["--loss", "sum", "--weighting", "cells"],
        "target.json": ["--loss", "max", "--relative-to", "target"],
        "norm.json": ["--loss", "p-norm:3", "--relative-to", "target"],
        "default.json": [],
    }.items():
        targets = ["--target", "age=3", "--target", "sex=4"]
        arguments = ["--table", "age", "--table", "sex", *targets, "--rho", "1"]
        run.done("plan", "codebook.csv", *arguments, *choice, "--out", name)
    assert TablePlan.load("cells.json").loss.weighting == "cells"
    assert TablePlan.load("norm.json").loss == PNorm(3, "target")
    assert TablePlan.load("default.json").loss == SumOfVariances()
    # Both maxima are held by their targets: the standard errors stand as 3 to 4.
    errors = TablePlan.load("target.json").standard_errors
    assert errors[0] / errors[1] == pytest.approx(3 / 4, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--up-to", "1", "--loss", "sum"], "Give the budget in one way"),
        (["--up-to", "1", *BUDGET, "--mu", "1"], "got --rho and --mu"),
        (["--up-to", "1", "--loss", "sum", "--epsilon", "1"], "needs a δ beside it"),
        (["--up-to", "1", "--loss", "sum", "--rho", "0"], "must be positive, got 0"),
        (["--up-to", "1", "--loss", "sum", "--rho", "much"], "got much"),
        ([*BUDGET], "Say which tables"),
        (["--up-to", "-1", *BUDGET], "from 0 to 3"),
        (["--up-to", "2", "--table", "sex,age", *BUDGET], "(age × sex) is in the workload twice"),
        (["--table", "age,height", *BUDGET], "no attribute 'height'"),
        (["--tables", "none.csv", *BUDGET], "'none.csv' cannot be read"),
        (["--up-to", "1", *BUDGET, "--weight", "age"], "such as age,sex=5"),
        (["--up-to", "1", *BUDGET, "--weight", "age=x"], "weight must be a number"),
        (["--up-to", "1", *BUDGET, "--weight", "age=-1"], "(age) must be a positive number"),
        (["--up-to", "1", *BUDGET, "--target", "age"], "such as age,sex=20"),
        (["--up-to", "1", *BUDGET, "--target", "age=5 %"], "must be written like 20"),
        (["--up-to", "1", *BUDGET, "--target", "age=-1"], "must be a positive number, got -1"),
        (["--up-to", "1", *BUDGET, "--weight", "age=1", "--weight", "age=2"], "'age' twice"),
        (["--up-to", "1", *BUDGET, "--target", "age,sex=1"], "not in the workload"),
        (["--up-to", "1", *BUDGET, "--relative-to", "target"], "belongs to the losses max"),
        (["--up-to", "1", "--loss", "max", "--rho", "1", "--weighting", "sqrt"], "the losses sum"),
        (["--up-to", "1", "--loss", "max", "--rho", "1", "--relative-to", "target"], "no target"),
        (["--up-to", "1", *BUDGET, "--records-per-person", "0"], "at least 1, got 0"),
        (
            ["--up-to", "1", "--loss", "min", "--rho", "1"],
            "The loss must be one of sum, max",
        ),
        (["--up-to", "1", "--loss", "p-norm:x", "--rho", "1"], "a number, such as p-norm:2"),
        (["--up-to", "1", "--loss", "required", "--rho", "1"], "No target is marked required"),
        (
            ["--up-to", "1", "--loss", "required", "--rho", "0.1", "--target", "age=1 required"],
            "cannot all be met at this budget",
        ),
        (["--up-to", "one", *BUDGET], "see rpexplore plan --help."),
        (["--up-to", "1", "--rho", "1", "--weighting"], "see rpexplore plan --help."),
        (
            ["--up-to", "1", *BUDGET, "--basis", "age"],
            "must be an attribute, =, and its basis",
        ),
        (["--up-to", "1", *BUDGET, "--basis", "age=up"], "'age=up' must give the basis of 'age'"),
        (["--up-to", "1", *BUDGET, "--basis", "age=hierarchy"], "'age' must have groups"),
        (
            ["--up-to", "1", *BUDGET, "--basis", "region=custom:none.csv"],
            "'none.csv' cannot be read",
        ),
        (
            ["--up-to", "1", *BUDGET, "--basis", "region=custom:codebook.csv"],
            "must be a number or the name",
        ),
        (
            ["--up-to", "1", *BUDGET, "--basis", "age=prefix@sex"],
            "does not have the attribute 'age'",
        ),
        (["--up-to", "1", *BUDGET, "--basis", "age=prefix@age,sex"], "not in the workload"),
        (["--table", "sex", *BUDGET, "--basis", "age=prefix"], "No table has"),
        (["--up-to", "1", *BUDGET, "--compare"], "tables in areas, and none is asked for"),
        (["--up-to", "1", *BUDGET, "--uniform-levels"], "tables in areas, and none is asked for"),
        (["--count", "a: sex = 'Female' @ 9", *BUDGET], "--loss is about tables, not own counts"),
    ],
)
def test_plan_refuses(run, options, refusal):
    assert refusal in run.refused("plan", "codebook.csv", *options, "--out", "plan.json")
    assert "plan.json" not in run.files()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("codebook = 5", "codebook must be a path in quotation marks, got 5"),
        ("tables = true", "tables must be a value, got true"),
        ("rho = true", "rho must be a value, got true"),
        ('force = "no"', "force must be true or false, got 'no'"),
        ("tolerance = false", "tolerance must be a value, got false"),
        ('rho = ["0.1", "0.2"]', "must have one value for 'rho', got a list"),
        ("height = 3", "says 'height', which is no option"),
    ],
)
def test_a_request_file_says_of_the_right_kind_what_there_is(run, content, message):
    Path("r.toml").write_text(content, "utf-8")
    arguments = ("plan", "codebook.csv", "--request", "r.toml", "--up-to", "1", "--rho", "1")
    refused = run.refused(*arguments, "--out", "plan.json")
    assert "The request r.toml" in refused
    assert message in refused
    assert "plan.json" not in run.files()


def test_paths_of_a_request_file_are_relative_to_it(run):
    Path("in").mkdir()
    Path("in/mine.csv").write_text("query,young,old\na,1,0\nall,1,1\n", "utf-8")
    content = 'codebook = "../codebook.csv"\nup-to = 1\nbasis = ["age=custom:mine.csv@age"]\n'
    Path("in/r.toml").write_text(content, "utf-8")
    run.done("plan", "--request", "in/r.toml", *BUDGET, "--out", "plan.json")
    workload = TablePlan.load("plan.json").workload
    assert workload.basis_of(workload.position(["age"]), 0).kind == "custom"


def test_plan_overwrites_only_by_force(planned):
    before = Path("plan.json").read_bytes()
    again = ["plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "plan.json"]
    assert "exists already" in planned.refused(*again)
    assert Path("plan.json").read_bytes() == before
    planned.done(*again, "--force")
    assert len(TablePlan.load("plan.json").workload) == 4


def test_attributes_have_other_bases(planned_with_bases):
    loaded = TablePlan.load("plan.json")
    domain = Domain.load("codebook.csv")
    own = CustomBasis([[1, 0, 0], [1, 1, 0], [1, 1, 1]], ["north", "not east", "all"], "mine")
    workload = Workload.all_up_to(domain, 2).with_bases({"age": Prefix(), "region": own})
    workload = workload.with_bases({"region": Ranges()}, tables=["region"])
    budget = Budget(rho="0.1")
    assert loaded.text == planner.plan_tables(workload, loss=SumOfVariances(), budget=budget).text
    assert "is not a matrix" in planned_with_bases.refused(
        "plan", "codebook.csv", "--up-to", "1", *BUDGET, "--basis", "region=custom:mine.npy",
        "--out", "other.json",
    )  # fmt: skip


def test_totals_are_spread_evenly_on_demand(planned_with_bases):
    options = ["--basis", "age=prefix", "--uniform-reference"]
    planned_with_bases.done(
        "plan", "codebook.csv", "--up-to", "1", *options, *BUDGET, "--out", "even.json"
    )
    workload = Workload.all_up_to(Domain.load("codebook.csv"), 1).with_bases({"age": Prefix()})
    even = planner.plan_tables(
        workload, loss=SumOfVariances(), budget=Budget(rho="0.1"), uniform_reference=True
    )
    assert Path("even.json").read_text("utf-8") == even.text


def test_the_search_for_what_to_measure_shows_how_far_it_is(run, monkeypatch):
    steps = []

    @contextmanager
    def progress(doing):
        yield lambda doing, share: steps.append((doing, share))

    # The package has a function of this module's name.
    monkeypatch.setattr(import_module("rpexplore.cli.plan"), "progress", progress)
    options = ["--basis", "age=prefix", "--basis", "region=ranges"]
    run.done("plan", "codebook.csv", "--up-to", "2", *options, *BUDGET, "--out", "plan.json")
    shares = [share for doing, share in steps if doing == "Looking for what to measure"]
    assert shares
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("cells", "rho", "warning"),
    [
        (2, "1", None),
        (2, "1e-40", "This plan cannot be released: The noise that the budget needs"),
        (10**5, "1", "This plan cannot be released: The table (a × b) has 10,000,000,000 cells"),
    ],
)
def test_a_plan_that_cannot_be_released_says_so(run, cells, rho, warning):
    Domain.from_sizes({"a": cells, "b": cells}).save("large.json")
    made = run.json("plan", "large.json", "--up-to", "2", "--rho", rho, "--out", "large-plan.json")
    assert (made["warning"] or "").startswith(warning or "")
    assert (made["warning"] is None) == (warning is None)


@pytest.mark.nightly
def test_weights_for_smooth_tables_are_those_of_budget_and_expected_counts(run):
    rho = ("--rho", "0.4")
    plan = ("plan", "codebook.csv", "--of-order", "3", "--out", "plan.json", "--smooth-weights")
    expected = ("--expected-count", "5000")
    made = run.json(*plan, *rho, *expected, "--records-per-person", "2", "--weight", "age=7")
    workload = TablePlan.load("plan.json").workload
    assert len(workload) == 3 + 3 + 1
    assert [row["share"] for row in made["weights_simulated"]["errors"]] == list(SHARES)
    budget = Budget(rho="0.4", max_records_per_person=2)
    chosen = choose_smooth_weights(workload, budget, ExpectedCounts.of_total(5000)).weights
    assert (chosen.rho, chosen.records) == (0.1, 5000)
    wanted = chosen.weights(workload)
    wanted[workload.position(("age",))] = 7
    assert workload.weights == pytest.approx(wanted)
    plan = (*plan, "--force")
    assert "goes with --expected-count" in run.refused(*plan, *rho)
    plan = (*plan, *expected)
    assert "leave --loss and --weighting out" in run.refused(*plan, *rho, "--weighting", "cells")
    assert "has yet to find" in run.refused(*plan, "--minimum-budget", "targets")


@pytest.mark.parametrize("shares", [("--share", "tables=1/4", "--share", "counts=3/4"), ()])
def test_smooth_weights_beside_own_counts_are_those_of_the_share_of_tables(shares, run):
    """As on the page: with other noise other weights are the best."""
    asked = ("--up-to", "2", "--count", "old: age = 'old' @ 9", "--rho", "0.4", *shares)
    smooth = ("--smooth-weights", "--expected-count", "900")
    run.done("plan", "codebook.csv", *asked, *smooth, "--out", "plan.json")
    plan = rp.Plan.load("plan.json")
    budget, workload, counts = plan.budget, plan.part("tables").workload, plan.part("counts")
    by_whole = replace(workload, weights=SmoothWeights(0.4, 900).weights(workload))
    request = rp.Request(
        tables=by_whole,
        counts=counts.queries,
        budget=budget,
        shares=dict(plan.shares) if shares else None,
    )
    of_tables = rp.plan(request).part("tables").budget
    assert of_tables.rho == Fraction(1, 10) if shares else of_tables.rho < Fraction(4, 10)
    wanted = SmoothWeights(float(of_tables.rho), 900).weights(workload)
    assert workload.weights.tolist() == wanted.tolist()


@pytest.mark.nightly
def test_a_second_plan_from_a_first_release_is_combined_with_it(planned):
    """The whole way: release, second plan, release, combine, smooth."""
    planned.done("release", "plan.json", "records.csv", "--out", "first", "--yes")
    plan = ("plan", "codebook.csv", "--up-to", "3", "--rho", "0.4", "--out", "second.json")
    text = planned.done(*plan, "--from-release", "first")
    budget, domain = Budget(rho="0.4"), Domain.load("codebook.csv")
    weights = weights_from_release("first", domain, budget)
    workload = weights.weighted(Workload.all_up_to(domain, 3))
    assert (
        TablePlan.load("second.json").sha256
        == plan_tables(workload, loss=SumOfVariances(), budget=budget).sha256
    )
    assert f"{weights.text}. No record was looked at" in text
    planned.done("release", "second.json", "records.csv", "--out", "second", "--yes")
    for step in re.findall("^  rpexplore (.*)$", text, re.MULTILINE):
        planned.done(*step.replace("SECOND", "second").split())
    smooth = rp.load_results("smooth")
    assert len(smooth.table_names) == 8
    assert [source["name"] for source in smooth.manifest["sources"]] == ["first", "second"]
    again = (*plan, "--force", "--from-release")
    assert "leave --loss and --weighting out" in planned.refused(*again, "both", "--loss", "max")
    assert "unbiased tables are needed" in planned.refused(*again, "smooth")


def test_values_that_are_public_are_taken_from_records_one_attribute_at_a_time(run):
    Path("public.csv").write_text("region,town\nR1,b\nR1,a\nR9,b\n")
    options = ("--public-values", "town=public.csv", "--public-values", "region=public.csv")
    facts = run.json("schema", "codebook.csv", *options, "--out", "complete.json")
    assert "The values of region and town were found in the records." in facts["remarks"][-1]
    domain = Domain.load("complete.json")
    assert domain["town"].stored_values() == ["a", "b"]
    assert domain["region"].stored_values() == ["R1", "R9"]
    assert "values found in the records" in domain["town"].label
    refusal = run.refused("schema", "codebook.csv", "--public-values", "public.csv")
    assert "must be an attribute, =, and a file of records" in refusal


@pytest.mark.parametrize("is_package", [False, True])
def test_fields_without_values_are_filled_where_they_stand(run, is_package):
    town = {"name": "town", "title": "Town", "missingValues": [{"value": "-9", "label": "gone"}]}
    sex = {"name": "sex", "constraints": {"enum": ["F", "M"]}}
    schema = {"fields": [town, sex]}
    if is_package:
        schema["fields"].append({"name": "pay", "type": "number"})
        schema = {"resources": [{"name": "r", "path": "r.csv", "schema": schema}]}
    Path("open.json").write_text(json.dumps(schema), "utf-8")
    Path("r.csv").write_text("town,sex\nb,F\n-9,M\na,M\n")
    facts = run.json("schema", "open.json", "--public-values", "town=r.csv", "--out", "done.json")
    domain = Domain.load("done.json")
    assert domain.names == ("town", "sex")
    assert domain["town"].labels() == ["gone", "a", "b"]
    assert domain["town"].groups == (("Missing",), (), ())
    assert domain["town"].label == "Town (values found in the records)"
    left_out = [remark for remark in facts["remarks"] if "Left out" in remark]
    assert len(left_out) == is_package
    assert all("pay" in remark and "town" not in remark for remark in left_out)
    if not is_package:
        assert "'town': its values are not known" in run.refused("schema", "open.json")
