"""Values that a text names, and combinations of values that no record has."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import normalize

import numpy as np

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import shown, shown_few, shown_value
from rpexplore.common.text import is_text, joined, plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.dates import stated_day
from rpexplore.domain.levels import AT, BAND, LEVELS
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain


# ---- Selections: the values of an attribute that a text names: "F", "18..24", "South",
# "North,South".
#
# A value is named as it is stored or by its label, a group of values by its name or its path.


RANGE = ".."

# One text, or several of which each names some values: "0..17", ["North", "East"], 30.
Selection: TypeAlias = str | int | Sequence[str | int]


def product_query(domain: "Domain", selections: Mapping[str, Selection]) -> dict[str, list[float]]:
    """The query that counts records whose values all lie in the selections, by attribute name.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 4)),))
        >>> product_query(domain, {"age": "1..3"})
        {'age': [0.0, 1.0, 1.0, 1.0, 0.0]}
    """
    return {name: coefficients(domain[name], chosen) for name, chosen in selections.items()}


def coefficients(attribute: Attribute, selection: Selection) -> list[float]:
    """1.0 for each selected value and 0.0 for others, [size]; raises as `selected_values`."""
    listed = [selection] if isinstance(selection, str | int) else selection
    if not listed:
        raise DomainError(
            f"The selected values of attribute {attribute.name!r} must be at least one, got none; "
            "name one, or leave the attribute out for all of them."
        )
    if isinstance(attribute.values, Amounts):
        return _coefficients_of_amounts(attribute, attribute.values, listed)
    return selection_mask(attribute, listed).astype(float).tolist()


def selection_mask(attribute: Attribute, listed: Sequence[str | int]) -> np.ndarray:
    """Whether each value is selected, bool[size]; raises as `selected_values`.

    A range is set as a whole, whatever the number of its values.
    """
    is_selected = np.zeros(attribute.size, dtype=bool)
    for text in listed:
        for indices in _named_values(attribute, str(text)):
            if isinstance(indices, range):
                is_selected[indices.start : indices.stop] = True
            else:
                is_selected[np.asarray(indices, dtype=np.intp)] = True
    return is_selected


def _coefficients_of_amounts(
    attribute: Attribute, values: Amounts, listed: Sequence[str | int]
) -> list[float]:
    """The sum of amounts, or the records with or without one, as a number for each value."""
    named: dict[str, list[float]] = {
        label: [0.0] * (values.n_ordered + index) + [1.0]
        for index, label in enumerate(values.missing_labels)
    }
    named["records"] = [1.0, 1.0]
    named["sum"] = named[values.sum_label] = [float(values.minimum), float(values.maximum)]
    text = str(listed[0]).strip()
    if len(listed) > 1 or text not in named:
        remedy = "" if values.are_weights else "; give it bins to select values"
        if text == "mean" and not values.are_weights:
            remedy = "; `answer` alone tells means"
        raise DomainError(
            f"The attribute {attribute.name!r} has {values.noun}, so a query on it is "
            f"{'weighted count' if values.are_weights else 'sum'}, records"
            f"{''.join(f', {label}' for label in values.missing_labels)}, got "
            f"{shown(', '.join(map(str, listed)))!r}{remedy}."
        )
    return named[text] + [0.0] * (values.size - len(named[text]))


def selected_values(attribute: Attribute, text: str) -> tuple[int, ...]:
    """The indices of the values that a text names, ascending.

    A value is named as it is stored or by its label; a group of values by its name, or its path
    ("South > East"). "18..24" are all values from one to the other, both included ("..24", "65..":
    from the first, to the last), where numbers and days must be where values begin and end; of
    numbers also as "18-24", "18 to 24" and "65+"; of days "2026-01" is a range, too. Several of
    these may stand side by side, separated by commas.

    Raises `DomainError` for a text that names none.
    """
    return tuple(sorted(set().union(*_named_values(attribute, text))))


def _named_values(attribute: Attribute, text: str) -> list[Sequence[int]]:
    """The values that a text names, or that each of its parts between commas names."""
    text = normalize("NFC", text)
    indices = values_by_name(attribute).get(text)  # codes may begin or end with blanks
    if indices is None:
        indices = _indices(attribute, text.strip())
    if indices is not None:
        return [indices]
    parts = text.split(",")
    if (joined_parts := _with_commas(attribute, parts)) is not None:
        return [joined_parts]
    named: list[Sequence[int]] = []
    for part in parts:
        indices = _listed_indices(attribute, part)
        if indices is None and (of_values := _groups_of_values(attribute, text)):
            return [of_values]
        if indices is None:
            labels, last = attribute.labels(), attribute.n_ordered - 1
            is_numeric = not isinstance(attribute.values, Categories)
            ends = ", from where a value begins to where one ends" if is_numeric else ""
            groups = ", a group" if attribute.groups else ""
            _refuse_group_of_level(attribute, part.strip())
            raise DomainError(
                f"The values of attribute {attribute.name!r} must be named by one of them{groups} "
                f"or a range such as {labels[0]}{RANGE}{labels[last]}{ends}, got {text!r}; its "
                f"values are {shown_few(labels)}."
            )
        named.append(indices)
    return named


@lru_cache(maxsize=64)
def _most_commas(attribute: Attribute) -> int:
    """The most that a name of a value or a group has."""
    return max((name.count(",") for name in values_by_name(attribute)), default=0)


def _with_commas(attribute: Attribute, parts: Sequence[str]) -> list[int] | None:
    """The values that parts between commas name where names have commas of their own: "a,b,s".

    None where they name none. Raises `DomainError` where they can be read as different values.
    """
    most = _most_commas(attribute)
    if not most:
        return None
    # Of the first parts, up to each: the values in some reading of them, and those in every one;
    # None where they cannot be read.
    readings: list[tuple[frozenset[int], frozenset[int]] | None] = [(frozenset(), frozenset())]
    for stop in range(1, len(parts) + 1):
        in_some: list[frozenset[int]] = []
        in_all: list[frozenset[int]] = []
        for start in range(max(stop - 1 - most, 0), stop):
            before = readings[start]
            if before is not None:
                indices = _listed_indices(attribute, ",".join(parts[start:stop]))
                if indices is not None:
                    in_some.append(before[0].union(indices))
                    in_all.append(before[1].union(indices))
        both = (frozenset.union(*in_some), frozenset.intersection(*in_all)) if in_some else None
        readings.append(both)
    if readings[-1] is None:
        return None
    some, every = readings[-1]
    if some != every:
        labels = attribute.labels()
        unclear = shown_few([labels[index] for index in sorted(some - every)])
        raise DomainError(
            f"{shown(','.join(parts))!r} can be read as different values of attribute "
            f"{attribute.name!r}, because names have commas: with or without {unclear}; name them "
            "one by one, in Python as a list."
        )
    return sorted(every)


def _listed_indices(attribute: Attribute, text: str) -> Sequence[int] | None:
    """The values that an entry of a list names, as it stands or without the blanks around it.

    Raises `DomainError` where it names others in each way: codes may begin or end with blanks.
    """
    exact, indices = values_by_name(attribute).get(text), _indices(attribute, text.strip())
    if exact is not None and indices is not None and list(exact) != list(indices):
        raise DomainError(
            f"{shown(text)!r} and {shown(text.strip())!r} are different values of attribute "
            f"{attribute.name!r}, and a list can mean either; name them one by one, in Python as a "
            "list."
        )
    return indices if exact is None else exact


def _groups_of_values(attribute: Attribute, text: str) -> list[int]:
    """The groups of a level that hold just the values that a text names: 65..74 of 65-69 and 70-74.

    [] for what is no level, or no value of its attribute; raises `DomainError` for parts of groups.
    """
    if attribute.values_of is None:
        return []
    try:
        named = selection_mask(Attribute(attribute.of, attribute.values_of), [text])
    except DomainError:
        return []
    index_of_values = np.array(attribute.index_of_values)
    groups = np.unique(index_of_values[named])
    left = index_of_values[~named]
    divided = groups[np.isin(groups, left)]
    if len(divided):
        raise DomainError(
            f"{shown(text.strip())!r} divides the group {attribute.labels()[divided[0]]!r} of "
            f"{attribute.name!r}; name whole groups, or ask for values: "
            f"{attribute.of}={shown(text.strip())}."
        )
    return groups.tolist()


def _refuse_group_of_level(attribute: Attribute, text: str) -> None:
    """Raise `DomainError` for a text that is a group of one of the attribute's levels."""
    having = [level.name for level in attribute.all_levels if text in level.labels]
    if having:
        named = joined([f"{attribute.name}{AT}{level}={text}" for level in having], " or ")
        raise DomainError(
            f"{shown(text)!r} is no value of attribute {attribute.name!r}, but one of its level "
            f"{joined(having)}; write {named}."
        )


