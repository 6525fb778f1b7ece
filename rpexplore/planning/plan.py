"""Plan: the boundary between planning and release. A frozen value, one JSON file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.exact_numbers import Decimals
from rpexplore.common.formatting import rounded
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.planning import plan_file
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.query_covariance import (
    normal_quantile,
    query_covariance,
    residuals_within,
)
from rpexplore.planning.mechanism.strategy import Moments
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.plan_summary import plan_summary
from rpexplore.planning.plan_writer import text_from_fields
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import AttributeSet, Workload

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.verification import Check


@dataclass(frozen=True, eq=False, repr=False)
class Plan(ReleasePlan):
    """Noise scales for every residual of a workload, and what follows from them. No records.

    sigma_squared       exact σ² of each residual, in the order of `closure`
    closure             measured by the strategies of attributes that are asked in other ways than
                        by single values
    table_variances     of each table: mean over its cells, worst and best cell
    exact_privacy_cost  of the privacy unit, an upper bound in exact arithmetic, ≤ the budget's
    version             of the library that made the plan

    Make one with `rpexplore.plan` or `Plan.load`.
    """

    file_format = plan_file.FORMAT
    item, released_item = "table", "noisy table"

    workload: Workload
    loss: Loss
    budget: Budget
    closure: Closure
    sigma_squared: Decimals
    table_variances: TableVariances
    exact_privacy_cost: Fraction
    certificate: Certificate
    version: str

    # ---- what it is about

    @property
    def domain(self) -> Domain:
        return self.workload.domain

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        return self.workload.used

    @property
    def n_items(self) -> int:
        return len(self.workload)

    @property
    def accuracy_statement(self) -> str:
        return "Every table's answers are unbiased, with the standard errors the plan states."

    def checks(self, *, strategies: bool = True) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import table_checks  # which needs this module

        return table_checks(self, strategies=strategies)

    # ---- what it is worth

    @property
    def loss_value(self) -> float:
        """The plan's loss; `certificate` bounds how far it is from the smallest possible."""
        return self.certificate.loss_value

    @property
    def variances(self) -> np.ndarray:
        """Mean variance of the cells of each table, float64[n_tables].

        In a marginal all cells have this one; elsewhere see `table_variances`.
        """
        return self.table_variances.mean

    @property
    def proven(self) -> str:
        """How good the plan is proven to be, in words."""
        if not self.loss.is_available:
            return (
                f"Whether {self.loss.description} can be smaller is known to the script that made "
                "the plan; this file cannot prove it."
            )
        return self.certificate.sentence(any_measuring=not self.closure.strategies)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Root of the mean variance of each table's cells, float64[n_tables]."""
        return self.table_variances.standard_errors("mean")

    @cached_property
    def worst_standard_errors(self) -> np.ndarray:
        """Standard error of the least accurate cell of each table, float64[n_tables]."""
        return self.table_variances.standard_errors("worst")

    def cell_standard_errors(self, table: AttributeSet) -> np.ndarray:
        """Standard error of every cell of a table of the workload, one axis an attribute."""
        position = self.workload.position(table)
        variances = CellVariances(self.workload, self.closure).variances_of(
            position, self.sigma_squared.floats
        )
        return np.sqrt(variances)

    @property
    def tables(self) -> "pd.DataFrame":
        """One row a table: attributes, order, cells, accuracy, weight, target, shadow price.

        A fresh copy each time, so that changing it does not change the plan.
        """
        return self._tables.copy()

    @cached_property
    def _tables(self) -> "pd.DataFrame":
        import pandas as pd  # half of the time that importing this package would take

        cells = self.workload.exact_cells
        fits = max(cells) < 2**63
        return pd.DataFrame(
            {
                "attributes": self.workload.tables,
                "order": self.workload.orders,
                "cells": cells.astype(np.int64) if fits else self.workload.cells,
                "mean_variance": self.variances,
                "max_variance": self.table_variances.worst,
                "standard_error": self.standard_errors,
                "worst_standard_error": self.worst_standard_errors,
                "best_standard_error": self.table_variances.standard_errors("best"),
                "weight": self.workload.weights,
                "target": self.workload.targets,
                "shadow_price": self.certificate.shadow_prices,
            }
        )

    def variance(self, table: AttributeSet) -> float:
        """Variance of a cell of any marginal that some table of the workload contains.

        Of its single values, however the workload's tables ask them. Where these differ, because
        an attribute has a strategy, it is that of the least accurate one.
        """
        places = self._places(table)
        if not any(place in self.closure.strategies for place in places):
            return self.query_variance(table, {})
        return float(np.max(self.marginal_variances(places)))

    def marginal_variances(self, places: Sequence[int]) -> np.ndarray:
        """Variance of every cell of the marginal on these ascending attribute places.

        One axis an attribute; some table of the workload must contain them.
        """
        residuals = residuals_within(self.closure, places)
        noise = self.sigma_squared.floats
        several = [place for place in places if self.closure.sizes[place] > 1]
        variances = np.zeros((2,) * len(several))
        for subset, residual in residuals.items():
            variances[tuple(int(place in subset) for place in several)] = noise[residual]
        for place in several:
            strategy, n = self.closure.strategies.get(place), int(self.closure.sizes[place])
            of = Moments.of_single_values(n)
            if strategy is not None:
                of = Moments.of_values(strategy)
            variances = np.tensordot(variances, np.stack([of.total, of.spread]), axes=(0, 0))
        return variances.reshape([int(self.closure.sizes[place]) for place in places])

    def margin_of_error(
        self,
        table: AttributeSet,
        confidence: float = 0.95,
        *,
        query: Mapping[str, Sequence[float]] | None = None,
    ) -> float:
        """Half the width of a confidence interval for a cell, or for a query on the table.

        Where the cells of a table differ in accuracy, it is that of the least accurate one.
        The released value is within this of the true one this often (normal quantiles; for
        standard errors below about 2 the noise's whole steps make that approximate). It covers
        the privacy noise only, not errors that were in the records before.
        """
        variance = self.query_variance(table, query) if query else self._cell_variance(table)
        return normal_quantile(confidence) * float(np.sqrt(variance))

    def _cell_variance(self, table: AttributeSet) -> float:
        """Of the least accurate cell of a table, as it is asked where the workload holds it."""
        position = self.workload.find(self._places(table))
        if position is None:
            return self.variance(table)
        return float(self.table_variances.worst[position])

    def covariance(
        self, table: AttributeSet, cell: Mapping[str, int], other: Mapping[str, int]
    ) -> float:
        """Covariance of the noise of two cells of a table.

        A cell is named by the index (from 0) of its category for each attribute of the table.
        """
        places = self._places(table)
        left, right = (self._cell_vectors(places, named) for named in (cell, other))
        sigma_squared = self.sigma_squared.floats
        return query_covariance(self.closure, sigma_squared, places, left, right)

    def query_variance(self, table: AttributeSet, query: Mapping[str, Sequence[float]]) -> float:
        """Variance of a product query ⊗ q_i on a table: a subtotal, a range, a difference.

        `query` gives the vector q_i (one number for each category) of some attributes; for an
        attribute left out, its first value is meant (any, where it is asked by single values: all
        have the same variance).
        """
        places = self._places(table)
        vectors = {}
        for place in places:
            size = int(self.closure.sizes[place])
            vectors[place] = np.zeros(size)
            vectors[place][0] = 1.0
        for name, vector in query.items():
            place = self._place_in(name, places)
            size = int(self.closure.sizes[place])
            try:
                values = np.asarray(vector, dtype=float)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape != (size,) or not np.all(np.isfinite(values)):
                raise WorkloadError(
                    f"The query on {name!r} must be {size} finite numbers, one for each of its "
                    f"values, got shape {values.shape}."
                )
            vectors[place] = values
        sigma_squared = self.sigma_squared.floats
        return query_covariance(self.closure, sigma_squared, places, vectors, vectors)

    def _places(self, table: AttributeSet) -> tuple[int, ...]:
        return self.workload.domain.positions(table)

    def _place_in(self, name: str, places: tuple[int, ...]) -> int:
        place = self.workload.domain.position(name)
        if place not in places:
            raise WorkloadError(f"The attribute {name!r} is not in the table; add it there.")
        return place

    def _cell_vectors(
        self, places: tuple[int, ...], cell: Mapping[str, int]
    ) -> dict[int, np.ndarray]:
        """Unit vectors that pick a cell, by attribute place."""
        vectors = {}
        for name, index in cell.items():
            place = self._place_in(name, places)
            size = int(self.closure.sizes[place])
            if isinstance(index, bool) or not isinstance(index, int | np.integer):
                raise WorkloadError(f"The index of {name!r} must be a whole number, got {index!r}.")
            if not 0 <= index < size:
                raise WorkloadError(f"The index of {name!r} must be 0 … {size - 1}, got {index}.")
            vectors[place] = np.zeros(size)
            vectors[place][index] = 1.0
        missing = [place for place in places if place not in vectors]
        if missing:
            name = self.workload.domain.names[missing[0]]
            raise WorkloadError(f"The cell does not say which value of {name!r}; give its index.")
        return vectors

    # ---- files

    @cached_property
    def text(self) -> str:
        """The canonical JSON text, described in schemas/plan-1.json."""
        return text_from_fields(vars(self))

    @classmethod
    def _read(cls, text: str, source: str) -> "Plan":
        return cls(**plan_file.fields_from_text(text, source))

    def __str__(self) -> str:
        return plan_summary(self)

    def __repr__(self) -> str:
        return f"<Plan for {len(self.workload):,} tables, ρ = {rounded(self.rho, 6, 'up')}>"
