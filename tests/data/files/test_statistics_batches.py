"""Records in files of SPSS, Stata and SAS, which pyreadstat wrote."""

import base64
import struct
import zlib
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

from rpexplore import Attribute, Bins, Categories, Dates, Domain, Integers
from rpexplore.common.statistics_files import DictionaryVariable
from rpexplore.data.coding import MISSING, Coder
from rpexplore.data.files import statistics_batches as module
from rpexplore.data.files.columns import ColumnsFile, read_column_values, recognise_path
from rpexplore.data.files.source import FileSource
from rpexplore.errors import DataError
from tests.data.files.written_records import codes, refusal

N = 2_000
WRITERS = {
    "sav": pyreadstat.write_sav,
    "zsav": lambda records, path: pyreadstat.write_sav(records, path, compress=True),
    "por": lambda records, path: pyreadstat.write_por(records.rename(columns=str.upper), path),
    "dta": pyreadstat.write_dta,
    "xpt": pyreadstat.write_xport,
}
# Four records that haven 2.5 of R wrote: pyreadstat writes no such files.
SAS7BDAT = (
    b"c-rmSJxjw-6b9foZIKooQs~e@Fcb#|kp_!Y9BiN!h3b<001=9GX`xc+rfwFT{41^s;-Z5fZf@?nIH}-"
    b"A%*TzUS7QqbBEC<DL*9GOZ8HRNpuoH1>+RM3O#1wAFNxHNzMCCW)6+l>3Uqua({p7SrnazDt&|PRFe{c81%0^vV&Bb"
    b"N`^pH_UhWPRh)MD6R9?^P%Xz03oH|pjH`*N#5fKp)5fKp)5fKp)5fS}IN#_Gxj`&v-"
    b"@!r)Vk!Pi@9g!D<K=F$u@`98nMP8Ni(_z1s<ntr)#fY4Uh=_>jC%rt{o<a9dBJr*M?|#4R$#1udAKw1q{8GiM!E1Q}"
    b"F{GsRFmaTvy(OdY#|8~U{uCkIJ@71g#zUF>KjDp92d&zAz1aZPnyp6Juqt;BcTE~gaPJu8zSE*6BG%*m4p2XjZ3&+c"
    b"`jeFKlW{x0;+C!MSukIhOfOJ_ASdd@!)8#u7IY6dk`oaT5fKp){gPMLfPY5"
)
MOMENT = datetime(2026, 11, 24, 13, 30, 5)  # noqa: DTZ001 (files have no time zones)


