"""Project: scenarios in order, one of them open."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.project import MOST_SCENARIOS, Project
from rpexplore.scenarios.scenario import Scenario

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2})


def project_of(*names, position=0):
    return Project(tuple(Scenario(DOMAIN, name=name) for name in names), position)


def test_a_new_scenario_follows_the_open_one_and_is_open():
    project = project_of("a", "b", "c", position=1).added(Scenario(DOMAIN, name="new"))
    assert project.names == ("a", "b", "new", "c")
    assert project.current.name == "new"


def test_a_duplicate_gets_a_name_of_its_own():
    project = project_of("a", "b")
    project = project.added(project.current)
    assert project.names == ("a", "a (2)", "b")
    project = project.opened(0)
    assert project.added(project.current).names == ("a", "a (3)", "a (2)", "b")


def test_a_long_name_stays_within_its_limit():
    project = project_of("x" * 60)
    assert len(project.added(project.current).current.name) <= 60


@pytest.mark.parametrize(
    ("position", "removed", "names", "current"),
    [(0, 0, "bc", "b"), (2, 2, "ab", "b"), (2, 0, "bc", "c"), (0, 2, "ab", "a"), (1, 1, "ac", "c")],
)
def test_removing_keeps_the_open_one_or_opens_its_neighbour(position, removed, names, current):
    project = project_of("a", "b", "c", position=position).removed(removed)
    assert "".join(project.names) == names
    assert project.current.name == current


@given(
    count=st.integers(1, 6),
    position=st.integers(0, 5),
    moved=st.integers(0, 5),
    by=st.integers(-7, 7),
)
def test_moving_changes_the_order_and_nothing_else(count, position, moved, by):
    position, moved = position % count, moved % count
    project = project_of(*"abcdef"[:count], position=position)
    after = project.moved(moved, by)
    assert sorted(after.names) == sorted(project.names)
    assert after.current == project.current
    assert after.names.index(project.names[moved]) == min(max(moved + by, 0), count - 1)
    others = [name for name in project.names if name != project.names[moved]]
    assert [name for name in after.names if name != project.names[moved]] == others


def test_the_text_is_read_back_exactly():
    project = Project(
        (
            Scenario(DOMAIN, name="as wanted", note="first try\nwith two lines"),
            Scenario(
                DOMAIN,
                loss=rp.MaxVariance(),
                budget=rp.Budget(rho="1/3"),
                name="fair",
                record_noun="x",
                survey="Household survey",
            ),
        ),
        1,
    )
    assert Project.parse(project.text()) == project


def test_a_survey_is_named_in_all_of_its_scenarios():
    names = ("Health", "Health", "Work")
    scenarios = (Scenario(DOMAIN, name=str(n), survey=name) for n, name in enumerate(names))
    project = Project(tuple(scenarios)).with_survey("Health 2026")
    assert [scenario.survey for scenario in project.scenarios] == [
        "Health 2026",
        "Health 2026",
        "Work",
    ]
    unnamed = (DOMAIN, DOMAIN, rp.Domain.from_sizes({"a": 2}))
    scenarios = (Scenario(domain, name=str(n)) for n, domain in enumerate(unnamed))
    project = Project(tuple(scenarios)).with_survey("Health")
    assert [scenario.survey for scenario in project.scenarios] == ["Health", "Health", ""]


def test_a_scenario_file_is_a_study_of_one():
    scenario = Scenario(DOMAIN, name="alone")
    assert Project.parse(scenario.text()) == Project((scenario,))


def broken(change):
    content = json.loads(project_of("a", "b").text())
    del content["sha256"]
    change(content)
    return json.dumps(content)


def test_a_damaged_project_is_said_to_be_damaged():
    text = project_of("a", "b").text()
    with pytest.raises(WorkloadError, match="it is damaged, or was changed since it was saved"):
        Project.parse(text.replace('"name": "a"', '"name": "c"'))
    assert Project.parse(broken(lambda content: None)) == Project.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        broken(lambda content: content.update(format_version=3)),
        broken(lambda content: content.update(scenarios=[])),
        broken(lambda content: content.update(open=2)),
        broken(lambda content: content.update(open="0")),
        broken(lambda content: content.update(open=0.0)),
        broken(lambda content: content.update(open=False)),
        broken(lambda content: content["scenarios"][1].update(expected={})),
        broken(lambda content: content["scenarios"][1].update(note="\ud800")),
        broken(lambda content: content.update(scenarios=content["scenarios"][:1] * 101)),
        "[" * 200_000,
        broken(lambda content: content.pop("open")),
        broken(lambda content: content["scenarios"].append(content["scenarios"][0])),
        broken(lambda content: content["scenarios"][0].pop("budget")),
        broken(lambda content: content["scenarios"][0].update(name=" ")),
    ],
)
def test_what_is_no_study_is_refused(text):
    with pytest.raises(WorkloadError, match="not a usable"):
        Project.parse(text)


def test_names_are_distinct():
    with pytest.raises(WorkloadError, match="'a' already"):
        project_of("a", "b").with_scenario(1, Scenario(DOMAIN, name="a"))


def test_a_study_is_never_empty_nor_endless():
    with pytest.raises(WorkloadError, match="only scenario"):
        project_of("a").removed(0)
    full = project_of(*(f"s{i}" for i in range(MOST_SCENARIOS)))
    with pytest.raises(WorkloadError, match="delete one"):
        full.added(full.current)


@pytest.mark.parametrize(("field", "most"), [("name", 60), ("note", 2000)])
def test_names_and_notes_have_an_end(field, most):
    assert Scenario(DOMAIN, **{field: "x" * most})
    with pytest.raises(WorkloadError, match="shorten"):
        Scenario(DOMAIN, **{field: "x" * (most + 1)})


def test_what_is_known_of_the_tables_is_kept_where_it_stays_true():
    scenario = Scenario(DOMAIN)
    workload = scenario.workload
    assert scenario.replaced(budget=rp.Budget(rho=1), name="b").workload is workload
    other = scenario.replaced(domain=rp.Domain.from_sizes({"age": 3, "b": 2}))
    assert other.workload.domain.names == ("age", "b")


def test_keys_stay_with_their_scenarios():
    project = project_of("a", "b", "c").moved(0, 2)
    assert dict(zip(project.names, project.keys, strict=True)) == {"b": 1, "c": 2, "a": 0}
    project = project.removed(project.names.index("c")).added(Scenario(DOMAIN, name="d"))
    assert len(set(project.keys)) == 3
    assert dict(zip(project.names, project.keys, strict=True))["b"] == 1
