"""Codebooks from the dictionaries of SPSS, Stata and SAS files, which pyreadstat wrote."""

import base64
import math
import zlib
from datetime import date

import pandas as pd
import pyreadstat
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.common import installation, statistics_files
from rpexplore.data.files.columns import (
    CodebookFile,
    Column,
    ColumnsFile,
    recognise,
    recognise_path,
)
from rpexplore.domain.codebook_formats import Variable, draft_of, variables_of_statistics_file
from rpexplore.errors import DomainError, MissingExtraError

SECRET = 4242.5
DICTIONARY_ENDS = (999).to_bytes(4, "little") + bytes(4)  # in a file of SPSS
MISSING = ("Missing",)
# Three records of sex, region and age, and the catalog of their formats, both written by ReadStat.
SAS7BDAT = (
    b"c-rlmziZn-6vy95j;*9hut9?dLrj_>Lo0O1H7*otmnbFRxTW&ot?6LWED0nOJSKaF(kcB9I=5S)P`Y%?njveKPMsS1"
    b"BUV-E&elCF><|nMeIFxE@2hw3?xd6S&H@<n>FeR<JF9T=;gtcipZQU7F<)?(z;&6%S?po~=uFXFcGCsRg0jwJ9KYe0"
    b"*VdcfYNOroy>>Yb7{lNC3BQB$ledjTsgjR3hUB}pQ*rplo#yt=i(W!^ZSL64ZO*HX&AH8SxL&RLv|3T5gJx^@i`=mP"
    b"@%ytr>L)=E1VIo4K@bE%{4=~Bu3Hrrb7DtZfE!_PYR2Y@uKIlxdJ)xsJ{OlA4K359E(Nh*Kbwuq3esN+y@~XW&}&F9"
    b"3cZf{b83v%kH_dJyx`k?@pnkQrMihQ#kxOIFJXUzAP9mW67+us5m+}<{OgdJsD2t1$X%)a3T{8H9xMyHBuYK}G0+ED"
    b"ML$pzs^6ks4aJYrkqnDIa}4s4j0Ofeo<xKS$^&Itw0sM)QF#wgItLe`&gxLI@OPW&yH4ACyx;AC?{(Jpx?9`3J7M%E"
    b"-oy1rEqJ!og$JJB9yKr-SDvlhl;)3_Q_rV7Gg*|+Wzo19>L0cP<Tr!-X3+I#Xq?y<(`@WK`#GWCkKl6i_PX;uB)+dy"
    b"&O@S1UD)&Jc)?jx)-8HUe5{x7b11JKZ=rb-{Abr=TI<ovBJVQ|*>lJ?k-dOyV`?Kc5^oGE(T*AImnLjE6ZVu1o??<W"
    b"sq+^vW&Z%XzUEE"
)
SAS7BCAT = (
    b"c-rmUF-yZh6u|M9wxVt=1ng$0u7(_`MaQCPDWoYh9lD8#pr97SLdUv0`7K;^7DWfgehLwsoOIP9wP{RK5J4>eAB5w*"
    b"dv`hB8ge2-ch9FgS9+#*eLg4i59%ztn9kTa$>p?!(mqRck)$?~x3wi(bX|<3HrU56`bMeZI-A8t(RUigI5NS;$9lI`"
    b"?$>qSdY8q(II3Tf7D<KD>!y{rRCU$eKWcXZdD~Q$X{{(#uuP>)72dA1R@f@!M^ataYdsF0m?KA@4*&oF0000000000"
    b"000000001(py~Sc{y6wYCjH}`YE$2v1&!VS0000000000VA?#z&iYQX6n}?bA~gQKY((znB|IDan0FhhPDyq9VD~GW"
    b"mD2siVK5`|8heE0x>K&yygzM2)XTkZS1lS5?eNE3$T%Zj>-c0(hOysj2VwvK006+h^A2vyMW6"
)
RECORDS = pd.DataFrame(
    {
        "sex": [1.0, 2.0, 9.0],
        "region": ["N", "S", "XX"],
        "income": [SECRET, -99.0, -5.0],
        "born": [date(2000, 1, 2), None, date(1980, 1, 1)],
        "scale": [0.0, 10.0, 5.0],
    }
)
LABELS = {
    "sex": {2.0: "Female", 1.0: "Male", 9.0: "Refused"},
    "region": {"N": "North", "S": "South", "XX": "Nowhere"},
    "income": {-99.0: "Refused", -1.0: "None"},
    "scale": {0.0: "not at all", 10.0: "fully"},
}