def records():
    """Of N people: a code, a text, a number with gaps and a date."""
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "code": rng.integers(0, 10, N).astype(float),
            "place": rng.choice(["north", "Süd", ""], N),
            "amount": np.where(np.arange(N) % 3 == 0, np.nan, np.round(rng.normal(size=N), 2)),
            "born": [date(1900 + year, 2, 28) for year in rng.integers(0, 120, N)],
        }
    )


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(("index", "weight"), [(0, ""), (4, "weight_of_the_person")])
def test_the_case_weight_of_spss_is_named(tmp_path, index, weight):
    """Behind a text of two records of its dictionary, and with labels between."""
    frame = pd.DataFrame(
        {"sex": [1.0, 2.0], "place": ["north-east"] * 2, "weight_of_the_person": [2.5, 1.0]}
    )
    path = tmp_path / "people.sav"
    labels = {"sex": {1: "Male", 2: "Female"}}
    pyreadstat.write_sav(
        frame, path, column_labels=["Sex", "Place", "W"], variable_value_labels=labels,
        missing_ranges={"sex": [9]}, note="a document",
    )  # fmt: skip
    content = bytearray(path.read_bytes())
    assert content[76:80] == bytes(4)
    content[76:80] = index.to_bytes(4, "little")
    path.write_bytes(content)
    assert FileSource(path).case_weight == weight


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_records_that_were_written(form, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_ROWS", N // 2)
    monkeypatch.setattr(module, "_BATCH_VALUES", 1)
    frame = records()
    if form == "por":  # which pyreadstat writes in ASCII
        frame["place"] = frame["place"].replace("Süd", "south")
    path = tmp_path / f"people.{form}"
    WRITERS[form](frame, path)
    source = FileSource(path)
    batches = list(source.batches(source.columns()))
    assert [batch.num_rows for batch, _ in batches] == [N // 2, N // 2, 0]
    shares = [share for _, share in batches]
    assert shares == sorted(shares)
    assert 0.99 < shares[-1] <= 1
    read = pa.Table.from_batches([batch for batch, _ in batches]).to_pydict()
    read = {name.lower(): values for name, values in read.items()}
    assert read["code"] == frame["code"].tolist()
    assert read["place"] == [text or None for text in frame["place"]]
    assert read["amount"] == [None if np.isnan(x) else x for x in frame["amount"]]
    assert read["born"] == [day.isoformat() for day in frame["born"]]
    # A file that ends early is refused, not counted as far as it goes.
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="or a damaged one"):
        list(source.batches([source.columns()[0]]))


@pytest.mark.usefixtures("in_this_process")
def test_records_of_sas(tmp_path):
    path = tmp_path / "people.sas7bdat"
    content = zlib.decompress(base64.b85decode(SAS7BDAT))
    path.write_bytes(content)
    found = recognise_path(path)
    assert isinstance(found, ColumnsFile)
    assert [column.declared for column in found.header.columns] == ["numbers", "text", "dates"]
    (batch, _), *_ = FileSource(path).batches(["sex", "region", "born"])
    assert batch.to_pydict() == {
        "sex": [1.0, 2.0, 9.0, None],
        "region": ["N", "S", None, "N"],
        "born": ["2000-01-02", "1999-05-05", None, "1980-01-01"],
    }
    path.write_bytes(content[:-1000])
    with pytest.raises(DataError, match="no file of SAS, or a damaged one"):
        list(FileSource(path).batches(["sex"]))


@pytest.mark.usefixtures("in_this_process")
def test_missing_values_stay_as_they_are_in_the_codebook(tmp_path):
    spss, stata = tmp_path / "a.sav", tmp_path / "a.dta"
    frame = pd.DataFrame({"sex": [1.0, 2.0, 9.0], "when": [MOMENT, None, MOMENT]})
    labels = {"sex": {1.0: "Male", 2.0: "Female", 9.0: "Refused"}}
    pyreadstat.write_sav(frame, spss, variable_value_labels=labels, missing_ranges={"sex": [9.0]})
    assert codes(spss, Domain((Domain.load(spss)["sex"],))) == [[0, 1, 2]]
    frame["sex"] = pd.Series([1, "b", "a"], dtype=object)
    labels = {"sex": {1: "Male", 2: "Female", "a": "Refused", "b": "Gone"}}
    missing = {"sex": ["a", "b"]}
    pyreadstat.write_dta(frame, stata, variable_value_labels=labels, missing_user_values=missing)
    assert Domain.load(stata)["sex"].stored_values() == ["1", "2", ".a", ".b"]
    assert codes(stata, Domain((Domain.load(stata)["sex"],))) == [[0, 3, 2]]
    for path in (spss, stata):
        values = read_column_values(path, ["when"]).values["when"]
        assert values == ("2026-11-24 13:30:05",)


def without_encoding_of_spss(path):
    """Take the record of the encoding (20) out, and say that it is ASCII (3), as old files do."""
    content = path.read_bytes()
    start = content.index(struct.pack("<4i", 7, 20, 1, 5))
    content = bytearray(content[:start] + content[start + 21 :])
    code = content.index(struct.pack("<4i", 7, 3, 4, 8)) + 44
    content[code : code + 4] = struct.pack("<i", 3)
    path.write_bytes(content)


def in_windows_1252(path, before, after):
    """Texts of one byte a character, in place of those of as many bytes."""
    content = path.read_bytes()
    assert before.encode() in content
    path.write_bytes(content.replace(before.encode(), after.encode("windows-1252")))


@pytest.mark.usefixtures("in_this_process")
def test_an_encoding_that_is_named_is_told_to_differ_from_what_a_file_may_state(tmp_path):
    """é was counted as Ã©, or as what takes unknown values, without a word."""
    path = tmp_path / "people.sav"
    pyreadstat.write_sav(pd.DataFrame({"name": ["é", "b"]}), path)
    (said,) = FileSource(path, "windows-1252").remarks()
    assert said.startswith("The encoding of texts is stated in ")
    assert "they are read as cp1252, as is named (--encoding)" in said
    assert FileSource(path).remarks() == ()
    without_encoding_of_spss(path)
    assert FileSource(path, "windows-1252").remarks() == ()


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("form", ["dta", "sav", "xpt"])
def test_files_that_do_not_state_their_encoding_are_read_as_what_they_hold(form, tmp_path):
    """Each letter Á has a byte that windows-1252 lacks; UTF-8 is no latin-1 of two letters."""
    path, more = tmp_path / f"people.{form}", {"version": 12} if form == "dta" else {}
    frame = pd.DataFrame({"place": ["Árni", "Süd", "Kü", ""], "code": [1.0, 2.0, 2.0, 1.0]})
    labels = {} if form == "xpt" else {"variable_value_labels": {"code": {1: "früh", 2: "x"}}}
    write = getattr(pyreadstat, "write_xport" if form == "xpt" else f"write_{form}")
    write(frame, path, column_labels=["Ort", "für"], **labels, **more)
    if form == "sav":
        without_encoding_of_spss(path)

    def texts(encoding=None):
        source = FileSource(path, encoding)
        batches = list(source.batches(["place"]))
        read = [text for batch, _ in batches for text in batch.column(0).to_pylist()]
        said = module.statistics_variables(path, path.name, encoding)[1]
        return read, said.label, *said.labels.values()

    labels = () if form == "xpt" else ("früh", "x")
    assert texts() == (["Árni", "Süd", "Kü", None], "für", *labels)
    # Some texts are not UTF-8: whoever has the file must say.
    in_windows_1252(path, "Süd", "Sööd")
    with pytest.raises(DataError, match="some are UTF-8, others not; name the one that holds"):
        texts()
    for before, after in (("Árni", "Árnir"), ("Kü", "Küß"), ("für", "fürs"), ("früh", "frühe")):
        if before != "früh" or labels:
            in_windows_1252(path, before, after)
    windows = ["Árnir", "Sööd", "Küß", None], "fürs", *(("frühe", "x") if labels else ())
    assert texts() == texts("windows-1252") == windows
    assert texts("cp1251")[0][1] == "Sццd"
    with pytest.raises(DataError, match="an encoding that cannot be read; name the one"):
        texts("utf-8")


def stating(content, place, n_records, size=4):
    """A file whose header states another number of records, at this place, in so many bytes."""
    return content[:place] + n_records.to_bytes(size, "little") + content[place + size :]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("form", ["dta", "dta 14", "xpt", "xpt 8", "sas7bdat"])
def test_files_of_stata_and_sas_with_more_records_than_they_state(form, tmp_path):
    """Records behind the stated ones, and a file behind another one, are refused."""
    records = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "t": ["ab", "c", "d"]})
    kind, path = form.partition(" ")[0], tmp_path / f"people.{form.partition(' ')[0]}"
    if kind == "dta":
        labels = {"sex": {1: "one", 2: "two"}}
        version = 12 if form == "dta" else 14
        pyreadstat.write_dta(records, path, version=version, variable_value_labels=labels)
    elif kind == "xpt":
        records = pd.concat([records] * 20)
        pyreadstat.write_xport(records, path, file_format_version=8 if form == "xpt 8" else 5)
    else:
        path.write_bytes(zlib.decompress(base64.b85decode(SAS7BDAT)))
        records = range(4)
    whole = path.read_bytes()
    changed = {"dta": [stating(whole, 6, 2)], "sas7bdat": [], "xpt": []}.get(form, [])
    if form == "xpt 8":
        place = whole.index(b"HEADER RECORD*******OBSV8") + 48
        changed = [whole[:place] + b"%15d" % 59 + whole[place + 15 :]]
    if form == "sas7bdat":  # the row size subheader, and a page of data once more
        place = whole.index(b"\xf7" * 4 + bytes(4)) + 48
        changed = [stating(whole, place, 3), whole + whole[-4096:]]
    else:
        changed += [whole + whole, whole[:-10]]

    def n_records():
        return sum(batch.num_rows for batch, _ in FileSource(path).batches(["sex"]))

    assert n_records() == len(records)
    for content in changed:
        path.write_bytes(content)
        with pytest.raises(DataError, match="damaged"):
            n_records()


