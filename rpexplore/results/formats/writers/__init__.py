"""One module a format that tables can be exported to; its name is what people ask for.

A module has a constant FORMAT, and nothing else has to know of it: to add a format, add its
module here and a test of what it writes.

Imports `results.formats` and what that may import.
"""

from pkgutil import iter_modules

DEFAULT = "frictionless"
NAMES = tuple(
    sorted(
        (module.name for module in iter_modules(__path__)), key=lambda name: (name != DEFAULT, name)
    )
)
"""The formats, the usual one first."""
