"""Noise, the ledger, and the folders of releases: the only room that spends privacy.

Noise: `noise/` (all of it), `measurement`, `measurement_file`. Books: `approvals` (whether they are
what a ledger demands), `ledger/`, `charged_run` (refuse, count, book). Runs: `feasibility`,
`release` (check, count, book, measure, write; a stopped run is resumed there too), `release_steps`
(those of each part of a plan), `pilot` (released before the rest is drawn), `rehearsal` (a made-up
table, from public counts). Folders:
`atomic_folder`, `manifest`, `readme`, `finished_release`; the parts `table_release` (tables from
what was measured) with `table_cells` (their rows and files), `query_release`, `area_release` with
`area_parts`, `area_measurement` and `area_files` (a subtree after another, so that a country fits),
`adaptive_release` with `adaptive_rounds` and `error_bounds` (the table that is fitted worst is
selected and measured).

Imports `data`, `planning` and what these may import.
"""
