"""What every room may use: numbers, text, files. It knows nothing of privacy or tables.

Read `exact_numbers` first (rationals from what people write, and back: budgets and noise scales
are these), then `files` (a file is written whole or not at all). Look up the rest by subject:

numbers  `typed_numbers`, `numerics` (normal quantiles, how CVXPY is asked)
texts    `formatting` (as people read them), `names`, `arguments` (errors for those of another
         kind), `template_text`, `json_fields` (strict reading), `yaml_text`, `csv_text`
files    `file_kinds`, `file_identity`, `machine`, `parquet_bytes`, `zip_file`, `statistics_files`
         (SPSS, Stata, SAS), `record_files` (which hold records), `secret_files`, `ssh_signatures`
work     `extras` (optional packages), `concurrency`, `other_process`, `hangup`
app      `webapp_files`, `server_settings`, `limits`, `public_address`, `login_file`, `event_log`

Imports `errors` only.
"""
