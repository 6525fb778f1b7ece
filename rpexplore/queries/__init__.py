"""Lists of linear queries, each with a target: planned, verified and edited (FFU).

In reading order: `query_list`; `conditions`, `condition_tokens`, `value_comparisons`,
`condition_writer`; `definitions`, `definitions_file`, `csv_files`; `builders`, `edits`;
`age_texts`, `preset_roles`, `fitted_presets`, `presets`; `strategy`, `planner`, `plan`,
`plan_file`, `verification`, `plan_kinds` (any kind: loaded from a file, verified), `approving`.

Imports `planning`, `workload`, `privacy`, `domain`, `common` and `errors`.
"""
