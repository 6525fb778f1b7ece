"""How one part of a plan is made again: what its kind has to say, for a script and a command."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PartFile:
    """A file of the bundle: its text, and what it holds, in a few words."""

    text: str
    purpose: str


@dataclass(frozen=True)
class Reproduction:
    """How a part is made again.

    asked        Python expression of what is asked for
    settings     of the request, beside `asked`: names -> Python expressions
    definitions  Python functions that `asked` calls
    imports      lines that these need, beside rpexplore; needs_path: whether they need pathlib
    verb         the command and what stands behind it; empty where options cannot say it all
    options      of the command, each with its value, without the budget
    files        that script, command and people read, by name
    after        a command for what comes after the release, with a comment; "" for none
    """

    asked: str
    definitions: str
    verb: Sequence[str]
    options: Sequence[Sequence[str]]
    settings: Mapping[str, str] = field(default_factory=dict)
    imports: Sequence[str] = ()
    needs_path: bool = False
    files: Mapping[str, PartFile] = field(default_factory=dict)
    after: str = ""
