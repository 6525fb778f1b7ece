"""Plans for areas in areas: independent noise on every area (docs/mathematics.md §15).

In reading order: `area_workload` (which tables are asked for on which level), `level_tables`
(presets of these), `area_groups` (areas that are alike, counted as one), `estimation` (variances of
the least-squares answers, and their gradient, in two passes), `least_squares` (the answers
themselves), `solvers` and `capped_solver` (losses, and proofs of what no precisions can better),
`search` (the best precisions), `area_loss`, `area_planner`, `exact_precisions`, `area_plan`,
`area_cells` (the most and the least accurate ones, where cells of a table differ),
`area_plan_file` with `group_file`, `area_minimum_budget`,
`area_verification`; `area_sums` (of areas that are no area of the tree).

Imports `planning`, `planning.losses`, `planning.mechanism`, `planning.solvers` and what these may
import.
"""
