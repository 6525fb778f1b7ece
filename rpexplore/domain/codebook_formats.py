"""Codebooks in other people's formats: DDI, SPSS, Stata and SAS."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize
from xml.parsers import expat

from rpexplore.common.files import HEAD, file_bytes, known_encoding
from rpexplore.common.numbers import shown
from rpexplore.common.spreadsheets import spreadsheet_kind
from rpexplore.common.statistics_files import (
    PACKAGES,
    DictionaryVariable,
    dictionary,
    statistics_format,
)
from rpexplore.common.text import data_size
from rpexplore.domain.attribute import MISSING, Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import LEVELS
from rpexplore.domain.table_codebooks import codebook_of_px, codebook_of_sheets
from rpexplore.errors import DomainError

# ---- A codebook drafted from a dictionary of data: its variables, with their labels.
#
# The dictionary is what the makers of the data say of them: planning may read it, and no record.


_FEW_LABELS = 3  # up to so many may be those of the ends of a scale
_MOST_NAMED = 4


@dataclass(frozen=True)
class Variable:
    """A variable as a dictionary describes it.

    kind     the type of its values, in words
    values   label by value, "" for none, of those that are an answer, in their order
    missing  the same of those that stand for none: refused, not applicable
    groups   by value, the path of groups that an answer lies in, coarsest first
    overlap  whether the dictionary states groups that overlap, so that these are left out
    problem  why it can be no attribute, after its name; "" if it may
    is_weight  whether the dictionary says that records are weighted by it
    """

    name: str
    label: str = ""
    kind: str = "any"
    values: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overlap: bool = False
    problem: str = ""
    is_weight: bool = False


@dataclass(frozen=True)
class Draft:
    """A codebook as a dictionary suggests it.

    domain          the variables that list their values
    without_values  {name: type} of the others
    remarks         what to look at before it is used, in sentences
    missing         {name: {value: label}} of those that list none, but some that stand for no
                    answer: values that are given later have these as well
    weighted        by what records are weighted, says the file; one of the remarks, "" for none
    """

    domain: Domain
    without_values: Mapping[str, str]
    remarks: tuple[str, ...]
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    weighted: str = ""


def draft_of(variables: Iterable[Variable]) -> Draft:
    """The codebook of the variables that list two values or more, and what of it is doubtful.

    Values that stand for no answer stay, in the group `MISSING`: records have them. Labels that
    stand for two values are told apart by these.
    """
    attributes: dict[str, Attribute] = {}
    without_values: dict[str, str] = {}
    missing: dict[str, Mapping[str, str]] = {}
    with_gaps: list[str] = []
    overlapping: list[str] = []
    unusable: list[str] = []
    weights: list[str] = []
    for variable in variables:
        name = normalize("NFC", variable.name)
        if variable.is_weight:
            weights.append(shown(name))
        if len(variable.values) < 2:
            without_values[name] = variable.kind
            if variable.missing:
                missing[name] = variable.missing
            continue
        try:
            problem = "is there twice" if name in attributes else variable.problem
            if problem:
                raise DomainError(f"The variable {name!r} {problem}.")
            attributes[name] = _attribute(variable)
        except DomainError as error:
            unusable.append(str(error))
            continue
        if variable.overlap:
            overlapping.append(shown(name))
        if _has_gaps(variable):
            with_gaps.append(f"{shown(name)} ({', '.join(variable.values)})")
    remarks, weighted = [], ""
    if weights:
        weighted = (
            f"Records are weighted by {_named(weights)}, says the file. Tables count every record "
            f"once unless you plan weighted counts: --weight-column {weights[0]} --max-weight M."
        )
        remarks.append(weighted)
    if with_gaps:
        remarks.append(
            "Labels of a few values alone, between which there may be others; add those that "
            f"records can have: {_named(with_gaps)}."
        )
    if overlapping:
        remarks.append(
            "Groups that overlap, and so are left out; state levels for them in the codebook: "
            f"{_named(overlapping)}."
        )
    if missing:
        listed = [f"{shown(name)} ({', '.join(values)})" for name, values in missing.items()]
        remarks.append(
            "Values that stand for no answer, of those without listed values; give them as "
            f"missingValues: {_named(listed)}."
        )
    remarks += [f"Left out: {_named(unusable, '; ')}"] if unusable else []
    domain = Domain(tuple(attributes.values()))
    return Draft(domain, without_values, tuple(remarks), missing, weighted)


def _attribute(variable: Variable) -> Attribute:
    answers = [value for value in variable.values if value not in variable.missing]
    values = [*answers, *variable.missing]
    texts = [{**variable.values, **variable.missing}[value] for value in values]
    groups = [variable.groups.get(value, ()) for value in answers]
    groups += [(MISSING,)] * len(variable.missing)
    try:
        categories = Categories(tuple(values), _distinct(values, texts))
    except DomainError as error:
        raise DomainError(f"The variable {variable.name!r} cannot be used: {error}") from None
    return Attribute(
        variable.name,
        categories,
        _one_line(variable.label),
        tuple(groups),
    )


def _distinct(values: list[str], texts: list[str]) -> tuple[str, ...]:
    """A label for each value: what it is called, with itself behind where another is called so."""
    labels = [_one_line(text) or value for value, text in zip(values, texts, strict=True)]
    count = Counter(normalize("NFC", label) for label in labels)
    told_apart = [
        label if count[normalize("NFC", label)] == 1 or label == value else f"{label} ({value})"
        for value, label in zip(values, labels, strict=True)
    ]
    is_distinct = len({normalize("NFC", label) for label in told_apart}) == len(values)
    return tuple(told_apart if is_distinct else values)


def _one_line(text: str) -> str:
    """A label without line breaks, and without what files cannot hold."""
    kept = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(kept.split())


def _has_gaps(variable: Variable) -> bool:
    """Whether these are a few whole numbers with others between them."""
    if len(variable.values) > _FEW_LABELS:
        return False
    try:
        numbers = sorted(map(int, variable.values))
    except ValueError:
        return False
    return any(high - low > 1 for low, high in pairwise(numbers))


def _named(texts: list[str], joint: str = ", ") -> str:
    more = f"{joint}{len(texts) - _MOST_NAMED:,} more" if len(texts) > _MOST_NAMED else ""
    return f"{joint.join(texts[:_MOST_NAMED])}{more}"


# ---- Files whose dictionary a codebook is drafted from, by what they hold or their endings.


MOST_BYTES = 50_000_000
"""Of a codebook, in whatever format; files of records may be larger."""


def dictionary_kind(head: bytes, filename: str) -> str:
    """The kind of file in words, by its first bytes or its ending; "" for another kind."""
    if form := statistics_format(head, filename):
        return f"{PACKAGES[form]} file"
    if kind := spreadsheet_kind(filename):
        return kind
    if filename.lower().endswith(".px"):
        return "PX file"
    is_marked_up = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"<?xml", b"<codeBook"))
    return "DDI codebook" if is_marked_up or filename.lower().endswith(".xml") else ""


def draft_of_file(
    content: bytes | Path,
    filename: str,
    columns: Mapping[str, str] | None = None,
    language: str = "",
    encoding: str | None = None,
) -> Draft:
    """The codebook in a file of a kind that has one.

    Args:
        content: What it holds, or where it is.
        filename: What errors call it; its ending counts where there is no path.
        columns: Of a spreadsheet, what its columns are, as of `Domain.load`.
        language: Of labels, of a DDI codebook or a PX file in several: "de"; else its first.
        encoding: Of the texts of SPSS, Stata and SAS; None for the one that the file states.

    Raises:
        DomainError: For one that cannot be read. Of a file of records none is read.
    """
    head = _head(content, filename)
    if form := statistics_format(head, content.name if isinstance(content, Path) else filename):
        encoding = encoding and known_encoding(encoding, DomainError)
        return draft_of(variables_of_statistics_file(content, form, filename, encoding))
    refuse_large(len(content) if isinstance(content, bytes) else content.stat().st_size, filename)
    if isinstance(content, Path):
        ending, content = content.suffix, file_bytes(content, filename, DomainError)
    else:
        ending = Path(filename).suffix
    if spreadsheet_kind(f"codebook{ending}"):
        draft = codebook_of_sheets(content, f"{filename}", columns)
        return Draft(draft.domain, draft.without_values, draft.remarks)
    if ending.lower() == ".px":
        draft = codebook_of_px(content, filename, language)
        return Draft(draft.domain, draft.without_values, draft.remarks)
    return draft_of(variables_of_ddi(content, filename, language))


def refuse_large(size: int, filename: str) -> None:
    """Raise `DomainError` for more bytes than any codebook has."""
    if size > MOST_BYTES:
        raise DomainError(
            f"{filename} has {data_size(size)}, more than any codebook ({data_size(MOST_BYTES)}); "
            "leave out what is no attribute."
        )


def _head(content: bytes | Path, filename: str) -> bytes:
    if isinstance(content, bytes):
        return content[:HEAD]
    try:
        with content.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise DomainError(
            f"{filename} cannot be read ({error.strerror}); check the path."
        ) from None


# ---- DDI-Codebook 2.5 (and 1.x to 2.6, and that of IPUMS) as variables.
#
# https://ddialliance.org/Specification/DDI-Codebook/2.5: the elements `var` of `dataDscr` with
# `labl`, `catgry` (`catValu`, `labl`, the attribute `missing`), `catgryGrp`, `invalrng` and
# `varFormat`. Valid ranges and frequencies are passed over: many programs write there what occurs
# in the records. What becomes of everything else is in `codebook_properties`.


ROOT = "codeBook"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"  # as the parser writes xml:lang
_SYSTEM_MISSING = ("sysmiss", "system missing", ".")
_MOST_RANGES = 100  # of missing values of a variable; each is compared with all its categories
_MOST_IN_RANGE = 100  # numbers that are listed one by one
_MOST_DEEP = (
    20  # groups of categories within each other, on average; each category is in all of them
)
_KINDS = {"numeric": "numbers", "character": "text"}


def variables_of_ddi(content: bytes, name: str, language: str = "") -> list[Variable]:
    """The variables of the codebook; `name` is what errors call it.

    language: of labels that are there in several, "de"; the first where it is not among them

    Raises `DomainError` for what is no DDI-Codebook, has no variable, or declares entities.
    """
    reader = DdiReader(name, language)
    read_ddi(content, reader)
    return [_variable(said) for said in reader.variables]


def read_ddi(content: bytes, reader: "DdiReader") -> None:
    """Let a reader take what it wants of the codebook; raises as `variables_of_ddi`."""
    name = reader.name
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


@dataclass
class _Said:
    """A variable as the file describes it, texts unchanged.

    categories      (value, label, whether it is missing, its ID)
    groups          of categories: by ID, (label, whether its categories are missing, IDs of its
                    categories and of groups within it)
    missing         values that are missing
    missing_ranges  the same: first, whether it is one itself, last, whether that is
    """

    name: str
    label: str = ""
    form: str = ""
    is_weight: bool = False
    categories: list[tuple[str, str, bool, str]] = field(default_factory=list)
    groups: dict[str, tuple[str, bool, list[str]]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    missing_ranges: list[tuple[str, bool, str, bool]] = field(default_factory=list)


class DdiReader:
    """Takes the variables from the events of a parser."""

    def __init__(self, name: str, language: str) -> None:
        self.variables: list[_Said] = []
        self.name = name
        self.path: list[str] = []  # names of the open elements, without their namespaces
        self._text: list[str] | None = None  # of an element whose text is wanted
        self._value, self._label, self._is_missing, self._id = "", "", False, ""
        self._members: list[str] = []  # IDs of what is in a group
        self._language, self._is_wanted = language.lower(), False  # of the label that is read

    def refuse_entity(self, *_: object) -> None:
        raise DomainError(
            f"{self.name} declares entities, which a codebook does not need and which can be made "
            "to exhaust memory or to read other files; save it without them."
        )

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        element = tag.rpartition(" ")[2]
        if not self.path and element not in (ROOT, "OAI-PMH"):  # as archives send it
            raise DomainError(
                f"{self.name} is XML, but no DDI-Codebook: it begins with {shown(element)} "
                f"instead of {ROOT}; export it as DDI-Codebook 2.5."
            )
        self.path.append(element)
        match self.path[-2:]:
            case [_, "var"]:
                name = attributes.get("name") or attributes.get("ID", "")
                is_weight = attributes.get("wgt") == "wgt"
                self.variables.append(_Said(name, is_weight=is_weight))
            case ["var", "catgry" | "catgryGrp"]:
                self._value, self._label, self._id = "", "", attributes.get("ID", "")
                self._is_missing = attributes.get("missing", "").upper() in ("Y", "YES", "TRUE")
                listed = f"{attributes.get('catgry', '')} {attributes.get('catGrp', '')}"
                self._members = listed.split()
            case ["invalrng", "item"] if "var" in self.path:
                self.variables[-1].missing.append(attributes.get("VALUE", ""))
            case ["invalrng", "range"] if "var" in self.path:
                first, last = attributes.get("min"), attributes.get("max")
                ends = (
                    first or attributes.get("minExclusive", "-inf"), first is not None,
                    last or attributes.get("maxExclusive", "inf"), last is not None,
                )  # fmt: skip
                self.variables[-1].missing_ranges.append(ends)
            case ["var", "varFormat"]:
                self.variables[-1].form = attributes.get("type", "")
            case ["var" | "catgryGrp", "labl"] | ["catgry", "labl" | "catValu"]:
                self._text = []
                stated = attributes.get(_LANGUAGE, "").lower()
                self._is_wanted = bool(self._language) and stated.split("-")[0] == self._language

    def text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, _: str) -> None:
        path = self.path[-2:]
        self.path.pop()
        text = "".join(self._text or ())
        match path:
            # Of labels in several languages the wanted one is taken, or else the first.
            case ["var", "labl"]:
                before = "" if self._is_wanted else self.variables[-1].label
                self.variables[-1].label = before or text
            case ["catgry" | "catgryGrp", "labl"]:
                self._label = text if self._is_wanted else self._label or text
            case ["catgry", "catValu"]:
                self._value = text.strip()
            case ["var", "catgry"]:
                category = (self._value, self._label, self._is_missing, self._id)
                self.variables[-1].categories.append(category)
            case ["var", "catgryGrp"]:
                groups = self.variables[-1].groups
                name = self._id or f"group {len(groups) + 1}"
                groups[name] = (self._label, self._is_missing, self._members)
            case _:
                return
        self._text = None


def _variable(said: _Said) -> Variable:
    is_number = said.form == "numeric"
    values: dict[str, str] = {}
    missing: dict[str, str] = {}
    problem = ""
    listed_missing = {_number_text(value) if is_number else value for value in said.missing}
    ranges = [
        (_end(first, has_first, math.inf), _end(last, has_last, -math.inf))
        for first, has_first, last, has_last in said.missing_ranges
    ]
    if len(ranges) > _MOST_RANGES:
        problem = f"has more than {_MOST_RANGES} ranges of missing values"
    groups = _categories_of_groups(said)
    if groups is None:
        groups = {group: {} for group in said.groups}
        problem = f"has groups of categories that lie more than {_MOST_DEEP} deep in each other"
    in_missing = {
        category for name, (_, is_missing, _) in said.groups.items() if is_missing
        for category in groups[name]
    }  # fmt: skip
    ids: dict[str, str] = {}
    for written, label, is_missing, identifier in said.categories:
        value = _number_text(written) if is_number else written
        if not value or value.lower() in _SYSTEM_MISSING:
            continue
        before = values.get(value, missing.get(value))
        if before is not None and before.split() != label.split():
            problem = f"lists the value {shown(value)} twice, with two labels"
        is_missing |= value in listed_missing or _is_within(value, ranges[:_MOST_RANGES])
        is_missing |= identifier in in_missing
        (missing if is_missing else values)[value] = label
        if identifier and not is_missing:
            ids[identifier] = value
    if is_number:  # as those of SPSS, Stata and SAS; what is no number stays behind
        values = dict(sorted(values.items(), key=lambda item: _place(item[0])))
    for value in sorted(listed_missing - {*missing, ""}):
        missing[value] = ""
    if len(values) < 2:
        missing = dict.fromkeys(_whole_numbers_in(ranges[:_MOST_RANGES]), "") | missing
    kind = _KINDS.get(said.form, said.form or "any")
    paths = _paths_of_groups(said, groups, ids)
    more = paths or {}, paths is None, problem, said.is_weight
    return Variable(said.name, said.label, kind, values, missing, *more)


def _categories_of_groups(said: _Said) -> dict[str, dict[str, None]] | None:
    """By ID of a group, the IDs of all categories in it and in the groups within it, in order.

    None if there are more of them, one with another, than groups of some depth can have.
    """
    categories = {identifier for _, _, _, identifier in said.categories}
    within: dict[str, dict[str, None]] = {}
    left = _MOST_DEEP * (len(categories) + sum(len(group[2]) for group in said.groups.values()))
    for group in said.groups:
        members: dict[str, None] = {}
        waiting, seen = [group], {group}  # a group may be said to be in itself
        while waiting:
            for one in said.groups[waiting.pop()][2]:
                left -= 1
                if left < 0:
                    return None
                if one in categories:
                    members[one] = None
                elif one in said.groups and one not in seen:
                    seen.add(one)
                    waiting.append(one)
        within[group] = members
    return within


def _paths_of_groups(
    said: _Said, categories: Mapping[str, Mapping[str, None]], values: Mapping[str, str]
) -> dict[str, tuple[str, ...]] | None:
    """By value, the path of groups that it lies in, coarsest first; None where groups overlap.

    Args:
        categories: As of `_categories_of_groups`.
        values: The answers, by the IDs of their categories.
    """
    members = {
        group: {values[one] for one in listed if one in values}
        for group, listed in categories.items()
    }
    paths: dict[str, tuple[str, ...]] = {}
    known: set[tuple[str, ...]] = set()
    # The larger first: what lies in a smaller one then has its path already.
    for group in sorted(filter(members.get, members), key=lambda group: -len(members[group])):
        above = {paths.get(value, ()) for value in members[group]}
        name = _one_line(said.groups[group][0]).replace(LEVELS, " / ") or group
        path = (*next(iter(above)), name)
        if path in known:
            path = (*path[:-1], f"{name} ({group})")
        if len(above) > 1 or path in known:
            return None
        known.add(path)
        paths |= dict.fromkeys(members[group], path)
    return paths


def _place(value: str) -> tuple[bool, Decimal]:
    """By what numbers are sorted; whatever is none comes behind them, as it stands."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    return (False, number) if number.is_finite() else (True, Decimal(0))


