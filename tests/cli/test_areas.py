"""The command line: plans for areas, made, shown, verified and refused."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import with_weight
from rpexplore.planning.plan import load_plan

CODES = "home\n1|1\n1|2\n2|1\n2|2\n2|3\n3\n"
AREAS = ("--areas", "homes.csv", "--separator", "|", "--level-names", "part,town")
RHO = ("--rho", "0.5")
PLAN = ("plan", "codebook.csv", *AREAS, "--detail", "same")


@pytest.fixture
def homes(run):
    Path("homes.csv").write_text(CODES, "utf-8")
    return run


def test_a_plan_for_areas_is_made_shown_and_verified(homes):
    asked = ("--up-to", "2", "--level", "town=1", "--level", "all=none")
    text = homes.done(*PLAN, *asked, *RHO, "--out", "p.json", "--compare")
    plan = AreaPlan.load("p.json")
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
    facts = homes.json("schema", "codebook.csv", *AREAS)["areas"]
    assert facts["areas"] == 9
    assert facts["levels"][1] == {
        "level": "part", "areas": 3, "undivided": 1,
        "fewest_parts": 2.0, "median_parts": 2.5, "most_parts": 3.0,
    }  # fmt: skip
    assert facts["note"].startswith("1 area lies on the coarsest level and has no parts, such as 3")
    text = homes.done("schema", str(sample_data_folder() / "municipal-register.json"))
    assert text.strip().endswith("2,814 areas")  # and no note


def test_weights_of_levels_and_losses_count(homes):
    common = (*PLAN, "--table", "sex", *RHO)
    losses = {}
    for name, more in {
        "even": (),
        "towns": ("--level-weight", "town=9"),
        "max": ("--loss", "max", "--tolerance", "0.01"),
        "uniform": ("--uniform-levels",),
    }.items():
        facts = homes.json(*common, *more, "--out", f"{name}.json")
        losses[name] = facts["loss"]["value"]
        towns = AreaPlan.load(f"{name}.json").accuracy().query("level == 'town'")
        losses[f"{name} towns"] = float(towns["standard_error"].iloc[0]) ** 2
    assert losses["towns towns"] < losses["even towns"]
    assert losses["even"] < losses["uniform"]
    (part,) = json.loads(Path("max.json").read_text())["parts"]
    assert part["loss"]["kind"] == "max_variance"


def test_lists_of_areas_have_tables_of_their_own(homes):
    Path("lists.csv").write_text("list,code\nlarge,1|1\nlarge,3\nunused,1|1\n", "utf-8")
    common = (*PLAN, "--up-to", "2", "--level", "town=none", *RHO)
    lists = ("--lists", "lists.csv", "--level", "large=1", "--level-weight", "large=3")
    homes.done(*common, *lists, "--out", "p.json")
    plan = AreaPlan.load("p.json")
    domain = rp.Domain.load("codebook.csv")
    tables, ones = (rp.Workload.all_up_to(domain, order) for order in (2, 1))
    asked = rp.AreaWorkload.of_levels(plan.workload.tree, {"all": tables, "part": tables})
    asked = asked.with_areas(["1|1", "3"], with_weight(ones, 3))
    alike = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
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
    facts = homes.json(*PLAN, *asked)
    assert len(facts["beside_shares_by_level"]) == 2
    plan = AreaPlan.load("p.json")
    position = plan.workload.tables.position(["age"])
    assert plan.workload.tables.basis_of(position, plan.domain.position("age")) == rp.Prefix()
    assert homes.json("verify", "p.json")["holds"]
    ages = [row for row in homes.json("show", "p.json")["tables"] if row["attributes"] == ["age"]]
    assert all(row["smallest_standard_error"] < row["largest_standard_error"] for row in ages)


def test_the_smallest_budget_for_targets_is_found(homes):
    asked = (*PLAN, "--table", "sex", "--target", "sex=10")
    facts = homes.json(
        *asked, "--minimum-budget", "targets", "--records-per-person", "2", "--out", "p.json"
    )
    plan = AreaPlan.load("p.json")
    assert 0.99 < plan.accuracy()["largest_standard_error"].max() / 10 <= 1
    assert facts["unit"] == "one person with at most 2 records"
    required = ("--minimum-budget", "required", "--out", "q.json")
    assert "say --minimum-budget targets" in homes.refused(*asked, *required)
    of_sex = (*PLAN, "--table", "sex", "--target", "sex=10 required")
    homes.done(*of_sex, *required[:-1], "s.json")
    everywhere = (*asked, "--table", "total", "--minimum-budget", "targets", "--out")
    assert "has none; give it a target, such as 20" in homes.refused(*everywhere, "r.json")
    homes.done(*everywhere, "r.json", "--target", "30")
    targets = AreaPlan.load("r.json").accuracy().groupby("attributes")["target"]
    assert targets.unique().map(list).to_dict() == {(): [30], ("sex",): [10]}
    assert "names no table" in homes.refused(
        *everywhere, "q.json", "--target", "30", "--target", "40"
    )
    for more in (("--loss", "max"), ("--rho", "1")):
        refused = homes.refused(*asked, "--minimum-budget", "targets", *more, "--out", "q.json")
        assert f"leave {more[0]} out" in refused


def test_redistricting_tables_are_found_in_a_codebook(homes):
    book = str(sample_data_folder() / "redistricting.json")
    common = ("plan", book, *AREAS, "--detail", "same", *RHO, "--out", "p.json", "--force")
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
    arguments = (*PLAN, *more, *RHO, "--out", "p.json")
    assert message in homes.refused(*arguments)
    assert "p.json" not in homes.files()


def test_areas_are_those_of_the_codebook_or_of_a_file(homes):
    book = str(sample_data_folder() / "municipal-register.json")
    asked = ("--up-to", "1", *RHO, "--out", "p.json")
    # Without a word of areas, the tables are national.
    assert "No table is in the areas of the codebook" in homes.done("plan", book, *asked)
    assert [part.kind for part in load_plan("p.json").parts] == ["tables"]
    Path("sizes.json").write_text('{"age": 3}')
    without = ("plan", "sizes.json", *asked, "--force")
    assert "go with --areas FILE" in homes.refused(*without, "--lengths", "1,2")
    assert "name a file of areas with --areas" in homes.refused(*without, "--detail", "same")
    bad = ("plan", "codebook.csv", "--areas", "homes.csv", "--lengths", "a")
    assert "--lengths must be whole numbers" in homes.refused(*bad, *asked, "--force")


def test_a_table_that_names_a_level_is_in_each_of_its_areas(homes):
    asked = ("--table", "town,sex", "--table", "part,age,sex", "--weight", "town,sex=2")
    common = ("plan", "codebook.csv", *AREAS, "--up-to", "1", *RHO)
    facts = homes.json(*common, *asked, "--target", "part,age,sex=7", "--out", "p.json")
    plan = load_plan("p.json")
    assert [part.kind for part in plan.parts] == ["tables", "areas"]
    frame = plan.part("areas").accuracy().set_index("level")
    assert frame["attributes"].to_dict() == {"part": ("age", "sex"), "town": ("sex",)}
    assert frame["weight"].to_dict() == {"part": 1, "town": 2}
    assert frame["target"]["part"] == 7
    assert Fraction(facts["rho"]) <= Fraction(1, 2)
    Path("list.csv").write_text('attributes,weight\n"town,sex",2\n', "utf-8")
    for more, message in (
        (("--table", "part,town,sex"), "names the levels part and town"),
        (("--table", "town,sex", "--weight", "town,age=2"), "is about a table that is not asked"),
        (("--table", "village,sex"), "Levels of areas: part and town; a table of the whole, "),
        (("--tables", "list.csv"), "names the level 'town' in a table"),
    ):
        assert message in homes.refused(*common, *more, "--out", "q.json")


def test_a_table_that_names_a_level_comes_beside_those_of_the_level(homes):
    asked = ("--up-to", "2", "--level", "town=0", "--table", "town,sex", "--weight", "town,sex=2")
    homes.done("plan", "codebook.csv", *AREAS, *asked, *RHO, "--out", "p.json")
    frame = load_plan("p.json").part("areas").accuracy()
    towns = frame.query("level == 'town'").set_index("attributes")["weight"]
    assert towns.to_dict() == {(): 1, ("sex",): 2}
    assert frame.query("level == 'part'")["attributes"].map(len).max() == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--basis", "sex=prefix"), "--basis 'sex=prefix' is about tables that name no level"),
        (("--weight", "age=2"), "--weight 'age=2' is about tables that name no level"),
        (("--weight", "=3"), "leave --weight out"),
        (("--weight", "town,sex"), "leave --weight out"),
        (("--up-to", "1", "--basis", "sex=prefix@town,sex"), "about a table that names a level"),
        (("--smooth-weights", "--expected-count", "900"), "--smooth-weights or --from-release is"),
        (("--uniform-reference",), "tables without areas, and none is asked for"),
        (("--adaptive", "--expected-count", "900"), "about tables without areas, and none is"),
        (("--target", "20", "--target", "30"), "names no table"),
    ],
)
def test_what_has_no_effect_on_tables_at_levels_is_refused(homes, more, message):
    common = ("plan", "codebook.csv", *AREAS, "--table", "town,sex", *RHO, "--out", "p.json")
    assert message in homes.refused(*common, *more)
    assert "p.json" not in homes.files()


@pytest.mark.parametrize("more", [("--up-to", "1"), ("--count", "old: age = 'old' @ 9")])
def test_a_file_of_areas_without_a_table_in_them_is_refused(homes, more):
    arguments = ("plan", "codebook.csv", *AREAS, *more, *RHO, "--out", "p.json")
    assert "no table is in them; name a level" in homes.refused(*arguments)
    assert "p.json" not in homes.files()


def test_a_target_without_a_table_is_also_for_tables_at_levels(homes):
    asked = ("--table", "town,sex", "--table", "part,age", "--target", "part,age=7")
    homes.done("plan", "codebook.csv", *AREAS, *asked, "--target", "20", *RHO, "--out", "p.json")
    frame = load_plan("p.json").part("areas").accuracy().set_index("level")
    assert frame["target"].to_dict() == {"part": 7, "town": 20}


def test_all_that_a_survey_asks_for_is_one_plan_one_booking_and_one_folder(homes):
    Path("request.toml").write_text(
        """codebook = "codebook.csv"
