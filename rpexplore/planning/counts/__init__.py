"""Plans of own counts: queries with targets, measured through one matrix of whole numbers (FFU).

Read `query_planner` (queries and budget to plan), `query_strategy` (the matrix), `query_plan`,
`query_plan_file`, `query_verification`.
"""
