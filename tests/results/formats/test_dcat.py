"""The catalogue record, read as linked data by rdflib, which knows the terms of DCAT."""

import rdflib
from rdflib.namespace import DCAT, DCTERMS, FOAF, RDF, RDFS, SKOS

HERE = "https://example.org/atlas/"
DQV = rdflib.Namespace("http://www.w3.org/ns/dqv#")


def read(exported) -> rdflib.Graph:
    return rdflib.Graph().parse(exported.folder / "dcat.jsonld", format="json-ld", publicID=HERE)


def test_the_record_says_what_is_guaranteed_and_where_every_table_is(exported):
    graph = read(exported)
    (dataset,) = graph.subjects(RDF.type, DCAT.Dataset)
    provenance = graph.value(dataset, DCTERMS.provenance)
    assert str(graph.value(provenance, RDFS.label)) == exported.results.guarantee
    rho = graph.value(graph.value(dataset, DQV.hasQualityMeasurement), DQV.value)
    plan = exported.plan
    assert plan.rho <= rho.toPython() < plan.rho * (1 + 1e-15)
    assert str(graph.value(dataset, DCTERMS.title)) == "Atlas of persons"
    distributions = list(graph.objects(dataset, DCAT.distribution))
    assert len(distributions) == len(exported.results.items)
    for distribution in distributions:
        address = str(graph.value(distribution, DCAT.downloadURL))
        file = exported.folder / address.removeprefix(HERE)
        assert graph.value(distribution, DCAT.byteSize).toPython() == file.stat().st_size


def test_every_term_is_one_of_its_vocabulary(exports):
    """rdflib lists the terms of DCAT, Dublin Core, FOAF, RDFS and SKOS."""
    graph = read(exports["released"])
    terms = {*graph.predicates(), *graph.objects(None, RDF.type)}
    judged = [
        (term, vocabulary)
        for term in terms
        for vocabulary in (DCAT, DCTERMS, FOAF, RDFS, SKOS)
        if term.startswith(str(vocabulary))
    ]
    assert len(judged) > 15
    assert [term for term, vocabulary in judged if term not in vocabulary] == []