@lru_cache(maxsize=64)
def values_by_name(attribute: Attribute) -> Mapping[str, Sequence[int]]:
    """The indices of the values that each name stands for.

    What is stored goes first, then labels, then groups by their path, then groups by their name
    where only one group has it.
    """
    by_path: dict[tuple[str, ...], list[int]] = {}
    for index, path in enumerate(attribute.groups):
        for depth in range(1, len(path) + 1):
            by_path.setdefault(path[:depth], []).append(index)
    n_named = Counter(path[-1] for path in by_path)
    names = {path[-1]: by_path[path] for path in by_path if n_named[path[-1]] == 1}
    names |= {LEVELS.join(path): indices for path, indices in by_path.items()}
    return names | {name: [index] for name, index in index_by_value(attribute).items()}


@lru_cache(maxsize=64)
def index_by_value(attribute: Attribute) -> Mapping[str, int]:
    """The index of the value that is stored like this, or else has this label."""
    by_label = {label: index for index, label in enumerate(attribute.labels())}
    return by_label | {value: index for index, value in enumerate(attribute.stored_values())}


def _indices(attribute: Attribute, text: str) -> Sequence[int] | None:
    """The values that a text without commas between its parts names: by a name, or as a range."""
    named = values_by_name(attribute)
    if text in named:
        return named[text]
    if isinstance(attribute.values, Dates) and RANGE not in text:
        text = f"{text}{RANGE}{text}"
    elif not isinstance(attribute.values, Categories):
        band = BAND.fullmatch(text)
        if band and (band[2] or band[3]):
            text = f"{band[1]}{RANGE}{band[3] or ''}"
    split = text.find(RANGE)
    while split >= 0:  # labels may hold dots
        left, right = text[:split].strip(), text[split + len(RANGE) :].strip()
        first, last = 0, attribute.n_ordered - 1
        if left:
            first = _end_of_range(attribute, left, is_last=False)
        if right:
            last = _end_of_range(attribute, right, is_last=True)
        if (left or right) and first is not None and last is not None and first <= last:
            return range(first, last + 1)
        split = text.find(RANGE, split + 1)
    return None


