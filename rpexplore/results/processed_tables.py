"""Processed tables as they are read again, and the new folder that tables are written to."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.json_fields import (
    FieldError,
    check_keys,
    indices,
    list_of,
    lists,
    loads,
    text_of,
)
from rpexplore.common.numbers import shown
from rpexplore.common.processes import Progress, in_order
from rpexplore.common.template_text import text_from_template
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.domain import AttributeSet
from rpexplore.domain.result_schema import (
    KNOWN_NOTE,
    MODEL_ERROR,
    PROCESSED,
    PROCESSED_VALUE,
    RELEASED,
    SMOOTH,
    UNBIASED_VALUE,
    VALUE_IS,
    Column,
    Schema,
    apart_from,
    frame_of,
)
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.planning.mechanism.reconstruction import Where
from rpexplore.releases.atomic_folder import new_folder
from rpexplore.releases.items import Item, PartReader
from rpexplore.releases.manifest import (
    CheckedFolder,
    TableFiles,
    check_facts,
    check_listed,
    checked_folder,
    file_entry,
    not_as_written,
    read_manifest,
)
from rpexplore.releases.packed_tables import MOST_CELLS, PACKED, PackedTables, rows_of_packed
from rpexplore.releases.table_cells import (
    TABLES,
    Labels,
    constant_text,
    csv_decimals,
    files_of_tables,
    read_rows,
    table_path,
    write_table,
)
from rpexplore.releases.table_release import LabelsOfBases
from rpexplore.results.estimates.shrinkage import (
    SHRINKAGE_FILES,
    read_shrinkage,
    read_shrinkage_by_group,
)
from rpexplore.results.level_groups import LEVELS, TITLES, codebook_facts_in
from rpexplore.results.measurement_source import (
    SPENT,
    MeasurementSource,
    facts_as_worded,
    guarantee,
)
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


# ---- Processed tables as they are read again: every value with its label and the unbiased answer.


KIND = ("rpexplore-processed", 2)

Method: TypeAlias = Literal["nonnegative", "smooth"]
"""What is done to tables beside rounding."""

METHODS: tuple[Method, ...] = get_args(Method)

# In the metadata of each Parquet file of processed tables.
LABEL_IN_FILES, STEPS_IN_FILES = b"rpexplore", b"rpexplore_steps"
# What is raised by reading facts that no folder has as it was written.
UNREADABLE = (
    RpexploreError, OSError, pa.ArrowException, LookupError, TypeError, ArithmeticError, ValueError,
    AttributeError, RecursionError,
)  # fmt: skip
_NOUN = "processed tables"
_FACTS = (
    "created", "label", "method", "rounded", "gap", "rounds", "guarantee", *SPENT,
)  # fmt: skip
KNOWN_TOTALS = "known_totals"
"""In manifests and metadata: the attributes of the totals that are publicly known, if there are."""
_STEPS: Mapping[Method | None, str] = {
    None: "",
    "nonnegative": "nonnegative and consistent",
    "smooth": "smooth, best guesses by a model",
}


def kind_of(
    method: Method | None, rounded: bool | int, known_totals: Sequence[Sequence[str]] = ()
) -> str:
    """What was done to tables, and what that makes of them, in words.

    rounded: whether to whole numbers, or the number to whose multiples
    known_totals: the attributes of the publicly known totals that are met
    """
    step = f"rounded to multiples of {rounded}" if rounded > 1 else "rounded to whole numbers"
    known = "publicly known totals met" if known_totals else ""
    steps = filter(None, [known, _STEPS[method], step if rounded else ""])
    biased = "biased, small groups most" if method == "smooth" else "biased"
    if method is None and not rounded:
        biased = "unbiased"
    return f"{', then '.join(steps)}; {biased}"


def label_of(
    method: Method | None, rounded: bool | int, known_totals: Sequence[Sequence[str]] = ()
) -> str:
    """`kind_of` tables, in words that go with every row."""
    return f"{kind_of(method, rounded, known_totals)}; intervals are those of the unbiased answers"


def said_in_files(folder: Path, manifest: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The label, and the steps, that the metadata of a folder's tables say.

    Raises one of `UNREADABLE` if there are no such metadata.
    """
    listed = {entry["path"] for entry in manifest["files"]}
    paths = [entry["path"] for entry in manifest["files"] if "attributes" in entry]
    first = PACKED if PACKED in listed else min(path for path in paths if path.endswith(".parquet"))
    metadata = pyarrow.parquet.read_schema(CheckedFolder(folder, manifest) / first).metadata
    return metadata[LABEL_IN_FILES].decode(), json.loads(metadata[STEPS_IN_FILES])


