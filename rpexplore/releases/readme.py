"""The README of a release folder: what the numbers of each part are, and what a row counts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rpexplore.common.csv_text import FORMULAS_ESCAPED
from rpexplore.common.formatting import plural
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.result_schema import OWN_COUNTS, RELEASED, Column
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.adaptive.outcomes import RoundOutcome
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.reading_code import TableFile
from rpexplore.releases.residual_files import residual_files
from rpexplore.releases.table_files import table_path
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload


def table_readme(folder: Path, plan: TablePlan) -> str:
    """What the README.md says of tables, whose files are in the folder."""
    workload = plan.workload
    largest = np.flatnonzero(workload.orders == workload.orders.max())
    residuals = list(residual_files(plan.closure))
    example = int(largest[np.argmin(workload.cells[largest])])
    return _render(
        "tables.md.j2",
        plan,
        figures=_explained(RELEASED),
        limit=f"{100 * CV_LIMIT:g} %",
        example=TableFile.of(folder, table_path(example, workload.tables[example])),
        basis_lines=_basis_lines(workload),
        residuals=residuals[0] if len(residuals) == 1 else "residuals/",
        has_custom_basis=any(not basis.counts_records for _, basis in workload.attribute_bases),
    )


def query_readme(plan: QueryPlan, note: MeasurementNote) -> str:
    """What the README.md says of own counts."""
    return _render(
        "queries.md.j2",
        plan,
        files="`counts/answers.parquet` holds"
        if note.parquet_only
        else "`counts/answers.csv` and `counts/answers.parquet` hold the same,",
        figures=_explained(OWN_COUNTS),
        queries_over_cells=f"{plural(len(plan.queries), 'query')} over the "
        f"{plural(plan.queries.n_cells, 'cell')}",
        attributes=" × ".join(f"`{name}`" for name in plan.domain.names),
    )


def area_readme(plan: AreaPlan, example: str) -> str:
    """What the README.md says of tables in areas; example: a folder of one of them."""
    levels = plan.workload.tree.levels
    return _render("areas.md.j2", plan, levels=levels, example=example)


def adaptive_readme(
    plan: AdaptivePlan, note: MeasurementNote, outcomes: Sequence[RoundOutcome]
) -> str:
    """What the README.md says of adaptive tables."""
    n_selected = sum(len(outcome.measured) for outcome in outcomes)
    n_lost = sum(not outcome.measured for outcome in outcomes)
    return _render(
        "adaptive.md.j2",
        plan,
        parquet_only=note.parquet_only,
        n_selected=plural(n_selected, "table"),
        n_rounds=plural(len(outcomes), "round"),
        n_lost=plural(n_lost, "round") if n_lost else "",
    )


def describe_unknown_values(unknown_values: Mapping[str, str]) -> str:
    """What out-of-codebook values were counted as, as a sentence; "" for nothing."""
    if not unknown_values:
        return ""
    pairs = "; ".join(f"{name}: {value}" for name, value in unknown_values.items())
    return f"Out-of-codebook values were counted as: {pairs}. "


def release_readme(plan: Plan, note: MeasurementNote, sections: Sequence[str]) -> str:
    """The README.md of a release, without its approvals; sections: of its parts."""
    rule = f"{note.person_rule} " if note.person_rule else ""
    records = describe_unknown_values(note.unknown_values) + rule
    if note.streaming_note:
        records += f"{note.streaming_note} "
    if note.escape_formulas:
        records += f"{FORMULAS_ESCAPED} "
    return _render("release.md.j2", plan, records=records, sections=sections)


def _render(template: str, plan: Plan | PartPlan, **more: object) -> str:
    return text_from_template("rpexplore.releases", template, plan=plan, **more)


def _explained(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """What columns mean beside codes and values, those of one meaning together."""
    names: dict[str, list[str]] = {}
    for column in columns:
        if column.role not in ("code", "value"):
            names.setdefault(column.meaning, []).append(f"`{column.name}`")
    return [(", ".join(named), meaning) for meaning, named in names.items()]


def _basis_lines(workload: Workload) -> list[str]:
    """The basis of each attribute that has another than single values: "`age`, cumulative: up to
    each value; 4 rows, such as "≤ 24"."
    """
    lines = []
    for basis_index, (attribute_index, basis) in enumerate(workload.attribute_bases):
        bases = workload.bases[attribute_index]
        if all(basis.is_identity for basis in bases):
            continue
        attribute = workload.domain.attributes[attribute_index]
        in_table = np.any(workload.attribute_basis_index == basis_index, axis=1)
        where = f" (in {np.count_nonzero(in_table):,} of the tables)" if len(bases) > 1 else ""
        matrix = query_matrix(basis, attribute)
        rows, example = plural(matrix.n_rows, "row"), matrix.label(matrix.n_rows // 2)
        description = f'{basis.describe(attribute)}; {rows}, such as "{example}"'
        lines.append(f"`{attribute.name}`{where}, {description}")
    return lines
