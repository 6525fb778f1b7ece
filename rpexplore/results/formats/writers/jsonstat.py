"""JSON-stat 2.0 (https://json-stat.org/full/): jsonstat/NNNN_age_sex.json, a dataset a table.

The dimensions of a dataset are the attributes of the table, and last the figures of a cell, as in
PX files. Groups are the parents of what lies in them. A figure that is not known is null.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.text import numbered_apart
from rpexplore.domain.result_schema import Schema
from rpexplore.results.formats.cube import cube_of, is_time, units_of_columns
from rpexplore.results.formats.export import Export, ExportedTable, Format
from rpexplore.results.formats.export_columns import safe_name
from rpexplore.results.formats.export_figures import decimals_of, statuses_of
from rpexplore.results.formats.languages import ENGLISH
from rpexplore.results.formats.row_values import frequency_of_times, period_of

FOLDER = "jsonstat"
_FIGURE = "figure"  # the dimension of the figures


def write_jsonstat(export: Export, folder: Path) -> None:
    """Write a file a table; raises `ReleaseError` for one with rows that are called alike, and for
    an attribute of time whose values are no periods.
    """
    frequency_of_times(export)
    (folder / FOLDER).mkdir()
    for table in export.tables:
        table.refuse_alike("JSON-stat")
        text = json.dumps(_dataset(export, table), ensure_ascii=False, allow_nan=False, indent=1)
        (folder / FOLDER / f"{table.name}.json").write_text(
            f"{text}\n", encoding="utf-8", newline="\n"
        )


def _dataset(export: Export, table: ExportedTable) -> dict[str, Any]:
    rows = export.rows(table)
    variables, order = cube_of(rows, table)
    figures = [column for column in table.columns if column.is_number]
    dimensions: dict[str, dict[str, Any]] = {}
    roles: dict[str, list[str]] = {"metric": []}
    for attributes, values in variables:
        name = "_".join(export.attribute_names[attribute] for attribute in attributes)
        own_name = attributes[0] if len(attributes) == 1 else ""
        codes = numbered_apart(code for code, _ in values)
        category: dict[str, Any] = {
            "index": codes,
            "label": {
                code: export.label(own_name, label or own)
                for code, (own, label) in zip(codes, values, strict=True)
            },
        }
        if len(attributes) == 1 and (child := _children(table, attributes[0], codes, values)):
            category["child"] = child
        titles = (export.attribute_titles[attribute] for attribute in attributes)
        if not export.language.is_english:
            titles = map(export.head, titles)
        title = "/".join(titles)
        dimensions[name] = {"label": title, "category": category}
        if len(attributes) == 1 and is_time(export, attributes[0]):
            roles.setdefault("time", []).append(name)
        if set(attributes) <= {*export.results.area_levels}:
            roles.setdefault("geo", []).append(name)
    figure = safe_name(_FIGURE, {name.lower() for name in dimensions})
    units = units_of_columns(export, table, rows)
    decimals = decimals_of(rows)
    dimensions[figure] = {
        "label": export.language.text("figure"),
        "category": {
            "index": [column.name for column in figures],
            "label": {
                column.name: column.title if export.language.is_english else export.head_of(column)
                for column in figures
            },
            "unit": {
                column.name: {"label": units[column.name], "decimals": decimals}
                for column in figures
            },
            "note": {
                column.name: [export.meaning_of(column, table)]
                for column in figures
                if column.meaning
            },
        },
    }
    roles["metric"].append(figure)
    numbers = np.stack([np.asarray(rows[column.name], dtype=float)[order] for column in figures], 1)
    imprint = export.imprint
    notes = [
        export.kind,
        export.guarantee,
        export.adding_up,
        table.note,
        *_words(export, rows, table),
    ]
    facts = {"period": period_of(export, table), "license": imprint.license} | {
        "privacy": export.privacy
    }
    return {
        "version": "2.0",
        "class": "dataset",
        "label": f"{export.title}: {export.title_of(table)}",
        "source": imprint.publisher or export.title,
        "updated": export.created,
        "note": [note for note in notes if note],
        "extension": {name: fact for name, fact in facts.items() if fact},
        "id": list(dimensions),
        "size": [len(one["category"]["index"]) for one in dimensions.values()],
        "role": roles,
        "dimension": dimensions,
        "value": [
            None if np.isnan(number) else round(number, decimals)
            for number in numbers.ravel().tolist()
        ],
        "status": _statuses(rows, order, len(figures)),
    }


def _children(
    table: ExportedTable, attribute: str, codes: list[str], values: list[tuple[str, str]]
) -> dict[str, list[str]]:
    """The codes that lie directly within each group."""
    column = [one for one in table.columns if one.attribute == attribute][-1]
    code_of = {label or own: code for code, (own, label) in zip(codes, values, strict=True)}
    children: dict[str, list[str]] = {}
    for text, group in column.parents.items():
        children.setdefault(code_of[group], []).append(code_of[text])
    return children


def _words(export: Export, rows: pa.Table, table: ExportedTable) -> list[str]:
    """What columns of words say of all rows."""
    words = []
    for column in table.columns:
        if column.is_number or column.names_cells or column.role in ("status", "shown"):
            continue
        (said, *others) = rows[column.name].unique().cast(pa.string()).to_pylist()
        if said and not others:
            words.append(f"{export.head_of(column)}: {export.said(said, column)}")
    return words


def _statuses(rows: pa.Table, order: np.ndarray, n_figures: int) -> str | dict[str, str]:
    """The status of the count of each cell, by the codes of SDMX, or the words in the place of the
    count; one text where all are alike.
    """
    texts = statuses_of(rows).to_numpy(zero_copy_only=False)
    if (schema := Schema.of(rows)).has("shown"):
        words = rows[schema.name("shown")].to_numpy()
        texts = np.where(words != "", words, texts)
    said = texts[order].tolist()
    if len({*said}) == 1:
        return said[0]
    return {str(n_figures * cell): text for cell, text in enumerate(said)}


FORMAT = Format(
    "JSON-stat 2.0",
    ENGLISH.text("files_jsonstat"),
    write_jsonstat,
    has_files_of_its_own=True,
    said_in="files_jsonstat",
)
