"""The schema as a grid, and back."""

import re
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import TO_COMPLETE, Domain, is_unfinished
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError
from rpexplore.scenarios import codebook_grid as grids

DOMAIN = rp.Domain(
    (
        Attribute("age", Integers(0, 99, 5), "Age in years"),
        Attribute("sex", Categories(("F", "M"), ("Female", "Male"))),
        Attribute("income", Bins((0, 500, 1000.5))),
    )
)


def edited(changes, domain=DOMAIN):
    return grids.domain_from_grid(domain, changes)[0]


def test_grid_shows_every_attribute():
    grid = grids.codebook_grid(DOMAIN).set_index("name")
    assert grid["size"].tolist() == [20, 2, 2]
    assert grid.loc["age", ["minimum", "maximum", "step"]].tolist() == ["0", "99", "5"]
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
    assert (bins.edges[-1], bins.size) == (99, 20)


def test_new_names_and_labels():
    result, renamed, _ = grids.domain_from_grid(DOMAIN, {0: {"name": " years ", "label": None}})
    assert result.attributes[0] == Attribute("years", Integers(0, 99, 5))
    assert renamed == {"age": "years", "sex": "sex", "income": "income"}


def test_removed_rows_are_gone():
    result, renamed, _ = grids.domain_from_grid(DOMAIN, {1: {"remove": True}})
    assert result.names == ("age", "income")
    assert "sex" not in renamed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({0: {"maximum": -1}}, "Attribute 'age': The maximum must not be below"),
        ({0: {"name": ""}}, "needs a name"),
        ({0: {"name": "sex"}}, "'sex' is in the domain twice"),
        ({1: {"values": ["F", "F"]}}, "'F' is listed twice"),
        ({1: {"values": []}}, "must have 1 to"),
        ({2: {"values": ["0", "many"]}}, "An edge must be a number, got 'many'"),
        ({2: {"values": ["5", "1"]}}, "must increase"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(changes, message):
    _, _, refused = grids.domain_from_grid(DOMAIN, changes)
    assert len(refused) == 1
    assert re.search(message, refused[0])


def test_all_rows_may_be_removed():
    result, _, refused = grids.domain_from_grid(DOMAIN, {row: {"remove": True} for row in range(3)})
    assert (result, refused) == (rp.Domain(()), [])
    assert len(grids.codebook_grid(result)) == 0


def test_an_attribute_waits_until_enough_is_typed():
    domain = grids.with_new_attribute(rp.Domain(()))
    row = grids.codebook_grid(domain).loc[0]
    assert row["kind"] == grids.UNFINISHED
    assert row[["size", "values", "minimum", "maximum", "step"]].isna().all()
    assert grids.values_in_all(domain) == 0
    for typed in ({"kind": grids.BINS}, {"minimum": 3}, {"kind": grids.INTEGERS, "values": ["a"]}):
        assert is_unfinished(edited({0: typed}, domain).attributes[0])


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ({"minimum": 1, "maximum": 9}, Integers(1, 9)),
        ({"kind": grids.INTEGERS, "minimum": 0, "maximum": 9, "step": 5}, Integers(0, 9, 5)),
        ({"values": [" a", "b"]}, Categories(("a", "b"))),
        ({"kind": grids.CATEGORIES, "values": ["a"]}, Categories(("a",))),
        ({"kind": grids.BINS, "values": ["0", "1.5"]}, Bins((0, 1.5))),
        ({"kind": grids.UNFINISHED, "values": ["a", "b"]}, Categories(("a", "b"))),
    ],
)
def test_an_attribute_gets_the_values_that_are_typed(typed, values):
    domain = grids.with_new_attribute(rp.Domain(()))
    changed = edited({0: typed}, domain)
    assert changed.attributes[0].values == values
    # The cells stay typed, and are applied again to what they have made.
    assert edited({0: typed}, changed) == changed


def test_what_is_typed_for_a_waiting_attribute_may_be_refused():
    domain = grids.with_new_attribute(rp.Domain(()))
    result, _, refused = grids.domain_from_grid(
        domain, {0: {"minimum": 9, "maximum": 1, "name": "age"}}
    )
    assert result.names == ("age",)
    assert "must not be below" in refused[0]


