"""What is asked for: tables with weights and targets, and the query basis of each attribute.

In reading order: `targets`; `bases/`, `custom_basis_file`; `query_matrix` (the matrix W of a basis,
with names for its rows); `attribute_sets`, `workload_arrays`, `workload`;
`smooth_weights` (for tables that are to be smoothed); `table_text` (what tables are called, tables
as text and CSV).

Imports `domain`, `common` and `errors`.
"""
