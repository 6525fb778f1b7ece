"""Lists of queries on the command line: planned, shown, verified and released like tables."""

import csv
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rpexplore import Budget
from rpexplore.analysis.queries import CountUsefulness
from rpexplore.cli.counts import named_presets
from rpexplore.domain.domain import Domain
from rpexplore.domain.public_tables import PublicTables
from rpexplore.errors import PlanError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.plan import load_plan
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload import presets
from tests.cli.program import Program
from tests.support.plan_texts import laid_out, other_layouts

QUERY = ("--count", 'women: sex = "Female" @ 5', "--count", 'old: age = "old" ± 20')
LIST = ("plan", "codebook.csv")


@pytest.fixture
def planned(run) -> Program:
    run.done(*LIST, *QUERY, "--rho", "0.1", "--out", "queries.json")
    return run


def test_a_reformatted_plan_of_queries_is_refused_until_it_is_rewritten(planned):
    original = Path("queries.json").read_bytes()
    for layout, text in other_layouts(original.decode()).items():
        Path("other.json").write_bytes(text.encode())
        assert "other.json must be byte for byte" in planned.refused("verify", "other.json"), layout
        planned.done("rewrite", "other.json", "--out", "again.json", "--force")
        assert Path("again.json").read_bytes() == original


# ---- planning


def test_queries_are_planned_and_summed_up(run):
    text = run.done(*LIST, *QUERY, "--rho", "0.1", "--out", "queries.json")
    plan = QueryPlan.load("queries.json")
    assert str(plan) in text
    assert "Saved to queries.json" in text
    assert f"SHA-256 {plan.sha256}" in text
    assert plan.queries.names == ("women", "old")
    # About what the conditions name, and nothing else.
    assert plan.queries.domain.names == ("age", "sex")
    assert plan.queries.coefficients.tolist() == [[1, 0, 1, 0], [0, 0, 1, 1]]
    assert plan.targets.tolist() == pytest.approx([5, 20 / 1.959964], rel=1e-6)
    assert "noise in every cell" in text
    # A young man is in no query, so that nothing of the budget is used for him.
    assert re.search(r"^young, Male +0 % .* unknown$", text, re.MULTILINE)


def test_the_baselines_are_compared_with_the_plan(run):
    facts = run.json(*LIST, *QUERY, "--rho", "0.1", "--out", "queries.json")
    optimum = query_optimum(QueryPlan.load("queries.json").queries)
    needed = {row["baseline"]: row["rho"] for row in facts["baselines"]}
    assert needed["optimal plan"] == pytest.approx(optimum.cost / 2)
    # Two of the three cells that are counted: variances of 2γ², each at a cost of 1/γ².
    assert needed["input perturbation"] == pytest.approx(max(2 / 25, 2 / (20 / 1.959964) ** 2) / 2)
    assert facts["targets_met"] == 2
    assert facts["largest_ratio"] == pytest.approx(optimum.cost / 0.2)
    assert facts["spare_cells"][0]["present_standard_error"] is None


@pytest.mark.parametrize("file", ["list.txt", "list.csv", "table.csv"])
def test_queries_are_read_from_files(run, file):
    Path("list.txt").write_text('women: sex = "Female" @ 5\nold: age = "old"\n', "utf-8")
    with Path("list.csv").open("w", newline="", encoding="utf-8") as written:
        csv.writer(written).writerows(
            [["name", "condition", "target"], ["women", 'sex="F"', "5"], ["old", 'age="old"', ""]]
        )
    cells = ["young, Female", "young, Male", "old, Female", "old, Male"]
    with Path("table.csv").open("w", newline="", encoding="utf-8") as written:
        csv.writer(written).writerows(
            [["name", "target", *cells], ["women", 5, 1, 0, 1, 0], ["old", "", 0, 0, 1, 1]]
        )
    about = [] if file == "list.txt" else ["--counts-of", "sex,age"]
    target = ["--count-target", "±20"]
    run.done(*LIST, *about, "--counts", file, *target, "--rho", "0.1", "--out", "file.json")
    run.done(*LIST, *QUERY, "--rho", "0.1", "--out", "typed.json")
    assert Path("file.json").read_bytes() == Path("typed.json").read_bytes()


