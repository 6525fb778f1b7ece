"""Where a schema comes from: bytes, lines, columns; and what is still missing of it."""

import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.codebook_remarks import describe_left_out
from rpexplore.domain.domain import (
    FOUND_IN_RECORDS,
    TO_COMPLETE,
    describe_attributes_from_records,
    is_unfinished,
    unfinished,
)
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError
from rpexplore.scenarios.codebook_import import (
    describe_codebook,
    describe_loaded,
    domain_from_lines,
    domain_of_columns,
    scenario_from_bytes,
    survey_named_after,
    why_no_csv,
)
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting

DOMAIN = rp.Domain(
    (
        Attribute("age", Integers(0, 99, 5), "Age in years"),
        Attribute("sex", Categories(("F", "M"), ("Female", "Male"))),
        Attribute("income", Bins((0, 500, 1000.5))),
    )
)


def test_lines():
    domain = domain_from_lines(
        "age 0..99\nhouse hold size 7\n\nincome 0..999 step 500\nsex: F, M\nlow -5..5\n"
        "day 2026-01-01..2026-03-31 step 2 weeks\n"
    )
    assert [(a.name, a.values) for a in domain.attributes] == [
        ("age", Integers(0, 99)),
        ("house hold size", Integers(0, 6)),
        ("income", Integers(0, 999, 500)),
        ("sex", Categories(("F", "M"))),
        ("low", Integers(-5, 5)),
        ("day", Dates("2026-01-01", "2026-03-31", "2 weeks")),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age", "Line 1: 'age' must be a name with"),
        ("age 5\nsex x..y", "Line 2: 'sex x..y' must be"),
        ("sex:", "Line 1: Attribute 'sex' must have 1 to"),
        ("a 0..9 step 0", "Line 1: The step must be at least 1"),
        ("a 0", "Line 1: The maximum must not be below"),
        ("a 2026-01-01..2026-02-30", "Line 1: A day must be written"),
        ("a 1\na 2", "'a' is in the domain twice"),
        ("", "no attribute in these lines"),
    ],
)
def test_lines_that_cannot_be_used(text, message):
    with pytest.raises(DomainError, match=message):
        domain_from_lines(text)


def test_csv_codebooks_are_offered_where_there_can_be_one():
    listable = rp.Domain((Attribute("age", Integers(0, 9)), DOMAIN["sex"]))
    assert why_no_csv(listable) == ""
    assert rp.Domain.parse(listable.text("c.csv"), "c.csv").names == listable.names
    unsaid = rp.Domain.from_schema(
        {
            "fields": [
                {
                    "name": "years",
                    "constraints": {"minimum": 0, "maximum": 9},
                    "levels": {"two": "0-4, 5+"},
                },
                {"name": "rent", "type": "number", "bounds": [0, 100]},
                {"name": "w", "type": "number", "bounds": [0, 4], "weights": True},
                {"name": "yes", "spellings": [["y"], []], "constraints": {"enum": ["1", "2"]}},
                {"name": "number", "type": "number", "constraints": {"enum": ["0.5", "1.5"]}},
                {"name": "n", "missingValues": [""], "constraints": {"minimum": 0, "maximum": 9}},
                {"name": "m", "recode": {"9+": "9"}, "constraints": {"minimum": 0, "maximum": 9}},
            ]
        }
    )
    for attribute in (DOMAIN["age"], DOMAIN["income"], *unsaid):
        assert attribute.name in why_no_csv(rp.Domain((attribute,)))
        with pytest.raises(DomainError):
            rp.Domain((attribute,)).text("c.csv")
    assert "too many" in why_no_csv(rp.Domain.from_sizes({"a": 10**6, "b": 10**6}))


def test_a_plan_becomes_its_inputs():
    scenario = Scenario(DOMAIN, record_noun="people")
    content = scenario.table_plan().text.encode()
    assert scenario_from_bytes(content, "plan.json", scenario) == scenario
    elsewhere = Scenario(rp.Domain.from_sizes({"a": 2}), record_noun="visits")
    assert scenario_from_bytes(content, "plan.json", elsewhere).record_noun == "records"
    with pytest.raises(DomainError, match="not UTF-8"):
        scenario_from_bytes(b"\xff", "plan.json", scenario)


