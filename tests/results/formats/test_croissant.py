"""Croissant metadata, read as linked data by rdflib, and by night by mlcroissant."""

import csv
import hashlib
import json

import pytest
import rdflib

from rpexplore.domain.result_schema import Schema
from tests.support.environments import environment, run

CROISSANT = rdflib.Namespace("http://mlcommons.org/croissant/")
SCHEMA = rdflib.Namespace("https://schema.org/")
READ_BY_MLCROISSANT = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = [*dataset.metadata.issues.errors, *dataset.metadata.issues.warnings]
rows = list(dataset.records("0002_sex"))
read = {
    "issues": list(map(str, issues)),
    "sex": [row["0002_sex/sex"].decode() for row in rows],
    "values": [float(row["0002_sex/value"]) for row in rows],
}
print(json.dumps(read))
"""


@pytest.mark.by_day(1)
def test_every_field_is_a_column_of_a_file_that_is_there(exported):
    graph = rdflib.Graph().parse(exported.folder / "croissant.json", format="json-ld")
    (dataset,) = graph.subjects(rdflib.RDF.type, SCHEMA.Dataset)
    assert exported.results.guarantee in str(graph.value(dataset, SCHEMA.description))
    files = {}
    for file in graph.objects(dataset, SCHEMA.distribution):
        path = exported.folder / str(graph.value(file, SCHEMA.contentUrl))
        assert (
            str(graph.value(file, SCHEMA.sha256)) == hashlib.sha256(path.read_bytes()).hexdigest()
        )
        files[file] = next(csv.reader(path.open(encoding="utf-8", newline="")))
    assert len(files) == len(exported.results.items)
    columns = {file: [] for file in files}
    of_tables = [Schema.of(item.frame).columns for item in exported.results.items]
    numbers = {one.name for table in of_tables for one in table if one.is_number}
    for field in graph.subjects(rdflib.RDF.type, CROISSANT.Field):
        source = graph.value(field, CROISSANT.source)
        column = graph.value(graph.value(source, CROISSANT.extract), CROISSANT.column)
        columns[graph.value(source, CROISSANT.fileObject)].append(str(column))
        is_number = graph.value(field, CROISSANT.dataType) == SCHEMA.Float
        assert is_number == (str(column) in numbers)
    assert {file: sorted(names) for file, names in columns.items()} == {
        file: sorted(names) for file, names in files.items()
    }


@pytest.mark.nightly
def test_the_reader_of_mlcommons_takes_it(exports, tmp_path):
    """It has an environment of its own: type stubs that it brings would judge the whole project."""
    python = environment(tmp_path / "venv", "mlcroissant>=1")
    for kind in ("released", "combined", "smooth", "whole", "adaptive"):
        exported = exports[kind]
        file = exported.folder / "croissant.json"
        read = json.loads(run(python, "-c", READ_BY_MLCROISSANT, str(file), cwd=tmp_path))
        assert read["issues"] == []
        frame = exported.results.table("sex")
        assert read["sex"] == frame["sex"].tolist()
        assert read["values"] == pytest.approx(frame["value"].tolist(), abs=1e-5)
