"""What "accurate" means for all tables of a workload together (docs/mathematics.md §6.9).

In reading order: `losses` (weighted sum, largest variance, p-norm), `constrained` (required
targets, a bounded largest error), `custom` (a CVXPY expression). A new loss is a class here and a
line in LOSSES of `planning.solving`; beside them its name in `rpexplore/__init__.pyi` and its form
in the schema of plan files.

Imports `workload`, `domain`, `privacy`, `common` and `errors`.
"""
