"""A catalogue record in DCAT 3: dcat.jsonld beside the tables, with the privacy guarantee.

https://www.w3.org/TR/vocab-dcat-3/. The guarantee is the statement of provenance that catalogues
show, and its numbers are quality measurements (https://www.w3.org/TR/vocab-dqv/).
"""

import json
from pathlib import Path
from typing import Any

from rpexplore.results.formats.export import Export, ExportedTable, Format

FILE = "dcat.jsonld"

_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dqv": "http://www.w3.org/ns/dqv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA_TYPE = "https://www.iana.org/assignments/media-types/text/csv"


def write_dcat(export: Export, folder: Path) -> None:
    """Write the record of an export."""
    text = json.dumps(catalogue_record(export), ensure_ascii=False, indent=1)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def catalogue_record(export: Export) -> dict[str, Any]:
    """The record of an export, as a JSON-LD object.

    Addresses are relative to the file: publishing it below an address makes them whole.
    """
    imprint, privacy = export.imprint, export.privacy
    dataset: dict[str, Any] = {
        "@context": _CONTEXT,
        "@id": "",
        "@type": "dcat:Dataset",
        "dct:title": _text(export.title),
        "dct:description": _text(export.description),
        "dct:identifier": privacy["manifest_sha256"],
        "dct:issued": {"@type": "xsd:dateTime", "@value": export.created},
        "dcat:keyword": [_text(word) for word in ("differential privacy", *export.attributes)],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": _text(export.guarantee),
        },
        "dqv:hasQualityMeasurement": _measurement(export),
    }
    if imprint.publisher:
        dataset["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": _text(imprint.publisher)}
    if imprint.license:
        dataset["dct:license"] = {"@id": imprint.license, "@type": "dct:LicenseDocument"}
    return dataset | {
        "dcat:distribution": [_distribution(table, imprint.license) for table in export.tables]
    }


def _measurement(export: Export) -> dict[str, Any]:
    privacy = export.privacy
    at_least = "" if privacy["rho_is_known"] else ", at least"
    return {
        "@type": "dqv:QualityMeasurement",
        "dqv:isMeasurementOf": {
            "@id": "#rho",
            "@type": "dqv:Metric",
            "skos:prefLabel": _text(f"ρ{at_least}"),
            "skos:definition": _text(
                f"ρ of {privacy['definition']} for {privacy['privacy_unit']}{at_least}"
            ),
            "dqv:expectedDataType": {"@id": "xsd:double"},
            "dqv:inDimension": {
                "@id": "#privacy",
                "@type": "dqv:Dimension",
                "skos:prefLabel": _text("Privacy"),
            },
        },
        "dqv:value": {"@type": "xsd:double", "@value": str(export.rho)},
    }


def _distribution(table: ExportedTable, license: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "@id": table.path,
        "@type": "dcat:Distribution",
        "dct:title": _text(table.title),
        "dcat:accessURL": {"@id": table.path},
        "dcat:downloadURL": {"@id": table.path},
        "dcat:mediaType": {"@id": _MEDIA_TYPE},
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(table.n_bytes)},
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": table.sha256},
        },
    }
    if table.note:
        described["dct:description"] = _text(table.note)
    if license:
        described["dct:license"] = {"@id": license}
    return described


def _text(text: str) -> dict[str, str]:
    return {"@language": "en", "@value": text}


FORMAT = Format(
    "DCAT catalogue record",
    "`dcat.jsonld` is a record with the guarantee",
    write_dcat,
)
