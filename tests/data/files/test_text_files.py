"""Text files of records as spreadsheets, archives and offices write them: counts of each form."""

import csv
import zipfile

import numpy as np
import pytest

from rpexplore import AreaTree, Bins, Categories, Integers, PersonRule
from rpexplore.data.areas import AreaCut, AreaCuts
from rpexplore.data.files.columns import ColumnsFile, read_header, recognise_path
from rpexplore.data.files.csv_batches import _any_length, csv_form
from rpexplore.data.files.source import FileSource
from rpexplore.domain.area_tree import AreaRange
from rpexplore.errors import DataError
from tests.data.files.written_records import domain_of, written

DOMAIN = domain_of(
    town=Categories(("Köln", "Bonn;a", "1,5")),
    age=Integers(0, 99, 50, (("", "none"),)),
    pay=Bins((0, 1, 2.5, 10), (("-9.5", "refused"),)),
)
ROWS = [("Köln", "20", "2.4"), ("1,5", "70", "2.5"), ("1,5", "", "-9.5"), ("Köln", " 20", ".5")]
COUNTS = {(0, 0, 1): 1, (2, 1, 2): 1, (2, 2, 3): 1, (0, 0, 0): 1}


def rows_of(separator: str, *, commas: bool) -> str:
    """The records with names that hold other separators, and a text in quotes."""
    lines = [["town", "age", "pay", "notes, and | more"]]
    lines += [[*row, 'a "word"'] for row in ROWS]
    if commas:
        lines = [[*row[:2], row[2].replace(".", ","), row[3]] for row in lines]
    quoted = [[f'"{value.replace(chr(34), chr(34) * 2)}"' for value in row] for row in lines]
    return "\r\n".join(separator.join(row) for row in quoted) + "\r\n"


def test_text_in_utf_32_is_refused_by_name(tmp_path):
    for encoding in ("utf-32", "utf-32-be"):
        content = "\ufeff" * (encoding != "utf-32") + rows_of(",", commas=False)
        path = written(tmp_path, content.encode(encoding))
        with pytest.raises(DataError, match="are text in UTF-32, and no CSV"):
            FileSource(path).count(DOMAIN, [(0,)])


def test_values_stay_of_any_length_while_another_reader_ends():
    """Two pages may read at once, and Python has one limit for all of its readers."""
    before = csv.field_size_limit()
    one, other = _any_length(), _any_length()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert csv.field_size_limit() > before
    other.__exit__(None, None, None)
    assert csv.field_size_limit() == before


def counted(path, encoding=None):
    counts = FileSource(path, encoding).count(DOMAIN, [(0, 1, 2)]).counts((0, 1, 2))
    return {tuple(cell): counts[tuple(cell)] for cell in np.argwhere(counts).tolist()}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
def test_separator_by_the_header_encoding_by_its_mark_or_as_stated(tmp_path, separator, encoding):
    text = rows_of(separator, commas=separator in ";\t")
    path = written(tmp_path, text.encode(encoding), "people.txt")
    assert counted(path, encoding if encoding == "windows-1252" else None) == COUNTS
    header = read_header(path) if encoding != "windows-1252" else None
    if header is not None:
        assert [column.name for column in header.columns][:3] == ["town", "age", "pay"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_line_of_excel_says_the_separator(tmp_path, encoding):
    path = written(tmp_path, f"sep=:\r\n{rows_of(':', commas=True)}".encode(encoding))
    assert counted(path) == COUNTS


def test_the_columns_of_the_plan_tell_separators_apart(tmp_path):
    path = written(tmp_path, "a,b,c;age;id;town;d,e,f\n1;20;1;B;2\n1;70;1;A;2\n")
    source, ages = FileSource(path), domain_of(age=Integers(0, 99, 50))
    assert source.count(ages, [(0,)]).n_records == 2
    towns = AreaTree.from_columns({"town": ["A", "B"]})
    cuts = AreaCuts(towns, (AreaCut(AreaRange.within(towns, 0, 0, 1, 1)),))
    # Behind the top each town's ages: 70 in A, 20 in B.
    counts = source.count(ages, [(0, 1)], areas=cuts).counts((0, 1))
    assert counts[:, 1:3].tolist() == [[0, 1], [1, 0]]
    rule = PersonRule("id", 2, "refuse")
    options = {"person_rule": rule, "universe": None, "n_persons": 1, "tree": towns}
    assert source.differing(ages, [0], **options) == {0, 1}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('x;"a, b, c\nd";y', ["x", "a, b, c\nd", "y"]),
        ('x;"y|z|\r\nw|v";k', ["x", "y|z|\r\nw|v", "k"]),
        ('"a""b";"c""d"', ['a"b', 'c"d']),
        ('size";b', ['size"', "b"]),
        ('a|b,"c""d",e', ["a|b", 'c"d', "e"]),
        ('"a;\nb;c;d",e', ["a;\nb;c;d", "e"]),
    ],
)
def test_names_in_quotes_hold_separators_and_line_breaks(tmp_path, line, names):
    path = written(tmp_path, f"{line}\n")
    assert csv_form(path, "people.csv").columns == names


def test_a_decimal_comma_is_none_where_commas_separate(tmp_path):
    path = written(tmp_path, 'pay,x\n"1,5",1\n')
    with pytest.raises(DataError, match="'pay' holds a value that is not in the codebook"):
        FileSource(path).count(domain_of(pay=Bins((0, 1, 2))), [(0,)])


def test_files_in_zip_files_are_read_alone(tmp_path):
    path = tmp_path / "people.csv.zip"
    for names, problem in (
        (("a.csv",), None),
        (("a.csv", "__MACOSX/._a.csv", "readme.pdf"), None),
        (("a.csv", "b.tsv"), "must hold one file of records .*, and holds 2"),
        (("a.xml",), "and holds 0"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, rows_of(";", commas=True).encode("utf-16"))
        if problem is None:
            assert counted(path) == COUNTS
            assert isinstance(recognise_path(path), ColumnsFile)
        else:
            with pytest.raises(DataError, match=problem):
                counted(path)
    written(tmp_path, path.read_bytes()[:-30], path.name)
    with pytest.raises(DataError, match="a broken zip file"):
        counted(path)


@pytest.mark.parametrize(
    ("content", "encoding", "problem"),
    [
        (b"age;x\n20;\xe9\n30;\n\x81;1\n", "windows-1252", "not all text in the encoding cp1252"),
        (b"age;x\n20\n", "latin-1", "have 1 columns in line 2 instead of 2"),
        (b'age;x\n20;"a\n', "latin-1", "a quotation mark that is not closed"),
        (b"age\n20\n", "windows-1253x", "There is no encoding 'windows-1253x'"),
    ],
)
def test_texts_that_cannot_be_read_as_stated_are_refused(tmp_path, content, encoding, problem):
    path = written(tmp_path, content)
    with pytest.raises(DataError, match=problem):
        FileSource(path, encoding).count(domain_of(age=Integers(0, 99, 50)), [(0,)])
