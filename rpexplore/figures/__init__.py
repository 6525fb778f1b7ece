"""DataFrames as Plotly figures, each with its sentence and its numbers.

`chart` (figure, sentence, numbers, columns) and `axes` have what all share. A file draws what the
file of its name in `analysis` computes: `accuracy`, `fairness`, `budget_curves`, `trade_offs`,
`queries`, `areas`; `cells` draws those of one table, released or planned.

Imports `analysis`, `privacy`, `common` and `errors`.
"""
