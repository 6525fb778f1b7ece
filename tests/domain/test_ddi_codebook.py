"""Codebooks from DDI-Codebook 2.5, as archives and IPUMS write it."""

import json

import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.data.files.columns import (
    CodebookFile,
    Column,
    ColumnsFile,
    recognise,
    recognise_path,
)
from rpexplore.domain import codebook_formats
from rpexplore.domain.codebook_formats import draft_of_file, variables_of_ddi
from rpexplore.domain.codebook_remarks import remark_on_weights
from rpexplore.domain.domain import unfinished
from rpexplore.errors import DomainError
from rpexplore.scenarios.codebook_grid import domain_from_grid, domain_with_values
from rpexplore.scenarios.codebook_import import domain_of_columns
from tests.support.processor_time import at_most

MISSING = ("Missing",)
ARCHIVE = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook version="2.5" xmlns="ddi:codebook:2_5" xml:lang="en">
  <docDscr><citation><titlStmt><titl>Panel 2026</titl></titlStmt></citation></docDscr>
  <fileDscr ID="F1"><fileTxt><fileName>panel.csv</fileName></fileTxt></fileDscr>
  <dataDscr>
    <varGrp ID="G1" var="V1 V2"><labl>Household</labl></varGrp>
    <var ID="V1" name="tenure" files="F1" intrvl="discrete">
      <labl xml:lang="en"><![CDATA[Tenure of
        the dwelling]]></labl>
      <labl xml:lang="fr">Statut d'occupation</labl>
      <qstn><qstnLit>Do you own it?</qstnLit></qstn>
      <valrng><range min="1" max="2"/></valrng>
      <invalrng><range min="8" max="9"/><item VALUE="-1"/></invalrng>
      <sumStat type="vald">4242</sumStat>
      <catgry><catValu> 1 </catValu><labl>Owned</labl><labl xml:lang="fr">Propriétaire</labl>
        <catStat type="freq">4242</catStat></catgry>
      <catgry><catValu>2</catValu><labl>Rented &amp; free</labl></catgry>
      <catgry><catValu>8</catValu><labl>Refused</labl></catgry>
      <catgry missing="Y"><catValu>99</catValu><labl>Not asked</labl></catgry>
      <catgry missing="Y"><catValu>Sysmiss</catValu></catgry>
      <varFormat type="numeric" schema="other"/>
    </var>
    <var ID="V2" name="region">
      <labl>Region</labl>
      <catgry><catValu>01</catValu><labl/></catgry>
      <catgry><catValu>02</catValu></catgry>
      <varFormat type="character"/>
    </var>
    <var ID="V3" name="weight" intrvl="contin"><varFormat type="numeric"/></var>
    <var ID="V4" name="twice">
      <catgry><catValu>1</catValu><labl>One</labl></catgry>
      <catgry><catValu>1</catValu><labl>Two</labl></catgry>
      <catgry><catValu>2</catValu><labl>Two</labl></catgry>
    </var>
  </dataDscr>
</codeBook>
"""
IPUMS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<?xml-stylesheet type="text/xsl" href="ipums-ddi-xslt.xsl"?>
<ddi:codeBook ID="ddi2-usa_00001.dat-usa.ipums.org" version="2.5" xmlns:ddi="ddi:codebook:2_5">
  <ddi:dataDscr>
    <ddi:var ID="MONTH" dcml="0" files="ExtractData" intrvl="discrete" name="MONTH" rectype="H">
      <ddi:location EndPos="12" StartPos="11" width="2"/>
      <ddi:labl>Month</ddi:labl>
      <ddi:txt><![CDATA[MONTH is <b>the month</b> of the interview.]]></ddi:txt>
      <ddi:catgry><ddi:catValu>00</ddi:catValu><ddi:labl>Année entière</ddi:labl></ddi:catgry>
      <ddi:catgry><ddi:catValu>01</ddi:catValu><ddi:labl>January</ddi:labl></ddi:catgry>
      <ddi:catgry><ddi:catValu>-2</ddi:catValu><ddi:labl>Before</ddi:labl></ddi:catgry>
      <ddi:varFormat schema="other" type="numeric"/>
    </ddi:var>
    <ddi:var ID="YEAR" intrvl="contin" name="YEAR">
      <ddi:codInstr><![CDATA[YEAR is a 4-digit numeric value.]]></ddi:codInstr>
      <ddi:varFormat schema="other" type="numeric"/>
    </ddi:var>
  </ddi:dataDscr>
</ddi:codeBook>
"""