def test_a_csv_file_of_conditions_is_about_the_attributes_that_they_name(run):
    Path("list.csv").write_text('condition,target\n"age=""old""",5\n', "utf-8")
    run.done(*LIST, "--counts", "list.csv", "--rho", "1", "--out", "queries.json")
    assert QueryPlan.load("queries.json").queries.n_cells == 2
    Path("list.csv").write_text("condition,target\ntotal,5\n", "utf-8")
    run.done(*LIST, "--counts", "list.csv", "--rho", "1", "--out", "total.json")
    assert QueryPlan.load("total.json").queries.names == ("total",)
    counts = ["--count", "total ± 5", "--count", "height > 5 ± 5"]
    told = run.refused(*LIST, *counts, "--rho", "1", "--out", "other.json")
    assert "Line 2: At character 1 of the condition, 'height': there is no attribute" in told


def test_counts_about_many_cells_by_other_attributes_are_planned_and_released(run):
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9_999}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
    ]
    fields[1]["categories"] = [{"value": "F", "label": "Women"}, {"value": "M", "label": "Men"}]
    Path("many.json").write_text(json.dumps({"fields": fields}))
    Path("many.csv").write_text("sex,age\nF,17\nF,18\nM,9000\nF,9999\n")
    Path("own.csv").write_text("name,condition,by,target\nadults,age >= 18,sex,0.1\n")
    made = ["plan", "many.json", "--counts", "own.csv", "--rho", "10000", "--out", "many-plan.json"]
    facts = run.json(*made)
    assert (facts["cell_count"], facts["group_count"]) == (20_000, 3)
    text = run.done("show", "many-plan.json")
    assert "2 own counts over 3 groups of 20,000 cells" in text
    run.done("verify", "many-plan.json")
    run.done("release", "many-plan.json", "many.csv", "--out", "many-out")
    answers = QueryRelease.load(Path("many-out")).answers
    assert answers["name"].tolist() == ["adults, sex = Women", "adults, sex = Men"]
    assert answers["answer"].tolist() == pytest.approx([2, 1], abs=0.5)  # σ is 0.007
    for name in ("adults, sex = Women", "adults, sex = F", "adults,sex=F"):
        assert run.json("answer", "many-out", name)["value"] == answers["answer"][0]
    assert run.done("answer", "many-out", "adults, sex = M", "--per", "adults, sex = F")
    told = run.refused("answer", "many-out", "adults, sex = Woman")
    assert "did you mean 'adults, sex = Women'?" in told


def test_a_template_can_be_planned_as_it_is(run):
    run.done(
        "counts", "template", "--codebook", "codebook.csv", "--attributes", "region,sex",
        "--out", "template.csv",
    )  # fmt: skip
    header = Path("template.csv").read_text("utf-8").splitlines()[0]
    assert header.startswith("name,target,")
    assert '"Female, North"' in header
    about = ["--counts-of", "sex,region", "--counts", "template.csv"]
    run.done(*LIST, *about, "--rho", "1", "--out", "queries.json")
    assert len(QueryPlan.load("queries.json").queries) == 1 + 2 + 3
    again = ["counts", "template", "--codebook", "codebook.csv", "--out", "template.csv"]
    assert "exists already" in run.refused(*again)
    assert "must end in .csv, got 't.json'" in run.refused(*again[:-1], "t.json")
    assert run.json(*again, "--force")["attributes"] == ["age", "sex", "region"]


def test_presets_are_named_as_in_their_module(run):
    names = [name for name, _ in named_presets()]
    assert [getattr(presets, name.name) for name in names] == list(presets.PRESETS)
    facts = run.json("counts", "presets")["presets"]
    assert [fact["name"] for fact in facts] == [name.value for name in names]
    assert facts[0]["cell_count"] == 252
    text = run.done("counts", "presets")
    assert all(f"{name.value}: " in text for name in names)


def test_a_preset_is_planned_with_its_own_targets(run):
    Path("cells.json").write_text('{"cell": 64}')
    made = ["plan", "cells.json", "--preset", "identity-plus-sum", "--out", "queries.json"]
    facts = run.json(*made, "--minimum-budget", "targets")
    # Its smallest privacy cost is 2n/(n + 1).
    assert Fraction(facts["rho"]) == pytest.approx(64 / 65, rel=2e-3)
    assert facts["targets_met"] == facts["query_count"] == 65
    refused = run.refused(*made, "--count-target", "5", "--rho", "1", "--force")
    assert "are about own counts" in refused


