"""Where the columns of records of fixed width are: the positions that a DDI codebook states."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

from rpexplore.common.files import HEAD, file_bytes
from rpexplore.common.numbers import shown
from rpexplore.domain.codebook_formats import DdiReader, dictionary_kind, read_ddi, refuse_large
from rpexplore.errors import DomainError

_MOST_PLACES = 1_000_000  # of a record; those of the widest surveys have some 10,000
_MOST_DECIMALS = 30


@dataclass(frozen=True)
class Place:
    """Where a column stands in the line of a record, counted from 0.

    start, end  the first place, and the one behind the last
    decimals    how many of the last digits stand behind a decimal point that is not written
    """

    start: int
    end: int
    decimals: int = 0

    @property
    def text(self) -> str:
        """As codebooks count: "7", "12–14", "12–14 (2 decimals)"."""
        first, last = self.start + 1, self.end
        places = str(first) if first == last else f"{first}–{last}"
        if not self.decimals:
            return places
        return f"{places} ({self.decimals} decimal{'s' * (self.decimals > 1)})"


@dataclass(frozen=True)
class RecordLayout:
    """The columns of records that are lines of one width.

    names   of the columns, in the order of the codebook and in the Unicode form NFC; one can be
            there twice, and is then of no use
    places  of each column; they may overlap, as a date and its year do
    width   of each line, without its end: up to the last place that the codebook states
    weight  the column by which the codebook says that records are weighted, the first of several;
            "" for none
    stated  the name of the codebook's file and its SHA-256; none of a layout made otherwise
    """

    names: tuple[str, ...]
    places: tuple[Place, ...]
    width: int
    weight: str = ""
    stated: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> "RecordLayout":
        """The layout that a DDI codebook states; raises `DomainError` where it states none."""
        path = Path(path)
        name = f"The codebook {str(path)!r}"
        content = file_bytes(path, name, DomainError)
        if dictionary_kind(content[:HEAD], path.name) != "DDI codebook":
            raise DomainError(
                f"{name} is no DDI codebook (.xml), which alone states the positions of columns."
            )
        refuse_large(len(content), name)
        layout = layout_of_ddi(content, name)
        if layout is None:
            raise DomainError(
                f"{name} states no positions of columns (location with StartPos and EndPos); "
                "export it with the data in fixed width, or save the records as CSV."
            )
        digest = hashlib.sha256(content).hexdigest()
        return replace(layout, stated={"file": path.name, "sha256": digest})

    @property
    def by_name(self) -> Mapping[str, Place]:
        """The place of each column that is there."""
        return dict(zip(self.names, self.places, strict=True))


def layout_of_ddi(content: bytes, name: str) -> RecordLayout | None:
    """The layout of the records that a DDI codebook describes; None where it states no positions.

    https://ddialliance.org/Specification/DDI-Codebook/2.5: `location` (StartPos, EndPos, width,
    RecSegNo, fileid) and `dcml` of `var`, `fileStrc` of `fileTxt`, as IPUMS writes them.

    name: what errors call the codebook

    Raises:
        DomainError: For what is no DDI-Codebook, for positions that contradict each other, and for
            records whose lines do not all have the same columns.
    """
    reader = _LayoutReader(name)
    read_ddi(content, reader)
    if not reader.locations:
        return None
    kind = reader.structure
    if kind not in ("", "rectangular"):
        raise _not_rectangular(name, f"the structure {shown(kind)}")
    for what, values in reader.told_apart.items():
        if len(values) > 1 and not (what == "types of records" and kind):
            raise _not_rectangular(name, f"{len(values)} {what}")
    names, places = [], []
    for variable, location, decimals in reader.locations:
        names.append(normalize("NFC", variable))
        places.append(_place(f"{name}, variable {shown(variable)}", location, decimals))
    weights = (normalize("NFC", said.name) for said in reader.variables if said.is_weight)
    weight = next((weight for weight in weights if weight in names), "")
    return RecordLayout(tuple(names), tuple(places), max(place.end for place in places), weight)


def _not_rectangular(name: str, found: str) -> DomainError:
    return DomainError(
        f"{name} describes lines that do not all have the same columns ({found}); order the "
        "records as a rectangular extract, in which each line is one person with the columns of "
        "the household, or save those of one kind as CSV."
    )


class _LayoutReader(DdiReader):
    """Takes the positions of the variables.

    locations   name of the variable, attributes of its location, decimals as stated
    structure   of the file, as stated: "rectangular"; "" where it is not
    told_apart  what lines may differ by -> what there is of it
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.locations: list[tuple[str, Mapping[str, str], str]] = []
        self.structure = ""
        self.told_apart: defaultdict[str, set[str]] = defaultdict(set)
        self._decimals, self._has_location = "", False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        match self.path[-2:]:
            case [_, "var"]:
                self._decimals, self._has_location = attributes.get("dcml", ""), False
                if kind := attributes.get("rectype"):
                    self.told_apart["types of records"].add(kind)
            case ["fileTxt", "fileStrc"]:
                self.structure = attributes.get("type", "").strip().lower() or self.structure
            case ["var", "location"] if "StartPos" in attributes:
                variable = self.variables[-1].name
                if self._has_location:
                    raise DomainError(
                        f"{self.name}, variable {shown(variable)}: it has two locations; leave "
                        "the one in the file of records."
                    )
                self._has_location = True
                self.locations.append((variable, attributes, self._decimals))
                self.told_apart["lines of a record"].add(attributes.get("RecSegNo") or "1")
                if file := attributes.get("fileid"):
                    self.told_apart["files"].add(file)


def _place(whose: str, location: Mapping[str, str], decimals: str) -> Place:
    start = _number(whose, "StartPos", location["StartPos"], 1, _MOST_PLACES)
    width, end = location.get("width", ""), location.get("EndPos", "")
    if not (width or end):
        raise DomainError(f"{whose}: its location needs EndPos or width; state one of them.")
    last = _number(whose, "EndPos", end, start, _MOST_PLACES) if end else None
    if width:
        n_places = _number(whose, "width", width, 1, _MOST_PLACES)
        if last is not None and n_places != last - start + 1:
            raise DomainError(
                f"{whose}: its width {n_places} is not that of the positions {start} to {last}; "
                "correct one of them."
            )
        last = start + n_places - 1
    assert last is not None
    behind_point = _number(whose, "dcml", decimals, 0, _MOST_DECIMALS) if decimals.strip() else 0
    return Place(start - 1, last, behind_point)


def _number(whose: str, what: str, text: str, least: int, most: int) -> int:
    digits = text.strip()
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else -1
    if not least <= number <= most:
        raise DomainError(
            f"{whose}: {what} must be a whole number from {least:,} to {most:,}, got "
            f"{shown(text)!r}; correct it."
        )
    return number
