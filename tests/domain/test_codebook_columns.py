"""Codebooks whose columns have other names: what each is, guessed, shown and taken."""

import openpyxl
import pytest

import rpexplore as rp
from rpexplore.cli.codebooks import roles_of_columns
from rpexplore.data.files.columns import ColumnsFile, recognise
from rpexplore.domain.codebook_columns import ForeignTable
from rpexplore.errors import DomainError, WorkloadError

GERMAN = "Variable;Code;Bedeutung\nsex;1;männlich\n;2;weiblich\nregion;01;Nord\n;02;Süd\n"


@pytest.mark.parametrize(
    ("header", "guess"),
    [
        ("Merkmal,Code,Bedeutung", {"attribute": "Merkmal", "value": "Code", "label": "Bedeutung"}),
        ("Libellé,Modalité,Nom", {"attribute": "Nom", "value": "Modalité", "label": "Libellé"}),
        ("VARNAME,VALUE,VALUE LABEL,Group",
         {"attribute": "VARNAME", "value": "VALUE", "label": "VALUE LABEL", "group": "Group"}),
        # Nothing is known: the first two that are left.
        ("a,b,c", {"attribute": "a", "value": "b"}),
        ("a,label,b", {"attribute": "a", "value": "b", "label": "label"}),
    ],
)  # fmt: skip
def test_columns_are_guessed_by_their_names(header, guess):
    assert ForeignTable.of(f"{header}\n1,2,3\n".encode(), "c.csv").guess == guess


def test_three_rows_are_shown_and_all_are_taken():
    table = ForeignTable.of(GERMAN.encode("utf-16"), "codes.csv")
    assert table.header == ("Variable", "Code", "Bedeutung")
    assert table.rows == (
        ("sex", "1", "männlich"), ("", "2", "weiblich"), ("region", "01", "Nord"),
    )  # fmt: skip
    domain = table.codebook(table.guess)
    assert domain["sex"].values.labels == ("männlich", "weiblich")
    assert domain["region"].values.values == ("01", "02")
    with pytest.raises(DomainError, match="needs a column with the value; say which of 'Variable'"):
        table.codebook({"attribute": "Variable"})
    with pytest.raises(DomainError, match="no table with two columns or more"):
        ForeignTable.of(b"one\n1\n", "c.csv")


def test_a_spreadsheet_with_other_names_is_such_a_table(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["About this list"])
    codes = book.create_sheet("Codes")
    for row in GERMAN.splitlines():
        codes.append(row.split(";"))
    book.save(tmp_path / "codes.xlsx")
    content = (tmp_path / "codes.xlsx").read_bytes()
    table = recognise(content, "codes.xlsx")
    assert isinstance(table, ForeignTable)
    assert len(table.rows) == 3
    named = rp.Domain.load(tmp_path / "codes.xlsx", columns=table.guess)
    assert table.codebook(table.guess) == named
    # Of CSV nobody knows whether it is of records: its columns are offered, and no row is read.
    assert isinstance(recognise(GERMAN.encode(), "codes.csv"), ColumnsFile)


VARIABLES = "Merkmal;Typ;Werte;Bezeichnung\nsex;;1=F|2=M;Geschlecht\nage;;0..99;Alter\n"


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_one_row_an_attribute_may_have_other_names_too(tmp_path, ending):
    path = tmp_path / f"codes.{ending}"
    if ending == "csv":
        path.write_text(VARIABLES, encoding="utf-8")
    else:
        book = openpyxl.Workbook()
        book.active.append(["Stand 2026"])
        for row in VARIABLES.splitlines():
            book.active.append(row.split(";"))
        book.save(path)
    table = ForeignTable.of(path.read_bytes(), path.name)
    if ending == "csv":
        assert table.seems_of_variables
    roles = roles_of_columns("name=Merkmal,values=Werte,label=Bezeichnung")
    domain = rp.Domain.load(path, columns=roles)
    assert table.codebook(roles) == domain
    assert domain["sex"].labels() == ["F", "M"]
    assert domain["sex"].label == "Geschlecht"
    assert domain["age"].size == 100


@pytest.mark.parametrize(
    "typed", ["name=a,code=b", "name=a", "attribute=a,values=b", "name=a,values=b,group=c", "x=a"]
)
def test_roles_that_do_not_go_together_are_refused(typed):
    with pytest.raises(WorkloadError, match="--map must name"):
        roles_of_columns(typed)