def sav(folder, records=RECORDS, name="survey.sav", **options):
    path = folder / name
    pyreadstat.write_sav(records, path, **options)
    return path


@pytest.fixture
def survey(tmp_path):
    return sav(
        tmp_path,
        column_labels={"sex": "Sex of\nrespondent"},
        variable_value_labels=LABELS,
        missing_ranges={"sex": [9.0, 8.0], "region": ["XX"], "income": [{"lo": -99, "hi": -1}]},
        variable_format={"scale": "F2.0"},
    )


@pytest.mark.usefixtures("in_this_process")
def test_labels_and_missing_values_of_spss_become_a_codebook(survey):
    found = recognise_path(survey)
    assert isinstance(found, CodebookFile)
    assert found.kind == "SPSS file"
    assert found.domain == Domain(
        (
            Attribute(
                "sex",
                Categories(("1", "2", "8", "9"), ("Male", "Female", "8", "Refused")),
                "Sex of respondent",
                ((), (), MISSING, MISSING),
            ),
            Attribute(
                "region",
                Categories(("N", "S", "XX"), ("North", "South", "Nowhere")),
                groups=((), (), MISSING),
            ),
            Attribute("scale", Categories(("0", "10"), ("not at all", "fully"))),
        )
    )
    assert found.without_values == {"income": "numbers", "born": "dates"}
    assert found.remarks[0].endswith("add those that records can have: scale (0, 10).")
    assert found.others is not None
    assert found.others.records == survey
    # A range that is typed later has the missing values, with their labels.
    between = ((str(number), "") for number in range(-98, -1))
    missing = (("-99", "Refused"), *between, ("-1", "None"))
    assert found.others.header.columns == (
        Column("income", "numbers", missing=missing),
        Column("born", "dates"),
    )
    assert Domain.load(survey) == found.domain
    dropped = recognise(survey.read_bytes(), "anything.bin")
    assert isinstance(dropped, CodebookFile)
    assert dropped.domain == found.domain


def test_no_record_is_read_for_a_codebook(survey, monkeypatch):
    asked = []

    def read_sav(file, **options):
        asked.append(options)
        return pyreadstat_read(file, **options)

    pyreadstat_read = pyreadstat.read_sav
    monkeypatch.setattr(pyreadstat, "read_sav", read_sav)
    said = statistics_files._dictionary(survey, "sav", "survey", DomainError)
    assert [options["metadataonly"] for options in asked] == [True]
    assert str(SECRET) not in repr(said)
    # Whatever the records are: the same codebook.
    head, mark, records = survey.read_bytes().rpartition(DICTIONARY_ENDS)
    assert records
    survey.write_bytes(head + mark + bytes(len(records)))
    assert statistics_files._dictionary(survey, "sav", "survey", DomainError) == said


@pytest.mark.usefixtures("in_this_process")
def test_extended_missing_values_of_stata_are_called_as_there(tmp_path):
    path = tmp_path / "survey.dta"
    records = RECORDS[["sex", "income"]].astype({"sex": object})
    records.loc[2, "sex"] = "a"
    pyreadstat.write_dta(
        records,
        path,
        column_labels={"sex": "Sex"},
        variable_value_labels={"sex": {1: "Male", 2: "Female", "a": "Refused"}},
        missing_user_values={"sex": ["a"]},
    )
    values = Categories(("1", "2", ".a"), ("Male", "Female", "Refused"))
    assert Domain.load(path) == Domain((Attribute("sex", values, "Sex", ((), (), MISSING)),))


@pytest.mark.usefixtures("in_this_process")
def test_files_of_earlier_versions_are_known_by_what_they_hold(tmp_path):
    path = tmp_path / "survey.dta"
    labels = {"sex": {1: "Male", 2: "Female"}}
    sex = Attribute("sex", Categories(("1", "2"), ("Male", "Female")))
    for version in (8, 10, 12):
        pyreadstat.write_dta(RECORDS[["sex"]], path, version=version, variable_value_labels=labels)
        assert Domain.load(path) == Domain((sex,))
    dropped = recognise(path.read_bytes(), "anything.bin")
    assert isinstance(dropped, CodebookFile)
    assert dropped.domain == Domain((sex,))
    pyreadstat.write_por(RECORDS[["sex"]], path := tmp_path / "survey.por")  # without labels
    with pytest.raises(DomainError, match=r"The SPSS file .* has no variable with two labelled"):
        Domain.load(path)
    found = recognise(path.read_bytes(), "anything.bin")
    assert isinstance(found, ColumnsFile)
    assert found.header.columns == (Column("SEX", "numbers"),)


