"""Noise, the ledger, and the folders of releases: the only room that spends privacy.

Noise: `discrete_gaussian` (all of it), `envelope`, `measurement`, `measurement_file`. Books:
`ledger`, `ledger_frames`, `ledger_overlaps`, `charged_run` (refuse, book, write). Runs:
`feasibility`, `release` (check, count, book, measure, write; a stopped run is resumed there too),
`plan_run` (what a kind of plan says of it), `table_release`, `query_release`. Folders:
`atomic_folder`, `manifest`, `readme`, `contributions`, `marginal_estimate`, `table_cells`,
`table_folder`, `query_folder`.

Imports `data`, `scenarios` and what these may import.
"""