def _end_of_range(attribute: Attribute, text: str, *, is_last: bool) -> int | None:
    """The index of the value at an end of a range, named by itself, by a number or by a day."""
    value = index_by_value(attribute).get(text)
    if value is not None:
        return value if value < attribute.n_ordered else None  # missing values lie in no range
    numbers = _starts_and_ends(attribute)[is_last]
    try:
        if isinstance(attribute.values, Dates):
            return numbers.get(stated_day(text, is_last=is_last).toordinal())
        return numbers.get(float(text))
    except (ValueError, DomainError):
        return None


@lru_cache(maxsize=64)
def _starts_and_ends(attribute: Attribute) -> tuple[Mapping[float, int], Mapping[float, int]]:
    """{number: index of the value that begins with it}, and {… ends with it}; {} for categories.

    Of dates by the ordinals of days.
    """
    values = attribute.values
    if isinstance(values, Integers):
        lows = range(values.minimum, values.maximum + 1, values.step)
        highs = [*(low - 1 for low in lows[1:]), values.maximum]
    elif isinstance(values, Bins):
        # Where 0..15 is from 0 to under 15, so is 0..14 of whole numbers, unless 14 is an edge.
        lows, highs = values.edges[:-1], values.edges[1:]
        of_whole = {high: index for index, (_, high) in enumerate(values.ends)}
        ends = of_whole | {high: index for index, high in enumerate(highs)}
        return {low: index for index, low in enumerate(lows)}, ends
    elif isinstance(values, Dates):
        lows = values.starts
        highs = [*(low - 1 for low in lows[1:]), values.last.toordinal()]
    else:
        return {}, {}
    return (
        {low: index for index, low in enumerate(lows)},
        {high: index for index, high in enumerate(highs)},
    )


