"""Files that are something else, uploaded or named: a sentence, and nothing is lost.

Some in `make test`, every file in every box in `make test-all`.
"""

import os
import random
from pathlib import Path

import pytest

from pages.components.codebook.files import FILE
from pages.components.release.records import PATH
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import stated_from_text
from tests.attacks.malformed import blobs
from tests.pages.test_odd_texts import basis, check, choose, records_from

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
BY_DAY = 4  # files of each box

# {key of the box: (page, endings, what is done there before)}
BOXES = {
    "codebook": ("codebook", (".json", ".csv", ".xlsx"), choose("codebook source", FILE)),
    "file of all age": ("workload", (".csv", ".npy"), basis("custom")),
    "expected margin": ("codebook", (".csv",), lambda session: None),
    "query file": ("queries", (".csv",), lambda session: session.unfold("query files")),
    "project file": ("scenarios", (".json",), lambda session: None),
}


@pytest.fixture
def complete(small) -> Scenario:
    """With everything that a file could replace."""
    about = Domain.from_sizes({"age": 10, "sex": 2})
    return small.replaced(
        expected=ExpectedCounts.of_total(1e6), query_list=stated_from_text(about, "age < 5 ± 3")
    )


def files(box: str, endings: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """Names and contents of files for a box."""
    odd = [(f"odd{ending}", content) for ending in endings for content in blobs()]
    return odd if NIGHTLY else random.Random(box).sample(odd, BY_DAY)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("box", BOXES)
def test_an_odd_file_is_refused_and_nothing_is_lost(box, app, complete):
    page, endings, prepare = BOXES[box]
    session = app(page, complete)
    prepare(session)
    for name, content in files(box, endings):
        key = next(field.key for field in session.file_uploader if field.key.startswith(box))
        session.file_uploader(key=key).upload(name, content).run()
        check(session)
        # A file that may be one of records names its columns, and changes nothing by itself.
        columns = [field for field in session.multiselect if field.key == "columns to take"]
        assert len(session.error) + len(columns) == 1, content[:40]
        assert session.scenario == complete


@pytest.fixture
def links(tmp_path) -> Path:
    """A folder of links to a file that is no table, each with an ending that says it is."""
    folder = tmp_path / "links"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "shadow").write_text("root:topsecret,age\nuser:topsecret,1\n")
    for name in ("records.csv", "records.parquet", "manifest.json", "ledger.sqlite", "inner/a.csv"):
        (folder / name).symlink_to(tmp_path / "shadow")
    return folder


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("page", "field", "name", "prepare"),
    [
        ("release", "data path", "records.csv", records_from(PATH)),
        ("release", "data path", "records.parquet", records_from(PATH)),
        ("release", "data path", "inner", records_from(PATH)),
        ("release", "ledger", "ledger.sqlite", lambda session: None),
        ("codebook", "header path", "records.csv", choose("codebook source", FILE)),
        ("codebook", "header path", "records.parquet", choose("codebook source", FILE)),
        ("results", "results folder", "", lambda session: None),
    ],
)
def test_a_link_whose_ending_lies_shows_nothing_of_its_file(
    page, field, name, prepare, app, complete, links
):
    session = app(page, complete)
    prepare(session)
    session.text_input(key=field).set_value(str(links / name)).run()
    check(session)
    assert len(session.error) == 1
    assert "topsecret" not in str(session.main)
    assert (links.parent / "shadow").read_text().startswith("root:topsecret,age\n")