def test_categories_and_missing_values_of_an_archive(tmp_path):
    path = tmp_path / "panel.xml"
    path.write_text(ARCHIVE, "utf-8")
    found = recognise_path(path)
    assert isinstance(found, CodebookFile)
    assert found.kind == "DDI codebook"
    # 8 lies in a range of missing values; -1 is one by itself, though no category.
    tenure = Categories(
        ("1", "2", "8", "99", "-1"), ("Owned", "Rented & free", "Refused", "Not asked", "-1")
    )
    groups = ((), (), MISSING, MISSING, MISSING)
    assert found.domain == Domain(
        (
            Attribute("tenure", tenure, "Tenure of the dwelling", groups),
            Attribute("region", Categories(("01", "02")), "Region"),  # texts, to the letter
        )
    )
    assert found.without_values == {"weight": "numbers"}
    assert "'twice' lists the value 1 twice, with two labels" in found.remarks[0]
    assert found.others is not None
    assert (found.others.records, found.others.header.columns) == (
        None,
        (Column("weight", "numbers"),),
    )
    assert "4242" not in repr(found)  # counts of records are nothing for a codebook
    assert Domain.load(path) == found.domain


def test_numbers_of_ipums_are_as_records_have_them():
    found = recognise(IPUMS.encode("latin-1"), "usa_00001.xml")
    assert isinstance(found, CodebookFile)
    # In order, whatever the order of the file: cumulative counts go over them.
    month = Categories(("-2", "0", "1"), ("Before", "Année entière", "January"))
    assert found.domain == Domain((Attribute("MONTH", month, "Month"),))
    assert found.without_values == {"YEAR": "numbers"}


def test_a_codebook_inside_of_the_answer_of_an_archive():
    body = ARCHIVE.partition("?>")[2]
    answer = f"<OAI-PMH><GetRecord><metadata>{body}</metadata></GetRecord></OAI-PMH>"
    found = recognise(answer.encode(), "record.xml")
    assert isinstance(found, CodebookFile)
    assert found.domain.names == ("tenure", "region")


GROUPS = """<codeBook><dataDscr><var name="REGION"><labl>Region</labl>
<catgryGrp ID="G1" catgry="C1 C2"><labl>North &gt; Hills</labl></catgryGrp>
<catgryGrp ID="G2" catgry="C3" catGrp="G4"><labl>South</labl></catgryGrp>
<catgryGrp ID="G3" missing="Y" catgry="C9"><labl>No answer</labl></catgryGrp>
<catgryGrp ID="G4" catgry="C4 C5" catGrp="G2"><labl>Coast</labl></catgryGrp>
{more}
<catgry ID="C9"><catValu>99</catValu></catgry><catgry ID="C1"><catValu>11</catValu></catgry>
<catgry ID="C2"><catValu>2</catValu></catgry><catgry ID="C3"><catValu>21</catValu></catgry>
<catgry ID="C4"><catValu>22</catValu></catgry><catgry ID="C5"><catValu>23</catValu></catgry>
<varFormat type="numeric"/></var></dataDscr></codeBook>"""


