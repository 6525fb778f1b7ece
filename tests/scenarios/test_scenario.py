"""Scenario: what is asked for, what becomes of it when the codebook changes, and its JSON."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.ordered_values import Bins
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.planning.planner import plan_tables
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_request import KINDS, WorkloadRequest
from rpexplore.workload.presets import AGE_PYRAMID
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from rpexplore.workload.table_text import tables_from_text, texts_of_tables

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "income": 4})


@pytest.mark.parametrize(
    ("request_", "tables"),
    [
        (WorkloadRequest("up_to", order=1), [(), ("age",), ("sex",), ("region",), ("income",)]),
        (WorkloadRequest("of_order", order=4), [("age", "sex", "region", "income")]),
        (WorkloadRequest("at_most_cells", cells=4), [(), ("sex",), ("income",)]),
        (WorkloadRequest("listed", listed=(("sex", "age"), ())), [(), ("age", "sex")]),
    ],
)
def test_each_kind_of_request_asks_for_its_tables(request_, tables):
    assert Scenario(DOMAIN, request_).workload.tables == tables


def test_unknown_kind_is_refused():
    with pytest.raises(WorkloadError, match="one of up_to, of_order"):
        WorkloadRequest("all")


def test_scenario_is_frozen_and_equal_by_value():
    same = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "income": 4})
    assert Scenario(DOMAIN) == Scenario(same)
    assert hash(Scenario(DOMAIN)) == hash(Scenario(same))
    assert Scenario(DOMAIN) != Scenario(DOMAIN, budget=rp.Budget(rho=1))
    with pytest.raises(FrozenInstanceError):
        Scenario(DOMAIN).record_noun = "people"


def test_plan_follows_from_the_scenario():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=3), rp.MaxVariance(), rp.Budget(rho="1/3"))
    expected = plan_tables(
        rp.Workload.all_up_to(DOMAIN, 3), loss=rp.MaxVariance(), budget=rp.Budget(rho="1/3")
    )
    assert scenario.table_plan().text == expected.text


# ---- weight and targets


def test_settings_reach_the_workload_in_any_order_of_names():
    scenario = Scenario(DOMAIN).with_settings(
        [TableSetting(("sex", "age"), 3.0, 7.5), TableSetting((), 2.0)]
    )
    workload = scenario.workload
    assert workload.weights[workload.position(("age", "sex"))] == 3.0
    assert workload.targets[workload.position(("age", "sex"))] == 7.5
    assert workload.weights[workload.position(())] == 2.0
    assert sum(workload.weights != 1) == 2


def test_a_setting_back_at_its_default_is_not_kept():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0)])
    assert scenario.with_settings([TableSetting(("age",))]) == Scenario(DOMAIN)


def test_settings_of_absent_tables_are_kept_aside():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age", "sex"), 3.0)])
    smaller = scenario.with_request(order=1)
    assert (scenario.settings_aside, smaller.settings_aside) == (0, 1)
    assert all(smaller.workload.weights == 1)
    assert smaller.with_request(order=2) == scenario


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(WorkloadError, match=r"\(age\) must be a positive number"):
        Scenario(DOMAIN).with_settings([TableSetting(("age",), weight)])


def test_requests_that_cannot_be_met_are_refused():
    with pytest.raises(WorkloadError, match="0 to 4"):
        Scenario(DOMAIN).with_request(order=-1)
    with pytest.raises(DomainError, match="no attribute 'height'"):
        Scenario(DOMAIN).with_request(kind="listed", listed=(("height",),))


# ---- another schema


def test_same_names_keep_everything():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0)])
    wider = rp.Domain.from_sizes({"sex": 3, "income": 9, "region": 5, "age": 10, "new": 2})
    changed, notes = scenario.with_domain(wider)
    assert notes == []
    assert changed == replace(scenario, domain=wider)


def test_tables_follow_the_new_order_of_attributes():
    listed = WorkloadRequest("listed", listed=(("age", "sex"),))
    turned = rp.Domain(tuple(reversed(DOMAIN.attributes)))
    changed, notes = Scenario(DOMAIN, listed).with_domain(turned)
    assert notes == []
    assert changed.request.listed == (("sex", "age"),)
    assert changed.workload.tables == [("sex", "age")]


def test_what_no_longer_fits_is_dropped_and_named():
    scenario = Scenario(
        DOMAIN, WorkloadRequest("listed", listed=(("age", "sex"), ("region",)))
    ).with_settings([TableSetting(("age", "sex"), 2.0), TableSetting(("region",), 4.0)])
    changed, notes = scenario.with_domain(rp.Domain.from_sizes({"age": 10, "region": 5}))
    assert changed.request.listed == (("region",),)
    assert changed.request.settings == (TableSetting(("region",), 4.0),)
    assert len(notes) == 2
    assert all("age × sex" in note and "region" not in note for note in notes)


def test_an_emptied_list_falls_back_to_small_tables_and_says_so():
    scenario = Scenario(DOMAIN, WorkloadRequest("listed", listed=(("age",),)))
    changed, notes = scenario.with_domain(rp.Domain.from_sizes({"x": 2}))
    assert changed.workload.tables == [(), ("x",)]
    assert any("No listed table fits" in note for note in notes)


def test_fewer_attributes_lower_the_order_and_say_so():
    scenario = Scenario(DOMAIN, WorkloadRequest("of_order", order=3))
    changed, notes = scenario.with_domain(rp.Domain.from_sizes({"age": 10, "sex": 2}))
    assert changed.workload.tables == [("age", "sex")]
    assert notes == ["The codebook now has 2 attributes; the tables are 2-way instead of 3-way."]


def test_too_many_tables_for_the_new_codebook_are_replaced():
    wide = rp.Domain.from_sizes({f"a{i}": 2 for i in range(300)})
    changed, notes = Scenario(DOMAIN, WorkloadRequest(order=4)).with_domain(wide)
    assert len(changed.workload) == 301
    assert "at most" in notes[0]


def test_a_loaded_codebook_keeps_settings_of_unchanged_attributes_only():
    domain = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4})
    settings = (TableSetting(("a",), 2.0), TableSetting(("a", "b"), 3.0))
    scenario = Scenario(domain, WorkloadRequest(settings=settings))
    other = rp.Domain.from_sizes({"b": 9, "a": 2})
    changed, notes = scenario.with_domain(other, from_elsewhere=True)
    assert changed.request.settings == (TableSetting(("a",), 2.0),)
    assert any("weight or target of table a × b" in note for note in notes)
    assert len(scenario.with_domain(other)[0].request.settings) == 2


@pytest.mark.parametrize(
    ("request_", "same"),
    [
        (WorkloadRequest("up_to", order=2), True),
        (WorkloadRequest("of_order", order=1), True),
        (WorkloadRequest("of_order", order=0), False),  # the same as up to 0
        (WorkloadRequest("listed", listed=(("a",), ("b", "c"))), True),
        (WorkloadRequest("at_most_cells", cells=6), False),
    ],
)
def test_a_plan_tells_its_inputs(request_, same):
    domain = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4})
    loss, budget = rp.MaxVariance(), rp.Budget(rho="0.3", max_records_per_person=2)
    scenario = Scenario(domain, request_, loss, budget, "visits")
    again = Scenario.of_plan(scenario.table_plan(), "visits")
    assert set(again.workload.tables) == set(scenario.workload.tables)
    assert (again == scenario) == same
    weighted = scenario.with_settings([TableSetting(scenario.workload.tables[0], 2.0, 9.0)])
    assert Scenario.of_plan(weighted.table_plan()).request.settings == weighted.request.settings


@pytest.mark.parametrize(("target", "missing"), [(None, "(total)"), (5.0, "")])
def test_tables_without_the_target_that_the_loss_needs(target, missing):
    domain = rp.Domain.from_sizes({"a": 2})
    scenario = Scenario(domain, WorkloadRequest(order=0)).with_settings(
        [TableSetting((), target=target)]
    )
    assert scenario.misses_target == ""
    assert scenario.replaced(loss=rp.MaxVariance(relative_to="target")).misses_target == missing


def test_a_renamed_attribute_keeps_its_settings():
    scenario = Scenario(DOMAIN, WorkloadRequest("listed", listed=(("age", "sex"),))).with_settings(
        [TableSetting(("age", "sex"), 2.0)]
    )
    renamed = rp.Domain.from_sizes({"years": 10, "sex": 2, "region": 5, "income": 4})
    changed, notes = scenario.with_domain(renamed, renamed={"age": "years"})
    assert notes == []
    assert changed.request.listed == (("years", "sex"),)
    assert changed.request.settings == (TableSetting(("years", "sex"), 2.0),)


RULED = Scenario(
    DOMAIN, rules=(rp.Rule("0.2", "0.9", "cells", [("age", "sex"), ("sex",)]), rp.Rule("0.1", 1))
)


def test_its_plan_keeps_the_rules_that_are_in_use():
    assert RULED.plan().part("tables").rules == RULED.table_plan().rules == RULED.rules_in_use
    assert len(RULED.rules_in_use) == 2
    assert RULED.with_request(order=1).rules_in_use == RULED.rules[1:]
    assert Scenario.of_plan(RULED.table_plan()).rules == RULED.rules_in_use
    assert Scenario.parse(RULED.text()) == RULED


def test_rules_follow_renamed_attributes_and_are_dropped_with_others():
    renamed = rp.Domain.from_sizes({"age": 10, "gender": 2, "region": 5, "income": 4})
    changed, notes = RULED.with_domain(renamed, renamed={"sex": "gender"})
    assert changed.rules[0].tables == (("age", "gender"), ("gender",))
    assert notes == []
    changed, notes = RULED.with_domain(rp.Domain.from_sizes({"age": 10, "region": 5}))
    assert changed.rules == RULED.rules[1:]
    assert "in age,sex and in sex' was dropped" in " ".join(notes)


# ---- files


@st.composite
def scenarios(draw):
    names = draw(st.lists(st.sampled_from("abcde×,"), min_size=1, max_size=4, unique=True))
    domain = rp.Domain(
        tuple(
            Attribute(
                name, draw(st.sampled_from([Categories(("x", "y")), Bins((0, 0.5, 3))])), "Label"
            )
            for name in names
        )
    )
    tables = st.lists(st.sampled_from(names), unique=True).map(
        lambda table: tuple(name for name in names if name in table)
    )
    listed = draw(st.lists(tables, min_size=1, unique=True))
    settings = [
        TableSetting(table, draw(st.floats(0.1, 100)), draw(st.none() | st.floats(1, 1e6)))
        for table in draw(st.lists(tables, unique=True))
    ]
    request_ = WorkloadRequest(
        draw(st.sampled_from(list(KINDS))),
        draw(st.integers(0, len(names))),
        draw(st.integers(1, 100)),
        tuple(listed),
        settings=tuple(settings),
    )
    budget = draw(
        st.sampled_from(
            [
                rp.Budget(rho="1/3"),
                rp.Budget(epsilon="0.1", delta="1e-9", max_records_per_person=3),
                rp.Budget(mu=1),
            ]
        )
    )
    loss = draw(
        st.sampled_from([rp.SumOfVariances("sqrt"), rp.MaxVariance(), rp.MaxVariance("target")])
    )
    return Scenario(domain, request_, loss, budget, draw(st.sampled_from(["people", "Fälle"])))


@given(scenarios())
def test_json_round_trip_is_exact(scenario):
    assert Scenario.parse(scenario.text()) == scenario


@given(scenarios())
def test_its_list_can_be_written_and_read(scenario):
    listed = scenario.request.listed
    text = "\n".join(texts_of_tables(scenario.domain, listed))
    assert tables_from_text(scenario.domain, text) == listed


# ---- a list of queries beside the tables


def with_queries(text="old: age >= 8 ± 50\nwomen: sex = 1 @ 5"):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    return Scenario(DOMAIN, query_list=stated_from_text(domain, text))


@pytest.mark.parametrize(
    "scenario",
    [with_queries(), Scenario(DOMAIN, query_list=StatedQueries.of(AGE_PYRAMID.queries()))],
    ids=["typed", "preset"],
)
def test_a_list_of_queries_is_saved_with_the_scenario(scenario):
    again = Scenario.parse(scenario.text())
    assert again == scenario
    assert hash(again) == hash(scenario)
    assert again.text() == scenario.text()


def test_scenarios_differ_in_their_queries():
    assert with_queries() == with_queries()
    assert with_queries() != with_queries("old: age >= 8 ± 51\nwomen: sex = 1 @ 5")
    assert with_queries() != Scenario(DOMAIN)
    assert with_queries() != "a scenario"


def test_without_queries_the_file_says_null():
    scenario = with_queries().replaced(query_list=None)
    assert scenario.text() == Scenario(DOMAIN).text()
    assert json.loads(scenario.text())["query_list"] is None


def test_a_change_of_the_codebook_leaves_the_queries_as_they_are():
    scenario = with_queries()
    changed, notes = scenario.with_domain(rp.Domain.from_sizes({"age": 3}))
    assert changed.query_list is scenario.query_list
    assert not any("quer" in note for note in notes)


def test_queries_that_cannot_be_used_are_refused_by_name():
    text = with_queries().text().replace("age >= 8", "income >= 8")
    with pytest.raises(WorkloadError, match=r"not a usable scenario: Own count 1: .*'income'"):
        Scenario.parse(text)


def test_json_holds_inputs_only():
    content = json.loads(Scenario(DOMAIN).text())
    assert set(content) == {
        "format", "format_version", "name", "note", "domain", "record_noun", "tables", "loss",
        "budget", "expected", "cv_limit", "uniform_reference", "query_list",
    }  # fmt: skip


def without(*path):
    content = json.loads(Scenario(DOMAIN).text())
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "rpexplore-plan"}',
        without("tables", "order"),
        without("budget"),
        without("uniform_reference"),
        without("cv_limit"),
        without("query_list"),
        Scenario(DOMAIN).text().replace('"note": ""', '"note": "", "extra": 1'),
        Scenario(DOMAIN).text().replace('"note": ""', '"note": "", "note": ""'),
        Scenario(DOMAIN).text().replace("up_to", "any"),
        Scenario(DOMAIN).text().replace('"order": 2', '"order": -1'),
        RULED.text().replace('"share": "0.9"', '"share": "1.1"'),
        RULED.text().replace('"sex"\n', '"job"\n'),
        RULED.text().replace('"certainty"', '"chance"'),
        RULED.text().replace('"rules": [', '"rules": [[],'),
        Scenario(DOMAIN).text().replace('"format_version": 2', '"format_version": 3'),
    ],
)
def test_unusable_files_are_refused_in_one_sentence(text):
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse(text)


def changed(path, value):
    content = json.loads(Scenario(DOMAIN).text())
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize("value", [{}, 0, "", False, []])
def test_expected_counts_are_none_or_whole(value):
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse(changed(["expected"], value))


@pytest.mark.parametrize("value", [None, True, "0.2", [0.2], 0, 0.0009, 10.1, 1e400, -0.2])
def test_the_limit_of_publishable_cells_is_a_number_in_range(value):
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse(changed(["cv_limit"], value))


def test_the_limit_of_publishable_cells_is_kept_and_told_apart():
    assert json.loads(Scenario(DOMAIN).text())["cv_limit"] == 0.2
    scenario = Scenario(DOMAIN, cv_limit=0.125)
    assert scenario != Scenario(DOMAIN)
    assert Scenario.parse(scenario.text()) == scenario
    for invalid in (float("nan"), float("inf"), 0):
        with pytest.raises(WorkloadError, match=r"0\.001 to 10"):
            scenario.replaced(cv_limit=invalid)


def test_the_design_of_a_survey_is_kept_and_follows_the_codebook():
    tables = (((("age", "sex"), 2.5)), ((("sex",), 3.0)))
    scenario = Scenario(DOMAIN, design=rp.SurveyDesign(1.5, tables, 0.1))
    assert Scenario.parse(scenario.text()) == scenario
    assert "design" not in json.loads(Scenario(DOMAIN).text())
    with pytest.raises(WorkloadError, match="design effect must be from"):
        Scenario.parse(scenario.text().replace("1.5", "-1"))
    without = rp.Domain(tuple(one for one in DOMAIN if one.name != "age"))
    changed, notes = scenario.with_domain(without)
    assert changed.design == rp.SurveyDesign(1.5, tables[1:], 0.1)
    assert any("design effect of age × sex was dropped" in note for note in notes)
    one_way = scenario.with_request(order=1)
    assert one_way.design_in_use.of_tables == tables[1:]


LONE = "\ud800"  # half of a pair, which no file can hold


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["name"], LONE),
        (["note"], f"a{LONE}"),
        (["record_noun"], LONE),
        (["domain", "fields", 0, "title"], LONE),
        (["domain", "fields", 0, "name"], LONE),
        (["tables", "listed"], [[LONE]]),
        (["tables", "only"], [LONE]),
        (["tables", "containing"], [LONE]),
        (["tables", "settings"], [{"attributes": [LONE], "weight": 2, "target": None}]),
        (
            ["tables", "groups"],
            [{"containing": [LONE], "weight": 2, "factor": None, "target": None}],
        ),
    ],
)
def test_texts_that_no_file_can_hold_are_refused(path, value):
    content = json.loads(changed(path, value))
    if path[0] == "tables":  # neither where they are not in use
        content["tables"]["kind"] = "listed" if path[1] != "listed" else "up_to"
        content["tables"]["listed"] = content["tables"]["listed"] or [[]]
    with pytest.raises(WorkloadError, match="not a usable scenario") as caught:
        Scenario.parse(json.dumps(content))
    str(caught.value).encode()  # it can be shown


@pytest.mark.parametrize("field", ["name", "note", "record_noun"])
def test_texts_of_a_scenario_are_texts(field):
    with pytest.raises(WorkloadError, match="UTF-8"):
        Scenario(DOMAIN, **{field: LONE})
    with pytest.raises(WorkloadError, match="must be a text"):
        Scenario.parse(changed([field], 5))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["tables", "order"], 2.0),
        (["tables", "order"], True),
        (["tables", "order"], 10**30),
        (["tables", "cells"], 0),
        (["tables", "cells"], 2**53),
        (["tables", "most_cells"], 10**30),
        (["tables", "settings"], [{"attributes": ["age"], "weight": "3", "target": None}]),
        (["tables", "settings"], [{"attributes": ["age"], "weight": 10**400, "target": None}]),
        # of a table that is not asked for now
        (
            ["tables", "settings"],
            [{"attributes": ["age", "sex", "region"], "weight": None, "target": "x"}],
        ),
        (
            ["tables", "groups"],
            [{"containing": [], "weight": 10**400, "factor": None, "target": None}],
        ),
        (["record_noun"], "x" * 101),
    ],
)
def test_numbers_and_sizes_of_a_file_are_bounded(path, value):
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse(changed(path, value))


def test_lists_in_lists_without_end_are_refused():
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse("[" * 200_000)


# ---- public counts


def test_expected_counts_travel_with_the_scenario():
    expected = ExpectedCounts(("sex",), (("0", "1"),), (30.0, 70.0))
    scenario = Scenario(DOMAIN, expected=expected)
    assert Scenario.parse(scenario.text()) == scenario
    without_sex = rp.Domain(tuple(each for each in DOMAIN.attributes if each.name != "sex"))
    changed, notes = scenario.with_domain(without_sex)
    assert changed.expected is None
    assert any("The public table was dropped: the counts by sex." in note for note in notes)
    same, notes = scenario.with_domain(DOMAIN)
    assert same.expected == expected
    assert not notes


def test_public_tables_travel_with_the_scenario_and_are_followed_by_figures_of_counts():
    census = rp.PublicTable(
        ExpectedCounts(("sex",), (("0", "1"),), (30.0, 70.0)), "census", "2021", "the office"
    )
    older = rp.PublicTable(
        ExpectedCounts(("sex",), (("1", "0"),), (45.0, 55.0)), "register", "2011", is_shares=True
    )
    scenario = Scenario(DOMAIN).with_public([census, older])
    assert scenario.expected == census.counts
    assert scenario.public_tables is not None
    assert scenario.public_tables.n_records == 100
    (sentence,) = scenario.public_tables.contradictions
    assert "register (2011) and census (2021) contradict each other by sex" in sentence
    again = Scenario.parse(scenario.text())
    assert again == scenario
    assert [table.source for table in again.public] == ["the office", ""]
    # A number of records that was typed stays, and what is too far from it is refused.
    typed = scenario.replaced(expected=ExpectedCounts.of_total(105))
    assert Scenario.parse(typed.text()) == typed
    assert typed.with_public([older]).expected == typed.expected
    assert typed.replaced(expected=None).expected == census.counts
    assert scenario.with_public([]) == Scenario(DOMAIN)
    with pytest.raises(WorkloadError, match="more than 10 % apart"):
        scenario.replaced(expected=ExpectedCounts.of_total(200)).with_public([census])
    with pytest.raises(WorkloadError, match="shares alone do not say how many"):
        scenario.with_public([older])
    renamed = rp.Domain(
        tuple(replace(one, name="gender") if one.name == "sex" else one for one in DOMAIN)
    )
    changed, _ = scenario.with_domain(renamed, renamed={"sex": "gender"})
    assert [table.counts.attributes for table in changed.public] == [("gender",)] * 2


def test_a_file_with_one_public_table_opens_as_before():
    """As files were before scenarios had several: expected counts by attributes, and no more."""
    content = Scenario(DOMAIN).to_json()
    content["expected"] = {"attributes": ["sex"], "values": [["0", "1"]], "counts": [30, 70]}
    scenario = Scenario.from_json(content)
    assert scenario.public == (rp.PublicTable(scenario.expected),)
    assert json.loads(scenario.text()) == json.loads(json.dumps(content))


def test_expected_counts_of_another_codebook_are_no_scenario():
    content = Scenario(DOMAIN).to_json()
    content["expected"] = {"attributes": ["no"], "values": [["1"]], "counts": [1]}
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.from_json(content)


def test_objective_and_free_counts_are_kept_and_planned_with():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 3})
    stated = stated_from_text(domain, "old: age = 2 ± 9\nwomen: sex = 1 & age < 2 ± 9")
    scenario = Scenario(domain, query_list=stated, asks_for_tables=False).replaced(
        counts_objective="sum", free_counts=("women", "gone")
    )
    again = Scenario.parse(scenario.text())
    assert (again.counts_objective, again.free_counts) == ("sum", ("women", "gone"))
    part = again.plan().part("counts")
    assert (part.objective.option, part.free_counts) == ("sum", ("women",))
    assert "counts_objective" not in Scenario(domain).text()
    assert not again.replaced(
        counts_objective="targets-then-sum", asks_for_tables=True
    ).splits_itself
    with pytest.raises(WorkloadError, match="must be one of largest, sum"):
        scenario.replaced(counts_objective="mean")
