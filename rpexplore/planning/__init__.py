"""Planning: a request and a budget become a plan, proven and verified. Never sees a record.

In reading order: `losses/`, `mechanism/`, `solvers/`; `strategies`, `optimal_strategies` (what is
measured of an attribute), `residual_strategies` (in single residuals); `solving` (the solver of
each loss), `planner`, `minimum_budget`; `part_plan` and its kinds `table_plan`, `areas/`, `counts`
(with `counts_objectives`, `counts_strategy`, `free_counts` and `counts_planner`), `adaptive`, each
with its part of a plan file (`plan_fields`, `schema`, `serialization`); `plan`, `pilot` (what is
measured first), `request`; `verification`, `approval` (a plan signed by people). Beside them
`baselines/`, plainer mechanisms.

Imports `workload`, `privacy`, `domain`, `common` and `errors`.

Papers by their short names (titles in docs/mathematics.md, which derives what is in none): RP and
RP+, ResidualPlanner and ResidualPlanner+; FFU, fitness for use; ReM, marginal reconstruction with
local nonnegativity; CKS, the discrete Gaussian; VR, SQUAREM; BV, Boyd and Vandenberghe.
"""
