"""The README of a release folder, and lines of Python, R, SAS and Stata that read its tables."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.template_text import text_from_template
from rpexplore.common.text import FORMULAS_ESCAPED, plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.result_schema import (
    IMPOSSIBLE_NOTE,
    NOTE,
    OWN_COUNTS,
    RELEASED,
    UNIT,
    Column,
    Schema,
)
from rpexplore.domain.values import describe_combinations
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases import large_tables
from rpexplore.releases.adaptive_rounds import RoundOutcome
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.packed_tables import MOST_CELLS, PACKED
from rpexplore.releases.table_cells import not_what_was_written, table_path
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# ---- The README of a release folder: what the numbers of each part are, and what a row counts.


def table_readme(
    folder: Path,
    plan: TablePlan,
    residual_files: Iterable[str],
    packed: np.ndarray,
    *,
    with_csv: bool,
) -> str:
    """What the README.md says of tables, whose files are in the folder.

    packed: those that are in one file, int64[m]
    """
    workload = plan.workload
    large = large_tables.are_large(workload)
    shown = packed if len(packed) else np.arange(len(workload))
    if not np.all(large[shown]):
        shown = shown[~large[shown]]
    largest = shown[workload.orders[shown] == workload.orders[shown].max()]
    residuals = list(residual_files)
    example = int(largest[np.argmin(workload.cells[largest])])
    path, number = table_path(example, workload.tables[example]), None
    if len(packed):
        path, number = PACKED.removesuffix(".parquet"), example
    return _render(
        "tables.md.j2",
        plan,
        figures=_explained(RELEASED if len(packed) < len(workload) else RELEASED[:2]),
        limit=f"{100 * CV_LIMIT:g} %",
        impossible=impossible_rows(plan.domain),
        example=replace(TableFile.of(folder, path, number), is_large=bool(large[example])),
        n_packed=len(packed),
        has_others=len(packed) < len(workload),
        largest_packed=MOST_CELLS,
        has_csv=with_csv and len(packed) + np.count_nonzero(large) < len(workload),
        has_large=bool(np.any(large)),
        largest_as_a_whole=large_tables.MAX_TABLE_CELLS,
        basis_lines=_basis_lines(workload),
        residuals=residuals[0] if len(residuals) == 1 else "residuals/",
        means="means/",
        has_custom_basis=any(
            not (basis.counts_records or basis.of_amounts) for _, basis in workload.attribute_bases
        ),
        amounts=_lines_of_amounts(
            plan.domain, set(workload.amounts) - set(plan.domain.weights), plan.products
        ),
        weights=_lines_of_amounts(
            plan.domain, set(workload.amounts) & set(plan.domain.weights), plan.products
        ),
    )


def query_readme(plan: QueryPlan, note: MeasurementNote) -> str:
    """What the README.md says of own counts."""
    return _render(
        "queries.md.j2",
        plan,
        files="`counts/answers.parquet` holds"
        if note.parquet_only
        else "`counts/answers.csv` and `counts/answers.parquet` hold the same,",
        figures=_explained([*[UNIT] * bool(plan.domain.amounts), *OWN_COUNTS]),
        impossible=impossible_rows(plan.domain),
        amounts=_lines_of_amounts(plan.domain, plan.domain.amounts, plan.products),
        queries_over_cells=f"{plural(len(plan.queries), 'own count')} over the "
        f"{plan.queries.cells_text}",
        attributes=" × ".join(f"`{name}`" for name in plan.domain.names),
    )


def area_readme(plan: AreaPlan, example: str) -> str:
    """What the README.md says of tables in areas; example: a folder of one of them."""
    levels, workload = plan.workload.tree.levels, plan.workload.tables
    impossible = impossible_rows(plan.domain)
    return _render(
        "areas.md.j2",
        plan,
        levels=levels,
        example=example,
        impossible=impossible,
        empty=plan.workload.tree.empty_text,
        recodes=plan.workload.tree.recodes_text,
        residuals="areas/residuals/",
        means="areas/means/",
        amounts=_lines_of_amounts(
            plan.domain, set(workload.amounts) - set(plan.domain.weights), plan.products
        ),
        weights=_lines_of_amounts(
            plan.domain, set(workload.amounts) & set(plan.domain.weights), plan.products
        ),
    )


def adaptive_readme(
    plan: AdaptivePlan, note: MeasurementNote, outcomes: Sequence[RoundOutcome], *, n_packed: int
) -> str:
    """What the README.md says of adaptive tables; n_packed: how many of them are in one file."""
    n_selected = sum(len(outcome.measured) for outcome in outcomes)
    n_lost = sum(not outcome.measured for outcome in outcomes)
    return _render(
        "adaptive.md.j2",
        plan,
        parquet_only=note.parquet_only,
        n_packed=n_packed,
        has_others=n_packed < len(plan.workload),
        largest_packed=MOST_CELLS,
        n_selected=plural(n_selected, "table"),
        n_rounds=plural(len(outcomes), "round"),
        n_lost=plural(n_lost, "round") if n_lost else "",
    )


COUNTED_IMPOSSIBLE = (
    "Records with combinations that the codebook states to be impossible are counted as they are, "
    "if there are any: unbiased counts keep them, and estimates that follow the codebook are 0 "
    "there."
)
"""What is said of a run that counts such records."""


def describe_counted(
    unknown_values: Mapping[str, str], missing_values: Mapping[str, str], *, count_impossible: bool
) -> str:
    """How records that do not fit the codebook were counted, in sentences; "" for none."""
    text = ""
    for what, takers in (("Out-of-codebook", unknown_values), ("Missing", missing_values)):
        if takers:
            pairs = "; ".join(f"{name}: {value}" for name, value in takers.items())
            text += f"{what} values were counted as: {pairs}. "
    if count_impossible:
        text += f"{COUNTED_IMPOSSIBLE} "
    return text


def release_readme(plan: Plan, note: MeasurementNote, sections: Sequence[str]) -> str:
    """The README.md of a release, without its approvals; sections: of its parts."""
    rule = f"{note.person_rule} " if note.person_rule else ""
    records = describe_counted(
        note.unknown_values, note.missing_values, count_impossible=note.count_impossible
    )
    records += rule
    if note.positions:
        records += (
            "The records are lines of fixed width, read by the positions in "
            f"{note.positions['file']} (SHA-256 {note.positions['sha256']}). "
        )
    if note.encoding:
        records += f"The records are read as texts in {note.encoding}. "
    if note.streaming_note:
        records += f"{note.streaming_note} "
    if note.escape_formulas:
        records += f"{FORMULAS_ESCAPED} "
    return _render("release.md.j2", plan, records=records, sections=sections)


def _render(template: str, plan: Plan | PartPlan, **more: object) -> str:
    return text_from_template("rpexplore.releases", template, plan=plan, **more)


def impossible_rows(domain: Domain) -> str:
    """What a README says of rows that no record can be in; "" if the codebook states nothing."""
    if not domain.impossible:
        return ""
    return (
        f"The codebook states {describe_combinations(domain.impossible)}. Where no record can be "
        f'in some rows, a further column, `{NOTE.name}`, says of each of them "{IMPOSSIBLE_NOTE}": '
        "the true count is 0 there, unless it is said below that such records were counted."
    )


def _explained(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """What columns mean beside codes and values, those of one meaning together."""
    names: dict[str, list[str]] = {}
    for column in columns:
        if column.role not in ("code", "value"):
            names.setdefault(column.meaning, []).append(f"`{column.name}`")
    return [(", ".join(named), meaning) for meaning, named in names.items()]


def _lines_of_amounts(
    domain: Domain, indices: Collection[int], together: Sequence[tuple[int, int]]
) -> list[str]:
    """What is summed of each of these attributes, and what is done to amounts beyond limits.

    together: amounts and weights that are multiplied
    """
    lines = []
    for index in sorted(indices):
        attribute = domain.attributes[index]
        values = attribute.values
        assert isinstance(values, Amounts)
        places = f", rounded to {plural(values.decimals, 'decimal')}" if values.decimals else ""
        unit = f" in {values.unit}" if values.unit else ""
        rounding = [
            values.rounding_sentence(weights)
            for one, other in together
            if one == index and isinstance(weights := domain.attributes[other].values, Amounts)
        ]
        said = [f"`{attribute.name}`{unit}{places}: {values.clamping}.", *rounding]
        lines.append(" ".join(filter(None, said)))
    return lines


def _basis_lines(workload: Workload) -> list[str]:
    """The basis of each attribute that has another than single values: "`age`, cumulative: up to
    each value; 4 rows, such as "≤ 24"."
    """
    lines = []
    for basis_index, (attribute_index, basis) in enumerate(workload.attribute_bases):
        bases = workload.bases[attribute_index]
        if all(basis.is_identity or basis.of_amounts for basis in bases):
            continue
        attribute = workload.domain.attributes[attribute_index]
        in_table = np.any(workload.attribute_basis_index == basis_index, axis=1)
        where = f" (in {np.count_nonzero(in_table):,} of the tables)" if len(bases) > 1 else ""
        matrix = query_matrix(basis, attribute)
        rows, example = plural(matrix.n_rows, "row"), matrix.label(matrix.n_rows // 2)
        description = f'{basis.describe(attribute)}; {rows}, such as "{example}"'
        lines.append(f"`{attribute.name}`{where}, {description}")
    return lines


# ---- Lines of Python, R, SAS and Stata that read a table of a folder, made from its own columns.
#
# They read labels as text ("01" stays so) and numbers as the file has them, and add to every cell
# the coefficient of variation by its noisy count (of smooth tables the model-based one), and
# whether that makes it publishable.


_NAME_LENGTH = 32  # of variables in SAS
_LEAST_BYTES = 8  # of a text in SAS
# Names in SAS that are not for one variable of a table.
_TAKEN = {"_n_", "_error_", "_all_", "_character_", "_numeric_", "cv", "publishable"}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table's file.

    n_bytes  of its longest text in UTF-8; None for numbers
    is_flag  whether it holds true and false
    """

    name: str
    n_bytes: int | None
    is_flag: bool = False


