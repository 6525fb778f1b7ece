"""A field for a number that need not be whole.

In a browser's own field for numbers a decimal comma is lost, and 1,5 becomes 15.
"""

from typing import Any

import streamlit as st

from pages.components.shared.session import attempt
from rpexplore.common.typed_numbers import number_of, number_text


def number_field(
    label: str,
    key: str,
    *,
    where: Any = st,
    value: float | None = None,
    least: float | None = None,
    most: float | None = None,
    **options: Any,
) -> float | None:
    """The number in a field; None while it is blank or, which the page says, no such number."""
    # As wide as the field: in a row it would take all that is left.
    field = where.container(width=options.get("width", "stretch"))
    typed = field.text_input(label, number_text(value), key=key, **options)
    with field:
        return attempt(lambda: number_of(typed, least=least, most=most))
