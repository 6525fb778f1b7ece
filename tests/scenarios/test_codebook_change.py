"""What a new schema does to groups and narrowing (test_scenario has tables and single settings)."""

import rpexplore as rp
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
REQUEST = WorkloadRequest(
    only=("age", "region"),
    containing=("age",),
    most_cells=40,
    groups=(GroupSetting((), factor=2.0), GroupSetting(("age", "region"), target=5.0)),
)


def test_names_follow_a_renaming_and_a_new_order():
    renamed = rp.Domain.from_sizes({"region": 5, "years": 10, "sex": 2})
    changed, notes = Scenario(DOMAIN, REQUEST).with_domain(renamed, renamed={"age": "years"})
    assert notes == []
    assert changed.request.only == ("region", "years")
    assert changed.request.containing == ("years",)
    assert changed.request.groups[1].containing == ("region", "years")
    assert changed.workload.tables == [("years",)]


def test_what_is_gone_is_dropped_and_named():
    changed, notes = Scenario(DOMAIN, REQUEST).with_domain(rp.Domain.from_sizes({"region": 5}))
    assert (changed.request.only, changed.request.containing) == (("region",), ())
    assert changed.request.groups == REQUEST.groups[:1]
    text = " ".join(notes)
    assert "weight or target of all tables with age × region" in text
    assert "attribute that the tables were narrowed to age" in text


def test_further_lines_follow_too_and_an_empty_list_is_none():
    lines = (TableLine("listed", listed=(("age",), ("age", "sex"))), TableLine(only=("age",)))
    scenario = Scenario(DOMAIN, WorkloadRequest("listed", listed=(("sex",),), more=lines))
    renamed = rp.Domain.from_sizes({"years": 10, "region": 5})
    changed, notes = scenario.with_domain(renamed, renamed={"age": "years"})
    assert changed.request.lines == (
        TableLine("listed", listed=(("years",),)), TableLine(only=("years",)),
    )  # fmt: skip
    assert "listed table sex; age × sex." in notes[0]


def test_a_loaded_codebook_keeps_groups_of_unchanged_attributes_and_says_what_narrows():
    other = rp.Domain.from_sizes({"age": 10, "region": 7})
    changed, notes = Scenario(DOMAIN, REQUEST).with_domain(other, from_elsewhere=True)
    assert changed.request.groups == REQUEST.groups[:1]
    assert f"Still narrowed down: {changed.request.text}." in notes


def test_a_narrowing_that_leaves_nothing_is_lifted():
    request = WorkloadRequest("of_order", 2, most_cells=30)
    changed, notes = Scenario(DOMAIN, request).with_domain(rp.Domain.from_sizes({"x": 9, "y": 9}))
    assert changed.workload.tables == [(), ("x",), ("y",)]
    assert "at most 30 cells" in notes[0]


def test_an_empty_codebook_has_the_total_and_keeps_the_request():
    scenario = Scenario(DOMAIN, WorkloadRequest("of_order", order=2))
    empty, notes = scenario.with_domain(rp.Domain(()))
    assert notes == []
    assert empty.workload.tables == [()]
    assert Scenario.parse(empty.text()) == empty
    assert empty.with_domain(DOMAIN)[0].workload.tables == scenario.workload.tables


def test_an_empty_codebook_empties_a_list():
    scenario = Scenario(DOMAIN, WorkloadRequest("listed", listed=(("age",),)))
    empty, notes = scenario.with_domain(rp.Domain(()))
    assert empty.workload.tables == [()]
    assert len(notes) == 1
    assert "listed table age" in notes[0]


def test_one_attribute_after_the_other_brings_the_order_back():
    scenario, _ = Scenario(DOMAIN).with_domain(rp.Domain(()))
    for count in range(1, 4):
        scenario, notes = scenario.with_domain(rp.Domain(DOMAIN.attributes[:count]))
        assert notes == []
    assert scenario.workload.tables == Scenario(DOMAIN).workload.tables


# ---- bases