# ---- Impossible combinations: values that no record has together, as a codebook states them.
#
# Statisticians call them structural zeros. Public knowledge, like the values of an attribute.


_LISTED = 3  # combinations in a sentence
_MOST_COMBINATIONS = 20_000
_MOST_MARKED = 50_000_000  # values of all attributes that combinations name, a byte each


@dataclass(frozen=True)
class ImpossibleCombination:
    """Values of some attributes that no record has all together.

    selections  of each attribute its name and the text that selects its values, in domain order
    """

    selections: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The combination as it is typed: "age=0..14 marital_status=Married"."""
        return combination_text(dict(self.selections))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it names."""
        return tuple(name for name, _ in self.selections)

    def renamed(self, new_names: Mapping[str, str]) -> dict[str, str]:
        """{attribute: text} after attributes have got new names."""
        return {new_names.get(name, name): text for name, text in self.selections}


def stated_combinations(domain: "Domain", stated: Any) -> tuple[ImpossibleCombination, ...]:
    """Read impossible combinations, [{"age": "0..14", "sex": ["F"]}, …], each once.

    Raises `DomainError` naming the combination that cannot be used.
    """
    if not isinstance(stated, list | tuple):
        raise DomainError(
            'What is "impossible" must be a list of combinations such as {"age": "0..14", '
            f'"marital_status": "Married"}}, got {shown_value(stated)}.'
        )
    if len(stated) > _MOST_COMBINATIONS:
        raise DomainError(
            f"A codebook can state at most {_MOST_COMBINATIONS:,} impossible combinations, got "
            f"{len(stated):,}; join some by ranges and groups."
        )
    combinations: list[ImpossibleCombination] = []
    n_marked = 0
    for number, combination in enumerate(stated, start=1):
        with refusing(DomainError, f"Impossible combination {number:,} of the codebook"):
            if isinstance(combination, ImpossibleCombination):
                combination = dict(combination.selections)
            combinations.append(_combination(domain, combination))
        n_marked += sum(domain[name].size for name in combinations[-1].names)
        if n_marked > _MOST_MARKED:
            raise DomainError(
                "The impossible combinations name attributes of too many values, "
                f"{_MOST_MARKED:,} in all at most; state fewer combinations, joined by ranges and "
                "groups, or group the values of the attributes."
            )
    return tuple(dict.fromkeys(combinations))


def _combination(domain: "Domain", stated: Any) -> ImpossibleCombination:
    for name in stated if isinstance(stated, Mapping) else ():
        if isinstance(domain[name].values, Amounts):
            raise DomainError(
                f"{name!r} has amounts, whose values cannot be told apart; leave it out."
            )
    if not isinstance(stated, Mapping) or not stated:
        raise DomainError(
            "it must name the values of an attribute at least, such as "
            f"{_example_in_json(domain)}, got {shown_value(stated)}."
        )
    texts = {domain[name].name: _text(domain, name, stated[name]) for name in stated}
    return ImpossibleCombination(tuple((name, texts[name]) for name in domain.in_order(stated)))


def _text(domain: "Domain", name: str, selection: Selection) -> str:
    """The one text that selects these values of an attribute."""
    attribute = domain[name]
    listed: Any = selection if isinstance(selection, list | tuple) else [selection]
    if not all(type(one) is int or (isinstance(one, str) and is_text(one)) for one in listed):
        raise DomainError(
            f"the values of {name!r} must be a text or a list of texts, got "
            f"{shown_value(selection)}."
        )
    text = ",".join(str(one).strip() for one in listed)
    if not listed:
        coefficients(attribute, listed)  # which says what to do
    selected = selection_mask(attribute, listed)
    with suppress(DomainError):
        if np.array_equal(selection_mask(attribute, [text]), selected):
            return text
    raise DomainError(
        f"the values {shown(text)!r} of {name!r} have commas of their own; state a combination for "
        "each of them."
    )


def question_from_text(domain: "Domain", text: str) -> dict[str, str]:
    """{attribute: text} of a question, such as "income=mean sex=F"; raises `DomainError`."""
    return combination_from_text(domain, text, "question", may_be_mean=True)


