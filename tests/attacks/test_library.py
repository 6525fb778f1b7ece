"""Every public name called with odd values: refused by an error of the library, or done."""

import inspect
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ArgumentError, RpexploreError

ODD = [None, 3, -1, "x", b"x", [], ["x"], [None], [[]], {}, {"x": None}, 1j, float("nan"), object()]


def callables() -> Iterator[tuple[str, Callable]]:
    """Every exported function, constructor and class method."""
    for name in rp.__all__:
        exported = getattr(rp, name)
        is_class = isinstance(exported, type)
        if not callable(exported) or (is_class and issubclass(exported, Exception)):
            continue
        yield name, exported
        for part in dir(exported) if is_class else ():
            is_of_class = isinstance(inspect.getattr_static(exported, part), classmethod)
            if is_of_class and not part.startswith("_"):
                yield f"{name}.{part}", getattr(exported, part)


def odd_calls(function: Callable) -> Iterator[dict]:
    """Arguments that are all one odd value: those that must be given, and one more."""
    parameters = inspect.signature(function).parameters.values()
    required = [each.name for each in parameters if each.default is each.empty]
    yield {}
    for value in ODD:
        yield dict.fromkeys(required, value)
        for parameter in parameters:
            yield dict.fromkeys([*required, parameter.name], value)


def test_odd_arguments_are_answered_by_an_error_of_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strange, n_calls = [], 0
    for name, function in callables():
        for arguments in odd_calls(function):
            n_calls += 1
            try:
                function(**arguments)
            except RpexploreError:
                pass
            except Exception as error:
                strange.append(f"{name}({arguments}): {error!r}")
    assert not strange
    assert n_calls > 4000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rp.Domain.load(None),
            r"Domain.load\(…\): path must be a text or a path, got N",
        ),
        (lambda: rp.dry_run(None, "records.csv"), "missing a required argument: 'output'"),
        (lambda: rp.combine(noisy="x"), "noisy must be a list, each part a NoisyMarginal"),
    ],
)
def test_the_argument_is_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_what_may_hold_records_is_not_shown():
    records = pd.DataFrame({"age": [4711, 4712]})
    with pytest.raises(ArgumentError, match="a value of type DataFrame") as caught:
        rp.combine(records)  # pyright: ignore[reportArgumentType]
    assert "4711" not in str(caught.value)
    with pytest.raises(rp.errors.PlanError, match="got DataFrame") as caught:
        rp.release(records, "records.csv", "out")  # pyright: ignore[reportArgumentType]
    assert "4711" not in str(caught.value)
