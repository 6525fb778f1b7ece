"""What "accurate" means for all tables of a workload together (docs/mathematics.md §6.9).

In reading order: `base` (weighted sum, largest variance), `constrained` (required targets, a
bounded largest error), `p_norm`, `custom` (a CVXPY expression), `registry` (all of them: a new loss
is a class here, a line there and its solver in `planning.solving`), `serialization` (JSON and
command-line text).

Imports `workload`, `domain`, `privacy`, `common` and `errors`.
"""
