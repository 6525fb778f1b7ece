"""What every room may use: numbers, text, files. It knows nothing of privacy or tables.

Numbers and texts: `exact_numbers` (rationals from what people write and back), `typed_numbers`,
`numerics` (normal quantiles, how CVXPY is asked), `formatting` (as people read them), `names`
(which can be kept), `arguments` (errors for those of another kind), `template_text`, `json_fields`
(strict reading), `yaml_text`, `csv_text`. Files: `files` (written whole, the user's folder),
`file_kinds` (what is no text), `file_identity`, `machine` (which one a path is of),
`parquet_bytes`, `zip_file`, `statistics_files` (SPSS, Stata, SAS), `record_files` (which hold
records), `secret_files` (which hold passwords), `ssh_signatures` (of texts, by ssh-keygen). Work:
`extras` (which optional packages are installed), `concurrency` (one-thread linear algebra, ordered
parallel map), `other_process`, `hangup` (the signal of a closed terminal). The app: `webapp_files`
(where its own files lie), `server_settings`, `limits`, `public_address`, `login_file` (how a shared
server serves), `event_log`.

Imports `errors` only.
"""
