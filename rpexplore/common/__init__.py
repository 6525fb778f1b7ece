"""What every room may use: numbers, text, files. It knows nothing of privacy or tables.

Numbers and texts: `numbers` (rationals from what people write and back, the normal quantile),
`text` (numbers as people read and type them, names, CSV, YAML), `template_text`, `json_fields`
(strict reading), `arguments` (errors for those of another kind). Files: `files` (written whole, the
user's folder, passwords), `file_kinds` (which hold records, how large they become),
`statistics_files` (SPSS, Stata, SAS), `parquet_bytes`, `ssh_signatures` (of texts, by ssh-keygen).
Work: `processes` (one-thread linear algebra, ordered parallel map, work in another process). The
app: `installation` (optional packages, the app's own files), `server` and `server_files` (how a
shared server serves).

Imports `errors` only.
"""