def test_a_preset_is_fitted_to_a_codebook_and_what_is_guessed_is_told(run):
    made = ["plan", "codebook.csv", "--preset", "age-pyramid"]
    rest = ["--rho", "1", "--out", "queries.json", "--force"]
    text = run.done(*made, *rest, "--role", "geography=")
    assert "Guessed from names and sizes" in text
    assert "Sex: sex\nAge: age\nGeography: left out" in text
    plan = QueryPlan.load("queries.json")
    assert plan.queries.domain.names == ("age", "sex")
    assert len(plan.queries) == 4 + 2 + 2 + 1
    assert "one of sex, age, geography" in run.refused(*made, *rest, "--role", "race=sex")
    twice = run.refused(*made, *rest, "--role", "age=sex")
    assert "Age: 'sex' is the attribute of Sex already" in twice
    uncategorised = run.refused(*made, *rest, "--category", "sex:m=Malle")
    assert "the role 'sex' has no categories; each value is asked." in uncategorised
    # A category is corrected for one value.
    Path("race.csv").write_text("attribute,value,label\nrace,w,White\nrace,x,Blended\n", "utf-8")
    made = ["plan", "race.csv", "--preset", "redistricting"]
    text = run.done(*made, *rest, "--category", "race:x=Two or more races")
    assert "Race: race, w = White alone, x = Two or more races" in text
    for wrong, why in (
        ("race", "must be written ROLE:VALUE=CATEGORY, such as 'race:2+="),
        ("sex:x=z", "'sex' is no role with categories and an attribute here; such are 'race'."),
        ("race:y=z", "the attribute 'race' has no value 'y'; it has 'w', 'x'."),
        ("race:x=z", "Race has no category 'z'; it has 'White alone'"),
    ):
        assert why in run.refused(*made, *rest, "--category", wrong)


def test_queries_of_ones_own_stand_before_those_of_a_preset(run):
    made = ["plan", "codebook.csv", "--preset", "age-pyramid"]
    own = ["--role", "geography=", "--count", "women: sex = 'Female' @ 5"]
    run.done(*made, *own, "--rho", "1", "--out", "queries.json")
    plan = QueryPlan.load("queries.json")
    assert plan.queries.names[:2] == ("women", "age young × sex Female")
    assert len(plan.queries) == 4 + 2 + 2 + 1
    assert plan.targets.tolist() == [5.0, *[10.0] * 8]


@pytest.mark.parametrize("unit", [[], ["--delta", "1e-9"]])
@pytest.mark.parametrize("persons", [[], ["--records-per-person", "3"]])
def test_enough_is_the_smallest_budget_that_meets_all_targets(run, unit, persons):
    run.done(*LIST, *QUERY, "--minimum-budget", "targets", *unit, *persons, "--out", "queries.json")
    plan = QueryPlan.load("queries.json")
    assert np.all(plan.met)
    assert set(dict(plan.budget.stated)) == ({"epsilon", "delta"} if unit else {"rho"})
    assert plan.budget.max_records_per_person == (3 if persons else None)
    factor = 9 if persons else 1
    least = query_optimum(plan.queries).lower_bound / 2 * factor
    assert least <= float(plan.rho) < least * 1.002
    less = Budget(rho=plan.rho * Fraction(998, 1000), max_records_per_person=3 if persons else None)
    assert not np.all(query_optimum(plan.queries).at(less).met)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Say which tables"),
        ([*QUERY, "--counts", "none.txt"], "Give own counts in one way"),
        (["--counts", "none.txt"], "'none.txt' cannot be read"),
        (["--counts", "none.csv"], "'none.csv' cannot be read"),
        (["--count", "all: @ 5", "--counts-of", "age,height"], "'height'"),
        (["--count", "height > 3 @ 5"], "'height'"),
        (["--count", 'age = "old"'], "needs a target"),
        (["--count", 'age = "old" @ 5', "--count", 'age = "old" @ 6'], "given before"),
        (["--count", 'age = "old"', "--count-target", "wide"], "must be written like"),
        ([*QUERY, "--counts-of", "sex"], "'age'"),
    ],
)
def test_what_cannot_be_planned_is_refused(run, options, message):
    result = run.refused(*LIST, *options, "--rho", "0.1", "--out", "queries.json")
    assert message in result
    assert "queries.json" not in run.files()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Give the budget in one way"),
        (
            ["--rho", "0.1", "--minimum-budget", "targets"],
            "budget finds the budget; leave --rho out",
        ),
        (
            ["--minimum-budget", "targets", "--epsilon", "1", "--delta", "1e-9"],
            "leave --epsilon out",
        ),
    ],
)
def test_budgets_are_given_in_one_way(run, options, message):
    assert message in run.refused(*LIST, *QUERY, *options, "--out", "queries.json")


