"""DDI-Codebook 2.5 (and 1.x to 2.6, and that of IPUMS) as variables.

https://ddialliance.org/Specification/DDI-Codebook/2.5: the elements `var` of `dataDscr` with
`labl`, `catgry` (`catValu`, `labl`, the attribute `missing`), `invalrng` and `varFormat`. Valid
ranges and frequencies are passed over: many programs write there what occurs in the records.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.codebooks.variables import Variable
from rpexplore.errors import DomainError

ROOT = "codeBook"
_SYSTEM_MISSING = ("sysmiss", "system missing", ".")
_MOST_RANGES = 100  # of missing values of a variable; each is compared with all its categories
_KINDS = {"numeric": "numbers", "character": "text"}


def variables_of_ddi(content: bytes, name: str) -> list[Variable]:
    """The variables of the codebook; `name` is what errors call it.

    Raises `DomainError` for what is no DDI-Codebook, has no variable, or declares entities.
    """
    reader = _Reader(name)
    # Nothing outside is ever opened: expat leaves that to a handler, and here is none.
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = reader.refuse_entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        what = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
        raise DomainError(f"{name} is not well-formed XML ({what}); export it anew.") from None
    except (LookupError, ValueError):  # an encoding that Python does not know, or not by bytes
        raise DomainError(f"{name} is in an unknown encoding; save it in UTF-8.") from None
    if not reader.variables:
        raise DomainError(f"{name} describes no variables; export it with the part dataDscr.")
    return [_variable(said) for said in reader.variables]


@dataclass
class _Said:
    """A variable as the file describes it, texts unchanged.

    categories      (value, label, whether it is missing)
    missing         values that are missing
    missing_ranges  the same, both ends included
    """

    name: str
    label: str = ""
    form: str = ""
    categories: list[tuple[str, str, bool]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_ranges: list[tuple[str, str]] = field(default_factory=list)


class _Reader:
    """Takes the variables from the events of a parser."""

    def __init__(self, name: str) -> None:
        self.variables: list[_Said] = []
        self._name = name
        self._path: list[str] = []  # names of the open elements, without their namespaces
        self._text: list[str] | None = None  # of an element whose text is wanted
        self._value, self._label, self._is_missing = "", "", False

    def refuse_entity(self, *_: object) -> None:
        raise DomainError(
            f"{self._name} declares entities, which a codebook does not need and which can be made "
            "to exhaust memory or to read other files; save it without them."
        )

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        element = tag.rpartition(" ")[2]
        if not self._path and element not in (ROOT, "OAI-PMH"):  # as archives send it
            raise DomainError(
                f"{self._name} is XML, but no DDI-Codebook: it begins with {shown(element)} "
                f"instead of {ROOT}; export it as DDI-Codebook 2.5."
            )
        self._path.append(element)
        match self._path[-2:]:
            case [_, "var"]:
                self.variables.append(_Said(attributes.get("name") or attributes.get("ID", "")))
            case ["var", "catgry"]:
                self._value = self._label = ""
                self._is_missing = attributes.get("missing", "").upper() in ("Y", "YES", "TRUE")
            case ["invalrng", "item"] if "var" in self._path:
                self.variables[-1].missing.append(attributes.get("VALUE", ""))
            case ["invalrng", "range"] if "var" in self._path:
                ends = (attributes.get("min", "-inf"), attributes.get("max", "inf"))
                self.variables[-1].missing_ranges.append(ends)
            case ["var", "varFormat"]:
                self.variables[-1].form = attributes.get("type", "")
            case ["var", "labl"] | ["catgry", "labl" | "catValu"]:
                self._text = []

    def text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, _: str) -> None:
        path = self._path[-2:]
        self._path.pop()
        text = "".join(self._text or ())
        match path:
            # Of labels in several languages the first is taken.
            case ["var", "labl"]:
                self.variables[-1].label = self.variables[-1].label or text
            case ["catgry", "labl"]:
                self._label = self._label or text
            case ["catgry", "catValu"]:
                self._value = text.strip()
            case ["var", "catgry"]:
                category = (self._value, self._label, self._is_missing)
                self.variables[-1].categories.append(category)
            case _:
                return
        self._text = None


def _variable(said: _Said) -> Variable:
    is_number = said.form == "numeric"
    values: dict[str, str] = {}
    missing: dict[str, str] = {}
    problem = ""
    listed_missing = {_number_text(value) if is_number else value for value in said.missing}
    ranges = [tuple(map(_number, ends)) for ends in said.missing_ranges]
    if len(ranges) > _MOST_RANGES:
        problem = f"has more than {_MOST_RANGES} ranges of missing values"
    for written, label, is_missing in said.categories:
        value = _number_text(written) if is_number else written
        if not value or value.lower() in _SYSTEM_MISSING:
            continue
        before = values.get(value, missing.get(value))
        if before is not None and before.split() != label.split():
            problem = f"lists the value {shown(value)} twice, with two labels"
        is_missing |= value in listed_missing or _is_within(value, ranges[:_MOST_RANGES])
        (missing if is_missing else values)[value] = label
    for value in sorted(listed_missing - {*missing, ""}):
        missing[value] = ""
    kind = _KINDS.get(said.form, said.form or "any")
    return Variable(said.name, said.label, kind, values, missing, problem)


def _number_text(text: str) -> str:
    """A whole number without leading zeros, which records of numbers do not have; else as it is."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return text
    return ("-" if text != digits and digits.strip("0") else "") + (digits.lstrip("0") or "0")


def _is_within(value: str, ranges: list[tuple[float | None, ...]]) -> bool:
    """Whether a number is in one of the ranges; those with ends that are no numbers hold none."""
    number = _number(value)
    if number is None:
        return False
    return any(
        low is not None and high is not None and low <= number <= high for low, high in ranges
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number
