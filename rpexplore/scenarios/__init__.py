"""What a curator chooses, kept and edited: the inputs of plans, never a record.

Read `scenario` first: everything that is chosen, as one frozen value. `workload_request` and
`table_settings` are what tables are derived from, and `project` keeps scenarios side by side.

choices   `workload_changes`, `basis_choices`, `basis_choice_text`, `basis_options`,
          `smooth_planning`, `board_notes`
codebook  `codebook_grid`, `impossible_lines`, `bins`, `codebook_import`, `codebook_change`
kept      `project_file`, `autosave`, `examples`, `limits` (of a shared server)
areas     `area_study`, `area_study_file`, `area_example`

Imports `queries`, `planning`, `workload`, `privacy`, `domain`, `common` and `errors`.
"""
