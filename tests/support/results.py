"""Tables of results made up in tests, with what their columns are."""

from collections.abc import Sequence

import pandas as pd

from rpexplore.domain.result_schema import Column, Schema


def with_roles(
    frame: pd.DataFrame, figures: Sequence[Column], labels: Sequence[Column] = ()
) -> pd.DataFrame:
    """A frame with these columns; all others are codes of attributes of their names."""
    stated = {column.name: column for column in (*figures, *labels)}
    columns = [stated.get(name) or Column(name, "code", attribute=name) for name in frame.columns]
    return Schema(tuple(columns)).marked(frame)


def names_of(figures: Sequence[Column]) -> list[str]:
    """What figures are called: tests that list columns follow the schema."""
    return [column.name for column in figures]
