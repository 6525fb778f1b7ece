"""The quality report: all headings of SIMS, the figures of every table, and nothing made up."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.text import markdown_text
from rpexplore.domain.result_schema import Schema
from rpexplore.privacy.conversions import rho_text
from rpexplore.results.combination import write_combined
from rpexplore.results.formats.export import Imprint
from rpexplore.results.formats.publishing import publish
from rpexplore.results.formats.writers.quality import CONCEPTS
from rpexplore.results.known_totals import with_known_totals
from tests.results.dense import release

GRADES = {"A": 0.05, "B": 0.1, "C": 0.2, "D": 0.33, "E": np.inf}


def read(folder) -> tuple[str, dict]:
    text = (folder / "quality.md").read_text("utf-8")
    return text, json.loads((folder / "quality.json").read_text("utf-8"))


def sections(text: str) -> dict[str, str]:
    """Number of a heading -> what is below it."""
    parts = re.split(r"^#+ S\.([0-9.]+) .*$", text, flags=re.M)[1:]
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def test_it_has_every_heading_in_order_and_the_guarantee(exported):
    text, facts = read(exported.folder)
    found = sections(text)
    numbers = [concept.number for concept in CONCEPTS]
    assert list(found) == numbers
    assert [one["number"] for one in facts["attributes"]] == [f"S.{one}" for one in numbers]
    levels = [tuple(map(int, number.split("."))) for number in numbers]
    assert levels == sorted(levels)
    assert [number for number in numbers if "." not in number] == [str(n) for n in range(1, 20)]
    assert markdown_text(exported.results.guarantee) in found["7.2"]
    assert f"{rho_text(Fraction(facts['privacy']['rho']))}." in found["7.1"]  # rounded up
    of_noise = any(not part.is_smooth for part in exported.results.readers)
    assert ("those of the noise alone" in text) == of_noise
    assert found["1.1"].startswith("Statistics Office.")
    assert found["5"].startswith("2026-Q1.")
    # What nobody said is asked for, and there is nothing beside that.
    for number in ("1.3", "1.6", "6.1", "12.2", "14.1", "16", "18.1"):
        assert re.fullmatch(r"\*To be filled by the producer: [^\n]+\.\*", found[number])


def test_the_errors_of_every_table_are_those_of_its_rows(exported):
    text, facts = read(exported.folder)
    assert len(facts["tables"]) == len(exported.results.items)
    rows = [line for line in text.splitlines() if re.match(r"\| (?!table \|)[^-]", line)]
    assert len(rows) == len(facts["tables"])
    for item, table in zip(exported.results.items, facts["tables"], strict=True):
        frame = item.read().to_pandas()
        schema = Schema.of(item.read())
        error, count = schema.error_and_count
        frame = frame[[error, count]].dropna()
        assert table["cells"] == item.n_rows
        if frame.empty:
            assert table["share_of_cells_by_grade"] is None
            continue
        assert table["standard_error"]["median"] == pytest.approx(frame[error].median())
        assert table["standard_error"]["largest"] == frame[error].max()
        cv = frame[error] / frame[count].abs()
        below = 0.0
        for letter, share in table["share_of_cells_by_grade"].items():
            expected = ((cv > below) & (cv <= GRADES[letter])).mean()
            assert share == pytest.approx(expected)
            below = GRADES[letter]


def test_processed_figures_say_whose_errors_these_are(exports, sources, tmp_path):
    publish(sources / "whole", tmp_path / "whole", formats=["quality"])
    whole, _ = read(tmp_path / "whole")
    assert "Errors are those of the unbiased figures" in sections(whole)["13.1"]
    assert "biased" in sections(whole)["15.4"]
    released, _ = read(exports["released"].folder)
    assert "unbiased figures" not in sections(released)["13.1"]


def test_exact_figures_are_of_the_best_grade(tmp_path):
    """A known count of 0 as well, whose CV would be 0/0."""
    domain = rp.Domain.from_sizes({"age": 3, "sex": 2})
    part = release(domain, np.ones((3, 2)), [(0, 1)], np.random.default_rng(1), {}, "release")
    known = with_known_totals(part.given, {("age", "sex"): [[1, 0], [2, 3], [4, 5]]})
    write_combined(known, tmp_path / "known")
    publish(tmp_path / "known", tmp_path / "public", formats=["quality"])
    text, facts = read(tmp_path / "public")
    assert "publicly known totals of age × sex are met" in sections(text)["15.3"]
    (table,) = facts["tables"]
    assert table["share_of_cells_by_grade"]["A"] == 1
    assert table["cv_quartiles"] == [0, 0, 0]


def test_names_and_titles_mean_nothing_as_markdown(tmp_path):
    """The report as it is shown has no markup of theirs: not in tables and lists either."""
    evil = "<img src=x> | [l](javascript:1)"
    field = {"name": evil, "constraints": {"enum": ["1", "2"]}}
    domain = rp.Domain.parse(json.dumps({"fields": [field]}), "codebook.json")
    part = release(domain, np.ones(2), [(0,)], np.random.default_rng(1), {}, "release")
    write_combined(part.given, tmp_path / "out")
    imprint = Imprint(title=f"T {evil}", publisher=evil)
    publish(tmp_path / "out", tmp_path / "public", imprint=imprint, formats=["quality"])
    text, _ = read(tmp_path / "public")
    assert text.count(markdown_text(evil)) >= 5
    left = text.replace(markdown_text(evil), "")
    assert "img" not in left
    assert "javascript" not in left