areas = "homes.csv"
separator = "|"
level-names = "part,town"
up-to = 1
table = ["town,sex"]
count = ["women: sex = 'Female' @ 20", "old: age = 'old' @ 9"]
"""
    )
    homes.done("plan", "--request", "request.toml", *RHO, "--out", "p.json")
    plan = load_plan("p.json")
    assert [part.kind for part in plan.parts] == ["tables", "areas", "counts"]
    stated = ("--share", "tables=1/2", "--share", "areas=1/4", "--share", "counts=1/4")
    homes.done("plan", "--request", "request.toml", *RHO, *stated, "--out", "half.json")
    half = load_plan("half.json")
    assert [part.budget.rho for part in half.parts] == [Fraction(1, 4), *[Fraction(1, 8)] * 2]
    assert plan.certificate.loss_value < half.certificate.loss_value
    assert "sum to exactly 1" in homes.refused(
        "plan", "--request", "request.toml", *RHO, *stated[:2], "--share", "areas=1/3",
        "--share", "counts=1/3", "--out", "q.json",
    )  # fmt: skip
    homes.done("plan", "--request=request.toml", *RHO, "--out", "same.json")
    assert load_plan("same.json").sha256 == plan.sha256
    twice = ("--request=request.toml", "--request", "request.toml")
    assert "--request is given 2 times" in homes.refused("plan", *twice, *RHO, "--out", "q.json")
    Path("bare.toml").write_text("up-to = 1\n")
    bare = homes.refused("plan", "--request", "bare.toml", *RHO, "--out", "q.json")
    assert "The request bare.toml names no codebook" in bare
    Path("outer.toml").write_text('request = "request.toml"\n')
    outer = ("plan", "codebook.csv", "--request", "outer.toml", "--up-to", "1", *RHO)
    assert "outer.toml names another request" in homes.refused(*outer, "--out", "q.json")
    rows = Path("records.csv").read_text("utf-8").splitlines()
    places = ["1|1", "1|2", "2|1", "2|2", "2|3"]
    with_places = [
        f"{row},{place.partition('|')[0]},{place}"
        for row, place in zip(rows[1:], places * len(rows), strict=False)
    ]
    Path("records.csv").write_text("\n".join([f"{rows[0]},part,town", *with_places]), "utf-8")
    facts = homes.json("release", "p.json", "records.csv", "--out", "out")
    assert (facts["table_count"], facts["query_count"]) == (9, 2)  # 4 tables, and one in 5 towns
    assert len(homes.json("ledger", "records.csv")["runs"]) == 1
    release = rp.Release.load("out")
    assert release.answers["name"].tolist() == ["women", "old"]
    assert len(release.table("sex", level="town")) == 10
    assert len(release.table("sex")) == 2
    for verb in (
        ("verify", "p.json"),
        ("report", "p.json", "--out", "report.html"),
        ("publish", "out", "--out", "published"),
        ("workbook", "out", "--out", "out.xlsx"),
        ("answer", "out", "sex=Female"),
        ("compare", "p.json"),
    ):
        homes.done(*verb)