@pytest.mark.usefixtures("in_this_process")
def test_numbers_of_stata_at_an_edge_lie_there_in_either_precision(tmp_path):
    """Stata keeps numbers in 32 bits unless it is told otherwise: 0.7 is 0.699999988… there."""
    path = tmp_path / "a.dta"
    listed = np.array([0.1, 0.3, 0.7, 1.1])
    pd.DataFrame({"x": listed.astype(np.float32), "y": listed}).to_stata(path, write_index=False)
    bins, names = Bins((0.1, 0.3, 0.7, 1.1)), ("x", "y")
    assert codes(path, Domain(tuple(Attribute(name, bins) for name in names))) == [[0, 1, 2, 2]] * 2
    texts = Categories(("0.1", "0.3", "0.7", "1.1"))
    assert codes(path, Domain((Attribute("x", texts),))) == [[0, 1, 2, 3]]
    single = DictionaryVariable("x", "", "numbers", None, {"a": "Refused"}, is_single=True)
    column = pd.Series([np.float64(np.float32(0.7)), "a", np.nan], dtype=object)
    assert module._array(column, single, "Stata").to_pylist() == ["0.7", ".a", None]


@pytest.mark.usefixtures("in_this_process")
def test_extended_missing_values_without_labels_are_missing(tmp_path):
    path = tmp_path / "a.dta"
    frame = pd.DataFrame({"age": pd.Series([30.5, "a", np.nan], dtype=object)})
    pyreadstat.write_dta(frame, path, missing_user_values={"age": ["a"]})
    (batch, _), *_ = FileSource(path).batches(["age"])
    assert batch.to_pydict() == {"age": [30.5, None, None]}
    domain = Domain((Attribute("age", Bins((0, 30, 60), (("", "not stated"),))),))
    assert codes(path, domain) == [[1, 2, 2]]


