"""The README of a folder of combined tables: what the numbers are, and where they came from."""

from rpexplore.common.formatting import rounded
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import MeasurementSource

_TEXT = """# Noisy tables, {label}

{guarantee}

Each file in `tables/` is one table, as CSV and as Parquet, one row a cell: a column for each
attribute (and one ending in "label" where a value has a longer name), then

- `value`: the noisy count. Unbiased; not rounded; may be negative. Tables agree with each other:
  cells add up to the totals of smaller tables.
- `standard_error`: of the privacy noise alone; errors that were in the records come on top.
- `lower_95`, `upper_95`: an interval that contains the true count 95 % of the time (about that
  where the standard error is below 2, because noise on counts comes in whole steps).

What was measured more than once was averaged, with weights by accuracy (one over the variance). So
a cell is at least as accurate here as in any of the sources, and its value differs from theirs:
publish one of them, or say which is which. Attributes are asked by each value, however the
sources' tables ask them; ranges, groups and other sums are answered in Python by
`rpexplore.postprocessing.combination_folder.load_combined(folder).answer(where=...)`, with exact
standard errors.

## Sources

{sources}

All of them have to be of the same records; no file can show that.{stated}

`estimates.json` and `contributions.parquet` hold what the tables were computed from, so that more
can be combined with it. `manifest.json` lists sources, versions and the SHA-256 of every file.
"""

_STATED = """ The variance of a noisy marginal is what whoever
combined them stated, and the standard errors are right if it is."""


def readme(estimates: Estimates) -> str:
    """The text of README.md."""
    marginals = any(not source.is_release for source in estimates.sources)
    return _TEXT.format(
        label=estimates.label,
        guarantee=estimates.guarantee,
        sources="\n".join(f"- {_line(source)}" for source in estimates.sources),
        stated=_STATED if marginals else "",
    )


def _line(source: MeasurementSource) -> str:
    """ "`first`: release by the plan 0a1b…, ρ = 0.5 for one record"."""
    kind = f"release by the plan {source.plan_sha256}" if source.is_release else "noisy marginal"
    if source.rho is None:
        return f"`{source.name}`: {kind}, ρ not stated"
    return f"`{source.name}`: {kind}, ρ = {rounded(source.rho, 6, 'up')} for {source.unit}"
