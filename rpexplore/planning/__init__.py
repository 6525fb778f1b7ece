"""Planning: what is asked for and a budget become a plan, proven and verified. Sees no record.

Read `request` first (parts, shares, one plan), then what comes of it, `plan` and `part_plan`. How
tables are planned: `planner`, `optimum`, `solving` (the solver of each loss); what it chooses from:
`losses/`, `mechanism/`, `solvers/`; attributes in other bases: `optimal_strategies`,
`strategy_search`, `strategy_cache`; `minimum_budget`. The other parts: `areas/`, `counts/`,
`adaptive/`; `shares` splits the budget. What a plan says of itself: `certificate`,
`accuracy_frame`, `plan_summary`, `verification`; `approval` (people sign it). The file of tables:
`table_plan`, `table_plan_file`, `tables_in_json`, `loss_serialization`. `plan_fields` and each
`…_fields` declare the fields of files, and `schema` makes `schemas/plan-2.json` of them. Compared:
`baselines/`.

Imports `queries`, `workload`, `privacy`, `domain`, `common` and `errors`.

Papers by their short names (titles in docs/mathematics.md, which derives what is in none): RP and
RP+, ResidualPlanner and ResidualPlanner+; FFU, fitness for use; ReM, marginal reconstruction with
local nonnegativity; CKS, the discrete Gaussian; VR, SQUAREM; BV, Boyd and Vandenberghe.
"""