REGION = rp.Attribute("region", rp.Categories(("a", "b", "c")), groups=(("N",), ("N",), ("S",)))
GROUPED = rp.Domain((*DOMAIN.attributes[:2], REGION))
WITH_BASES = WorkloadRequest(
    basis_choices=(
        BasisChoice("age", rp.Hierarchy((5,))),
        BasisChoice("age", rp.Identity(), (("age", "sex"),)),
        BasisChoice("sex", rp.Prefix(), (("sex", "region"),)),
        BasisChoice("region", rp.Hierarchy()),
    )
)


def test_a_renamed_attribute_keeps_its_basis():
    years = rp.Attribute("years", rp.Integers(0, 9))
    domain = rp.Domain((REGION, years, GROUPED["sex"]))
    changed, notes = Scenario(GROUPED, WITH_BASES).with_domain(domain, renamed={"age": "years"})
    assert notes == []
    assert changed.request.basis_choices == (
        BasisChoice("years", rp.Hierarchy((5,))),
        BasisChoice("years", rp.Identity(), (("years", "sex"),)),
        BasisChoice("sex", rp.Prefix(), (("region", "sex"),)),
        BasisChoice("region", rp.Hierarchy()),
    )
    assert Scenario.parse(changed.text()) == changed


def test_what_no_longer_fits_falls_back_to_single_values_and_is_named():
    region = rp.Attribute("region", REGION.values)
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 3)), GROUPED["sex"], region))
    changed, notes = Scenario(GROUPED, WITH_BASES).with_domain(domain)
    # Single values in one table need no choice where all have them.
    assert changed.request.basis_choices == (BasisChoice("sex", rp.Prefix(), (("sex", "region"),)),)
    assert len(notes) == 2
    assert notes[0].startswith("Dropped, because it no longer fits (")
    assert "the basis of attribute 'age' (" in notes[0]
    assert "below the 4 values" in notes[0]
    assert "groups of 5 values" in notes[0]
    assert "'region'" in notes[1]
    assert "must have groups" in notes[1]


def test_an_edited_attribute_keeps_what_still_fits():
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 30)), GROUPED["sex"], REGION))
    changed, notes = Scenario(GROUPED, WITH_BASES).with_domain(domain)
    assert (changed.request, notes) == (WITH_BASES, [])


def test_bases_of_attributes_that_are_gone_are_dropped():
    changed, notes = Scenario(GROUPED, WITH_BASES).with_domain(rp.Domain(GROUPED.attributes[:2]))
    assert changed.request.basis_choices == WITH_BASES.basis_choices[:2]
    text = " ".join(notes)
    assert "basis of attribute 'sex' in sex × region (cumulative: up to each value)." in text
    assert (
        "because the codebook no longer has it: the basis of attribute 'region' (hierarchy: groups "
        "and single values)." in text
    )


def test_a_loaded_codebook_keeps_bases_of_the_same_values_and_groups_only():
    other = rp.Attribute("region", REGION.values, groups=(("N",), ("S",), ("S",)))
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 30)), GROUPED["sex"], other))
    changed, notes = Scenario(GROUPED, WITH_BASES).with_domain(domain, from_elsewhere=True)
    assert changed.request.basis_choices == (BasisChoice("sex", rp.Prefix(), (("sex", "region"),)),)
    assert "its values are others" in notes[0]
    assert "its groups are others" in notes[1]
    edited, notes = Scenario(GROUPED, WITH_BASES).with_domain(domain)
    assert (edited.request, notes) == (WITH_BASES, [])
    cumulative = Scenario(GROUPED).with_basis("region", rp.Prefix())
    loaded, notes = cumulative.with_domain(domain, from_elsewhere=True)
    assert (loaded.request, notes) == (cumulative.request, [])


def test_tables_at_a_level_follow_a_renaming_of_its_attribute():
    ages = {"name": "age", "constraints": {"minimum": 0, "maximum": 19}, "levels": {"five": 5}}
    before = Scenario(
        rp.Domain.from_schema({"fields": [ages]}),
        WorkloadRequest("listed", listed=(("age@five",),)),
    )
    renamed = rp.Domain.from_schema({"fields": [{**ages, "name": "years"}]})
    after, notes = before.with_domain(renamed, renamed={"age": "years"})
    assert (after.workload.tables, notes) == ([("years@five",)], [])
