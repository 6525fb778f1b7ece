"""Names and other short texts: which can be kept, and in which form."""

from collections.abc import Iterable
from typing import Any
from unicodedata import normalize

from rpexplore.common.exact_numbers import shown, shown_value
from rpexplore.errors import RpexploreError


def check_names(
    texts: Iterable[Any], noun: str, repeated: str, error: type[RpexploreError]
) -> tuple[str, ...]:
    """The texts in the form NFC; raises `error` unless they are distinct, and none is empty.

    repeated: what is wrong with one that is there twice, and what to do about it
    """
    seen: dict[str, str] = {}  # as given, by the form
    for number, text in enumerate(texts, start=1):
        if not is_text(text) or not text.strip():
            raise error(
                f"The {noun} number {number:,} must be a text that files can hold and that is not "
                f"empty, got {shown_value(text)}; name it, or leave it out."
            )
        form = normalize("NFC", text)
        if form in seen:
            forms = "" if seen[form] == text else " (in two Unicode forms)"
            raise error(f"The {noun} {text!r}{forms} {repeated}.")
        seen[form] = text
    return tuple(seen)


def check_text(text: Any, noun: str, most: int, error: type[RpexploreError]) -> None:
    """Raise `error` unless it is a text that files can hold, of at most so many characters.

    noun: what it is, with its article
    """
    if not is_text(text):
        raise error(
            f"{noun} must be a text that UTF-8 can write, got {shown(ascii(text))}; type it anew."
        )
    if len(text) > most:
        raise error(f"{noun} can have {most:,} characters, got {len(text):,}; shorten it.")


def is_text(value: object) -> bool:
    """Whether it is a text that files and databases can hold: no lone surrogates, and no NUL."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
