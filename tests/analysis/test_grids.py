"""Schema and workload as grids, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import grids
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.errors import DomainError
from rpexplore.scenario import Scenario, TableSetting, WorkloadRequest

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
    with pytest.raises(DomainError, match=told):
        edited(changes)


def test_long_lists_are_left_out_of_the_grid_and_stay_as_they_are():
    many = Categories(tuple(f"v{i}" for i in range(grids.MAX_LISTED + 1)))
    domain = rp.Domain((Attribute("code", many),))
    assert grids.schema_grid(domain).loc[0, "values"] is None
    assert edited({0: {"label": "Code"}}, domain)["code"].values == many
    with pytest.raises(DomainError, match="too many to list"):
        edited({0: {"kind": grids.BINS}}, domain)
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


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_sizes_are_exact_however_large(sizes):
    domain = rp.Domain.from_sizes({f"a{i}": size for i, size in enumerate(sizes)})
    product = 1
    for size in sizes:
        product *= size
    assert grids.cross_product(domain) == product
    totals = grids.totals(rp.Workload.of(domain, [domain.names, ()]))
    assert (totals.tables, totals.cells, totals.largest_cells) == (2, product + 1, product)


def test_workload_grid_is_cut_and_says_how_many_there_are():
    plan = Scenario(DOMAIN).plan()
    grid, found = grids.workload_grid(plan, most=3)
    assert (len(grid), found) == (3, 7)
    assert grid["table"].tolist() == ["(total)", "age", "sex"]
    grid, found = grids.workload_grid(plan, ["sex"])
    assert (grid["table"].tolist(), found) == (["sex", "age × sex", "sex × income"], 3)
    assert [plan.workload.tables[place] for place in grid.index][1] == ("age", "sex")
    assert grid["standard_error"].tolist() == plan.standard_errors[grid.index].tolist()


def test_typed_importance_and_targets_become_settings():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0, 9.0)])
    tables = [("age",), ("sex",)]
    changes = {0: {"target": None}, 1: {"weight": 2.0, "target": 5.0}}
    assert grids.settings_from_grid(scenario, tables, changes) == [
        TableSetting(("age",), 3.0, None),
        TableSetting(("sex",), 2.0, 5.0),
    ]
    emptied = grids.settings_from_grid(scenario, tables, {0: {"weight": None}})
    assert emptied == [TableSetting(("age",), 1.0, 9.0)]


def test_settings_for_many_keep_what_is_not_given():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0, 9.0)])
    settings = grids.settings_for_many(scenario, ["age"], None, 4.0)
    assert set(settings) == {
        TableSetting(("age",), 3.0, 4.0),
        TableSetting(("age", "sex"), 1.0, 4.0),
        TableSetting(("age", "income"), 1.0, 4.0),
    }


def test_first_list_is_what_is_asked_for_or_each_attribute():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1))
    assert grids.first_list(scenario, 10) == ((), ("age",), ("sex",), ("income",))
    assert grids.first_list(scenario, 3) == (("age",), ("sex",), ("income",))
