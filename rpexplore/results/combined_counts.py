"""Combined own counts: the best answers to all counts of several releases (mathematics.md §10)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from rpexplore.common.processes import one_thread
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain, difference_of_cells
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_strategy import DECODING_TOLERANCE
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.query_release import ANSWERS, OwnCounts, read_measurements, rows_of_counts
from rpexplore.results.combined_sources import Combined, MeasuredRelease, joint_domain
from rpexplore.results.measurement_source import guarantee
from rpexplore.workload.query_list import MAX_ATOMS, MAX_CELLS, QueryList

# Release i measured R_i x + noise of variance γ_i² each. With A the rows R_i / γ_i of all releases,
# and b what they measured, in units of γ_i, the best linear unbiased answers to W x are D b with
# D = W A⁺ (Gauss–Markov; of all D with D A = W it has the shortest rows), and query i has the
# variance ‖D_i‖². Where all releases measured the same rows, their precisions add. Where neighbours
# replace a record, rows that count all cells alike are measured without noise: with the number of
# records N known, D A + c 1ᵀ = W for any c will do, so that D is (W P)(A P)⁺ with P = I − 11ᵀ/n, of
# the rows with noise, and c N is added.


@dataclass(frozen=True, eq=False, repr=False)
class CombinedCounts(Combined, OwnCounts):
    """The own counts of several releases, each answered by all that they measured.

    Raises `ReleaseError` for counts that cannot be combined.
    """

    releases: tuple[MeasuredRelease, ...]
    folder: CheckedFolder | None = None

    def __post_init__(self) -> None:
        _ = self._decoding

    @property
    def named(self) -> Path | None:
        return None if self.folder is None else self.folder.home

    @property
    def guarantee(self) -> str:
        return guarantee(self.sources, "counts")

    def files(self) -> dict[str, None]:
        """The files of the answers."""
        return {f"{ANSWERS}.csv": None, f"{ANSWERS}.parquet": None}

    @cached_property
    def domain(self) -> Domain:
        """The attributes of all lists."""
        domains = [plan.domain for plan in self._plans]
        for index, domain in enumerate(domains[1:], start=1):
            for before, earlier in enumerate(domains[:index]):
                for name in set(domain.names) & set(earlier.names):
                    alone = [Domain((each[name],)) for each in (earlier, domain)]
                    if difference := difference_of_cells(*alone):
                        raise ReleaseError(
                            f"The own counts of {self._name(before)} and {self._name(index)} "
                            f"{difference}; combine only what was planned with the same codebook."
                        )
        return joint_domain(domains)

    @cached_property
    def _atoms(self) -> tuple[Atoms, list[np.ndarray]] | None:
        """What all plans tell apart, and for each plan its own cell or atom for each of these.

        None where cells are few and no plan has atoms: then they are told apart by their numbers.
        """
        queries = [plan.queries for plan in self._plans]
        if all(each.atoms is None for each in queries) and self.domain.n_cells <= MAX_CELLS:
            return None
        parts = [each.atoms or Atoms.of_each_cell(each.domain) for each in queries]
        try:
            joint, own = Atoms.joined(self.domain, parts)
            if len(joint) > MAX_ATOMS:
                raise DomainError(f"they tell {len(joint):,} groups of cells apart.")
        except DomainError as error:
            raise ReleaseError(
                "The own counts of all releases together are about the attributes "
                f"{', '.join(self.domain.names)}, and cannot be combined: {error} Combine those of "
                "fewer attributes, or leave the counts out."
            ) from None
        return joint, own

    @cached_property
    def queries(self) -> QueryList:
        """All counts, each name once, with the smallest of its targets."""
        rows: dict[str, tuple[np.ndarray, float, int]] = {}
        for index, plan in enumerate(self._plans):
            queries = plan.queries
            coefficients = self._on_all_cells(index, queries.coefficients)
            for name, row, target in zip(
                queries.names, coefficients, queries.targets.tolist(), strict=True
            ):
                known, smallest, first = rows.get(name, (row, target, index))
                if not np.array_equal(known, row):
                    raise ReleaseError(
                        f"The count {name!r} counts other cells in {self._name(first)} than in "
                        f"{self._name(index)}; only counts of one name that are the same can be "
                        "combined."
                    )
                rows[name] = row, min(target, smallest), first
        coefficients, targets, _ = zip(*rows.values(), strict=True)
        atoms = None if self._atoms is None else self._atoms[0]
        return QueryList(self.domain, np.stack(coefficients), tuple(rows), np.array(targets), atoms)

    def cells(self) -> pa.Table:
        measured = [
            read_measurements(release.folder("counts"), plan)
            / np.sqrt(float(plan.measured_gamma_squared))
            for release, plan in zip(self.releases, self._plans, strict=True)
        ]
        numbers = np.concatenate(measured)
        answers = self._decoding @ numbers
        coefficients = self.queries.coefficients
        if np.any(self._are_exact) and np.any(public := np.ptp(coefficients, axis=1) == 0):
            row = int(np.argmax(self._are_exact))
            n_records = round(float(numbers[row] / self._measured_rows[row, 0]))
            answers[public] = coefficients[public, 0] * n_records
        return rows_of_counts(self.queries, answers, self.standard_errors)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Of each answer, exact: float64[n_queries]."""
        return np.sqrt(np.sum(self.noise_rows**2, axis=1))

    @property
    def noise_rows(self) -> np.ndarray:
        return np.where(self._are_exact, 0.0, self._decoding)

    @cached_property
    def _are_exact(self) -> np.ndarray:
        """Which measurements have no noise, those of all records alike: bool[n_measured]."""
        return np.concatenate(
            [plan.strategy.is_same & plan.budget.replaces for plan in self._plans]
        )

    @cached_property
    def _measured_rows(self) -> np.ndarray:
        """A, float64[n_measured, n_cells], also of what has no noise."""
        return np.concatenate(
            [
                self._on_all_cells(index, plan.strategy.integers)
                / np.sqrt(float(plan.gamma_squared))
                for index, plan in enumerate(self._plans)
            ]
        )

    @cached_property
    def _plans(self) -> list[QueryPlan]:
        return [release.plan.part("counts") for release in self.releases]

    def _name(self, index: int) -> str:
        return repr(self.releases[index].source.name)

    def _on_all_cells(self, index: int, rows: np.ndarray) -> np.ndarray:
        """Rows over the cells of a plan as rows over the cells of all attributes, [n, n_cells].

        Or over the atoms of all plans.
        """
        if self._atoms is not None:
            return rows[:, self._atoms[1][index]]
        plan = self._plans[index]
        names, sizes = self.domain.names, self.domain.sizes.tolist()
        own = [name for name in names if name in plan.domain.names]
        shaped = rows.reshape(-1, *plan.domain.sizes.tolist())
        shaped = shaped.transpose(0, *(plan.domain.position(name) + 1 for name in own))
        # A row counts a cell whatever the attributes are that it does not look at.
        wide = [size if name in own else 1 for name, size in zip(names, sizes, strict=True)]
        return np.broadcast_to(shaped.reshape(-1, *wide), (len(rows), *sizes)).reshape(
            len(rows), -1
        )

    @cached_property
    def _decoding(self) -> np.ndarray:
        """D, float64[n_queries, n_measured]."""
        coefficients, matrix, exact = (
            self.queries.coefficients,
            self._measured_rows,
            self._are_exact,
        )
        wanted, noisy = coefficients, matrix
        if np.any(exact):  # P, and for what has no noise nothing that is averaged
            noisy = np.where(exact[:, None], 0.0, matrix - matrix.mean(axis=1, keepdims=True))
            wanted = coefficients - coefficients.mean(axis=1, keepdims=True)
            wanted[np.ptp(coefficients, axis=1) == 0] = 0
        with one_thread():
            left, values, right = np.linalg.svd(noisy, full_matrices=False)
            kept = values > values[0] * max(matrix.shape) * np.finfo(float).eps
            found = (wanted @ right[kept].T / values[kept]) @ left[:, kept].T
            if np.any(exact):
                row = int(np.argmax(exact))
                found[:, exact] = 0
                found[:, row] = np.mean(coefficients - found @ matrix, axis=1) / matrix[row, 0]
            off = np.max(np.abs(found @ matrix - coefficients), axis=1)
        # As a plan is checked: unbiased to as many digits.
        if not np.all(off <= DECODING_TOLERANCE * np.max(np.abs(coefficients), axis=1)):
            raise ReleaseError(
                "The own counts of these releases differ too much in accuracy, or in the sizes of "
                "their coefficients, to be averaged in floating point; use the most accurate one."
            )
        return found
