"""Codes that Spark has looked up, as they come to its Python workers: many in one whole number."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rpexplore.data.coding import MISSING, code_type
from rpexplore.data.databases.packing import Word, unpacked
from rpexplore.data.databases.request import Request


@dataclass(frozen=True)
class Layout:
    """How records without a rule for persons come to `counts_of_part`.

    words     of columns w0, w1, … of what Spark has looked up, `UNKNOWN` where it found nothing
    unlisted  attributes whose values come as they are, v<index>
    """

    words: tuple[Word, ...]
    unlisted: tuple[int, ...]

    @property
    def listed(self) -> list[int]:
        """The attributes of the words."""
        return [int(name[1:]) for word in self.words for name in word]


class UnlistedError(Exception):
    """Raised if values are not found where Spark has looked them up: nothing can be said of these.

    attribute_indices: of the columns that hold such values
    """

    def __init__(self, attribute_indices: Collection[int]) -> None:
        super().__init__("values are not written as in the codebook")
        self.attribute_indices = attribute_indices


def listed_codes(batch: pa.RecordBatch, layout: Layout, request: Request) -> dict[int, np.ndarray]:
    """Codes of what Spark has looked up; `UNKNOWN` where it has not found a value."""
    numbers = [batch.column(f"w{place}").to_numpy() for place in range(len(layout.words))]
    if not numbers:
        return {}
    columns = unpacked(np.stack(numbers, axis=1), layout.words)
    codes = {index: columns.column(f"c{index}").to_numpy() for index in layout.listed}
    for index, code in request.unknown_codes.items():
        if index in codes and MISSING in codes[index]:
            wide = codes[index].astype(code_type(request.sizes[index]))
            codes[index] = np.where(wide == MISSING, code, wide)
    return codes
