"""Records of fixed width: every column as pandas cuts it, in whatever form the file is."""

import gzip
import re
import traceback
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from rpexplore import Amounts, Attribute, Categories, Domain, Integers
from rpexplore.data.files import fixed_batches
from rpexplore.data.files.columns import read_header, recognise
from rpexplore.data.files.offered import Folder
from rpexplore.data.files.offered import records as offered_records
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import PersonRule
from rpexplore.domain.record_layout import Place, RecordLayout, layout_of_ddi
from rpexplore.errors import DataError
from rpexplore.workload.universe import universe_of
from tests.support.ipums import VARIABLES, by_pandas, ddi, records

NAMES = [name for name, *_ in VARIABLES]
LAYOUT = layout_of_ddi(ddi().encode(), "usa.xml")
SMALL = RecordLayout(("a", "b"), (Place(0, 1), Place(1, 3)), 3)
TWO = Domain(
    (Attribute("a", Categories(("x", "y", "é"))), Attribute("b", Integers(0, 99, 1, (("", "?"),))))
)


def columns(source, names):
    table = pa.Table.from_batches([batch for batch, _ in source.batches(names)])
    return {name: table.column(name).cast(pa.string()).to_pylist() for name in names}


@pytest.mark.parametrize("form", ["plain", "crlf", "no last end", "gz", "zip", "txt", "mark"])
def test_all_columns_are_as_pandas_cuts_them(tmp_path, monkeypatch, form):
    monkeypatch.setattr(fixed_batches, "_BLOCK", 2000)  # many blocks, the last one not full
    text = records(333)
    (tmp_path / "as.txt").write_text(text)
    expected = by_pandas(tmp_path / "as.txt")
    path = tmp_path / {"gz": "a.dat.gz", "zip": "a.dat.zip", "txt": "a.txt"}.get(form, "a.dat")
    content = text.encode()
    if form == "crlf":
        content = content.replace(b"\n", b"\r\n")
    if form == "no last end":
        content = content[:-1]
    if form == "mark":
        content = b"\xef\xbb\xbf" + content
    if form == "gz":
        content = gzip.compress(content)
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("usa.dat", content)
            archive.writestr("readme.md", "no records")
    else:
        path.write_bytes(content)
    read = columns(FileSource(path, layout=LAYOUT), NAMES)
    for name in NAMES:
        wanted = [text or None for text in expected[name]]
        if name == "PERWT":
            wanted = [f"{int(text) // 100:08}.{int(text) % 100:02}" for text in wanted]
        assert read[name] == wanted, name
    assert None in read["INCWAGE"]
    assert "0010" in read["OCC"]


def test_decimals_are_implied_unless_a_point_is_written():
    texts = pa.array(["5", "-5", "+1234", "12.3", "", "a", "-", "007"])
    pointed = fixed_batches._with_point(texts, 2).to_pylist()
    assert pointed == ["0.05", "-0.05", "+12.34", "12.3", "", "a", "-", "0.07"]


def test_weights_have_their_implied_decimals(tmp_path):
    path = tmp_path / "a.dat"
    path.write_text(records(50))
    weights = Domain((Attribute("PERWT", Amounts(0, 10**6, 2, are_weights=True)),))
    source = FileSource(path, layout=LAYOUT)
    counts = source.count(weights, [(0,)]).counts((0,)).tolist()
    in_hundredths = by_pandas(path)["PERWT"].astype(int).sum()
    assert counts == [50 * 10**8 - in_hundredths, in_hundredths]
    assert source.case_weight == "PERWT"


def test_codes_with_leading_zeros_are_numbers_or_texts_as_the_codebook_lists_them(tmp_path):
    path = tmp_path / "a.dat"
    path.write_text("01 1 110\n")
    layout = RecordLayout(tuple("abc"), (Place(0, 2), Place(3, 4), Place(5, 8)), 8)
    domain = Domain(
        (
            Attribute("a", Categories(("1", "2"))),
            Attribute("b", Categories(("01", "02"))),
            Attribute("c", Categories(("010", "110"))),
        )
    )
    counts = FileSource(path, layout=layout).count(domain, [(0, 1, 2)]).counts((0, 1, 2))
    assert np.argwhere(counts).tolist() == [[0, 0, 1]]


