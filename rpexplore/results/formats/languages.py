"""The texts of exports in every language that they can be written in.

The texts are in `texts/`, a file a language. A format that writes some of them in a language writes
all of them in it: what has no text there is refused, never left in English.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from rpexplore.common.text import joined, plural_noun, rounded
from rpexplore.domain.result_schema import (
    ADAPTIVE,
    ADAPTIVE_INTERVAL_MEANING,
    EMPTY_NOTE,
    IMPOSSIBLE_NOTE,
    INTERVAL_MEANING,
    KNOWN_NOTE,
    MEANS,
    PLANNED_ANEW,
    PROCESSED_VALUE,
    RELEASED,
    STANDARD_ERROR_MEANING,
    SUMS_MEANING,
    UNBIASED_VALUE,
    WEIGHTED_MEANING,
    WEIGHTED_SUMS_MEANING,
)
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import LABEL

LANGUAGES: Mapping[str, str] = {"en": "English", "de": "German", "fr": "French", "es": "Spanish"}

# From 1,234.5 to what offices write: Destatis and INE group by full stops, Insee by narrow spaces.
_SEPARATORS = {
    "en": str.maketrans({}),
    "de": str.maketrans({",": ".", ".": ","}),
    "fr": str.maketrans({",": "\N{NARROW NO-BREAK SPACE}", ".": ","}),
    "es": str.maketrans({",": ".", ".": ","}),
}
_SPACE = "\N{NO-BREAK SPACE}"
# Labels that are made here and not in the codebook: "18 to 24", "≤ 24", "all".
_MADE_LABELS = (
    ("or", re.compile("(.+) or (.+)")),
    ("up_to", re.compile("up to (.+)")),
    ("to_under", re.compile("(.+) to under (.+)")),
    ("range", re.compile("(.+) to (.+)")),
    ("under", re.compile("under (.+)")),
    ("all_values", re.compile("all")),
)
_NUMBER_OR_DATE = re.compile("[0-9QW .,:/+−<>≤≥-]+")


@dataclass(frozen=True)
class Sentence:
    """A text of the table and what is inserted, for whoever knows the language.

    key    in `texts_of` a language
    facts  by the names of its placeholders: texts, whole numbers, or the design of a survey
    """

    key: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Language:
    """A language of exports; raises `ReleaseError` for one that is not in `LANGUAGES`."""

    code: str = "en"

    def __post_init__(self) -> None:
        if self.code not in LANGUAGES:
            names = [f"{code} ({name})" for code, name in LANGUAGES.items()]
            raise ReleaseError(
                f"Exports have no language {self.code!r}; choose {joined(names, ' or ')}."
            )

    @property
    def is_english(self) -> bool:
        return self.code == "en"

    def text(self, key: str, **facts: Any) -> str:
        """A text with what is inserted; whole numbers get the separators of the language."""
        text = texts_of(self.code)[key]
        if self.code == "fr":  # which has a space in front of these signs, where no line ends
            text = re.sub(r" (?=[:;?!%»])|(?<=«) ", _SPACE, text)
        shown = {
            name: self.number(f"{fact:,}") if isinstance(fact, int) else fact
            for name, fact in facts.items()
        }
        return text.format(**shown)

    def say(self, sentence: Sentence) -> str:
        facts = dict(sentence.facts)
        if isinstance(facts.get("design"), SurveyDesign):
            facts["design"] = self._design(facts["design"])
        return self.text(sentence.key, **facts)

    def unit(self, noun: str) -> Mapping[str, str]:
        """The words for who is protected, by a noun in English: "household".

        one    behind "for" or "protects"; all: the same of all of them, behind "protects"
        given  some one of them, which is a subject; it: the same again

        Other languages have words for those in `texts/units.json`; of others they say "unit".
        """
        if self.is_english:
            nouns = "people" if noun == "person" else plural_noun(noun)
            return {
                "one": f"one {noun}", "all": f"the {nouns}", "given": f"a given {noun}",
                "it": f"that {noun}",
            }  # fmt: skip
        words = _units().get(noun) or _units()["*"]
        return {name: text.format(noun=noun) for name, text in words[self.code].items()}

    def _design(self, design: SurveyDesign) -> str:
        if self.is_english:
            return design.text
        parts = [self.text("design_effect", effect=self.rounded(design.design_effect, 4))]
        for names, effect in design.of_tables:
            table = " × ".join(names) or self.text("total")
            parts.append(self.text("design_effect_of", effect=self.rounded(effect, 4), table=table))
        if design.sampling_fraction:
            share = f"{self.rounded(100 * design.sampling_fraction, 4)} %"
            parts.append(self.text("sampling_fraction", share=share))
        return ", ".join(parts)

    def rounded(self, value: float, digits: int = 3, *, zeros: bool = False) -> str:
        """A number with so many significant digits, in the signs of the language."""
        return self.number(rounded(value, digits, zeros=zeros))

    def number(self, text: str) -> str:
        """A number as rpexplore writes it, "1,234.5", in the signs of the language."""
        return text.translate(_SEPARATORS[self.code])

    def joined(self, parts: Sequence[str]) -> str:
        """ "a, b and c"."""
        word = self.text("and")
        if self.code == "es" and parts and re.match("h?[ií](?![aeo])", parts[-1].lower()):
            word = "e"  # Spanish avoids the same sound twice
        return joined(parts, f" {word} ")

    def label(self, text: str, own: Collection[str]) -> str:
        """The label of a row: words that are made here are translated.

        own: the labels and codes of the codebook, which stay as they are
        """
        return text if self.is_english else self._made_label(text, own) or text

    def _made_label(self, text: str, own: Collection[str]) -> str:
        """The label in the language; "" if its words are neither own ones nor made here."""
        if text in own or _NUMBER_OR_DATE.fullmatch(text):
            return text
        for key, pattern in _MADE_LABELS:
            if match := pattern.fullmatch(text):
                parts = [self._made_label(part, own) for part in match.groups()]
                if all(parts):
                    return self.text(key, **dict(zip(("first", "last"), parts, strict=False)))
        return ""


ENGLISH = Language()

# ---- The texts: a file a language, with the same keys and placeholders in each.

# Of the columns of results, in English; `texts/en.json` does not repeat them.
_OF_COLUMNS: Mapping[str, str] = {
    "value_noisy": RELEASED[0].meaning,
    "value_adaptive": ADAPTIVE[0].meaning,
    "value_planned_anew": PLANNED_ANEW[0].meaning,
    "value_processed": PROCESSED_VALUE.meaning,
    "estimate_meaning": UNBIASED_VALUE.meaning,
    "error_meaning": STANDARD_ERROR_MEANING,
    "interval_meaning": INTERVAL_MEANING,
    "interval_adaptive": ADAPTIVE_INTERVAL_MEANING,
    "interval_planned_anew": PLANNED_ANEW[2].meaning,
    "adaptive_label": LABEL,
    "sums_meaning": SUMS_MEANING.strip(),
    "weighted_meaning": WEIGHTED_MEANING.strip(),
    "weighted_sums_meaning": WEIGHTED_SUMS_MEANING.strip(),
    "mean_meaning": MEANS[0].meaning,
    "mean_error_meaning": MEANS[1].meaning,
    "mean_interval_meaning": MEANS[2].meaning,
    "impossible": IMPOSSIBLE_NOTE,
    "empty_area": EMPTY_NOTE,
    "known": KNOWN_NOTE,
}


@cache
def _units() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """The words for who is protected, by noun, language, and `Language.unit`; "*": of others."""
    file = resources.files("rpexplore.results.formats") / "texts" / "units.json"
    return json.loads(file.read_text("utf-8"))


@cache
def texts_of(code: str) -> Mapping[str, str]:
    """The texts of a language in `LANGUAGES`, by their keys."""
    file = resources.files("rpexplore.results.formats") / "texts" / f"{code}.json"
    texts = json.loads(file.read_text("utf-8"))
    return {**_OF_COLUMNS, **texts} if code == "en" else texts
