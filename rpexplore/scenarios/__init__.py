"""What a curator chooses, kept and edited: the inputs of plans, never a record.

In reading order: `table_settings`, `basis_choices`, `basis_choice_text`, `basis_options`;
`workload_request`, `workload_changes`; `board_notes`, `scenario`, `project`, `project_file`,
`autosave`, `limits` (of a shared server), `examples`; `codebook_grid`, `impossible_lines`, `bins`,
`codebook_import`, `codebook_change`; `smooth_planning`; `area_study`, `area_study_file`,
`area_example`.

Imports `queries`, `planning`, `workload`, `privacy`, `domain`, `common` and `errors`.
"""
