"""The README of a release folder: what the numbers are, and what a row counts."""

from collections.abc import Mapping

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.planning.plan import Plan
from rpexplore.workload.bases import Basis
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

_TEXT = """# A release of noisy tables

{guarantee}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the noisy count. Unbiased; not rounded; may be negative. Tables agree with each other:
  {agreement}.
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `lower_95`, `upper_95`: an interval that contains the true count 95 % of the time (about that
  where the standard error is below 2, because noise on counts comes in whole steps).
{asked}
`plan.json` is the plan that fixed all standard errors before the records were touched; check it
with `rpexplore verify plan.json`. {other}{persons}`residuals.parquet` holds the noisy measurements
from which the tables were computed. `manifest.json` lists versions and the SHA-256 of every file.
"""

_ASKED = """
## What a row counts

Some attributes are asked other than by each value. In their columns stand names of sums of values:

{listed}

{counted} Rows may
overlap, so they are not there to be added up; and each row has a standard error of its own, which
need not be larger for rows of more values. To add up rows, or to ask for anything else that follows
from a table, use `rpexplore.Release.load(folder).answer(table, query)` in Python: its standard
error takes into account that the errors of rows go together.

In `residuals.parquet` these attributes have one measurement for each row of their matrix in
`plan.json`, others one for each value; the last attribute of a residual runs fastest.
"""

_COUNTED = "A row counts the records that lie in all that its columns name."
_WEIGHTED = """\
A row counts the records that lie in all that its columns name, weighted by the numbers in
`plan.json` where own questions are asked."""


def readme(plan: Plan, other: Mapping[str, str], persons: str = "") -> str:
    """The text of README.md.

    other: attribute name -> category that took other values. persons: how the records of one
    person were bounded, as a sentence
    """
    workload = plan.workload
    pure = workload.is_marginals
    return _TEXT.format(
        guarantee=plan.guarantee,
        agreement="cells add up to the totals of smaller tables"
        if pure
        else "what follows from two of them is the same in both",
        asked="" if pure else _asked(workload),
        other=other_in_words(other),
        persons=f"{persons} " if persons else "",
    )


def _asked(workload: Workload) -> str:
    has_own = any(basis.kind == "own" for _, basis in workload.attribute_bases)
    counted = _WEIGHTED if has_own else _COUNTED
    return _ASKED.format(listed="\n".join(_listed(workload)), counted=counted)


def _listed(workload: Workload) -> list[str]:
    """A line for each way in which an attribute is asked, if not by single values alone."""
    lines = []
    for question, (place, basis) in enumerate(workload.attribute_bases):
        ways = workload.bases[place]
        if all(each.is_identity for each in ways):
            continue
        attribute = workload.domain.attributes[place]
        tables = int(np.count_nonzero(np.any(workload.attribute_basis_index == question, axis=1)))
        where = f" (in {tables:,} of the tables)" if len(ways) > 1 else ""
        lines.append(f"- `{attribute.name}`{where}, {_in_words(basis, attribute)}")
    return lines


def _in_words(basis: Basis, attribute: Attribute) -> str:
    """ "cumulative: up to each value; 4 rows, such as "≤ 24"." """
    asked = query_matrix(basis, attribute)
    example = asked.label(asked.n_rows // 2)
    rows = f"{asked.n_rows:,} rows" if asked.n_rows > 1 else "1 row"
    return f'{basis.words(attribute)}; {rows}, such as "{example}"'


def other_in_words(other: Mapping[str, str]) -> str:
    """What was done with values outside the plan's categories, as a sentence; "" for nothing."""
    if not other:
        return ""
    listed = "; ".join(f"{name}: {value}" for name, value in other.items())
    return f"Records with values outside the plan's categories were counted as: {listed}. "
