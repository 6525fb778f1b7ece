"""How long synthetic records take, roughly, to be told beforehand."""

from rpexplore.postprocessing.duration import smoothing_seconds
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.synthetic.population import sweep_chunk_size
from rpexplore.postprocessing.synthetic.population_engine import records_swept
from rpexplore.postprocessing.synthetic.smooth_targets import MOST_RESIDUALS
from rpexplore.releases.table_release import TableRelease

# Seconds on one core, measured with tables of 4 to 100 attributes of 2 to 1,000 values; each of
# these cases within a factor of two.
_PER_PRODUCT, _PER_VALUE = 1e-9, 6e-9  # a record in a sweep: attributes times values; values
_PER_PAIR_OF_VALUES = 1e-8  # a chunk of the last sweep
_PER_TABLE, _PER_CELL, _PER_COUNT = 1e-3, 3e-7, 5e-8  # of the comparison; counting a record
_PER_WRITTEN_VALUE = 3e-7


def records_seconds(source: TableRelease | Estimates, rows: int | None) -> float:
    """About how long `synthesize` takes; within a factor of three."""
    n_records = max(round(source.answer().value), 1) if rows is None else rows
    domain, tables = source.domain, source.table_names
    attributes = {domain.position(name) for table in tables for name in table}
    d, n_values = len(attributes), int(domain.sizes[list(attributes)].sum())
    per_record = _PER_PRODUCT * d * n_values + _PER_VALUE * n_values
    chunks = n_records / sweep_chunk_size(n_records, n_values)
    residuals = source.residuals
    if len(residuals) > MOST_RESIDUALS:
        residuals = [residual for residual in residuals if len(residual) <= 2]
    return (
        smoothing_seconds(source, residuals)
        + records_swept(n_records, d) * per_record
        + _PER_PAIR_OF_VALUES * chunks * n_values**2
        + (_PER_TABLE + _PER_COUNT * n_records) * len(tables)
        + _PER_CELL * source.n_cells
        + _PER_WRITTEN_VALUE * d * n_records
    )