def test_plans_are_overwritten_only_by_force(planned):
    before = Path("queries.json").read_bytes()
    again = [*LIST, *QUERY, "--rho", "0.2", "--out", "queries.json"]
    assert "exists already" in planned.refused(*again)
    assert Path("queries.json").read_bytes() == before
    planned.done(*again, "--force")
    assert QueryPlan.load("queries.json").rho > Fraction(1, 10)


def test_the_group_tells_its_verbs(run):
    text = run.done("counts")
    assert text == run.done("counts", "--help")
    for verb in ("presets", "template"):
        assert re.search(rf"^  {verb} .*\.$", text, re.MULTILINE)
    assert "..." not in text.partition("Commands:")[2]


# ---- the verbs for plans


def test_show_has_the_furthest_off_first(planned):
    plan = QueryPlan.load("queries.json")
    text = planned.done("show", "queries.json", "--tables", "1")
    assert str(plan) in text
    furthest = plan.queries.names[int(np.argmax(plan.standard_errors / plan.targets))]
    assert re.search(rf"^{furthest} .* yes$", text, re.MULTILINE)
    assert "… and 1 more own counts: --tables 2 shows all" in text
    assert "more own counts" not in planned.done("show", "queries.json")
    facts = planned.json("show", "queries.json")
    assert facts["sha256"] == plan.sha256
    by_name = {row["item"]: row for row in facts["queries"]}
    for name, error in zip(plan.queries.names, plan.standard_errors.tolist(), strict=True):
        assert by_name[name]["standard_error"] == error
        assert by_name[name]["margin_95"] == pytest.approx(1.959964 * error, rel=1e-6)
    assert sum(row["shadow_price"] for row in facts["queries"]) == pytest.approx(1)


