"""Plans as tidy DataFrames, and the sentences that page, report and command line share.

Read `accuracy` first: it shows the form of all modules here, a function from plan to frame, and
its sentence. Then `measures` and `forecast` (in which unit accuracy is told), and what you need:

accuracy   `accuracy_by_attribute`, `variance_by_size`, `cell_accuracy`, `cell_blocks`,
           `distributions`, `fairness`, `explanation`
budgets    `budget_units`, `budget_curves`, `sufficient_budgets`, `targets_met`, `target_curves`,
           `binding_targets`, `shadow_prices`
choices    `workload_grid`, `what_if`, `frontier`, `baselines`, `scenarios` (side by side)
usefulness by public counts: `expected_cells`, `relative_errors`, `usefulness`
by part    `queries`, `areas`, `adaptive`; released tables: `results`; words: `glossary`

Imports `scenarios` and what that may import.
"""
