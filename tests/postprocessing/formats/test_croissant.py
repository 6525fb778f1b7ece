"""Croissant metadata, read as linked data by rdflib, and by mlcroissant where it is installed."""

import csv
import hashlib
import itertools

import pytest
import rdflib

from rpexplore.postprocessing.formats.columns import NUMBERS
from rpexplore.postprocessing.results import guarantee_of

CROISSANT = rdflib.Namespace("http://mlcommons.org/croissant/")
SCHEMA = rdflib.Namespace("https://schema.org/")


def test_every_field_is_a_column_of_a_file_that_is_there(exported):
    graph = rdflib.Graph().parse(exported.folder / "croissant.json", format="json-ld")
    (dataset,) = graph.subjects(rdflib.RDF.type, SCHEMA.Dataset)
    assert guarantee_of(exported.results) in str(graph.value(dataset, SCHEMA.description))
    files = {}
    for file in graph.objects(dataset, SCHEMA.distribution):
        path = exported.folder / str(graph.value(file, SCHEMA.contentUrl))
        assert (
            str(graph.value(file, SCHEMA.sha256)) == hashlib.sha256(path.read_bytes()).hexdigest()
        )
        files[file] = next(csv.reader(path.open(encoding="utf-8", newline="")))
    assert len(files) == len(exported.results.table_names)
    columns = {file: [] for file in files}
    for field in graph.subjects(rdflib.RDF.type, CROISSANT.Field):
        source = graph.value(field, CROISSANT.source)
        column = graph.value(graph.value(source, CROISSANT.extract), CROISSANT.column)
        columns[graph.value(source, CROISSANT.fileObject)].append(str(column))
        is_number = graph.value(field, CROISSANT.dataType) == SCHEMA.Float
        assert is_number == (str(column) in NUMBERS)
    assert {file: sorted(names) for file, names in columns.items()} == {
        file: sorted(names) for file, names in files.items()
    }


def test_the_reader_of_mlcommons_takes_it(exported):
    """By hand, as it brings type stubs that judge the whole project by other rules."""
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(jsonld=str(exported.folder / "croissant.json"))
    assert not dataset.metadata.issues.errors
    assert not dataset.metadata.issues.warnings
    (records,) = (part for part in dataset.metadata.record_sets if part.name == "0002_sex")
    frame = exported.results.table("sex")
    read = itertools.islice(dataset.records(records.uuid), 2)
    for row, record in zip(frame.itertuples(), read, strict=True):
        assert record["0002_sex/sex"].decode() == row.sex
        assert record["0002_sex/value"] == pytest.approx(row.value, abs=1e-5)
