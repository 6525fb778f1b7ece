"""Tables with a row for each part of an area and a column for each cell, many after another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class FamilyTables:
    """How tables of different sizes lie in one array, each of them row by row.

    n_rows, n_columns  int64[n_tables], above 0
    """

    n_rows: np.ndarray
    n_columns: np.ndarray

    @cached_property
    def table_of_row(self) -> np.ndarray:
        """int64[n_rows of all]."""
        return np.repeat(np.arange(len(self.n_rows)), self.n_rows)

    @cached_property
    def table_of_column(self) -> np.ndarray:
        """int64[n_columns of all]."""
        return np.repeat(np.arange(len(self.n_columns)), self.n_columns)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """The entry that each row begins with, int64[n_rows of all]."""
        widths = self.n_columns[self.table_of_row]
        return np.cumsum(widths) - widths

    @cached_property
    def column_starts(self) -> np.ndarray:
        """Where each column begins in entries in the order of `by_column`."""
        heights = self.n_rows[self.table_of_column]
        return np.cumsum(heights) - heights

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry, int32."""
        widths = self.n_columns[self.table_of_row]
        return np.repeat(np.arange(len(widths), dtype=np.int32), widths)

    @cached_property
    def columns(self) -> np.ndarray:
        """The column of each entry, int32."""
        first = np.cumsum(self.n_columns) - self.n_columns
        offsets = first[self.table_of_row] - self.row_starts
        return (np.arange(len(self.rows)) + offsets[self.rows]).astype(np.int32)

    @cached_property
    def by_column(self) -> np.ndarray:
        """The entries column by column, int64."""
        return np.argsort(self.columns, kind="stable")

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The entry in a row and a column of the same table, for each of them."""
        first = np.cumsum(self.n_columns) - self.n_columns
        return self.row_starts[rows] + columns - first[self.table_of_column[columns]]

    def row_sums(self, values: np.ndarray) -> np.ndarray:
        """Of numbers for entries, [n_rows of all]."""
        return np.add.reduceat(values, self.row_starts)

    def column_sums(self, values: np.ndarray) -> np.ndarray:
        """Of numbers for entries, [n_columns of all]."""
        return np.add.reduceat(values[self.by_column], self.column_starts)

    def some(self, tables: np.ndarray) -> tuple["FamilyTables", np.ndarray, np.ndarray]:
        """Some of the tables, bool[n_tables]; and whether each row, and each column, is theirs."""
        return (
            FamilyTables(self.n_rows[tables], self.n_columns[tables]),
            tables[self.table_of_row],
            tables[self.table_of_column],
        )
