"""DataFrames as Plotly figures, each with its sentence and its numbers.

Read `chart` first: a figure, its sentence, its numbers and their columns. `axes` and `labels` have
what all share, and `plotly_objects` is where Plotly is imported. Every other file draws what the
file of its name in `analysis` computes (`fairness`: what `analysis.variance_by_size` does).

plan        `accuracy`
fairness    `fairness`, `distributions`, `accuracy_by_attribute`, `shadow_prices`, `cell_accuracy`
trade-offs  `budget_curves` (also of targets), `frontier`, `what_if`, `baselines`
others      `queries`, `areas`, `released_cells` (results)

Imports `analysis`, `privacy`, `common` and `errors`.
"""
