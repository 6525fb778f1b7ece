"""Arguments of public functions: what is wrong with them, once one has raised a strange error.

Nothing is checked where all goes well, and errors of this package are left as they are.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from rpexplore.common.numbers import shown, whole_number
from rpexplore.errors import ArgumentError, RpexploreError

_NOUNS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    np.ndarray: "a NumPy array",
}


def answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with an `ArgumentError` for arguments that are not as its signature says.

    Raised instead of an error of another kind, and only where an argument explains that one.
    """

    @wraps(function)
    def answered(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except RpexploreError:
            raise
        except Exception:
            _check(function, arguments, named)
            raise

    return answered


def answering_class(kind: type) -> None:
    """Make the constructor and the public methods of a class, and of its bases here, answering."""
    for base in kind.__mro__:
        if not base.__module__.startswith("rpexplore.") or "_answers" in vars(base):
            continue
        for name, member in list(vars(base).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if inspect.isfunction(member):
                setattr(base, name, answering(member))
            elif isinstance(member, classmethod):
                setattr(base, name, classmethod(answering(member.__func__)))
        base._answers = True  # pyright: ignore[reportAttributeAccessIssue]


def _check(function: Callable[..., Any], arguments: tuple, named: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` for the first argument that is not what its annotation says."""
    name = function.__qualname__.removesuffix(".__init__")
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        raise ArgumentError(f"{name}(…) cannot be called like this: {error}.") from None
    try:
        hints = get_type_hints(function)
    except NameError:  # a name that only type checkers see
        return
    for argument, given in bound.items():
        several = signature.parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL
        for value in given if several else [given]:
            if argument in hints and not _fits(value, hints[argument]):
                raise ArgumentError(
                    f"{name}(…): {argument} must be {_noun(hints[argument])}, got {_given(value)}."
                ) from None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says, its elements included; True if not known."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if hint is None or hint is NoneType:
        return value is None
    if hint is int:
        return whole_number(value) is not None
    if hint is float:
        return isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if origin is type:
        return isinstance(value, type)
    kind = origin or hint
    try:
        if not isinstance(value, kind):
            return False
    except TypeError:  # a protocol that only type checkers know
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    if not parts or not isinstance(value, Collection):
        return True
    if isinstance(value, str):  # a list of its letters, which are texts
        return _fits("", parts[0])
    if isinstance(value, Mapping):
        return all(_fits(k, parts[0]) and _fits(v, parts[-1]) for k, v in value.items())
    if issubclass(kind, tuple) and parts[-1:] != (...,):
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if inspect.isclass(kind) and issubclass(kind, Iterable):
        return all(_fits(element, parts[0]) for element in value)
    return True


def _given(value: Any) -> str:
    """The value as given; only its type if it may hold records."""
    kind = type(value).__name__
    is_plain = isinstance(value, str | int | float | np.number | NoneType | type)
    return f"{shown(repr(value))} ({kind})" if is_plain else f"a value of type {kind}"


def _noun(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        nouns = list(dict.fromkeys(map(_noun, parts)))
        return " or ".join([", ".join(nouns[:-1]), nouns[-1]] if len(nouns) > 1 else nouns)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    kind = origin or hint
    if kind in _NOUNS:
        return _NOUNS[kind]
    if not inspect.isclass(kind):
        return str(kind)
    if issubclass(kind, PurePath):
        return "a path"
    if kind is Callable or issubclass(kind, Callable):
        return "a function"
    if issubclass(kind, Mapping):
        return "a dict"
    if issubclass(kind, Iterable) and kind.__module__ in ("builtins", "collections.abc"):
        return f"a list, each part {_noun(parts[0])}" if parts else "a list"
    return f"a {kind.__name__}"
