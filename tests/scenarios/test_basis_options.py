"""How attributes are asked, in words."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.errors import WorkloadError
from rpexplore.scenarios import basis_options as basis_options
from rpexplore.workload.bases import CustomBasis, Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.workload.query_matrix import query_matrix

AGE = Attribute("age", Integers(0, 99))
SEX = Attribute("sex", Categories(("F", "M"), ("Female", "Male")))
REGION = Attribute(
    "region", Categories(("a", "b", "c", "d")), groups=(("N",), ("N",), ("S",), ("S",))
)
INCOME = Attribute("income", Bins((0, 1, 5, 10)))
DOMAIN = rp.Domain((AGE, SEX, REGION, INCOME))


@pytest.mark.parametrize("attribute", DOMAIN.attributes, ids=DOMAIN.names)
@pytest.mark.parametrize("way", basis_options.WAYS)
def test_what_is_offered_can_be_asked_and_nothing_else_is_refused(way, attribute):
    basis = basis_options.first_basis(way, attribute)
    if basis is None or basis_options.why_not(way, attribute):
        return
    basis.check(attribute)
    assert basis.kind == way
    labels = query_matrix(basis, attribute).labels()
    told = basis_options.examples(basis, attribute)
    assert 1 <= len(told) <= 3
    assert set(told) <= set(labels)
    assert len(set(told)) == len(told)
    assert f"{len(labels):,} questions" in basis_options.questions_in_words(basis, attribute)


@pytest.mark.parametrize(
    ("way", "size", "reason"),
    [
        ("prefix", 1, "at least 2 values"),
        ("hierarchy", 2, "at least 3 values"),
        ("windows", 2, "at least 3 values"),
        ("ranges", 4001, "at most 4,000 values"),
        ("custom", 1001, "at most 1,000 values"),
        ("identity", 10**6, ""),
        ("hierarchy", 3, ""),
    ],
)
def test_why_not(way, size, reason):
    assert reason in (found := basis_options.why_not(way, Attribute("x", Integers(1, size))))
    assert bool(found) == bool(reason)


def test_refusals_are_one_sentence():
    assert basis_options.refusals_in_words(AGE) == ""
    assert basis_options.refusals_in_words(SEX) == (
        "Not for these values: rolling sums of … values, groups and single values (at least 3 "
        "values needed)."
    )


def test_ranges_are_the_rows_they_are_said_to_be():
    assert basis_options.examples(Ranges(), AGE) == ["25 to 50", "0 to 33", "50 to 99"]


def test_widths_are_typed_and_shown():
    assert basis_options.hierarchy_of_text(" 10, 5 ") == Hierarchy((5, 10))
    assert basis_options.text_of_hierarchy(Hierarchy((5, 10))) == "5, 10"
    assert basis_options.hierarchy_of_text("") == Hierarchy()
    with pytest.raises(WorkloadError, match=r"separated by commas, got '2\.5'"):
        basis_options.hierarchy_of_text("5 2.5")


@pytest.mark.parametrize(
    "attribute",
    [*DOMAIN.attributes, Attribute("odd", Categories(("all", "1", "x,y", '"')))],
    ids=lambda attribute: attribute.name,
)
def test_the_template_can_be_used_as_it_is(attribute):
    text = basis_options.template_csv(attribute)
    own = basis_options.custom_basis_of_file("q.csv", b"\xef\xbb\xbf" + text.encode(), attribute)
    n = attribute.size
    assert np.array_equal(own.matrix, np.vstack([np.ones(n), np.eye(n)]))
    assert own.name == "q"


def test_what_a_table_answers():
    own = CustomBasis([[1, 1, 1], [0, 1, 0], [0, 0, 1]], name="poor")
    asked = rp.Workload.all_up_to(DOMAIN, 3).with_bases({"age": Prefix(), "region": Hierarchy()})
    asked = asked.with_bases({"income": Ranges()}).with_bases(
        {"income": own}, tables=[("income", "sex")]
    )
    asked = asked.with_bases({"income": Windows(2)}, tables=[("income",)])
    asked = asked.with_bases({"age": Hierarchy((5, 10))}, tables=[("age",)])

    def told(*table):
        return basis_options.answers_in_words(asked, asked.position(table), "people")

    assert told() == "people in all"
    assert told("sex") == "people by sex"
    assert told("age", "region") == "people with age ≤ a, by region (with its groups)"
    assert told("age", "income", "sex") == "people with age ≤ a and income from b to c, by sex"
    assert told("sex", "income") == "people by sex and own questions “poor” on income"
    assert told("income") == "people with income in the 2 values up to a"
    assert told("age") == "people by age (single values and groups of 5 and 10)"
    assert basis_options.example_table(asked, "income", own) == asked.position(("sex", "income"))
    assert basis_options.example_table(asked, "income", Identity()) is None
    categories = rp.Workload.of(DOMAIN, [("sex",)]).with_bases({"sex": Prefix()})
    assert basis_options.answers_in_words(categories, 0, "people") == "people with sex up to a"


def test_categories_say_which_order_counts():
    assert basis_options.order_in_words(Prefix(), AGE) == ""
    assert basis_options.order_in_words(Hierarchy(), REGION) == ""
    words = "Values count in the order of the schema: a, b, c, d."
    assert basis_options.order_in_words(Hierarchy((2,)), REGION) == words
