"""Columns of results: what each column of a table is, stored in its file and read from there.

Whoever writes a table gives every column a role; whoever reads one asks for roles, and never counts
columns or knows their names: attributes may bear any name, and tables may get more columns.

To add a column to released tables, add a line to `RELEASED` (and to `ADAPTIVE`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from rpexplore.domain.readings import SMOOTH_COVERAGE
from rpexplore.errors import ReleaseError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Role: TypeAlias = Literal[
    "code",  # which value or group of an attribute, or which area, a row is of
    "label",  # what that is called at length, beside its code
    "value",  # the figure itself
    "estimate",  # the unbiased figure beside a value that is not
    "error",  # standard error of the estimate, or of the value where that is unbiased
    "model_error",  # error of the value if a model holds
    "lower", "upper",  # ends of the interval
    "margin",  # half the interval's length
    "cv",
    "share", "share_error",  # the figure in per cent of its total, and the error of that
    "target",  # the standard error that was asked for
    "quality",  # a letter
    "unit",  # what the figure is a number of, where rows differ in that
    "publishable", "flag",  # yes or no
    "status",  # what the figure is, by a code of SDMX
    "shown",  # words that are printed in the place of the figure
    "note",  # what was done to the value
]  # fmt: skip

TEXTS = frozenset(
    {"code", "label", "quality", "unit", "publishable", "flag", "status", "shown", "note"}
)
NUMBERS = frozenset(get_args(Role)) - TEXTS
# Columns in which the same number hardly ever stands twice.
DISTINCT = frozenset({"value", "estimate", "model_error", "lower", "upper", "share"})

INTERVAL_ROLES: tuple[Role, ...] = ("value", "error", "lower", "upper")

MARK = " (attribute)"  # behind the name of an attribute that is called as another column
_KEY = "rpexplore.columns"  # in `attrs` of a DataFrame


@dataclass(frozen=True)
class Column:
    """A column of a table of results.

    meaning    as a sentence
    unit       of its numbers; "" for none, and for texts
    attribute  whose code or label it is, or the level of areas; "" for others
    whole      of the last column of an attribute, the text of the row of all its values; "": none
    within     likewise, as JSON: for each group the texts that lie directly within it
    """

    name: str
    role: Role
    meaning: str = ""
    unit: str = ""
    attribute: str = ""
    whole: str = ""
    within: str = ""

    @property
    def parents(self) -> dict[str, str]:
        """The group that each text lies directly within, of those that lie in one."""
        groups = json.loads(self.within or "{}")
        return {text: group for group, texts in groups.items() for text in texts}

    def field(self, kind: "pa.DataType") -> "pa.Field":
        """The column as Parquet files describe it: the role and the rest are its metadata."""
        return _field(self, kind)

    @property
    def is_number(self) -> bool:
        return self.role in NUMBERS

    @property
    def names_cells(self) -> bool:
        """Whether it says which cell a row is."""
        return self.role in ("code", "label")


@lru_cache(1 << 14)  # a release may have a hundred thousand files with the same few columns
def _field(column: Column, kind: "pa.DataType") -> "pa.Field":
    import pyarrow as pa  # slow, and planning needs the names of columns alone

    facts = {name: fact for name, fact in vars(column).items() if name != "name" and fact}
    return pa.field(column.name, kind, metadata=facts)


STANDARD_ERROR_MEANING = "Of the privacy noise alone; errors that were in the records come on top."
INTERVAL_MEANING = (
    "From lower_95 to upper_95: contains the true count 95 % of the time (about that where "
    "the standard error is below 2, because noise on counts comes in whole steps)."
)
PLANNED_ANEW_INTERVAL_MEANING = (
    "From lower_95 to upper_95: contains the true count nearly 95 % of the time, as the plan of "
    "the rest follows from the pilot's figures (about that where the standard error is below 2, "
    "because noise on counts comes in whole steps)."
)
MODEL_ERROR_MEANING = (
    "The error of the smooth count if the model holds; not guaranteed. The "
    "smooth count ± 1.96 times it, no lower than 0, is a model-based 95 % interval. Empty where "
    f"a table has ranges, groups or other sums. {SMOOTH_COVERAGE}"
)
AREA_ERROR_MEANING = (
    "The root mean squared error of the best guess if the model holds: areas differ from what they "
    "lie in as areas of their level do. Not guaranteed. The best guess ± 1.96 times it, no lower "
    "than 0, is a model-based 95 % interval."
)
ADAPTIVE_ERROR_MEANING = (
    "The root mean squared error of the estimate if the model holds; not guaranteed."
)
ADAPTIVE_INTERVAL_MEANING = (
    "From lower_95 to upper_95: contains the true count in about 95 % of the cells if the model "
    "holds."
)
RECORDS = "records"

RELEASED = (
    Column("value", "value", "The noisy count. Unbiased; may be negative.", RECORDS),
    Column("standard_error", "error", STANDARD_ERROR_MEANING, RECORDS),
    Column("lower_95", "lower", INTERVAL_MEANING, RECORDS),
    Column("upper_95", "upper", INTERVAL_MEANING, RECORDS),
)
"""The figures of each cell of a released table, in their order."""

PLANNED_ANEW = (
    replace(
        RELEASED[0],
        meaning="The noisy count. Unbiased but for what the rest owes to the pilot's figures; may "
        "be negative.",
    ),
    RELEASED[1],
    replace(RELEASED[2], meaning=PLANNED_ANEW_INTERVAL_MEANING),
    replace(RELEASED[3], meaning=PLANNED_ANEW_INTERVAL_MEANING),
)
"""The same where what follows a pilot was planned from its figures."""

SUMS_MEANING = (
    "The noisy sum of the amounts, or count of the records that have one or have none, as the row "
    "says. Unbiased; may be negative. "
)
WEIGHTED_MEANING = (
    "The noisy weighted count: the sum of the weights of the records. Unbiased; may be negative. "
)
WEIGHTED_SUMS_MEANING = (
    "The noisy weighted sum: of amounts times weights, or of the weights of the records that have "
    "an amount or have none, as the row says. Unbiased; may be negative. "
)
_FIELLER_MEANING = (
    "From lower_95 to upper_95: contains the true mean of the clamped amounts 95 % of the time "
    "(Fieller's interval). Empty, as the mean is, where the interval of the count holds 0."
)
MEANS = (
    Column(
        "value",
        "value",
        "The mean amount: the noisy sum over the noisy count, both weighted where the table is.",
    ),
    Column(
        "standard_error",
        "error",
        "Of the privacy noise alone, for a count that is large beside its error (delta method).",
    ),
    Column("lower_95", "lower", _FIELLER_MEANING),
    Column("upper_95", "upper", _FIELLER_MEANING),
)
"""The figures of each group in a table of means; their unit is that of the amounts."""

NOTE = Column(
    "note",
    "note",
    "Whether it is stated that no record is in the row: by the codebook, or as the "
    "area is empty; or whether its count is publicly known. Nothing where not.",
)
"""Behind the figures of a table, own counts or areas that has such rows."""

IMPOSSIBLE_NOTE = "impossible by the codebook"
KNOWN_NOTE = "publicly known"
EMPTY_NOTE = "empty by the list of areas: exactly 0, without noise"

VALUE_IS = Column("value_is", "note", "What was done to the count in value.")
UNBIASED_VALUE = Column(
    "unbiased_value", "estimate", "The unbiased noisy count. Not rounded; may be negative.",
    RECORDS,
)  # fmt: skip
MODEL_ERROR = Column("model_error", "model_error", MODEL_ERROR_MEANING, RECORDS)
PROCESSED_VALUE = Column("value", "value", "The count after post-processing.", RECORDS)
PROCESSED = (PROCESSED_VALUE, UNBIASED_VALUE, *RELEASED[1:], VALUE_IS)
"""Those of a processed table: the processed count, and the released figures beside it."""

SMOOTH = (PROCESSED_VALUE, MODEL_ERROR, *PROCESSED[1:])
"""Those of a smooth table."""

AREA_MODEL_ERROR = Column("model_error", "model_error", AREA_ERROR_MEANING, RECORDS)
AREA_GUESSES = (PROCESSED_VALUE, AREA_MODEL_ERROR, *PROCESSED[1:])
"""Those of a table of best guesses for areas."""

ADAPTIVE = (
    Column("value", "value", "The estimated count: the best guess of a model. Biased.", RECORDS),
    Column("model_error", "model_error", ADAPTIVE_ERROR_MEANING, RECORDS),
    Column("lower_95", "lower", ADAPTIVE_INTERVAL_MEANING, RECORDS),
    Column("upper_95", "upper", ADAPTIVE_INTERVAL_MEANING, RECORDS),
    VALUE_IS,
)
"""Those of a table of adaptive estimates."""

OWN_COUNT = "own count"  # takes the place of an attribute
OWN_COUNTS = (
    Column("name", "code", "What the count is called.", attribute=OWN_COUNT),
    Column("answer", "value", "The noisy count. Unbiased; may be negative."),
    Column("standard_error", "error", STANDARD_ERROR_MEANING),
    Column("margin_95", "margin", "The true count is no further away 95 % of the time."),
    Column("target", "target", "The largest standard error that was asked for."),
    Column("met", "flag", "Whether the standard error is within the target."),
)
"""All columns of own counts. Without units: their coefficients may be any numbers."""

UNIT = Column(
    "unit",
    "unit",
    "What the answer, its errors and its target are a number of: the unit of the amounts that are "
    "added up, or records.",
)
"""Behind the answers of own counts, where some attribute has amounts."""

WEIGHTED_RECORDS = f"weighted {RECORDS}"
NUMBER = "number"
"""The unit of figures that have none."""

PUBLISHABLE = Column(
    "publishable", "publishable", "Whether the count is above 0 and its CV within the limit."
)
CV = Column("cv", "cv", "The coefficient of variation: the error over the size of the count.")
TOTAL_CV = replace(
    CV,
    meaning="The coefficient of variation: the error of noise and sampling together, over the size "
    "of the count.",
)
QUALITY = Column(
    "quality",
    "quality",
    "The quality of the count by its CV: A to 5 %, B to 10 %, C to 20 %, D to 33 %, E above, or "
    "not above 0.",
)


STATUS = Column(
    "obs_status",
    "status",
    "The status of the figure, by the codes of SDMX: A exact, E estimated (with noise), U of low "
    "reliability (CV above 20 %, or not above 0), O missing.",
)


@dataclass(frozen=True)
class Schema:
    """The columns of a table of results, in their order."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, rows: "pa.Table | pa.Schema | pd.DataFrame") -> "Schema":
        """Those of a table as it was read; raises `ReleaseError` for columns without a role."""
        import pyarrow as pa

        if isinstance(rows, pa.Table | pa.Schema):
            fields = rows.schema if isinstance(rows, pa.Table) else rows
            return cls(tuple(_column(field.name, field.metadata or {}) for field in fields))
        stored = _from_text(rows.attrs.get(_KEY, "{}"))
        return cls(tuple(stored.get(name) or _column(name, {}) for name in rows.columns))

    def names(self, *roles: Role) -> list[str]:
        """The names of the columns with one of these roles."""
        return [column.name for column in self.columns if column.role in roles]

    def has(self, role: Role) -> bool:
        return any(column.role == role for column in self.columns)

    def name(self, role: Role) -> str:
        """The name of the first column with a role; raises `ReleaseError` if there is none."""
        for column in self.columns:
            if column.role == role:
                return column.name
        raise ReleaseError(f"The table has no column with the role {role!r}; take another table.")

    @property
    def labels(self) -> tuple[Column, ...]:
        """The columns that say which cell a row is: codes and labels."""
        return tuple(column for column in self.columns if column.names_cells)

    @property
    def figures(self) -> tuple[Column, ...]:
        """All other columns."""
        return tuple(column for column in self.columns if not column.names_cells)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that the rows are by, in the order of their columns."""
        return tuple(dict.fromkeys(column.attribute for column in self.labels))

    @property
    def is_processed(self) -> bool:
        """Whether something was done to the values, so that they are biased."""
        return self.has("estimate") or self.has("model_error")

    @property
    def is_smooth(self) -> bool:
        """Whether the values are best guesses by a model, with its error."""
        return self.has("model_error")

    @property
    def has_unbiased(self) -> bool:
        """Whether the errors and intervals are those of unbiased figures beside the values."""
        return self.has("estimate")

    @property
    def last_of_interval(self) -> Role:
        """The role of the column behind which an interval, or a margin, is complete."""
        return "upper" if self.has("upper") else "margin"

    @property
    def error_and_count(self) -> tuple[str, str]:
        """The columns that a CV is made of: errors, and the figures that they are of."""
        if self.is_smooth:
            return self.name("model_error"), self.name("value")
        return self.name("error"), self.name("estimate" if self.has_unbiased else "value")

    def marked(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """The same frame, which keeps what its columns are from now on."""
        facts = {
            column.name: [fact for name, fact in vars(column).items() if name != "name"]
            for column in self.columns
        }
        frame.attrs[_KEY] = json.dumps(facts, ensure_ascii=False)
        return frame

    def rows(self, frame: "pd.DataFrame") -> "pa.Table":
        """A frame with these columns as Arrow, whose fields have the roles."""
        import pyarrow as pa

        rows = pa.Table.from_pandas(frame, preserve_index=False)
        fields = [
            column.field(field.type)
            for column, field in zip(self.columns, rows.schema, strict=True)
        ]
        return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def frame_of(rows: "pa.Table") -> "pd.DataFrame":
    """Rows as a DataFrame that keeps what its columns are."""
    return Schema.of(rows).marked(rows.to_pandas())


def rows_of(frame: "pd.DataFrame") -> "pa.Table":
    """The rows of such a DataFrame; `frame_of` undoes it."""
    return Schema.of(frame).rows(frame)


def apart_from(columns: Iterable[Column], figures: Iterable[Column]) -> list[Column]:
    """Columns of codes and labels by other names than each other's and those of the figures."""
    taken = {column.name for column in figures}
    apart: list[Column] = []
    for column in columns:
        name = column.name
        while name in taken:
            name += MARK
        taken.add(name)
        apart.append(column if name == column.name else replace(column, name=name))
    return apart


@lru_cache(256)
def _from_text(text: str) -> dict[str, Column]:
    return {name: Column(name, *facts) for name, facts in json.loads(text).items()}


def _column(name: str, metadata: Mapping[bytes, bytes]) -> Column:
    facts = {key.decode(): fact.decode() for key, fact in metadata.items()}
    if facts.get("role") not in get_args(Role):
        raise ReleaseError(
            f"The column {name!r} does not say what it is, as those of a release's tables do; take "
            "a table from the folder of a release."
        )
    known = ("role", "meaning", "unit", "attribute", "whole", "within")
    return Column(name, **{key: facts[key] for key in known if key in facts})  # pyright: ignore[reportArgumentType]
