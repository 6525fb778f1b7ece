"""The page for readers: its crosstabs against the tables of every kind of results."""

import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import Schema
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.results.formats.crosstab import crosstab_of_item
from rpexplore.results.formats.export import Export
from rpexplore.results.formats.readers_page import _rows_kept, readers_page
from rpexplore.results.publication import Publication


def tables_of(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(table) for table in re.findall("<table.*?</table>", page, re.S)]


def test_every_figure_of_every_table_is_on_the_page(exported):
    page = (exported.folder / "tables.html").read_text("utf-8")
    items = [(part, item) for part in exported.results.readers for item in part.items]
    tables = tables_of(page)
    assert len(tables) == len(items)
    for (part, item), shown in zip(items, tables, strict=True):
        frame = item.frame
        table = crosstab_of_item(part, item)
        cells = table.values[: len(table.rows), : len(table.columns)]
        stored = frame[Schema.of(frame).name("value")]
        np.testing.assert_allclose(np.sort(cells.ravel()), np.sort(stored), rtol=1e-9, atol=1e-9)
        n_cells = sum(1 for _ in shown.iter("td"))
        assert n_cells >= table.values.size
    for sentence in ("Atlas of persons", "Statistics Office", exported.results.guarantee[:60]):
        assert sentence in page
    assert ("guesses of a model" in page) == any(one.is_smooth for one in exported.results.readers)


def test_heads_call_attributes_as_titles_do(sources):
    page = readers_page(Export(sources / "released"))
    heads = {"".join(head.itertext()) for table in tables_of(page) for head in table.iter("th")}
    assert "Body height" in heads
    assert "Größe" not in heads


def test_names_that_are_code_stay_text(sources, tmp_path):
    code = "</script><script>alert(1)</script>"
    export = Export(sources / "released", rp.Imprint(title=code, publisher=code))
    page = readers_page(export)
    assert code not in page
    assert page.count("<script>") == 1
    # The browser may load nothing, and run this script only.
    assert "default-src 'none'; script-src 'sha256-" in unescape(page)
    assert not re.findall(r'(?:src|href)="[^#]', page)


def test_cells_that_are_not_publishable_are_left_empty_where_asked(sources):
    export = Export(sources / "released")
    texts = [
        ["".join(cell.itertext()) for table in tables_of(page) for cell in table.iter("td")]
        for page in (readers_page(export, Publication(0.05, empty)) for empty in (False, True))
    ]
    assert any(text.startswith("(") for text in texts[0])
    assert texts[1] == ["" if text.startswith("(") else text for text in texts[0]]


def test_large_tables_share_the_room_that_small_ones_leave():
    # Rows and columns: 30,000 figures, of which 20 and 300 are those of the small tables.
    kept = _rows_kept([(10, 2), (100_000, 4), (100, 3), (50_000, 2)])
    assert kept == [10, 29_680 // 2 // 4, 100, 29_680 // 2 // 2]


@pytest.mark.nightly
def test_sixty_large_tables_take_two_megabytes_at_most(tmp_path):
    label = "A category with a long label, as codebooks have them, number {}"
    values = rp.Categories(tuple(map(str, range(12))), tuple(map(label.format, range(12))))
    domain = rp.Domain(tuple(rp.Attribute(f"attribute {i}", values) for i in range(8)))
    rows = np.random.default_rng(0).integers(0, 12, (500, 8)).astype(str)
    pd.DataFrame(rows, columns=list(domain.names)).to_csv(tmp_path / "r.csv", index=False)
    workload = rp.Workload.all_up_to(domain, 3)
    threes = [table for table in workload.tables if len(table) == 3]
    plan = plan_tables(
        rp.Workload.of(domain, [*threes, *workload.tables[:4]]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    folder = release(plan, tmp_path / "r.csv", tmp_path / "out").folder
    page = readers_page(Export(Path(folder)))
    assert page.count("<article") == 60
    assert len(page.encode()) <= 2_000_000
    assert "The first" in page
