"""Measured residuals, with gaps or without, to tables. Sees noisy figures only; draws no noise.

Read `table_map` first (contributions and their tables), which serves all who make tables of
residuals, with `array_store`. The rest are smooth tables: a best guess at the counts, by empirical
Bayes; biased, and labelled so (docs/mathematics.md §13). Order by order, each table is a baseline
made of smaller tables, plus what its own measured residual says beyond that, shrunk as far as it
is noise. Read them in the order in which they are computed: `measured_residuals`, `one_way`,
`factor_model` (the baseline of pairs), `shrinkage`, `fitting`, `pairs`, `higher_tables`,
`agreement`, `standard_errors`, `seeded_numbers`, `rehearsal`; `smooth_tables` runs them all.

Imports `planning.mechanism`, `domain` and `common`.
"""
