"""The examples in docstrings run, and every public name has a docstring."""

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import rpexplore as rp

PACKAGE = Path(rp.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if " >>> " in path.read_text(encoding="utf-8")
)


class Finder(doctest.DocTestFinder):
    """Finds examples in functions whatever they are wrapped in."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_give_what_they_say(name: str):
    module = import_module(name)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    definitions = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, definitions)]
    runner = doctest.DocTestRunner()
    for test in Finder().find(module, name):
        runner.run(test)
    assert runner.failures == 0
    assert (runner.tries > 0) == any(">>>" in (text or "") for text in texts)


def test_every_public_name_has_a_docstring_of_its_own():
    for name in set(rp.__all__) - {"__version__"}:
        text = getattr(rp, name).__doc__
        assert text is not None, name
        # What a dataclass without a docstring is given is its signature.
        assert not text.startswith(f"{name}(")
        assert text.strip().split("\n")[0], name
