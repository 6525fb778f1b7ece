"""Records in files and folders, counted in one pass, larger than memory if need be.

In reading order: `source`, `listing` (the files at a path), `csv_batches`, `columns` (header and
values).

Imports `data`, `domain`, `common` and `errors`; not `data.databases`.
"""
