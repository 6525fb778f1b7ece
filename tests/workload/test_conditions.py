"""Conditions as text, against the same conditions put together by Python."""

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import (
    MAX_DEPTH,
    MAX_LENGTH,
    attributes_of_condition,
    cells_of_condition,
    text_of_name,
    tokens_of,
)
from tests.support.processor_time import at_most
from tests.support.strategies import names

DOMAIN = Domain(
    (
        Attribute("age", Integers(0, 19, 5)),
        Attribute("hours worked", Bins((0, 0.5, 10, 40))),
        Attribute("sex", Categories(("1", "2"), ("male", 'so called "female"'))),
        Attribute("in", Categories(("3", "1", "2"))),
    )
)
# Of each value the numbers that conditions may compare it with: where it begins and ends.
LOWS = [[0, 5, 10, 15], [0, 0.5, 10], [1, 2], [3, 1, 2]]
HIGHS = [[4, 9, 14, 19], None, [1, 2], [3, 1, 2]]
NAMES = [["age", "`age`"], ["`hours worked`"], ["sex"], ["`in`"]]
TEXTS = [
    ["0 to 4", "5 to 9", "10 to 14", "15 to 19"],
    ["0 to under 0.5", "0.5 to under 10", "10 to 40"],
    ["male", 'so called "female"'],
    ["3", "1", "2"],
]
SPELLINGS = {
    "<": ["<"], "<=": ["<=", "≤"], ">": [">"], ">=": [">=", "≥"], "==": ["==", "="],
    "!=": ["!=", "<>", "≠"],
}  # fmt: skip
PYTHON = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def spelt(draw, sign):
    blank = draw(st.sampled_from(["", " ", "\n  "]))
    return blank + draw(st.sampled_from(SPELLINGS[sign])) + blank


def quoted(draw, text):
    marks = ['"{}"', "'{}'"] if '"' not in text else ["'{}'", "“{}”", "„{}“", "‘{}’"]
    return draw(st.sampled_from(marks)).format(text)


@st.composite
def comparisons(draw):
    """(text, what it says of the places of a cell's values)."""
    axis = draw(st.integers(0, 3))
    name, size = draw(st.sampled_from(NAMES[axis])), len(LOWS[axis])
    kind = draw(st.sampled_from(["ordered", "chain", "equal", "in"]))
    if kind in ("ordered", "chain"):
        strict = draw(st.booleans()) or HIGHS[axis] is None
        compare = draw(st.sampled_from(["<", ">="] if strict else ["<=", ">"]))
        value = draw(st.sampled_from((LOWS if strict else HIGHS)[axis]))

        def holds(cell):
            return PYTHON[compare](LOWS[axis][cell[axis]], value)

        if kind == "ordered":
            if draw(st.booleans()):
                return f"{name}{spelt(draw, compare)}{value}", holds
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[compare]
            return f"{value}{spelt(draw, mirrored)}{name}", holds
        low = draw(st.sampled_from(LOWS[axis]))

        def between(cell):
            return low <= LOWS[axis][cell[axis]] and holds(cell)

        return f"{low}{spelt(draw, '<=')}{name}{spelt(draw, compare)}{value}", between
    indices = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3))
    texts = [quoted(draw, TEXTS[axis][index]) for index in indices]
    negated = draw(st.booleans())
    if kind == "equal":

        def equals(cell):
            return (cell[axis] == indices[0]) != negated

        return f"{name}{spelt(draw, '!=' if negated else '==')}{texts[0]}", equals

    def among(cell):
        return (cell[axis] in indices) != negated

    word = draw(st.sampled_from(["not in", "! in", "NOT IN"] if negated else ["in", "IN"]))
    start, end = draw(st.sampled_from(["()", "[]"]))
    return f"{name} {word} {start}{', '.join(texts)}{end}", among


@st.composite
def conditions(draw, depth=2):
    """Sums of products, maybe negated and in brackets: what binds more closely is put to test."""
    rows, texts = [], []
    for _ in range(draw(st.integers(1, 3))):
        factors, parts = [], []
        for _ in range(draw(st.integers(1, 3))):
            if depth and draw(st.booleans()):
                text, holds = draw(conditions(depth=depth - 1))
                start, end = draw(st.sampled_from(["()", "[]"]))
                text = f"{start}{text}{end}"
            else:
                text, holds = draw(comparisons())
            negations = draw(st.sampled_from(["", "!", "~ ", "not ", "not not ", "! !"]))
            factors.append((holds, sum(negations.count(sign) for sign in ("!", "~", "not")) % 2))
            parts.append(negations + text)
        rows.append(factors)
        texts.append(draw(st.sampled_from([" & ", "&", " and ", " AND ", " && "])).join(parts))
    text = draw(st.sampled_from([" | ", "|", " or ", "\tOR\n", " || "])).join(texts)

    def whole(cell):
        return any(all(holds(cell) != negated for holds, negated in row) for row in rows)

    return text, whole


CELLS = list(product(*(range(len(lows)) for lows in LOWS)))


