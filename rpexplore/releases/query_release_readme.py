"""The README of a release of queries: what the numbers are."""

from collections.abc import Mapping

from rpexplore.common.formatting import plural
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.readme import other_in_words

_TEXT = """# A release of noisy answers to a list of queries

{guarantee}

`answers.csv` and `answers.parquet` hold the same, one row a query: {queries} over the {cells} of
{attributes}.

- `name`: of the query. What it counts stands in `plan.json`, cell by cell.
- `answer`: the noisy answer. Unbiased; not rounded; may be negative. Answers agree with each other:
  where one query is a sum of others, so is its answer.
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `margin_95`: the true answer lies within ± this of the noisy one 95 % of the time.
- `target`: the standard error that was wanted; `met`: whether the plan keeps to it.

The errors of different answers go together, so sums and differences of answers have another
accuracy than their margins suggest.

`plan.json` is the plan that fixed all standard errors before the records were touched; check it
with `rpexplore verify plan.json`. {other}{persons}`measurements.parquet` holds the noisy whole
numbers from which the answers were computed, one for each row of `strategy` in `plan.json`.
`manifest.json` lists versions and the SHA-256 of every file.
"""


def query_readme(plan: QueryPlan, other: Mapping[str, str], persons: str = "") -> str:
    """The text of README.md; `other` and `persons` as `release_readme.readme` has them."""
    queries = plan.queries
    count = "1 query" if len(queries) == 1 else f"{len(queries):,} queries"
    return _TEXT.format(
        guarantee=plan.guarantee,
        queries=count,
        cells=plural(queries.n_cells, "cell"),
        attributes=" × ".join(f"`{name}`" for name in queries.domain.names),
        other=other_in_words(other),
        persons=f"{persons} " if persons else "",
    )
