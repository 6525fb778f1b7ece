"""The schema as a grid, and back."""

import re

import pytest

import rpexplore as rp
from rpexplore.analysis import grids
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.errors import DomainError
from rpexplore.scenario import Scenario

DOMAIN = rp.Domain(
    (
        Attribute("age", Integers(0, 99, 5), "Age in years"),
        Attribute("sex", Categories(("F", "M"), ("Female", "Male"))),
        Attribute("income", Bins((0, 500, 1000.5))),
    )
)


def edited(changes, domain=DOMAIN):
    return grids.domain_from_grid(domain, changes).domain


def test_grid_shows_every_attribute():
    grid = grids.schema_grid(DOMAIN).set_index("name")
    assert grid["size"].tolist() == [20, 2, 2]
    assert grid.loc["age", ["minimum", "maximum", "step"]].tolist() == [0, 99, 5]
    assert grid.loc["sex", "values"] == ["F", "M"]
    assert grid.loc["income", "values"] == ["0", "500", "1000.5"]
    assert grid["kind"].tolist() == [grids.INTEGERS, grids.CATEGORIES, grids.BINS]


def test_nothing_changed_changes_nothing():
    assert edited({}) == DOMAIN


@pytest.mark.parametrize(
    ("row", "change", "values"),
    [
        (0, {"maximum": 49, "step": 10}, Integers(0, 49, 10)),
        (0, {"maximum": None}, Integers(0, 99, 5)),
        (1, {"values": ["M", "F", " X "]}, Categories(("M", "F", "X"), ("Male", "Female", "X"))),
        (2, {"values": ["0", "1.5", "10"]}, Bins((0, 1.5, 10))),
        (1, {"kind": grids.INTEGERS}, Integers(0, 1)),
        (2, {"kind": grids.CATEGORIES}, Categories(("0 to under 500", "500 to 1000.5"))),
        (1, {"kind": grids.BINS}, Bins((0, 1, 2))),
    ],
)
def test_edited_values(row, change, values):
    domain = edited({row: change})
    assert domain.attributes[row].values == values
    assert len(domain) == 3


def test_whole_numbers_become_intervals_with_the_same_values():
    bins = edited({0: {"kind": grids.BINS}})["age"].values
    assert bins.edges[:2] == (0, 5)
    assert (bins.edges[-1], bins.size) == (100, 20)


def test_new_names_and_labels():
    result = grids.domain_from_grid(DOMAIN, {0: {"name": " years ", "label": None}})
    assert result.domain.attributes[0] == Attribute("years", Integers(0, 99, 5))
    assert result.renamed == {"age": "years", "sex": "sex", "income": "income"}


