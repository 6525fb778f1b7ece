"""Records in PostgreSQL, DuckDB, SQLite, Spark and others, counted by a statement that only reads.

In reading order: `connections` (engines, and named ways to them), `session` (what is counted, and a
session with an engine), `coding` (values to indices, in SQL), `counting` (on a server), `packing`
(coded records as whole numbers), `source`; the engines `duckdb_session`, `postgres_session` with
`postgres_servers`, `adbc_session`, `spark_session` with `spark_areas` and `spark_worker`, and
`spark_tasks` (work that needs no records).

Imports `data`, `domain`, `common` and `errors`; not `data.files`.
"""
