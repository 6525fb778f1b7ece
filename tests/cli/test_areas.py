"""The command line: plans for areas, made, shown, verified and refused."""

import json
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.planning.areas.level_tables import with_weight

CODES = "home\n1|1\n1|2\n2|1\n2|2\n2|3\n3\n"
AREAS = ("--areas", "homes.csv", "--separator", "|", "--level-names", "part,town")
RHO = ("--rho", "0.5")


@pytest.fixture
def homes(run):
    Path("homes.csv").write_text(CODES, "utf-8")
    return run


def test_a_plan_for_areas_is_made_shown_and_verified(homes):
    asked = ("--up-to", "2", "--level", "town=1", "--level", "all=none")
    text = homes.done(
        "areas", "plan", "codebook.csv", *AREAS, *asked, *RHO, "--out", "p.json", "--compare"
    )
    plan = rp.load_plan("p.json")
    assert isinstance(plan, rp.AreaPlan)
    assert f"SHA-256 {plan.sha256}" in text
    assert all(name in text for name in plan.files.by_name)
    assert "equal shares" in text
    assert "1 area lies on the coarsest level" in text
    assert {"p.json", *plan.files.by_name} <= homes.files()
    frame = plan.accuracy()
    assert frame.groupby("level")["attributes"].count().to_dict() == {"part": 7, "town": 4}

    verified = homes.json("verify", "p.json")
    assert verified["holds"]
    assert verified["sha256"] == plan.sha256
    shown = homes.json("show", "p.json")
    assert shown["levels"][2] == {"level": "town", "areas": 5}
    largest = [row["largest_standard_error"] for row in shown["tables"]]
    assert largest == sorted(frame["largest_standard_error"], reverse=True)
    text = homes.done("show", "p.json")
    assert "largest standard error" in text
    assert f"On the level {shown['tables'][0]['level']} " in text  # which area is least accurate
    homes.done("show", "p.json", "--csv", "tables.csv")
    assert len(Path("tables.csv").read_text("utf-8").splitlines()) == 12
    homes.done("rewrite", "p.json", "--out", "again.json")
    assert Path("again.json").read_bytes() == Path("p.json").read_bytes()

    path = next(iter(plan.files.by_name))
    Path(path).write_bytes(Path(path).read_bytes()[:-1])
    failed = homes("verify", "p.json")
    assert failed.exit_code == 1
    assert f"{path} beside it was changed" in failed.output


def test_levels_are_those_of_the_file(homes):
    facts = homes.json("areas", "levels", "codebook.csv", *AREAS)
    assert facts["areas"] == 9
    assert facts["levels"][1] == {
        "level": "part", "areas": 3, "undivided": 1,
        "fewest_parts": 2.0, "median_parts": 2.5, "most_parts": 3.0,
    }  # fmt: skip
    assert facts["note"].startswith("1 area lies on the coarsest level and has no parts, such as 3")
    text = homes.done("areas", "levels", str(sample_data_folder() / "municipal-register.json"))
    assert text.strip().endswith("2,814 areas")  # and no note


def test_weights_of_levels_and_losses_count(homes):
    common = ("areas", "plan", "codebook.csv", *AREAS, "--table", "sex", *RHO)
    losses = {}
    for name, more in {
        "even": (),
        "towns": ("--level-weight", "town=9"),
        "max": ("--loss", "max", "--tolerance", "0.01"),
        "uniform": ("--uniform-levels",),
    }.items():
        facts = homes.json(*common, *more, "--out", f"{name}.json")
        losses[name] = facts["loss"]["value"]
        towns = rp.AreaPlan.load(f"{name}.json").accuracy().query("level == 'town'")
        losses[f"{name} towns"] = float(towns["standard_error"].iloc[0]) ** 2
    assert losses["towns towns"] < losses["even towns"]
    assert losses["even"] < losses["uniform"]
    assert json.loads(Path("max.json").read_text())["loss"]["kind"] == "max_variance"


def test_lists_of_areas_have_tables_of_their_own(homes):
    Path("lists.csv").write_text("list,code\nlarge,1|1\nlarge,3\nunused,1|1\n", "utf-8")
    common = ("areas", "plan", "codebook.csv", *AREAS, "--up-to", "2", "--level", "town=none", *RHO)
    lists = ("--lists", "lists.csv", "--level", "large=1", "--level-weight", "large=3")
    homes.done(*common, *lists, "--out", "p.json")
    plan = rp.load_plan("p.json")
    domain = rp.Domain.load("codebook.csv")
    tables, ones = (rp.Workload.all_up_to(domain, order) for order in (2, 1))
    asked = rp.AreaWorkload.of_levels(plan.workload.tree, {"all": tables, "part": tables})
    asked = asked.with_areas(["1|1", "3"], with_weight(ones, 3))
    alike = rp.plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
    assert plan.text == alike.text
    for more, message in (
        (("--compare",), "leave it or --lists out"),
        (("--level", "unused=0"), "The area 1 > 1|1 is in the lists 'large' and 'unused'"),
    ):
        assert message in homes.refused(*common, *lists, *more, "--out", "q.json")
    without = (*common, *lists[:2], "--out", "q.json")
    assert "No list in lists.csv has tables" in homes.refused(*without)
    Path("lists.csv").write_text("list,part\ntown,1\n", "utf-8")
    assert "'town' like a level" in homes.refused(*without)


