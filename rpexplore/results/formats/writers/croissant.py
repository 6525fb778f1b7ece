"""Croissant metadata (MLCommons, version 1.0): croissant.json beside the tables.

https://docs.mlcommons.org/croissant/docs/croissant-spec.html. What holds for the tables is part of
the description, as the format has no field for it.
"""

import json
from pathlib import Path
from typing import Any

from rpexplore.results.formats.export import Export, ExportedTable, Format
from rpexplore.results.formats.export_columns import Column

FILE = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

# As the specification prints it (its appendix 1), where readers expect it to the letter.
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def write_croissant(export: Export, folder: Path) -> None:
    """Write the description of the tables of an export."""
    text = json.dumps(croissant(export), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def croissant(export: Export) -> dict[str, Any]:
    """The description of an export, as a JSON-LD object."""
    imprint = export.imprint
    dataset: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": export.name,
        "alternateName": export.title,
        "description": export.description,
        "conformsTo": CONFORMS_TO,
        "datePublished": export.created,
        "version": "1.0.0",
        "keywords": ["differential privacy", *export.attributes],
    }
    if imprint.license:
        dataset["license"] = imprint.license
    if imprint.publisher:
        organisation = {"@type": "sc:Organization", "name": imprint.publisher}
        cited = f"{imprint.publisher} ({export.created[:4]}): {export.title}"
        dataset |= {"creator": organisation, "publisher": organisation, "citeAs": cited}
    return dataset | {
        "distribution": [_file(table) for table in export.tables],
        "recordSet": [_record_set(table) for table in export.tables],
    }


def _file(table: ExportedTable) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": table.path,
        "name": table.path,
        "contentUrl": table.path,
        "contentSize": f"{table.n_bytes} B",
        "encodingFormat": "text/csv",
        "sha256": table.sha256,
    }


def _record_set(table: ExportedTable) -> dict[str, Any]:
    described: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": f"{table.title}. {table.note}" if table.note else table.title,
    }
    if table.key:
        described["key"] = [{"@id": f"{table.name}/{name}"} for name in table.key]
    return described | {"field": [_field(table, column) for column in table.columns]}


def _field(table: ExportedTable, column: Column) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.meaning,
        "dataType": "sc:Float" if column.is_number else "sc:Text",
        "source": {
            "fileObject": {"@id": table.path},
            "extract": {"column": column.name},
        },
    }


FORMAT = Format(
    "Croissant",
    "`croissant.json` describes all files for machine learning",
    write_croissant,
)
