"""The README of a release folder: what the numbers are, and what a row counts."""

from collections.abc import Mapping

import jinja2
import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.workload.bases import Basis
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

_OF_TABLES = """\
# A release of noisy tables

{{ plan.guarantee }}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the noisy count. Unbiased; not rounded; may be negative. Tables agree with each other:
{% if plan.workload.is_marginals %}
  cells add up to the totals of smaller tables.
{% else %}
  what follows from two of them is the same in both.
{% endif %}
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `lower_95`, `upper_95`: an interval that contains the true count 95 % of the time (about that
  where the standard error is below 2, because noise on counts comes in whole steps).
{% if basis_lines %}

## What a row counts

Some attributes are asked other than by each value. In their columns stand names of sums of values:

{% for line in basis_lines %}
- {{ line }}
{% endfor %}

A row counts the records that lie in all that its columns name
{%- if has_custom_basis %}, weighted by the numbers in
`plan.json` where the basis is an own matrix{% endif %}. Rows may
overlap, so they are not there to be added up; and each row has a standard error of its own, which
need not be larger for rows of more values. To add up rows, or to ask for anything else that follows
from a table, use `rpexplore.Release.load(folder).answer(where={"age": "18..24"})` in Python: its
standard error takes into account that the errors of rows go together.

In `residuals.parquet` these attributes have one measurement for each row of their matrix in
`plan.json`, others one for each value; the last attribute of a residual runs fastest.
{% endif %}

`plan.json` is the plan that fixed all standard errors before the records were touched; check it
with `rpexplore verify plan.json`. {{ records }}`residuals.parquet` holds the noisy measurements
from which the tables were computed. `manifest.json` lists versions and the SHA-256 of every file.
"""

_OF_QUERIES = """\
# A release of noisy answers to a list of queries

{{ plan.guarantee }}

`answers.csv` and `answers.parquet` hold the same, one row a query: {{ queries_over_cells }} of
{{ attributes }}.

- `name`: of the query. What it counts stands in `plan.json`, cell by cell.
- `answer`: the noisy answer. Unbiased; not rounded; may be negative. Answers agree with each other:
  where one query is a sum of others, so is its answer.
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `margin_95`: the true answer lies within ± this of the noisy one 95 % of the time.
- `target`: the standard error that was wanted; `met`: whether the plan keeps to it.

The errors of different answers go together, so sums and differences of answers have another
accuracy than their margins suggest.

`plan.json` is the plan that fixed all standard errors before the records were touched; check it
with `rpexplore verify plan.json`. {{ records }}`measurements.parquet` holds the noisy whole
numbers from which the answers were computed, one for each row of `strategy` in `plan.json`.
`manifest.json` lists versions and the SHA-256 of every file.
"""

_ENVIRONMENT = jinja2.Environment(
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
    autoescape=False,  # it is no HTML
)


def table_readme(plan: Plan, note: MeasurementNote) -> str:
    """The README.md of a release of tables."""
    workload = plan.workload
    return _text(
        _OF_TABLES,
        plan,
        note,
        basis_lines=_basis_lines(workload),
        has_custom_basis=any(not basis.counts_records for _, basis in workload.attribute_bases),
    )


def query_readme(plan: QueryPlan, note: MeasurementNote) -> str:
    """The README.md of a release of queries."""
    n_queries, cells = len(plan.queries), plural(plan.queries.n_cells, "cell")
    queries = "1 query" if n_queries == 1 else f"{n_queries:,} queries"
    return _text(
        _OF_QUERIES,
        plan,
        note,
        queries_over_cells=f"{queries} over the {cells}",
        attributes=" × ".join(f"`{name}`" for name in plan.domain.names),
    )


def describe_unknown_values(unknown_values: Mapping[str, str]) -> str:
    """What was done with values outside the plan's categories, as a sentence; "" for nothing."""
    if not unknown_values:
        return ""
    pairs = "; ".join(f"{name}: {value}" for name, value in unknown_values.items())
    return f"Records with values outside the plan's categories were counted as: {pairs}. "


def _text(template: str, plan: ReleasePlan, note: MeasurementNote, **more: object) -> str:
    rule = f"{note.person_rule} " if note.person_rule else ""
    records = describe_unknown_values(note.unknown_values) + rule
    return _ENVIRONMENT.from_string(template).render(plan=plan, records=records, **more)


def _basis_lines(workload: Workload) -> list[str]:
    """How each attribute is asked, for those that are not asked by single values alone."""
    lines = []
    for basis_index, (attribute_index, basis) in enumerate(workload.attribute_bases):
        bases = workload.bases[attribute_index]
        if all(other.is_identity for other in bases):
            continue
        attribute = workload.domain.attributes[attribute_index]
        in_table = np.any(workload.attribute_basis_index == basis_index, axis=1)
        where = f" (in {np.count_nonzero(in_table):,} of the tables)" if len(bases) > 1 else ""
        lines.append(f"`{attribute.name}`{where}, {_describe_basis(basis, attribute)}")
    return lines


def _describe_basis(basis: Basis, attribute: Attribute) -> str:
    """ "cumulative: up to each value; 4 rows, such as "≤ 24"." """
    matrix = query_matrix(basis, attribute)
    example = matrix.label(matrix.n_rows // 2)
    rows = f"{matrix.n_rows:,} rows" if matrix.n_rows > 1 else "1 row"
    return f'{basis.describe(attribute)}; {rows}, such as "{example}"'