def test_values_can_be_taken_back():
    assert is_unfinished(edited({0: {"kind": grids.UNFINISHED}}).attributes[0])


def test_one_unusable_cell_does_not_hold_up_the_others():
    changes = {
        0: {"name": "sex", "label": "Years", "maximum": 49},
        1: {"values": ["F", "F"], "name": "gender"},
        2: {"remove": True},
    }
    result, renamed, refused = grids.domain_from_grid(DOMAIN, changes)
    assert result == rp.Domain(
        (
            Attribute("age", Integers(0, 49, 5), "Years"),
            Attribute("gender", Categories(("F", "M"), ("Female", "Male"))),
        )
    )
    assert renamed == {"age": "age", "sex": "gender"}
    assert ["twice" in reason for reason in refused] == [True, True]


def test_values_replace_those_of_an_attribute():
    changed = grids.domain_with_values(DOMAIN, "age", Integers(0, 9))
    assert changed["age"] == Attribute("age", Integers(0, 9), "Age in years")
    assert changed.attributes[1:] == DOMAIN.attributes[1:]


@pytest.mark.parametrize("text", ["F\n M \n\n", "F, M", " F,M,\n"])
def test_categories_are_typed_as_text(text):
    assert grids.categories_from_text(text) == Categories(("F", "M"))


def test_typed_categories_may_hold_commas_where_each_has_a_line():
    made = grids.categories_from_text("Health, social work\nOther")
    assert made.values == ("Health, social work", "Other")
    with pytest.raises(DomainError, match="'F' is listed twice"):
        grids.categories_from_text("F\nF")
    assert grids.categories_from_text(" ").size == 0  # which no attribute can have


def test_names_are_swapped():
    result, _, refused = grids.domain_from_grid(DOMAIN, {0: {"name": "sex"}, 1: {"name": "age"}})
    assert (result.names, refused) == (("sex", "age", "income"), [])


def test_long_lists_are_left_out_of_the_grid_and_stay_as_they_are():
    many = Categories(tuple(f"v{i}" for i in range(grids.MAX_LISTED + 1)))
    domain = rp.Domain((Attribute("code", many),))
    assert grids.codebook_grid(domain).loc[0, "values"] is None
    assert edited({0: {"label": "Code"}}, domain)["code"].values == many
    _, _, (reason,) = grids.domain_from_grid(domain, {0: {"kind": grids.BINS}})
    assert "too many to list" in reason
    assert len(grids.values_of(domain["code"])) == grids.MAX_LISTED


def test_values_with_their_labels():
    frame = grids.values_of(DOMAIN["sex"])
    assert frame.to_dict("list") == {
        "value": ["F", "M"],
        "label": ["Female", "Male"],
        "group": ["", ""],
    }


def test_new_attributes_get_new_names():
    twice = grids.with_new_attribute(grids.with_new_attribute(DOMAIN))
    assert twice.names[3:] == ("attribute_4", "attribute_5")
    taken = rp.Domain.from_sizes({"attribute_2": 2})
    assert grids.with_new_attribute(taken).names == ("attribute_2", "attribute_3")


# ---- labels


def test_labels_are_changed_and_bad_ones_refused():
    result, _ = grids.domain_with_labels(DOMAIN, "sex", {0: {"label": " Women "}})
    assert result["sex"].values == Categories(("F", "M"), ("Women", "Male"))
    result, refused = grids.domain_with_labels(
        DOMAIN, "sex", {0: {"label": "Male"}, 1: {"label": None}}
    )
    assert result["sex"].values == Categories(("F", "M"), ("Female", "M"))
    assert "'Male' stands for two" in refused[0]


def test_spellings_stay_with_their_values():
    sex = Attribute("sex", Categories(("F", "M"), spellings=(("f",), ("m",))))
    dose = Attribute("dose", Categories(("0.5", "1"), are_numbers=True))
    domain = rp.Domain((sex, dose))
    changed = edited({0: {"values": ["M", "X"]}, 1: {"values": ["1", "2.5"]}}, domain)
    assert changed["sex"].values == Categories(("M", "X"), spellings=(("m",), ()))
    assert changed["dose"].values == Categories(("1", "2.5"), are_numbers=True)
    labelled, _ = grids.domain_with_labels(domain, "sex", {0: {"label": "Women"}})
    assert labelled["sex"].values == Categories(("F", "M"), ("Women", "M"), (("f",), ("m",)))


