"""The universe of a plan: in its file and seal, its release and label, and what refuses another."""

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError, ReleaseError, WorkloadError
from rpexplore.reports.first_pages import label
from rpexplore.reports.section import Facts
from tests.support.sealed import edit_manifest

REGION = rp.Attribute("region", rp.Categories(("1", "north")))
DOMAIN = rp.Domain((rp.Attribute("sex", rp.Categories(("1", "2"))),))
RECORDS = pd.DataFrame({"RECTYPE": ["H", "P", "P", "P"], "sex": [None, "1", "2", "1"]})
PERSONS = 'RECTYPE = "P"'


def plan_of(universe: str, rho: str = "1e6", domain: rp.Domain = DOMAIN) -> rp.Plan:
    tables = rp.Workload.all_up_to(domain, 1)
    return rp.plan(rp.Request(tables=tables, budget=rp.Budget(rho=rho), universe=universe))


def released(folder, universe: str):
    return rp.release(plan_of(universe), RECORDS, folder, name="r", ledger=folder.with_name("l"))


def test_it_is_part_of_the_plan_and_counted_by_the_release(tmp_path):
    plan = plan_of(PERSONS)
    plan.save(tmp_path / "plan.json")
    assert rp.Plan.load(tmp_path / "plan.json").universe == plan.universe
    assert plan.sha256 != plan_of("").sha256
    assert plan.columns == ("sex", "RECTYPE")
    text = plan.text.replace('RECTYPE = \\"P\\"', 'RECTYPE = \\"H\\"')
    assert text != plan.text
    with pytest.raises(PlanError, match="was changed since it was written"):
        rp.Plan.parse(text)
    done = released(tmp_path / "out", PERSONS)
    assert done.part("tables").table("sex")["value"].round().tolist() == [2, 1]
    sentence = 'Only records with RECTYPE = "P" are counted.'
    assert sentence in plan.guarantee
    assert sentence in (tmp_path / "out/README.md").read_text("utf-8")
    facts = label(plan).parts[0]
    assert isinstance(facts, Facts)
    assert any(sentence in row for row in facts.rows)
    edit_manifest(tmp_path / "out", lambda manifest: manifest.pop("universe"))
    with pytest.raises(ReleaseError, match="says of its run what cannot be"):
        rp.Release.load(tmp_path / "out")


def test_releases_of_two_universes_are_not_combined(tmp_path):
    one, other = (
        released(tmp_path / name, universe)
        for name, universe in (("one", PERSONS), ("other", "RECTYPE != H"))
    )
    with pytest.raises(ReleaseError, match="combine only releases of one universe"):
        rp.combine(one, other)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sex", "a column must be compared here"),
        ('sex = "3"', "3 is no value of sex; write one as in the codebook"),
        ('sex > "1"', "texts of sex are compared by = and in, numbers by size"),
        ("region > 1", "'region' has no order, since its value 'north' is not a number; list"),
        ("(RECTYPE = P", "a bracket must be closed here"),
        ("RECTYPE = P age = 3", 'must be joined to the next one by "&"'),
        ('age > 3 & age = "x"', "must be compared with numbers, or with days"),
        ("age > 1e999", "more digits than records can have"),
        ("not " * 60 + "age > 3", "too deep within each other"),
        ("age in ()", "a value must stand here"),
    ],
)
def test_conditions_that_cannot_be_used(text, reason):
    with pytest.raises(WorkloadError, match=reason):
        plan_of(text, domain=rp.Domain((DOMAIN["sex"], REGION)))
