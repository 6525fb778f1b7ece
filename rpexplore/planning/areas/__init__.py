"""Plans for areas in areas: independent noise on every area (docs/mathematics.md §15).

In reading order: `area_workload` (which tables are asked for on which level), `area_sums` (of areas
that are no area of the tree), `area_groups` (areas that are alike, counted as one), `tree_passes`
(least-squares answers and their variances), `solvers` (losses, and proofs of what no precisions can
better), `area_loss`, `area_planner`, `area_plan`, `area_plan_file`.

Imports `planning`, `planning.losses`, `planning.mechanism`, `planning.solvers` and what these may
import.
"""
