"""Other tables of released ones; spends nothing and never sees a record.

Read `results` first: any release or processed tables, as everything that shows tables reads them.
Then `estimates` (unbiased, with exact accuracy), from which all others begin.

combined   `measurement_source`, `same_records`, `noisy_marginal`, `combination`,
           `combination_folder`
processed  `nonnegative` with `cell_coupling`, `smooth` with `dependence`, `rounding`;
           `processed_tables` runs them; `processed_folder`, `table_writing`, `stored_arrays`
told       `publication` (which cells, and where smoothing gains nothing), `group_distances`,
           `shrinkage_file`, `duration`
others     `workbook` with `workbook_label`; `formats` (for other programs), `synthetic`
           (records), `rehearsal` (before the run), `areas` (whole counts for areas)

Imports `releases` and what that may import.
"""
