"""What is counted of a table in an engine, and what is found to be wrong while it is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from math import prod

import numpy as np

from rpexplore.data.area_coding import AreaCoder
from rpexplore.data.coding import unknown_value_error
from rpexplore.data.counts import Counts
from rpexplore.data.source import PersonRule
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import DataError

STATE = "state_of_person"
"""A column of coded records: what their person is for the rule; 0 where nothing is wrong."""
OF_NOBODY, BEYOND = 1, 2
"""The other states: nobody knows whose it is, or it is one more than the rule allows a person."""

_MOST_CELLS = 400_000_000  # of all tables; a release counts fewer at a time
_MOST_SUBSETS = 6  # attributes of a table of which all subsets are compared


@dataclass(frozen=True)
class Request:
    """What is counted.

    records        the name of the records, for errors
    tables         ascending attribute indices, none in another
    unknown_codes  attribute index -> the code of what is unknown or missing; else it is refused
    rule           how many records of a person are counted; None: all
    area_coder     codes the areas that tables are counted by, which stand in these as attributes
                   behind the domain's; None for none
    """

    records: str
    domain: Domain
    tables: tuple[AttributeIndices, ...]
    unknown_codes: Mapping[int, int]
    rule: PersonRule | None
    area_coder: AreaCoder | None = None

    @cached_property
    def sizes(self) -> list[int]:
        """Of all attributes of the domain, and of the areas behind them."""
        of_areas = [] if self.area_coder is None else self.area_coder.sizes
        return self.domain.sizes.tolist() + of_areas

    @cached_property
    def area_columns(self) -> dict[str, str]:
        """The columns of coded records that hold the codes of areas, as texts: name -> column."""
        names = [] if self.area_coder is None else self.area_coder.names
        return {f"area{number}": name for number, name in enumerate(names)}

    @cached_property
    def attribute_indices(self) -> list[int]:
        """All attributes of the domain that any of the tables has, ascending."""
        indices = {index for table in self.tables for index in table}
        return sorted(index for index in indices if index < len(self.domain))

    def refuse_too_many(self) -> None:
        """Raise `DataError` if more counts could come back than there is memory for."""
        n_cells = sum(prod(self.sizes[index] for index in table) for table in self.tables)
        if n_cells > _MOST_CELLS:
            raise DataError(
                f"The tables to count have {n_cells:,} cells in all, and at most {_MOST_CELLS:,} "
                "can be; count fewer or smaller tables."
            )

    @property
    def n_checks(self) -> int:
        """How many numbers `refuse` takes."""
        of_areas = 0 if self.area_coder is None else len(self.area_coder.refusals)
        return 2 * len(self.attribute_indices) + 2 + of_areas

    def refuse(self, checks: Sequence[int]) -> None:
        """Raise `DataError` for what is wrong with records.

        checks: how many are unknown, and missing, in each attribute; then how many are nobody's,
            and how many are beyond those that the rule allows a person; then, of areas, how many
            have each of the `AreaCoder.refusals`
        """
        n_of_attributes = 2 * len(self.attribute_indices)
        of_attributes, of_areas = checks[:n_of_attributes], checks[n_of_attributes + 2 :]
        n_of_nobody, n_beyond = checks[n_of_attributes : n_of_attributes + 2]
        if self.rule is not None and n_of_nobody:
            raise DataError(
                f"The column {self.rule.column!r} is empty in some records, so that nobody knows "
                "whose they are; fill it in, or leave these records out."
            )
        if self.rule is not None and n_beyond:
            raise self.rule.excess_error()
        for position, index in enumerate(self.attribute_indices):
            for is_missing in (False, True):
                if of_attributes[2 * position + is_missing]:
                    raise unknown_value_error(self.domain.names[index], is_missing=is_missing)
        if self.area_coder is not None:
            for refusal, n_refused in zip(self.area_coder.refusals, of_areas, strict=True):
                if n_refused:
                    raise self.area_coder.refusal_error(refusal)

    def changed_error(self) -> DataError:
        """The error for counts that are not all of the same records."""
        return DataError(
            f"The records {self.records} changed while they were counted, or are not the same "
            "whenever they are read; nothing of these counts is used. Wait until they are "
            "complete, and run again."
        )


def agree(counts: Counts) -> bool:
    """Whether tables have the same total, and the same marginals on what they share."""
    seen: dict[AttributeIndices, bytes] = {}
    for table, cells in counts.tables.items():
        if cells.sum(dtype=np.int64) != counts.n_records:
            return False
        some = range(1, len(table)) if len(table) <= _MOST_SUBSETS else range(1, 2)
        for kept in (kept for size in some for kept in combinations(range(len(table)), size)):
            left = tuple(axis for axis in range(len(table)) if axis not in kept)
            shared = tuple(table[axis] for axis in kept)
            marginal = cells.sum(axis=left, dtype=np.int64).tobytes()
            digest = blake2b(marginal, digest_size=16).digest()
            if seen.setdefault(shared, digest) != digest:
                return False
    return True