def _whole_numbers_in(ranges: Sequence[tuple[float | None, float | None]]) -> Iterator[str]:
    """The whole numbers in ranges of missing values; none of ranges that are open or long."""
    for low, high in ranges:
        if low is not None and high is not None and 0 <= high - low < _MOST_IN_RANGE:
            yield from map(str, range(math.ceil(low), math.floor(high) + 1))


def _number_text(text: str) -> str:
    """A whole number without leading zeros, which records of numbers do not have; else as it is."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return text
    return ("-" if text != digits and digits.strip("0") else "") + (digits.lstrip("0") or "0")


def _end(text: str, is_included: bool, inwards: float) -> float | None:
    """The outermost number of a range; None for an end that is no number."""
    number = _number(text)
    return number if number is None or is_included else math.nextafter(number, inwards)


def _is_within(value: str, ranges: list[tuple[float | None, float | None]]) -> bool:
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


# ---- The dictionary of a file of SPSS, Stata or SAS as variables; none of its records is read.


def variables_of_statistics_file(
    content: bytes | Path, form: str, name: str, encoding: str | None = None
) -> list[Variable]:
    """The variables in the dictionary of the file.

    Args:
        content: What it holds, or where it is.
        form: As of `statistics_format`.
        name: What errors call it.
        encoding: As of `dictionary`.

    Raises:
        DomainError: For a file that cannot be read, or without pyreadstat.
    """
    package = PACKAGES[form]
    variables = dictionary(content, form, name, DomainError, encoding)
    return [_statistics_variable(said, package) for said in variables]


def _statistics_variable(said: DictionaryVariable, package: str) -> Variable:
    values: dict[str, str] = {}
    missing: dict[str, str] = {}
    for value in _in_order(said):
        listed = missing if _is_missing(value, said) else values
        text = value_text(value, is_text=said.kind == "text", package=package)
        if text.strip():  # blanks are what files say for nothing at all
            listed[text] = said.labels.get(value, "")
    if len(values) < 2 and said.kind in ("whole numbers", "numbers"):
        missing = dict.fromkeys(_whole_numbers_in(said.missing), "") | missing
    kind = f"{said.kind}, one with a label" if len(values) == 1 else said.kind
    return Variable(said.name, said.label, kind, values, missing, is_weight=said.is_weight)


def value_text(value: Any, *, is_text: bool, package: str) -> str:
    """A value as a codebook has it, and as records are compared with it."""
    if is_text:
        return value
    if isinstance(value, str):  # an extended missing value
        return f".{value}" if package == "Stata" else f".{value.upper()}"
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) <= 2**53)
    return str(int(value)) if is_whole else repr(float(value))  # of NumPy or not


def _in_order(said: DictionaryVariable) -> list[Any]:
    """All values that have a label or are missing by themselves: numbers by size, then texts."""
    single = [first for first, last in said.missing if first == last]
    listed = dict.fromkeys((*said.labels, *single))
    if said.kind == "text":
        return list(listed)
    numbers = sorted(
        value for value in listed if not isinstance(value, str) and math.isfinite(value)
    )
    return [*numbers, *sorted(value for value in listed if isinstance(value, str))]


def _is_missing(value: Any, said: DictionaryVariable) -> bool:
    if isinstance(value, str) and said.kind != "text":
        return True
    return any(first <= value <= last for first, last in said.missing)
