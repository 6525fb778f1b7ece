"""Smooth tables: a best guess at the counts, by empirical Bayes. Biased, and labelled so.

Order by order each table is a baseline made of smaller tables, plus what its own measured residual
says beyond that, shrunk as far as it is noise (docs/mathematics.md §13).

In reading order: `measured_residuals`, `one_way`, `factor_model` (the baseline of pairs),
`shrinkage`, `fitting`, `pairs`, `higher_tables`, `agreement`, `standard_errors`, `rehearsal`,
`smooth_tables`.

Imports `postprocessing` and what that may import.
"""