@given(conditions())
def test_conditions_count_the_cells_that_python_counts(condition):
    text, holds = condition
    assert cells_of_condition(DOMAIN, text).tolist() == [holds(cell) for cell in CELLS]


@pytest.mark.parametrize("text", ["", "  \n", "total", "Total", "(total)", "age >= 0"])
def test_all_cells(text):
    assert cells_of_condition(DOMAIN, text).tolist() == [True] * len(CELLS)


def test_an_attribute_may_be_called_total():
    domain = Domain.from_sizes({"total": 3})
    assert cells_of_condition(domain, "total == 1").tolist() == [False, True, False]
    assert cells_of_condition(domain, "").all()
    with pytest.raises(WorkloadError, match="must be compared with a value"):
        cells_of_condition(domain, "total")


def test_attributes_of_one_value_do_not_matter():
    domain = Domain.from_sizes({**{f"a{i}": 1 for i in range(100)}, "b": 2})
    assert cells_of_condition(domain, "b == 1 & a7 == 0").tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ag >= 5", "At character 1 of the condition, 'ag': there is no attribute 'ag' .* 'age'?"),
        ("age >= 5 & ages < 3", "At character 12 of the condition, 'ages': there is no attribute"),
        ("hours < 10", "more than one word must stand in backquotes: `hours worked`"),
        ("age >= 7", "At character 8 .* cuts through the value '5 to 9' .* from 5 to 9 .* >= 5 or"),
        ("age in (5, 6)", "At character 9 of the condition, '5': == 5 cuts through"),
        ("`hours worked` < 3", "'0.5 to under 10' .* from 0.5 to under 10 .* < 0.5 or < 10"),
        ("`hours worked` <= 10", "cuts through the value '10 to 40'"),
        ("sex > 'male'", "At character 7 .* with a number, got the text 'male'"),
        ("sex == male", "'male' is none; write a text in quotation marks: \"male\""),
        ("male == sex", "'male' is none; write a text in quotation marks"),
        ("sex in (male)", "At character 9 .* quotation marks"),
        ("sex == age", "got another attribute; compare each"),
        ("1 < 2", "one side of a comparison must be an attribute"),
        ('"age" >= 5', "without quotation marks, or in `backquotes`"),
        ("5 in (5, 10)", "attribute before in"),
        ("age", "must be compared with a value, as in"),
        ("age >= 5 & 10", "At character 12 .* must be compared with an attribute"),
        ("age >= 5 and < 10", "write the attribute again"),
        ("age >= 5 sex == 1", "At character 10 .* must be & or |"),
        ("age >= 5 & & sex == 1", "At character 12 of the condition, '&': there must be an attr"),
        ("age >=", "must not end here"),
        ("age >= 5 |", "At character 10 .* must not end here"),
        ("age >= 10,000", "begin with 0; write thousands without a separator"),
        ("age >= 0,5", "comma can only stand in a list"),
        ("age >= 01", 'a code that begins with 0 as a text in quotation marks: "01"'),
        ("(age >= 5, sex == 1)", "At character 10 .* comma can only stand in a list"),
        ("age not 5", "before a negation"),
        ("age in ()", "At character 9"),
        ("age in (5 10)", "At character 11 .* a comma or a closing bracket"),
        ("(age >= 5 sex == 1)", "At character 11 .* & or | or a closing bracket"),
        ("(age >= 5", r"At character 1 .* must be closed by \)"),
        ("age in [5, 10)", r"At character 8 .* must be closed by \]"),
        ("age >= 5)", "At character 9 .* was not opened"),
        ('sex == "male', 'At character 8 .* the quotation mark " must be closed'),
        ("sex == `male", "the quotation mark ` must be closed"),
        ("adults: age >= 5", "a colon can only stand behind the name of a count"),
        ("age >= 5 ± 20", "'±' must not stand here"),
        ("age@bands == 'old'", "At character 1 .* 'age' has no level 'bands'; it has none"),
        ("age=16..99", "5 of the condition, '16..99': .* its ends: age >= 16 & age <= 99"),
        ("`hours worked` = ..9", "character 18 .* its ends: `hours worked` <= 9"),
        ("age >= 1e9999999999999999999", "one that can be computed with"),
    ],
)
def test_what_is_refused_is_told_with_its_place(text, message):
    with pytest.raises(WorkloadError, match=message):
        cells_of_condition(DOMAIN, text)


HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0].__subclasses__()",
    "age.__class__ == 1",
    "age.real >= 5",
    "getattr(age, 'x') == 1",
    "age(5)",
    "age[0] == 1",
    "sex == f'{age}'",
    "sex == b'male'",
    "lambda: 0",
    "lambda x: x == 1",
    "[age for age in (1, 2)]",
    "(age := 5) == 5",
    "age == 5 if sex == 1 else 0",
    "age == 2 ** 2 ** 2 ** 99",
    "age == 5 + 5",
    "age == *sex",
    "age is 5",
    "age == None",
    "age == 5; import os",
    "import os",
    "exec('1')",
    "yield",
    "await age",
    "age == 5 # all",
    "age == 5 \\",
    "age == 0x10",
    "age == 1_0",
    "age == 5j",
    "age == ...",
    "age == nan",
    "age == ١٥",  # digits, but of another script
    "\x00",
    "age == 5\x00",
    "\ud800",
    "age == 5 \u202e",
    "(" * 1_000 + "age == 5" + ")" * 1_000,
    "[" * 9_000,
    "!" * 19_000 + "total",
    "not " * 4_000 + "total",
    "age == " + "9" * 19_000,
    "age == -" + "9" * 19_000 + "e99999999",
    "age in (" + "1e400000," * 2_000 + "1)",
    "age in (" + "7," * 9_000 + "7)",
    "age >= 5 " * 2_000,
    'sex == "' * 2_000,
    "sex == " + "„" * 19_000,
    "`" * 19_001,
    " " * 19_000 + "?",
    "+" + " " * 19_000,
    "sex == '" + "male" * 4_000 + "'",
    "age == 0 | " * 100_000 + "age == 0",
    "a" * 1_000_000,
    "(" * 1_000_000,
    " " * 1_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:30]))
def test_hostile_texts_are_refused_quickly(text):
    with at_most(2), pytest.raises(WorkloadError):
        cells_of_condition(DOMAIN, text)


def test_long_lists_and_many_parts_take_no_time():
    """The most that the length allows, over the most cells."""
    domain = Domain((Attribute("age", Integers(0, 1023)),))
    with at_most(5):
        assert cells_of_condition(domain, f"age in ({'7, ' * 6_000}7)").sum() == 1
        assert cells_of_condition(domain, "age<9|" * 3_000 + "age<9").sum() == 9


@given(st.text(st.characters() | st.sampled_from("age sex()[]&|!<>=\"'`,15"), max_size=30))
def test_any_text_is_a_condition_or_refused(text):
    message, shape = "", None
    try:
        shape = cells_of_condition(DOMAIN, text).shape
    except WorkloadError as error:
        message = str(error)
    assert message or shape == (len(CELLS),)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1])
def test_the_depth_is_limited(depth):
    for text in ("(" * depth + "age < 5" + ")" * depth, "!" * depth + "age < 5"):
        if depth > MAX_DEPTH:
            with pytest.raises(WorkloadError, match=f"at most {MAX_DEPTH} brackets and negations"):
                cells_of_condition(DOMAIN, text)
        else:
            assert cells_of_condition(DOMAIN, text).any()
    # Side by side they are not within each other.
    many = " & ".join(["(!(age < 5))"] * MAX_DEPTH)
    assert cells_of_condition(DOMAIN, many).sum() == len(CELLS) * 3 // 4


def test_the_length_is_limited():
    text = "age < 5"
    assert cells_of_condition(DOMAIN, text.ljust(MAX_LENGTH)).any()
    with pytest.raises(WorkloadError, match="at most 20,000 characters, got 20,001"):
        cells_of_condition(DOMAIN, text.ljust(MAX_LENGTH + 1))


def test_domains_of_too_many_cells_are_refused():
    with pytest.raises(WorkloadError, match="at most 200,000 cells"):
        cells_of_condition(Domain.from_sizes({"a": 501, "b": 400}), "a == 1")


def test_the_attributes_that_a_condition_names():
    domain = Domain.from_sizes({"b": 2_000, "a": 5, "total": 2, "or": 3})
    named = attributes_of_condition(domain, "a == 1 | !(5 <= b < 7 & `or` in (1)) | a == 2")
    assert named == ("b", "a", "or")
    assert attributes_of_condition(domain, "total == 1") == ("total",)
    assert attributes_of_condition(Domain.from_sizes({"a": 2}), "total") == ()
    with pytest.raises(WorkloadError, match=r"At character 10 .* no attribute 'c'"):
        attributes_of_condition(domain, "a == 1 | c == 1")


@given(names())
def test_every_name_can_stand_in_a_condition(name):
    domain = Domain((Attribute(name, Integers(0, 1)), Attribute(name + "x", Integers(0, 1))))
    result = cells_of_condition(domain, f"{text_of_name(name)}==1")
    assert result.tolist() == np.array([0, 0, 1, 1], dtype=bool).tolist()


def test_backquotes_are_doubled_in_names():
    domain = Domain.from_sizes({"a`b": 2, "a``b": 2})
    assert cells_of_condition(domain, "`a``b` == 1").tolist() == [False, False, True, True]
    assert cells_of_condition(domain, "`a````b` == 1").tolist() == [False, True, False, True]


def test_names_of_one_word_need_no_backquotes():
    assert [*map(text_of_name, ["age", "größe", "_x1", "AND", "a b", "1a", "a`b"])] == [
        "age", "größe", "_x1", "`AND`", "`a b`", "`1a`", "`a``b`",
    ]  # fmt: skip
    assert [token.start for token in tokens_of("  age>=  18")] == [2, 5, 9]


def test_names_and_values_may_be_in_another_unicode_form():
    domain = Domain((Attribute("caf\u00e9", Categories(("\u00e9", "x"))),))
    assert cells_of_condition(domain, "cafe\u0301 = 'e\u0301'").tolist() == [True, False]