def asks_mean(attribute: Attribute, selection: object) -> bool:
    """Whether a selection is the mean of amounts, which is no sum of counts as all others are."""
    listed = selection if isinstance(selection, list | tuple) else [selection]
    return (
        isinstance(attribute.values, Amounts)
        and not attribute.values.are_weights
        and len(listed) == 1
        and isinstance(listed[0], str)
        and listed[0].strip() == "mean"
    )


def combination_from_text(
    domain: "Domain",
    text: str,
    noun: str = "impossible combination",
    *,
    may_be_mean: bool = False,
) -> dict[str, str]:
    """{attribute: text} of a combination that is typed, such as "age=0..14 sex=F".

    A new selection begins where the name of an attribute and an equals sign do. `noun` is what an
    error calls the text. Raises `DomainError` for a text of another form, and for names and values
    that are not there.
    """
    text = text.lstrip()
    names = sorted(map(re.escape, domain.names), key=len, reverse=True)
    # Blanks are tried from their first one on alone: long runs of them would take for ever.
    pattern = re.compile(rf"(?:^|(?<!\s)\s++)({'|'.join(names)})=")
    starts = list(pattern.finditer(text))
    if not starts or starts[0].start() > 0:
        _refuse_unknown(domain, text)
        raise DomainError(
            f"The {noun} must be stated as ATTRIBUTE=VALUES, such as {example_of(domain)}, got "
            f"{text!r}."
        )
    ends = [match.start(1) - 1 for match in starts[1:]] + [len(text)]
    combination: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        if match[1] in combination:
            raise DomainError(
                f"The {noun} {text!r} names {match[1]!r} twice; name all its "
                "values once, separated by commas."
            )
        selection = text[match.end() : end]
        if selection not in values_by_name(domain[match[1]]):  # codes may begin or end with blanks
            selection = selection.strip()
        try:
            if not (may_be_mean and asks_mean(domain[match[1]], selection)):
                coefficients(domain[match[1]], selection)
        except DomainError:
            _refuse_unknown(domain, selection)
            raise
        combination[match[1]] = selection
    return combination


def combination_text(combination: Mapping[str, str]) -> str:
    """A combination as it is typed; `combination_from_text` undoes it."""
    return " ".join(f"{name}={values}" for name, values in combination.items())


def describe_combinations(combinations: Sequence[ImpossibleCombination]) -> str:
    """How many there are and the first of them: "2 impossible combinations: a=0 b=1; a=1 b=0"."""
    listed = "; ".join(combination.text for combination in combinations[:_LISTED])
    more = len(combinations) - _LISTED
    text = f"{plural(len(combinations), 'impossible combination')}: {listed}"
    return f"{text}; and {more:,} more" if more > 0 else text


def example_of(domain: "Domain", names: Sequence[str] = ()) -> str:
    """A combination as it is typed, of values that there are: of the first two of some attributes.

    names: those to choose from; all if left out
    """
    return combination_text(_example(domain, names))


def example_of_question(domain: "Domain", tables: Iterable[Sequence[str]]) -> str:
    """A question as it is typed, such as "income=mean sex=F": for a mean where a table has one.

    Else for a count by the first attributes of these tables.
    """
    names: set[str] = set()
    weights, amounts = (
        {domain.names[index] for index in indices} for indices in (domain.weights, domain.amounts)
    )
    for table in tables:
        names.update(table)
        summed = [name for name in table if name in amounts - weights]
        if summed:
            asked = {summed[0]: "mean"} | {name: "sum" for name in table if name in weights}
            others = [name for name in table if name not in amounts][:1]
            return combination_text(asked | (_example(domain, others) if others else {}))
    return example_of(domain, domain.in_order(names))


def _example_in_json(domain: "Domain") -> str:
    listed = (f'"{name}": "{value}"' for name, value in _example(domain).items())
    return f"{{{', '.join(listed)}}}"


def _example(domain: "Domain", names: Sequence[str] = ()) -> dict[str, str]:
    every = [domain[name] for name in names or domain.names]
    chosen = [one for one in every if not isinstance(one.values, Amounts)][:2] or every[:1]
    return {attribute.name: attribute.stored_values(1)[0] for attribute in chosen}


def _refuse_unknown(domain: "Domain", text: str) -> None:
    """Raise `DomainError` for a word before an equals sign that is no attribute."""
    for word in re.findall(r"(?:^|\s)([^\s=]+)=", text):
        domain.position(word)
