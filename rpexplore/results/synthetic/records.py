"""Synthetic records as they are read again, with their label and their comparison."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.json_fields import text_of
from rpexplore.common.text import describe_share, joined, plural
from rpexplore.domain.values import combination_text
from rpexplore.errors import ReleaseError
from rpexplore.releases.manifest import read_manifest
from rpexplore.releases.table_cells import check_schema, read_columns
from rpexplore.results.measurement_source import SPENT
from rpexplore.results.processed_tables import ComputedFolder, load_checked
from rpexplore.results.synthetic.comparison import (
    CELLS_COLUMNS,
    MEASURED,
    MODEL_BASED,
    NO_DIFFERENCE,
    RELEASED,
    TABLES_COLUMNS,
    UNKNOWN,
)

if TYPE_CHECKING:
    import pandas as pd


KIND = ("rpexplore-synthetic", 2)

ENGINES = ("population", "graphical_model")
"""What draws the records (docs/mathematics.md §14)."""

RECORDS, TABLES, CELLS = "synthetic_records", "comparison", "worst_cells"
MADE = b"rpexplore"  # where the Parquet file's own metadata say how its records were made
NUMBER = "synthetic_record"  # the first column: says on every row what it is
LABEL = "synthetic records; no row is a person; drawn from a model of noisy tables; biased"
# Of tables with an attribute at several levels (`level_records`): engine and label.
WHOLE = "whole_counts"
WHOLE_LABEL = "synthetic records; no row is a person; they add up to whole counts; biased"

LEFT_OUT = "left_out"  # in the manifest: impossible combinations of attributes in no table
UNMET = "unmet"  # in the manifest: groups whose share is not that of the tables; else not there
KEPT = "kept"  # in the manifest: exact totals, each with how many records are off; else not there
ADAPTIVE = "is_adaptive"  # in the manifest, true: made of an adaptive release; else not there
MUCH_EXCLUDED = 0.01  # of the records, by one impossible combination
_MORE_BY_CHANCE = 1.25  # than on average, of a misfit that is one of independent records
_MOST_LISTED = 3  # tables in a sentence
_NOUN = "synthetic records"
_FACTS = (
    "created", "label", "engine", "rows", "attributes", "never", "excluded", "misfit",
    "misfit_of_number", "misfit_of_noise", "guarantee", *SPENT,
)  # fmt: skip
_AS_STATED = (
    "attributes", "never", "excluded", "misfit", "misfit_of_number", "misfit_of_noise",
)  # fmt: skip


def describe_use(nearer: Sequence[str], *, is_adaptive: bool = False) -> str:
    """How many tables not to make from the records, in sentences.

    nearer: of every table, what is estimated to be nearer to the true counts
    """
    n_known = len(nearer) - nearer.count(UNKNOWN)
    n_released = nearer.count(MEASURED if is_adaptive else RELEASED)
    n_alike = nearer.count(NO_DIFFERENCE)
    kind = "measured" if is_adaptive else "released"
    sentences = []
    if n_released:
        sentences.append(
            f"Do not make {n_released:,} of {plural(n_known, 'table')} from these records: the "
            f"{kind} ones are estimated to be nearer to the true counts."
        )
    elif n_known:
        sentences.append(
            f"None of {plural(n_known, f'{kind} table')} is estimated to be clearly nearer to the "
            "true counts than these records."
        )
    others = []
    if n_alike:
        others.append(f"there is no clear difference in {n_alike:,}")
    if n_records := n_known - n_released - n_alike:
        others.append(f"the records are nearer in {n_records:,}, if the model holds")
    if others:
        sentences.append(f"Of {'the others' if n_released else 'them'}, {joined(others)}.")
    if n_unknown := nearer.count(UNKNOWN):
        sentences.append(f"{plural(n_unknown, 'table')} cannot be compared: use what was released.")
    return " ".join(sentences)


def describe_tables(*, is_adaptive: bool) -> str:
    """Which tables to use for a figure, and how right they are: for the end of a sentence."""
    if is_adaptive:
        return (
            "use the estimated tables of the release: they are biased as well, and have a bound on "
            "their error where one is known."
        )
    return "use the released tables: they are right on average and have exact errors."


def describe_misfit(made: Mapping[str, Any]) -> str:
    """How far two-way tables of the records are from the smooth ones, in a sentence."""
    if made["engine"] == WHOLE:
        return (
            "Counted again, they have nonnegative whole tables that agree at all levels; on "
            f"average, {describe_share(made['misfit'])} of the records are in another cell than "
            "before these were made whole."
        )
    return (
        f"On average, {describe_share(made['misfit'])} of the records are in the wrong cell of a "
        "two-way table, compared with the smooth table that they were drawn to fit."
    )


def describe_few(made: Mapping[str, Any]) -> str:
    """That records are too few to be nearer, in a sentence; "" if their number is not the reason.

    made: how they were made, with the three shares of records that are in another cell: of these
    records, of as many independent ones, and of smooth tables by the noise
    """
    misfit, of_number, of_noise = (
        made[key] for key in ("misfit", "misfit_of_number", "misfit_of_noise")
    )
    if of_noise is None or not of_noise < misfit <= _MORE_BY_CHANCE * of_number:
        return ""
    return (
        "They are too few to be nearer: of as many independent records "
        f"{describe_share(of_number)} would be, by chance, while the noise of the release put only "
        f"{describe_share(of_noise)} into another cell of the smooth table."
    )


def describe_left_out(made: Mapping[str, Any]) -> str:
    """Which of the codebook's impossible combinations could not be held; "" if all were."""
    left_out = [combination_text(combination) for combination in made.get(LEFT_OUT, ())]
    if not left_out:
        return ""
    return (
        "Not held, because records have only attributes of the release's tables: "
        f"{'; '.join(left_out)}, which the codebook states to be impossible."
    )