@pytest.mark.parametrize(
    ("filename", "present", "name"),
    [
        ("health_survey.csv.gz", "", "Health survey"),
        ("health.json", "Household survey", "Health"),  # of an example
        ("health.json", "Our own", "Our own"),
        ("my.survey.2020.csv", "", "My.survey.2020"),
        ("datapackage.json", "", ""),
        ("table_schema.json", "", ""),
        ("caf\udce9.csv", "", ""),  # not UTF-8 on the disk
    ],
)
def test_a_survey_is_called_as_its_file_unless_it_has_a_name(filename, present, name):
    assert survey_named_after(filename, present) == name


def test_what_was_loaded_is_described():
    assert describe_loaded(Scenario(DOMAIN), "my.csv") == (
        "Loaded my.csv: 3 attributes, 24 values."
    )


def test_what_a_codebook_holds_and_what_is_left_out():
    grouped = Attribute("x", Categories(("a",)), groups=(("South",),))
    domain = rp.Domain((*DOMAIN.attributes, grouped))
    assert describe_codebook(domain, "Table Schema") == (
        "Table Schema: 4 attributes, 25 values, 1 attribute with levels."
    )
    said = describe_left_out({"weight": "number", **dict.fromkeys("abcde", "string")})
    assert "weight (type number), a (type string), b (type string), c (type string) and 2" in said


def test_what_stays_of_the_workload_is_named():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age", "sex"), 2.0)])
    assert describe_loaded(scenario, "my.csv").endswith("Kept: weight or target of age × sex.")
    changed = scenario.with_basis("age", rp.Prefix()).with_basis("age", rp.Ranges(), [("age",)])
    assert describe_loaded(changed, "my.csv").endswith(
        "Kept: weight or target of age × sex. Kept: the basis of age."
    )


# ---- columns of a data file


def test_columns_without_values_wait_for_them():
    domain = domain_of_columns({"age": (), "yes": ("true", "false")})
    assert [each.values for each in domain] == [TO_COMPLETE, Categories(("true", "false"))]
    assert unfinished(domain) == ["age"]
    assert describe_attributes_from_records(domain) == ""
    # They survive every file that a schema is kept in.
    assert unfinished(rp.Domain.parse(domain.text("c.json"), "c.json")) == ["age"]
    assert unfinished(Scenario.parse(Scenario(domain).text()).domain) == ["age"]


def test_values_from_records_say_so_in_the_label():
    domain = domain_of_columns({"sex": ("F", "M"), "income": ()}, from_records=["sex"])
    assert domain["sex"] == Attribute("sex", Categories(("F", "M")), FOUND_IN_RECORDS)
    assert describe_attributes_from_records(domain) == "sex"
    assert unfinished(domain) == ["income"]
    assert "found in the records" in Scenario(domain).table_plan().text


def test_added_columns_leave_what_has_its_values():
    present = rp.Domain((DOMAIN["sex"], Attribute("region", TO_COMPLETE, "Region")))
    columns = {"sex": ("X",), "region": ("N", "S"), "age": ()}
    domain = domain_of_columns(columns, from_records=["region"], present=present)
    assert domain.names == ("sex", "region", "age")
    assert domain["sex"] == DOMAIN["sex"]
    assert domain["region"].values == Categories(("N", "S"))
    assert is_unfinished(domain["age"])


def test_a_label_that_was_typed_is_kept():
    present = rp.Domain(
        (
            Attribute("region", TO_COMPLETE, "Region"),
            Attribute("yes", TO_COMPLETE, "Consent"),
            Attribute("age", TO_COMPLETE, "Age"),
            Attribute("sex", TO_COMPLETE, f"Sex ({FOUND_IN_RECORDS})"),
        )
    )
    columns = {"region": ("N", "S"), "yes": ("true", "false"), "age": (), "sex": ("F", "M")}
    columns_of_records = ["region", "sex"]
    domain = domain_of_columns(columns, from_records=columns_of_records, present=present)
    assert [each.label for each in domain] == [
        "Region (values found in the records)",
        "Consent",
        "Age",
        "Sex (values found in the records)",
    ]
    assert describe_attributes_from_records(domain) == " and ".join(columns_of_records)


def test_an_unfinished_attribute_changes_no_plan():
    with_one = Scenario(rp.Domain((*DOMAIN.attributes, Attribute("x", TO_COMPLETE))))
    plan = with_one.table_plan()
    closure = plan.closure
    assert all(len(closure.attributes(residual)) <= 2 for residual in range(len(closure)))
    assert len(plan.closure) == len(Scenario(DOMAIN).table_plan().closure)
