"""The bases on offer, and what tables count, in sentences."""

import re

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Bins, Integers
from rpexplore.errors import WorkloadError
from rpexplore.scenarios import bases as bases
from rpexplore.workload.bases import (
    BASES,
    CustomBasis,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Windows,
)
from rpexplore.workload.table_text import query_matrix

AGE = Attribute("age", Integers(0, 99))
SEX = Attribute("sex", Categories(("F", "M"), ("Female", "Male")))
REGION = Attribute(
    "region", Categories(("a", "b", "c", "d")), groups=(("N",), ("N",), ("S",), ("S",))
)
INCOME = Attribute("income", Bins((0, 1, 5, 10)))
DOMAIN = rp.Domain((AGE, SEX, REGION, INCOME))


@pytest.mark.parametrize("attribute", DOMAIN.attributes, ids=DOMAIN.names)
@pytest.mark.parametrize("kind", BASES)
def test_bases_on_offer_can_be_chosen_and_no_others_are_refused(kind, attribute):
    basis = BASES[kind].default(attribute)
    if basis is None or BASES[kind].unavailable_reason(attribute):
        return
    basis.check(attribute)
    assert basis.kind == kind
    labels = query_matrix(basis, attribute).labels()
    text = bases.describe_queries(basis, attribute)
    examples = re.findall("“(.*?)”", text)
    assert 1 <= len(examples) <= 3
    assert set(examples) <= set(labels)
    assert len(set(examples)) == len(examples)
    assert f"{len(labels):,} queries" in text


@pytest.mark.parametrize(
    ("kind", "size", "reason"),
    [
        ("prefix", 1, "at least 2 values"),
        ("hierarchy", 2, "at least 3 values"),
        ("windows", 2, "at least 3 values"),
        ("ranges", 4097, "at most 4,096 values"),
        ("custom", 1001, "at most 1,000 values"),
        ("identity", 10**6, ""),
        ("hierarchy", 3, ""),
    ],
)
def test_why_not(kind, size, reason):
    assert reason in (given := BASES[kind].unavailable_reason(Attribute("x", Integers(1, size))))
    assert bool(given) == bool(reason)


def test_refusals_are_one_sentence():
    assert bases.unavailable_bases(AGE) == ""
    assert bases.unavailable_bases(SEX) == (
        "Not for these values: moving sums, hierarchy (at least 3 values needed)."
    )


def test_ranges_are_the_rows_they_are_said_to_be():
    text = bases.describe_queries(Ranges(), AGE)
    assert text.endswith("queries, such as “25 to 50”, “0 to 33” and “50 to 99”.")


def test_widths_are_typed_and_shown():
    assert Hierarchy.from_parameter(" 10, 5 ") == Hierarchy((5, 10))
    assert Hierarchy((5, 10)).parameter_text() == "5,10"
    assert Hierarchy.from_parameter("") == Hierarchy()
    with pytest.raises(WorkloadError, match=r"separated by commas, got '2\.5'"):
        Hierarchy.from_parameter("5 2.5")


@pytest.mark.parametrize(
    "attribute",
    [*DOMAIN.attributes, Attribute("odd", Categories(("all", "1", "x,y", '"')))],
    ids=lambda attribute: attribute.name,
)
def test_the_template_can_be_used_as_it_is(attribute):
    text = bases.template_csv(attribute)
    own = rp.CustomBasis.read(b"\xef\xbb\xbf" + text.encode(), "q.csv", attribute)
    n = attribute.size
    assert np.array_equal(own.matrix, np.vstack([np.ones(n), np.eye(n)]))
    assert own.name == "q"


def test_what_a_table_answers():
    own = CustomBasis([[1, 1, 1], [0, 1, 0], [0, 0, 1]], name="poor")
    workload = rp.Workload.all_up_to(DOMAIN, 3).with_bases({"age": Prefix(), "region": Hierarchy()})
    workload = workload.with_bases({"income": Ranges()}).with_bases(
        {"income": own}, tables=[("income", "sex")]
    )
    workload = workload.with_bases({"income": Windows(2)}, tables=[("income",)])
    workload = workload.with_bases({"age": Hierarchy((5, 10))}, tables=[("age",)])

    def text(*table):
        return bases.describe_table(workload, workload.position(table), "people")

    assert text() == "people in all"
    assert text("sex") == "people by sex"
    assert text("age", "region") == "people with age ≤ a, by region (with its groups)"
    assert text("age", "income", "sex") == "people with age ≤ a and income from b to c, by sex"
    assert text("sex", "income") == "people by sex and own matrix “poor” on income"
    assert text("income") == "people with income in the 2 values up to a"
    assert text("age") == "people by age (single values and groups of 5 and 10)"
    assert bases.example_table(workload, "income", own) == workload.position(("sex", "income"))
    assert bases.example_table(workload, "income", Identity()) is None
    categories = rp.Workload.of(DOMAIN, [("sex",)]).with_bases({"sex": Prefix()})
    assert bases.describe_table(categories, 0, "people") == "people with sex up to a"


def test_categories_say_which_order_counts():
    assert bases.describe_order(Prefix(), AGE) == ""
    assert bases.describe_order(Hierarchy(), REGION) == ""
    text = "Values count in the order of the codebook: a, b, c, d."
    assert bases.describe_order(Hierarchy((2,)), REGION) == text
