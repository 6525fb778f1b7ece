"""What is asked for: tables with weights and targets, and the query basis of each attribute.

Read `workload` first, with `targets`: what every planner of tables takes. Then `bases/` (which sums
of an attribute's values a table has) and `query_matrix` (their matrix W, with names for its rows);
`custom_basis_file`. `attribute_sets` and `workload_arrays` are what makes millions of tables quick;
`smooth_weights` with `pair_dependence` are weights for tables that are to be smoothed;
`table_text` has what tables are called, and tables as text and CSV.

Imports `domain`, `common` and `errors`.
"""