def test_what_is_not_in_the_codebook_is_refused_without_a_word_of_it(tmp_path):
    path = tmp_path / "a.sav"
    pyreadstat.write_sav(pd.DataFrame({"place": ["north", "s3cr3t"]}), path)
    domain = Domain((Attribute("place", Categories(("north", "south"))),))
    error = refusal(path, domain, "s3cr3t")
    assert "s3cr3t" in error.private


@pytest.mark.usefixtures("in_this_process")
def test_what_a_file_declares_missing_is_never_read_as_a_number(tmp_path):
    """98 and 99 are no people of that age; a codebook may give single ones a cell of their own."""
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"age": [30.0, 97, 98, 99, np.nan], "band": [1.0, 2, 8, 9, 1]})
    ranges = {"age": [{"lo": 98, "hi": 99}], "band": [8, 9]}
    pyreadstat.write_sav(frame, path, missing_ranges=ranges)
    age, band = Attribute("age", Integers(0, 120)), Attribute("band", Bins((0, 5, 10)))
    for attribute, n in ((age, 3), (band, 2)):
        assert f"{n} missing" in refusal(path, Domain((attribute,))).private
    kinds = Integers(0, 120, missing=(("98", "refused"), ("x", "not stated")))
    listed = Domain((Attribute("age", kinds),))
    assert codes(path, listed, others={"age": "not stated"}) == [[30, 97, 121, 122, 122]]


