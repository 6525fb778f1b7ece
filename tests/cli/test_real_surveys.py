"""Real surveys from file to two-way tables by two commands, beside pandas' own group-by.

Point RPEXPLORE_SURVEYS to a folder of .sav, .por and .dta files, and of DDI codebooks (.xml) with
records of fixed width beside them (.dat), such as those that `docs/codebook-files.md` lists. None
is in the repository: their licences differ.
"""

import os
import shutil
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

import rpexplore as rp
from rpexplore.errors import DomainError

_FOLDER = os.environ.get("RPEXPLORE_SURVEYS", "")
FILES = sorted(
    path
    for path in (Path(_FOLDER).iterdir() if _FOLDER else ())
    if path.suffix.lower() in (".sav", ".por", ".dta", ".xml")
)
NOT_STATED = "not stated"


def labelled(path: Path, domain: rp.Domain) -> pd.DataFrame:
    """The attributes as labels, read without rpexplore; what is missing as NOT_STATED."""
    if path.suffix.lower() == ".xml":
        frame, labels = fixed_width(path)
    elif path.suffix.lower() == ".dta":
        with pd.read_stata(path, iterator=True) as reader:
            frame = reader.read(convert_categoricals=False)
            sets = reader.value_labels()
            # pandas names a set of labels as the variable is called, as R and SPSS write them.
            labels = {name: sets[name] for name in frame if name in sets}
    else:
        is_por = path.suffix.lower() == ".por"  # which has no user-defined missing values here
        read = pyreadstat.read_por if is_por else pyreadstat.read_sav
        frame, about = read(str(path), **({} if is_por else {"user_missing": True}))
        labels = about.variable_value_labels
    columns = {}
    for attribute in domain:
        codes = frame[attribute.name]
        known = {
            code: " ".join(text.split()) or (code if isinstance(code, str) else f"{code:g}")
            for code, text in labels[attribute.name].items()
        }
        repeated = [text for text in known.values() if [*known.values()].count(text) > 1]
        texts = {
            code: f"{text} ({code:g})" if text in repeated else text for code, text in known.items()
        }
        columns[attribute.name] = codes.map(texts).where(codes.notna(), NOT_STATED)
    return pd.DataFrame(columns)


def fixed_width(path: Path) -> tuple[pd.DataFrame, dict[str, dict[object, str]]]:
    """Records as codes, and their labels, of a DDI codebook and the file of records beside it."""
    spans, labels = {}, {}
    for variable in ET.parse(path).getroot().iterfind(".//{*}var"):
        place = variable.find("{*}location")
        spans[variable.attrib["name"]] = (
            int(place.attrib["StartPos"]) - 1,
            int(place.attrib["EndPos"]),
        )
        is_number = variable.find("{*}varFormat").attrib["type"] == "numeric"
        labels[variable.attrib["name"]] = {
            float(code) if is_number else code: one.findtext("{*}labl") or ""
            for one in variable.iterfind("{*}catgry")
            for code in [one.findtext("{*}catValu")]
        }
    texts = pd.read_fwf(
        path.with_suffix(".dat"), colspecs=[*spans.values()], names=[*spans], dtype=str, header=None
    )
    columns = {
        name: pd.to_numeric(texts[name]) if isinstance(next(iter(codes)), float) else texts[name]
        for name, codes in labels.items()
        if codes
    }
    return pd.DataFrame(columns), labels


def released(path: Path, program) -> rp.Release:
    """By two commands, in the folder of the test."""
    records, more = path, []
    if path.suffix.lower() == ".xml":
        path = Path(shutil.copy(path, "copy.xml"))
        records, more = records.with_suffix(".dat"), ["--positions", "copy.xml"]
    records = Path(shutil.copy(records, f"copy{records.suffix}"))  # its ledger lies beside it
    path = path if more else records
    try:
        rp.Domain.load(path)
    except DomainError as error:
        pytest.skip(str(error))
    program.done(
        *("plan", str(path), "--up-to", "2", "--rho", "1e6"),
        *("--not-stated", "*", "--out", "plan.json"),
    )
    taken = ["--missing-values", f"*={NOT_STATED}"]
    program.done("release", "plan.json", str(records), *more, *taken, "--out", "out", "--yes")
    return rp.Release.load("out")


@pytest.mark.nightly
@pytest.mark.skipif(not FILES, reason="RPEXPLORE_SURVEYS names no folder of surveys")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_cell_of_a_real_survey_is_that_of_pandas(path, run):
    compare(path, released(path, run))


@pytest.mark.usefixtures("in_this_process")
def test_a_survey_with_missing_values_is_counted_as_by_pandas(run, tmp_path):
    frame = pd.DataFrame({"SEX": [1.0, 2, 2, None], "VOTE": [1.0, 8, 8, 2], "AGE": [1.0, 2, 3, 4]})
    labels = {"SEX": {1.0: "Male", 2.0: "Female"}, "VOTE": {1.0: "Yes", 2.0: "No", 8.0: "No"}}
    path = tmp_path / "small.sav"
    pyreadstat.write_sav(frame, str(path), variable_value_labels=labels)
    assert compare(path, released(path, run)) == 3 * 4


def compare(path: Path, done: rp.Release) -> int:
    """Assert that all two-way tables have the counts of pandas; how many cells these are."""
    domain, n_cells = done.plan.domain, 0
    frame = labelled(path, domain)
    for first, second in combinations(domain.names, 2):
        table = done.table(first, second)
        counted = frame.groupby([first, second]).size()
        # Where all labels are the codes, there is one column.
        heads = [f"{name} label" if f"{name} label" in table else name for name in (first, second)]
        own = table.set_index(heads)["value"]
        assert set(counted.index) <= set(own.index), (first, second)
        wanted = counted.reindex(own.index, fill_value=0)
        assert ((own - wanted).abs() < 0.5).all(), (first, second)
        n_cells += len(own)
    return n_cells