def test_groups_of_categories_are_those_of_the_attribute():
    found = recognise(GROUPS.replace('catGrp="G2"', "").format(more="").encode(), "a.xml")
    assert isinstance(found, CodebookFile)
    (region,) = found.domain
    north, coast = ("North / Hills",), ("South", "Coast")
    assert dict(zip(region.stored_values(), region.groups, strict=True)) == {
        "2": north, "11": north, "21": ("South",), "22": coast, "23": coast, "99": MISSING
    }  # fmt: skip


def test_a_weight_is_named_with_what_becomes_of_it():
    text = ARCHIVE.replace('name="weight"', 'name="weight" wgt="wgt"')
    found = recognise(text.encode(), "a.xml")
    assert isinstance(found, CodebookFile)
    assert found.remarks[0].startswith(
        "Records are weighted by weight, says the file. Tables count"
    )
    assert "weighted by" not in " ".join(recognise(ARCHIVE.encode(), "a.xml").remarks)


def test_groups_that_overlap_are_left_out_with_a_remark():
    more = '<catgryGrp ID="G5" catgry="C1 C3"><labl>Cold</labl></catgryGrp>'
    found = recognise(GROUPS.format(more=more).encode(), "a.xml")
    assert isinstance(found, CodebookFile)
    assert {*found.domain["REGION"].groups} == {(), MISSING}
    assert found.remarks[0].startswith("Groups that overlap, and so are left out;")


