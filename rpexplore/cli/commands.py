"""Commands of Click, made of functions whose parameters are annotated with what they are."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import click

from rpexplore.common.numbers import exact_share
from rpexplore.common.text import count_of
from rpexplore.errors import RpexploreError

Kind = TypeVar("Kind", bound=click.Command)


class Option:
    """Marks a parameter of a command as an option: `Annotated[int, Option(min=1, help="…")]`.

    Its flag is made of the parameter's name where none is given. The type is that of the parameter:
    a bool is a flag, a list can be repeated, `min` and `max` are for numbers.
    """

    def __init__(
        self,
        *flags: str,
        metavar: str | None = None,
        help: str | None = None,
        min: int | None = None,
        max: int | None = None,
    ) -> None:
        self.flags, self.metavar, self.help, self.min, self.max = flags, metavar, help, min, max


@dataclass(frozen=True, kw_only=True)
class Argument:
    """Marks a parameter of a command as one that is given by its position."""

    metavar: str
    help: str


class Group(click.Group):
    """Commands below a name, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class _Choice(click.Choice):
    """The values of an enumeration; Click itself would offer the names of its members."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return str(choice)


class RecordCount(float):
    """A number of records as people type it, maybe with thousands separators."""


class Ratio(float):
    """A share or a coefficient of variation as people type it: 0.2, 1/5 or 20%."""


class _RatioType(click.ParamType):
    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        try:
            return float(exact_share(value, "The share"))
        except RpexploreError:
            self.fail(f"{str(value)!r} is no number; write 0.2, 1/5 or 20%.", param, ctx)


class _RecordCountType(click.ParamType):
    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        try:
            return count_of(str(value), "The number of records", least=None)
        except RpexploreError as error:
            self.fail(str(error), param, ctx)


def command(
    function: Callable[..., None], kind: type[Kind] = click.Command, **settings: Any
) -> Kind:
    """A command that calls a function, named for it; its docstring is the help.

    Args:
        function: Each parameter is annotated with an `Option` or `Argument`, or with a dataclass
            whose fields are: several commands then have one list of options. One without a default
            is required.
        kind: The class of the command.
        settings: What else its constructor takes.
    """
    settings.setdefault("name", function.__name__)
    parameters, lists = list[click.Parameter](), dict[str, Any]()
    for parameter in inspect.signature(function).parameters.values():
        if not is_dataclass(parameter.annotation):
            parameters.append(_parameter(parameter))
            continue
        lists[parameter.name] = parameter.annotation
        of_fields = inspect.signature(lists[parameter.name]).parameters.values()
        parameters += [_parameter(of_field) for of_field in of_fields]

    def call(**given: Any) -> None:
        for name, kind in lists.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(**given)

    return kind(
        callback=call if lists else function,
        params=parameters,
        help=inspect.getdoc(function),
        **settings,
    )


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    assert get_origin(parameter.annotation) is Annotated
    declared, mark = get_args(parameter.annotation)
    if isinstance(declared, UnionType):  # with None
        (declared,) = set(get_args(declared)) - {NoneType}
    is_list = get_origin(declared) is list
    kind = get_args(declared)[0] if is_list else declared
    is_required = parameter.default is parameter.empty
    settings: dict[str, Any] = {"required": is_required, "help": mark.help}
    if not is_required:
        default = parameter.default
        settings["default"] = str(default) if isinstance(default, StrEnum) else default
    if isinstance(mark, Argument):
        metavar = mark.metavar if is_required else f"[{mark.metavar}]"
        return click.Argument(
            [parameter.name],
            type=_type(kind),
            nargs=-1 if is_list else 1,
            metavar=f"{metavar}..." if is_list else metavar,
            **settings,
        )
    flags = mark.flags or (f"--{parameter.name.replace('_', '-')}",)
    if kind is bool:
        return click.Option([parameter.name, *flags], is_flag=True, **settings)
    return click.Option(
        [parameter.name, *flags],
        type=_type(kind, mark.min, mark.max),
        multiple=is_list,
        metavar=mark.metavar,
        show_default=parameter.default != "",
        **settings,
    )


def _type(kind: type, low: int | None = None, high: int | None = None) -> Any:
    """Click's type of a parameter of this type."""
    if low is not None or high is not None:
        return click.IntRange(low, high)
    if issubclass(kind, Path):
        return click.Path(path_type=Path)
    if issubclass(kind, StrEnum):
        return _Choice(kind)
    if kind is RecordCount:
        return _RecordCountType()
    if kind is Ratio:
        return _RatioType()
    return kind


def option(metavar: str, text: str, *names: str) -> Option:
    """An option with a value."""
    return Option(*names, metavar=metavar, help=text)


def flag(name: str, text: str) -> Option:
    """An option without one."""
    return Option(name, help=text)


def argument(metavar: str, text: str) -> Argument:
    """What is given by its position."""
    return Argument(metavar=metavar, help=text)
