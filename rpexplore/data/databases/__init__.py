"""Records in PostgreSQL, DuckDB, SQLite, Spark and others, counted by a statement that only reads.

In reading order: `connections` (engines, and named ways to them), `request` (what is counted),
`coding` (values to indices, in SQL), `counting` (on a server), `streaming` and `packing` (here, of
coded records), `grouping` (here, in areas, of groups of a server), `spark_words`, `spark_coding`,
`spark_worker` and `spark_areas` (on a cluster), `session` and `duckdb_session`,
`postgres_session`, `spark_session`, `adbc_session`, `source`.

Imports `data`, `domain`, `common` and `errors`; not `data.files`.
"""
