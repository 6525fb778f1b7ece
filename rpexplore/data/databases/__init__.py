"""Records in PostgreSQL, DuckDB or Spark, counted there by one statement that only reads.

In reading order: `connections` (engines, and named ways to them), `session` and `duckdb_session`,
`postgres_session`, `spark_session`, `coding` (values to indices, in SQL), `counting`, `source`.

Imports `data`, `domain`, `common` and `errors`; not `data.files`.
"""