# ---- groups

REGION = Attribute(
    "region",
    Categories(("a", "b", "c"), ("Alton", "Bury", "Cork")),
    groups=(("North", "Coast"), ("North",), ()),
)
GROUPED = rp.Domain(
    (
        REGION,
        Attribute("age", Integers(0, 9, 5), groups=(("young",), ("old",))),
        Attribute("income", Bins((0, 500, 1000)), groups=(("low",), ("high",))),
    )
)


def test_groups_stand_beside_values():
    assert grids.values_of(REGION)["group"].tolist() == ["North > Coast", "North", ""]
    assert grids.values_of(REGION, 2)["group"].tolist() == ["North > Coast", "North"]


def test_groups_are_typed_and_bad_ones_refused():
    changes = {
        0: {"group": " South > Hills "},
        1: {"group": None},
        2: {"group": " > ", "label": "Cove"},
    }
    result, refused = grids.domain_with_labels(GROUPED, "region", changes)
    assert result["region"].groups == (("South", "Hills"), (), ())
    assert result["region"].values.labels == ("Alton", "Bury", "Cove")
    (reason,) = refused
    assert "groups of attribute 'region'" in reason
    assert result.attributes[1:] == GROUPED.attributes[1:]
    numbers = grids.domain_with_labels(GROUPED, "age", {1: {"group": "Adults"}})[0]["age"]
    assert numbers.groups == (("young",), ("Adults",))


def test_the_last_group_to_go_leaves_none():
    changes = {0: {"group": ""}, 1: {"group": ""}}
    assert grids.domain_with_labels(GROUPED, "region", changes)[0]["region"].groups == ()


@pytest.mark.parametrize(
    ("row", "change", "groups"),
    [
        (0, {"name": "place", "label": "Place"}, REGION.groups),
        (0, {"values": ["c", "a", "new"]}, ((), ("North", "Coast"), ())),
        (0, {"values": ["x", "y"]}, ()),
        (0, {"kind": grids.INTEGERS}, REGION.groups),
        (1, {"maximum": 14}, (("young",), ("old",), ())),
        (1, {"step": 2}, ()),
        (1, {"kind": grids.CATEGORIES}, (("young",), ("old",))),
        (2, {"values": ["0", "500", "1000", "2000"]}, (("low",), ("high",), ())),
        (2, {"values": ["0", "250", "500", "1000"]}, ((), (), ("high",))),
    ],
)
def test_values_that_stay_keep_their_groups(row, change, groups):
    assert edited({row: change}, GROUPED).attributes[row].groups == groups


def test_values_that_replace_others_may_be_more_or_fewer():
    fewer = grids.domain_with_values(GROUPED, "region", Categories(("b",)))["region"]
    assert (fewer.size, fewer.groups) == (1, (("North",),))
    more = grids.domain_with_values(GROUPED, "region", Categories(("z", "b", "a", "y")))["region"]
    assert more.groups == ((), ("North",), ("North", "Coast"), ())


# --- dates, and cells for missing values

EDGES = ("2026-01-01", "2026-06-01", "2026-12-31")
YEAR = Dates("2026-01-01", "2026-12-31", "month", missing=(("", "open"),))


@pytest.mark.parametrize(
    ("values", "change", "expected"),
    [
        (YEAR, {"maximum": "2027-03-31", "step": "quarter"}, Dates("2026", "2027-03", "quarter")),
        (YEAR, {"values": [*EDGES]}, Dates(edges=EDGES)),
        (Integers(2000, 2009, 5), {"kind": "dates"}, Dates("2000", "2009", "5 years")),
        (
            Categories(("2026-01-03", "2026-01-01")),
            {"kind": "dates"},
            Dates("2026-01-01", "2026-01-03"),
        ),
        (Categories(("a", "b")), {"kind": "dates"}, Dates("2000-01-01", "2000-01-02")),
        (
            Categories(("a", "b")),
            {"kind": "dates", "minimum": "2026", "maximum": "2027", "step": "year"},
            Dates("2026", "2027", "year"),
        ),
        (YEAR, {"kind": "whole numbers"}, Integers(0, 11)),
        (TO_COMPLETE, {"minimum": "2026-01", "maximum": "2026-02"}, Dates("2026-01", "2026-02")),
        (
            TO_COMPLETE,
            {"kind": "dates", "minimum": "2026", "maximum": "2027"},
            Dates("2026", "2027"),
        ),
        (TO_COMPLETE, {"minimum": "2026", "maximum": "2027"}, Integers(2026, 2027)),
    ],
)
def test_dates_are_typed_into_the_grid(values, change, expected):
    domain = Domain((Attribute("day", values),))
    edited, _, refused = grids.domain_from_grid(domain, {0: change})
    assert refused == []
    missing = YEAR.missing if values == YEAR else ()
    assert edited["day"].values == replace(expected, missing=missing)
    row = grids.codebook_grid(edited).iloc[0]
    typed = {name: row[name] for name in ("values", "minimum", "maximum", "step")}
    again, _, refused = grids.domain_from_grid(edited, {0: {k: v for k, v in typed.items() if v}})
    assert (again, refused) == (edited, [])


