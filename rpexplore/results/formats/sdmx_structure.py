"""The structure of a cube of released tables, as an SDMX-ML 3.0 message.

Codelists, concepts, a data structure and a dataflow, all maintained by one agency. The guarantee is
the description of the dataflow.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree

from rpexplore.results.formats.export_columns import Column
from rpexplore.results.formats.export_figures import STATUSES
from rpexplore.results.formats.languages import Language

VERSION = "1.0.0"
TOTAL = "_T"  # of all values of an attribute, also where a table does not have it
FREQ, TIME_PERIOD, OBS_VALUE, OBS_STATUS, CONF_STATUS = (
    "FREQ", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS",
)  # fmt: skip
UNIT_MEASURE, UNIT_MULT, DECIMALS = "UNIT_MEASURE", "UNIT_MULT", "DECIMALS"
FREE, UNITS = "F", "0"
_NAMESPACES = {
    prefix: f"http://www.sdmx.org/resources/sdmxml/schemas/v3_0/{name}"
    for prefix, name in (("mes", "message"), ("str", "structure"), ("com", "common"))
}
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_URN = "urn:sdmx:org.sdmx.infomodel"
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


Code: TypeAlias = tuple[str, str, str]
"""Code, label ("" for none) and attribute of a value or group: a level is an attribute here."""


@dataclass(frozen=True)
class Dimension:
    """An attribute as a dimension, its levels with it.

    codes    each value or group -> its identifier in the code list
    parents  identifier -> that of the group that it lies directly within, of those that lie in one
    label    from an attribute and a label of the tables to that in the language of the message
    """

    id: str
    name: str
    codes: Mapping[Code, str]
    parents: Mapping[str, str]
    label: Callable[[str, str], str]


@dataclass(frozen=True)
class Cube:
    """What the structure of a cube is made from.

    agency    who maintains it
    id        of the cube, in small letters
    measures  the columns of numbers, and of notes, by their identifiers, OBS_VALUE first
    frequency of their times, as SDMX writes it: "A", "Q"; "" where observations have no time
    units     what is counted: identifier -> name
    decimals  how many decimals figures have, of all tables
    may_miss  whether some figures are not there
    language  of all names
    """

    agency: str
    id: str
    title: str
    description: str
    prepared: str
    dimensions: Sequence[Dimension]
    measures: Mapping[str, Column]
    frequency: str
    units: Mapping[str, str]
    decimals: Sequence[int]
    may_miss: bool
    language: Language

    @property
    def flags(self) -> dict[str, tuple[str, Mapping[str, str]]]:
        """Name and codes of each attribute of observations that has a code list."""
        text = self.language.text
        decimals = {
            str(number): text("one_decimal" if number == 1 else "n_decimals", n=number)
            for number in self.decimals
        }
        statuses = {code: text(f"status_{code}") for code in STATUSES}
        return {
            UNIT_MEASURE: (text("unit_of_measure"), self.units),
            DECIMALS: (text("decimals"), decimals),
            UNIT_MULT: (text("unit_multiplier"), {UNITS: text("units")}),
            OBS_STATUS: (text("observation_status"), statuses),
            CONF_STATUS: (text("confidentiality"), {FREE: text("free")}),
        }

    @property
    def dataflow(self) -> str:
        """What files of observations name: "AGENCY:ID(1.0.0)"."""
        return f"{self.agency}:{self._id('DF')}({VERSION})"

    def _id(self, kind: str) -> str:
        return f"{kind}_{self.id}".upper()


def structure_message(cube: Cube) -> bytes:
    """The message as an XML file."""
    return _Message(cube).bytes()


class _Message:
    def __init__(self, cube: Cube) -> None:
        self._cube = cube
        self._concepts = cube._id("CS")
        self._text = cube.language.text

    def bytes(self) -> bytes:
        for prefix, namespace in _NAMESPACES.items():
            ElementTree.register_namespace(prefix, namespace)
        cube = self._cube
        root = ElementTree.Element(_tag("mes:Structure"))
        header = _add(root, "mes:Header")
        _add(header, "mes:ID", cube.id.upper())
        _add(header, "mes:Test", "false")
        _add(header, "mes:Prepared", cube.prepared)
        _add(header, "mes:Sender", id=cube.agency.replace(".", "_"))
        structures = _add(root, "mes:Structures")
        self._add_dataflow(_add(structures, "str:Dataflows"))
        codelists = _add(structures, "str:Codelists")
        for dimension in cube.dimensions:
            codes = [(TOTAL, self._text("total"), "", "")]
            for (code, label, attribute), identifier in dimension.codes.items():
                stated = code if label and code != identifier else ""
                parent = dimension.parents.get(identifier, "")
                codes.append(
                    (identifier, dimension.label(attribute, label or code), stated, parent)
                )
            self._add_codelist(codelists, dimension.id, dimension.name, codes)
        listed = cube.flags
        if cube.frequency:
            frequency = self._text(f"frequency_{cube.frequency}")
            listed[FREQ] = self._text("frequency"), {cube.frequency: frequency}
        for flag, (name, meanings) in listed.items():
            codes = [(code, meaning, "", "") for code, meaning in meanings.items()]
            self._add_codelist(codelists, flag, name, codes)
        self._add_concepts(_add(structures, "str:ConceptSchemes"))
        self._add_data_structure(_add(structures, "str:DataStructures"))
        ElementTree.indent(root, " ")
        text = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        return text + b"\n"

    def _add_dataflow(self, parent: ElementTree.Element) -> None:
        cube = self._cube
        dataflow = self._maintained(parent, "str:Dataflow", cube._id("DF"), cube.title)
        self._add_words(dataflow, "com:Description", cube.description)
        structure = f"{_URN}.datastructure.DataStructure={cube.agency}:{cube._id('DSD')}"
        _add(dataflow, "str:Structure", f"{structure}({VERSION})")

    def _add_codelist(
        self,
        parent: ElementTree.Element,
        concept: str,
        name: str,
        codes: Sequence[tuple[str, str, str, str]],
    ) -> None:
        """codes: identifier, name, description and parent ("" for none) of each."""
        codelist = self._maintained(parent, "str:Codelist", f"CL_{concept}", name)
        for identifier, meaning, description, whole in codes:
            code = _add(codelist, "str:Code", id=identifier)
            self._add_words(code, "com:Name", meaning)
            if description:
                self._add_words(code, "com:Description", description)
            if whole:
                _add(code, "str:Parent", whole)

    def _add_concepts(self, parent: ElementTree.Element) -> None:
        cube = self._cube
        scheme = self._maintained(parent, "str:ConceptScheme", self._concepts, cube.title)
        concepts = [(dimension.id, dimension.name, "") for dimension in cube.dimensions]
        if cube.frequency:
            concepts += [
                (FREQ, self._text("frequency"), ""),
                (TIME_PERIOD, self._text("time_period"), ""),
            ]
        concepts += [(id, column.name, column.meaning) for id, column in cube.measures.items()]
        concepts += [(flag, name, "") for flag, (name, _) in cube.flags.items()]
        for identifier, name, description in concepts:
            concept = _add(scheme, "str:Concept", id=identifier)
            self._add_words(concept, "com:Name", name)
            if description:
                self._add_words(concept, "com:Description", description)

    def _add_data_structure(self, parent: ElementTree.Element) -> None:
        cube = self._cube
        structure = self._maintained(parent, "str:DataStructure", cube._id("DSD"), cube.title)
        components = _add(structure, "str:DataStructureComponents")
        dimensions = _add(components, "str:DimensionList", id="DimensionDescriptor")
        ids = [FREQ] * bool(cube.frequency) + [dimension.id for dimension in cube.dimensions]
        for position, identifier in enumerate(ids, start=1):
            self._add_coded(
                _add(dimensions, "str:Dimension", id=identifier, position=str(position)),
                identifier,
            )
        if cube.frequency:
            time = _add(dimensions, "str:TimeDimension", id=TIME_PERIOD)
            self._add_concept_identity(time, TIME_PERIOD)
            local = _add(time, "str:LocalRepresentation")
            _add(local, "str:TextFormat", textType="ObservationalTimePeriod")
        attributes = _add(components, "str:AttributeList", id="AttributeDescriptor")
        for identifier in [id for id in cube.measures if id != OBS_VALUE]:
            attribute = _add(attributes, "str:Attribute", id=identifier, usage="optional")
            self._add_number_or_text(attribute, identifier)
            self._add_to_observation(attribute)
        for flag in cube.flags:
            attribute = _add(attributes, "str:Attribute", id=flag, usage="mandatory")
            self._add_coded(attribute, flag)
            self._add_to_observation(attribute)
        usage = "optional" if cube.may_miss else "mandatory"
        measures = _add(components, "str:MeasureList", id="MeasureDescriptor")
        measure = _add(measures, "str:Measure", id=OBS_VALUE, usage=usage)
        self._add_number_or_text(measure, OBS_VALUE)

    def _maintained(
        self, parent: ElementTree.Element, tag: str, identifier: str, name: str
    ) -> ElementTree.Element:
        element = _add(parent, tag, id=identifier, agencyID=self._cube.agency, version=VERSION)
        self._add_words(element, "com:Name", name)
        return element

    def _add_words(self, parent: ElementTree.Element, tag: str, text: str) -> None:
        _add(parent, tag, text).set(_LANG, self._cube.language.code)

    def _add_concept_identity(self, parent: ElementTree.Element, concept: str) -> None:
        scheme = f"{_URN}.conceptscheme.Concept={self._cube.agency}:{self._concepts}({VERSION})"
        _add(parent, "str:ConceptIdentity", f"{scheme}.{concept}")

    def _add_coded(self, parent: ElementTree.Element, concept: str) -> None:
        self._add_concept_identity(parent, concept)
        codelist = f"{_URN}.codelist.Codelist={self._cube.agency}:CL_{concept}({VERSION})"
        _add(_add(parent, "str:LocalRepresentation"), "str:Enumeration", codelist)

    def _add_number_or_text(self, parent: ElementTree.Element, concept: str) -> None:
        self._add_concept_identity(parent, concept)
        kind = "Double" if self._cube.measures[concept].is_number else "String"
        _add(_add(parent, "str:LocalRepresentation"), "str:TextFormat", textType=kind)

    def _add_to_observation(self, attribute: ElementTree.Element) -> None:
        _add(_add(attribute, "str:AttributeRelationship"), "str:Observation")


def _tag(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


def _add(
    parent: ElementTree.Element, tag: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, _tag(tag), attributes)
    if text:
        element.text = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
    return element
