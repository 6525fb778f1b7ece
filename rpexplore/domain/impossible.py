"""Impossible combinations: values that no record has together, as a codebook states them.

Statisticians call them structural zeros. Public knowledge, like the values of an attribute.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rpexplore.common.exact_numbers import shown, shown_value
from rpexplore.common.formatting import plural
from rpexplore.common.json_fields import refusing
from rpexplore.common.names import is_text
from rpexplore.domain.value_selection import Selection, coefficients
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain

_LISTED = 3  # combinations in a sentence


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
    combinations = []
    for number, combination in enumerate(stated, start=1):
        with refusing(DomainError, f"Impossible combination {number:,} of the codebook"):
            if isinstance(combination, ImpossibleCombination):
                combination = dict(combination.selections)
            combinations.append(_combination(domain, combination))
    return tuple(dict.fromkeys(combinations))


def _combination(domain: "Domain", stated: Any) -> ImpossibleCombination:
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
    selected = coefficients(attribute, listed)
    with suppress(DomainError):
        if coefficients(attribute, text) == selected:
            return text
    raise DomainError(
        f"the values {shown(text)!r} of {name!r} have commas of their own; state a combination for "
        "each of them."
    )


def combination_from_text(domain: "Domain", text: str) -> dict[str, str]:
    """{attribute: text} of a combination that is typed, such as "age=0..14 sex=F".

    A new selection begins where the name of an attribute and an equals sign do. Raises
    `DomainError` for a text of another form, and for names and values that are not there.
    """
    text = text.strip()
    names = sorted(map(re.escape, domain.names), key=len, reverse=True)
    # Blanks are tried from their first one on alone: long runs of them would take for ever.
    pattern = re.compile(rf"(?:^|(?<!\s)\s++)({'|'.join(names)})=")
    starts = list(pattern.finditer(text))
    if not starts or starts[0].start() > 0:
        _refuse_unknown(domain, text)
        raise DomainError(
            "An impossible combination must be stated as ATTRIBUTE=VALUES, such as "
            f"{example_of(domain)}, got {text!r}."
        )
    ends = [match.start() for match in starts[1:]] + [len(text)]
    combination: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        if match[1] in combination:
            raise DomainError(
                f"The impossible combination {text!r} names {match[1]!r} twice; name all its "
                "values once, separated by commas."
            )
        selection = text[match.end() : end].strip()
        try:
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


def _example_in_json(domain: "Domain") -> str:
    listed = (f'"{name}": "{value}"' for name, value in _example(domain).items())
    return f"{{{', '.join(listed)}}}"


def _example(domain: "Domain", names: Sequence[str] = ()) -> dict[str, str]:
    chosen = [domain[name] for name in names or domain.names][:2]
    return {attribute.name: attribute.stored_values(1)[0] for attribute in chosen}


def _refuse_unknown(domain: "Domain", text: str) -> None:
    """Raise `DomainError` for a word before an equals sign that is no attribute."""
    for word in re.findall(r"(?:^|\s)([^\s=]+)=", text):
        domain.position(word)
