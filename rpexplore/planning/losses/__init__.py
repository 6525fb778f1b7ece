"""What "accurate" means for all tables of a workload together (docs/mathematics.md §6.9).

In reading order: `base` (weighted sum, largest variance), `constrained` (required targets, a
bounded largest error), `p_norm`, `custom` (a CVXPY expression). A new loss is a class here and a
line in LOSSES of `planning.solving`; beside them its name in `rpexplore/__init__.pyi` and its form
in files in `planning.plan_fields`.

Imports `workload`, `domain`, `privacy`, `common` and `errors`.
"""
