"""Records in PostgreSQL, DuckDB or Spark, counted there by one statement that only reads.

In reading order: `connections` (named, never typed), `session`, `coding` (values to indices, in
SQL), `counting`, `source`.

Imports `data`, `domain`, `common` and `errors`; not `data.files`.
"""
