"""Measured residuals, with gaps or without, to tables. Sees noisy figures only; draws no noise.

`table_map` and `array_store` (contributions and their tables) serve all who make tables of
residuals. The rest are smooth tables: a best guess at the counts, by empirical Bayes; biased, and
labelled so. Order by order each table is a baseline made of smaller tables, plus what its own
measured residual says beyond that, shrunk as far as it is noise (docs/mathematics.md §13).

In reading order: `array_store`, `table_map`; `measured_residuals`, `one_way`, `factor_model` (the
baseline of pairs), `shrinkage`, `fitting`, `pairs`, `higher_tables`, `agreement`,
`standard_errors`, `seeded_numbers`, `rehearsal`, `smooth_tables`.

Imports `planning.mechanism`, `domain` and `common`.
"""