def test_attributes_may_be_in_other_bases(homes):
    asked = ("--up-to", "1", "--basis", "age=prefix", *RHO, "--compare", "--out", "p.json")
    facts = homes.json("areas", "plan", "codebook.csv", *AREAS, *asked)
    assert len(facts["beside_shares_by_level"]) == 2
    plan = rp.AreaPlan.load("p.json")
    position = plan.workload.tables.position(["age"])
    assert plan.workload.tables.basis_of(position, plan.domain.position("age")) == rp.Prefix()
    assert homes.json("verify", "p.json")["holds"]
    ages = [row for row in homes.json("show", "p.json")["tables"] if row["attributes"] == ["age"]]
    assert all(row["smallest_standard_error"] < row["largest_standard_error"] for row in ages)


def test_the_smallest_budget_for_targets_is_found(homes):
    asked = ("areas", "plan", "codebook.csv", *AREAS, "--table", "sex", "--target", "sex=10")
    facts = homes.json(*asked, "--minimum-budget", "--records-per-person", "2", "--out", "p.json")
    plan = rp.AreaPlan.load("p.json")
    assert 0.99 < plan.accuracy()["largest_standard_error"].max() / 10 <= 1
    assert facts["unit"] == "one person with at most 2 records"
    everywhere = (*asked, "--table", "total", "--minimum-budget", "--out")
    assert "has none; give it a target, such as 20" in homes.refused(*everywhere, "r.json")
    homes.done(*everywhere, "r.json", "--target", "30")
    targets = rp.AreaPlan.load("r.json").accuracy().groupby("attributes")["target"]
    assert targets.unique().map(list).to_dict() == {(): [30], ("sex",): [10]}
    assert "names no table" in homes.refused(
        *everywhere, "q.json", "--target", "30", "--target", "40"
    )
    for more in (("--loss", "max"), ("--delta", "1e-6"), ("--rho", "1")):
        refused = homes.refused(*asked, "--minimum-budget", *more, "--out", "q.json")
        assert f"leave {more[0]} out" in refused


def test_redistricting_tables_are_found_in_a_codebook(homes):
    book = str(sample_data_folder() / "redistricting.json")
    common = ("areas", "plan", book, *AREAS, *RHO, "--out", "p.json", "--force")
    assert homes.json(*common, "--detail", "pl94-171")["table_count"] == 5 * 9
    assert homes.json(*common, "--detail", "pl94-171-quarters")["table_count"] == 6 * 9
    assert homes.json(*common, "--detail", "totals")["table_count"] == 9
    shrinking = homes.json(*common, "--detail", "shrinking", "--table", "race", "--table", "total")
    assert shrinking["table_count"] == 2 * 9


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--up-to", "1", "--level", "village=1"), "town=1; there are all, part, town."),
        (("--up-to", "1", "--level", "twon=1"), "such as town=1; did you mean 'town'?"),
        (("--detail", "totals", "--target", "total=1"), "leave --target out"),
        (("--up-to", "1", "--level", "town=x"), "town=x must be the most attributes"),
        (("--up-to", "1", "--level", "town=1", "--level", "town=0"), "names 'town' twice"),
        (("--of-order", "2", "--level", "town=1"), "'town' gets tables of at most 1 attributes"),
        (("--up-to", "1", "--loss", "p-norm:3"), "must be sum, max, required or required-then"),
        (("--detail", "totals", "--up-to", "1"), "totals has tables of its own; leave --up-to out"),
        (("--detail", "pl94-171"), "No attribute of the codebook looks like Race"),
        ((), "Say which tables"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(homes, more, message):
    arguments = ("areas", "plan", "codebook.csv", *AREAS, *more, *RHO, "--out", "p.json")
    assert message in homes.refused(*arguments)
    assert "p.json" not in homes.files()


def test_codebooks_with_and_without_areas_are_told_apart(homes):
    book = str(sample_data_folder() / "municipal-register.json")
    asked = ("--up-to", "1", *RHO, "--out", "p.json")
    assert "planned by `rpexplore areas plan`" in homes.refused("plan", book, *asked)
    assert "go with --areas FILE" in homes.refused(
        "areas", "plan", book, "--lengths", "1,2", *asked
    )
    Path("sizes.json").write_text('{"age": 3}')
    assert "one attribute with" in homes.refused("areas", "plan", "sizes.json", *asked)
    bad = ("areas", "plan", "codebook.csv", "--areas", "homes.csv", "--lengths", "a")
    assert "--lengths must be whole numbers" in homes.refused(*bad, *asked)
