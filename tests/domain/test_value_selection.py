"""Which values a text names."""

import pytest

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.domain.values import (
    coefficients,
    example_of_question,
    product_query,
    question_from_text,
    selected_values,
)
from rpexplore.errors import DomainError

AGE = rp.Attribute("age", rp.Integers(0, 99))
BANDS = rp.Attribute("band", rp.Integers(10, 47, 10))  # 10 to 19, …, 40 to 47
INCOME = rp.Attribute("income", rp.Bins((-5.5, 0, 500, 1000)))
WHOLE = rp.Attribute("years", rp.Bins((0, 15, 65, 99), are_whole=True))
PLACE = rp.Attribute(
    "place",
    rp.Categories(("1", "2", "3", "a,b", "x..y"), ("Ash", "2..3", "Coast", "A, B", "X")),
    groups=(("North", "Hills"), ("North", "Coast"), ("South", "Coast"), ("South",), ()),
)
BLANKS = rp.Attribute("blanks", rp.Categories(("x", "x ", " y")))


@pytest.mark.parametrize(
    ("attribute", "text", "indices"),
    [
        (AGE, "18..20", (18, 19, 20)),
        (AGE, " 18 .. 20 ", (18, 19, 20)),
        (AGE, "..2", (0, 1, 2)),
        (AGE, "97..", (97, 98, 99)),
        (AGE, "7", (7,)),
        (AGE, "3,1,2..4", (1, 2, 3, 4)),
        (BANDS, "10..29", (0, 1)),
        (BANDS, "10 to 19", (0,)),
        (BANDS, "10 to 19..30 to 39", (0, 1, 2)),
        (BANDS, "40..47", (3,)),
        (INCOME, "0..1000", (1, 2)),
        (INCOME, "-5.5..0", (0,)),
        (INCOME, "0 to under 500", (1,)),
        (AGE, "18-20", (18, 19, 20)),
        (AGE, "18 to 20", (18, 19, 20)),
        (AGE, "98+", (98, 99)),
        (INCOME, "0-500", (1,)),
        (WHOLE, "0..14", (0,)),
        (WHOLE, "0..15", (0,)),
        (WHOLE, "15-64", (1,)),
        (WHOLE, "..14,65+", (0, 2)),
        (WHOLE, "65..99", (2,)),
        (BLANKS, "x ", (1,)),  # not x
        (BLANKS, " x", (0,)),
        (BLANKS, " y", (2,)),
        (PLACE, "Ash", (0,)),
        (PLACE, "1", (0,)),
        (PLACE, "2", (1,)),
        (PLACE, "2..3", (1,)),  # a label
        (PLACE, "1..3", (0, 1, 2)),
        (PLACE, "Ash..Coast", (0, 1, 2)),
        (PLACE, "a,b", (3,)),
        (PLACE, "1,a,b,2..3", (0, 1, 3)),
        (PLACE, "A, B,Ash", (0, 3)),
        (PLACE, "x..y", (4,)),
        (PLACE, "2..3..x..y", (1, 2, 3, 4)),
        (PLACE, "North", (0, 1)),
        (PLACE, "North > Coast", (1,)),
        (PLACE, "South > Coast,Hills", (0, 2)),
        (PLACE, "Coast", (2,)),  # a value before a group
    ],
)
def test_texts_that_name_values(attribute, text, indices):
    assert selected_values(attribute, text) == indices
    vector = coefficients(attribute, text)
    assert [index for index, x in enumerate(vector) if x] == list(indices)
    assert (len(vector), sum(vector)) == (attribute.size, len(indices))


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (AGE, ""),
        (AGE, ".."),
        (AGE, "20..18"),
        (AGE, "100"),
        (AGE, "18..100"),
        (AGE, "18,,19"),
        (AGE, "nan..3"),
        (BANDS, "12..29"),
        (BANDS, "10..25"),
        (INCOME, "0..400"),
        (PLACE, "East"),
        (PLACE, "North > "),
    ],
)
def test_what_names_no_value_is_refused(attribute, text):
    with pytest.raises(DomainError) as caught:
        selected_values(attribute, text)
    assert repr(attribute.name) in str(caught.value)
    assert repr(text) in str(caught.value)


def test_names_with_commas_that_can_be_read_as_different_values_are_refused():
    attribute = rp.Attribute("race", rp.Categories(("w", "b", "w,b", "o")))
    assert selected_values(attribute, "w,b") == (2,)  # a name of a value goes first
    assert selected_values(attribute, "o,w") == (0, 3)
    assert coefficients(attribute, ["w,b", "o"]) == [0, 0, 1, 1]
    with pytest.raises(
        DomainError, match=r"'w,b,o' can be read as .*: with or without 'w', 'b', 'w,b'; name"
    ):
        selected_values(attribute, "w,b,o")
    # Read as (b, b,b, …), with or without b: many readings of the first parts become one later.
    several = rp.Attribute("r", rp.Categories(("b,b", "b", "a,c,c", "a,a,b", "a", "b,c")))
    with pytest.raises(DomainError, match="with or without 'b,b'"):
        selected_values(several, "b,b,b,b,b")
    with pytest.raises(DomainError, match="have commas of their own; state a combination for each"):
        rp.Domain((attribute,), [{"race": ["w,b", "o"]}])