def test_show_writes_all_queries(planned):
    planned.done("show", "queries.json", "--csv", "queries.csv")
    with Path("queries.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["item", "standard_error", "margin_95"]
    assert {row[0] for row in rows} == {"women", "old"}
    assert "exists already" in planned.refused("show", "queries.json", "--csv", "queries.csv")


def test_verify_and_show_tell_a_plan_that_claims_too_much(planned):
    text = planned.done("verify", "queries.json")
    assert text.count("ok  ") == 3
    assert planned.json("verify", "queries.json")["holds"] is True
    content = json.loads(Path("queries.json").read_text("utf-8"))
    content["parts"][0]["gamma_squared"] = "1"
    Path("broken.json").write_text(laid_out(content), "utf-8")
    result = planned("verify", "broken.json")
    assert result.exit_code == 1
    assert "FAIL privacy cost" in result.stdout
    facts = json.loads(planned("verify", "broken.json", "--json").stdout)
    assert (facts["holds"], facts["guarantee"]) == (False, None)
    assert "does not hold what it claims" in planned.refused("show", "broken.json")
    refused = planned("release", "broken.json", "records.csv", "--out", "out")
    assert "does not hold what it claims" in refused.stderr


def test_the_format_says_which_kind_of_plan_it_is(planned):
    # Also where the keys have been put in another order.
    text = Path("queries.json").read_text("utf-8")
    Path("sorted.json").write_text(json.dumps(json.loads(text), sort_keys=True), "utf-8")
    assert load_plan("sorted.json", canonical=False).parts[0].kind == "counts"
    Path("other.json").write_text('{"domain": 1, "format": "another"}', "utf-8")
    Path("bytes.json").write_bytes(b"\xff\xfe")
    assert load_plan("queries.json").parts[0].kind == "counts"
    for name in ("other.json", "bytes.json", "none.json", "codebook.csv"):
        with pytest.raises(PlanError):
            load_plan(name)
        assert "plan" in planned.refused("show", name)


def test_own_counts_are_reported_and_compared(planned):
    plan = QueryPlan.load("queries.json")
    counts = ("--expected-count", "100")
    planned.done("report", "queries.json", "--out", "report.html", *counts)
    assert plan.proven in Path("report.html").read_text("utf-8")
    compared = planned.json("compare", "queries.json")["baselines"]
    assert compared[0]["baseline"] == "optimal plan"
    useful = CountUsefulness.of(plan, PublicTables(plan.domain, (), 100), 0.2)
    assert useful.describe() in planned.done("show", "queries.json", *counts)
    facts = planned.json("show", "queries.json", *counts)["publishable"]
    assert facts["publishable_count"] == useful.publishable._asdict()


# ---- release


def test_release_writes_answers_and_tells_what_it_charges(planned):
    text = planned.done("release", "queries.json", "records.csv", "--out", "out")
    assert "Protects  one record" in text
    assert "Cost      ρ = 0.1 for this run" in text
    assert "The 2 noisy own counts are in out" in text
    assert "Charged ρ = 0.1; spent on this data so far: ρ = 0.1" in text
    answers = QueryRelease.load("out").answers
    assert answers["name"].tolist() == ["women", "old"]
    # 45 women, 30 old people; farther out with probability 1e-11.
    assert np.all(np.abs(answers["answer"] - [45, 30]) < 6.8 * answers["standard_error"])


def test_tables_and_queries_share_the_ledger(planned):
    planned.done("plan", "codebook.csv", "--up-to", "1", "--rho", "0.2", "--out", "plan.json")
    capped = ["--limit-rho", "0.35"]
    planned.done("release", "plan.json", "records.csv", "--out", "tables", *capped)
    facts = planned.json("release", "queries.json", "records.csv", "--out", "answers", *capped)
    assert facts["query_count"] == 2
    assert facts["folder"] == "answers"
    assert Fraction(facts["charged_rho"]) == QueryPlan.load("queries.json").rho
    assert Fraction(facts["spent_rho"]) == pytest.approx(Fraction(3, 10))
    third = planned("release", "queries.json", "records.csv", "--out", "third")
    assert third.exit_code == 2
    assert "left of its budget limit" in third.stderr
    listed = planned.json("ledger", "records.csv")["runs"]
    assert [Path(run["output"]).name for run in listed] == ["tables", "answers"]
    TableRelease.load("tables")
    assert "holds 2 noisy own counts" in planned.refused("answer", "answers", "age=old")
    assert planned.json("answer", "answers", "women")["basis"] == "from the own counts"


def test_release_asks_where_somebody_can_answer(planned, monkeypatch):
    monkeypatch.setattr("rpexplore.cli.release.interactive", lambda: True)
    command = ["release", "queries.json", "records.csv", "--out", "out"]
    refused = planned(*command, input="n\n")
    assert refused.exit_code == 2
    assert "nothing was charged" in refused.stderr
    assert not Path("out").exists()
    assert planned(*command, "--json", input="y\n").exit_code == 0


def test_release_counts_unknown_values_as_the_option_says(planned):
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,X,R1\n")
    command = ["release", "queries.json", "records.csv", "--out", "out"]
    assert "'sex'" in planned(*command).stderr
    planned.done(*command, "--unknown-values", "sex=M")
    assert QueryRelease.load("out").manifest["unknown_values"] == {"sex": "M"}
    # A region is no part of this plan.
    message = planned.refused(*command[:-1], "more", "--unknown-values", "region=R1")
    assert "no attribute 'region' in the domain; it has" in message


def test_a_stop_after_booking_says_that_it_stays_charged(planned, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    command = ["release", "queries.json", "records.csv", "--out", "out"]
    monkeypatch.setattr("rpexplore.releases.query_release.discrete_gaussian", stop)
    stopped = planned(*command)
    assert stopped.exit_code == 130
    message = (
        "Stopped. The run was booked before: ρ = 0.1 stays charged. Run it again, into the same"
    )
    assert stopped.stderr.startswith(message)
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.count", stop)
    assert planned(*command).stderr.startswith(message)
    account = Ledger.beside("records.csv").account("records.csv")
    assert [run.state for run in account.entries] == ["started"]
    assert not Path("out").exists()


def test_the_codebook_of_a_plan_is_its_own(planned):
    """The released plan needs no codebook beside it."""
    Path("codebook.csv").unlink()
    planned.done("release", "queries.json", "records.csv", "--out", "out")
    domain = QueryRelease.load("out").plan.queries.domain
    assert domain.names == ("age", "sex")
    assert isinstance(domain, Domain)
