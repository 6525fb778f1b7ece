"""Values as Python source, for scripts that make a plan again."""

import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from rpexplore.analysis.budget_units import typed_text
from rpexplore.planning.loss_serialization import options_of_loss
from rpexplore.planning.losses.base import Loss
from rpexplore.privacy.budget import Budget


def printable(text: str) -> str:
    """Text of a user for one line of a comment, which nothing in it can end."""
    return "".join(c if c.isprintable() else "�" for c in text)


def source_of_loss(loss: Loss) -> str:
    """The constructor of a loss; raises `PlanError` for a custom one."""
    options_of_loss(loss)  # refuses what cannot be written down
    parameters: Any = loss  # a dataclass, as all losses are
    names = [field.name for field in fields(parameters)]
    arguments = [f"{name}={literal(getattr(loss, name))}" for name in names]
    return f"rp.{type(loss).__name__}({', '.join(arguments)})"


def source_of_budget(budget: Budget) -> str:
    """The constructor of a budget, as it was stated."""
    arguments = [f"{name}={literal(typed_text(value))}" for name, value in budget.stated]
    if budget.max_records_per_person is not None:
        arguments.append(f"max_records_per_person={budget.max_records_per_person}")
    return f"rp.Budget({', '.join(arguments)})"


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


def lines_of_call(function: str, arguments: Sequence[str]) -> str:
    """A call as source, an argument on each line."""
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def wrapped(values: Sequence[Any]) -> str:
    """A tuple as source, over several lines if it is long."""
    short = literal(tuple(values))
    if len(short) <= 60:
        return short
    lines, line = [], ""
    for source in map(literal, values):
        if line and len(line) + len(source) > 70:
            lines.append(line.rstrip())
            line = ""
        line += f"{source}, "
    lines.append(line.rstrip())
    return "(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"