def test_codes_with_blanks_at_their_ends_are_not_read_as_those_without():
    attribute = rp.Attribute("c", rp.Categories(("F", " F", "F ", "x", " y")))
    assert selected_values(attribute, "x, y") == (3, 4)
    with pytest.raises(DomainError, match=r"' F' and 'F' are different values .* name them one"):
        selected_values(attribute, "x, F")
    domain = rp.Domain((attribute, AGE))
    for text, code in (("c=F age=1", "F"), ("c= F age=1", " F"), ("age=1 c=F ", "F ")):
        assert question_from_text(domain, text) == {"c": code, "age": "1"}
    assert question_from_text(domain, "c=F  age= 1 ") == {"c": "F ", "age": "1"}
    assert question_from_text(domain, "c= x  age=1")["c"] == "x"


def test_a_name_that_two_groups_have_names_neither():
    domain = rp.Attribute("a", rp.Categories(("x", "y")), groups=(("N", "Mid"), ("S", "Mid")))
    with pytest.raises(DomainError, match=r"a group or a range such as x\.\.y"):
        selected_values(domain, "Mid")
    assert selected_values(domain, "S > Mid") == (1,)


def test_the_query_of_several_attributes_counts_the_values_that_any_of_its_texts_names():
    domain = rp.Domain((AGE, BANDS, PLACE))
    query = product_query(domain, {"band": ["10 to 19", "40..47"], "place": ["North", "a,b"]})
    assert query == {"band": [1.0, 0.0, 0.0, 1.0], "place": [1.0, 1.0, 0.0, 1.0, 0.0]}
    assert product_query(domain, {"age": 7})["age"].index(1.0) == 7
    with pytest.raises(DomainError, match="at least one, got none"):
        product_query(domain, {"age": []})
    with pytest.raises(DomainError, match="no attribute 'sex'"):
        product_query(domain, {"sex": "F"})


STAGES = ("young",) * 18 + ("grown-up",) * 47 + ("old",) * 35 + ("not stated",)
STAGE = rp.Attribute(
    "age", rp.Integers(0, 99, missing=(("-9", "not stated"),)), levels=(Level("stage", STAGES),)
)
SIZE = rp.Attribute(
    "rooms", rp.Categories(("1", "2", "3")), levels=(Level("size", ("2", "1", "1")),)
)


@pytest.mark.parametrize(
    ("attribute", "level", "text", "indices"),
    [
        (STAGE, "stage", "young,old", (0, 2)),
        (STAGE, "stage", "18..64", (1,)),
        (STAGE, "stage", "..64", (0, 1)),
        (STAGE, "stage", "65+", (2,)),
        (STAGE, "stage", "0-17, 65..99", (0, 2)),
        (SIZE, "size", "1,2", (0, 1)),  # the groups of these names
        (SIZE, "size", "2,3", (1,)),  # there is no group 3: values
    ],
)
def test_groups_of_a_level_are_named_by_the_values_that_they_hold(attribute, level, text, indices):
    assert selected_values(attribute.at_level(attribute.level(level)), text) == indices


def test_values_that_divide_the_groups_of_a_level_are_refused_with_the_attribute():
    at_level = STAGE.at_level(STAGE.level("stage"))
    with pytest.raises(DomainError, match=r"'18\.\.70' divides .* 'old' .*: age=18\.\.70\.$"):
        selected_values(at_level, "18..70")
    with pytest.raises(DomainError, match="its values are 'young', 'grown-up', 'old'"):
        selected_values(at_level, "middle")


@pytest.mark.parametrize("text", ["1..", "..", "1..not stated", "not stated.."])
def test_missing_values_of_numbers_are_in_no_range(text):
    age = rp.Attribute("age", rp.Integers(0, 3, missing=(("-9", "not stated"),)))
    assert selected_values(age, "not stated,2") == (2, 4)
    if text == "1..":
        assert selected_values(age, text) == (1, 2, 3)
    else:
        with pytest.raises(DomainError):
            selected_values(age, text)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ([("age", "sex")], "age=0 sex=f"),
        ([("age",), ("income", "sex")], "income=mean sex=f"),
        ([("income", "w", "sex")], "income=mean w=sum sex=f"),
        ([("w", "sex")], "sex=f"),
        ([("income",)], "income=mean"),
    ],
)
def test_an_example_of_a_question_is_one_that_tables_answer(tables, text):
    amounts = [rp.Attribute("income", rp.Amounts(0, 9))]
    amounts += [rp.Attribute("w", rp.Amounts(0, 4, are_weights=True))]
    domain = rp.Domain((*amounts, AGE, rp.Attribute("sex", rp.Categories(("f", "m")))))
    assert example_of_question(domain, tables) == text
    assert question_from_text(domain, text)
