"""The folder of an export: what is in it, what is left as it was, and what is refused."""

import re
from collections import Counter
from pathlib import Path

import openpyxl
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import bound_sentence
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.formats.publishing import publish
from rpexplore.results.results import load_any_results
from tests.results.formats.conftest import IMPRINT

DESCRIPTIONS = (
    "README.md", "datapackage.json", "csv-metadata.json", "croissant.json", "dcat.jsonld",
)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_figures_are_those_of_the_release_to_the_last_digit_and_the_release_stays(exports):
    released, folder = exports["released"].results, exports["released"].folder
    TableRelease.load(released.folder)  # which refuses anything that was added or changed
    tables = contents(released.folder / "tables")
    for name, content in contents(folder / "tables").items():
        # Behind the figures is their status, which CSVW has; all else is as it was.
        figures = re.sub(rb',"[AEUO]"\n', b"\n", content)
        assert figures.partition(b"\n")[2] == tables[name].partition(b"\n")[2]
    head = (folder / "tables/0005_marital-status_sex.csv").read_bytes().partition(b"\n")[0]
    assert head.startswith(b'"marital_status","marital_status_label","sex","sex_label","value",')


def test_the_workbook_is_beside_the_rest(exported):
    book = openpyxl.load_workbook(exported.folder / "tables.xlsx", read_only=True)
    assert len(book.sheetnames) == 1 + len(exported.results.items)


def test_the_readme_has_the_guarantee_and_the_names_that_changed(exports):
    text = (exports["released"].folder / "README.md").read_text("utf-8")
    assert exports["released"].results.plan.guarantee in text
    assert "- `marital_status`: marital status\n" in text
    assert "- `sex`" not in text


def test_adaptive_tables_say_in_every_description_how_far_off_they_are(sources, tmp_path):
    folder, release = tmp_path / "out", load_any_results(sources / "adaptive")
    formats = ["frictionless", "csvw", "croissant", "dcat"]
    publish(sources / "adaptive", folder, formats=formats, imprint=IMPRINT)
    sentences = [bound_sentence(item.bound) for item in release.items]
    assert any("with 95 %" in sentence for sentence in sentences)
    # Sentences that tables have in common are there once for each.
    texts = [(folder / name).read_text("utf-8") for name in DESCRIPTIONS]
    for sentence, n_tables in Counter(sentences).items():
        assert [text.count(sentence) for text in texts] == [n_tables] * len(texts)
    assert all(text.count("Estimated tables, adaptive, biased:") == 1 for text in texts)
    head = (folder / "tables/0002_sex.csv").read_text("utf-8").splitlines()[0]
    assert (
        head
        == '"sex","sex_label","value","model_error","lower_95","upper_95","value_is","obs_status"'
    )


def test_text_that_a_spreadsheet_would_run_is_escaped_where_that_is_wanted(sources, tmp_path):
    publish(sources / "released", tmp_path / "out", formats=["csvw"], escape_formulas=True)
    table = (tmp_path / "out/tables/0004_value.csv").read_text("utf-8")
    assert '\n"\'=1+1",' in table


def test_what_cannot_be_exported_is_refused_in_a_sentence(sources, exports, tmp_path):
    source = sources / "released"
    with pytest.raises(
        ReleaseError, match="There is no format 'pdf'; choose frictionless, croissant"
    ):
        publish(source, tmp_path / "out", formats=["pdf"])
    with pytest.raises(ReleaseError, match="There is already something at"):
        publish(source, exports["released"].folder)
    with pytest.raises(ReleaseError, match="which is complete"):
        publish(source, source / "export")
    with pytest.raises(ReleaseError, match="is not a finished release"):
        publish(exports["released"].folder, tmp_path / "out")
    with pytest.raises(ReleaseError, match="licence must be a web address, got 'CC-BY'"):
        rp.Imprint(license="CC-BY")
    with pytest.raises(ReleaseError, match=r"agency must be an identifier .* got 'U.N 1'"):
        rp.Imprint(agency="U.N 1")
    with pytest.raises(ReleaseError, match="title must be a text that files can hold"):
        rp.Imprint(title="a\udcff")
    with pytest.raises(ReleaseError, match="one as SDMX writes them, got 'May 2026'"):
        rp.Imprint(period="May 2026")
    assert not any(tmp_path.iterdir())
