"""Plans of own counts: queries with targets, measured through one matrix of whole numbers (FFU).

Read `query_planner` first (queries and budget to plan, with the proof), then `query_strategy` (the
matrix that is measured) and `query_plan` (what comes of it); `query_plan_file`,
`query_verification`.

Imports `queries`, `planning`, `planning.solvers` and what these may import.
"""
