"""DataFrames as Plotly figures, each with its sentence and its numbers.

`chart` (figure, sentence, numbers, columns), `axes` and `labels` have what all share;
`plotly_objects` is where Plotly is imported. A file draws what the file of its name in `analysis`
computes; `fairness`, with the Fairness chart, what `analysis.variance_by_size` does. Plan page:
`accuracy`. Fairness: `fairness`, `distributions`, `accuracy_by_attribute`, `shadow_prices`,
`cell_accuracy`. Trade-offs: `budget_curves` (also of targets), `frontier`, `what_if`, `baselines`.
Query lists: `queries`. Areas: `areas`. Results: `released_cells`.

Imports `analysis`, `privacy`, `common` and `errors`.
"""
