"""What a curator chooses, kept and edited: the inputs of plans, never a record.

In reading order: `table_settings`, `bases`; `workload_request`, `workload_changes`; `board_notes`,
`area_study`, `scenario`, `project`, `autosave`, `examples`; `codebook_grid`, `bins`,
`codebook_import`, `codebook_change`.

Imports `planning`, `workload`, `privacy`, `domain`, `common` and `errors`.
"""
