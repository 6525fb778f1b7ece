"""Positions of columns in a DDI codebook, and codebooks that leave them unclear."""

import pytest

from rpexplore.domain.record_layout import Place, RecordLayout, layout_of_ddi
from rpexplore.errors import DomainError
from tests.support.ipums import WIDTH, ddi

FIRST = '<location StartPos="1" EndPos="4" width="4" RecSegNo="1"/>'


def layout(*edit, structure="rectangular"):
    return layout_of_ddi(ddi(structure, edit=edit or ("", "")).encode(), "usa.xml")


def test_positions_and_decimals_are_those_of_the_codebook():
    found = layout()
    assert found.width == WIDTH
    assert found.by_name["YEAR"] == Place(0, 4)
    assert found.by_name["PERWT"].text == "13–22 (2 decimals)"
    assert found.by_name["SEX"].text == "25"


@pytest.mark.parametrize(
    "location", ['<location StartPos="1" width="4"/>', '<location StartPos="1" EndPos=" 4"/>']
)
def test_one_end_is_enough(location):
    assert layout(FIRST, location).by_name["YEAR"] == Place(0, 4)


def test_a_codebook_without_positions_has_no_layout(tmp_path):
    text = ddi().replace("StartPos", "Pos")
    assert layout_of_ddi(text.encode(), "usa.xml") is None
    (tmp_path / "usa.xml").write_text(text)
    with pytest.raises(DomainError, match="states no positions"):
        RecordLayout.load(tmp_path / "usa.xml")
    (tmp_path / "usa.csv").write_text("attribute,value\na,1\n")
    with pytest.raises(DomainError, match="is no DDI codebook"):
        RecordLayout.load(tmp_path / "usa.csv")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('width="4"', 'width="5"', "width 5 is not that of the positions 1 to 4"),
        ('StartPos="1"', 'StartPos="0"', "StartPos must be a whole number from 1 "),
        ('StartPos="1"', 'StartPos="5"', "EndPos must be a whole number from 5 "),
        ('EndPos="4"', 'EndPos="4e9"', "EndPos must be"),
        ('EndPos="4"', 'EndPos="99999999"', "EndPos must be"),
        ('EndPos="4" width="4"', "", "needs EndPos or width"),
        ('dcml="2"', 'dcml="-2"', "dcml must be a whole number from 0 to 30"),
        (FIRST, FIRST * 2, "two locations"),
        ('EndPos="4" width="4" RecSegNo="1"', 'EndPos="4" RecSegNo="2"', "2 lines of a record"),
        ('EndPos="4"', 'EndPos="4" fileid="F1"', None),
        ('type="rectangular"', 'type="hierarchical"', "the structure hierarchical"),
        ('<fileStrc type="rectangular"/>', "", None),
    ],
)
def test_positions_that_contradict_each_other_are_refused(before, after, said):
    if said is None:
        assert layout(before, after).width == WIDTH
        return
    with pytest.raises(DomainError, match=said):
        layout(before, after)


def test_types_of_records_with_other_columns_are_refused_unless_the_file_is_rectangular():
    differing = ddi().replace('rectype="P"', 'rectype="H"', 1)
    assert layout_of_ddi(differing.encode(), "usa.xml").width == WIDTH
    unstated = differing.replace('<fileStrc type="rectangular"/>', "")
    with pytest.raises(DomainError, match="2 types of records"):
        layout_of_ddi(unstated.encode(), "usa.xml")