def test_universe_persons_and_parts_of_folders(tmp_path):
    for year, text in (("1", "x01\ny 2\n"), ("2", "x 1\nx 3\ny  \n")):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "part.dat").write_text(text)
    source = FileSource(tmp_path, layout=SMALL)
    assert source.columns() == ("a", "b", "year")
    domain = Domain((*TWO, Attribute("year", Integers(1, 2))))
    universe = universe_of("b < 3", domain)
    counts = source.count(domain, [(0, 2)], universe=universe).counts((0, 2))
    assert counts.tolist() == [[1, 1], [1, 0], [0, 0]]
    # 01 and 1 may be one person, or two: as in every file that is refused.
    with pytest.raises(DataError, match="leave open who is who"):
        source.count(domain, [(0, 2)], universe=universe, person_rule=PersonRule("b", 1))
    (tmp_path / "year=1" / "part.dat").write_text("x 1\ny 2\n")
    rule = PersonRule("b", 1, "keep first")
    counted = source.count(domain, [(0, 2)], universe=universe, person_rule=rule)
    assert counted.counts((0, 2)).tolist() == [[1, 0], [1, 0], [0, 0]]


def refused(path, content, encoding=None, layout=SMALL):
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        FileSource(path, encoding, layout).count(TWO, [(0, 1)])
    printed = "".join(traceback.format_exception(caught.value)) + caught.value.private
    assert not re.search(r"x\s*7", printed)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x 7\ny1\nx 7\n", "2 characters in line 2, and the codebook .* describes 3"),
        (b"x 7\nx 7\nx 7 \n", "4 characters in line 3"),
        (b"x 7\nx 7\nx", "1 characters in line 3"),
        (b"x 7\n\nx 7\n", "0 characters in line 2"),
        (b"x 7\n x 7\n", "4 characters in line 2"),
        (b"x 7x 7x 7", "characters in line 1"),
        (b"x 7\nx 7\r\nx 7\n", "end line 2 unlike the first one"),
        (b"x 7\r\nx 7\nx 7\r\n", "end line 2 unlike the first one"),
        (b"x 7\nx\t7\n", "a tab or another control character in line 2"),
        (b"x 7\nx\x007\n", "a tab or another control character in line 2"),
        (b"x 7\nx\t\n", "a tab or another control character in line 2"),
        ("x 7\né7\n".encode(), "a sign in line 2 that is not ASCII"),
        ("x 7\n".encode("utf-16"), "in UTF-16"),
    ],
)
def test_lines_that_do_not_fit_are_refused_with_their_number_alone(
    tmp_path, monkeypatch, content, said
):
    for block in (1 << 20, 8):
        monkeypatch.setattr(fixed_batches, "_BLOCK", block)
        assert re.search(said, refused(tmp_path / "a.dat", content))


def test_an_encoding_has_one_byte_a_sign(tmp_path):
    path = tmp_path / "a.asc"
    path.write_bytes("é 7\n".encode("windows-1252"))
    counts = FileSource(path, "windows-1252", SMALL).count(TWO, [(0,)])
    assert counts.counts((0,)).tolist() == [0, 0, 1]
    for encoding in ("cp932", "utf-7", "hz"):
        assert "can have several bytes" in refused(path, b"x 7\n", encoding)
    assert "not all text in the encoding cp1252" in refused(path, b"\x81 7\n", "windows-1252")


def test_positions_are_needed_for_fixed_width_and_refused_for_others(tmp_path):
    path = tmp_path / "a.dat"
    assert "name it by --positions" in refused(path, b"x 7\n", layout=None)
    for read in (lambda: read_header(path), lambda: recognise(b"Xavier\n", "a.dat")):
        with pytest.raises(DataError, match="give their DDI codebook") as caught:
            read()
        assert "Xavier" not in str(caught.value)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="leave the positions"):
        FileSource(tmp_path / "a.parquet", layout=SMALL).columns()
    assert [*offered_records(Folder(("a.dat", "b.dat.gz", "c.docx"), ())).files] == [
        "a.dat",
        "b.dat.gz",
    ]


def test_a_file_without_records_has_none(tmp_path):
    (tmp_path / "a.dat").write_bytes(b"")
    assert FileSource(tmp_path / "a.dat", layout=SMALL).count(TWO, [(0,)]).n_records == 0