def said_of(label: str, steps: Mapping[str, object]) -> dict[bytes | str, bytes | str]:
    """What the metadata of the files of tables say."""
    return {LABEL_IN_FILES: label, STEPS_IN_FILES: json.dumps(dict(steps))}


def load_checked(
    folder: Path,
    folder_format: tuple[str, int],
    noun: str,
    names: Sequence[str],
    facts_of: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    *,
    files_of: Callable[[Mapping[str, Any]], TableFiles] | None = None,
    made: str = "tables",
) -> Mapping[str, Any]:
    """The manifest of a folder of tables or records that were computed from other ones.

    Raises `ReleaseError` if the folder holds something else, or is not as it was written.

    Args:
        folder_format: As of `checked_folder`, like `noun` and the names of facts.
        facts_of: Of the manifest what it must say beside what follows from its sources; may raise
            any of `UNREADABLE`.
        files_of: The files that it must list, if these are known.
        made: What was computed, for the guarantee.
    """
    manifest = checked_folder(folder, folder_format, noun, names)
    try:
        sources = [MeasurementSource.from_json(source) for source in manifest["sources"]]
        facts = {
            **facts_of(manifest),
            "guarantee": guarantee(sources, made),
            **facts_as_worded(manifest),
        }
        files = None if files_of is None else files_of(manifest)
    except UNREADABLE as error:
        reason = "its manifest has not what it must have"
        if isinstance(error, FieldError):
            reason = f"{reason} ({str(error).rstrip('.')})"
        raise not_as_written(folder, noun, reason) from None
    check_facts(folder, manifest, facts, noun)
    if files is not None:
        check_listed(folder, manifest, files, noun)
    return MappingProxyType(manifest)


@dataclass(frozen=True, eq=False, repr=False)
class ComputedFolder:
    """A folder of what was computed from measured figures; `load_checked` reads its manifest."""

    folder: Path
    manifest: Mapping[str, Any]

    @cached_property
    def checked(self) -> CheckedFolder:
        """The folder, whose files are checked again when they are read."""
        return CheckedFolder(self.folder, self.manifest)

    @property
    def label(self) -> str:
        """How its figures or records came about, in words that go with them."""
        return self.manifest["label"]

    @property
    def readers(self) -> tuple[Self]:
        """What is looked at by itself."""
        return (self,)


