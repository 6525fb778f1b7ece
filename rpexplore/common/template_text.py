"""Texts made from a template: a script, commands, a README."""

from functools import cache
from typing import Any

import jinja2


def text_from_template(package: str, name: str, **values: Any) -> str:
    """The text of a file of a package's templates/, in which nothing is escaped."""
    return _template(package, name).render(values)


@cache
def _template(package: str, name: str) -> jinja2.Template:
    """It is compiled once: that takes as long as all the rest of a small release."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