def test_limits_that_are_none_are_refused():
    for values, typed, match in (
        (Integers(0, 9), {"maximum": "x"}, "highest value must be a whole number, got 'x'"),
        (YEAR, {"maximum": "x"}, "A day must be written as 2026-01-31, got 'x'"),
        (YEAR, {"step": "x"}, "step of dates must be day"),
    ):
        domain = Domain((Attribute("day", values),))
        edited, _, (refused,) = grids.domain_from_grid(domain, {0: typed})
        assert edited == domain
        assert match in refused


@pytest.mark.parametrize("values", [Integers(0, 9), Bins((0, 1)), Dates("2026", "2026")])
def test_missing_values_are_typed_one_a_line(values):
    typed = grids.with_missing_lines(values, " -9 = refused \n\n= left out\n-8\n")
    missing = (("-9", "refused"), ("", "left out"), ("-8", "not stated"))
    assert typed == replace(values, missing=missing)
    assert isinstance(typed, Integers | Bins | Dates)
    assert grids.with_missing_lines(values, grids.lines_of_missing(typed)) == typed
    with pytest.raises(DomainError, match="is listed twice"):
        grids.with_missing_lines(values, "-9\n-9 = refused")


def test_levels_keep_the_groups_of_values_that_stay():
    field = {"name": "country", "constraints": {"enum": ["DE", "FR", "BR"]}}
    field["levels"] = {"continent": {"Europe": ["DE", "FR"], "America": ["BR"]}}
    domain = rp.Domain.from_schema({"fields": [field]})
    changed = grids.domain_with_values(domain, "country", Categories(("DE", "FR", "BR", "JP")))
    (level,) = changed["country"].levels
    assert level.groups == ("Europe", "Europe", "America", "JP")
    assert (
        grids.domain_with_values(domain, "country", Categories(("DE", "BR")))["country"].levels
        == ()
    )


def test_levels_are_lines_that_people_type():
    fields = [
        {"name": "age", "constraints": {"minimum": 0, "maximum": 29}},
        {"name": "land", "constraints": {"enum": ["DE", "FR", "US"]}},
        {"name": "day", "type": "date", "step": "month"}
        | {"constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"}},
    ]
    domain = rp.Domain.from_schema({"fields": fields})
    typed = {
        "age": "five: 5\n\nadult: 0-17, 18+",
        "land": 'continent: Europe = DE, FR; America = US\nodd: {"a=b": ["DE", "US"], "c": ["FR"]}',
        "day": "year: year",
    }
    for name, text in typed.items():
        domain = grids.domain_with_level_lines(domain, name, text)
    found = {one.name: {level.name: level.labels for level in one.levels} for one in domain}
    assert found["age"]["five"][:2] == ("0 to 4", "5 to 9")
    assert found["age"]["adult"] == ("0-17", "18+")
    assert found["land"] == {"continent": ("Europe", "America"), "odd": ("a=b", "c")}
    assert found["day"] == {"year": ("2020", "2021")}
    for one in domain:
        text = grids.lines_of_levels(one)
        assert grids.domain_with_level_lines(domain, one.name, text) == domain
    for text in ("adult", "adult: 0-17", "adult: A = 1; A = 2", "adult: {", "a@b: 5"):
        with pytest.raises(DomainError, match="level"):
            grids.domain_with_level_lines(domain, "age", text)
