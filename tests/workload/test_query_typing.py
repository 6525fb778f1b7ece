"""Own counts while they are typed, taken, refused or built."""

import pytest

import rpexplore as rp
from rpexplore.errors import RpexploreError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.workload.query_files import marginal_queries
from rpexplore.workload.query_typing import MOST_LISTED, TypedLines, built_count
from rpexplore.workload.targets import Target

CODEBOOK = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
TWO = rp.Domain.from_sizes({"age": 10, "sex": 2})
STATED = stated_from_text(TWO, "old: age >= 8 ± 20\nwomen: sex = 1 ± 30")
USUAL = Target.parse("±20")


@pytest.fixture
def lines() -> TypedLines:
    return TypedLines()


def test_the_lists_own_lines_are_shown_until_others_are_typed(lines):
    assert lines.shown(None) == ""
    assert lines.shown(STATED) == text_from_stated(STATED)
    lines.type("age > 3", "1")
    assert lines.shown(STATED) == "age > 3"


def test_typed_lines_are_read_over_the_attributes_they_name_and_taken(lines):
    lines.type("old: age >= 8 ± 20\nregion = 3", "1")
    stated = lines.read(CODEBOOK, None, USUAL)
    assert stated is not None
    assert stated.queries.domain.names == ("age", "region")
    assert [target.text for target in stated.targets] == ["±20 at 95 %", "±20 at 95 %"]
    lines.typed = None
    assert lines.shown(stated) == text_from_stated(stated)


def test_refused_lines_are_kept_to_be_mended(lines):
    lines.type("age >= 8\nage >", "1")
    for _ in range(2):
        with pytest.raises(RpexploreError, match="Line 2"):
            lines.read(CODEBOOK, None, USUAL)
        assert lines.shown(None) == "age >= 8\nage >"
    lines.type("age >= 8", "1")
    assert lines.read(CODEBOOK, None, USUAL) is not None


def test_lines_without_a_target_need_one(lines):
    lines.type("age >= 8", "1")
    with pytest.raises(RpexploreError, match="Line 1: The count needs a target"):
        lines.read(CODEBOOK, None, None)


def test_blank_lines_remove_the_list(lines):
    lines.type(" \n", "1")
    assert lines.read(CODEBOOK, STATED, USUAL) is None


def test_a_list_about_attributes_of_its_own_stays_about_them(lines):
    wider = rp.Domain.from_sizes({"age": 12, "sex": 2, "region": 5})
    lines.type("sex = 1", "1")
    assert lines.read(CODEBOOK, STATED, USUAL).queries.domain.names == ("sex",)
    assert lines.read(wider, STATED, USUAL).queries.domain == TWO


def test_an_undo_forgets_what_was_typed_before_it(lines):
    lines.type("age >", "1")
    lines.forget_others("1")
    assert lines.typed == "age >"
    lines.forget_others("2")
    assert lines.shown(STATED) == text_from_stated(STATED)


def test_a_list_that_no_lines_can_hold_has_none(lines):
    long = StatedQueries.of(marginal_queries(rp.Domain.from_sizes({"x": MOST_LISTED}), 1))
    assert len(long) > MOST_LISTED
    assert lines.shown(long) is None


def test_a_built_count_is_about_what_it_names_and_errors_name_it():
    stated = built_count(CODEBOOK, " old ", "age >= 8 by sex", USUAL)
    assert stated.queries.names == ("old, sex = 0", "old, sex = 1")
    assert stated == stated_from_text(TWO, "old: age >= 8 by sex ± 20")
    assert built_count(CODEBOOK, "", "", USUAL).queries.names == ("total",)
    for definition, reason in (("age >", "must not end here"), ("height > 3", "height")):
        with pytest.raises(RpexploreError, match=f"Condition {definition}.*{reason}"):
            built_count(CODEBOOK, "x", definition, USUAL)
    with pytest.raises(RpexploreError, match="needs a target"):
        built_count(CODEBOOK, "x", "age > 3", None)
