"""The form of a release: whether all that is chosen on the page can be used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from pages.components.shared.session import escaped
from rpexplore.data.source import Source
from rpexplore.errors import RpexploreError
from rpexplore.planning.plan import Plan

T = TypeVar("T")


@dataclass
class ReleaseForm:
    """The plan and the records of a release; incomplete once an input of it cannot be used."""

    planned: Plan
    data: Source
    is_complete: bool = True

    def attempt(self, make: Callable[[], T]) -> T | None:
        """What `make` returns; None where it is refused, and the page says why."""
        try:
            return make()
        except RpexploreError as error:
            st.error(escaped(error.on_screen()))
            self.is_complete = False
            return None

    def wait(self, text: str) -> None:
        """Say what is still to be chosen."""
        st.info(text)
        self.is_complete = False
