"""Plan, inspect and run the release of noisy tables under differential privacy.

From a codebook to published tables through this module alone: `import rpexplore as rp`. Names are
loaded when they are first used (PEP 562), so that planning loads no code that reads records.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from rpexplore import errors

# Public name -> its module, as the stub tells type checkers.
_MODULES = {
    name: module
    for module, name in re.findall(
        r"^from (\S+\.\S+) import (?:\(\s+)?(\w+)",
        Path(__file__).with_suffix(".pyi").read_text("utf-8"),
        re.M,
    )
}

__all__ = ["__version__", "errors", *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value = version("rpexplore")
    elif name in _MODULES:
        from rpexplore.common.arguments import answering, answering_class

        value = getattr(import_module(_MODULES[name]), name)
        if not isinstance(value, type):
            value = answering(value)
        elif not issubclass(value, Exception):
            answering_class(value)
    else:
        raise AttributeError(f"module 'rpexplore' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
