"""What a folder of results holds, table by table, in one form for releases of all kinds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from rpexplore.common.numbers import normal_quantile
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.result_schema import frame_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import (
    MarginalNoise,
    Where,
    answers,
    impossible_answers,
    marginal,
    sums_of,
)
from rpexplore.releases.manifest import CONFIDENCE, CheckedFolder, in_release
from rpexplore.releases.table_cells import MEANS_FOLDER, Labels, table_of_cells, table_path

if TYPE_CHECKING:
    import pandas as pd


# Exports, workbooks, pages and verbs go through the `items` of a `PartReader`, whatever its kind,
# and learn what columns are from their roles (`domain.result_schema`).


@dataclass(frozen=True, eq=False)
class Item:
    """A table of a folder of results: what becomes a sheet, a file or a resource.

    attributes  of the table, in the order of its columns; () for a total
    name        of its file, without folder and ending: "0003_age_sex"
    n_rows      how many rows it has
    read        its rows, each column with a role
    level       the level of areas that it is on; None of tables without areas
    file        its Parquet file within the folder, without ending; of tables in areas the folder
                of its files
    number      of tables in one file: that of the table, as the file has it; None of others
    note        what tells it from a table of the same attributes beside it; "" for nothing
    bound       how far all its estimates together are from the truth, in words; "" for nothing
    """

    attributes: tuple[str, ...]
    name: str
    n_rows: int
    read: Callable[[], pa.Table]
    level: str | None = None
    file: str = ""
    bound: str = ""
    note: str = ""
    number: int | None = None

    @classmethod
    def of_table(
        cls,
        position: int,
        attributes: tuple[str, ...],
        n_rows: int,
        read: Callable[[], pa.Table],
        bound: str = "",
    ) -> "Item":
        """A table whose files are `table_path`."""
        path = table_path(position, attributes)
        return cls(attributes, Path(path).name, n_rows, read, file=path, bound=bound)

    def in_one_file(self, number: int) -> "Item":
        """The same as one of the tables in one file (`packed_tables`), by its number there."""
        return replace(self, file="tables", number=number)

    def of_part(self, kind: str) -> "Item":
        """The same as one among those of several parts of a release."""
        note = "adaptive" if kind == "rounds" else self.note
        return replace(
            self, name=f"{kind}_{self.name}", file=in_release(kind, self.file), note=note
        )

    @property
    def title(self) -> str:
        """ "age × sex"; "total" of no attributes; "municipality: age × sex" on a level of areas."""
        table = " × ".join(self.attributes) or "total"
        table += f" ({self.note})" if self.note else ""
        return table if self.level is None else f"{self.level}: {table}"

    @property
    def is_of_means(self) -> bool:
        """Whether its figures are means, also as one among those of several parts."""
        return f"/{MEANS_FOLDER}/" in f"/{self.file}"

    @property
    def frame(self) -> "pd.DataFrame":
        """Its rows as a DataFrame that keeps what its columns are."""
        return frame_of(self.read())


class Figures:
    """What kind of figures there are: unbiased ones, unless something says otherwise."""

    attributes: Any
    table_names: Any
    has: Any
    axis: str = ""  # of areas side by side: the column that says which one a row is of
    in_areas: ClassVar[bool] = False  # whether they are of an area, or of some side by side

    @property
    def whose(self) -> tuple[str, ...]:
        """What tells their files from those of other areas; () without areas."""
        return ()

    @property
    def is_biased(self) -> bool:
        """Whether they were processed or estimated, so that they are not right on average."""
        return False

    @property
    def is_smooth(self) -> bool:
        """Whether they are best guesses by a model, with a model-based error."""
        return False

    @property
    def has_unbiased(self) -> bool:
        """Whether unbiased figures stand beside biased ones."""
        return False

    @property
    def is_estimated(self) -> bool:
        """Whether they are biased, and nothing unbiased is beside them."""
        return self.is_biased and not self.has_unbiased

    def bound_of(self, attributes: Collection[str], record_noun: str = "records") -> str:
        """What is known of all errors of a table together, as a sentence; "" for nothing."""
        return ""

    def means_of(self, attributes: Collection[str]) -> "pd.DataFrame | None":
        """The means of a table with amounts, by the others of its attributes; None of others."""
        return None

    def clamping_of(self, attributes: Collection[str]) -> str:
        """What was done to amounts beyond their limits, as a sentence; "" without amounts."""
        return ""

    @property
    def has_sums(self) -> bool:
        """Whether sums over any values are known with their exact errors, from `marginals`."""
        return False

    def marginals(self, attributes: Collection[str]) -> "Sequence[Marginal]":
        """The unbiased counts of these attributes by single values, with their noise.

        One, or one for each area of areas side by side. Raises `ReleaseError` without any.
        """
        raise ReleaseError(
            "Sums with exact errors are those of unbiased counts of single values; open the "
            "release that these tables were made of."
        )

    def has_counts(self, attributes: Collection[str]) -> bool:
        """Whether there are counts of these attributes together: a table, or within one."""
        return set(attributes) <= set(self.attributes) and self.has(attributes)

    def in_column_order(self, attributes: Collection[str]) -> tuple[str, ...]:
        """The attributes in the order in which tables have them as columns."""
        tables = (table for table in self.table_names if set(table) == set(attributes))
        in_order = (name for name in self.attributes if name in attributes)
        return next(tables, None) or tuple(in_order)


class PartReader(Figures, ABC):
    """What there is to read in a folder of results: base of all kinds of them.

    figures         what the figures are, to begin a sentence: "Noisy tables"
    label           how they came about, in words that go with them
    kind            of the part of a release, or of what was made of releases
    domain          the attributes that they are about; None where no codebook is at hand
    """

    kind: ClassVar[str]
    folder: Any
    plan: Any
    manifest: Any
    domain: Any

    @property
    def readers(self) -> "Sequence[PartReader]":
        """What is looked at by itself: the parts of a release, everything else as one."""
        return (self,)

    @property
    def figures(self) -> str:
        return "Noisy tables"

    @property
    def label(self) -> str:
        return "unbiased; as released"

    @property
    def guarantee(self) -> str:
        """What holds for all figures, or all that they were made from, in words."""
        return self.manifest["guarantee"]

    @property
    def made_of(self) -> Sequence[Any]:
        """The sources that it was computed from; () of a release, which is a source itself."""
        return ()

    @cached_property
    @abstractmethod
    def items(self) -> Sequence[Item]:
        """The tables, in the order of their files."""

    @property
    def area_levels(self) -> Sequence[str]:
        """The levels of areas that columns are of, from the top down."""
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those in some table, in the domain's order where it is known, levels of areas first."""
        used = dict.fromkeys(name for item in self.items for name in item.attributes)
        order = () if self.domain is None else self.domain.names
        known = [name for name in order if name in used]
        return (*self.area_levels, *dict.fromkeys([*known, *used]))

    @property
    def contents(self) -> str:
        """What there is, for a sentence: "7 noisy tables"."""
        return self.plan.contents

    def unbiased_tables(self) -> Any:
        """The unbiased tables that there are; raises `ReleaseError`, which says what is here."""
        raise ReleaseError(
            f"{str(self.named)!r} holds {self.contents}, and unbiased tables are needed: "
            f"{self.why_no_tables}"
        )

    @cached_property
    def checked(self) -> Any:
        """The folder, whose files are checked again when they are read."""
        return CheckedFolder(self.folder, self.manifest)

    @property
    def named(self) -> Any:
        """The folder that people name to have it."""
        return self.folder

    @property
    def stated_forecast(self) -> Any:
        """The forecast that its plan states; None for none."""
        return None

    @property
    def sums_noun(self) -> str:
        """What tables it has of which no estimates are made, "sums of amounts"; "" for none."""
        return ""

    @property
    def rows_count_records(self) -> "bool | np.ndarray":
        """Whether rows count records, of tables without amounts; bool[n] where they differ."""
        return True

    @property
    def bound_texts(self) -> "Sequence[tuple[str, str] | None]":
        """The numbers of each table's bound on all its errors: see `texts_of_bound`; None: none."""
        return [None] * len(self.items)

    @property
    def remark(self) -> str:
        """What must be known of its figures at once, as a sentence; "" for nothing."""
        return ""

    @property
    def why_no_tables(self) -> str:
        """Why no unbiased tables are made of it, and what can be done instead."""
        return "name a release that has some."

    def area_tables(self) -> Any:
        """The tables in areas that there are; raises `ReleaseError`, which says what is here."""
        raise ReleaseError(
            f"{str(self.folder)!r} holds {self.contents}, and tables in areas are needed; name a "
            "release that has some."
        )

    def measured_tables(self) -> Any:
        """The same, or tables by what was measured in rounds: for what is biased in any case."""
        return self.unbiased_tables()

    @property
    def own_counts(self) -> Any:
        """The own counts that there are; None for none."""
        return None

    @cached_property
    def known_tables(self) -> Sequence[Sequence[str]]:
        """The attributes of the publicly known totals that the tables meet."""
        return ()

    def is_known(self, attributes: Collection[str]) -> bool:
        """Whether the counts by these attributes are publicly known."""
        return False

    @property
    def known_totals(self) -> Sequence[Any]:
        """Publicly known counts that take the place of noisy ones in the tables as released."""
        return ()

    def with_known_totals(self, estimates: Any) -> Any:
        """Estimates of what these tables measured, with the same known totals."""
        return estimates

    @property
    def adding_up(self) -> str:
        """What sums of the figures are worth, as a sentence."""
        return (
            "The errors of different cells go together, so a sum of cells has another standard "
            "error than theirs suggest; where there is a smaller table, use its cell."
        )

    def item(self, attributes: Collection[str], level: str | None = None) -> Item:
        """The table with these attributes, in any order; raises `ReleaseError` if there is none."""
        for item in self.items:
            if set(item.attributes) == set(attributes) and item.level == level:
                return item
        on_level = "" if level is None else f" on the level {level!r}"
        raise ReleaseError(
            f"There is no table of ({' × '.join(attributes) or 'total'}){on_level} here; choose "
            "one of those that were released."
        )


