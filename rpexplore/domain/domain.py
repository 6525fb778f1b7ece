"""Domain: an ordered set of attributes. Public knowledge; holds no records."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import normalize

import numpy as np

from rpexplore.common.files import file_bytes, utf8_text, write_whole
from rpexplore.common.numbers import read_only, shown, shown_few, whole_number
from rpexplore.common.spreadsheets import spreadsheet_kind
from rpexplore.common.text import as_seen, begins_formula, joined
from rpexplore.domain import codebook, codebook_rows
from rpexplore.domain.amounts import WEIGHT_DECIMALS, Amounts
from rpexplore.domain.attribute import MISSING, Attribute, Values
from rpexplore.domain.categories import Categories
from rpexplore.domain.dates import reading_of
from rpexplore.domain.levels import AT
from rpexplore.domain.ordered_values import NOT_STATED, Bins, Dates, Integers
from rpexplore.domain.stated_schema import IMPOSSIBLE, PENDING, schema_in_json
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.domain.values import (
    ImpossibleCombination,
    describe_combinations,
    stated_combinations,
)
from rpexplore.errors import DomainError

AttributeSet: TypeAlias = Iterable[str] | str  # names, in any order; a text is one name
AttributeIndices: TypeAlias = tuple[int, ...]  # positions in the domain, ascending
CSV_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
"""Of codebooks as text with columns."""


def subsets(attributes: Sequence[int]) -> Iterator[AttributeIndices]:
    """All subsets of some attributes, each in their order; the smaller ones first."""
    for order in range(len(attributes) + 1):
        yield from combinations(attributes, order)


@dataclass(frozen=True)
class Domain:
    """Ordered attributes with distinct names. There may be none yet; then nothing can be planned.

    impossible  combinations of values that no record has, each as the selections of `answer`:
                [{"age": "0..14", "marital_status": "Married"}]. Estimates and synthetic records
                hold them; planning does not use them, and the noise is the same.

    Raises `DomainError` for a name used twice, for a combination of values that are not there, and
    for combinations that leave no record possible.

    Example:
        >>> Domain.from_sizes({"age": 100, "sex": 2}).names
        ('age', 'sex')
    """

    attributes: tuple[Attribute, ...]
    # Given as mappings or combinations; kept as the latter.
    impossible: tuple[ImpossibleCombination, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        seen: set[str] = set()
        looks: dict[str, str] = {}
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise DomainError(
                    f"A domain is made of Attributes, got {type(attribute).__name__}; "
                    "Domain.from_sizes takes names and sizes."
                )
            if attribute.name in seen:
                raise DomainError(
                    f"The attribute {attribute.name!r} is in the domain twice; rename one of them."
                )
            seen.add(attribute.name)
            other = looks.setdefault(as_seen(attribute.name), attribute.name)
            if other != attribute.name:
                raise DomainError(
                    f"The attribute {attribute.name!a} looks like {other!a}, from which "
                    "it differs by signs that cannot be seen; rename one of them."
                )
        self._check_levels()
        object.__setattr__(self, "impossible", stated_combinations(self, self.impossible))
        if self.impossible:
            self.structural_zeros.possible_record()

    @cached_property
    def amounts(self) -> AttributeIndices:
        """The attributes of amounts, weights among them."""
        return tuple(
            index
            for index, attribute in enumerate(self.attributes)
            if isinstance(attribute.values, Amounts)
        )

    @cached_property
    def weights(self) -> AttributeIndices:
        """The attributes of survey weights, which are among those of amounts."""
        return tuple(
            index
            for index in self.amounts
            if isinstance(values := self.attributes[index].values, Amounts) and values.are_weights
        )

    def product_unit(self, attributes: Collection[int]) -> int:
        """`Amounts.product_unit` of the amounts and weights among some attributes; 1 without."""
        units = [1]
        for index in set(self.amounts).difference(self.weights).intersection(attributes):
            amounts = self.attributes[index].values
            assert isinstance(amounts, Amounts)
            for other in set(self.weights).intersection(attributes):
                weights = self.attributes[other].values
                assert isinstance(weights, Amounts)
                units.append(amounts.product_unit(weights))
        return math.prod(units)

    def or_rounder_limits(self, attributes: Collection[int]) -> str:
        """What else makes sums of amounts times weights smaller, as part of a remedy; "" nothing.

        Ranges of other lengths have no such unit of products as their decimals would allow.
        """
        amounts = set(self.amounts).intersection(attributes)
        weights = [self.attributes[index].values for index in amounts.intersection(self.weights)]
        if len(amounts) < 2 or not weights or not isinstance(weights[0], Amounts):
            return ""
        most = 10 ** weights[0].decimals
        if self.product_unit(attributes) == most:
            return ""
        return f", or limits that are multiples of {most:,} smallest steps apart"

    def _check_levels(self) -> None:
        """Raise `DomainError` for a level that is not behind the attribute it is of."""
        sizes = {one.name: one.size for one in self.attributes if not one.of}
        for before, attribute in pairwise((None, *self.attributes)):
            is_level = bool(attribute and attribute.of)
            if before and before.of and not is_level:
                raise DomainError(
                    f"The attribute {attribute and attribute.name!r} must stand before all levels."
                )
            if attribute and is_level and sizes.get(attribute.of) != len(attribute.index_of_values):
                raise DomainError(
                    f"{attribute.name!r} must be a level of another attribute, and have an index "
                    f"for each value of it, got {attribute.of!r}."
                )

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, int]) -> "Domain":
        """A domain of attributes with the values 0 … size−1, from {name: size}."""
        for name, size in sizes.items():
            if (whole_number(size) or 0) < 1:
                raise DomainError(
                    f"The size of attribute {name!r} must be a whole number of at least 1, "
                    f"got {size!r}."
                )
        return cls(
            tuple(Attribute(name, Integers(0, int(size) - 1)) for name, size in sizes.items())
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        resource: str | None = None,
        columns: Mapping[str, str] | None = None,
        encoding: str | None = None,
        language: str = "",
        pending: Collection[str] = (),
    ) -> "Domain":
        """Read a codebook: Frictionless Table Schema (.json) or attribute,value,label (.csv).

        Or what the dictionary of a DDI codebook or a file of SPSS, Stata or SAS says: its variables
        with two labelled values or more. None of its records is read. Or a spreadsheet (.xlsx,
        .ods), a PX file, or metadata of CSV on the Web (.json).

        resource: the table of a Data Package, where it holds several
        columns: what columns of a CSV file are, if they have other names: "attribute", "value",
        "label", "group" -> its name
        encoding: of text files, such as "windows-1252"; UTF-8 if left out, or as a byte order mark
        says; of SPSS, Stata and SAS as of `FileSource`
        language: of labels, of a DDI codebook or a PX file in several: "de"; the first if left out
        pending: attributes whose values are given later, which a Table Schema need not list

        Raises `DomainError` if the file is missing, of another kind, or not usable.
        """
        from rpexplore.domain.codebook_formats import dictionary_kind, draft_of_file

        kind = dictionary_kind(b"", Path(path).name)
        has_columns = Path(path).suffix.lower() in CSV_ENDINGS or spreadsheet_kind(str(path))
        if columns is not None and not has_columns:
            raise DomainError(
                f"{Path(path).name} has no columns that need other names; those of a CSV file or a "
                "spreadsheet can."
            )
        if kind:
            if resource is not None:
                raise DomainError(f"{Path(path).name} is no Data Package; name none of its tables.")
            source = f"The codebook {str(path)!r}"
            draft = draft_of_file(Path(path), source, columns, language, encoding)
            if not draft.domain.attributes:
                raise DomainError(
                    f"The {kind} {str(path)!r} has no variable with two labelled values or more; "
                    "write a codebook for it, or begin one on the page Data."
                )
            return draft.domain
        source = f"The codebook {str(path)!r}"
        text = utf8_text(file_bytes(path, source, DomainError), source, DomainError, encoding)
        return cls.parse(text, Path(path).name, resource, columns, pending)

    @classmethod
    def parse(
        cls,
        text: str,
        filename: str,
        resource: str | None = None,
        columns: Mapping[str, str] | None = None,
        pending: Collection[str] = (),
    ) -> "Domain":
        """The domain of a codebook's text; the ending of `filename` tells its format.

        resource, columns, pending: as of `load`
        """
        ending = Path(filename).suffix.lower()
        if ending == ".json":
            stated = schema_in_json(text, filename, resource)
            return cls.from_schema(stated.usable(pending))
        if ending in CSV_ENDINGS and resource is not None:
            raise DomainError(f"{filename} is no Data Package; name none of its tables.")
        if ending in CSV_ENDINGS:
            return cls(tuple(codebook_rows.attributes_from_csv(text, filename, columns)))
        raise DomainError(
            "A codebook must end in .json (Frictionless Table Schema), .csv, .xlsx or .ods "
            "(attribute,value,label), .xml (DDI), .px, or be a file of SPSS, Stata or SAS, got "
            f"{filename!r}."
        )

    @classmethod
    def from_schema(cls, schema: Any, *, may_be_empty: bool = False) -> "Domain":
        """The domain of a Table Schema object.

        Raises `DomainError` naming the part that cannot be used, and, unless it may be empty, for a
        schema without fields.
        """
        attributes = codebook.attributes_from_schema(schema, may_be_empty=may_be_empty)
        return cls(tuple(attributes), schema.get(IMPOSSIBLE, ()))

    def to_schema(self) -> dict[str, Any]:
        """The domain as a Table Schema object; `from_schema` undoes it exactly."""
        schema = codebook.schema_from_attributes(self.attributes)
        if self.impossible:
            schema[IMPOSSIBLE] = [dict(combination.selections) for combination in self.impossible]
        return schema

    def with_weights(
        self, name: str, maximum: Decimal | float | str, decimals: int = WEIGHT_DECIMALS
    ) -> "Domain":
        """The domain with survey weights from 0 to a maximum, behind the others if they are new.

        Raises `DomainError` for an attribute of that name that has no weights.
        """
        if name not in self.names:
            weights = Amounts(0, maximum, decimals, are_weights=True)
            return Domain((*self, Attribute(name, weights)), self.impossible)
        attributes = list(self)
        values = self[name].values
        if not (isinstance(values, Amounts) and values.are_weights):
            raise DomainError(
                f"The attribute {name!r} has no weights; give it bounds and "
                '"weights": true in the codebook, or name another column.'
            )
        changed = Amounts(values.minimum, maximum, values.decimals, "", values.missing, True)
        index = self.position(name)
        attributes[index] = replace(self[name], values=changed)
        return Domain(tuple(attributes), self.impossible)

    def with_attributes(
        self, attributes: Iterable[Attribute], renamed: Mapping[str, str] | None = None
    ) -> "Domain":
        """The domain after an edit of its attributes, without combinations that no longer fit.

        renamed: old attribute name -> new one
        """
        edited = Domain(tuple(attributes))
        fitting = []
        for combination in self.impossible:
            with suppress(DomainError):
                fitting += stated_combinations(edited, [combination.renamed(renamed or {})])
        return replace(edited, impossible=tuple(fitting))

    def save(self, path: str | Path) -> None:
        """Write the codebook; the ending (.json or .csv) tells the format.

        CSV has no place for the attributes' labels, and lists whole numbers as categories. Grouped
        numbers and impossible combinations, which it cannot say, are refused.
        """
        path = Path(path)
        try:
            write_whole(path, self.text(path.name))
        except OSError as error:
            raise DomainError(
                f"The codebook {str(path)!r} cannot be written ({error.strerror}); choose a folder "
                "that exists and can be written to."
            ) from None

    def text(self, filename: str) -> str:
        """The codebook's text in the format that the ending of `filename` tells."""
        if not self.attributes:
            raise DomainError("There are no attributes yet; a codebook needs at least one.")
        ending = Path(filename).suffix.lower()
        if ending == ".json":
            return json.dumps(self.to_schema(), indent=2, ensure_ascii=False) + "\n"
        if ending == ".csv":
            if self.impossible:
                raise DomainError(
                    f"The codebook states {describe_combinations(self.impossible)}, which a CSV "
                    "codebook cannot say; save the domain as .json."
                )
            return codebook_rows.csv_from_attributes(self.attributes)
        raise DomainError(f"A codebook must end in .json or .csv, got {filename!r}.")

    @cached_property
    def with_levels(self) -> "Domain":
        """The domain of tables: behind the attributes, each of their levels as one more."""
        if self.n_columns < len(self) or not any(one.all_levels for one in self.attributes):
            return self
        levels = [
            attribute.at_level(level)
            for attribute in self.attributes
            for level in attribute.all_levels
        ]
        return Domain((*self.attributes, *levels), self.impossible)

    @cached_property
    def of_records(self) -> "Domain":
        """The domain without levels: its attributes are columns of the records."""
        if self.n_columns == len(self):
            return self
        return Domain(self.attributes[: self.n_columns], self.impossible)

    @cached_property
    def n_columns(self) -> int:
        """How many attributes are columns of the records; the levels come behind them."""
        return sum(not attribute.of for attribute in self.attributes)

    @cached_property
    def columns(self) -> np.ndarray:
        """The index of the attribute that each attribute is a level of, or its own: int64[d]."""
        return read_only(
            np.array(
                [
                    self.indices[attribute.of] if attribute.of else index
                    for index, attribute in enumerate(self.attributes)
                ],
                np.int64,
            )
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def n_cells(self) -> int:
        """How many cells a table of all attributes together would have."""
        return math.prod(self.sizes[: self.n_columns].tolist())

    @property
    def n_combinations(self) -> int:
        """How many combinations of categories there are: amounts have limits, and no categories."""
        own = self.attributes[: self.n_columns]
        return math.prod(one.size for one in own if not isinstance(one.values, Amounts))

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of values of each attribute, int64[d], read-only."""
        return read_only(np.array([attribute.size for attribute in self.attributes], np.int64))

    @cached_property
    def structural_zeros(self) -> StructuralZeros:
        """Which cells of tables can have records, by the impossible combinations."""
        return StructuralZeros.of_domain(self)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Index of each attribute in the domain, by name."""
        return {name: index for index, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and normalize("NFC", name) in self.indices

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.position(name)]

    def position(self, name: str) -> int:
        """Index of the attribute in the domain; `DomainError` if there is none of that name."""
        try:
            return self.indices[normalize("NFC", name)]
        except (KeyError, TypeError):
            at_level = [
                f"{attribute.name}{AT}{level.name}"
                for attribute in self.attributes
                for level in attribute.all_levels
                if level.name == name
            ]
            if at_level:
                raise DomainError(
                    f"There is no attribute {name!r} in the domain; it is a level, and is named "
                    f"behind its attribute: {joined(at_level, ' or ')}."
                ) from None
            of, at, level = str(name).rpartition(AT)
            if at and of in self.indices:
                self[of].level(level)  # which says what levels there are
            known = ", ".join(self.names[:8]) + (", …" if len(self) > 8 else "")
            close = get_close_matches(str(name), self.names, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"it has {known or 'none yet'}."
            raise DomainError(f"There is no attribute {name!r} in the domain; {meant}") from None

    def positions(self, names: AttributeSet) -> AttributeIndices:
        """Ascending indices of the named attributes; a name twice is refused."""
        names = [names] if isinstance(names, str) else list(names)
        indices = sorted(self.position(name) for name in names)
        for first, second in pairwise(indices):
            if first == second:
                raise DomainError(
                    f"The attribute {self.names[first]!r} is named twice in ({' × '.join(names)}); "
                    "name it once."
                )
        return tuple(indices)

    def in_order(self, names: AttributeSet) -> tuple[str, ...]:
        """The names in the order of the domain."""
        return tuple(self.names[index] for index in self.positions(names))

    def describe(self, indices: Iterable[int]) -> str:
        """The attributes at some indices for a sentence, "(age × sex)" or "(total)"; −1: none."""
        return f"({' × '.join(self.names[index] for index in indices if index >= 0) or 'total'})"


# ---- Whether tables of two domains count the same, whatever values are called.


def difference_of_cells(left: Domain, right: Domain) -> str:
    """The difference of two domains, "have different attributes (…)"; "" if cells count the same.

    They do if both have the same attributes with the same values, in the same order, and no text of
    records stands for one value in the one and for another value in the other, by a recode say.
    """
    left, right = left.of_records, right.of_records
    if left.names != right.names:
        return f"have different attributes ({shown_few(left.names)}; {shown_few(right.names)})"
    for left_attribute, right_attribute in zip(left, right, strict=True):
        if _values(left_attribute) != _values(right_attribute):
            return (
                f"have different values of {left_attribute.name!r}, so that their cells do not "
                "count the same"
            )
        if text := _read_otherwise(left_attribute.values, right_attribute.values):
            return (
                f"count {shown(text)} in the records as different values of "
                f"{left_attribute.name!r}, so that their cells do not count the same"
            )
    return ""


_UNLIKE_DAY = date(2003, 2, 1)  # the numbers of its day, its month and its year differ


def _read_otherwise(left: Values, right: Values) -> str | None:
    """A text that stands for one value here and for another one there; None if there is none.

    Days are the same in whatever format, unless one format reads what the other one writes, and
    reads another day.
    """
    if isinstance(left, Categories) and isinstance(right, Categories):
        return left.read_otherwise(right)
    if isinstance(left, Dates) and isinstance(right, Dates):
        for own, other in ((left.format, right.format), (right.format, left.format)):
            text = _UNLIKE_DAY.strftime(own or "%Y-%m-%d")
            if reading_of(other).ordinal(text) not in (None, _UNLIKE_DAY.toordinal()):
                return text
    return None


def _values(attribute: Attribute) -> object:
    values = attribute.values
    if isinstance(values, Dates):  # in whatever format records write them
        return values.starts, values.last, values.missing, values.recode
    if isinstance(values, Bins):
        return replace(values, are_whole=False)
    return values.values if isinstance(values, Categories) else values


# ---- Where values come from: public knowledge, the records themselves, or nowhere yet.


FOUND_IN_RECORDS = "values found in the records"  # in a label, so that every file says it
_MOST_NAMED = 5

# A single value stands in for those that are to come: an attribute of one value changes no plan.
TO_COMPLETE = Categories((PENDING,))


def label_from_records(label: str) -> str:
    """A label that says as well that the values were found in records."""
    if FOUND_IN_RECORDS in label:
        return label
    return f"{label} ({FOUND_IN_RECORDS})" if label else FOUND_IN_RECORDS


def describe_attributes_from_records(*domains: Domain) -> str:
    """Attributes with values from records: "age and sex", "a, b, c, d, e and 3 more"; or ""."""
    attributes = [attribute for domain in domains for attribute in domain]
    names = list(
        dict.fromkeys(
            attribute.name
            for attribute in attributes
            if FOUND_IN_RECORDS in attribute.label and not is_unfinished(attribute)
        )
    )
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED:,} more"]
    return joined(names)


def except_from_records(*domains: Domain) -> str:
    """The exception to "no records were used", as the sentence's end; "" where there is none."""
    names = describe_attributes_from_records(*domains)
    if not names:
        return ""
    return (
        f", except the values of {names}, which were taken from the records and are not protected"
    )


def texts_like_formulas(attributes: Iterable[Attribute]) -> list[str]:
    """Names, values and labels that a spreadsheet would take for formulas, each once."""
    texts: list[str] = []
    for attribute in attributes:
        texts.append(attribute.name)
        if isinstance(attribute.values, Categories):
            texts += [*attribute.values.values, *attribute.values.labels]
    return list(dict.fromkeys(filter(begins_formula, texts)))


def formulas_warning(domain: Domain) -> str | None:
    """A warning about texts from records that spreadsheets take for formulas; None for none."""
    taken = [attribute for attribute in domain if FOUND_IN_RECORDS in attribute.label]
    if not (texts := texts_like_formulas(taken)):
        return None
    return (
        f"From the records come {shown_few(texts)}, which a spreadsheet that opens a CSV file "
        "takes for formulas; change the codebook, or have them escaped (--escape-formulas)."
    )


def to_complete(name: str, label: str, missing: Sequence[tuple[str, str]]) -> Attribute:
    """An attribute that waits for its values; those that stand for no answer are known already."""
    values = {TO_COMPLETE.values[0]: TO_COMPLETE.values[0]} | dict(missing)
    if len(values) == 1:
        return Attribute(name, TO_COMPLETE, label)
    labels, known = [], set[str]()
    for value, text in values.items():
        text = text or value
        labels.append(text if text not in known else f"{text} ({value})")
        known.add(labels[-1])
    # An empty text is no category.
    named = [(value, text) for value, text in zip(values, labels, strict=True) if value.strip()]
    categories = Categories(tuple(one for one, _ in named), tuple(text for _, text in named))
    return Attribute(name, categories, label, ((), *[(MISSING,)] * (categories.size - 1)))


def is_unfinished(attribute: Attribute) -> bool:
    """Whether the attribute still waits for its values."""
    values = attribute.values
    return isinstance(values, Categories) and values.values[0] == TO_COMPLETE.values[0]


def completed(attribute: Attribute, values: Values) -> Attribute:
    """The attribute with its values, and those that were known to stand for no answer."""
    pending = attribute.values
    assert isinstance(pending, Categories)
    known = dict(zip(pending.values[1:], pending.labels[1:], strict=True))
    groups: tuple[tuple[str, ...], ...] = ()
    if isinstance(values, Categories):
        if values == TO_COMPLETE:
            return attribute
        listed = {value: text for value, text in known.items() if value not in values.values}
        texts = [text if text not in values.labels else value for value, text in listed.items()]
        groups = tuple((MISSING,) if value in known else () for value in (*values.values, *listed))
        labels = [
            known[value] if value in known and label == value else label
            for value, label in zip(values.values, values.labels, strict=True)
        ]
        values = Categories((*values.values, *listed), (*labels, *texts))
        groups = groups if known else ()
    elif known and not values.missing:
        pairs = tuple(
            (value, NOT_STATED if text == value else text) for value, text in known.items()
        )
        values = replace(values, missing=pairs)
    return replace(attribute, values=values, groups=groups)


def unfinished(domain: Domain) -> list[str]:
    """The names of the attributes that still wait for their values."""
    return [attribute.name for attribute in domain if is_unfinished(attribute)]