def test_removed_rows_are_gone():
    result = grids.domain_from_grid(DOMAIN, {1: {"remove": True}})
    assert result.domain.names == ("age", "income")
    assert "sex" not in result.renamed


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({0: {"maximum": -1}}, "Attribute 'age': The maximum must not be below"),
        ({0: {"name": ""}}, "needs a name"),
        ({0: {"name": "sex"}}, "'sex' is in the domain twice"),
        ({1: {"values": ["F", "F"]}}, "'F' is listed twice"),
        ({1: {"values": []}}, "must have 1 to"),
        ({2: {"values": ["0", "many"]}}, "An edge must be a number, got 'many'"),
        ({2: {"values": ["5", "1"]}}, "must increase"),
        ({row: {"remove": True} for row in range(3)}, "at least one attribute"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(changes, told):
    result = grids.domain_from_grid(DOMAIN, changes)
    assert len(result.refused) == 1
    assert re.search(told, result.refused[0])


def test_one_unusable_cell_does_not_hold_up_the_others():
    changes = {
        0: {"name": "sex", "label": "Years", "maximum": 49},
        1: {"values": ["F", "F"], "name": "gender"},
        2: {"remove": True},
    }
    result = grids.domain_from_grid(DOMAIN, changes)
    assert result.domain == rp.Domain(
        (
            Attribute("age", Integers(0, 49, 5), "Years"),
            Attribute("gender", Categories(("F", "M"), ("Female", "Male"))),
        )
    )
    assert result.renamed == {"age": "age", "sex": "gender"}
    assert ["twice" in reason for reason in result.refused] == [True, True]


def test_names_are_swapped():
    result = grids.domain_from_grid(DOMAIN, {0: {"name": "sex"}, 1: {"name": "age"}})
    assert (result.domain.names, result.refused) == (("sex", "age", "income"), ())


def test_long_lists_are_left_out_of_the_grid_and_stay_as_they_are():
    many = Categories(tuple(f"v{i}" for i in range(grids.MAX_LISTED + 1)))
    domain = rp.Domain((Attribute("code", many),))
    assert grids.schema_grid(domain).loc[0, "values"] is None
    assert edited({0: {"label": "Code"}}, domain)["code"].values == many
    (reason,) = grids.domain_from_grid(domain, {0: {"kind": grids.BINS}}).refused
    assert "too many to list" in reason
    assert len(grids.values_of(domain["code"])) == grids.MAX_LISTED


def test_values_with_their_labels():
    frame = grids.values_of(DOMAIN["sex"])
    assert frame.to_dict("list") == {"value": ["F", "M"], "label": ["Female", "Male"]}


def test_new_attributes_get_new_names():
    twice = grids.with_new_attribute(grids.with_new_attribute(DOMAIN))
    assert twice.names[3:] == ("attribute_4", "attribute_5")
    taken = rp.Domain.from_sizes({"attribute_2": 2})
    assert grids.with_new_attribute(taken).names == ("attribute_2", "attribute_3")


# ---- a schema typed as lines


def test_lines():
    domain = grids.domain_from_lines(
        "age 0..99\nhouse hold size 7\n\nincome 0..999 step 500\nsex: F, M\nlow -5..5\n"
    )
    assert [(a.name, a.values) for a in domain.attributes] == [
        ("age", Integers(0, 99)),
        ("house hold size", Integers(0, 6)),
        ("income", Integers(0, 999, 500)),
        ("sex", Categories(("F", "M"))),
        ("low", Integers(-5, 5)),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age", "Line 1: 'age' must be a name with"),
        ("age 5\nsex x..y", "Line 2: 'sex x..y' must be"),
        ("sex:", "Line 1: Attribute 'sex' must have 1 to"),
        ("a 0..9 step 0", "Line 1: The step must be at least 1"),
        ("a 0", "Line 1: The maximum must not be below"),
        ("a 1\na 2", "'a' is in the domain twice"),
        ("", "at least one attribute"),
    ],
)
def test_lines_that_cannot_be_used(text, told):
    with pytest.raises(DomainError, match=told):
        grids.domain_from_lines(text)


def test_csv_codebooks_are_offered_where_there_can_be_one():
    listable = rp.Domain((Attribute("age", Integers(0, 9)), DOMAIN["sex"]))
    assert grids.why_no_csv(listable) == ""
    assert rp.Domain.parse(listable.text("c.csv"), "c.csv").names == listable.names
    for attribute in (DOMAIN["age"], DOMAIN["income"]):
        assert attribute.name in grids.why_no_csv(rp.Domain((attribute,)))
        with pytest.raises(DomainError):
            rp.Domain((attribute,)).text("c.csv")
    assert "too many" in grids.why_no_csv(rp.Domain.from_sizes({"a": 10**6, "b": 10**6}))


def test_uploaded_bytes():
    text = DOMAIN.text("codebook.json")
    assert grids.domain_from_bytes(text.encode(), "c.json") == DOMAIN
    assert grids.domain_from_bytes(b"\xef\xbb\xbf" + text.encode(), "c.json") == DOMAIN
    with pytest.raises(DomainError, match="not UTF-8"):
        grids.domain_from_bytes("é".encode("latin-1"), "c.csv")


# ---- the workload


def test_labels_are_changed_and_bad_ones_refused():
    result = grids.domain_with_labels(DOMAIN, "sex", {0: {"label": " Women "}})
    assert result.domain["sex"].values == Categories(("F", "M"), ("Women", "Male"))
    result = grids.domain_with_labels(DOMAIN, "sex", {0: {"label": "Male"}, 1: {"label": None}})
    assert result.domain["sex"].values == Categories(("F", "M"), ("Female", "M"))
    assert "'Male' stands for two" in result.refused[0]


def test_a_plan_becomes_its_inputs():
    scenario = Scenario(DOMAIN, counted="people")
    content = scenario.plan().text.encode()
    assert grids.scenario_from_bytes(content, "plan.json", scenario) == scenario
    elsewhere = Scenario(rp.Domain.from_sizes({"a": 2}), counted="visits")
    assert grids.scenario_from_bytes(content, "plan.json", elsewhere).counted == "records"
    with pytest.raises(DomainError, match="not UTF-8"):
        grids.scenario_from_bytes(b"\xff", "plan.json", scenario)


def test_loaded_in_words():
    assert grids.loaded_in_words(Scenario(DOMAIN), "my.csv") == (
        "Loaded my.csv: 3 attributes, 24 values."
    )
