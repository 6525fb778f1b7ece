"""Planning: workload, loss and budget become a plan, proven and verified. Never sees a record.

In reading order: `losses/`, `mechanism/`, `solvers/`; `strategy_cache`, `strategy_search`,
`optimal_strategies` (what is measured of an attribute); `solving` (the solver of each loss),
`loss_serialization`, `certificate`; `optimum`, `planner`, `minimum_budget`;
`release_plan`, `plan`, `tables_in_json`, `plan_file` (described in `schemas/plan-1.json`),
`plan_summary`, `verification`, `approval` (a plan signed by people).

Imports `workload`, `privacy`, `domain`, `common` and `errors`.

Papers by their short names (titles in docs/mathematics.md, which derives what is in none): RP and
RP+, ResidualPlanner and ResidualPlanner+; FFU, fitness for use; ReM, marginal reconstruction with
local nonnegativity; CKS, the discrete Gaussian; VR, SQUAREM; BV, Boyd and Vandenberghe.
"""
