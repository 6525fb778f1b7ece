"""Codebooks from the dictionaries of SPSS, Stata and SAS files, which pyreadstat wrote."""

import math
from datetime import date

import pandas as pd
import pyreadstat
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.common import extras, statistics_files
from rpexplore.data.files.codebook_file import CodebookFile, ColumnsFile, recognise, recognise_path
from rpexplore.data.files.columns import Column
from rpexplore.domain.codebooks.statistics_file import variables_of_statistics_file
from rpexplore.domain.codebooks.variables import Variable, draft_of
from rpexplore.errors import DomainError, MissingExtraError

SECRET = 4242.5
DICTIONARY_ENDS = (999).to_bytes(4, "little") + bytes(4)  # in a file of SPSS
MISSING = ("Missing",)
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
def in_this_process(monkeypatch):
    """Spares a test the start of another process."""
    monkeypatch.setattr(statistics_files, "_in_other_process", statistics_files._dictionary)


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
    assert found.others.header.columns == (Column("income", "numbers"), Column("born", "dates"))
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
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "rpexplore\[formats\]"'):
        recognise_path(survey)
