"""Noise, the ledger, and the folders of releases: the only room that spends privacy.

Read `release` first: its head has the five steps of a run, and a stopped run is resumed there.
Then `charged_run` (refuse, count, book: the order on which everything rests), `release_steps`
(the steps of each kind of part) and `measurement` (counts with noise), with `noise/`.

books    `ledger/`, `approval` (whether approvals are what a ledger demands)
before   `feasibility`, `rehearsal` (a made-up table, from public counts)
folders  `atomic_folder`, `manifest`, `finished_release`, `measurement_file`, `approval_files`,
         `readme`, `reading_code`; tables: `table_release`, `contributions`, `marginal_estimate`,
         `table_cells`, `table_files`, `residual_files`
by part  `table_release`, `areas/`, `query_release`, `adaptive/`

Imports `data`, `queries`, `planning` and what these may import.
"""
