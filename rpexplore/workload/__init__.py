"""What is asked for: tables with weights and targets, and lists of own counts.

Tables: `targets`; `bases/`; `attribute_sets`, `workload`; `smooth_weights` (for tables that are to
be smoothed); `table_text` (what tables and their cells are called, tables as text and CSV). Own
counts: `query_list` (linear queries, each with a target), `conditions` with `value_comparisons`
(which cells a text counts), `condition_atoms` (what conditions tell apart, of any number of cells),
`counts_by` (by other attributes), `query_definitions` (as they were typed), `query_files`,
`query_edits`; `presets` and `preset_roles` (well-known lists to start from).

Imports `domain`, `common` and `errors`.
"""
