"""Python source of values: what a script writes down."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any


def literal(value: Any) -> str:
    """A value as Python source, in double quotation marks where that needs no escapes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    plain = isinstance(value, str) and text.startswith("'") and '"' not in text
    return f'"{text[1:-1]}"' if plain else text


def call(function: str, arguments: Sequence[str]) -> str:
    """A call as source, an argument on each line if it is long."""
    short = f"{function}({', '.join(arguments)})"
    if len(short) <= 76 and "\n" not in short:
        return short
    lines = "".join(textwrap.indent(f"{argument},\n", "    ") for argument in arguments)
    return f"{function}(\n{lines})"


def wrapped(values: Iterable[Any]) -> str:
    """A tuple as source, over several lines if it is long."""
    sources = [literal(value) for value in values]
    short = f"({', '.join(sources)}{',' if len(sources) == 1 else ''})"
    if len(short) <= 60:
        return short
    lines, line = [], ""
    for source in sources:
        if line and len(line) + len(source) > 70:
            lines.append(line.rstrip())
            line = ""
        line += f"{source}, "
    lines.append(line.rstrip())
    return "(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"