BOMB = """<?xml version="1.0"?><!DOCTYPE codeBook [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><codeBook><labl>&b;</labl></codeBook>"""
OUTSIDE = (
    """<!DOCTYPE codeBook [<!ENTITY a SYSTEM "file:///etc/passwd">]><codeBook>&a;</codeBook>"""
)
PARAMETER = """<!DOCTYPE codeBook [<!ENTITY % a SYSTEM "http://a.test/a"> %a;]><codeBook/>"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "declares entities"),
        (OUTSIDE, "declares entities"),
        (PARAMETER, "declares entities"),
        ("<?xml version='1.0'?><html><body/></html>", r"no DDI-Codebook: it begins with html"),
        ("<?xml version='1.0' encoding='none'?><codeBook/>", "encoding"),
        (ARCHIVE[:900], r"a\.xml is not well-formed XML \(line 17: "),
        ("", r"a\.xml is not well-formed XML"),
        ("<codeBook><dataDscr/></codeBook>", r"a\.xml describes no variables"),
        ("<codeBook><invalrng><item VALUE='1'/></invalrng></codeBook>", "describes no variables"),
    ],
)
def test_hostile_or_other_xml_is_one_error(content, message):
    with pytest.raises(DomainError, match=message):
        recognise(content.encode(), "a.xml")


def test_a_document_type_without_entities_is_passed_over():
    """As DDI 2.0 has one; it is not fetched."""
    content = ARCHIVE.replace(
        "<codeBook", '<!DOCTYPE codeBook SYSTEM "http://a.test/Version2-0.dtd"><codeBook', 1
    )
    found = recognise(content.encode(), "a.xml")
    assert isinstance(found, CodebookFile)
    assert found.domain.names == ("tenure", "region")


def test_many_missing_values_and_deep_elements_take_no_time():
    """Each would take minutes if it were looked through for each of the others."""
    items = "".join(f'<item VALUE="0{value}"/>' for value in range(20_000))
    categories = "".join(f"<catgry><catValu>{n}</catValu></catgry>" for n in range(-1, 20_001))
    deep = "<a>" * 100_000 + "</a>" * 100_000
    number = '<varFormat type="numeric"/>'
    variable = f'<var name="a"><invalrng>{items}</invalrng>{categories}{number}</var>'
    with at_most(10):
        (read,) = variables_of_ddi(f"<codeBook>{deep}{variable}</codeBook>".encode(), "a.xml")
    assert list(read.values) == ["-1", "20000"]
    assert len(read.missing) == 20_000
    ranges = '<range min="1" max="2"/>' * 101
    content = f"<codeBook><var name='a'><invalrng>{ranges}</invalrng></var></codeBook>"
    (read,) = variables_of_ddi(content.encode(), "a.xml")
    assert read.problem == "has more than 100 ranges of missing values"


def test_a_huge_file_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "a.xml"
    path.write_text(ARCHIVE, "utf-8")
    monkeypatch.setattr(codebook_formats, "MOST_BYTES", 5)
    for read in (Domain.load, recognise_path, lambda path: recognise(path.read_bytes(), "a.xml")):
        with pytest.raises(DomainError, match="more than any codebook"):
            read(path)


def test_missing_values_of_a_variable_without_listed_ones_go_with_values_that_are_typed_later():
    text = """<codeBook><dataDscr><var name="age"><varFormat type="numeric"/>
      <invalrng><item VALUE="-9"/><range min="97" max="99"/><range min="1000"/></invalrng>
      <catgry><catValu>-9</catValu><labl>Refused</labl></catgry></var>
      <var name="sex"><catgry><catValu>f</catValu></catgry><catgry><catValu>m</catValu></catgry>
      </var></dataDscr></codeBook>"""
    found = recognise(text.encode(), "a.xml")
    assert isinstance(found, CodebookFile)
    assert "give them as missingValues: age (97, 98, 99, -9)" in " ".join(found.remarks)
    assert found.others is not None
    (column,) = found.others.header.columns
    domain = domain_of_columns({"age": ()}, missing={"age": column.missing})
    assert unfinished(domain) == ["age"]
    pairs = (*((str(number), "not stated") for number in (97, 98, 99)), ("-9", "Refused"))
    expected = Attribute("age", Integers(0, 120, missing=pairs))
    typed, _, refused = domain_from_grid(domain, {0: {"minimum": "0", "maximum": "120"}})
    assert (typed["age"], refused) == (expected, [])
    assert domain_with_values(domain, "age", Integers(0, 120))["age"] == expected
    # The same of the fields of a Table Schema without values.
    fields = [{"name": "age", "type": "number", "missingValues": ["-9"]}]
    schema = recognise(json.dumps({"fields": fields}).encode(), "a.json")
    assert isinstance(schema, ColumnsFile)
    assert schema.header.columns == (Column("age", "numbers", missing=(("-9", ""),)),)


def test_labels_are_in_the_language_that_is_named():
    said = '<labl xml:lang="en-GB">{}</labl><labl xml:lang="de">{}</labl>'
    categories = "".join(
        f"<catgry><catValu>{value}</catValu>{said.format(*labels)}</catgry>"
        for value, labels in {"1": ("Male", "Mann"), "2": ("Female", "Frau")}.items()
    )
    text = f'<codeBook><dataDscr><var name="SEX">{said.format("Sex", "Geschlecht")}{categories}'
    content = f"{text}</var></dataDscr></codeBook>".encode()
    for language, expected in (
        ("", ["Sex", "Male", "Female"]),
        ("de", ["Geschlecht", "Mann", "Frau"]),
        ("EN", ["Sex", "Male", "Female"]),
        ("fr", ["Sex", "Male", "Female"]),  # not there: the first
    ):
        (sex,) = draft_of_file(content, "c.xml", language=language).domain.attributes
        assert [sex.label, *sex.labels()] == expected


def test_a_weight_of_a_codebook_is_a_remark_of_its_own(tmp_path):
    category = "<catgry><catValu>{0}</catValu><labl>{0}</labl></catgry>"
    text = (
        '<codeBook><dataDscr><var name="SEX">' + category.format(1) + category.format(2) + "</var>"
        '<var name="PERWT" wgt="wgt"/></dataDscr></codeBook>'
    )
    (tmp_path / "c.xml").write_text(text)
    assert remark_on_weights(tmp_path / "c.xml").startswith("Records are weighted by PERWT")
    (tmp_path / "c.xml").write_text(text.replace(' wgt="wgt"', ""))
    assert remark_on_weights(tmp_path / "c.xml") == ""