# ---- Unbiased estimate of a marginal, with the exact accuracy of its cells and of queries on it.


@dataclass(frozen=True)
class Answer:
    """The noisy answer to a query.

    The standard error is of the privacy noise alone. The interval contains the true answer 95 % of
    the time (about that where the standard error is below 2).

    basis  what it rests on, in words
    """

    basis: ClassVar[str] = "from the tables"

    value: float
    standard_error: float

    @property
    def lower_95(self) -> float:
        return self.value - self._margin

    @property
    def upper_95(self) -> float:
        return self.value + self._margin

    @property
    def _margin(self) -> float:
        return normal_quantile(CONFIDENCE) * self.standard_error


class CountAnswer(Answer):
    """The noisy answer to an own count, which is measured itself."""

    basis: ClassVar[str] = "from the own counts"


@dataclass(frozen=True, eq=False)
class Marginal:
    """A noisy marginal by single values, and what its noise is.

    values  float64, one axis an attribute of `noise`
    """

    values: np.ndarray
    noise: MarginalNoise


@dataclass(frozen=True, eq=False)
class MarginalEstimate:
    """A marginal from the contributions of its residuals, whatever they were measured by.

    noise          in the marginal
    contributions  of every subset that has a residual, as `reconstruction.contribution` returns it
    """

    noise: MarginalNoise
    contributions: Mapping[AttributeIndices, np.ndarray]

    @cached_property
    def values(self) -> np.ndarray:
        """The counts of the single values, float64, one axis an attribute."""
        noise = self.noise
        values = marginal(
            noise.attributes,
            noise.domain.sizes,
            self.contributions,
            noise.strategies,
            noise.trees,
        )
        # Counts without noise are whole numbers, of which sums of floats are off by a rounding.
        return values if any(noise.sigma_squared.values()) else np.rint(values)

    @property
    def marginal(self) -> Marginal:
        return Marginal(self.values, self.noise)

    def cells(self, labels: Sequence[Labels], *, is_known: bool = False) -> pa.Table:
        """One row a cell: labels, value, standard_error, lower_95, upper_95, and perhaps note.

        is_known: whether the counts are publicly known, which the note then says
        Of amounts a row for the sum, and for the records with and without one, as in tables.
        """
        domain, attributes = self.noise.domain, self.noise.attributes
        sums = [sums_of(domain, index) for index in attributes]
        values = answers(self.values, sums)
        for axis, one in enumerate(sums):
            if one is not None:
                units = one.basis.row_units(one.attribute)
                values = values * units.reshape([-1, *(1,) * (len(sums) - axis - 1)])
        impossible = impossible_answers(domain, attributes, sums)
        return table_of_cells(labels, values, self.noise.variances, impossible, is_known=is_known)

    def answer(self, where: Where) -> Answer:
        """The answer to a product query; what it leaves out is summed over."""
        vectors = self.noise.vectors(where)
        variance = self.noise.covariance(vectors, vectors)
        value = self.value(vectors)
        is_whole = all(np.array_equal(vector, np.rint(vector)) for vector in vectors.values())
        if variance == 0 and is_whole:  # such as a sum of exact totals
            value = float(np.rint(value))
        return Answer(value, float(np.sqrt(variance)))

    def value(self, vectors: Mapping[int, np.ndarray]) -> float:
        """The sum over cells, weighted by a vector for each attribute."""
        values = self.values
        for attribute in self.noise.attributes:
            values = np.tensordot(vectors[attribute], values, axes=(0, 0))
        return float(values)
