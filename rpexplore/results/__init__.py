"""Released tables, looked at and made into others; spends nothing and never sees a record.

In reading order: `unbiased` (tables with exact accuracy), `measurement_source`, `noisy_marginal`,
`combination` (of several releases), `second_plan`; `estimates/` (nonnegative, smooth, whole
counts), `publication` (which cells, and where smoothing gains nothing), `processed_tables`,
`processed_folder`, `duration`, `rehearsal` (on made-up records, before a run); `results` (any
release or processed tables), `pilot_tables` (for forecasts), `area_results`, `workbook`;
`formats/` (for other programs), `synthetic/` (records).

Imports `releases` and what that may import.
"""