def describe_unmet(made: Mapping[str, Any]) -> str:
    """Which groups are not as large as in the smooth tables, in a sentence; "" if all are."""
    groups = [
        f"{name}={value} ({describe_share(share)} of the records, {describe_share(wanted)} of the "
        "smooth counts)"
        for name, value, share, wanted in made.get(UNMET, ())
    ]
    if not groups:
        return ""
    more = f"; and {len(groups) - _MOST_LISTED:,} more" if len(groups) > _MOST_LISTED else ""
    return (
        "The tables could not be met under the impossible combinations. Groups of another size: "
        f"{'; '.join(groups[:_MOST_LISTED])}{more}. Check what was stated as impossible."
    )


def describe_kept(made: Mapping[str, Any]) -> str:
    """Which exact totals of the release the records have, in sentences; "" for none."""
    totals = {" × ".join(names): off for names, off in made.get(KEPT, ())}
    exact = [total for total, off in totals.items() if not off]
    sentences = [f"The records have the exact totals of {joined(exact)}."] if exact else []
    sentences += [
        f"Of the exact total of {total}, {plural(off, 'record')} are in another cell, because of "
        "impossible combinations."
        for total, off in totals.items()
        if off
    ]
    return " ".join(sentences)


def checked_engine(name: str) -> str:
    """The name of an engine; `ReleaseError` for any other."""
    if name not in ENGINES:
        raise ReleaseError(f"The engine must be one of {', '.join(ENGINES)}, got {name!r}.")
    return name


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRecords(ComputedFolder):
    """The records of a folder that `records_folder.synthesize` has written."""

    kind: ClassVar[str] = "synthetic"

    @classmethod
    def load(cls, folder: str | Path) -> "SyntheticRecords":
        """Open a folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)
        stated_here = {LEFT_OUT, UNMET, ADAPTIVE, KEPT}

        def facts_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
            with pyarrow.parquet.ParquetFile(folder / f"{RECORDS}.parquet") as file:
                stated = json.loads(file.schema_arrow.metadata[MADE])
                n_records = file.metadata.num_rows
            if any(stated.get(key) != manifest.get(key) for key in stated_here):
                raise ValueError("the records say otherwise")
            return {
                "label": text_of(stated, "label"),
                "engine": WHOLE if stated["engine"] == WHOLE else checked_engine(stated["engine"]),
                "rows": n_records,
                **{key: stated[key] for key in _AS_STATED},
            }

        names = (*_FACTS, *(stated_here & read_manifest(folder).keys()))
        manifest = load_checked(
            folder,
            KIND,
            _NOUN,
            names,
            facts_of,
            files_of=lambda _: dict.fromkeys(FILES),
            made="records",
        )
        return cls(folder, manifest)

    @property
    def is_adaptive(self) -> bool:
        """Whether they were made of an adaptive release, and compared with what it measured."""
        return self.manifest.get(ADAPTIVE, False)

    @property
    def is_whole(self) -> bool:
        """Whether they are those of whole counts, of whose errors nothing is known."""
        return self.manifest["engine"] == WHOLE

    @property
    def n_records(self) -> int:
        return self.manifest["rows"]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the records have, in the domain's order."""
        return tuple(self.manifest["attributes"])

    @property
    def never(self) -> list[str]:
        """The impossible combinations that no record has, as they are typed."""
        return [combination_text(condition) for condition in self.manifest["never"]]

    @property
    def left_out(self) -> str:
        """What the codebook states and the records may have, in a sentence; "" for nothing."""
        return describe_left_out(self.manifest)

    def records(self, at_most: int | None = None) -> "pd.DataFrame":
        """The records, or the first of them: a number, and the columns of each attribute."""
        file = self.checked / f"{RECORDS}.parquet"
        if at_most is None:
            return pyarrow.parquet.read_table(file).to_pandas()
        with pyarrow.parquet.ParquetFile(file) as opened:
            batch = next(opened.iter_batches(batch_size=at_most))
            return pa.Table.from_batches([batch]).to_pandas()

    @property
    def comparison(self) -> "pd.DataFrame":
        """The records' tables beside the released ones, worst first: `Comparison.tables`."""
        path = self.checked / f"{TABLES}.parquet"
        known = {name: kind for name, kind in TABLES_COLUMNS.items() if name not in MODEL_BASED}
        table = read_columns(path, known)
        check_schema(path, table.schema, TABLES_COLUMNS)
        return table.to_pandas()

    @property
    def tables_to_use(self) -> list[str]:
        """Tables that are estimated to be nearer to the true counts, worst records first."""
        comparison = self.comparison
        return comparison["table"][comparison["nearer"].isin([RELEASED, MEASURED])].tolist()

    @property
    def use(self) -> str:
        """Which tables not to make from the records, in sentences."""
        nearer = self.tables_to_use
        listed = ", ".join(nearer[:_MOST_LISTED])
        more = len(nearer) - _MOST_LISTED
        sentences = (
            describe_use(self.comparison["nearer"].tolist(), is_adaptive=self.is_adaptive),
            f"Farthest off: {listed}{f' and {more:,} more' if more > 0 else ''}." if nearer else "",
        )
        return " ".join(filter(None, sentences))

    @property
    def facts(self) -> str:
        """What the records are, and how near they are to the smooth tables, in sentences."""
        made = "whole counts" if self.is_whole else "a model"
        sentences = (
            f"{plural(self.n_records, 'record')}, drawn from {made}: no row is a person. For any "
            f"figure {describe_tables(is_adaptive=self.is_adaptive)}",
            describe_misfit(self.manifest),
            describe_few(self.manifest),
            self._warning,
            describe_kept(self.manifest),
            describe_unmet(self.manifest),
            self.left_out,
        )
        return " ".join(filter(None, sentences))

    @property
    def summary(self) -> str:
        """`use`, then `facts`."""
        return f"{self.use} {self.facts}"

    @property
    def _warning(self) -> str:
        """What is said if impossible combinations take much of what was counted."""
        shares = self.manifest["excluded"]
        large = [
            f"{condition} ({describe_share(share)})"
            for condition, share in zip(self.never, shares, strict=True)
            if share is not None and share > MUCH_EXCLUDED
        ]
        if not large:
            return ""
        return (
            "Check what was stated as impossible: of the smooth counts it takes away "
            f"{', '.join(large)}."
        )

    @property
    def worst_cells(self) -> "pd.DataFrame":
        """Cells that differ most from the released ones, worst first: `Comparison.cells`."""
        return read_columns(self.checked / f"{CELLS}.parquet", CELLS_COLUMNS).to_pandas()

    def __repr__(self) -> str:
        return f"<SyntheticRecords, {self.n_records:,} of them, {self.label}>"


FILES = [f"{name}.{ending}" for name in (RECORDS, TABLES, CELLS) for ending in ("parquet", "csv")]