@pytest.mark.usefixtures("in_this_process")
def test_files_without_labels_name_their_columns(tmp_path):
    path = tmp_path / "survey.xpt"
    pyreadstat.write_xport(RECORDS[["sex", "region"]], path, table_name="S")
    found = recognise_path(path)
    assert isinstance(found, ColumnsFile)
    assert (found.kind, found.records) == ("SAS file", path)
    assert found.header.columns == (Column("sex", "numbers"), Column("region", "text"))
    with pytest.raises(DomainError, match="has no variable with two labelled values"):
        Domain.load(path)


def test_labels_that_two_values_share_are_told_apart():
    values = {"1": "Other", "2": " Other ", "3": "", "4": "Rest"}
    (attribute,) = draft_of([Variable("a", values=values)]).domain
    assert attribute.labels() == ["Other (1)", "Other (2)", "3", "Rest"]
    # Where that does not tell them apart either, values are called as they are stored.
    values = {"1": "A", "2": "A", "3": "A (2)"}
    (attribute,) = draft_of([Variable("a", values=values)]).domain
    assert attribute.labels() == ["1", "2", "3"]


def test_what_cannot_be_an_attribute_is_left_out_with_the_reason():
    good = Variable("sex", values={"1": "", "2": ""})
    draft = draft_of([good, good, Variable("a\x01b", values={"1": "", "2": ""})])
    assert draft.domain.names == ("sex",)
    assert "'sex' is there twice" in draft.remarks[0]
    assert "holds a control character" in draft.remarks[0]


@pytest.mark.usefixtures("in_this_process")
def test_values_by_range_blank_or_infinite(tmp_path):
    labels = {"a": {-math.inf: "low", 1.5: "one and a half", 2.0: "two"}, "b": {"": "none"}}
    records = pd.DataFrame({"a": [1.5, 2.0], "b": ["x", "y"]})
    path = sav(
        tmp_path,
        records,
        variable_value_labels=labels,
        missing_ranges={"a": [{"lo": -math.inf, "hi": -1.0}]},
    )
    variables = variables_of_statistics_file(path, "sav", "x")
    assert variables[0].values == {"1.5": "one and a half", "2": "two"}
    assert variables[0].missing == variables[1].values == {}


def test_a_damaged_file_is_one_error_even_where_it_crashes_its_reader(survey):
    content = survey.read_bytes()
    # The first variable becomes a text, with numbers for missing values: pyreadstat 1.3 crashes.
    for damaged in (content[: len(content) // 3], content[:180] + b"\x34" + content[181:]):
        survey.write_bytes(damaged)
        with pytest.raises(DomainError, match="is no file of SPSS, or a damaged one"):
            Domain.load(survey)


def test_without_pyreadstat_the_error_says_how_to_install_it(survey, monkeypatch):
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "rpexplore\[formats\]"'):
        recognise_path(survey)


# ---- catalogs of SAS


def unpacked(path, text):
    path.write_bytes(zlib.decompress(base64.b85decode(text)))
    return path


@pytest.mark.parametrize("catalog", ["people.sas7bcat", "formats.sas7bcat"])
@pytest.mark.usefixtures("in_this_process")
def test_labels_of_sas_are_in_a_catalog_beside_the_file(tmp_path, catalog):
    path = unpacked(tmp_path / "people.sas7bdat", SAS7BDAT)
    with pytest.raises(DomainError, match="no variable"):
        Domain.load(path)
    unpacked(tmp_path / catalog, SAS7BCAT)
    # The file is the one of before, but no longer what it says.
    assert Domain.load(path) == Domain(
        (
            Attribute("sex", Categories(("1", "2"), ("Male", "Fémale"))),
            Attribute("region", Categories(("N", "S"), ("North", "South"))),
        )
    )


@pytest.mark.usefixtures("in_this_process")
def test_a_catalog_that_cannot_be_read_is_named(tmp_path):
    path = unpacked(tmp_path / "people.sas7bdat", SAS7BDAT)
    (tmp_path / "people.sas7bcat").write_bytes(b"no catalog")
    with pytest.raises(DomainError, match=r"The catalog 'people\.sas7bcat' beside .* make it anew"):
        Domain.load(path)
