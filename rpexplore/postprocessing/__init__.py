"""Other tables of released ones; spends nothing and never sees a record.

In reading order: `stored_arrays`, `estimates` (unbiased, with exact accuracy),
`measurement_source`, `same_records`, `noisy_marginal`, `combination`, `table_writing`,
`combination_folder`; `cell_coupling`, `nonnegative`, `smooth`, `dependence`,
`rounding`, `publication` (which cells, and where smoothing gains nothing), `group_distances`,
`shrinkage_file`, `processed_tables`, `processed_folder`, `duration`; `results` (any release or
processed tables), `workbook_label`, `workbook`; `formats` (for other programs); `areas`
(whole counts for areas).

Imports `releases` and what that may import.
"""
