"""Noise, the ledger, and the folders of releases: the only room that spends privacy.

Noise: `noise/` (all of it), `measurement`, `measurement_file`. Books: `approval` (whether approvals
are what a ledger demands), `ledger/`, `charged_run` (refuse, count, book). Runs: `feasibility`,
`release` (check, count, book, measure, write; a stopped run is resumed there too), `release_steps`
(those of each kind of plan), `rehearsal` (a made-up table, from public counts). Folders:
`atomic_folder`, `approval_files`, `manifest` (what all releases have), `readme`, `reading_code`,
`contributions`, `marginal_estimate`, `table_cells`, `table_files`, `residual_files`,
`table_release`, `query_release`; `areas/` (tables in areas in areas); `adaptive/` (what is measured
depends on what was released).

Imports `data`, `queries`, `planning` and what these may import.
"""