@dataclass(frozen=True, eq=False, repr=False)
class ProcessedTables(PartReader):
    """The tables of a folder that `processed_folder.postprocess` has written."""

    kind: ClassVar[str] = "processed"

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> "ProcessedTables":
        """Open a folder; raises `ReleaseError` if it is not one or a file was changed."""
        folder = Path(folder)

        def facts_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
            label, steps = said_in_files(folder, manifest)
            method, rounded = steps["method"], steps["rounded"]
            if not isinstance(rounded, int):
                raise TypeError(rounded)
            is_nonnegative = method == "nonnegative"
            return {
                "label": label,
                "method": method,
                "rounded": rounded,
                "gap": float(manifest["gap"]) if is_nonnegative else None,
                "rounds": int(manifest["rounds"]) if is_nonnegative else None,
                **({KNOWN_TOTALS: steps[KNOWN_TOTALS]} if KNOWN_TOTALS in steps else {}),
                **codebook_facts_in(manifest),
            }

        def files_of(manifest: Mapping[str, Any]) -> dict[str, list[str] | None]:
            done = cls(folder, manifest)
            of_tables = files_of_tables(done.table_names, TABLES, done._others)
            if done._layout is not None:
                of_tables |= {PACKED: None, LAYOUT: None}
            smooth = SHRINKAGE_FILES if manifest["method"] == "smooth" else ()
            return {**of_tables, **dict.fromkeys(smooth)}

        facts = (*_FACTS, *({KNOWN_TOTALS, TITLES, LEVELS} & read_manifest(folder).keys()))
        return cls(folder, load_checked(folder, KIND, _NOUN, facts, facts_of, files_of=files_of))

    @property
    def label(self) -> str:
        """What was done to the tables."""
        return self.manifest["label"]

    @property
    def steps(self) -> str:
        """The label without what it says of intervals."""
        return kind_of(self.manifest["method"], self.manifest["rounded"], self.known_tables)

    @cached_property
    def known_tables(self) -> Sequence[Sequence[str]]:
        """The attributes of the publicly known totals that the tables meet."""
        return self.manifest.get(KNOWN_TOTALS, ())

    @property
    def domain(self) -> None:
        """Not known: a folder of processed tables holds no codebook."""
        return

    @property
    def contents(self) -> str:
        return _NOUN

    @property
    def why_no_tables(self) -> str:
        names = ", ".join(source["name"] for source in self.manifest["sources"])
        return f"name the release that they were made of ({names})."

    @cached_property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table, in the domain's order."""
        if self._layout is None:
            return tuple(tuple(entry["attributes"]) for entry in self._entries)
        return tuple(map(self._layout.names, range(len(self._layout.tables))))

    def has(self, attributes: AttributeSet) -> bool:
        """Whether there is a table with exactly these attributes."""
        return frozenset(_names([attributes])) in self._positions

    def table(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """One row a cell: labels, value, unbiased_value with standard_error and interval, value_is.

        Of smooth tables also model_error, behind value; NaN where a table sums single values.

        Raises `ReleaseError` if there is no table with exactly these attributes.
        """
        names = _names(attributes)
        position = self._positions.get(frozenset(names))
        if position is None:
            raise ReleaseError(
                f"There is no processed table of ({' × '.join(names) or 'total'}); what was "
                "processed cannot be summed any further. Ask for a table that is there."
            )
        return frame_of(self._cells(position))

    counts = table

    def _cells(self, position: int) -> pa.Table:
        if self._packed is not None and position in self._packed:
            return self._packed_cells(self._packed, position)
        path = self.checked / f"{table_path(position, self.table_names[position])}.parquet"
        return read_rows(path, SMOOTH if self.is_smooth else PROCESSED)

    def _packed_cells(self, packed: PackedTables, position: int) -> pa.Table:
        layout: Any = self._layout
        figures = dict(zip(packed.columns, packed.figures(position), strict=True))
        several = {
            layout.names(position)[axis] for axis, n in enumerate(layout.shape(position)) if n > 1
        }
        is_known = any(several <= {*names} for names in self.known_tables)
        unbiased = rows_of_packed(
            [layout.labels[index] for index in layout.tables[position]],
            layout.shape(position),
            figures.pop(UNBIASED_VALUE),
            figures.pop(RELEASED[1]),
            packed.impossible(position),
            is_known=is_known,
        )
        steps = {
            name: self.manifest[name]
            for name in ("method", "rounded", KNOWN_TOTALS)
            if name in self.manifest
        }
        return with_unbiased(figures, unbiased, self.label, steps, is_known=is_known)

    @cached_property
    def _layout(self) -> "_Layout | None":
        listed = any(entry["path"] == LAYOUT for entry in self.manifest["files"])
        return _Layout.read(self.checked) if listed else None

    @cached_property
    def _packed(self) -> PackedTables | None:
        """The tables that are in one file, if there are any."""
        layout = self._layout
        if layout is None:
            return None
        sizes = np.array([prod(layout.shape(position)) for position in layout.packed.tolist()], int)
        columns = figures_in_one_file(self.manifest["method"])
        return PackedTables(self.checked, layout.packed, sizes, columns, (MODEL_ERROR,))

    @cached_property
    def _others(self) -> list[int]:
        """The tables that have files of their own."""
        every = np.arange(len(self.table_names))
        if self._layout is None:
            return every.tolist()
        return np.setdiff1d(every, self._layout.packed).tolist()

    @cached_property
    def items(self) -> Sequence[Item]:
        layout, others = self._layout, set(self._others)
        items = []
        for position, names in enumerate(self.table_names):
            if layout is not None:
                n_rows = prod(layout.shape(position))
            else:
                path = self.checked / f"{table_path(position, names)}.parquet"
                n_rows = pyarrow.parquet.read_metadata(path).num_rows
            item = Item.of_table(position, names, n_rows, partial(self._cells, position))
            items.append(item if position in others else item.in_one_file(position))
        return items

    @property
    def made_of(self) -> Sequence[MeasurementSource]:
        return [MeasurementSource.from_json(source) for source in self.manifest["sources"]]

    @property
    def is_biased(self) -> bool:
        return True

    @property
    def has_unbiased(self) -> bool:
        return self.is_biased

    @property
    def is_smooth(self) -> bool:
        """Whether the values are best guesses by a model, with a model-based error."""
        return self.manifest["method"] == "smooth"

    @property
    def shrinkage(self) -> "pd.DataFrame":
        """Of smooth tables: the share kept of every residual, as `read_shrinkage` has it."""
        return read_shrinkage(self.checked)

    @property
    def shrinkage_by_group(self) -> "pd.DataFrame":
        """Of smooth tables: how far groups are from their unbiased counts, a row each.

        Columns as `GroupDistances.frame` has them.
        """
        return read_shrinkage_by_group(self.checked)

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> NoReturn:
        """Raises `ReleaseError`: no error of a sum of processed counts is known."""
        raise ReleaseError(
            "Sums of processed counts have no known standard error; ask the release that they "
            "were made of."
        )

    def __repr__(self) -> str:
        return f"<ProcessedTables of {len(self.table_names):,} tables, {self.label}>"

    @property
    def _entries(self) -> list[Mapping[str, Any]]:
        """What the manifest says of the Parquet files of tables."""
        return [
            entry
            for entry in self.manifest["files"]
            if "attributes" in entry and entry["path"].endswith(".parquet")
        ]

    @cached_property
    def _positions(self) -> dict[frozenset[str], int]:
        """The place of each table, by its attributes."""
        return {frozenset(names): position for position, names in enumerate(self.table_names)}


def _names(attributes: Sequence[AttributeSet]) -> list[str]:
    """The names that a caller gives one by one, or as one collection."""
    if len(attributes) == 1 and not isinstance(attributes[0], str):
        return list(attributes[0])
    return [str(name) for name in attributes]


def with_unbiased(
    processed: Mapping[Column, np.ndarray],
    unbiased: pa.Table,
    label: str,
    steps: Mapping[str, object] = MappingProxyType({}),
    *,
    is_known: bool = False,
) -> pa.Table:
    """The processed columns before the unbiased answers, and what they are behind all.

    processed: a number for each cell, or one for all; NaN becomes an empty cell
    steps: what was done, for programs
    is_known: whether these counts are publicly known, and nothing was done to them
    """
    shape, schema = (unbiased.num_rows,), Schema.of(unbiased)
    before = [
        pa.array(np.broadcast_to(numbers, shape), from_pandas=True)
        for numbers in processed.values()
    ]
    # What was released as the value is the unbiased one here; the rest keeps its name.
    released = [one for one in schema.figures if one.role != "note"]
    notes = [one for one in schema.figures if one.role == "note"]
    beside = [UNBIASED_VALUE if one.role == "value" else one for one in released]
    figures = (*processed, *beside, VALUE_IS, *notes)
    arrays = [
        *(unbiased[column.name] for column in schema.labels),
        *before,
        *(unbiased[column.name] for column in released),
        constant_text(KNOWN_NOTE if is_known else label, unbiased.num_rows),
        *(unbiased[column.name] for column in notes),
    ]
    columns = (*apart_from(schema.labels, figures), *figures)
    fields = [column.field(array.type) for column, array in zip(columns, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields, metadata=said_of(label, steps)))


# ---- What the rows of tables in one file count: tables.json.
#
# labels  for each attribute as tables have it, the columns that say what a cell counts: name, role,
#         meaning, …, and `texts`, one for each value or group
# tables  of every table, also those in files of their own, its attributes by their places in labels


LAYOUT = "tables.json"


def figures_in_one_file(method: Method | None) -> tuple[Column, ...]:
    """The figures of processed tables in one file; all others follow from them."""
    of_model = (MODEL_ERROR,) if method == "smooth" else ()
    return (PROCESSED_VALUE, *of_model, UNBIASED_VALUE, RELEASED[1])


def write_layout(folder: Path, workload: Workload, positions: Sequence[int]) -> None:
    """Write what the rows of these tables of a workload count."""
    labels = LabelsOfBases(workload)
    stated = [
        [
            {**{name: fact for name, fact in vars(column).items() if fact}, "texts": texts}
            for column, texts in ((column, texts.to_pylist()) for column, texts in labels.of(basis))
        ]
        for basis in range(len(workload.attribute_bases))
    ]
    bases, orders = workload.attribute_basis_index, workload.orders.tolist()
    tables = [bases[position, : orders[position]].tolist() for position in positions]
    text = json.dumps({"labels": stated, "tables": tables}, ensure_ascii=False)
    (folder / LAYOUT).write_text(f"{text}\n", encoding="utf-8", newline="\n")


@dataclass(frozen=True, eq=False, repr=False)
class _Layout:
    """What the rows of all tables of a folder count, and which of them are in one file."""

    labels: Sequence[Labels]
    tables: Sequence[Sequence[int]]

    @classmethod
    def read(cls, folder: CheckedFolder) -> "_Layout":
        """Raises one of `UNREADABLE`."""
        try:
            stated = loads((folder / LAYOUT).read_text(encoding="utf-8"))
            check_keys(stated, ("labels", "tables"), LAYOUT)
            labels = [
                _labels(columns) for columns in lists(list_of(stated, "labels"), "list of labels")
            ]
            tables = lists(list_of(stated, "tables"), "table")
            indices([*chain.from_iterable(tables)], len(labels), "number of labels")
            layout = cls(labels, tables)
            for names in map(layout.names, range(len(tables))):
                if len(set(names)) < len(names):
                    raise FieldError(f"a table of ({', '.join(names)}) has an attribute twice.")
        except (FieldError, ReleaseError):
            raise
        except UNREADABLE:
            raise FieldError("a part is of another kind than it must be.") from None
        return layout

    def names(self, position: int) -> tuple[str, ...]:
        return tuple(self.labels[index][0][0].attribute for index in self.tables[position])

    def shape(self, position: int) -> list[int]:
        return [len(self.labels[index][0][1]) for index in self.tables[position]]

    @cached_property
    def packed(self) -> np.ndarray:
        """The tables that are in one file, ascending: int64[m]."""
        sizes = [prod(self.shape(position)) for position in range(len(self.tables))]
        return np.flatnonzero(np.array(sizes) <= MOST_CELLS)


def _labels(columns: Any) -> Labels:
    """The columns that say what the cells along one axis count; raises one of `UNREADABLE`."""
    labels: Labels = []
    for one in columns:
        texts = list_of(one, "texts")
        facts: dict[str, Any] = {name: text_of(one, name) for name in one if name != "texts"}
        column = Column(**facts)
        if not column.names_cells or not all(isinstance(text, str) for text in texts):
            raise FieldError(f"{shown(column.name)} must have texts, as a code or a label.")
        _ = column.parents  # raises for what says no groups
        labels.append((column, pa.array(texts, pa.string())))
    names = {column.name for column, _ in labels}
    shared = {(column.attribute, len(texts)) for column, texts in labels}
    if len(names) < len(labels) or len(shared) != 1:
        raise FieldError("the columns of an attribute must be told apart, and be as long.")
    # A code may stand for a group and for a value, and is told apart by its label.
    (twice, times), *_ = Counter(
        zip(*(of_one.to_pylist() for _, of_one in labels), strict=True)
    ).most_common(1)
    if times > 1:
        raise FieldError(f"{shown(labels[0][0].name)} has {shown(repr(twice[0]))} twice.")
    return labels


# ---- A new folder of tables: complete or not at all.


@contextmanager
def new_tables_folder(output: Path) -> Iterator[Path]:
    """A `new_folder` with a folder for tables; `ReleaseError` for what the system refuses."""
    try:
        with new_folder(output) as folder:
            (folder / "tables").mkdir()
            yield folder
    except OSError as error:
        raise ReleaseError(
            f"The tables could not be written to {str(output)!r} ({error.strerror or error}) and "
            "nothing of them was left; make room, or choose another folder."
        ) from None


def write_tables(
    folder: Path,
    tables: Sequence[Sequence[str]],
    cells: Callable[[int], pa.Table],
    on_progress: Progress,
    *,
    escape_formulas: bool,
    positions: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """Write tables on all processors; what the manifest says of their files.

    tables: the attributes of each. cells: of the table at a position, one row a cell; called in
    threads. positions: of those that are written; by default all
    """
    positions = range(len(tables)) if positions is None else positions

    def write(position: int) -> list[dict[str, Any]]:
        rows = cells(position)
        errors = np.asarray(rows["standard_error"])
        return write_table(
            folder,
            position,
            tables[position],
            iter([rows]),
            decimals=csv_decimals(errors.min(), np.abs(rows["upper_95"]).max()),
            escape_formulas=escape_formulas,
        )

    files = []
    with closing(in_order(write, positions)) as written:
        for number, entries in enumerate(written):
            files += entries
            if number % 16 == 0:
                on_progress("Writing the tables", number / len(positions))
    return files


def write_readme(
    folder: Path,
    template: str,
    sources: Sequence[MeasurementSource],
    label: str,
    *,
    guarantee: str,
    **facts: Any,
) -> dict[str, Any]:
    """Write README.md from a template, which has the facts; what the manifest says of it."""
    text = text_from_template(
        "rpexplore.results",
        template,
        label=label,
        guarantee=guarantee,
        sources=sources,
        all_released=all(source.is_release for source in sources),
        rounded=rounded,
        describe_share=describe_share,
        **facts,
    )
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
    return file_entry(folder, "README.md")