@pytest.mark.usefixtures("in_this_process")
def test_texts_that_a_file_declares_missing_are_missing(tmp_path):
    """Unless the codebook lists them as values."""
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"sex": ["F", "XX", "M", "XX"]})
    pyreadstat.write_sav(frame, path, missing_ranges={"sex": ["XX"]})
    values = Categories(("F", "M", "not stated"))
    assert "2 missing" in refusal(path, Domain((Attribute("sex", values),))).private
    listed = Domain((Attribute("sex", Categories(("F", "M", "XX"))),))
    assert codes(path, listed) == [[0, 2, 1, 2]]


@pytest.mark.usefixtures("in_this_process")
def test_letters_that_a_file_declares_missing_are_missing_in_any_codebook(tmp_path):
    """.a of a column with labels is a text; it is no value that the codebook lacks."""
    path = tmp_path / "a.dta"
    frame = pd.DataFrame({"x": pd.Series([1, "a", "b"], dtype=object)})
    labels = {"x": {1: "one", "a": "Refused"}}
    missing = {"x": ["a", "b"]}
    pyreadstat.write_dta(frame, path, variable_value_labels=labels, missing_user_values=missing)
    for values in (Integers(0, 9), Bins((0, 9)), Categories(("1", "2")), Dates("2026", "2026")):
        n = "2 missing" if values != Dates("2026", "2026") else "2 missing. 'x': 1 not in"
        assert n in refusal(path, Domain((Attribute("x", values),))).private
    kinds = Integers(0, 9, missing=((".a", "refused"), ("", "not stated")))
    listed = Domain((Attribute("x", kinds),))
    assert codes(path, listed, others={"x": "not stated"}) == [[1, 10, 11]]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("form", ["sav", "dta", "xpt"])
def test_dates_of_every_package(form, tmp_path):
    path = tmp_path / f"a.{form}"
    days = [date(2026, 1, 31), date(1959, 12, 31), None, date(2026, 2, 1)]
    moments = [datetime(2026, 1, 31, 13, 30), None, MOMENT, datetime(2026, 2, 1)]  # noqa: DTZ001
    WRITERS[form](pd.DataFrame({"day": days, "moment": moments}), path)
    values = Dates("1950", "2026", "month", missing=(("1959-12-31", "before"), ("", "none")))
    n = values.n_ordered
    domain = Domain((Attribute("day", values), Attribute("moment", values)))
    expected = [[n - 12, n, n + 1, n - 11], [n - 12, n + 1, n - 2, n - 11]]
    assert codes(path, domain) == expected


@pytest.mark.usefixtures("in_this_process")
def test_dates_that_a_file_declares_missing_are_no_days(tmp_path):
    path = tmp_path / "a.sav"
    days = [date(2026, 1, 31), date(1900, 1, 1), date(1900, 1, 3)]
    pyreadstat.write_sav(pd.DataFrame({"day": days}), path)
    said = module.statistics_variables(path, path.name)[0]
    first = (date(1900, 1, 1) - date(1582, 10, 14)).days * 86_400.0
    declared = module.declared_by(replace(said, missing=((first, first),)), "SPSS")
    assert declared is not None
    texts = pa.array(["2026-01-31", "1900-01-01", "1900-01-03"])
    for values in (Dates("1900", "2026", "year"), Categories(("2026-01-31", "1900-01-03"))):
        found = Coder(Attribute("day", values), declared).signed_codes(texts)
        assert (found == MISSING).tolist() == [False, True, False]
