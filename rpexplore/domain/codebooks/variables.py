"""A codebook drafted from a dictionary of data: its variables, with their labels.

The dictionary is what the makers of the data say of them: planning may read it, and no record.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from unicodedata import normalize

from rpexplore.common.exact_numbers import shown
from rpexplore.domain.attribute import MISSING, Attribute, Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError

_FEW_LABELS = 3  # up to so many may be those of the ends of a scale
_MOST_NAMED = 4


@dataclass(frozen=True)
class Variable:
    """A variable as a dictionary describes it.

    kind     the type of its values, in words
    values   label by value, "" for none, of those that are an answer, in their order
    missing  the same of those that stand for none: refused, not applicable
    problem  why it can be no attribute, after its name; "" if it may
    """

    name: str
    label: str = ""
    kind: str = "any"
    values: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Draft:
    """A codebook as a dictionary suggests it.

    domain          the variables that list their values
    without_values  {name: type} of the others
    remarks         what to look at before it is used, in sentences
    """

    domain: Domain
    without_values: Mapping[str, str]
    remarks: tuple[str, ...]


def draft_of(variables: Iterable[Variable]) -> Draft:
    """The codebook of the variables that list two values or more, and what of it is doubtful.

    Values that stand for no answer stay, in the group `MISSING`: records have them. Labels that
    stand for two values are told apart by these.
    """
    attributes: dict[str, Attribute] = {}
    without_values: dict[str, str] = {}
    with_gaps: list[str] = []
    unusable: list[str] = []
    for variable in variables:
        name = normalize("NFC", variable.name)
        if len(variable.values) < 2:
            without_values[name] = variable.kind
            continue
        try:
            problem = "is there twice" if name in attributes else variable.problem
            if problem:
                raise DomainError(f"The variable {name!r} {problem}.")
            attributes[name] = _attribute(variable)
        except DomainError as error:
            unusable.append(str(error))
            continue
        if _has_gaps(variable):
            with_gaps.append(f"{shown(name)} ({', '.join(variable.values)})")
    remarks = []
    if with_gaps:
        remarks.append(
            "Labels of a few values alone, between which there may be others; add those that "
            f"records can have: {_named(with_gaps)}."
        )
    remarks += [f"Left out: {_named(unusable, '; ')}"] if unusable else []
    return Draft(Domain(tuple(attributes.values())), without_values, tuple(remarks))


def _attribute(variable: Variable) -> Attribute:
    answers = [value for value in variable.values if value not in variable.missing]
    values = [*answers, *variable.missing]
    texts = [{**variable.values, **variable.missing}[value] for value in values]
    groups = [()] * len(answers) + [(MISSING,)] * len(variable.missing)
    try:
        categories = Categories(tuple(values), _distinct(values, texts))
    except DomainError as error:
        raise DomainError(f"The variable {variable.name!r} cannot be used: {error}") from None
    return Attribute(
        variable.name,
        categories,
        _one_line(variable.label),
        tuple(groups) if variable.missing else (),
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
