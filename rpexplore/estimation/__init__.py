"""Measured residuals, with gaps or without, to tables. Sees noisy figures only; draws no noise.

`table_map` (contributions and their tables) serves all who make tables of residuals; `nonnegative`
finds the nearest tables without cells below 0, and with 0 where no record is possible. The rest are
smooth tables: a best guess at the counts, by empirical Bayes; biased, and labelled so. Order by
order each table is a baseline made of smaller tables, plus what its own measured residual says
beyond that, shrunk as far as it is noise (docs/mathematics.md §13).

In reading order: `table_map`, `cell_coupling`, `exact_totals`, `nonnegative`, `one_way`, `pairs`,
`higher_tables`, `agreement`, `standard_errors`, `smooth_tables`.

Imports `planning.mechanism`, `domain` and `common`.
"""
