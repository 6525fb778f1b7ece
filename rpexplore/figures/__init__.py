"""DataFrames as Plotly figures; each file draws what the file of that name in `analysis` computes.

`axes`, `chart` and `columns` have what all share. Then `accuracy`, `accuracy_by_attribute`,
`variance_by_size`, `cell_accuracy`, `distributions`, `shadow_prices`, `budget_curves`, `frontier`,
`what_if`, `queries`, `released_bars`, `released_heat_map`.

Imports `analysis`, `privacy`, `common` and `errors`.
"""