@dataclass(frozen=True)
class TableFile:
    """A table of a folder of results, as programs find it there.

    path          of its Parquet and CSV file within the folder, without ending; or of a folder of
                  Parquet files, of a table in areas
    error, count  the columns that CVs are made of
    has_csv       whether it has a CSV file
    number        that of the table, where it is in one file with others
    is_folder     whether it is a folder
    is_large      whether it has too many cells to be read as a whole
    """

    path: str
    columns: tuple[TableColumn, ...]
    error: str = "standard_error"
    count: str = "value"
    has_csv: bool = True
    is_folder: bool = False
    number: int | None = None
    is_large: bool = False

    @classmethod
    def of(cls, folder: Path, path: str, number: int | None = None) -> "TableFile":
        """The table in a folder of results with this path, without ending.

        number: of a table that is in one file with others

        Raises `ReleaseError` if its file cannot be read.
        """
        as_parquet = folder / f"{path}.parquet"
        has_csv = (folder / f"{path}.csv").is_file()
        try:
            is_folder = number is None and (folder / path).is_dir()
            first = min((folder / path).glob("*.parquet")) if is_folder else as_parquet
            with pyarrow.parquet.ParquetFile(first) as file:
                schema = Schema.of(file.schema_arrow)
                columns = [
                    TableColumn(
                        column.name,
                        None if column.is_number else _n_bytes(file, column.name, has_csv),
                        column.role == "flag",
                    )
                    for column in schema.columns
                ]
        except (OSError, ValueError, pa.ArrowException):
            raise not_what_was_written(as_parquet, "it cannot be read any more") from None
        return cls(path, tuple(columns), *schema.error_and_count, has_csv, is_folder, number)

    @property
    def _parquet(self) -> str:
        return self.path if self.is_folder else f"{self.path}.parquet"

    def code(self, cv_limit: float = CV_LIMIT) -> dict[str, str]:
        """Name of a language -> lines that read the table, to be run in the folder.

        cv_limit: the largest coefficient of variation of a publishable cell
        """
        limit = f"{cv_limit:.10g}"
        code = {"Python": self._python(limit), "R": self._r(limit)}
        if self.has_csv:  # they do not read Parquet
            code |= {"SAS": self._sas(limit), "Stata": self._stata(limit)}
        return code

    @property
    def _added(self) -> list[str]:
        """What the CV, and whether it makes a cell publishable, are called beside the columns."""
        # Stata leaves out of a name what names there cannot have: "c v" becomes "cv".
        names = {re.sub(r"\W", "", column.name) for column in self.columns}
        added = []
        for name in ("cv", "publishable"):
            while name in names:
                name = f"cell_{name}"
            added.append(name)
        return added

    def _python(self, limit: str) -> str:
        cv, publishable = self._added
        error, estimate = self.error, self.count
        only = "" if self.number is None else f', filters=[("table", "==", {self.number})]'
        read = f'import pandas as pd\n\ntable = pd.read_parquet("{self._parquet}"{only})\n'
        if self.is_large:
            read = (
                "from pyarrow.parquet import ParquetFile\n"
                "\n"
                f'parts = ParquetFile("{self._parquet}").iter_batches(100_000)\n'
                "table = next(parts).to_pandas()  # the first rows\n"
            )
        return (
            f"{read}"
            f'table["{cv}"] = table["{error}"] / table["{estimate}"].abs()\n'
            f'table["{publishable}"] = (table["{estimate}"] > 0) & '
            f'(table["{cv}"] <= {limit})\n'
            "print(table.head())\n"
        )

    def _r(self, limit: str) -> str:
        cv, publishable = self._added
        error, estimate = self.error, self.count
        kinds = [
            "logical" if one.is_flag else "numeric" if one.n_bytes is None else "character"
            for one in self.columns
        ]
        listed = ",\n    ".join(f'rep("{kind}", {len(list(run))})' for kind, run in groupby(kinds))
        read = (
            f'table <- read.csv("{self.path}.csv", check.names = FALSE, encoding = "UTF-8",\n'
            "  na.strings = character(0), colClasses = c(\n"
            f"    {listed}))\n"
        )
        if not self.has_csv:
            read = f'table <- as.data.frame(arrow::read_parquet("{self._parquet}"))\n'
            if self.number is not None:
                opened = f'arrow::open_dataset("{self._parquet}")'
                opened = f"dplyr::filter({opened}, table == {self.number})"
                read = f"table <- as.data.frame(dplyr::collect({opened}))\n"
            if self.is_folder:
                opened = f'dplyr::collect(arrow::open_dataset("{self._parquet}"))'
                read = f"table <- as.data.frame({opened})\n"
            if self.is_large:
                opened = f'head(arrow::open_dataset("{self._parquet}"), 100000)'
                read = f"table <- as.data.frame(dplyr::collect({opened}))  # the first rows\n"
        return (
            f"{read}"
            f"table${cv} <- table${error} / abs(table${estimate})\n"
            f"table${publishable} <- table${estimate} > 0 & table${cv} <= {limit} & "
            f"!is.na(table${cv})\n"
            "head(table)\n"
        )

    def _sas(self, limit: str) -> str:
        error, estimate = self.error, self.count
        inputs, labels = [], []
        for column, variable in zip(self.columns, self._variables, strict=True):
            # CSV files may have one byte more: an apostrophe before what could be a formula.
            length = column.n_bytes and max(_LEAST_BYTES, column.n_bytes + 1)
            inputs.append(f"    {variable}" + (f" :${length}." if length else ""))
            if variable != column.name:
                labels.append(f"    {variable} = {_sas_text(column.name)}")
        named = "  label\n{};\n".format("\n".join(labels)) if labels else ""
        listed = "\n".join(inputs)
        return (
            "data table;\n"
            f'  infile "{self.path}.csv" dsd firstobs=2 encoding="utf-8" lrecl=1048576 '
            "termstr=lf;\n"
            f"  input\n{listed};\n"
            f"{named}"
            f"  cv = divide({error}, abs({estimate}));\n"
            # A missing number is below all others there.
            f"  publishable = ({estimate} > 0 and not missing(cv) and cv <= {limit});\n"
            "run;\n"
            "proc print data=table(obs=6);\n"
            "run;\n"
        )

    def _stata(self, limit: str) -> str:
        cv, publishable = self._added
        error, estimate = self.error, self.count
        texts = [i for i, column in enumerate(self.columns, start=1) if column.n_bytes is not None]
        kept = f"stringcols({' '.join(map(str, texts))}) " if texts else ""
        return (
            f'import delimited "{self.path}.csv", varnames(1) case(preserve) ///\n'
            f'    encoding("utf-8") bindquote(strict) {kept}asdouble clear\n'
            f"generate double {cv} = {error} / abs({estimate})\n"
            f"generate byte {publishable} = {estimate} > 0 & {cv} <= {limit}\n"
            "list in 1/`=min(6, _N)'\n"
        )

    @property
    def _variables(self) -> list[str]:
        """A name for each column that SAS takes, each once, whatever their case."""
        taken, variables = set(_TAKEN), []
        for column in self.columns:
            plain = re.sub(r"[^A-Za-z0-9_]+", "_", column.name).strip("_") or "column"
            plain = f"v_{plain}" if plain[0].isdigit() else plain
            variable, number = plain[:_NAME_LENGTH], 1
            while variable.lower() in taken:
                number += 1
                variable = f"{plain[: _NAME_LENGTH - len(str(number)) - 1]}_{number}"
            taken.add(variable.lower())
            variables.append(variable)
        return variables


def _n_bytes(file: pyarrow.parquet.ParquetFile, column: str, has_csv: bool) -> int:
    """How long the longest text of a column is; 0 without CSV, as only readers of CSV ask."""
    longest = 0
    if not has_csv and file.schema_arrow.field(column).type != pa.bool_():
        return longest
    for batch in file.iter_batches(columns=[column]):
        values = batch.column(0)
        if pa.types.is_boolean(values.type):
            return len("false")
        texts = values.dictionary if pa.types.is_dictionary(values.type) else values
        longest = max([longest, *(len(text.encode()) for text in texts.to_pylist())])
    return longest


def _sas_text(text: str) -> str:
    """A text in single quotation marks, in which SAS resolves nothing."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return "'{}'".format(plain.replace("'", "''"))
