"""Plans as tidy DataFrames, and the sentences that page, report and command line share.

Accuracy: `measures`, `accuracy`, `cell_accuracy`, `distributions`, `fairness`, `explanation`.
Budgets and targets: `budget_units`, `budget_curves`, `sufficient_budgets`, `targets_met`,
`binding_targets`. Choices: `workload_grid`, `what_if`, `frontier`, `baselines`,
`scenario_comparison`, `shared_tables`. Public counts: `populations`, `drawn_counts`, `drawn_areas`,
`ranges`,
`forecast`.
Own counts: `queries`. Rounds: `adaptive`. Areas: `area_levels`, `area_accuracy`, `area_forecast`,
`area_map`. Releases: `released_cells`. Words: `glossary`.

Imports `scenarios` and what that may import.
"""
