"""Attributes that no table of areas has, for records of areas: of records of the other tables."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.domain.attribute import Attribute
from rpexplore.releases.items import PartReader
from rpexplore.results.synthetic.impossible import Impossible, conditions_of_records
from rpexplore.results.synthetic.population import population_records
from rpexplore.results.synthetic.targets import refuse_many_values, smooth_tables, smooth_targets
from rpexplore.results.unbiased import Estimates

_POPULATION = 100_000  # records that values are taken from


@dataclass(frozen=True, eq=False)
class FurtherAttributes:
    """Values of further attributes for records whose other attributes are known.

    A record gets those of a donor, drawn from all records of the model (docs/mathematics.md §14)
    that have the values of the shared attributes: P(further | shared) of the model, and nothing of
    the area beyond these. Where there is none, of one that has the most of them.

    attributes  the further ones
    shared      those that records have already: of the area tables, or a level of the areas
    codes       int16[n, n_attributes]: donors, with all of these in the order of their domain
    places      bool[n_attributes]: whether each is a further one
    impossible  of all of them
    """

    attributes: tuple[Attribute, ...]
    shared: tuple[Attribute, ...]
    codes: np.ndarray
    places: np.ndarray
    impossible: Impossible

    @classmethod
    def of(
        cls,
        tables: PartReader,
        known: Mapping[str, Sequence[str]],
        seed: bytes,
        on_progress: Progress = no_progress,
    ) -> "FurtherAttributes | None":
        """Fit the model to unbiased tables; None where these have no further attributes.

        Args:
            known: The columns that the records have, and the texts of their values. Tables that
                have other values in such a column say nothing of it.
            seed: What all numbers follow from.

        Raises:
            ReleaseError: If no record is possible.
        """
        estimates = Estimates.of(tables.unbiased_tables())
        own = estimates.domain
        measured = sorted({index for table in estimates.tables for index in table})
        # A level of an attribute that the records have follows from this one.
        columns = {own.columns[index] for index in measured if own.names[index] in known}
        further = [
            index
            for index in measured
            if own.columns[index] not in columns and index not in own.amounts
        ]
        shared = [
            index
            for index in measured
            if (name := own.names[index]) in known
            and set(own.attributes[index].labels()).issuperset(known[name])
        ]
        if not further:
            return None
        attributes = tuple(sorted((*further, *shared)))
        conditions, _ = conditions_of_records(own, attributes, (), ignore_codebook=False)
        impossible = Impossible.of(own, attributes, conditions)
        refuse_many_values(estimates.domain, attributes)
        smooth = smooth_tables(estimates, part_of_progress(on_progress, 0.0, 0.2))
        targets, _ = smooth_targets(estimates, smooth.contributions, attributes)
        on_fit = part_of_progress(on_progress, 0.2, 1.0)
        codes = population_records(targets, _POPULATION, seed, impossible, on_fit)
        return cls(
            tuple(own.attributes[index] for index in further),
            tuple(own.attributes[index] for index in shared),
            codes,
            np.isin(attributes, further),
            impossible,
        )

    def drawn(
        self, columns: Mapping[str, pa.Array], n_records: int, numbers: SeededNumbers
    ) -> np.ndarray:
        """Values of the further attributes, int16[n_records, n_further].

        columns: of the records, of texts; null where a record has no value
        """
        known = np.empty((n_records, len(self.shared)), dtype=np.int16)
        for place, attribute in enumerate(self.shared):
            values = pa.array(attribute.labels())
            codes = pc.index_in(columns[attribute.name].cast(values.type), value_set=values)
            known[:, place] = codes.fill_null(-1)
        # Donors of the same cell side by side; those of a cell of records begin at `first`.
        keys, of_record = np.unique(self._keys(known), return_inverse=True)
        of_donors = self._keys(self.codes[:, ~self.places])
        donors = np.argsort(of_donors, kind="stable")
        first = np.searchsorted(of_donors, keys, "left", sorter=donors)
        n_donors = np.searchsorted(of_donors, keys, "right", sorter=donors) - first
        for cell in np.flatnonzero(n_donors == 0).tolist():
            nearest = self._nearest(known[np.argmax(of_record == cell)])
            first[cell], n_donors[cell] = len(donors), len(nearest)
            donors = np.concatenate([donors, nearest])
        chosen = (numbers.uniforms(n_records) * n_donors[of_record]).astype(np.int64)
        chosen = np.minimum(chosen, n_donors[of_record] - 1)  # a product may be rounded up
        return self.codes[donors[first[of_record] + chosen]][:, self.places]

    def _keys(self, known: np.ndarray) -> np.ndarray:
        """A number for the values of the shared attributes, int64[n]."""
        keys = np.zeros(len(known), dtype=np.int64)
        for place, attribute in enumerate(self.shared):
            keys = keys * (attribute.size + 1) + known[:, place] + 1
        return keys

    def _nearest(self, cell: np.ndarray) -> np.ndarray:
        """Donors that have the most of a cell's values, of those that are possible with them."""
        own = self.codes[:, ~self.places]
        alike = np.count_nonzero(own == cell, axis=1)
        records = self.codes.copy()
        records[:, ~self.places] = np.where(cell < 0, own, cell)
        possible = ~self.impossible.are_met(records)
        if np.any(possible):  # else the cell itself is impossible
            alike[~possible] = -1
        return np.flatnonzero(alike == alike.max())
