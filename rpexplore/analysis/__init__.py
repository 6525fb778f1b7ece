"""Plans as tidy DataFrames, and the sentences that page, report and command line share.

Accuracy: `measures`, `forecast`, `accuracy`, `accuracy_by_attribute`, `variance_by_size`,
`cell_accuracy`, `cell_blocks`, `distributions`, `fairness`, `explanation`. Budgets and targets:
`budget_units`, `budget_curves`, `sufficient_budgets`, `targets_met`, `target_curves`,
`binding_targets`, `shadow_prices`. Choices: `workload_grid`, `what_if`, `frontier`, `baselines`,
`scenarios` (side by side). Public counts: `expected_cells`, `relative_errors`, `usefulness`. Query
lists: `queries`. Areas: `areas`. Releases: `results`. Words: `glossary`.

Imports `scenarios` and what that may import.
"""
