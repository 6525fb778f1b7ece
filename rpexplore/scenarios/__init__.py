"""What a curator chooses, kept and edited: the inputs of plans, never a record.

In reading order: `table_settings`, `basis_choices`, `basis_choice_text`, `basis_options`;
`workload_request`, `workload_changes`; `scenario`, `project`, `autosave`, `examples`;
`codebook_grid`, `bins`, `codebook_import`, `codebook_change`; `area_study`.

Imports `queries`, `planning`, `workload`, `privacy`, `domain`, `common` and `errors`.
"""
