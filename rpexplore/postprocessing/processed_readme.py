"""What processed tables are, in the words that go with them, and the README of their folder."""

from rpexplore.common.formatting import describe_share
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.nonnegative import Nonnegative

_TEXT = """# Processed tables: {label}

**The column `value` is biased, and the intervals are not its own.** It was made of the noisy tables
of a release, without looking at any records:
{done}
{guarantee}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the processed count. No standard error of it is known.
- `unbiased_value`: the noisy count as it was released. Right on average; it may be negative.
- `standard_error`: of `unbiased_value`, for the privacy noise alone.
- `lower_95`, `upper_95`: an interval around `unbiased_value` that contains the true count 95 % of
  the time (about that where the standard error is below 2). `value` may lie outside.
- `value_is`: what `value` is, in words, so that a row that is copied out still says it.

Use `value` where a table is shown or has to be possible as a table of counts. Use `unbiased_value`
where cells are added up, compared or analysed further: the biases of many cells add up, too.

## Sources

{sources}

`manifest.json` lists what was done, the sources, versions and the SHA-256 of every file.
"""

_NONNEGATIVE = """
- No cell is negative, and all tables still agree: cells add up to the totals of smaller tables. The
  total is the noisy one. Of all tables like that these are the nearest to the noisy ones: of their
  squared distance at most {share} is avoidable. Cells near 0 are too large on average,
  large cells too small.
"""

_ROUNDED = """
- Cells are whole numbers; each moved by less than 1 (of an attribute that is asked in sums, each
  count of a single value did). All tables have the same total, and the totals for the first
  attributes of a table are those of the table of these attributes alone. Totals over other
  attributes can differ from table to table, by rounding. The rounding is not random: small cells
  may go to 0 together.
"""


def label(nonnegative: bool, rounded: bool) -> str:
    """What was done to the tables, in words that go with them wherever they go."""
    done = ["nonnegative and consistent"] if nonnegative else []
    done += ["rounded to whole numbers"] if rounded else []
    return f"{', then '.join(done)}; biased; intervals are those of the unbiased answers"


def readme(estimates: Estimates, words: str, rounded: bool, found: Nonnegative | None) -> str:
    """The text of README.md; found: how the tables were made nonnegative, if they were."""
    done = "" if found is None else _NONNEGATIVE.format(share=describe_share(found.gap))
    if rounded:
        done += _ROUNDED
    sources = [
        f"- `{source.name}`"
        + (f": release by the plan {source.plan_sha256}" if source.is_release else "")
        for source in estimates.sources
    ]
    return _TEXT.format(
        label=words, done=done, guarantee=estimates.guarantee, sources="\n".join(sources)
    )
