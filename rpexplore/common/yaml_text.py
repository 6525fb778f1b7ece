"""Plain values as YAML text: mappings, lists, texts, numbers.

Texts stand as JSON has them, which YAML 1.2 reads as it is, or as a block of lines where they are
long or have several lines: people go on with these files in an editor.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LONG = 72  # signs


def yaml_text(content: Mapping[str, Any]) -> str:
    """The YAML text of a mapping whose keys are plain words.

    Values are mappings, lists, texts, numbers, or truth values.
    """
    return "".join(f"{line}\n" for line in _lines_of_mapping(content))


def _lines_of_mapping(content: Mapping[str, Any]) -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield f"{key}:"
            yield from (f"  {line}" if line else "" for line in _lines_of_mapping(value))
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield f"{key}:"
            yield from (f"  - {_scalar(item)}" for item in value)
        elif isinstance(value, str) and _is_for_block(value):
            yield f"{key}: |-"
            yield from (f"  {line}" if line else "" for line in value.split("\n"))
        else:
            yield f"{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float) and "." not in text:
        text = text.replace("e", ".0e")  # "1e-06" is a text to readers of YAML 1.1
    # YAML forbids some of the signs that JSON may hold.
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in text)


def _is_for_block(text: str) -> bool:
    """Whether a block of lines holds exactly this text, and is the better one to read."""
    lines = text.split("\n")
    return (
        (len(lines) > 1 or len(text) > _LONG)
        and all(line.isprintable() for line in lines)
        and lines[0] != ""
        and not lines[0].startswith(" ")
        and lines[-1].strip() != ""
    )
