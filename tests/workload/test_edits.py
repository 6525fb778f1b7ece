"""Changes to a list of queries, against the answers on random counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Integers
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text
from rpexplore.workload.query_edits import (
    about_attributes,
    chosen_domain,
    differences_from_codebook,
    domain_of_conditions,
    domain_of_text,
    example_text,
    with_queries,
)
from rpexplore.workload.query_files import marginal_queries
from rpexplore.workload.query_list import MAX_QUERIES, QueryList
from rpexplore.workload.targets import MARGIN, Target

SIZES = {"age": 10, "sex": 2, "region": 3}
CODEBOOK = rp.Domain.from_sizes(SIZES)
TEXT = "everybody: total ± 50\nold: age >= 8 @ 3\nold women: age >= 8 & sex = 1 @ 4"
SEVEN = Target(7, MARGIN)


def domain_of(*names: str) -> rp.Domain:
    return rp.Domain.from_sizes({name: SIZES[name] for name in names})


def stated(*names: str, text: str = TEXT) -> StatedQueries:
    return stated_from_text(domain_of(*(names or ("age", "sex"))), text)


# ---- more queries


def test_further_queries_stand_behind_with_their_target():
    result = with_queries(
        stated(), StatedQueries.of(marginal_queries(domain_of("age", "sex"), 1), SEVEN)
    )
    # Of the total, 10 ages and 2 sexes the total is there already.
    assert len(result) == 3 + 12
    assert result.queries.names[:4] == ("everybody", "old", "old women", "age 0")
    assert result.conditions == (*stated().conditions, *[None] * 12)
    assert result.targets == (*stated().targets, *[SEVEN] * 12)
    rows = result.queries.coefficients
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_first_queries_need_no_list():
    result = with_queries(None, StatedQueries.of(marginal_queries(domain_of("sex"), 1), SEVEN))
    assert result.queries.names == ("total", "sex 0", "sex 1")
    assert set(result.targets) == {SEVEN}


def test_a_taken_name_gets_a_number():
    listed = stated(text="age 1: age < 5 @ 3\nage 1 (2): age < 6 @ 3")
    result = with_queries(
        listed, StatedQueries.of(marginal_queries(domain_of("age", "sex"), 1), SEVEN)
    )
    assert result.queries.names.count("age 1 (3)") == 1
    assert result.queries.coefficients[result.queries.names.index("age 1 (3)")].sum() == 2


def test_queries_about_other_attributes_are_added_with_those():
    preset = StatedQueries.of(marginal_queries(domain_of("sex", "region"), 1, 2.0))
    result = with_queries(stated(), preset)
    assert result.queries.domain == domain_of("age", "sex", "region")
    assert result.queries.names[3:] == ("sex 0", "sex 1", "region 0", "region 1", "region 2")
    assert result.targets == (*stated().targets, *[Target(2.0)] * 5)
    assert result.conditions[:3] == stated().conditions
    other = StatedQueries.of(marginal_queries(rp.Domain.from_sizes({"sex": 3}), 1))
    with pytest.raises(WorkloadError, match="'sex' has other values in the list than in these"):
        with_queries(stated(), other)


def test_nothing_new_is_refused():
    queries = StatedQueries.of(marginal_queries(domain_of("age", "sex"), 2))
    with pytest.raises(WorkloadError, match="has all of these counts"):
        with_queries(queries, queries)


def test_too_many_are_refused():
    domain = rp.Domain.from_sizes({"x": 2})
    rows = np.column_stack([np.arange(MAX_QUERIES) + 2.0, np.ones(MAX_QUERIES)])
    names = tuple(f"q{index}" for index in range(MAX_QUERIES))
    full = StatedQueries.of(QueryList(domain, rows, names, np.ones(MAX_QUERIES)))
    with pytest.raises(WorkloadError, match=r"at most 10,000 own counts, got 10,003"):
        with_queries(full, StatedQueries.of(marginal_queries(domain, 1), SEVEN))


# ---- about other attributes


def answers(result: StatedQueries, counts: np.ndarray) -> np.ndarray:
    """What the queries give on counts over age × sex × region."""
    others = tuple(
        axis for axis, name in enumerate(SIZES) if name not in result.queries.domain.names
    )
    table = np.transpose(
        counts.sum(axis=others, keepdims=True),
        [
            *(list(SIZES).index(name) for name in result.queries.domain.names),
            *others,
        ],
    )
    return result.queries.coefficients @ table.ravel()


@given(st.permutations(["age", "sex", "region"]), st.integers(0, 2**32 - 1), st.booleans())
def test_queries_about_other_attributes_give_the_same_answers(names, seed, with_region):
    counts = np.random.default_rng(seed).integers(0, 100, (10, 2, 3))
    before = stated("sex", "age", "region") if with_region else stated("age", "sex")
    after = about_attributes(before, domain_of(*names))
    less = about_attributes(after, domain_of(*(name for name in names if name != "region")))
    for result in (after, less):
        np.testing.assert_array_equal(answers(result, counts), answers(before, counts))
        assert result.queries.names == before.queries.names
        assert result.targets == before.targets
        assert result.conditions == before.conditions
    assert after.queries.domain == domain_of(*names)


def test_an_attribute_that_is_asked_about_cannot_be_left_out():
    with pytest.raises(WorkloadError, match="'old women' is about the attribute 'sex'"):
        about_attributes(stated(), domain_of("age"))


def test_a_condition_that_names_what_is_left_out_is_made_anew():
    listed = stated(text="all of them: age >= 8 & sex in (0, 1) @ 3")
    result = about_attributes(listed, domain_of("age"))
    assert result.conditions == (None,)
    assert result.condition(0) == "age >= 8"


def test_coefficients_cannot_be_of_too_many_cells():
    wide = rp.Domain.from_sizes({"age": 10, "sex": 2, "area": 10_001})
    by_coefficients = StatedQueries.of(rp.QueryList(domain_of("age"), [range(10)], ("years",), [5]))
    with pytest.raises(WorkloadError, match=r"with coefficients .* at most 200,000 cells"):
        about_attributes(by_coefficients, wide)


# ---- what a text is about


def test_a_text_is_about_what_it_names_and_what_was_chosen():
    assert domain_of_text(CODEBOOK, "region = 1\nage < 3 @ 5", None).names == ("age", "region")
    assert domain_of_text(CODEBOOK, "age < 3", domain_of("sex")).names == ("age", "sex")


def test_lines_with_mistakes_name_what_they_can():
    text = "age < 3 & income = low\nsex = 1 @\n: sex = 1\nsex ; 1"
    assert domain_of_text(CODEBOOK, text, domain_of("region")).names == ("age", "region")


def test_a_list_about_attributes_of_its_own_stays_about_them():
    own = rp.Domain.from_sizes({"age": 99})
    assert domain_of_text(CODEBOOK, "age < 3 & sex = 1", own) is own


def test_a_text_about_nothing_is_refused():
    with pytest.raises(WorkloadError, match="None of the lines names an attribute"):
        domain_of_text(CODEBOOK, "", None)


def test_a_total_alone_is_counted_by_the_attribute_with_the_fewest_values():
    assert domain_of_text(CODEBOOK, "all: total ± 5", None).names == ("sex",)
    assert domain_of_conditions(CODEBOOK, ["total"]).names == ("sex",)


# ---- the codebook


@pytest.mark.parametrize(
    ("attribute", "refusal"),
    [
        (Attribute("sex", Integers(0, 1)), []),
        (Attribute("sex", Integers(0, 1), "another title"), []),
        (Attribute("height", Integers(0, 9)), ["The codebook has no attribute 'height'."]),
        (Attribute("sex", Integers(0, 9)), ["In the codebook 'sex' no longer has '2', '3', '4', "
                                            "'5' and 4 more."]),
        (Attribute("age", Integers(0, 8)), ["In the codebook 'age' has values that are new: '9'."]),
        (
            Attribute("sex", Categories(("f", "m"), ("0", "1"))),
            ["In the codebook the values of 'sex' are described otherwise."],
        ),
    ],
)  # fmt: skip
def test_the_codebook_is_compared(attribute, refusal):
    domain = rp.Domain((attribute,))
    assert differences_from_codebook(domain, CODEBOOK) == refusal


def test_missing_attributes_are_named_together():
    domain = rp.Domain.from_sizes({"a": 2, "b": 2, "sex": 2})
    assert differences_from_codebook(domain, CODEBOOK) == [
        "The codebook has no attribute 'a', 'b'."
    ]


@pytest.mark.parametrize("sizes", [{"age": 10, "sex": 2}, {"sex": 2, "total": 3}, {"one": 1}])
def test_the_example_can_be_typed(sizes):
    domain = rp.Domain.from_sizes(sizes)
    result = stated_from_text(domain, example_text(domain))
    assert len(result) == (1 if sizes == {"one": 1} else 2)
    assert result.queries.coefficients[0].all()
    assert result.queries.coefficients[-1].sum() == domain.sizes[1:].prod()


# ---- the attributes that queries can be about


WIDE = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 12, "id": 5_000, "yes": 1})


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ([], WorkloadError, "at least one attribute"),
        (["sex", "sex"], DomainError, "named twice"),
        (["ages"], DomainError, "no attribute 'ages'"),
    ],
)
def test_what_cannot_be_chosen(names, error, message):
    with pytest.raises(error, match=message):
        chosen_domain(WIDE, names)


def test_the_domain_of_conditions():
    domain = domain_of_conditions(WIDE, ["region == 3 | total", "", "sex = 1 & region < 5"])
    assert domain == rp.Domain((WIDE["sex"], WIDE["region"]))
    with pytest.raises(WorkloadError, match=r"At character 1 .* no attribute 'ages'"):
        domain_of_conditions(WIDE, ["ages < 5"])
