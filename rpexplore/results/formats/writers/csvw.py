"""Metadata of CSV on the Web: csv-metadata.json beside the tables.

https://www.w3.org/TR/tabular-metadata/. What it says of privacy stands in terms of Dublin Core, as
the standard has none of its own for it. What a figure is, its unit, decimals, time and status, is
said in the words of SDMX.
"""

import json
from pathlib import Path
from typing import Any

from rpexplore.results.formats.export import Export, ExportedTable, Format
from rpexplore.results.formats.export_columns import Column, frequency_of
from rpexplore.results.formats.export_figures import decimals_of
from rpexplore.results.formats.row_values import frequency_of_times, period_of, units_of

FILE = "csv-metadata.json"
_SDMX = "http://purl.org/linked-data/sdmx/2009"  # its words as linked data


def write_csvw(export: Export, folder: Path) -> None:
    """Write the description of the tables; raises `ReleaseError` for an attribute of time whose
    values are no periods.
    """
    frequency_of_times(export)
    text = json.dumps(csvw_metadata(export), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def csvw_metadata(export: Export) -> dict[str, Any]:
    """The description of an export, as a JSON object."""
    imprint = export.imprint
    group: dict[str, Any] = {
        "@context": ["http://www.w3.org/ns/csvw", {"@language": export.language.code}],
        "dc:title": export.title,
        "dc:description": export.kind,
        "dc:provenance": export.guarantee,
        "dc:created": export.created,
    }
    if imprint.license:
        group["dc:license"] = {"@id": imprint.license}
    if imprint.publisher:
        group["dc:publisher"] = imprint.publisher
    return group | {"tables": [_table(export, table) for table in export.tables]}


def _table(export: Export, table: ExportedTable) -> dict[str, Any]:
    columns = [_column(export, table, column) for column in table.copied]
    schema: dict[str, Any] = {"columns": columns + _facts(export, table)}
    if table.key:
        schema["primaryKey"] = list(table.key)
    described = {"dc:description": table.note} if table.note else {}
    return {
        "url": table.path,
        "dc:title": export.title_of(table),
        **described,
        "tableSchema": schema,
    }


def _column(export: Export, table: ExportedTable, column: Column) -> dict[str, Any]:
    # The head of the column is the first title; what it is called at length is another one.
    titles = list(dict.fromkeys([column.name, _title(export, column)]))
    described: dict[str, Any] = {
        "name": column.name,
        "titles": titles,
        "datatype": "double" if column.is_number else "string",
        "required": column.is_required,
    }
    if export.language.is_english:
        described["dc:description"] = column.meaning
    elif not column.names_cells:
        described["dc:description"] = export.meaning_of(column, table)
    if column.role == "value":
        described["propertyUrl"] = f"{_SDMX}/measure#obsValue"
    elif column.role == "status":
        described["propertyUrl"] = f"{_SDMX}/attribute#obsStatus"
        described["valueUrl"] = f"{_SDMX}/code#obsStatus-{{{column.name}}}"
    elif column.role == "code" and column.attribute == export.imprint.time:
        described["propertyUrl"] = f"{_SDMX}/dimension#timePeriod"
    return described


def _title(export: Export, column: Column) -> str:
    """What a column is called: in English as in the release."""
    if export.language.is_english:
        return column.title
    if not column.names_cells:
        return export.head_of(column)
    title = export.head(export.attribute_titles[column.attribute])
    return export.language.text("code", name=title) if column.role == "code" else title


def _facts(export: Export, table: ExportedTable) -> list[dict[str, Any]]:
    """What SDMX says of all figures of a table, as virtual columns: unit, decimals, time."""
    rows = export.rows(table)
    places, units = units_of(export, table, rows)
    facts = {"attribute#unitMult": "0", "attribute#decimals": str(decimals_of(rows))}
    if len(set(places.tolist())) == 1:  # else the rows say it
        facts["attribute#unitMeasure"] = units[places[0]]
    period, time = period_of(export, table), export.imprint.time
    if time in table.attributes:
        column = next(one for one in table.columns if one.attribute == time)
        frequency = frequency_of(text for text in column.texts if text != column.whole)
    else:
        frequency = frequency_of([period]) if period else ""
        facts |= {"dimension#timePeriod": period} if period else {}
    facts |= {"dimension#freq": frequency} if frequency else {}
    return [
        {
            "name": f"sdmx_{fact.partition('#')[2]}",
            "virtual": True,
            "propertyUrl": f"{_SDMX}/{fact}",
            "default": value,
        }
        for fact, value in facts.items()
    ]


FORMAT = Format(
    "CSV on the Web (CSVW)",
    "`csv-metadata.json` describes all files",
    write_csvw,
    said_in="files_csvw",
)
