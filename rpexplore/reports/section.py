"""Sections: what a report says, before anybody decides how it looks.

A section is a heading, sentences, and parts: facts, numbers, charts, a checklist. All texts are
plain: whoever renders them escapes them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, TypeAlias

import jinja2
import numpy as np
import pandas as pd

from rpexplore.common.text import (
    capitalised,
    csv_of_frame,
    describe_count,
    describe_share,
    plural,
    rounded,
    small,
    with_article,
)
from rpexplore.figures.chart import Chart, Column

_NUMBER = re.compile(r"[-±0-9.,e^% ]*|over 10\^300")


@dataclass(frozen=True)
class Facts:
    """Terms, and behind each what there is to say of it: “Noise”, “Discrete Gaussian noise …”.

    A term with nothing behind it has a line to fill in by hand.
    """

    rows: Sequence[Sequence[str]]
    title: str = ""


@dataclass(frozen=True)
class Points:
    """Sentences one below the other, each with a bullet."""

    sentences: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Beside:
    """Several bullet lists side by side, each a column: “Exact”, “Approximate”, “Not covered”."""

    lists: Sequence[Points]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A DataFrame as a table.

    columns  those that are shown, by name and in their order; None: all, under their names
    """

    frame: pd.DataFrame
    columns: Mapping[str, Column] | None = None
    title: str = ""
    note: str = ""

    @cached_property
    def header(self) -> list[tuple[str, bool]]:
        """(heading, whether its column is set right) of each column: numbers, but not in front."""
        headings = [column.heading for column in self._shown.values()]
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in headings)
        numeric = [all(_NUMBER.fullmatch(text) for text in column) for column in columns]
        numeric[0] = False
        return list(zip(headings, numeric, strict=True))

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells as people read them, [n_rows][n_columns]."""
        rows = zip(*(self.frame[name].tolist() for name in self._shown), strict=True)
        return [list(map(cell_text, row, self._shown.values())) for row in rows]

    @property
    def _shown(self) -> Mapping[str, Column]:
        return self.columns or {name: Column(name) for name in self.frame}


@dataclass(frozen=True)
class Attachment:
    """A file that the document holds, to be downloaded; without text, where else to get it."""

    name: str
    sentence: str
    text: str | None = None


@dataclass(frozen=True)
class Checklist:
    """Points to tick off: (point, what is the case already, what is still to be done)."""

    rows: Sequence[Sequence[str]]


Part: TypeAlias = Facts | Points | Beside | Numbers | Chart | Attachment | Checklist


@dataclass(frozen=True)
class Section:
    """One section of a report. A folded one opens on demand where the document can do that.

    comment: on it, for the board
    """

    heading: str
    sentences: Sequence[str] = ()
    parts: Sequence[Part] = ()
    folded: bool = False
    comment: str = ""


def template_blocks(name: str, **values: Any) -> list[list[str]]:
    """The blocks of lines in a text of templates/, without lines that are empty when filled in.

    Each line is filled in by itself, so that no value can begin another one.
    """
    filled = [[line.render(values) for line in block] for block in _compiled_template(name)]
    return [[line for line in block if line] for block in filled]


@cache
def _compiled_template(name: str) -> list[list[jinja2.Template]]:
    """The lines of a text of templates/, by block: to compile them takes longer than to fill in."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.globals |= {
        function.__name__: function
        for function in (capitalised, describe_count, plural, rounded, small, with_article)
    }
    blocks = [block.strip("\n").split("\n") for block in text_of_template(name).split("\n\n")]
    return [[environment.from_string(line) for line in block] for block in blocks]


@cache
def text_of_template(name: str) -> str:
    """A file of templates/."""
    return (files("rpexplore.reports") / "templates" / name).read_text(encoding="utf-8")


def numbers_of(chart: Chart) -> Numbers:
    """The numbers of a chart as a table."""
    return Numbers(chart.frame, chart.columns, chart.subject)


def numbers_file(chart: Chart, most: int) -> Attachment | None:
    """The numbers of a chart as a file, if they have more rows than `most`."""
    if len(chart.frame) <= most:
        return None
    text = csv_of_frame(chart.frame.filter(list(chart.columns)))
    return Attachment(chart.file, f"The numbers of this chart, {len(chart.frame):,} rows", text)


def cell_text(value: Any, column: Column) -> str:
    """A cell of a DataFrame as text: 1,234; 0.0123; nothing where it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if column.kind == "share":
        return describe_share(value, column.digits)
    if column.kind == "count":
        return f"{value:,.0f}" if value < 1e15 else rounded(value, 3)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return rounded(value, 3, zeros=True)
    return str(value)
