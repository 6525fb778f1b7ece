"""The options of the verb plan from a TOML file (--request)."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import click

from rpexplore.cli.commands import Option
from rpexplore.cli.options import LossHelp
from rpexplore.common.files import file_bytes
from rpexplore.errors import RpexploreError

REQUEST = "--request"
RequestFile = Annotated[
    Path | None,
    Option(
        REQUEST,
        metavar="FILE",
        help="Options from a TOML file, for what is long: an option's name without --, = and its "
        "value, or a list of values; codebook names the codebook. Paths are relative to the file; "
        "options beside it come on top.",
    ),
]
_PATHS = (
    "codebook",
    "areas",
    "lists",
    "tables",
    "counts",
    "free-counts",
    "expected",
    "public",
    "from-release",
    "out",
)


class PlanCommand(LossHelp):
    """The verb, whose options may also come from a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        files, others = _split_at_requests(args)
        if len(files) > 1:
            raise RpexploreError(
                f"{REQUEST} is given {len(files)} times; name one file, and put all in it."
            )
        for file in files:
            others = [*_arguments(file, self.params), *others]
        try:
            return super().parse_args(ctx, others)
        except click.MissingParameter as error:
            if not files or error.param is None or error.param.name != "codebook":
                raise
            raise RpexploreError(
                f"The request {files[0].name} names no codebook, and there is none beside it; "
                'write codebook = "codebook.json" into the file, or name it in front of '
                f"{REQUEST}: rpexplore plan codebook.json {REQUEST} {files[0].name}."
            ) from None


def _split_at_requests(args: list[str]) -> tuple[list[Path], list[str]]:
    """The request files of a command line, and what else it says."""
    files: list[Path] = []
    others: list[str] = []
    left = iter(args)
    for text in left:
        if text.startswith(f"{REQUEST}="):
            files.append(Path(text.removeprefix(f"{REQUEST}=")))
        elif text == REQUEST and (file := next(left, None)) is not None:
            files.append(Path(file))
        else:
            others.append(text)
    return files, others


def _arguments(file: Path, parameters: Iterable[click.Parameter]) -> list[str]:
    """What a request file says, as it would stand on the command line.

    parameters: those of the verb, which say what there is, and what is yes or no
    """
    known = {flag.removeprefix("--"): each for each in parameters for flag in each.opts}
    try:
        text = file_bytes(file, f"The request {str(file)!r}", RpexploreError).decode()
        content = tomllib.loads(text)
    except ValueError as error:
        raise RpexploreError(f"The request {file.name} is no TOML file ({error}).") from None
    arguments = []
    for name, value in content.items():
        if f"--{name}" == REQUEST:
            raise RpexploreError(
                f"The request {file.name} names another request; put its options in one file."
            )
        if name not in known:
            raise RpexploreError(
                f"The request {file.name} says {name!r}, which is no option of this verb; see "
                "rpexplore plan --help."
            )
        if isinstance(value, list) and not getattr(known[name], "multiple", False):
            raise RpexploreError(
                f"The request {file.name} must have one value for {name!r}, got a list."
            )
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict | list):
                raise RpexploreError(
                    f"The request {file.name} must have one value, or a list of values, for "
                    f"{name!r}."
                )
            is_flag = getattr(known[name], "is_flag", False)
            if is_flag != isinstance(one, bool):
                must = "true or false" if is_flag else "a value"
                raise RpexploreError(
                    f"The request {file.name}: {name} must be {must}, got {_as_toml(one)}."
                )
            if name in _PATHS and not isinstance(one, str):
                raise RpexploreError(
                    f"The request {file.name}: {name} must be a path in quotation marks, got "
                    f"{_as_toml(one)}."
                )
            if one is False:
                continue
            text = str(one)
            if name in _PATHS:
                text = str(file.parent / text)
            elif name == "basis" and "=custom:" in text:
                attribute, sign, path = text.partition("=custom:")
                text = f"{attribute}{sign}{file.parent / path}"
            if name == "codebook":
                arguments.append(text)
            else:
                arguments += [f"--{name}"] if one is True else [f"--{name}", text]
    return arguments


def _as_toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
